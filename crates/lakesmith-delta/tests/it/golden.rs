//! Every golden table loads to what Spark says of it.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::ErrorKind;
use serde::Deserialize;

use crate::tables::{TestTable, golden_folder};

#[derive(Deserialize)]
struct Expected {
    rows: u64,
    files: usize,
    bytes: u64,
    version: u64,
    min_reader: u32,
    min_writer: u32,
    features: Vec<String>,
    properties: BTreeMap<String, String>,
    partition_columns: Vec<String>,
    clustering_columns: Vec<String>,
}

pub(crate) fn names() -> BTreeSet<String> {
    let folder = golden_folder();
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("no golden tables in {}: {e}", folder.display()));
    let directories = entries.map(|e| e.unwrap()).filter(|e| e.file_type().unwrap().is_dir());
    directories.map(|e| e.file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_table_loads_as_spark_describes_it() {
    let mut checked = 0;
    for name in names().iter().filter(|n| *n != "unknown_reader_feature") {
        let text = std::fs::read_to_string(golden_folder().join(format!("{name}.expected.json"))).unwrap();
        let expected: Expected = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let table = TestTable::golden(name);
        let loaded = table.try_load(Default::default()).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let state = &loaded.state;
        assert_eq!(state.version, expected.version, "{name}");
        assert_eq!(state.files.len(), expected.files, "{name}");
        assert_eq!(state.files.total_bytes(), expected.bytes, "{name}");
        assert_eq!(state.features, expected.features, "{name}");
        assert_eq!(state.properties, expected.properties, "{name}");
        assert_eq!(
            (state.min_reader_version, state.min_writer_version),
            (expected.min_reader, expected.min_writer),
            "{name}"
        );
        assert_eq!(state.partition_columns, expected.partition_columns, "{name}");
        let clustering: Vec<String> = state.clustering_columns.iter().flatten().map(|c| c.join(".")).collect();
        assert_eq!(clustering, expected.clustering_columns, "{name}");
        let live: u64 = state.files.iter().map(|f| f.rows.unwrap() - f.deleted_rows()).sum();
        assert_eq!(live, expected.rows, "{name}");
        for file in state.files.iter() {
            let at = table.root().resolve(file.path).unwrap();
            assert!(table.store().exists(&at).await.unwrap(), "{name}: {} is not at {at}", file.path);
        }
        checked += 1;
    }
    assert!(checked >= 30, "only {checked} golden tables were found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_reader_feature_is_refused_by_name() {
    let error = TestTable::golden("unknown_reader_feature").error().await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
    assert!(error.message().contains("fancyFutureThing"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_writer_feature_reads_but_is_not_written() {
    let table = TestTable::golden("unknown_writer_feature").load().await;
    let error = lakesmith_delta::check_writable(&table).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
    assert!(error.message().contains("fancyFutureThing"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_golden_table_may_be_written() {
    for name in names().iter().filter(|n| !n.starts_with("unknown_")) {
        let table = TestTable::golden(name).load().await;
        lakesmith_delta::check_writable(&table).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_tracking_and_in_commit_timestamps_are_seen() {
    let table = TestTable::golden("row_tracking").load().await;
    assert!(table.log.row_id_high_water_mark.unwrap() >= 79);
    assert!(table.state.files.iter().all(|f| f.base_row_id.is_some() && f.row_commit_version.is_some()));
    let table = TestTable::golden("ict").load().await;
    assert!(table.log.in_commit_timestamps);
    let text = std::fs::read_to_string(TestTable::golden("ict").commit_path(2)).unwrap();
    assert!(text.contains(&format!("\"inCommitTimestamp\":{}", table.log.commit_timestamp_ms)));
}
