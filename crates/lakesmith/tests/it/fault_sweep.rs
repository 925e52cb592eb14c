//! Every request of an operation fails once, in every way: the table stays valid, and running again converges.

use lakesmith::op::Operation;
use lakesmith::{Result, Session};
use lakesmith_testkit::{Fault, FaultKind, FaultStore};

use crate::tables::{files, ids, on_disk, optimize, purge, run, session, session_on, small_files};

const KINDS: [FaultKind; 4] =
    [FaultKind::FailBefore, FaultKind::FailAfterLanding, FaultKind::AlreadyExistsAfterLanding, FaultKind::Slow(1)];

/// Continuous integration takes a sample, the whole sweep runs with `LAKESMITH_TEST_ALL`.
fn step() -> usize {
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
    for file in files(&table).0 {
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
