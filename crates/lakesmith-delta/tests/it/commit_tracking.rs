//! In-commit timestamps and row ids, also where a winner changed them.

use std::collections::BTreeMap;

use lakesmith_core::table::VersionEdit;
use serde_json::{Value, json};

use crate::commit_bench::{Bench, NOW_MS, add, edit, metadata, protocol, with};

const TRACKING: [(&str, &str); 3] = [
    ("delta.enableRowTracking", "true"),
    ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-x"),
    ("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-commit-version-col-x"),
];

fn mark(mark: i64) -> Value {
    json!({"domainMetadata": {"domain": "delta.rowTracking", "configuration": format!("{{\"rowIdHighWaterMark\":{mark}}}"), "removed": false}})
}

fn tracked(path: &str, base: i64) -> Value {
    with(add(path, 10), "add", &[("baseRowId", json!(base)), ("defaultRowCommitVersion", json!(0))])
}

fn info(timestamp_ms: u64) -> Value {
    json!({"commitInfo": {"inCommitTimestamp": timestamp_ms, "operation": "WRITE"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn timestamps_increase_even_past_a_winner_from_the_future() {
    let properties = [("delta.enableInCommitTimestamps", "true")];
    let files = [add("a", 10), add("b", 10), add("c", 10), add("d", 10)];
    let head = [info(NOW_MS + 1_000_000), protocol(&["inCommitTimestamp"]), metadata(&properties)];
    let bench = Bench::new(&[head.as_slice(), &files].concat()).await;
    let base = bench.load().await;
    bench.committed(&base, &edit(&base, &[(&["a", "b"], "x")])).await;
    let actions = bench.actions(1).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["inCommitTimestamp"], NOW_MS + 1_000_001);
    bench.put(2, &[info(NOW_MS + 5_000_000), add("new", 1)]).await;
    let committed = bench.committed(&base, &edit(&base, &[(&["c", "d"], "y")])).await;
    assert_eq!(committed.version, 3);
    let actions = bench.actions(3).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["inCommitTimestamp"], NOW_MS + 5_000_001);
    assert_eq!(bench.load().await.log.commit_timestamp_ms, NOW_MS as i64 + 5_000_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_enables_timestamps_binds_us() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    let properties = [
        ("delta.enableInCommitTimestamps", "true"),
        ("delta.inCommitTimestampEnablementVersion", "1"),
        ("delta.inCommitTimestampEnablementTimestamp", "1900000000000"),
    ];
    let upgraded = protocol(&["appendOnly", "invariants", "inCommitTimestamp"]);
    bench.put(1, &[info(1_900_000_000_000), upgraded, metadata(&properties)]).await;
    bench.committed(&base, &edit(&base, &[(&["a", "b"], "x")])).await;
    let actions = bench.actions(2).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["inCommitTimestamp"], 1_900_000_000_001u64);
    let first_key = actions[0]["commitInfo"].as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(first_key, "inCommitTimestamp");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_files_get_fresh_row_ids_renumbered_after_a_winner() {
    let head = [protocol(&["rowTracking", "domainMetadata"]), metadata(&TRACKING), mark(39)];
    let files = [tracked("a", 0), tracked("b", 10), tracked("c", 20), tracked("d", 30)];
    let bench = Bench::new(&[head.as_slice(), &files].concat()).await;
    let base = bench.load().await;
    bench.put(1, &[tracked("new", 40), mark(49)]).await;
    let committed = bench.committed(&base, &edit(&base, &[(&["a", "b"], "x"), (&["c", "d"], "y")])).await;
    assert_eq!(committed.version, 2);
    let actions = bench.actions(2).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["tags"], json!({"delta.rowTracking.preserved": "true"}));
    assert_eq!(actions[1], mark(89));
    let ids: Vec<(Value, Value)> = actions
        .iter()
        .filter_map(|a| a.get("add"))
        .map(|a| (a["baseRowId"].clone(), a["defaultRowCommitVersion"].clone()))
        .collect();
    assert_eq!(ids, [(json!(50), json!(2)), (json!(70), json!(2))]);
    let removed = actions.iter().filter_map(|a| a.get("remove")).find(|r| r["path"] == "b").unwrap();
    assert_eq!((&removed["baseRowId"], &removed["defaultRowCommitVersion"]), (&json!(10), &json!(0)));
    let after = bench.load().await;
    assert_eq!(after.log.row_id_high_water_mark, Some(89));
    // A commit for the history alone moves no rows.
    let noted = VersionEdit { history_only: Some(BTreeMap::new()), ..VersionEdit::default() };
    bench.committed(&after, &noted).await;
    assert!(bench.actions(3).await.unwrap()[0]["commitInfo"].get("tags").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_enables_row_tracking_gives_ids_but_ours_are_not_called_preserved() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.put(1, &[protocol(&["appendOnly", "invariants", "rowTracking", "domainMetadata"])]).await;
    let backfilled = ["a", "b", "c", "d", "e", "f"].iter().enumerate().map(|(i, path)| {
        with(
            tracked(path, 10 * i as i64),
            "add",
            &[("dataChange", json!(false)), ("defaultRowCommitVersion", json!(2))],
        )
    });
    let actions: Vec<Value> = backfilled.chain([mark(59)]).collect();
    bench.put(2, &actions).await;
    bench.put(3, &[metadata(&TRACKING)]).await;
    let committed = bench.committed(&base, &edit(&base, &[(&["a", "b"], "x")])).await;
    assert_eq!(committed.version, 4);
    let actions = bench.actions(4).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["tags"], json!({"delta.rowTracking.preserved": "false"}));
    assert_eq!(actions[1], mark(79));
    assert_eq!(actions[2]["add"]["baseRowId"], 60);
    assert_eq!(
        (&actions[4]["remove"]["baseRowId"], &actions[4]["remove"]["defaultRowCommitVersion"]),
        (&json!(10), &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_row_tracking_gives_no_ids() {
    let head =
        [protocol(&["rowTracking", "domainMetadata"]), metadata(&[("delta.rowTrackingSuspended", "true")]), mark(9)];
    let bench = Bench::new(&[head.as_slice(), &[add("a", 10), add("b", 10)]].concat()).await;
    let base = bench.load().await;
    bench.committed(&base, &edit(&base, &[(&["a", "b"], "x")])).await;
    let actions = bench.actions(1).await.unwrap();
    assert!(actions.iter().all(|a| a.get("domainMetadata").is_none()));
    assert!(actions[1]["add"].get("baseRowId").is_none() && actions[0]["commitInfo"].get("tags").is_none());
}
