//! Rows in an order, under faults, cancelling, want of space and other writers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use lakesmith::layout::Curve;
use lakesmith::op::{Operation, OptimizeOptions, OrderBy};
use lakesmith::{Cancel, ErrorKind, Progress, Session, SessionOptions};
use lakesmith_testkit::{BuiltTable, Fault, FaultKind, FaultStore, TableBuilder};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::conflicts::Interfere;
use crate::fault_sweep::{KINDS, step};
use crate::sweeping::on_disk as everything;
use crate::tables::{files, ids, on_disk, run, session, session_on, small_files};
use crate::vectors::{Deleter, vector_files};

/// Bytes of a file that make some three of the small table.
const TARGET: u64 = 3_000;

/// Sorted by the names, whose order is another one than that of the files, into several files.
fn sorting(session: &Session) -> OptimizeOptions {
    ordering(session, Curve::Sort, &["name"])
}

fn ordering(session: &Session, curve: Curve, columns: &[&str]) -> OptimizeOptions {
    let mut options = session.optimize_options().unwrap();
    options.order_by = Some(OrderBy { curve, columns: columns.iter().map(|c| vec![(*c).to_string()]).collect() });
    options.sizes.target_bytes = TARGET;
    options.limits.verify = true;
    options
}

fn sort(session: &Session) -> Operation {
    Operation::Optimize(sorting(session))
}

fn hilbert(session: &Session) -> Operation {
    Operation::Optimize(ordering(session, Curve::Hilbert, &["name", "id"]))
}

/// What the table asks for by itself.
fn cluster(session: &Session) -> Operation {
    let mut options = session.optimize_options().unwrap();
    options.sizes.target_bytes = TARGET;
    Operation::Optimize(options)
}

/// [`small_files`], clustered by the names.
fn clustered(folder: &Path) -> BuiltTable {
    let every_tenth: Vec<u64> = (0..100).step_by(10).collect();
    let builder = TableBuilder::new(folder).feature("clustering").feature("domainMetadata");
    let builder = builder.append(300, 3).append(300, 3).append(200, 2);
    let mut table =
        [0, 2, 4, 7].into_iter().fold(builder, |b, file| b.delete_rows(file, &every_tenth)).build().unwrap();
    table.version += 1;
    let keys = r#"{"clusteringColumns":[["name"]],"domainName":"delta.clustering"}"#;
    let domain =
        serde_json::json!({"domainMetadata": {"domain": "delta.clustering", "configuration": keys, "removed": false}});
    let commit = format!("{{\"commitInfo\":{{\"timestamp\":1704070000000,\"operation\":\"CLUSTER BY\"}}}}\n{domain}\n");
    std::fs::write(table.folder.join(format!("_delta_log/{:020}.json", table.version)), commit).unwrap();
    table
}

/// So many rows that the least memory does not hold them.
fn long_table(folder: &Path) -> BuiltTable {
    TableBuilder::new(folder).append(60_000, 2).append(60_000, 2).delete_rows(1, &[0, 7, 20_000]).build().unwrap()
}

/// Sorts with the least memory, so that rows are spilled to `folder`.
fn spilling(session: &Session, folder: &Path) -> OptimizeOptions {
    let mut options = sorting(session);
    options.sizes.target_bytes = 200 << 10;
    options.limits.memory_bytes = 1;
    options.limits.threads = 2;
    options.limits.spill_folder = Some(folder.to_owned());
    options
}

/// Asserts that each file is in the order of the names, and that the files follow each other, by what is in them and by
/// what the log says of them.
fn assert_sorted(table: &BuiltTable) {
    let mut found: Vec<Vec<String>> = files(table).iter().map(|file| names(&on_disk(table, &file.path))).collect();
    found.sort();
    let all: Vec<String> = found.concat();
    assert!(all.is_sorted());
    let mut bounds = live_bounds(table);
    bounds.sort();
    let ends = |names: &Vec<String>| (names[0].clone(), names[names.len() - 1].clone());
    assert_eq!(bounds, found.iter().map(ends).collect::<Vec<_>>());
}

fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let column = batch.column_by_name("name").unwrap().as_string::<i32>();
        names.extend(column.iter().map(|name| name.unwrap().to_owned()));
    }
    names
}

/// Smallest and largest name of each live file, as the log has them.
fn live_bounds(table: &BuiltTable) -> Vec<(String, String)> {
    let mut live = BTreeMap::new();
    for version in 0.. {
        let Ok(text) = std::fs::read_to_string(table.folder.join(format!("_delta_log/{version:020}.json"))) else {
            break;
        };
        for line in text.lines() {
            let action: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(path) = action["remove"]["path"].as_str() {
                live.remove(path);
            }
            if let Some(path) = action["add"]["path"].as_str() {
                let stats: serde_json::Value = serde_json::from_str(action["add"]["stats"].as_str().unwrap()).unwrap();
                let bound = |which: &str| stats[which]["name"].as_str().unwrap().to_owned();
                live.insert(path.to_owned(), (bound("minValues"), bound("maxValues")));
            }
        }
    }
    live.into_values().collect()
}

/// Everything below the table but its log, and the log's commits.
fn listing(table: &BuiltTable) -> BTreeSet<String> {
    let commits = std::fs::read_dir(table.folder.join("_delta_log")).unwrap();
    let commits = commits.map(|e| format!("_delta_log/{}", e.unwrap().file_name().to_str().unwrap()));
    everything(&table.folder).into_iter().chain(commits).collect()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn sorted_files_follow_each_other_and_a_second_run_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let session = session();
    let report = run(&session, &table, sort(&session)).unwrap();
    assert!(report.metrics.num_files_added >= 3, "{report:?}");
    assert_eq!(ids(&table), before);
    assert_sorted(&table);
    assert!(!run(&session, &table, sort(&session)).unwrap().committed);
}

fn sweep(build: fn(&Path) -> BuiltTable, operation: fn(&Session) -> Operation) {
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let table = build(dir.path());
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        let session = session_on(store);
        run(&session, &table, operation(&session)).unwrap();
        faulty.requests()
    };
    assert!(requests > 10, "{requests}");
    for (offset, kind) in KINDS.into_iter().enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let fault = Fault { at_request, kind };
            let dir = tempfile::tempdir().unwrap();
            let table = build(dir.path());
            let before = ids(&table);
            let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
            let faulty = session_on(store);
            let outcome = run(&faulty, &table, operation(&faulty));
            for file in files(&table) {
                assert!(on_disk(&table, &file.path).exists(), "{fault:?} lost {}", file.path);
            }
            assert_eq!(ids(&table), before, "{fault:?}: {outcome:?}");
            let healthy = session();
            run(&healthy, &table, operation(&healthy)).unwrap();
            assert_eq!(ids(&table), before, "{fault:?}");
            let again = run(&healthy, &table, operation(&healthy)).unwrap();
            assert!(!again.committed, "{fault:?} does not converge");
        }
    }
}

#[test]
fn sorting_survives_a_fault_at_every_request() {
    sweep(small_files, sort);
}

#[test]
fn a_curve_survives_a_fault_at_every_request() {
    sweep(small_files, hilbert);
}

#[test]
fn clustering_survives_a_fault_at_every_request() {
    sweep(clustered, cluster);
}

#[test]
fn spilled_rows_survive_faults_and_leave_nothing_behind() {
    let spill = tempfile::tempdir().unwrap();
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let table = long_table(dir.path());
        let before = ids(&table);
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        let session = session_on(store);
        let report = run(&session, &table, Operation::Optimize(spilling(&session, spill.path()))).unwrap();
        assert!(report.bytes_spilled > 0 && report.metrics.num_files_added > 1, "{report:?}");
        assert!(is_empty(spill.path()));
        assert_eq!(ids(&table), before);
        assert_sorted(&table);
        faulty.requests()
    };
    let dir = tempfile::tempdir().unwrap();
    let table = long_table(dir.path());
    let (before, inputs) = (ids(&table), listing(&table));
    for at_request in (0..requests).step_by(step() * 3) {
        let fault = Fault { at_request, kind: FaultKind::FailBefore };
        let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
        let faulty = session_on(store);
        let outcome = run(&faulty, &table, Operation::Optimize(spilling(&faulty, spill.path())));
        assert!(is_empty(spill.path()), "{fault:?}");
        assert_eq!(ids(&table), before, "{fault:?}: {outcome:?}");
        if outcome.is_ok() {
            break;
        }
        // What could not be removed since the storage failed is the only thing that may be left.
        assert!(listing(&table).is_superset(&inputs), "{fault:?}");
    }
    let healthy = session();
    run(&healthy, &table, Operation::Optimize(spilling(&healthy, spill.path()))).unwrap();
    assert_eq!(ids(&table), before);
    assert_sorted(&table);
}

/// Cancels at a call that tells of progress, counted from 0.
struct Impatient {
    cancel: Cancel,
    at: u64,
    calls: AtomicU64,
}

impl Impatient {
    fn count(&self) {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at {
            self.cancel.cancel();
        }
    }
}

impl Progress for Impatient {
    fn begin(&self, _phase: &str, _total_bytes: u64) {
        self.count();
    }

    fn advance(&self, _bytes: u64, _rows: u64) {
        self.count();
    }

    fn end(&self) {
        self.count();
    }
}

/// Runs and cancels at a call of progress: true if the run was stopped.
fn cancelled_at(table: &BuiltTable, at: u64, spill: &Path) -> bool {
    let (before, inputs) = (ids(table), listing(table));
    let cancel = Cancel::default();
    let progress = Arc::new(Impatient { cancel: cancel.clone(), at, calls: AtomicU64::new(0) });
    let session = Session::new(SessionOptions { cancel, progress, ..Default::default() }).unwrap();
    let outcome = run(&session, table, Operation::Optimize(spilling(&session, spill)));
    assert!(is_empty(spill), "call {at}");
    assert_eq!(ids(table), before, "call {at}");
    match outcome {
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "call {at}: {error}");
            assert_eq!(listing(table), inputs, "call {at}");
            true
        }
        Ok(report) => {
            assert!(report.committed, "call {at}");
            false
        }
    }
}

#[test]
fn cancelling_in_any_phase_commits_nothing_and_leaves_no_file() {
    let (dir, spill) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let table = long_table(dir.path());
    let stopped = (0..).step_by(step()).take_while(|at| cancelled_at(&table, *at, spill.path())).count();
    assert!(stopped > 3, "{stopped}");
    assert_sorted(&table);
}

#[test]
fn cancelling_at_any_request_leaves_the_old_table_or_the_new_one() {
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        let session = session_on(store);
        run(&session, &table, hilbert(&session)).unwrap();
        faulty.requests()
    };
    for at_request in (0..requests).step_by(step()) {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let (before, inputs) = (ids(&table), listing(&table));
        let (faulty, store) =
            FaultStore::open(&table.root, vec![Fault { at_request, kind: FaultKind::Slow(20) }]).unwrap();
        let cancel = Cancel::default();
        let opener: lakesmith::StoreOpener = Arc::new(move |_| Ok(store.clone()));
        let options = SessionOptions { store: Some(opener), cancel: cancel.clone(), ..Default::default() };
        let session = Session::new(options).unwrap();
        let over = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while faulty.requests() <= at_request && !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                cancel.cancel();
            });
            let outcome = run(&session, &table, hilbert(&session));
            over.store(true, Ordering::SeqCst);
            outcome
        });
        assert_eq!(ids(&table), before, "request {at_request}");
        match outcome {
            Ok(report) => assert!(report.committed, "request {at_request}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "request {at_request}: {error}");
                assert_eq!(listing(&table), inputs, "request {at_request}");
            }
        }
        let healthy = crate::tables::session();
        run(&healthy, &table, hilbert(&healthy)).unwrap();
        assert!(!run(&healthy, &table, hilbert(&healthy)).unwrap().committed, "request {at_request}");
    }
}

#[test]
fn a_folder_that_takes_no_spill_commits_nothing_and_leaves_no_file() {
    let (dir, spill) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let table = long_table(dir.path());
    let inputs = listing(&table);
    let file = spill.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    for folder in [spill.path().join("absent"), file.clone()] {
        let session = session();
        let error = run(&session, &table, Operation::Optimize(spilling(&session, &folder))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(error.context_value("folder"), folder.to_str(), "{error}");
        assert!(error.message().contains("--spill-dir"), "{error}");
        assert_eq!(listing(&table), inputs);
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "not a folder");
}

#[test]
fn rows_larger_than_the_memory_of_a_thread_are_ordered() {
    let dir = tempfile::tempdir().unwrap();
    let name = |i: i64| format!("{:02}{}", i * 7 % 12, "x".repeat(3 << 20));
    let mut builder = TableBuilder::new(dir.path());
    for from in [0i64, 6] {
        let ids: arrow::array::ArrayRef = Arc::new(arrow::array::Int64Array::from_iter_values(from..from + 6));
        let names = arrow::array::StringArray::from_iter_values((from..from + 6).map(name));
        let columns = [("id", ids, true), ("name", Arc::new(names) as _, true)];
        builder = builder.append_batch(&[], arrow::array::RecordBatch::try_from_iter_with_nullable(columns).unwrap());
    }
    let table = builder.build().unwrap();
    let before = ids(&table);
    let (session, spill) = (session(), tempfile::tempdir().unwrap());
    let report = run(&session, &table, Operation::Optimize(spilling(&session, spill.path()))).unwrap();
    assert!(report.bytes_spilled > 0, "{report:?}");
    assert_eq!(ids(&table), before);
    let mut found: Vec<Vec<String>> = files(&table).iter().map(|file| names(&on_disk(&table, &file.path))).collect();
    found.sort();
    assert!(found.concat().is_sorted());
    assert!(is_empty(spill.path()));
}

#[test]
fn an_append_meanwhile_is_carried_over_and_the_next_run_takes_it_in() {
    for (build, operation) in
        [(small_files as fn(&Path) -> BuiltTable, sort as fn(&Session) -> Operation), (clustered, cluster)]
    {
        let (dir, spare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let table = build(dir.path());
        let other = TableBuilder::new(spare.path()).append(5, 1).build().unwrap();
        std::fs::copy(other.folder.join(&other.files[0].path), table.folder.join("appended.parquet")).unwrap();
        let add = serde_json::json!({"add": {"path": "appended.parquet", "partitionValues": {}, "size": other.files[0].size,
            "modificationTime": 1, "dataChange": true,
            "stats": r#"{"numRecords":5,"minValues":{"name":"row-0"},"maxValues":{"name":"row-4"}}"#}});
        let mut expected = ids(&table);
        (0..5).for_each(|id| *expected.entry(id).or_insert(0) += 1);
        let progress = Arc::new(Interfere::new(&table, format!("{add}\n")));
        let meanwhile = Session::new(SessionOptions { progress, ..Default::default() }).unwrap();
        let report = run(&meanwhile, &table, operation(&meanwhile)).unwrap();
        assert_eq!((report.version_after, report.groups_dropped), (Some(table.version + 2), 0));
        assert_eq!(ids(&table), expected);
        assert!(files(&table).iter().any(|file| file.path == "appended.parquet"));
        let session = session();
        assert!(run(&session, &table, operation(&session)).unwrap().committed);
        assert_eq!(ids(&table), expected);
        assert!(files(&table).iter().all(|file| file.path != "appended.parquet"));
        assert_sorted(&table);
        assert!(!run(&session, &table, operation(&session)).unwrap().committed);
    }
}

/// Rows of `file` are deleted by vector once the run has begun; where they went is not known, so its group is dropped.
fn deleted_meanwhile(steps: fn(&Path) -> TableBuilder, file: usize, operation: fn(&Session) -> Operation, done: u64) {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut table = steps(dir.path()).build().unwrap();
    let from = steps(elsewhere.path()).delete_rows(file, &[3, 4, 5]).build().unwrap();
    let expected = ids(&from);
    assert!(expected.len() < ids(&table).len());
    let vectors = vector_files(&table);
    let progress = Arc::new(Deleter::new(&from, &table));
    let meanwhile = Session::new(SessionOptions { progress, ..Default::default() }).unwrap();
    let report = run(&meanwhile, &table, operation(&meanwhile)).unwrap();
    assert_eq!((report.groups_dropped, report.groups_done, report.committed), (1, done, done > 0));
    table.files = from.files.clone();
    assert_eq!(ids(&table), expected);
    assert_eq!(vector_files(&table), vectors + 1);
    // Outputs that no commit names are gone.
    let live: BTreeSet<String> = files(&table).into_iter().map(|f| f.path).collect();
    let known: BTreeSet<String> = from.files.iter().map(|f| f.path.clone()).collect();
    let data = everything(&table.folder).into_iter().filter(|path| path.ends_with(".parquet"));
    assert!(data.into_iter().all(|path| live.contains(&path) || known.contains(&path)));
    let session = session();
    assert!(run(&session, &table, operation(&session)).unwrap().committed);
    assert_eq!(ids(&table), expected);
    assert!(files(&table).iter().all(|file| file.deletion_vector.is_none()));
    assert!(!run(&session, &table, operation(&session)).unwrap().committed);
}

#[test]
fn rows_deleted_while_they_are_ordered_stay_deleted() {
    let whole = |folder: &Path| TableBuilder::new(folder).append(600, 6).delete_rows(0, &[1, 2]).delete_rows(3, &[9]);
    deleted_meanwhile(whole, 1, sort, 0);
    deleted_meanwhile(whole, 3, hilbert, 0);
}

#[test]
fn partitions_without_new_deletes_are_ordered_all_the_same() {
    let parts = |folder: &Path| {
        let builder = TableBuilder::new(folder).partitioned_by(&["p"]);
        let filled = |b: TableBuilder, p: &str| b.append_partition(&[Some(p)], 200, 2);
        ["x", "y", "z"].into_iter().fold(builder, filled).delete_rows(0, &[1, 2])
    };
    deleted_meanwhile(parts, 2, sort, 2);
}

#[test]
fn two_orderings_at_once_keep_every_row() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for operation in [sort as fn(&Session) -> Operation, hilbert] {
            let (table, barrier) = (&table, &barrier);
            scope.spawn(move || {
                let session = session();
                barrier.wait();
                run(&session, table, operation(&session)).unwrap();
            });
        }
    });
    assert_eq!(ids(&table), before);
    let session = session();
    run(&session, &table, sort(&session)).unwrap();
    assert_eq!(ids(&table), before);
    assert_sorted(&table);
}
