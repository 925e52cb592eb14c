//! Deletion vectors leave with their files, and nothing that they hide comes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lakesmith::op::Operation;
use lakesmith::{Progress, Session, SessionOptions};
use lakesmith_testkit::{BuiltTable, TableBuilder};
use serde_json::Value;

use crate::tables::{files, ids, optimize, purge, run, session, small_files};

/// Actions of every commit, in order.
fn log(table: &BuiltTable) -> Vec<Value> {
    let folder = table.folder.join("_delta_log");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "json"));
    names.sort();
    let lines = names.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    });
    lines.collect()
}

/// Live files as a reader finds them who replays commits by path and vector, without any checkpoint.
fn replayed(table: &BuiltTable) -> BTreeSet<(String, String)> {
    let key = |body: &Value| (body["path"].as_str().unwrap().to_owned(), body["deletionVector"].to_string());
    let mut live = BTreeSet::new();
    for action in log(table) {
        if let Some(add) = action.get("add") {
            live.insert(key(add));
        }
        if let Some(remove) = action.get("remove") {
            assert!(live.remove(&key(remove)), "a remove names no live file: {remove}");
        }
    }
    live
}

#[test]
fn compaction_removes_the_file_with_its_vector() {
    for operation in [optimize, purge] {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let session = session();
        let report = run(&session, &table, operation(&session)).unwrap();
        assert_eq!(report.metrics.deletion_vector_stats.unwrap().num_deletion_vectors_removed, 4);
        let live = replayed(&table);
        let loaded = files(&table);
        assert_eq!(live.len(), loaded.len());
        assert!(live.iter().all(|(path, vector)| vector == "null" && loaded.iter().any(|f| &f.path == path)));
    }
}

#[test]
fn a_lone_file_full_of_deleted_rows_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let half: Vec<u64> = (0..50).collect();
    let table = TableBuilder::new(dir.path()).append(100, 1).delete_rows(0, &half).build().unwrap();
    let before = ids(&table);
    let session = session();
    let report = run(&session, &table, optimize(&session)).unwrap();
    assert_eq!((report.metrics.num_files_removed, report.metrics.num_files_added), (1, 1));
    assert_eq!(ids(&table), before);
    assert!(!run(&session, &table, optimize(&session)).unwrap().committed);
}

/// Puts the last commit of a table with one step more, made elsewhere, into the table once a rewrite has begun.
pub(crate) struct Deleter {
    from: BuiltTable,
    to: BuiltTable,
    done: AtomicBool,
}

impl Deleter {
    pub(crate) fn new(from: &BuiltTable, to: &BuiltTable) -> Self {
        Self { from: from.clone(), to: to.clone(), done: AtomicBool::new(false) }
    }
}

impl Progress for Deleter {
    fn begin(&self, _phase: &str, _total_bytes: u64) {
        if self.done.swap(true, Ordering::SeqCst) {
            return;
        }
        for entry in std::fs::read_dir(&self.from.folder).unwrap().flatten() {
            let target = self.to.folder.join(entry.file_name());
            if entry.file_name().to_string_lossy().starts_with("deletion_vector_") && !target.exists() {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
        let commit = format!("_delta_log/{:020}.json", self.from.version);
        std::fs::copy(self.from.folder.join(&commit), self.to.folder.join(&commit)).unwrap();
    }

    fn advance(&self, _bytes: u64, _rows: u64) {}

    fn end(&self) {}
}

pub(crate) fn vector_files(table: &BuiltTable) -> usize {
    let names = std::fs::read_dir(&table.folder).unwrap().map(|e| e.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("deletion_vector_")).count()
}

/// Compacts in several groups while rows of one file are deleted by vector.
fn deleted_meanwhile(file: usize, rows: &[u64], operation: fn(&Session) -> Operation) {
    let steps = |folder: &std::path::Path| {
        let every_tenth: Vec<u64> = (0..100).step_by(10).collect();
        TableBuilder::new(folder).append(600, 6).delete_rows(0, &every_tenth).delete_rows(3, &every_tenth)
    };
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut table = steps(dir.path()).build().unwrap();
    // Names and ids are the same wherever a table is built.
    let from = steps(elsewhere.path()).delete_rows(file, rows).build().unwrap();
    let mut expected = ids(&from);
    let progress = Arc::new(Deleter::new(&from, &table));
    let meanwhile = Session::new(SessionOptions { progress, ..Default::default() }).unwrap();
    let report = run(&meanwhile, &table, operation(&meanwhile)).unwrap();
    assert_eq!((report.groups_dropped, report.committed), (0, true));
    table.files = from.files.clone();
    assert_eq!(ids(&table), expected, "rows deleted from file {file} meanwhile");
    let live = replayed(&table);
    assert!(files(&table).iter().all(|file| live.iter().any(|(path, _)| *path == file.path)));
    assert_eq!(live.len(), files(&table).len());
    // Three were there; each output that deletes followed has one, and no attempt left another.
    let is_output = |path: &String| from.files.iter().all(|f| f.path != *path);
    let carried = live.iter().filter(|(path, vector)| vector != "null" && is_output(path)).count();
    assert_eq!(vector_files(&table), 3 + carried);
    // The next run treats what was left, and still nothing comes back.
    let session = session();
    run(&session, &table, operation(&session)).unwrap();
    assert_eq!(ids(&table), expected);
    assert!(!run(&session, &table, operation(&session)).unwrap().committed);
    expected.retain(|_, seen| *seen != 1);
    assert!(expected.is_empty());
}

#[test]
fn rows_deleted_by_a_first_vector_while_compacting_stay_deleted() {
    deleted_meanwhile(1, &[5, 6, 7], optimize);
    deleted_meanwhile(1, &[5, 6, 7], purge);
}

#[test]
fn rows_deleted_by_a_grown_vector_while_compacting_stay_deleted() {
    deleted_meanwhile(3, &[5, 6, 7], optimize);
    deleted_meanwhile(3, &[5, 6, 7], purge);
}

#[test]
fn an_output_emptied_while_it_was_written_is_not_committed() {
    let steps = |folder: &std::path::Path| TableBuilder::new(folder).append(100, 1).delete_rows(0, &[1, 2]);
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let table = steps(dir.path()).build().unwrap();
    let from = steps(elsewhere.path()).delete_rows(0, &(0..100).collect::<Vec<_>>()).build().unwrap();
    let progress = Arc::new(Deleter::new(&from, &table));
    let meanwhile = Session::new(SessionOptions { progress, ..Default::default() }).unwrap();
    let report = run(&meanwhile, &table, purge(&meanwhile)).unwrap();
    assert_eq!((report.committed, report.metrics.num_files_removed, report.metrics.num_files_added), (true, 1, 0));
    assert!(replayed(&table).is_empty() && files(&table).is_empty());
    let data_files = std::fs::read_dir(&table.folder).unwrap().flatten();
    assert_eq!(data_files.filter(|e| e.file_name().to_string_lossy().ends_with(".parquet")).count(), 1);
}

#[test]
fn a_file_emptied_by_its_vector_while_compacting_stays_empty() {
    let all: Vec<u64> = (0..100).collect();
    deleted_meanwhile(0, &all, optimize);
    deleted_meanwhile(2, &all, optimize);
}
