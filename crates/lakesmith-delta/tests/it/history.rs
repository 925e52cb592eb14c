//! DESCRIBE HISTORY.

use lakesmith_core::op::HistoryOptions;
use lakesmith_delta::history;
use lakesmith_storage::Cancel;

use crate::tables::{PROTOCOL, TestTable, add, metadata};

#[tokio::test(flavor = "multi_thread")]
async fn history_is_newest_first_and_its_values_are_strings() {
    let table = TestTable::golden("liquid_after");
    let report = history(&table.store(), &table.root(), HistoryOptions::default(), &Cancel::default()).await.unwrap();
    let versions: Vec<u64> = report.0.iter().map(|e| e.version).collect();
    assert_eq!(versions, (0..=8).rev().collect::<Vec<_>>());
    let optimize = report.0.iter().find(|e| e.operation.as_deref() == Some("OPTIMIZE")).unwrap();
    let parameters = optimize.operation_parameters.as_ref().unwrap();
    assert_eq!(parameters["auto"].as_deref(), Some("false"));
    assert_eq!(parameters["predicate"].as_deref(), Some("[]"));
    assert!(optimize.operation_metrics.as_ref().unwrap().contains_key("numAddedFiles"));
    assert_eq!(optimize.isolation_level.as_deref(), Some("SnapshotIsolation"));
    assert_eq!(optimize.read_version, Some(optimize.version - 1));
    assert!(optimize.engine_info.as_ref().unwrap().contains("Delta-Lake"));
}

#[tokio::test(flavor = "multi_thread")]
async fn history_can_be_limited_and_filtered() {
    let table = TestTable::golden("liquid_after");
    let limited = HistoryOptions { limit: Some(2), ..HistoryOptions::default() };
    let report = history(&table.store(), &table.root(), limited, &Cancel::default()).await.unwrap();
    assert_eq!(report.0.iter().map(|e| e.version).collect::<Vec<_>>(), [8, 7]);
    let changes = HistoryOptions { data_changes: true, ..HistoryOptions::default() };
    let report = history(&table.store(), &table.root(), changes, &Cancel::default()).await.unwrap();
    assert!(!report.0.is_empty() && report.0.iter().all(|e| e.operation.as_deref() != Some("OPTIMIZE")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_information_has_a_row_of_nulls() {
    let commit = format!("{PROTOCOL}\n{}\n{}", metadata("string", false, "{}"), add("a", None, 1));
    let table = TestTable::with_commits(&[&commit, &add("b", None, 1)]);
    table.touch(0, 100);
    table.touch(1, 50);
    let report = history(&table.store(), &table.root(), HistoryOptions::default(), &Cancel::default()).await.unwrap();
    let times: Vec<&str> = report.0.iter().map(|e| e.timestamp.as_str()).collect();
    assert_eq!(times, ["1970-01-01T00:01:40.001+00:00", "1970-01-01T00:01:40.000+00:00"]);
    assert_eq!((&report.0[0].operation, &report.0[0].operation_parameters), (&None, &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_commit_timestamps_are_shown_where_enabled() {
    let table = TestTable::golden("ict");
    table.touch(2, 1);
    let report = history(&table.store(), &table.root(), HistoryOptions::default(), &Cancel::default()).await.unwrap();
    let expected = table.load().await.log.commit_timestamp_ms;
    let shown: jiff::Timestamp = report.0[0].timestamp.parse().unwrap();
    assert_eq!(shown.as_millisecond(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_of_no_table_is_refused() {
    let table = TestTable::with_commits(&[]);
    let error =
        history(&table.store(), &table.root(), HistoryOptions::default(), &Cancel::default()).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_TABLE_ONLY_OPERATION");
}
