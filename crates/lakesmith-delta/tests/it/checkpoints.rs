//! Checkpoints that we write: readers that start from them see what the log said.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::op::TimeTravel;
use lakesmith_delta::{DeltaTable, write_checkpoint};
use serde_json::{Value, json};

use crate::commit_bench::{Bench, add, edit, metadata, protocol, remove, vector, with};
use crate::tables::{TestTable, golden_folder};

/// Everything that a reader sees of a table, but for how the text of statistics is spelled.
fn seen(table: &DeltaTable) -> (BTreeSet<String>, String) {
    let file = |f: lakesmith_core::table::DataFile<'_>| {
        let stats: Option<Value> = f.stats_json.map(|text| serde_json::from_str(text).unwrap());
        let deletes = f.deletes.map(|d| (&d.unique_id, d.size_in_bytes, d.cardinality));
        format!(
            "{} {} {:?} {} {:?} {:?} {deletes:?} {:?} {:?} {stats:?}",
            f.path, f.size, f.rows, f.modified_ms, f.partition.raw, f.marks, f.base_row_id, f.row_commit_version
        )
    };
    let log = &table.log;
    let rest = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        log.protocol, log.metadata, log.domains, log.row_id_high_water_mark, table.state.features
    );
    (table.state.files.iter().map(file).collect(), rest)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_table_reads_the_same_from_our_checkpoint() {
    let mut written = 0;
    for entry in std::fs::read_dir(golden_folder()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.file_type().unwrap().is_dir() || name.starts_with("unknown_") {
            continue;
        }
        let table = TestTable::golden(&name);
        let before = table.load().await;
        let version = before.state.version;
        let info =
            write_checkpoint(&table.store(), &table.root(), version).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let Some(counts) = info.written else { continue };
        written += 1;
        assert_eq!(counts.add_files, before.state.files.len() as u64, "{name}");
        // The commit of the version itself stays, as its time may be the table's.
        for older in 0..version {
            let _ = std::fs::remove_file(table.commit_path(older));
        }
        let after = table.try_load(TimeTravel::Latest).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(after.log.checkpoint_version, Some(version), "{name}");
        assert_eq!(seen(&after), seen(&before), "{name}");
        let hint = std::fs::read(table.path().join("_delta_log/_last_checkpoint")).unwrap();
        let hint: Value = serde_json::from_slice(&hint).unwrap();
        assert_eq!((&hint["version"], &hint["numOfAddFiles"]), (&json!(version), &json!(counts.add_files)), "{name}");
    }
    assert!(written >= 25, "only {written} checkpoints were written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_put_in_again_before_it_is_taken_out_stays() {
    let dv = |offset| [("deletionVector", vector(offset, 1))];
    let bench = Bench::new(&[protocol(&["deletionVectors"]), metadata(&[]), add("a", 10), add("b", 10)]).await;
    // Spark's order: the add with its new vector first, the remove of the state before it second.
    bench.put(1, &[with(add("a", 10), "add", &dv(1)), remove("a")]).await;
    bench.put(2, &[with(add("a", 10), "add", &dv(50)), with(remove("a"), "remove", &dv(1)), remove("b")]).await;
    let info = write_checkpoint(&bench.store, &bench.root, 2).await.unwrap();
    assert_eq!(info.written.unwrap().add_files, 1);
    let table = bench.load().await;
    assert_eq!(table.log.checkpoint_version, Some(2));
    let file = table.state.files.iter().next().unwrap();
    assert_eq!((file.path, file.deletes.unwrap().offset), ("a", Some(50)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_follows_every_interval_and_the_hint_never_goes_back() {
    let bench = Bench::new(&[
        protocol(&[]),
        metadata(&[("delta.checkpointInterval", "2"), ("delta.enableExpiredLogCleanup", "false")]),
        add("a", 10),
        add("b", 10),
        add("c", 10),
    ])
    .await;
    let hint = async || {
        let bytes = bench.store.get(&bench.root.join("_delta_log/_last_checkpoint")).await.ok()?;
        serde_json::from_slice::<Value>(&bytes).unwrap()["version"].as_u64()
    };
    let base = bench.load().await;
    bench.committed(&base, &edit(&base, &[(&["a"], "x")])).await;
    assert_eq!(hint().await, None);
    bench.committed(&base, &edit(&base, &[(&["b"], "y")])).await;
    assert_eq!(hint().await, Some(2));
    let after = bench.load().await;
    assert_eq!(after.log.checkpoint_version, Some(2));
    assert_eq!(after.state.files.iter().map(|f| f.path).collect::<BTreeSet<_>>(), BTreeSet::from(["c", "x", "y"]));
    write_checkpoint(&bench.store, &bench.root, 1).await.unwrap();
    assert_eq!(hint().await, Some(2));
    assert_eq!(write_checkpoint(&bench.store, &bench.root, 2).await.unwrap().written, None);
    // A version that the log does not reach stays named: nothing else may tell that commits were lost.
    let beyond = bytes::Bytes::from_static(br#"{"version":50,"size":1}"#);
    bench.store.put(&bench.root.join("_delta_log/_last_checkpoint"), beyond).await.unwrap();
    bench.committed(&after, &edit(&after, &[(&["x"], "z")])).await;
    bench.committed(&after, &edit(&after, &[(&["y"], "w")])).await;
    assert_eq!((bench.load().await.state.version, hint().await), (4, Some(50)));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_unknown_features_get_no_checkpoint() {
    let table = TestTable::golden("unknown_writer_feature");
    let version = table.load().await.state.version;
    let error = write_checkpoint(&table.store(), &table.root(), version).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
    let files: BTreeMap<_, _> = std::fs::read_dir(table.path().join("_delta_log"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains("checkpoint"))
        .map(|n| (n, ()))
        .collect();
    assert!(files.is_empty(), "{files:?}");
}
