//! A clean-up that is stopped at every request: what is left of the log serves every version that it must.

use std::collections::BTreeSet;
use std::sync::Arc;

use lakesmith_core::table::LogRole;
use lakesmith_delta::clean_log;
use lakesmith_storage::Store;
use lakesmith_testkit::fault_store::{Fault, FaultKind, FaultStore};
use object_store::ObjectStore;

use crate::log_cleanup::{Spec, log_names, paths, plan};
use crate::tables::TestTable;

async fn table() -> (Spec, TestTable) {
    let spec = Spec {
        days: (0..9).map(|v| v * 10).collect(),
        checkpoints: BTreeSet::from([2, 4, 8]),
        retention_days: 40,
        own_clock: false,
    };
    let table = spec.build().await;
    // A checkpoint in two parts that will go, so that it may be left in halves.
    let log = table.path().join("_delta_log");
    let whole = log.join(format!("{:020}.checkpoint.parquet", 2));
    for part in 1..=2 {
        std::fs::copy(&whole, log.join(format!("{:020}.checkpoint.{part:010}.{:010}.parquet", 3, 2))).unwrap();
    }
    for version in 0..9 {
        std::fs::write(log.join(format!("{version:020}.crc")), "{}").unwrap();
    }
    (spec, table)
}

/// Runs a clean-up with these faults; gives the requests and what the store was asked.
async fn run(table: &TestTable, faults: Vec<Fault>) -> (u64, Vec<String>, bool) {
    let faulty = FaultStore::new(table.store().object_store(), faults);
    let store = Store::from_object_store(Arc::clone(&faulty) as Arc<dyn ObjectStore>, &table.root());
    let cleaned = async {
        let planned = plan(table, &store).await?;
        clean_log(&store, &table.root(), &planned).await
    };
    let whole = cleaned.await.is_ok_and(|report| report.failed.is_empty());
    (faulty.requests(), faulty.log(), whole)
}

async fn check(spec: &Spec, table: &TestTable, when: &str) {
    let from = spec.cutoff_version().unwrap();
    for version in from..spec.days.len() as u64 {
        let expected: BTreeSet<String> = (0..=version).map(|v| format!("f{v}")).collect();
        assert_eq!(paths(table, version).await, Some(expected), "version {version} {when}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_dies_anywhere_leaves_a_log_that_serves_every_kept_version() {
    let (spec, clean) = table().await;
    assert_eq!(spec.cutoff_version(), Some(5));
    let (requests, log, whole) = run(&clean, vec![]).await;
    assert!(whole);
    check(&spec, &clean, "after a whole clean-up").await;
    let end = log_names(&clean);
    assert!(!end.iter().any(|n| n.as_str() < "00000000000000000004"), "{end:?}");
    let first_delete = log.iter().position(|r| r.starts_with("delete ")).unwrap() as u64;
    assert!(requests - first_delete >= 11, "{log:?}");
    for at in first_delete..requests {
        for kind in [FaultKind::FailBefore, FaultKind::FailAfterLanding] {
            let (spec, table) = table().await;
            // From there on nothing is answered any more.
            let faults = (at..at + 200).map(|at_request| Fault {
                at_request,
                kind: if at_request == at { kind } else { FaultKind::FailBefore },
            });
            let (_, _, whole) = run(&table, faults.collect()).await;
            assert!(!whole, "{kind:?} at {at}");
            check(&spec, &table, &format!("after {kind:?} at {at}")).await;
            assert!(run(&table, vec![]).await.2);
            assert_eq!(log_names(&table), end, "after {kind:?} at {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_go_before_the_checkpoints_that_hide_them() {
    let (_, table) = table().await;
    let planned = plan(&table, &table.store()).await.unwrap();
    let order: Vec<(LogRole, u64)> = planned.expired().map(|f| (f.role, f.version)).collect();
    let last_commit = order.iter().rposition(|(role, _)| *role == LogRole::Commit).unwrap();
    let is_checkpoint = |role: &LogRole| matches!(role, LogRole::Checkpoint | LogRole::CheckpointPart { .. });
    let first_checkpoint = order.iter().position(|(role, _)| is_checkpoint(role)).unwrap();
    assert!(last_commit < first_checkpoint, "{order:?}");
    let commits: Vec<u64> = order.iter().filter(|(r, _)| *r == LogRole::Commit).map(|(_, v)| *v).collect();
    assert_eq!(commits, [0, 1, 2, 3]);
}
