//! Every request of an operation fails once, in every way: the table stays valid, and running again converges.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use lakesmith::op::{Operation, VacuumMode, VacuumOptions};
use lakesmith::{Location, Result, Session, Store, StoreOptions};
use lakesmith_testkit::{BuiltTable, Fault, FaultKind, FaultStore};
use object_store::ObjectStore;

use crate::sweeping::{DAY, at_once, dry, on_disk as everything, paths, stray, vacuum_in};
use crate::tables::{files, ids, on_disk, optimize, purge, run, session, session_on, small_files};

pub(crate) const KINDS: [FaultKind; 4] =
    [FaultKind::FailBefore, FaultKind::FailAfterLanding, FaultKind::AlreadyExistsAfterLanding, FaultKind::Slow(1)];

/// Continuous integration takes a sample, the whole sweep runs with `LAKESMITH_TEST_ALL`.
pub(crate) fn step() -> usize {
    if std::env::var_os("LAKESMITH_TEST_ALL").is_some() { 1 } else { 7 }
}

fn sweep(operation: fn(&Session) -> Operation) {
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let table = small_files(dir.path());
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        let session = session_on(store);
        run(&session, &table, operation(&session)).unwrap();
        faulty.requests()
    };
    assert!(requests > 10, "{requests}");
    for (offset, kind) in KINDS.into_iter().enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            one(operation, Fault { at_request, kind });
        }
    }
}

fn one(operation: fn(&Session) -> Operation, fault: Fault) {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
    let faulty_session = session_on(store);
    let outcome: Result<_> = run(&faulty_session, &table, operation(&faulty_session));
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

#[test]
fn optimise_survives_a_fault_at_every_request() {
    sweep(optimize);
}

#[test]
fn purge_survives_a_fault_at_every_request() {
    sweep(purge);
}

/// A compacted table whose old files, vectors and one orphan may go.
fn littered(folder: &std::path::Path) -> BuiltTable {
    let table = small_files(folder);
    let session = session();
    run(&session, &table, optimize(&session)).unwrap();
    stray(&table.folder, "orphan.parquet", 60 * DAY);
    table
}

/// `runs`: after so many more runs without faults nothing is left to do.
fn vacuum_sweep(options: fn() -> VacuumOptions, runs: usize) {
    let requests = {
        let dir = tempfile::tempdir().unwrap();
        let table = littered(dir.path());
        let (faulty, store) = FaultStore::open(&table.root, vec![]).unwrap();
        vacuum_in(&session_on(store), &table.folder, options()).unwrap();
        faulty.requests()
    };
    assert!(requests > 10, "{requests}");
    for (offset, kind) in KINDS.into_iter().chain([FaultKind::PartialList]).enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let fault = Fault { at_request, kind };
            let dir = tempfile::tempdir().unwrap();
            let table = littered(dir.path());
            let before = ids(&table);
            let (_, store) = FaultStore::open(&table.root, vec![fault]).unwrap();
            let outcome = vacuum_in(&session_on(store), &table.folder, options());
            for file in files(&table) {
                assert!(on_disk(&table, &file.path).exists(), "{fault:?} lost {}", file.path);
            }
            assert_eq!(ids(&table), before, "{fault:?}: {outcome:?}");
            let healthy = session();
            for _ in 0..runs {
                vacuum_in(&healthy, &table.folder, options()).unwrap();
            }
            let again = vacuum_in(&healthy, &table.folder, dry(options())).unwrap();
            assert_eq!(paths(&again), Vec::<String>::new(), "{fault:?} does not converge");
            assert_eq!(ids(&table), before, "{fault:?}");
        }
    }
}

#[test]
fn vacuum_survives_a_fault_at_every_request() {
    vacuum_sweep(at_once, 1);
}

#[test]
fn lite_vacuum_survives_a_fault_at_every_request() {
    vacuum_sweep(|| VacuumOptions { mode: VacuumMode::Lite, ..at_once() }, 1);
}

#[test]
fn two_step_vacuum_survives_a_fault_at_every_request() {
    vacuum_sweep(|| VacuumOptions { condemn_ms: Some(0), ..at_once() }, 2);
}

/// The same table in memory, listed as object stores are.
fn in_memory(table: &BuiltTable, name: &str) -> (Location, Arc<dyn ObjectStore>) {
    let root = Location::parse(&format!("memory://{name}/t")).unwrap();
    let store = Store::open(&root, &StoreOptions::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let log = std::fs::read_dir(table.folder.join("_delta_log")).unwrap();
    let log = log.map(|e| format!("_delta_log/{}", e.unwrap().file_name().to_str().unwrap()));
    for path in everything(&table.folder).into_iter().chain(log) {
        let bytes = Bytes::from(std::fs::read(table.folder.join(&path)).unwrap());
        runtime.block_on(store.put(&root.join(&path), bytes)).unwrap();
    }
    (root, store.object_store())
}

fn keys(root: &Location, store: &Arc<dyn ObjectStore>) -> BTreeSet<String> {
    let store = Store::from_object_store(Arc::clone(store), root);
    let listed = tokio::runtime::Runtime::new().unwrap().block_on(store.list(root)).unwrap();
    listed.into_iter().map(|info| info.location.relative_to(root).unwrap().to_owned()).collect()
}

#[test]
fn vacuum_of_an_object_store_survives_a_fault_at_every_request() {
    let dir = tempfile::tempdir().unwrap();
    let table = littered(dir.path());
    let live: BTreeSet<String> = files(&table).into_iter().map(|f| f.path).collect();
    let vacuum = |session: &Session, root: &Location| session.run(&root.to_string(), Operation::Vacuum(at_once()));
    let run = |name: &str, faults: Vec<Fault>| {
        let (root, inner) = in_memory(&table, name);
        let faulty = FaultStore::new(Arc::clone(&inner), faults);
        let store = Store::from_object_store(Arc::clone(&faulty) as Arc<dyn ObjectStore>, &root);
        // The outcome may be an error; what counts is what is left.
        drop(vacuum(&session_on(store), &root));
        (root, inner, faulty.requests())
    };
    let (.., requests) = run("faults-none", vec![]);
    for (offset, kind) in KINDS.into_iter().chain([FaultKind::PartialList]).enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let fault = Fault { at_request, kind };
            let (root, inner, _) = run(&format!("faults-{offset}-{at_request}"), vec![fault]);
            assert!(keys(&root, &inner).is_superset(&live), "{fault:?}");
            vacuum(&session_on(Store::from_object_store(Arc::clone(&inner), &root)), &root).unwrap();
            let mut left = keys(&root, &inner);
            left.retain(|key| !key.starts_with('_'));
            assert_eq!(left, live, "{fault:?} does not converge");
        }
    }
}
