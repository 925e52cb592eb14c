//! Other writers commit while a rewrite is under way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use lakesmith::op::Operation;
use lakesmith::{Progress, Session, SessionOptions};
use lakesmith_testkit::BuiltTable;

use crate::tables::{files, ids, optimize, run, session, small_files};

/// Commits `winner` at the table's next version once the rewrite has begun.
pub(crate) struct Interfere {
    table: BuiltTable,
    winner: String,
    done: AtomicBool,
}

impl Interfere {
    pub(crate) fn new(table: &BuiltTable, winner: String) -> Self {
        Self { table: table.clone(), winner, done: AtomicBool::new(false) }
    }
}

impl Progress for Interfere {
    fn begin(&self, _phase: &str, _total_bytes: u64) {
        if !self.done.swap(true, Ordering::SeqCst) {
            let next = self.table.version + 1;
            std::fs::write(self.table.folder.join(format!("_delta_log/{next:020}.json")), &self.winner).unwrap();
        }
    }

    fn advance(&self, _bytes: u64, _rows: u64) {}

    fn end(&self) {}
}

fn session_with(table: &BuiltTable, winner: String) -> Session {
    let progress = Arc::new(Interfere::new(table, winner));
    Session::new(SessionOptions { progress, ..Default::default() }).unwrap()
}

fn remove_of(table: &BuiltTable, file: usize) -> String {
    let report = files(table);
    let path = &table.files[file].path;
    assert!(report.iter().any(|f| &f.path == path));
    let info = r#"{"commitInfo":{"timestamp":1704070000000,"operation":"DELETE","txnId":"other"}}"#;
    format!("{info}\n{{\"remove\":{{\"path\":\"{path}\",\"deletionTimestamp\":1704070000000,\"dataChange\":true}}}}\n")
}

#[test]
fn an_append_is_carried_over() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let spare = tempfile::tempdir().unwrap();
    let other = lakesmith_testkit::TableBuilder::new(spare.path()).append(5, 1).build().unwrap();
    std::fs::copy(other.folder.join(&other.files[0].path), table.folder.join("appended.parquet")).unwrap();
    let add = serde_json::json!({"add": {"path": "appended.parquet", "partitionValues": {}, "size": other.files[0].size,
        "modificationTime": 1, "dataChange": true, "stats": "{\"numRecords\":5}"}});
    let before = ids(&table);
    let session = session_with(&table, format!("{add}\n"));
    let report = run(&session, &table, optimize(&session)).unwrap();
    assert_eq!(report.version_after, Some(table.version + 2));
    assert_eq!(ids(&table).values().sum::<u64>(), before.values().sum::<u64>() + 5);
}

#[test]
fn a_group_that_lost_a_file_is_dropped_and_the_others_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let mut expected = ids(&table);
    // File 1 holds the ids 100 to 199 and has no deleted rows.
    expected.retain(|id, _| !(100..200).contains(id));
    let session = session_with(&table, remove_of(&table, 1));
    let mut options = session.optimize_options().unwrap();
    options.sizes.target_bytes = table.files.iter().map(|f| f.size).max().unwrap() * 2;
    let report = run(&session, &table, Operation::Optimize(options)).unwrap();
    assert_eq!(report.groups_dropped, 1);
    assert!(report.groups_done >= 1);
    assert_eq!(ids(&table), expected);
    let live = files(&table);
    let on_disk = std::fs::read_dir(&table.folder)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with("part-"))
        .count();
    let known = live.iter().filter(|f| f.path.starts_with("part-")).count();
    assert!(on_disk >= known);
}

#[test]
fn nothing_is_left_when_every_group_lost_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let mut expected = ids(&table);
    expected.retain(|id, _| !(100..200).contains(id));
    let session = session_with(&table, remove_of(&table, 1));
    let report = run(&session, &table, optimize(&session)).unwrap();
    assert_eq!((report.groups_dropped, report.committed), (1, false));
    assert_eq!(ids(&table), expected);
}

#[test]
fn two_optimisers_at_once_keep_every_row() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let before = ids(&table);
        let barrier = Barrier::new(2);
        let committed: u64 = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let session = session();
                        barrier.wait();
                        u64::from(run(&session, &table, optimize(&session)).unwrap().committed)
                    })
                })
                .collect();
            racers.into_iter().map(|r| r.join().unwrap()).sum()
        });
        assert_eq!(committed, 1);
        assert_eq!(ids(&table), before);
        assert_eq!(files(&table).len(), 1);
    }
}
