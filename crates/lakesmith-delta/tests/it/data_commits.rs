//! Commits of rows that enter and leave, alone and against winners.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::ErrorKind;
use lakesmith_core::table::{
    DataEdit, DeletionVector, FileId, MarkedFile, OperationInfo, PartitionTuple, ReadSet, Scalar,
};
use lakesmith_delta::{CommitContext, CommitResult, Committed, DeltaTable, read_vector};
use serde_json::{Value, json};

use crate::commit_bench::{Bench, add, edit, metadata, new_file, protocol, remove, with};

const VECTORS: (&str, &str) = ("delta.enableDeletionVectors", "true");

fn info(name: &str) -> Value {
    json!({"commitInfo": {"operation": name, "txnId": format!("other {name}"), "isBlindAppend": name == "WRITE"}})
}

async fn with_vectors() -> Bench {
    Bench::new(&[protocol(&["deletionVectors"]), metadata(&[VECTORS]), add("a", 10), add("b", 10)]).await
}

fn id(table: &DeltaTable, path: &str) -> FileId {
    table.state.files.iter().find(|f| f.path == path).unwrap().id
}

fn marks(table: &DeltaTable, path: &str, rows: &[u64]) -> MarkedFile {
    MarkedFile { file: id(table, path), rows: DeletionVector::from_rows(rows.iter().copied()), physical_rows: 10 }
}

fn delete(marked: Vec<MarkedFile>) -> DataEdit {
    DataEdit {
        marked,
        reads: ReadSet::Everything,
        operation: OperationInfo { name: "DELETE".into(), parameters: vec![], user_metadata: None },
        ..DataEdit::default()
    }
}

fn append(path: &str, rows: u64) -> DataEdit {
    DataEdit {
        added: vec![new_file(path, rows)],
        operation: OperationInfo { name: "WRITE".into(), parameters: vec![], user_metadata: None },
        metrics: BTreeMap::from([("numFiles".to_owned(), "1".to_owned())]),
        ..DataEdit::default()
    }
}

impl Bench {
    async fn change(&self, base: &DeltaTable, edit: &DataEdit) -> CommitResult {
        let context = CommitContext {
            world: &self.world,
            cancel: &self.cancel,
            engine_info: "Lakesmith/test".into(),
            timeout_ms: 20_000,
        };
        lakesmith_delta::commit_data(&self.store, &self.root, base, edit, None, &context).await
    }

    async fn changed(&self, base: &DeltaTable, edit: &DataEdit) -> Committed {
        match self.change(base, edit).await {
            CommitResult::Committed(committed) => committed,
            other => panic!("{other:?}"),
        }
    }

    /// The class of a conflict, after which nothing is committed at `version`.
    async fn conflict(&self, base: &DeltaTable, edit: &DataEdit, version: u64) -> String {
        let CommitResult::Failed { error, all_taken_by_others, .. } = self.change(base, edit).await else {
            panic!("it is committed")
        };
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(all_taken_by_others);
        assert!(self.actions(version).await.is_none());
        error.class_name().to_owned()
    }

    /// Deleted rows of a file as they are now.
    async fn deleted(&self, path: &str) -> Vec<u64> {
        let table = self.load().await;
        let deletes = table.state.files.get(id(&table, path)).deletes.unwrap().clone();
        read_vector(&self.store, &deletes).await.unwrap().iter().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_rides_over_everything_that_leaves_the_schema_alone() {
    let bench = with_vectors().await;
    let base = bench.load().await;
    bench.put(1, &[info("WRITE"), add("theirs", 3)]).await;
    bench.put(2, &[info("DELETE"), remove("a")]).await;
    let committed = bench.changed(&base, &append("x y", 4)).await;
    assert_eq!(committed.version, 3);
    let actions = bench.actions(3).await.unwrap();
    let said = &actions[0]["commitInfo"];
    assert_eq!((&said["operation"], &said["isBlindAppend"]), (&json!("WRITE"), &json!(true)));
    assert_eq!((&said["isolationLevel"], &said["readVersion"]), (&json!("Serializable"), &json!(0)));
    assert_eq!(said["operationMetrics"], json!({"numFiles": "1"}));
    let stats = r#"{"numRecords":4,"tightBounds":true}"#;
    assert_eq!(
        actions[1],
        json!({"add": {"path": "x%20y", "partitionValues": {}, "size": 28, "modificationTime": 1, "dataChange": true,
            "stats": stats}})
    );
    assert_eq!(bench.paths().await, ["b", "theirs", "x%20y"]);
    let class = {
        let base = bench.load().await;
        bench.put(4, &[info("ADD COLUMNS"), metadata(&[VECTORS, ("delta.appendOnly", "true")])]).await;
        bench.conflict(&base, &append("z", 1), 5).await
    };
    assert_eq!(class, "DELTA_METADATA_CHANGED");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rows_get_ids_that_follow_those_of_winners() {
    let mark = |n: i64| {
        json!({"domainMetadata": {"domain": "delta.rowTracking", "removed": false,
            "configuration": format!("{{\"rowIdHighWaterMark\":{n}}}")}})
    };
    let tracked = |path: &str, first: i64| {
        with(add(path, 10), "add", &[("baseRowId", json!(first)), ("defaultRowCommitVersion", json!(0))])
    };
    let bench =
        Bench::new(&[protocol(&["rowTracking", "domainMetadata"]), metadata(&[]), mark(9), tracked("a", 0)]).await;
    let base = bench.load().await;
    bench.put(1, &[info("WRITE"), mark(19), tracked("theirs", 10)]).await;
    bench.changed(&base, &append("ours", 5)).await;
    let actions = bench.actions(2).await.unwrap();
    assert_eq!(actions[1], mark(24));
    assert_eq!(
        (&actions[2]["add"]["baseRowId"], &actions[2]["add"]["defaultRowCommitVersion"]),
        (&json!(20), &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_marked_and_files_without_rows_leave() {
    let bench = with_vectors().await;
    let base = bench.load().await;
    let committed = bench.changed(&base, &delete(vec![marks(&base, "a", &[3, 1])])).await;
    assert_eq!(bench.deleted("a").await, [1, 3]);
    let actions = bench.actions(1).await.unwrap();
    assert_eq!(actions[0]["commitInfo"]["isBlindAppend"], false);
    let (added, removed) = (&actions[1]["add"], &actions[2]["remove"]);
    assert_eq!((&added["path"], &added["dataChange"]), (&json!("a"), &json!(true)));
    assert_eq!((&removed["path"], &removed["dataChange"]), (&json!("a"), &json!(true)));
    assert!(removed.get("deletionVector").is_none() && added["deletionVector"]["cardinality"] == 2);
    let stats: Value = serde_json::from_str(added["stats"].as_str().unwrap()).unwrap();
    assert_eq!((&stats["numRecords"], &stats["tightBounds"]), (&json!(10), &json!(false)));
    let metric = |committed: &Committed, key: &str| committed.metrics[key].clone();
    assert_eq!(metric(&committed, "numDeletedRows"), "2");
    assert_eq!(metric(&committed, "numDeletionVectorsAdded"), "1");
    assert_eq!(metric(&committed, "numDeletionVectorsRemoved"), "0");
    let again = bench.load().await;
    let all: Vec<u64> = (0..10).collect();
    let committed = bench.changed(&again, &delete(vec![marks(&again, "a", &[1, 5]), marks(&again, "b", &all)])).await;
    assert_eq!(bench.deleted("a").await, [1, 3, 5]);
    assert_eq!(bench.paths().await, ["a"]);
    assert_eq!(metric(&committed, "numDeletedRows"), "11");
    assert_eq!(metric(&committed, "numDeletionVectorsAdded"), "1");
    assert_eq!(metric(&committed, "numDeletionVectorsUpdated"), "1");
    assert_eq!(metric(&committed, "numDeletionVectorsRemoved"), "1");
    assert_eq!(metric(&committed, "numRemovedFiles"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_of_different_rows_of_one_file_are_united() {
    let bench = with_vectors().await;
    let base = bench.load().await;
    // Two who loaded the same version; the second meets the first one's commit.
    bench.changed(&base, &delete(vec![marks(&base, "a", &[1, 2])])).await;
    let second = bench.changed(&base, &delete(vec![marks(&base, "a", &[2, 7]), marks(&base, "b", &[0])])).await;
    assert_eq!((second.version, bench.deleted("a").await, bench.deleted("b").await), (2, vec![1, 2, 7], vec![0]));
    assert_eq!(second.metrics["numDeletedRows"], "2");
    assert_eq!(bench.live().await.len(), 2);
    // Nothing is left for one who deletes what is gone, and the vectors that were written for nothing are named.
    let CommitResult::NothingLeft { .. } = bench.change(&base, &delete(vec![marks(&base, "a", &[1])])).await else {
        panic!("rows that are deleted already are no change")
    };
    // Together they delete the last row.
    let last = bench.changed(&base, &delete(vec![marks(&base, "a", &[0, 3, 4, 5, 6, 8, 9])])).await;
    assert_eq!((last.version, bench.paths().await), (3, vec!["b".to_owned()]));
    assert_eq!(last.metrics["numDeletedRows"], "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_where_was_read_and_files_that_go_are_conflicts() {
    type Case = (&'static str, Vec<Value>, Option<&'static str>);
    let moved = with(add("moved", 10), "add", &[("dataChange", json!(false))]);
    let cases: [Case; 5] = [
        ("an append", vec![info("WRITE"), add("new", 1)], Some("DELTA_CONCURRENT_APPEND")),
        ("rows that only moved", vec![info("OPTIMIZE"), remove("b"), moved.clone()], None),
        ("our file moved", vec![info("OPTIMIZE"), remove("a"), moved], Some("DELTA_CONCURRENT_DELETE_READ")),
        ("our file left", vec![info("DELETE"), remove("a")], Some("DELTA_CONCURRENT_DELETE_READ")),
        ("another file left", vec![info("DELETE"), remove("b")], None),
    ];
    for (name, winner, expected) in cases {
        let bench = with_vectors().await;
        let base = bench.load().await;
        bench.put(1, &winner).await;
        let edit = delete(vec![marks(&base, "a", &[1])]);
        match expected {
            Some(class) => assert_eq!(bench.conflict(&base, &edit, 2).await, class, "{name}"),
            None => assert_eq!(bench.changed(&base, &edit).await.version, 2, "{name}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lenient_table_lets_blind_appends_pass() {
    let lenient = ("delta.isolationLevel", "WriteSerializable");
    let bench =
        Bench::new(&[protocol(&["deletionVectors"]), metadata(&[VECTORS, lenient]), add("a", 10), add("b", 10)]).await;
    let base = bench.load().await;
    bench.put(1, &[info("WRITE"), add("new", 1)]).await;
    let edit = delete(vec![marks(&base, "a", &[1])]);
    assert_eq!(bench.changed(&base, &edit).await.version, 2);
    let base = bench.load().await;
    bench.put(3, &[info("MERGE"), add("newer", 1)]).await;
    assert_eq!(bench.conflict(&base, &delete(vec![marks(&base, "b", &[1])]), 4).await, "DELTA_CONCURRENT_APPEND");
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_that_were_not_read_may_get_rows() {
    let line = crate::tables::metadata("integer", true, "{}");
    let part = |path: &str, value: &str| with(add(path, 10), "add", &[("partitionValues", json!({"p": value}))]);
    let partition = |n: i64| PartitionTuple { raw: vec![Some(n.to_string())], values: vec![Scalar::Long(n)] };
    for (theirs, meets) in [("2", false), ("01", true)] {
        let bench =
            Bench::new(&[protocol(&[]), serde_json::from_str(&line).unwrap(), part("a", "1"), part("b", "2")]).await;
        let base = bench.load().await;
        bench.put(1, &[info("WRITE"), part("new", theirs)]).await;
        let edit = DataEdit {
            removed: vec![id(&base, "a")],
            reads: ReadSet::Partitions(BTreeSet::from([partition(1)])),
            ..delete(vec![])
        };
        if meets {
            assert_eq!(bench.conflict(&base, &edit, 2).await, "DELTA_CONCURRENT_APPEND");
        } else {
            bench.changed(&base, &edit).await;
            assert_eq!(bench.paths().await, ["b", "new"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_leave_whole_must_be_as_they_were_read() {
    let bench = with_vectors().await;
    let base = bench.load().await;
    bench.changed(&base, &delete(vec![marks(&base, "a", &[1])])).await;
    // The copy of a file would bring the row back that was deleted meanwhile.
    let copy = DataEdit { removed: vec![id(&base, "a")], added: vec![new_file("copy", 9)], ..delete(vec![]) };
    assert_eq!(bench.conflict(&base, &copy, 2).await, "DELTA_CONCURRENT_DELETE_DELETE");
    let CommitResult::Committed(_) = bench.commit(&base, &edit(&base, &[(&["b"], "packed")])).await else { panic!() };
    let gone = DataEdit { removed: vec![id(&base, "b")], ..delete(vec![]) };
    assert_eq!(bench.conflict(&base, &gone, 3).await, "DELTA_CONCURRENT_DELETE_DELETE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_for_appends_only_loses_no_row() {
    let bench = Bench::new(&[
        protocol(&["appendOnly", "deletionVectors"]),
        metadata(&[VECTORS, ("delta.appendOnly", "true")]),
        add("a", 10),
    ])
    .await;
    let base = bench.load().await;
    for edit in [delete(vec![marks(&base, "a", &[1])]), DataEdit { removed: vec![id(&base, "a")], ..delete(vec![]) }] {
        let CommitResult::Failed { error, tried_versions, .. } = bench.change(&base, &edit).await else { panic!() };
        assert_eq!(error.class_name(), "DELTA_CANNOT_MODIFY_APPEND_ONLY");
        assert!(tried_versions.is_empty());
    }
    assert_eq!(bench.changed(&base, &append("b", 1)).await.version, 1);
}
