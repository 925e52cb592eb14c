//! OPTIMIZE and REORG without trouble.

use std::collections::BTreeSet;

use lakesmith::op::{AlterProperties, Operation, OptimizeOptions, ReorgOptions};
use lakesmith::{Cancel, ErrorKind, Session, SessionOptions};
use lakesmith_testkit::TableBuilder;
use parquet::file::reader::FileReader as _;

use crate::tables::{files, ids, on_disk, optimize, purge, run, session, small_files};

#[test]
fn optimise_packs_and_a_second_run_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let session = session();
    let report = run(&session, &table, optimize(&session)).unwrap();
    assert_eq!((report.metrics.num_files_removed, report.metrics.num_files_added, report.groups_done), (8, 1, 1));
    assert_eq!(report.version_after, Some(table.version + 1));
    assert_eq!(ids(&table), before);
    let again = run(&session, &table, optimize(&session)).unwrap();
    assert_eq!((again.committed, again.version_after), (false, None));
}

#[test]
fn a_purge_rewrites_only_what_holds_deleted_rows() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let session = session();
    let report = run(&session, &table, purge(&session)).unwrap();
    assert_eq!((report.metrics.num_files_removed, report.metrics.num_files_added), (4, 1));
    assert_eq!(ids(&table), before);
    assert!(files(&table).iter().all(|f| f.deletion_vector.is_none()));
    assert!(!run(&session, &table, purge(&session)).unwrap().committed);
}

#[test]
fn a_dry_run_leaves_the_folder_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let count = || std::fs::read_dir(&table.folder).unwrap().count();
    let before = count();
    let session = session();
    let mut options = session.optimize_options().unwrap();
    options.limits.dry_run = true;
    let report = run(&session, &table, Operation::Optimize(options)).unwrap();
    assert_eq!(report.planned.len(), 1);
    assert_eq!(report.planned[0].inputs.len(), 8);
    assert!(!report.committed);
    assert_eq!(count(), before);
}

#[test]
fn batches_are_commits_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let session = session();
    let mut options: OptimizeOptions = session.optimize_options().unwrap();
    options.sizes.target_bytes = table.files.iter().map(|f| f.size).max().unwrap() * 2;
    options.limits.commit_every_bytes = Some(1);
    let report = run(&session, &table, Operation::Optimize(options)).unwrap();
    assert!(report.metrics.num_batches > 1, "{report:?}");
    assert_eq!(report.version_after, Some(table.version + report.metrics.num_batches));
    assert_eq!(report.groups_done, report.metrics.num_batches);
    assert_eq!(ids(&table), before);
}

#[test]
fn a_file_whose_rows_are_all_deleted_leaves_without_a_successor() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<u64> = (0..50).collect();
    let table = TableBuilder::new(dir.path()).append(50, 1).delete_rows(0, &all).build().unwrap();
    let session = session();
    let report = run(&session, &table, purge(&session)).unwrap();
    assert_eq!((report.metrics.num_files_removed, report.metrics.num_files_added, report.committed), (1, 0, true));
    assert!(files(&table).is_empty());
}

#[test]
fn a_predicate_on_one_of_two_partition_columns_keeps_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = TableBuilder::new(dir.path()).partitioned_by(&["a", "b"]);
    for a in ["x y", "z%"] {
        for b in [Some("1"), None] {
            builder = builder.append_partition(&[Some(a), b], 20, 2);
        }
    }
    let table = builder.build().unwrap();
    let before = ids(&table);
    let session = session();
    let predicate = Some(session.parse_predicate("a = 'x y'").unwrap());
    let options = OptimizeOptions { predicate, ..session.optimize_options().unwrap() };
    let report = run(&session, &table, Operation::Optimize(options)).unwrap();
    assert_eq!((report.metrics.num_files_removed, report.metrics.num_files_added), (4, 2));
    let mut after: Vec<_> = files(&table).into_iter().map(|f| (f.partition_values, f.num_records)).collect();
    after.sort();
    let rows = |a: &str| {
        after
            .iter()
            .filter(|(p, _)| p["a"].as_deref() == Some(a))
            .map(|(p, n)| (p["b"].clone(), *n))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("x y"), vec![(None, Some(20)), (Some("1".into()), Some(20))]);
    assert_eq!(rows("z%").len(), 4);
    assert_eq!(before.values().sum::<u64>(), 80);
}

#[test]
fn cancelling_commits_nothing_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let listing = || {
        let mut names: Vec<_> = std::fs::read_dir(&table.folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = listing();
    let cancel = Cancel::default();
    cancel.cancel();
    let session = Session::new(SessionOptions { cancel, ..Default::default() }).unwrap();
    let error = run(&session, &table, purge(&session)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(listing(), before);
    assert_eq!(ids(&table).len(), 760);
}

#[test]
fn a_missing_data_file_is_named_and_nothing_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    std::fs::remove_file(table.folder.join(&table.files[3].path)).unwrap();
    let session = session();
    let error = run(&session, &table, optimize(&session)).unwrap_err();
    assert_eq!(error.class_name(), "FAILED_READ_FILE.FILE_NOT_EXIST");
    assert!(error.to_string().contains(&table.files[3].path), "{error}");
    assert!(!table.folder.join(format!("_delta_log/{:020}.json", table.version + 1)).exists());
}

#[test]
fn an_unknown_writer_feature_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).feature("fancyFutureThing").append(10, 2).build().unwrap();
    let session = session();
    let reorg = Operation::Reorg(ReorgOptions::default());
    for operation in [optimize(&session), reorg] {
        let error = run(&session, &table, operation).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("fancyFutureThing"), "{error}");
    }
}

#[test]
fn a_table_whose_commits_a_catalog_manages_is_refused_by_name() {
    let features = ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommits-preview"];
    for feature in features {
        let dir = tempfile::tempdir().unwrap();
        let table = TableBuilder::new(dir.path()).feature(feature).append(10, 2).build().unwrap();
        let session = session();
        let alter = AlterProperties { set: [("a".to_string(), "b".to_string())].into(), ..Default::default() };
        let operations = [
            optimize(&session),
            purge(&session),
            Operation::Checkpoint(Default::default()),
            Operation::AlterProperties(alter),
        ];
        for operation in operations {
            let name = operation.name();
            let error = session.run(&table.folder.to_string_lossy(), operation).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
            assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION", "{name}: {error}");
            assert!(error.to_string().contains(feature), "{name}: {error}");
        }
        assert_eq!(std::fs::read_dir(table.folder.join("_delta_log")).unwrap().count(), 2);
    }
}

/// The log of a table that a catalog manages, as its first published commit shows it.
#[test]
fn a_published_log_of_a_catalog_is_not_taken_for_a_broken_one() {
    let dir = tempfile::tempdir().unwrap();
    let commit = r#"{"commitInfo":{"timestamp":1,"inCommitTimestamp":1700000000000,"operation":"CREATE TABLE","operationParameters":{}}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogManaged"],"writerFeatures":["catalogManaged","inCommitTimestamp"]}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{"delta.enableInCommitTimestamps":"true"}}}"#;
    std::fs::create_dir(dir.path().join("_delta_log")).unwrap();
    std::fs::write(dir.path().join("_delta_log/00000000000000000000.json"), commit).unwrap();
    let session = session();
    let at = lakesmith::op::TimeTravel::Latest;
    for operation in
        [optimize(&session), purge(&session), Operation::Checkpoint(Default::default()), Operation::Detail(at)]
    {
        let name = operation.name();
        let error = session.run(&dir.path().to_string_lossy(), operation).unwrap_err();
        assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION", "{name}: {error}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn row_groups_are_as_large_as_asked_for() {
    let groups = |rows: Option<u64>| -> Vec<i64> {
        let dir = tempfile::tempdir().unwrap();
        let table = TableBuilder::new(dir.path()).append(20_000, 4).build().unwrap();
        let session = session();
        let mut options = session.optimize_options().unwrap();
        options.limits.row_group_rows = rows.unwrap_or(options.limits.row_group_rows);
        run(&session, &table, Operation::Optimize(options)).unwrap();
        let output = std::fs::File::open(on_disk(&table, &files(&table)[0].path)).unwrap();
        let reader = parquet::file::serialized_reader::SerializedFileReader::new(output).unwrap();
        reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect()
    };
    assert_eq!(groups(Some(8192)), [8192, 8192, 3616]);
    assert_eq!(groups(Some(7000)), [7000, 7000, 6000]);
    assert_eq!(groups(None), [20_000]);
}

#[test]
fn a_rewrite_that_the_disk_cannot_hold_is_refused_before_it_writes() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    for version in 0..=table.version {
        let log = table.folder.join(format!("_delta_log/{version:020}.json"));
        let lines = std::fs::read_to_string(&log).unwrap();
        let swollen = lines.lines().map(|line| {
            let mut action: serde_json::Value = serde_json::from_str(line).unwrap();
            if !action["add"]["deletionVector"].is_null() {
                action["add"]["size"] = (1u64 << 60).into();
            }
            action.to_string()
        });
        std::fs::write(&log, swollen.collect::<Vec<_>>().join("\n")).unwrap();
    }
    let listing = || std::fs::read_dir(&table.folder).unwrap().map(|e| e.unwrap().path()).collect::<BTreeSet<_>>();
    let before = listing();
    let session = session();
    let error = run(&session, &table, purge(&session)).unwrap_err();
    assert_eq!((error.class_name(), error.kind().exit_code()), ("INSUFFICIENT_DISK_SPACE", 3), "{error}");
    assert_eq!(error.context_value("needed_bytes"), Some((4u64 << 60).to_string().as_str()));
    assert_eq!(listing(), before);
}

#[test]
fn what_killed_runs_had_begun_to_write_goes_once_it_is_a_day_old() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let id = "0123456789abcdef0123456789abcdef";
    let day_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 3600);
    let make = |name: &str, old: bool| {
        let file = std::fs::File::create(table.folder.join(name)).unwrap();
        if old {
            file.set_modified(day_ago).unwrap();
        }
    };
    let old = [format!("_delta_log/.{id}.lakesmith-tmp"), format!(".{id}.lakesmith-tmp")];
    let kept = [
        format!("_delta_log/.{}.lakesmith-tmp", id.replace('0', "f")),
        "_delta_log/.mine.tmp".to_owned(),
        format!("elsewhere-{id}.lakesmith-tmp"),
    ];
    old.iter().for_each(|name| make(name, true));
    make(&kept[0], false);
    kept[1..].iter().for_each(|name| make(name, true));
    let session = session();
    assert!(run(&session, &table, optimize(&session)).unwrap().committed);
    let exists = |name: &String| table.folder.join(name).exists();
    assert!(old.iter().all(|name| !exists(name)) && kept.iter().all(exists));
}
