//! OPTIMIZE and REORG without trouble.

use lakesmith::op::{Operation, OptimizeOptions, ReorgOptions};
use lakesmith::{Cancel, ErrorKind, Session, SessionOptions};
use lakesmith_testkit::TableBuilder;

use crate::tables::{files, ids, optimize, purge, run, session, small_files};

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
    assert!(files(&table).0.iter().all(|f| f.deletion_vector.is_none()));
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
    assert!(files(&table).0.is_empty());
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
    let mut after: Vec<_> = files(&table).0.into_iter().map(|f| (f.partition_values, f.num_records)).collect();
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
