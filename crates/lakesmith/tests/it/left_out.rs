//! Files that hold something that is not rewritten stay as they are; the rest of the table goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use lakesmith::ErrorKind;
use lakesmith::layout::Curve;
use lakesmith::op::{Operation, OptimizeOptions, OrderBy};
use lakesmith_testkit::{BuiltTable, TableBuilder};
use parquet::arrow::ArrowWriter;

use crate::tables::{files, on_disk, optimize, purge, run, session};

fn builder(folder: &Path, files: i64) -> BuiltTable {
    let longs = |i: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(i * 5..i * 5 + 5)) };
    let builder = TableBuilder::new(folder).schema(vec![Field::new("id", DataType::Int64, true)]);
    let batches = (0..files).map(|i| RecordBatch::try_from_iter_with_nullable([("id", longs(i), true)]).unwrap());
    batches.fold(builder, |builder, batch| builder.append_batch(&[], batch)).build().unwrap()
}

/// Another writer's file of strings in the place of a file of numbers.
fn narrow(table: &BuiltTable, file: usize) {
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]));
    let batch = RecordBatch::try_from_iter([("id", strings)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let path = &table.files[file].path;
    std::fs::write(on_disk(table, path), &bytes).unwrap();
    for version in 0..=table.version {
        let log = table.folder.join(format!("_delta_log/{version:020}.json"));
        let lines = std::fs::read_to_string(&log).unwrap();
        let resized = lines.lines().map(|line| {
            let mut action: serde_json::Value = serde_json::from_str(line).unwrap();
            if action["add"]["path"] == path.as_str() {
                action["add"]["size"] = bytes.len().into();
            }
            action.to_string()
        });
        std::fs::write(&log, resized.collect::<Vec<_>>().join("\n")).unwrap();
    }
}

fn live(table: &BuiltTable) -> BTreeSet<String> {
    files(table).into_iter().map(|f| f.path).collect()
}

#[test]
fn the_rest_of_the_table_goes_on_and_a_second_run_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = builder(dir.path(), 6);
    narrow(&table, 2);
    let odd = table.files[2].path.clone();
    let session = session();
    for operation in [optimize(&session), optimize(&session)] {
        let first = live(&table).len() == 6;
        let report = run(&session, &table, operation).unwrap();
        assert_eq!(report.committed, first);
        assert_eq!(report.metrics.num_files_removed, if first { 5 } else { 0 });
        let left: Vec<_> = report.left_out.iter().map(|l| (l.path.ends_with(&odd), l.column.as_deref())).collect();
        assert!(left.iter().all(|l| *l == (true, Some("id"))), "{left:?}");
        assert!(!first || left.len() == 1);
        let now = live(&table);
        assert!(now.contains(&odd) && now.len() == 2, "{now:?}");
    }
    let data_files = std::fs::read_dir(&table.folder)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".parquet"));
    assert_eq!(data_files.count(), 7);
}

#[test]
fn an_order_of_the_rest_is_finished_work_too() {
    let dir = tempfile::tempdir().unwrap();
    let table = builder(dir.path(), 6);
    narrow(&table, 2);
    let odd = table.files[2].path.clone();
    let session = session();
    let order = |force: bool| {
        let by = OrderBy { curve: Curve::Sort, columns: vec![vec!["id".into()]] };
        let options = session.optimize_options().unwrap();
        Operation::Optimize(OptimizeOptions { order_by: Some(by), stats_check: false, force, ..options })
    };
    for (force, commits) in [(false, true), (false, false), (true, true)] {
        let before = live(&table);
        let report = run(&session, &table, order(force)).unwrap();
        assert_eq!(report.committed, commits, "forced: {force}");
        assert_eq!((live(&table) == before, report.left_out.len()), (!commits, 1));
        assert!(live(&table).contains(&odd));
        let orphans = std::fs::read_dir(&table.folder).unwrap().count();
        assert_eq!(orphans, 8 + usize::from(force), "outputs of a run that commits nothing are swept");
    }
}

#[test]
fn a_table_of_which_no_file_can_be_rewritten_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let table = builder(dir.path(), 2);
    narrow(&table, 0);
    narrow(&table, 1);
    let before = live(&table);
    let session = session();
    let error = run(&session, &table, optimize(&session)).unwrap_err();
    assert_eq!((error.kind(), error.context_value("column")), (ErrorKind::Unsupported, Some("id")), "{error}");
    assert!(error.context_value("path").is_some());
    assert_eq!(live(&table), before);
    assert!(!run(&session, &table, purge(&session)).unwrap().committed);
}
