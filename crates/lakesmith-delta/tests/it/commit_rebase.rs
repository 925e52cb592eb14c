//! Commits alone and against winners: what is in them, what is dropped, what stops them.

use lakesmith_core::ErrorKind;
use lakesmith_core::table::VersionEdit;
use lakesmith_delta::{CommitResult, NewConfiguration};
use object_store::ObjectStoreExt as _;
use serde_json::{Value, json};

use crate::commit_bench::{Bench, NOW_MS, add, edit, metadata, new_file, protocol, remove, vector, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_says_what_spark_says() {
    let bench = Bench::new(&[
        protocol(&["deletionVectors"]).clone(),
        metadata(&[]),
        with(add("a%20b", 10), "add", &[("tags", json!({"t": "1"}))]),
        with(add("b", 10), "add", &[("size", json!(30))]),
    ])
    .await;
    let base = bench.load().await;
    let committed = bench.committed(&base, &edit(&base, &[(&["a%20b", "b"], "x y.parquet")])).await;
    assert_eq!((committed.version, committed.groups_done, committed.groups_dropped), (1, vec![0], vec![]));
    let actions = bench.actions(1).await.unwrap();
    let info = &actions[0]["commitInfo"];
    assert_eq!(info["operation"], "OPTIMIZE");
    assert_eq!(info["operationParameters"], json!({"predicate": "[]", "auto": false}));
    assert_eq!((&info["readVersion"], &info["isBlindAppend"]), (&json!(0), &json!(false)));
    assert_eq!(info["isolationLevel"], "SnapshotIsolation");
    assert_eq!(info["engineInfo"], "Lakesmith/test");
    let metrics = json!({"numAddedFiles": "1", "numRemovedFiles": "2", "numAddedBytes": "140", "numRemovedBytes": "40",
        "minFileSize": "140", "p25FileSize": "140", "p50FileSize": "140", "p75FileSize": "140", "maxFileSize": "140",
        "numDeletionVectorsRemoved": "0"});
    assert_eq!(info["operationMetrics"], metrics);
    assert_eq!(info["operationMetrics"]["numAddedBytes"], committed.metrics["numAddedBytes"]);
    assert!(info.get("inCommitTimestamp").is_none() && info.get("tags").is_none());
    let stats = r#"{"numRecords":20,"tightBounds":true}"#;
    assert_eq!(
        actions[1],
        json!({"add": {"path": "x%20y.parquet", "partitionValues": {}, "size": 140, "modificationTime": 1,
            "dataChange": false, "stats": stats}})
    );
    let time = &actions[2]["remove"]["deletionTimestamp"];
    assert!(time.as_u64().unwrap() >= NOW_MS);
    assert_eq!(
        actions[2],
        json!({"remove": {"path": "a%20b", "deletionTimestamp": time, "dataChange": false, "extendedFileMetadata": true,
            "partitionValues": {}, "size": 10, "tags": {"t": "1"}, "stats": r#"{"numRecords":10}"#}})
    );
    assert_eq!(&actions[3]["remove"]["deletionTimestamp"], time);
    assert_eq!(bench.load().await.state.files.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_carry_the_vector_and_groups_without_rows_commit_too() {
    let dv = |offset| ("deletionVector", vector(offset, 10));
    let bench = Bench::new(&[
        protocol(&["deletionVectors"]).clone(),
        metadata(&[]),
        with(add("a", 10), "add", &[dv(1)]),
        with(add("b", 10), "add", &[dv(9)]),
    ])
    .await;
    let base = bench.load().await;
    let mut edit = edit(&base, &[(&["a", "b"], "x")]);
    edit.groups[0].added.clear();
    let committed = bench.committed(&base, &edit).await;
    assert_eq!(committed.metrics["numDeletionVectorsRemoved"], "2");
    assert_eq!(committed.metrics["numAddedFiles"], "0");
    let actions = bench.actions(1).await.unwrap();
    assert_eq!(actions.len(), 3);
    assert_eq!(actions[1]["remove"]["deletionVector"], vector(1, 10));
    assert!(bench.load().await.state.files.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_values_are_written_by_physical_name_and_nulls_only_in_adds() {
    let schema = r#"{"type":"struct","fields":[{"name":"p","type":"string","nullable":true,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}}]}"#;
    let mut meta = metadata(&[("delta.columnMapping.mode", "name"), ("delta.columnMapping.maxColumnId", "1")]);
    meta["metaData"]["schemaString"] = schema.into();
    meta["metaData"]["partitionColumns"] = json!(["p"]);
    let old = json!({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}});
    let value = |v: Value| [("partitionValues", json!({"col-1": v}))];
    let bench = Bench::new(&[
        old,
        meta,
        with(add("a", 10), "add", &value("x/y".into())),
        with(add("b", 10), "add", &value(Value::Null)),
    ])
    .await;
    let base = bench.load().await;
    let mut edit = edit(&base, &[(&["a"], "x"), (&["b"], "y")]);
    for group in &mut edit.groups {
        group.added[0].partition = base.state.files.get(group.removed[0]).partition.clone();
    }
    let mut incomplete = edit.clone();
    incomplete.groups[0].added[0].partition = Default::default();
    let CommitResult::Failed { error, tried_versions, .. } = bench.commit(&base, &incomplete).await else { panic!() };
    assert_eq!((error.kind(), tried_versions.len()), (ErrorKind::Internal, 0));
    bench.committed(&base, &edit).await;
    let actions = bench.actions(1).await.unwrap();
    assert_eq!(actions[1]["add"]["partitionValues"], json!({"col-1": "x/y"}));
    assert_eq!(actions[2]["remove"]["partitionValues"], json!({"col-1": "x/y"}));
    assert_eq!(actions[3]["add"]["partitionValues"], json!({"col-1": null}));
    assert_eq!(actions[4]["remove"]["partitionValues"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_are_ridden_over_and_touched_groups_are_dropped_whole() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.put(1, &[add("new", 5)]).await;
    bench.put(2, &[remove("c"), json!({"futureKind": {"x": 1}})]).await;
    bench.put(3, &[remove("f"), with(add("f", 10), "add", &[("deletionVector", vector(1, 1))])]).await;
    let groups: [(&[&str], &str); 3] = [(&["a", "b"], "x"), (&["c", "d"], "y"), (&["e", "f"], "z")];
    let committed = bench.committed(&base, &edit(&base, &groups)).await;
    assert_eq!(committed.version, 4);
    assert_eq!((committed.groups_done, committed.groups_dropped), (vec![0], vec![1, 2]));
    assert_eq!(committed.metrics["numRemovedFiles"], "2");
    assert_eq!(bench.paths().await, ["d", "e", "f", "new", "x"]);
    assert_eq!(bench.actions(4).await.unwrap()[0]["commitInfo"]["readVersion"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shrunken_vector_drops_the_group() {
    let dv = |offset, rows| [("deletionVector", vector(offset, rows))];
    let bench =
        Bench::new(&[protocol(&["deletionVectors"]), metadata(&[]), with(add("a", 10), "add", &dv(1, 5))]).await;
    let base = bench.load().await;
    let restored = [with(remove("a"), "remove", &dv(1, 5)), with(add("a", 10), "add", &dv(50, 2))];
    bench.put(1, &restored).await;
    let CommitResult::NothingLeft { groups_dropped, .. } = bench.commit(&base, &edit(&base, &[(&["a"], "x")])).await
    else {
        panic!()
    };
    assert_eq!(groups_dropped, [0]);
    assert_eq!(bench.paths().await, ["a"]);
    assert!(bench.actions(2).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_metadata_and_protocol_stop_the_commit_with_their_class() {
    for (winner, class) in [
        (metadata(&[("user", "x")]), "DELTA_METADATA_CHANGED"),
        (protocol(&["unheardOf", "appendOnly", "invariants"]), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
        (protocol(&["appendOnly"]), "DELTA_PROTOCOL_CHANGED"),
    ] {
        let bench = Bench::plain().await;
        let base = bench.load().await;
        bench.put(1, &[winner]).await;
        let CommitResult::Failed { error, tried_versions, all_taken_by_others, .. } =
            bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await
        else {
            panic!()
        };
        assert_eq!(error.class_name(), class);
        assert!(tried_versions.is_empty() && all_taken_by_others);
        assert!(bench.actions(2).await.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_cleaned_past_the_base_is_not_taken_for_free() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.store.put(&bench.root.join("_delta_log/00000000000000000007.checkpoint.parquet"), "x".into()).await.unwrap();
    let CommitResult::Failed { error, .. } = bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await else {
        panic!()
    };
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(bench.actions(1).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_winner_stops_the_commit_and_is_named() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.store.put(&bench.commit_location(1), "{\"add\":".into()).await.unwrap();
    let CommitResult::Failed { error, .. } = bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await else {
        panic!()
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.context_value("path").unwrap().ends_with("1.json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_named_twice_is_never_committed() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    let twice = edit(&base, &[(&["a", "b"], "x"), (&["b", "c"], "y")]);
    let same_output = edit(&base, &[(&["a", "b"], "x"), (&["c", "d"], "x")]);
    let in_and_out = edit(&base, &[(&["a", "b"], "b")]);
    for edit in [twice, same_output, in_and_out] {
        let CommitResult::Failed { error, tried_versions, .. } = bench.commit(&base, &edit).await else { panic!() };
        assert_eq!(error.class_name(), "DELTA_DUPLICATE_ACTIONS_FOUND");
        assert!(tried_versions.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_before_the_put_commits_nothing() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.cancel.cancel();
    let CommitResult::Failed { error, tried_versions, all_taken_by_others, .. } =
        bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await
    else {
        panic!()
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(tried_versions.is_empty() && all_taken_by_others);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_properties_are_committed_serializably_and_yield_to_any_other_metadata() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    let mut changed = base.log.metadata.clone();
    changed.configuration.insert("user".into(), "x".into());
    let mut edit = VersionEdit::default();
    edit.operation.name = "SET TBLPROPERTIES".into();
    edit.operation.parameters = vec![("properties".into(), json!(r#"{"user":"x"}"#).to_string())];
    bench.put(1, &[remove("a")]).await;
    let run = |changed| {
        crate::commit_bench::commit(
            &bench.store,
            &bench.root,
            &base,
            &edit,
            Some(NewConfiguration { metadata: Some(changed), ..NewConfiguration::default() }),
            &bench.world,
            &bench.cancel,
        )
    };
    let CommitResult::Committed(committed) = run(changed.clone()).await else { panic!() };
    assert_eq!(committed.version, 2);
    let actions = bench.actions(2).await.unwrap();
    assert_eq!(actions.len(), 2);
    assert_eq!(actions[0]["commitInfo"]["isolationLevel"], "Serializable");
    assert_eq!(actions[0]["commitInfo"]["operationParameters"]["properties"], r#"{"user":"x"}"#);
    assert_eq!(actions[1]["metaData"]["configuration"], json!({"user": "x"}));
    assert_eq!(bench.load().await.state.property("user"), Some("x"));
    let CommitResult::Failed { error, .. } = run(changed).await else { panic!() };
    assert_eq!(error.class_name(), "DELTA_METADATA_CHANGED");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_outputs_give_sparks_percentiles() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    let mut edit = edit(&base, &[(&["a", "b"], "x")]);
    edit.groups[0].added = (1..=6).map(|i| new_file(&format!("x{i}"), i)).collect();
    let committed = bench.committed(&base, &edit).await;
    let found = ["minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize"]
        .map(|k| committed.metrics[k].as_str());
    // Sizes 7 to 42 in steps of 7; Spark takes the elements number n/4, n/2 and 3n/4.
    assert_eq!(found, ["7", "14", "28", "35", "42"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_holds_other_commits_takes_none_of_ours() {
    let first = [protocol(&[]).clone(), metadata(&[]), add("a", 10), add("b", 10)];
    let base = Bench::new(&first).await.load().await;
    // The same text, but another object: of the time alone it is seen that this is not the log that was loaded.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let same_text = Bench::new(&first).await;
    let gone = Bench::new(&first).await;
    gone.objects.delete(&gone.store.path(&gone.commit_location(0)).unwrap()).await.unwrap();
    for bench in [same_text, gone] {
        let result = bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await;
        let CommitResult::Failed { error, tried_versions, all_taken_by_others, .. } = result else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains("not the one that was loaded"), "{error}");
        assert!(tried_versions.is_empty() && all_taken_by_others);
        assert!(bench.actions(1).await.is_none());
    }
}
