//! RESTORE: an earlier version comes back whole, or nothing is changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lakesmith::op::{Operation, Report, RestoreOptions, RestoreReport, TimeTravel};
use lakesmith::{Error, ErrorKind, Result, Session, SessionOptions, SystemWorld, World};
use lakesmith_testkit::{BuiltTable, Fault, FaultStore, TableBuilder};
use serde_json::Value;

use crate::catalog::sql;
use crate::fault_sweep::{KINDS, step};
use crate::tables::{files, ids, on_disk, optimize, purge, run, session, session_on, small_files};

fn restore(session: &Session, table: &BuiltTable, options: RestoreOptions) -> Result<RestoreReport> {
    match session.run(&table.folder.to_string_lossy(), Operation::Restore(options))? {
        Report::Restore(report) => Ok(*report),
        other => panic!("{other:?}"),
    }
}

fn to(version: u64) -> RestoreOptions {
    RestoreOptions { to: TimeTravel::Version(version), ..RestoreOptions::default() }
}

fn refused(table: &BuiltTable, options: RestoreOptions) -> Error {
    let before = commits(table);
    let error = restore(&session(), table, options).unwrap_err();
    assert_eq!(commits(table), before);
    error
}

fn commits(table: &BuiltTable) -> usize {
    std::fs::read_dir(table.folder.join("_delta_log")).unwrap().count()
}

fn commit(table: &BuiltTable, version: u64) -> Vec<Value> {
    let text = std::fs::read_to_string(table.folder.join(format!("_delta_log/{version:020}.json"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rows of three appends, some of them deleted, and then all files written anew, twice.
fn worn(folder: &std::path::Path) -> (BuiltTable, BTreeMap<i64, u64>) {
    let table = small_files(folder);
    let before = ids(&table);
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    (table, before)
}

#[test]
fn rows_and_vectors_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (table, before) = worn(dir.path());
    let compacted = table.version + 1;
    // Before the first delete: files without their vectors are other files.
    let report = restore(&session(), &table, to(3)).unwrap();
    assert_eq!((report.restored_version, report.version_after), (3, Some(compacted + 1)));
    assert_eq!((report.metrics.num_restored_files, report.metrics.num_removed_files), (8, 1));
    assert_eq!(ids(&table), (0..800).map(|id| (id, 1)).collect());
    let report = restore(&session(), &table, to(table.version)).unwrap();
    assert_eq!((report.metrics.num_restored_files, report.metrics.num_removed_files), (4, 4));
    assert_eq!(ids(&table), before);
    // Restored files are files like any other.
    let session = session();
    assert!(run(&session, &table, purge(&session)).unwrap().committed);
    assert!(run(&session, &table, optimize(&session)).unwrap().committed);
    assert_eq!(ids(&table), before);
    let counts: Vec<usize> = (0..=compacted).map(|version| restored(dir.path(), version)).collect();
    assert_eq!(counts[..4], [0, 300, 600, 800]);
    assert!(counts[4..].is_sorted_by(|a, b| a >= b));
}

/// Rows after a restore of a copy.
fn restored(folder: &std::path::Path, version: u64) -> usize {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap().chain(std::fs::read_dir(folder.join("_delta_log")).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            let target = copy.path().join(path.strip_prefix(folder).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::copy(path, target).unwrap();
        }
    }
    let table = TableBuilder::new(tempfile::tempdir().unwrap().path()).build().unwrap();
    let table = BuiltTable {
        folder: copy.path().to_owned(),
        files: small_files(tempfile::tempdir().unwrap().path()).files,
        ..table
    };
    let table = BuiltTable { root: lakesmith::Location::parse(&table.folder.to_string_lossy()).unwrap(), ..table };
    restore(&session(), &table, to(version)).unwrap();
    let live = ids(&table);
    assert!(live.values().all(|seen| *seen == 1));
    live.len()
}

#[test]
fn a_dry_run_only_tells() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = worn(dir.path());
    let before = commits(&table);
    let report = restore(&session(), &table, RestoreOptions { dry_run: true, ..to(1) }).unwrap();
    assert_eq!((report.committed, report.version_after, report.metrics.num_of_files_after_restore), (false, None, 3));
    assert_eq!(commits(&table), before);
}

#[test]
fn missing_files_are_named_and_nothing_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = worn(dir.path());
    let lost = on_disk(&table, &table.files[1].path);
    std::fs::rename(&lost, dir.path().join("aside")).unwrap();
    let error = refused(&table, to(3));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains(&table.files[1].path), "{error}");
    std::fs::write(&lost, b"PAR1").unwrap();
    let error = refused(&table, to(3));
    assert!(error.message().contains(&format!("4 bytes, not {}", table.files[1].size)), "{error}");
    std::fs::rename(dir.path().join("aside"), &lost).unwrap();
    // Version 4 needs one vector file.
    let vectors: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("deletion_vector_"))
        .collect();
    assert!(!vectors.is_empty());
    vectors.iter().for_each(|vector| std::fs::remove_file(vector).unwrap());
    let error = refused(&table, to(4));
    assert!(error.message().contains("deletion_vector_"), "{error}");
    restore(&session(), &table, to(3)).unwrap();
    assert_eq!(ids(&table).len(), 800);
}

#[test]
fn versions_that_are_no_target_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let latest = table.version;
    let error = refused(&table, to(99));
    assert_eq!(error.class_name(), "DELTA_CANNOT_RESTORE_TABLE_VERSION");
    assert_eq!(error.message(), format!("Cannot restore table to version 99. Available versions: [0, {latest}]."));
    assert!(refused(&table, to(latest)).message().contains("should be less than last available version"));
    let at = |time_ms| RestoreOptions { to: TimeTravel::Timestamp(time_ms), ..RestoreOptions::default() };
    assert!(refused(&table, at(i64::MAX / 2)).message().contains("should be less than last available version"));
    assert_eq!(refused(&table, at(0)).class_name(), "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER");
}

#[test]
fn a_table_for_appends_only_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).property("delta.appendOnly", "true").append(10, 1).append(10, 1);
    let table = table.build().unwrap();
    assert_eq!(refused(&table, to(1)).class_name(), "DELTA_CANNOT_MODIFY_APPEND_ONLY");
}

/// A world in which another writer commits right before us.
#[derive(Debug)]
struct Raced {
    table: BuiltTable,
    done: AtomicBool,
}

impl World for Raced {
    fn now_ms(&self) -> i64 {
        SystemWorld.now_ms()
    }

    fn new_uuid(&self) -> uuid::Uuid {
        if !self.done.swap(true, Ordering::SeqCst) {
            let next = self.table.version + 1;
            let line = "{\"commitInfo\":{\"timestamp\":1704070000000,\"operation\":\"WRITE\",\"txnId\":\"other\"}}\n";
            std::fs::write(self.table.folder.join(format!("_delta_log/{next:020}.json")), line).unwrap();
        }
        SystemWorld.new_uuid()
    }
}

#[test]
fn what_another_writer_does_meanwhile_is_not_undone() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let world = Arc::new(Raced { table: table.clone(), done: AtomicBool::new(false) });
    let session = Session::new(SessionOptions { world, ..SessionOptions::default() }).unwrap();
    let error = restore(&session, &table, to(2)).unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::Conflict, "DELTA_CONCURRENT_WRITE"));
    assert_eq!(ids(&table), before);
}

#[test]
fn streaming_writers_go_on_or_begin_again() {
    for reset in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let line = |app: &str, version: i64| format!("{{\"txn\":{{\"appId\":\"{app}\",\"version\":{version}}}}}\n");
        for (version, text) in [(8, line("old", 4)), (9, line("old", 7) + &line("new", 0))] {
            std::fs::write(table.folder.join(format!("_delta_log/{version:020}.json")), text).unwrap();
        }
        restore(&session(), &table, RestoreOptions { reset_transactions: reset, ..to(8) }).unwrap();
        let actions = commit(&table, 10);
        let mut found: Vec<(&str, i64)> = actions
            .iter()
            .filter_map(|a| a.get("txn"))
            .map(|t| (t["appId"].as_str().unwrap(), t["version"].as_i64().unwrap()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, if reset { vec![("new", -1), ("old", 4)] } else { vec![] });
    }
}

#[test]
fn restore_survives_a_fault_at_every_request() {
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let (table, _) = worn(dir.path());
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        restore(&session_on(store), &table, to(3)).unwrap();
        faulty.requests()
    };
    assert!(requests > 10, "{requests}");
    for (offset, kind) in KINDS.into_iter().enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let dir = tempfile::tempdir().unwrap();
            let (table, before) = worn(dir.path());
            let fault = Fault { at_request, kind };
            let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
            let outcome = restore(&session_on(store), &table, to(3));
            let live = ids(&table);
            let (whole, left) = (live.len() == 800, live == before);
            assert!(if outcome.is_ok() { whole } else { whole || left }, "{fault:?}: {outcome:?}");
            for file in files(&table) {
                assert!(on_disk(&table, &file.path).exists(), "{fault:?} lost {}", file.path);
            }
            restore(&session(), &table, to(3)).unwrap();
            assert_eq!(ids(&table), (0..800).map(|id| (id, 1)).collect(), "{fault:?}");
        }
    }
}

#[test]
fn a_restore_that_begins_the_tables_own_clock_says_when() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("delta.`{}`", dir.path().join("t").display());
    let mut s = session();
    let clock = "delta.enableInCommitTimestamps";
    sql(&mut s, &format!("CREATE TABLE {name} (a INT); ALTER TABLE {name} SET TBLPROPERTIES ('{clock}' = 'true')"))
        .unwrap();
    let log = |version: u64| dir.path().join(format!("t/_delta_log/{version:020}.json"));
    let of = |version: u64, kind: &str| {
        let text = std::fs::read_to_string(log(version)).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find_map(|action| action.get(kind).cloned()).unwrap()
    };
    // Another engine turned it off.
    let metadata = of(0, "metaData");
    std::fs::write(log(2), serde_json::json!({ "metaData": metadata }).to_string()).unwrap();
    sql(&mut s, &format!("RESTORE TABLE {name} TO VERSION AS OF 1")).unwrap();
    let (configuration, info) = (of(3, "metaData")["configuration"].clone(), of(3, "commitInfo"));
    assert_eq!(configuration[clock], "true");
    assert_eq!(configuration["delta.inCommitTimestampEnablementVersion"], "3");
    let since = configuration["delta.inCommitTimestampEnablementTimestamp"].as_str().unwrap().parse::<i64>().unwrap();
    assert_eq!(info["inCommitTimestamp"], since);
    // While it goes, a restore does not begin it again.
    sql(&mut s, &format!("ALTER TABLE {name} SET TBLPROPERTIES ('x' = 'y'); RESTORE TABLE {name} TO VERSION AS OF 1"))
        .unwrap();
    assert_eq!(of(5, "metaData")["configuration"]["delta.inCommitTimestampEnablementVersion"], "3");
    assert!(of(5, "commitInfo")["inCommitTimestamp"].as_i64().unwrap() > since);
}
