//! A commit with a fault at every request: it stands once or not at all, and the proof for the sweeper holds.

use std::sync::Arc;

use lakesmith_core::ErrorKind;
use lakesmith_delta::CommitResult;
use lakesmith_storage::Store;
use lakesmith_testkit::fault_store::{Fault, FaultKind, FaultStore};
use object_store::ObjectStore;

use crate::commit_bench::{Bench, add, commit, edit};

const KINDS: [FaultKind; 5] = [
    FaultKind::FailBefore,
    FaultKind::FailAfterLanding,
    FaultKind::AlreadyExistsAfterLanding,
    FaultKind::Slow(5),
    FaultKind::PartialList,
];

struct Run {
    bench: Bench,
    result: CommitResult,
    requests: u64,
    fired: u64,
}

async fn run(faults: Vec<Fault>) -> Run {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.put(1, &[add("new", 5)]).await;
    let faulty = FaultStore::new(Arc::clone(&bench.objects), faults);
    let store = Store::from_object_store(Arc::clone(&faulty) as Arc<dyn ObjectStore>, &bench.root);
    let edit = edit(&base, &[(&["a", "b"], "x"), (&["c", "d"], "y")]);
    let result = commit(&store, &bench.root, &base, &edit, None, &bench.world, &bench.cancel).await;
    Run { requests: faulty.requests(), fired: faulty.fired(), bench, result }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fault_anywhere_never_loses_or_doubles_a_commit() {
    let clean = run(vec![]).await;
    assert!(matches!(clean.result, CommitResult::Committed(_)));
    let mut fired = 0;
    for at_request in 0..clean.requests + 3 {
        for kind in KINDS {
            let run = run(vec![Fault { at_request, kind }]).await;
            fired += run.fired;
            let CommitResult::Committed(committed) = run.result else {
                panic!("{kind:?} at {at_request}: {:?}", run.result)
            };
            assert_eq!((committed.version, committed.groups_dropped), (2, vec![]), "{kind:?} at {at_request}");
            assert_eq!(run.bench.paths().await, ["e", "f", "new", "x", "y"], "{kind:?} at {at_request}");
        }
    }
    assert!(fired >= 10, "only {fired} faults made a difference");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_takes_no_writes_ends_the_commit_without_a_licence_to_delete() {
    let faults = (0..200).map(|n| Fault { at_request: n, kind: FaultKind::FailBefore });
    // The listing and the winner are read; every put fails, the look at the base before it and the read after it work.
    let failing: Vec<Fault> = faults.filter(|f| f.at_request >= 3 && f.at_request % 3 == 0).collect();
    let run = run(failing).await;
    let CommitResult::Failed { error, tried_versions, all_taken_by_others, .. } = run.result else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!((tried_versions, all_taken_by_others), (vec![2], false));
    assert!(run.bench.actions(2).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_landed_before_the_storage_went_silent_is_not_called_taken() {
    let mut faults = vec![Fault { at_request: 3, kind: FaultKind::FailAfterLanding }];
    faults.extend((4..4000).map(|at_request| Fault { at_request, kind: FaultKind::FailBefore }));
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.put(1, &[add("new", 5)]).await;
    let faulty = FaultStore::new(Arc::clone(&bench.objects), faults);
    let store = Store::from_object_store(faulty as Arc<dyn ObjectStore>, &bench.root);
    let edit = edit(&base, &[(&["a", "b"], "x")]);
    let context = lakesmith_delta::CommitContext {
        world: &bench.world,
        cancel: &bench.cancel,
        engine_info: "test".into(),
        timeout_ms: 300,
    };
    let result = lakesmith_delta::commit(&store, &bench.root, &base, &edit, None, &context).await;
    let CommitResult::Failed { error, tried_versions, all_taken_by_others, .. } = result else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!((tried_versions, all_taken_by_others), (vec![2], false));
    assert!(bench.paths().await.contains(&"x".to_string()), "the commit landed although its answer was lost");
}
