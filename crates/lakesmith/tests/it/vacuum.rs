//! What a vacuum takes and what it leaves.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lakesmith::ErrorKind;
use lakesmith::op::{CheckpointOptions, Operation, VacuumOptions};
use lakesmith_testkit::TableBuilder;

use crate::sweeping::{
    DAY, HOUR_MS, age, age_all, at_once, commit_info, dry, golden, kept, on_disk, paths, set_time, stray, vacuum,
    vacuum_in,
};
use crate::tables::{files, ids, on_disk as place, optimize, purge, run, session, small_files};

fn expected(list: &str) -> Vec<String> {
    let text = include_str!("../../../../fixtures/delta/orphans.expected.json");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    json[list].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_orphans_are_the_ones_that_spark_finds() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let report = vacuum(&table, dry(VacuumOptions::default())).unwrap();
    assert_eq!(paths(&report), expected("vacuum_dry_run_default"));
    assert_eq!(kept(&report), ["orphan-young.parquet: too_young"]);
    assert_eq!(report.directories, 6);
    // Nobody said that nobody is writing.
    let careful = VacuumOptions { no_writers: false, ..at_once() };
    assert_eq!(paths(&vacuum(&table, dry(careful)).unwrap()), expected("vacuum_dry_run_default"));
    let report = vacuum(&table, dry(at_once())).unwrap();
    assert_eq!(paths(&report), expected("vacuum_dry_run_0h"));
    assert!(report.version_after.is_none());

    let before = on_disk(&table);
    let done = vacuum(&table, at_once()).unwrap();
    assert_eq!((paths(&done), done.bytes), (expected("vacuum_dry_run_0h"), report.bytes));
    assert_eq!(done.sentence(), "Deleted 7 files and directories in a total of 6 directories.");
    let gone: Vec<String> = before.difference(&on_disk(&table)).cloned().collect();
    assert_eq!(gone.len(), 6, "{gone:?}");
    assert!(!table.join("emptydir").exists() && table.join("k=1").exists());
    // Folders that became empty go with the next vacuum.
    let next = vacuum(&table, at_once()).unwrap();
    assert_eq!(paths(&next), ["_change_data", "_delta_index", "k=1", "sub dir"]);
    assert_eq!(paths(&vacuum(&table, at_once()).unwrap()), Vec::<String>::new());
    assert!(table.join("_hidden-old.parquet").exists() && table.join("_hiddendir/x-old.parquet").exists());
}

#[test]
fn a_retention_below_the_tables_needs_the_check_off() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let error = vacuum(&table, VacuumOptions { retain_ms: Some(0), ..VacuumOptions::default() }).unwrap_err();
    assert_eq!((error.class_name(), error.kind()), ("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", ErrorKind::Retention));
    let negative = VacuumOptions { retain_ms: Some(-HOUR_MS), ..at_once() };
    assert_eq!(vacuum(&table, negative).unwrap_err().class_name(), "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE");
    assert!(!table.join("_delta_log/00000000000000000003.json").exists());
}

#[test]
fn live_deletion_vectors_stay_however_old_they_are() {
    for name in ["dv_file", "dv_random_prefix", "dv_inline"] {
        let dir = tempfile::tempdir().unwrap();
        let table = golden(name, dir.path());
        age_all(&table, 60 * DAY);
        let before = on_disk(&table);
        let report = vacuum(&table, at_once()).unwrap();
        let gone: Vec<String> = before.difference(&on_disk(&table)).cloned().collect();
        // The table opens, and a purge reads every live file through its vector.
        let session = session();
        let options = session.reorg_options().unwrap();
        session.run(table.to_str().unwrap(), Operation::Reorg(options)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut listed = paths(&report);
        listed.retain(|path| before.contains(path));
        assert_eq!(listed, gone, "{name}");
    }
}

#[test]
fn live_files_named_by_absolute_paths_stay() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a table");
    let table = TableBuilder::new(&folder).append(20, 2).build().unwrap();
    let alias = dir.path().join("alias");
    std::os::unix::fs::symlink(&folder, &alias).unwrap();
    let log = folder.join("_delta_log/00000000000000000001.json");
    let uri = |root: &std::path::Path, file: usize| {
        format!("file://{}/{}", root.to_str().unwrap().replace(' ', "%20"), table.files[file].path)
    };
    let text = fs::read_to_string(&log).unwrap();
    let text = text.replace(&table.files[0].path, &uri(&folder, 0)).replace(&table.files[1].path, &uri(&alias, 1));
    fs::write(&log, text).unwrap();
    age_all(&folder, 60 * DAY);
    stray(&folder, "old.parquet", 60 * DAY);
    let report = vacuum(&folder, at_once()).unwrap();
    assert_eq!(paths(&report), ["old.parquet"]);
    assert_eq!(kept(&report), [format!("{}: referenced_elsewhere", table.files[1].path)]);
    assert!(table.files.iter().all(|f| folder.join(&f.path).exists()));
}

#[test]
fn paths_that_leave_the_root_are_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let table = TableBuilder::new(&folder).append(20, 2).remove_file(0).build().unwrap();
    let outside = dir.path().join("outside.parquet");
    fs::write(&outside, b"another's").unwrap();
    age(&outside, 60 * DAY);
    let log = folder.join("_delta_log/00000000000000000002.json");
    for spelling in ["../outside.parquet".to_owned(), format!("file://{}", outside.display())] {
        let text = format!("{{\"remove\":{{\"path\":\"{spelling}\",\"deletionTimestamp\":1,\"dataChange\":true}}}}\n");
        fs::write(&log, text).unwrap();
        for options in [at_once(), VacuumOptions { mode: lakesmith::op::VacuumMode::Lite, ..at_once() }] {
            vacuum(&folder, options).unwrap();
            assert!(outside.exists(), "{spelling}");
        }
    }
    assert_eq!(table.files.len(), 2);
}

#[test]
fn an_old_file_removed_lately_stays_for_time_travel() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    age_all(&table.folder, 30 * DAY);
    let report = vacuum(&table.folder, VacuumOptions::default()).unwrap();
    let kept = kept(&report);
    for file in &table.files {
        assert!(table.folder.join(&file.path).exists());
        assert!(kept.contains(&format!("{}: within_retention", file.path)), "{kept:?}");
    }
    // And the other way round: removed long ago, however young the copy on disk is.
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(20, 2).remove_file(0).build().unwrap();
    assert_eq!(paths(&vacuum(&table.folder, VacuumOptions::default()).unwrap()), [table.files[0].path.clone()]);
}

#[test]
fn a_file_that_a_writer_has_not_committed_yet_stays() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(20, 1).build().unwrap();
    let young = stray(&table.folder, "part-of-a-running-write.parquet", Duration::from_secs(23 * 3600));
    let old = stray(&table.folder, "part-of-a-failed-write.parquet", Duration::from_secs(25 * 3600));
    let careful = VacuumOptions { no_writers: false, ..at_once() };
    vacuum(&table.folder, careful).unwrap();
    assert!(young.exists() && !old.exists());
    vacuum(&table.folder, at_once()).unwrap();
    assert!(!young.exists());
}

#[test]
fn tables_inside_the_table_are_not_entered() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    TableBuilder::new(&folder).append(20, 1).build().unwrap();
    let inner = TableBuilder::new(folder.join("a/inner")).append(20, 1).build().unwrap();
    for path in [
        "ice/metadata/v1.metadata.json",
        "ice/data/f.parquet",
        "metadata/v3.metadata.json",
        "metadata/snap.avro",
        "z.parquet",
    ] {
        stray(&folder, path, 60 * DAY);
    }
    fs::create_dir(folder.join("a/inner/empty")).unwrap();
    age_all(&folder, 60 * DAY);
    let report = vacuum(&folder, at_once()).unwrap();
    assert_eq!(paths(&report), ["z.parquet"]);
    assert_eq!(kept(&report), ["a/inner: foreign_table", "ice: foreign_table", "metadata: iceberg_metadata"]);
    assert!(inner.files.iter().all(|f| inner.folder.join(&f.path).exists()));
    assert!(folder.join("metadata/snap.avro").exists() && folder.join("a/inner/empty").exists());
}

#[test]
fn odd_partitions_are_swept_and_really_gone() {
    let values = ["a b", "a/b", "100%", "x=y", "ü", "2026-01-01 00:00:00", "{}|`^"];
    let dir = tempfile::tempdir().unwrap();
    let mut builder = TableBuilder::new(dir.path()).partitioned_by(&["_p"]);
    for value in values.map(Some).into_iter().chain([None]) {
        builder = builder.append_partition(&[value], 10, 2);
    }
    let table = (0..16).step_by(2).fold(builder, TableBuilder::remove_file).build().unwrap();
    let report = vacuum(&table.folder, VacuumOptions::default()).unwrap();
    assert_eq!(report.files.len(), 8);
    for file in &table.files {
        assert_eq!(table.folder.join(&file.path).exists(), file.live, "{}", file.path);
    }
    assert_eq!(ids(&table).len(), 40);
}

#[test]
fn files_under_the_null_partition_are_files_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path())
        .partitioned_by(&["p"])
        .append_partition(&[None], 10, 1)
        .append_partition(&[Some("1")], 10, 1)
        .remove_file(0)
        .build()
        .unwrap();
    assert_eq!(paths(&vacuum(&table.folder, VacuumOptions::default()).unwrap()), [table.files[0].path.clone()]);
}

#[test]
fn files_of_a_replaced_schema_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("colmap_name", dir.path());
    age_all(&table, 60 * DAY);
    let live: Vec<String> = {
        let report = session().run(table.to_str().unwrap(), Operation::Files(Default::default())).unwrap();
        let lakesmith::op::Report::Files(files) = report else { panic!() };
        files.iter().map(|f| f.path).collect()
    };
    stray(&table, "zz/part-old.parquet", 60 * DAY);
    vacuum(&table, at_once()).unwrap();
    let left: Vec<String> = on_disk(&table).into_iter().collect();
    assert!(live.iter().all(|path| left.contains(path)), "{live:?} {left:?}");
    assert!(!left.contains(&"zz/part-old.parquet".to_owned()));
}

#[test]
fn changed_rows_follow_the_retention() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("cdf", dir.path());
    let changes: Vec<String> = on_disk(&table).into_iter().filter(|p| p.starts_with("_change_data/")).collect();
    assert!(!changes.is_empty());
    vacuum(&table, VacuumOptions::default()).unwrap();
    assert!(changes.iter().all(|path| table.join(path).exists()));
    age_all(&table, 8 * DAY);
    let report = vacuum(&table, VacuumOptions::default()).unwrap();
    assert!(changes.iter().all(|path| !table.join(path).exists() && paths(&report).contains(path)));
}

#[test]
fn files_without_a_known_time_stay() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(20, 1).build().unwrap();
    let file = stray(&table.folder, "timeless.parquet", DAY);
    set_time(&file, SystemTime::UNIX_EPOCH);
    let report = vacuum(&table.folder, at_once()).unwrap();
    assert_eq!(kept(&report), ["timeless.parquet: no_modification_time"]);
    assert!(file.exists());
}

#[test]
fn managed_and_unknown_tables_are_refused() {
    for (feature, class) in [
        ("catalogManaged", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("fancyFutureThing", "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let table = TableBuilder::new(dir.path()).feature(feature).append(20, 1).build().unwrap();
        let file = stray(&table.folder, "old.parquet", 60 * DAY);
        for options in [at_once(), dry(at_once())] {
            let error = vacuum(&table.folder, options).unwrap_err();
            assert_eq!((error.class_name(), error.kind()), (class, ErrorKind::Unsupported));
        }
        assert!(file.exists());
    }
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).feature("vacuumProtocolCheck").append(20, 1).build().unwrap();
    assert!(vacuum(&table.folder, VacuumOptions::default()).is_ok());
}

#[test]
fn a_vacuum_right_after_a_compaction_commits_on_top_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    let before = ids(&table);
    run(&session, &table, purge(&session)).unwrap();
    let compacted = run(&session, &table, optimize(&session)).unwrap();
    let last = compacted.version_after.unwrap_or(compacted.version_before);
    let report = vacuum_in(&session, &table.folder, at_once()).unwrap();
    assert_eq!(report.version_after, Some(last + 2));
    assert_eq!(ids(&table), before);
    let live: Vec<_> = files(&table).iter().map(|f| place(&table, &f.path)).collect();
    assert_eq!(on_disk(&table.folder).len(), live.len());
    let (start, end) = (commit_info(&table.folder, last + 1), commit_info(&table.folder, last + 2));
    let deleted = report.files.len().to_string();
    assert_eq!(start["operation"], "VACUUM START");
    assert_eq!(
        start["operationParameters"],
        serde_json::json!({"retentionCheckEnabled": false, "defaultRetentionMillis": 604_800_000, "specifiedRetentionMillis": 0})
    );
    assert_eq!(
        start["operationMetrics"],
        serde_json::json!({"numFilesToDelete": deleted, "sizeOfDataToDelete": report.bytes.to_string()})
    );
    assert_eq!((&end["operation"], &end["readVersion"]), (&"VACUUM END".into(), &(last + 1).into()));
    assert_eq!(end["operationParameters"], serde_json::json!({"status": "COMPLETED"}));
    assert_eq!(end["operationMetrics"], serde_json::json!({"numDeletedFiles": deleted, "numVacuumedDirectories": "1"}));
    assert_eq!((&end["isBlindAppend"], &end["isolationLevel"]), (&true.into(), &"SnapshotIsolation".into()));
}

#[test]
fn a_clock_that_is_ahead_of_the_storages_makes_no_file_old() {
    let root = "memory://skewed-clock/t";
    let location = lakesmith::Location::parse(root).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let built = TableBuilder::new(dir.path()).append(20, 1).build().unwrap();
    let store = lakesmith::Store::open(&location, &lakesmith::StoreOptions::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let put = |path: &str, bytes: Vec<u8>| runtime.block_on(store.put(&location.join(path), bytes.into())).unwrap();
    for version in 0..=built.version {
        let path = format!("_delta_log/{version:020}.json");
        put(&path, fs::read(built.folder.join(&path)).unwrap());
    }
    put(&built.files[0].path, vec![1]);
    put("about-to-be-committed.parquet", vec![1]);
    let month_ahead = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + 30 * DAY;
    let world = std::sync::Arc::new(lakesmith::FixedWorld::new(month_ahead.as_millis() as u64));
    let session = lakesmith::Session::new(lakesmith::SessionOptions { world, ..Default::default() }).unwrap();
    let lakesmith::op::Report::Vacuum(report) = session.run(root, Operation::Vacuum(VacuumOptions::default())).unwrap()
    else {
        panic!()
    };
    assert_eq!((paths(&report), kept(&report)), (vec![], vec!["about-to-be-committed.parquet: too_young".to_owned()]));
}

#[cfg(unix)]
#[test]
fn what_links_in_the_table_lead_to_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    std::fs::create_dir_all(table.join("real")).unwrap();
    std::fs::create_dir_all(table.join("inner/elsewhere")).unwrap();
    for file in ["real/part-0.parquet", "target.parquet", "inner/part-0.parquet", "plain-old.parquet"] {
        std::fs::write(table.join(file), "x").unwrap();
        age(&table.join(file), 60 * DAY);
    }
    std::os::unix::fs::symlink(table.join("real"), table.join("link")).unwrap();
    std::os::unix::fs::symlink(table.join("target.parquet"), table.join("_link.parquet")).unwrap();
    // The log of a table inside is a link.
    std::os::unix::fs::symlink(table.join("inner/elsewhere"), table.join("inner/_delta_log")).unwrap();
    vacuum(&table, at_once()).unwrap();
    for file in ["real/part-0.parquet", "target.parquet", "inner/part-0.parquet"] {
        assert!(table.join(file).exists(), "{file}");
    }
    assert!(!table.join("plain-old.parquet").exists());
}

#[test]
fn a_log_that_seems_to_lack_commits_is_not_vacuumed() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    let log = table.join("_delta_log");
    let damage: [(&str, &str, &str); 3] = [
        ("00000000000000000003.json", "", "empty"),
        ("_last_checkpoint", r#"{"version":9,"size":1}"#, "version 9"),
        ("00000000000000000002.crc", r#"{"numFiles":1234}"#, "1234 files"),
    ];
    for (name, text, says) in damage {
        let before = std::fs::read(log.join(name)).ok();
        std::fs::write(log.join(name), text).unwrap();
        let left = on_disk(&table);
        let error = vacuum(&table, at_once()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
        assert!(error.to_string().contains(says), "{name}: {error}");
        assert_eq!(on_disk(&table), left, "{name}");
        match before {
            Some(bytes) => std::fs::write(log.join(name), bytes).unwrap(),
            None => std::fs::remove_file(log.join(name)).unwrap(),
        }
    }
    vacuum(&table, at_once()).unwrap();
}

#[test]
fn a_checkpoint_does_not_take_away_the_sign_of_lost_commits() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    fs::write(table.join("_delta_log/_last_checkpoint"), r#"{"version":9,"size":1}"#).unwrap();
    let left = on_disk(&table);
    for (dry_run, clean_log) in [(true, false), (false, false), (true, true), (false, true)] {
        let options = CheckpointOptions { dry_run, clean_log };
        let error = session().run(&table.to_string_lossy(), Operation::Checkpoint(options)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(vacuum(&table, at_once()).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(on_disk(&table), left);
    }
}

/// Commits an old file once the deletion begins.
struct Recommit {
    table: std::path::PathBuf,
    version: u64,
}

impl lakesmith::Progress for Recommit {
    fn begin(&self, phase: &str, _total_bytes: u64) {
        if phase == "deleting" {
            let add = serde_json::json!({"add": {"path": "orphan-old.parquet", "partitionValues": {}, "size": 1,
                "modificationTime": 1, "dataChange": true}});
            let commit = self.table.join(format!("_delta_log/{:020}.json", self.version));
            fs::write(commit, format!("{add}\n")).unwrap();
        }
    }

    fn advance(&self, _bytes: u64, _rows: u64) {}

    fn end(&self) {}
}

#[test]
fn a_file_that_is_committed_again_while_deleting_stays() {
    let dir = tempfile::tempdir().unwrap();
    let table = golden("orphans", dir.path());
    // Versions 0 to 2 are there, and VACUUM START is the third.
    let progress = std::sync::Arc::new(Recommit { table: table.clone(), version: 4 });
    let session = lakesmith::Session::new(lakesmith::SessionOptions { progress, ..Default::default() }).unwrap();
    let report = vacuum_in(&session, &table, at_once()).unwrap();
    assert!(report.files.len() >= 5 && table.join("orphan-old.parquet").exists());
    assert!(!paths(&report).contains(&"orphan-old.parquet".to_owned()));
}

/// Lets another one interfere when a phase begins.
struct AtPhase(&'static str, crate::conflicts::Interfere);

impl lakesmith::Progress for AtPhase {
    fn begin(&self, phase: &str, total_bytes: u64) {
        if phase == self.0 {
            self.1.begin(phase, total_bytes);
        }
    }

    fn advance(&self, _bytes: u64, _rows: u64) {}

    fn end(&self) {}
}

#[test]
fn a_table_that_came_in_the_place_of_another_loses_no_file() {
    for (logging, phase) in [(false, "listing"), (false, "deleting"), (true, "deleting")] {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let builder = TableBuilder::new(dir.path().join("t")).append(50, 2);
        let old = builder.remove_file(0).remove_file(1).build().unwrap();
        // The new table's live files lie where the old one has files that it removed.
        let commits = 3 + u64::from(logging);
        let new = (0..commits).fold(TableBuilder::new(other.path().join("t")), |b, _| b.append(7, 1)).build().unwrap();
        let live: Vec<PathBuf> = new.files.iter().map(|file| old.folder.join(&file.path)).collect();
        for (path, file) in live.iter().zip(&new.files) {
            fs::copy(new.folder.join(&file.path), path).unwrap();
        }
        age_all(&old.folder, 60 * DAY);
        let (folder, place) = (old.folder.clone(), other.path().join("t"));
        let deed = move || {
            crate::conflicts::replace_log(&folder, &place);
            age_all(&folder, 30 * DAY);
        };
        let progress = std::sync::Arc::new(AtPhase(phase, crate::conflicts::Interfere::doing(deed)));
        let options = lakesmith::SessionOptions { progress, ..Default::default() };
        let session = lakesmith::Session::new(options).unwrap();
        let error =
            vacuum_in(&session, &old.folder, VacuumOptions { logging: Some(logging), ..at_once() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(live.iter().all(|path| path.exists()), "{logging} {phase}");
    }
}

#[test]
fn a_retention_beyond_the_tables_own_reaches_what_checkpoints_forgot() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path())
        .property("delta.deletedFileRetentionDuration", "interval 0 hours")
        .append(20, 2)
        .remove_file(0)
        .build()
        .unwrap();
    let folder = table.folder.clone();
    age_all(&folder, 60 * DAY);
    session().run(folder.to_str().unwrap(), Operation::Checkpoint(Default::default())).unwrap();
    let gone = place(&table, &table.files[0].path);
    // The commit that removed it was made now.
    let long = VacuumOptions { retain_ms: Some(720 * HOUR_MS), ..VacuumOptions::default() };
    assert_eq!(paths(&vacuum(&folder, dry(long.clone())).unwrap()), Vec::<String>::new());
    vacuum(&folder, long).unwrap();
    assert!(gone.exists());
    vacuum(&folder, at_once()).unwrap();
    assert!(!gone.exists());
}

#[test]
fn a_name_that_was_not_encoded_is_protected_however_it_is_spelled() {
    for spelling in
        ["./p=%41/live.parquet", "p=%41//live.parquet", "file:ROOT/p=%41/live.parquet", "ROOT/p=%41/live.parquet"]
    {
        let dir = tempfile::tempdir().unwrap();
        let table = golden("orphans", dir.path());
        stray(&table, "p=%41/live.parquet", 60 * DAY);
        let path = spelling.replace("ROOT", table.to_str().unwrap());
        let add = serde_json::json!({"add": {"path": path, "partitionValues": {}, "size": 5, "modificationTime": 1,
            "dataChange": true}});
        fs::write(table.join("_delta_log/00000000000000000003.json"), format!("{add}\n")).unwrap();
        vacuum(&table, at_once()).unwrap();
        assert!(table.join("p=%41/live.parquet").exists(), "{spelling}");
    }
}
