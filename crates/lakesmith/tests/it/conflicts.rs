//! Other writers commit while a rewrite is under way.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use lakesmith::op::Operation;
use lakesmith::{ErrorKind, Progress, Session, SessionOptions, World};
use lakesmith_testkit::{BuiltTable, TableBuilder};

use crate::catalog::sql;
use crate::tables::{files, ids, optimize, run, session, small_files};

/// What another one does to the table meanwhile: as progress once a rewrite has begun, as world once the time is asked
/// for, which is between load and commit.
pub(crate) struct Interfere {
    deed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    ids: AtomicU64,
}

impl Interfere {
    pub(crate) fn doing(deed: impl FnOnce() + Send + 'static) -> Self {
        Self { deed: Mutex::new(Some(Box::new(deed))), ids: AtomicU64::new(1) }
    }

    /// Commits `winner` at the table's next version.
    pub(crate) fn new(table: &BuiltTable, winner: String) -> Self {
        let place = table.folder.join(format!("_delta_log/{:020}.json", table.version + 1));
        Self::doing(move || std::fs::write(place, winner).unwrap())
    }

    fn interfere(&self) {
        let deed = self.deed.lock().unwrap().take();
        deed.into_iter().for_each(|deed| deed());
    }
}

impl std::fmt::Debug for Interfere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interfere")
    }
}

impl Progress for Interfere {
    fn begin(&self, _phase: &str, _total_bytes: u64) {
        self.interfere();
    }

    fn advance(&self, _bytes: u64, _rows: u64) {}

    fn end(&self) {}
}

impl World for Interfere {
    fn now_ms(&self) -> i64 {
        self.interfere();
        1_800_000_000_000
    }

    fn new_uuid(&self) -> uuid::Uuid {
        uuid::Uuid::from_u128(self.ids.fetch_add(1, Ordering::SeqCst).into())
    }
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
    let other = TableBuilder::new(spare.path()).append(5, 1).build().unwrap();
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

fn names(folder: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = found.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Drops the log at `folder` and puts what is at `other` in its place.
pub(crate) fn replace_log(folder: &Path, other: &Path) {
    std::fs::remove_dir_all(folder.join("_delta_log")).unwrap();
    if !other.join("_delta_log").exists() {
        return;
    }
    std::fs::create_dir(folder.join("_delta_log")).unwrap();
    for name in names(other).into_iter().filter(|name| name != "_delta_log") {
        std::fs::copy(other.join(&name), folder.join(&name)).unwrap();
    }
    for name in names(&other.join("_delta_log")) {
        std::fs::copy(other.join("_delta_log").join(&name), folder.join("_delta_log").join(&name)).unwrap();
    }
}

#[test]
fn nothing_is_committed_to_a_log_that_was_replaced() {
    for text in [
        None,
        Some("ALTER TABLE {t} ADD COLUMN n INT"),
        Some("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"),
        Some("CREATE OR REPLACE TABLE {t} (other INT) USING delta"),
        Some("RESTORE TABLE {t} TO VERSION AS OF 1"),
    ] {
        // Of the same version, younger, one that has only commits after that version, and none at all.
        for commits in [Some(4), Some(2), Some(6), None] {
            let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let append = |builder: TableBuilder| builder.append(50, 2);
            let table = (0..4).fold(TableBuilder::new(dir.path().join("t")), |b, _| append(b)).build().unwrap();
            let new = commits.map(|commits| {
                (0..commits).fold(TableBuilder::new(other.path().join("t")), |b, _| append(b)).build().unwrap()
            });
            let files_before = names(&table.folder);
            let (folder, place) = (table.folder.clone(), other.path().join("t"));
            let interfere = Arc::new(Interfere::doing(move || replace_log(&folder, &place)));
            let error = match text {
                None => {
                    let options = SessionOptions { progress: interfere, ..Default::default() };
                    let session = Session::new(options).unwrap();
                    run(&session, &table, optimize(&session)).unwrap_err()
                }
                Some(text) => {
                    let options = SessionOptions { world: interfere, ..Default::default() };
                    let name = format!("delta.`{}`", table.folder.display());
                    sql(&mut Session::new(options).unwrap(), &text.replace("{t}", &name)).unwrap_err()
                }
            };
            assert_eq!(error.kind(), ErrorKind::Conflict, "{text:?} {commits:?}: {error}");
            let log = |folder: &Path| names(&folder.join("_delta_log"));
            assert_eq!(log(&table.folder), log(&other.path().join("t")), "{text:?} {commits:?}");
            let mut expected = files_before;
            expected.extend(names(&other.path().join("t")));
            expected.retain(|name| name != "_delta_log" || commits.is_some());
            expected.sort();
            expected.dedup();
            assert_eq!(names(&table.folder), expected, "{text:?} {commits:?}");
            if let Some(new) = new {
                assert_eq!(ids(&table), ids(&new), "{text:?} {commits:?}");
            }
        }
    }
}

#[test]
fn a_version_without_its_commit_is_known_by_its_checkpoint() {
    for is_replaced in [false, true] {
        for text in [None, Some("ALTER TABLE {t} ADD COLUMN n INT")] {
            let dir = tempfile::tempdir().unwrap();
            let table = small_files(&dir.path().join("t"));
            let checkpoint = Operation::Checkpoint(Default::default());
            session().run(&table.folder.to_string_lossy(), checkpoint).unwrap();
            let log = table.folder.join("_delta_log");
            // As after a clean-up of the log.
            for version in 0..=table.version {
                std::fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
            }
            let checkpoint = log.join(format!("{:020}.checkpoint.parquet", table.version));
            let interfere = Arc::new(Interfere::doing(move || {
                if is_replaced {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    std::fs::write(&checkpoint, std::fs::read(&checkpoint).unwrap()).unwrap();
                }
            }));
            let done = match text {
                None => {
                    let options = SessionOptions { progress: interfere, ..Default::default() };
                    let session = Session::new(options).unwrap();
                    run(&session, &table, optimize(&session)).map(|_| ())
                }
                Some(text) => {
                    let options = SessionOptions { world: interfere, ..Default::default() };
                    let name = format!("delta.`{}`", table.folder.display());
                    sql(&mut Session::new(options).unwrap(), &text.replace("{t}", &name)).map(|_| ())
                }
            };
            let expected = if is_replaced { Err(ErrorKind::Conflict) } else { Ok(()) };
            assert_eq!(done.map_err(|e| e.kind()), expected, "{text:?}");
            let next = log.join(format!("{:020}.json", table.version + 1));
            assert_eq!(next.exists(), !is_replaced, "{text:?}");
        }
    }
}
