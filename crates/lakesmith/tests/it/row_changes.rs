//! Rows that enter and leave, with faults at every request and other writers meanwhile: all of the change or nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use lakesmith::op::{AlterProperties, Operation, TimeTravel};
use lakesmith::table::{DataEdit, DeletionVector, FileId, MarkedFile, ReadSet};
use lakesmith::{Changed, ErrorKind, Replaced, Result, RowChange, Session, Touched};
use lakesmith_testkit::{BuiltTable, Fault, FaultStore};

use crate::fault_sweep::{KINDS, step};
use crate::sweeping::on_disk as everything;
use crate::tables::{files, ids, on_disk, session, session_on, small_files};

const NEW: std::ops::Range<i64> = 5000..5050;

/// A table that takes deletion vectors, or none any more.
fn table(folder: &std::path::Path, takes_vectors: bool) -> BuiltTable {
    let mut table = small_files(folder);
    let set = BTreeMap::from([("delta.enableDeletionVectors".to_owned(), takes_vectors.to_string())]);
    let alter = Operation::AlterProperties(AlterProperties { set, ..Default::default() });
    session().run(&table.folder.to_string_lossy(), alter).unwrap();
    table.version += 1;
    table
}

fn batch(change: &RowChange<'_>, ids: std::ops::Range<i64>) -> RecordBatch {
    let columns: Vec<(Field, ArrayRef)> = change
        .schema()
        .fields
        .iter()
        .map(|field| {
            let long = field.data_type == lakesmith::table::DataType::Long;
            let column: ArrayRef = if long {
                Arc::new(Int64Array::from_iter_values(ids.clone()))
            } else {
                Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("new {id}"))))
            };
            let kind = if long { DataType::Int64 } else { DataType::Utf8 };
            (Field::new(&field.name, kind, true), column)
        })
        .collect();
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn begin<'s>(session: &'s Session, table: &BuiltTable) -> Result<(RowChange<'s>, lakesmith::Table)> {
    let opened = session.open_table(&lakesmith::TableRef::Path(table.root.to_string()), TimeTravel::Latest)?;
    Ok((RowChange::of(session, &opened)?, opened))
}

fn id_of(opened: &lakesmith::Table, path: &str) -> FileId {
    opened.state().files.iter().find(|file| file.path == path).unwrap().id
}

/// Fifty rows come, in two files.
fn append(session: &Session, table: &BuiltTable) -> Result<Changed> {
    let (change, _) = begin(session, table)?;
    let mut added = Vec::new();
    for (mut writer, part) in change.writers(2)?.into_iter().zip([NEW.start..NEW.start + 20, NEW.start + 20..NEW.end]) {
        writer.write(&batch(&change, part))?;
        added.extend(writer.finish()?);
    }
    change.insert(added, Replaced::Nothing, false)
}

/// Row 5 of every file goes.
fn delete(session: &Session, table: &BuiltTable) -> Result<Changed> {
    let (change, opened) = begin(session, table)?;
    let marked = opened.state().files.iter().map(|file| MarkedFile {
        file: file.id,
        rows: DeletionVector::from_rows([5]),
        physical_rows: file.rows.unwrap(),
    });
    let touched = Touched { whole: None, reads: ReadSet::Everything };
    change.delete(Some("id % 100 = 5"), touched, marked.collect()).map(|(_, changed)| changed)
}

/// All rows go and fifty come.
fn overwrite(session: &Session, table: &BuiltTable) -> Result<Changed> {
    let (change, _) = begin(session, table)?;
    let mut writers = change.writers(1)?;
    let mut writer = writers.remove(0);
    writer.write(&batch(&change, NEW))?;
    let added = writer.finish()?;
    change.insert(added, Replaced::Everything, false)
}

/// `kind`: what is done, and whether the table takes vectors.
fn sweep(change: fn(&Session, &BuiltTable) -> Result<Changed>, takes_vectors: bool) {
    let (requests, before, after) = {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path(), takes_vectors);
        let before = ids(&table);
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        change(&session_on(store), &table).unwrap();
        (faulty.requests(), before, ids(&table))
    };
    assert!(requests > 10 && before != after, "{requests}");
    for (offset, kind) in KINDS.into_iter().enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let fault = Fault { at_request, kind };
            let dir = tempfile::tempdir().unwrap();
            let table = table(dir.path(), takes_vectors);
            let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
            let outcome = change(&session_on(store), &table);
            for file in files(&table) {
                assert!(on_disk(&table, &file.path).exists(), "{fault:?} lost {}", file.path);
            }
            let now = ids(&table);
            match outcome {
                Ok(changed) => {
                    assert_eq!(now, after, "{fault:?}");
                    assert_eq!(changed.version, Some(table.version + 1), "{fault:?}");
                }
                // A storage that did not answer may have taken the commit.
                Err(error) => assert!(now == before || now == after, "{fault:?}: {error}"),
            }
            if now == before {
                change(&session(), &table).unwrap();
                assert_eq!(ids(&table), after, "{fault:?}");
            }
        }
    }
}

#[test]
fn an_append_survives_a_fault_at_every_request() {
    sweep(append, true);
}

#[test]
fn a_delete_with_vectors_survives_a_fault_at_every_request() {
    sweep(delete, true);
}

#[test]
fn a_delete_by_copies_survives_a_fault_at_every_request() {
    sweep(delete, false);
}

#[test]
fn an_overwrite_survives_a_fault_at_every_request() {
    sweep(overwrite, true);
}

#[test]
fn a_change_that_is_dropped_or_lost_takes_its_files_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path(), true);
    let before: BTreeSet<String> = everything(&table.folder).into_iter().collect();
    let session = session();
    let (change, _) = begin(&session, &table).unwrap();
    let mut writer = change.writers(1).unwrap().remove(0);
    writer.write(&batch(&change, NEW)).unwrap();
    assert_eq!(writer.finish().unwrap().len(), 1);
    drop(change);
    assert_eq!(everything(&table.folder).into_iter().collect::<BTreeSet<_>>(), before);
    // A conflict: the table's rows were read, and rows came meanwhile.
    let (change, opened) = begin(&session, &table).unwrap();
    let mut writer = change.writers(1).unwrap().remove(0);
    writer.write(&batch(&change, NEW)).unwrap();
    let added = writer.finish().unwrap();
    append(&session, &table).unwrap();
    let theirs: BTreeSet<String> =
        everything(&table.folder).into_iter().filter(|f| !f.contains("_delta_log")).collect();
    let removed = vec![id_of(&opened, &table.files[1].path)];
    let edit = DataEdit { added, removed, reads: ReadSet::Everything, ..Default::default() };
    let error = change.commit(edit).unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::Conflict, "DELTA_CONCURRENT_APPEND"), "{error}");
    let left: BTreeSet<String> = everything(&table.folder).into_iter().filter(|f| !f.contains("_delta_log")).collect();
    assert_eq!(theirs.difference(&left).count(), 1, "our file is gone, and theirs is not");
}

#[test]
fn two_who_append_at_once_both_do() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path(), true);
    let before: u64 = ids(&table).values().sum();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| append(&session(), &table).unwrap());
        }
    });
    assert_eq!(ids(&table).values().sum::<u64>(), before + 4 * 50);
}

#[test]
fn rows_that_two_delete_at_once_are_gone_once() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path(), true);
    let before = ids(&table);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n: u64| {
                let table = &table;
                scope.spawn(move || {
                    let session = session();
                    let (change, opened) = begin(&session, table).unwrap();
                    let file = opened.state().files.iter().find(|f| f.deletes.is_none()).unwrap();
                    let rows = DeletionVector::from_rows([50, 51 + n]);
                    let marked = MarkedFile { file: file.id, rows, physical_rows: file.rows.unwrap() };
                    let touched = Touched { whole: None, reads: ReadSet::Everything };
                    change.delete(Some("id = 0"), touched, vec![marked]).map(|(rows, _)| rows.unwrap())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let deleted: u64 = outcomes.into_iter().map(Result::unwrap).sum();
    // Whoever came later may have met another file, for the first one has a vector then; each row is counted once.
    assert_eq!(ids(&table).values().sum::<u64>(), before.values().sum::<u64>() - deleted);
    assert!((5..=8).contains(&deleted), "{deleted}");
}
