//! ALTER TABLE … SET | UNSET TBLPROPERTIES is checked as Delta checks it.

use lakesmith_core::ErrorKind;
use lakesmith_core::op::AlterProperties;
use lakesmith_delta::{DeltaTable, NewConfiguration, validate_properties};
use lakesmith_storage::World as _;

use crate::commit_bench::Bench;
use crate::tables::{PROTOCOL, TestTable, add, metadata};

async fn table(properties: &str) -> DeltaTable {
    let commit = format!("{PROTOCOL}\n{}\n{}", metadata("string", false, properties), add("a", None, 1));
    TestTable::with_commits(&[&commit]).load().await
}

fn set(table: &DeltaTable, key: &str, value: &str) -> lakesmith_core::Result<NewConfiguration> {
    validate_properties(table, &AlterProperties { set: [(key.into(), value.into())].into(), ..Default::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn known_keys_get_their_canonical_case_and_others_stay() {
    let table = table(r#"{"mine":"1"}"#).await;
    let new = set(&table, "DELTA.appendonly", "true").unwrap();
    assert_eq!(new.metadata.as_ref().unwrap().configuration["delta.appendOnly"], "true");
    assert_eq!(new.metadata.as_ref().unwrap().configuration["mine"], "1");
    assert_eq!(new.protocol, None);
    assert_eq!(set(&table, "My.Key", "x").unwrap().metadata.unwrap().configuration["My.Key"], "x");
    assert_eq!(set(&table, "comment", "text").unwrap().metadata.unwrap().description.as_deref(), Some("text"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_values_and_unknown_keys_are_refused() {
    let table = table("{}").await;
    let error = set(&table, "delta.nope", "1").unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::Usage, "DELTA_UNKNOWN_CONFIGURATION"));
    assert!(error.message().starts_with("Unknown configuration was specified: delta.nope"));
    for (key, value, message) in [
        (
            "delta.dataSkippingNumIndexedCols",
            "-2",
            "delta.dataSkippingNumIndexedCols needs to be larger than or equal to -1.",
        ),
        ("delta.autoOptimize.autoCompact", "maybe", "delta.autoOptimize.autoCompact \"needs to be one of: true,false"),
    ] {
        assert_eq!(set(&table, key, value).unwrap_err().message(), message);
    }
    for (key, value, class) in [
        ("delta.dataSkippingStatsColumns", "nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("delta.dataSkippingStatsColumns", "id,ID", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("delta.feature.clustering", "supported", "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"),
        ("delta.feature.nope", "supported", "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ("delta.constraints.c", "id > 0", "DELTA_ADD_CONSTRAINTS"),
        ("delta.minWriterVersion", "1", "DELTA_INVALID_PROTOCOL_DOWNGRADE"),
        ("delta.rowTracking.materializedRowIdColumnName", "x", "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
    ] {
        assert_eq!(set(&table, key, value).unwrap_err().class_name(), class, "{key}");
    }
    let arbitrary = AlterProperties {
        set: [("delta.nope".into(), "1".into())].into(),
        allow_arbitrary: true,
        ..Default::default()
    };
    assert!(validate_properties(&table, &arbitrary).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_that_need_a_feature_upgrade_the_protocol() {
    let table = table("{}").await;
    let new = set(&table, "delta.enableDeletionVectors", "true").unwrap();
    let protocol = new.protocol.unwrap();
    assert_eq!((protocol.min_reader_version, protocol.min_writer_version), (3, 7));
    assert_eq!(protocol.reader_features.unwrap(), ["deletionVectors"]);
    assert!(protocol.writer_features.unwrap().contains(&"invariants".to_string()));
    let protocol = set(&table, "delta.enableChangeDataFeed", "true").unwrap().protocol.unwrap();
    assert_eq!((protocol.min_reader_version, protocol.min_writer_version), (1, 7));
    let new = set(&table, "delta.feature.domainMetadata", "supported").unwrap();
    assert!(new.protocol.unwrap().writer_features.unwrap().contains(&"domainMetadata".to_string()));
    assert!(new.metadata.as_ref().unwrap().configuration.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn mapping_by_name_gives_ids_and_keeps_the_names() {
    let table = table("{}").await;
    let new = set(&table, "delta.columnMapping.mode", "name").unwrap();
    let protocol = new.protocol.unwrap();
    assert_eq!((protocol.min_reader_version, protocol.min_writer_version, protocol.reader_features), (2, 7, None));
    assert!(protocol.writer_features.unwrap().contains(&"columnMapping".to_string()));
    assert_eq!(new.metadata.as_ref().unwrap().configuration["delta.columnMapping.mode"], "name");
    assert_eq!(new.metadata.as_ref().unwrap().configuration["delta.columnMapping.maxColumnId"], "2");
    let schema: serde_json::Value = serde_json::from_str(&new.metadata.as_ref().unwrap().schema_string).unwrap();
    for (i, name) in ["id", "p"].into_iter().enumerate() {
        let metadata = &schema["fields"][i]["metadata"];
        assert_eq!(metadata["delta.columnMapping.physicalName"], name);
        assert_eq!(metadata["delta.columnMapping.id"], i + 1);
    }
    for (from, to) in [("name", "none"), ("name", "id"), ("id", "name")] {
        let mapped = format!(r#"{{"delta.columnMapping.mode":"{from}"}}"#);
        let commit = format!("{PROTOCOL}\n{}\n{}", metadata("string", false, &mapped), add("a", None, 1));
        let commit = commit.replace(
            r#"\"metadata\":{}"#,
            r#"\"metadata\":{\"delta.columnMapping.id\":1,\"delta.columnMapping.physicalName\":\"c\"}"#,
        );
        let table = TestTable::with_commits(&[&commit]).load().await;
        let error = set(&table, "delta.columnMapping.mode", to).unwrap_err();
        assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "{from} {to}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commit_that_begins_the_tables_own_clock_says_when() {
    for file_is_ahead in [false, true] {
        let bench = Bench::plain().await;
        let base = bench.load().await;
        let now_ms = bench.world.now_ms();
        let mut base = base;
        if file_is_ahead {
            base.log.commit_timestamp_ms = now_ms + 1_000;
        }
        let new = set(&base, "delta.enableInCommitTimestamps", "true").unwrap();
        let committed = bench.configure(&base, new).await.unwrap();
        assert_eq!(committed.version, 1);
        let after = bench.load().await;
        let expected = after.log.commit_timestamp_ms;
        assert!(after.log.in_commit_timestamps);
        if file_is_ahead {
            assert_eq!(expected, now_ms + 1_001);
        } else {
            // The clock of the test goes on by itself.
            assert!((now_ms..now_ms + 1_000).contains(&expected), "{expected}");
        }
        let property = |key: &str| after.state.properties[key].clone();
        assert_eq!(property("delta.inCommitTimestampEnablementVersion"), "1");
        assert_eq!(property("delta.inCommitTimestampEnablementTimestamp"), expected.to_string());
        assert!(after.state.has_feature("inCommitTimestamp"));
    }
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.put(1, &[crate::commit_bench::add("late", 1)]).await;
    let new = set(&base, "delta.enableInCommitTimestamps", "true").unwrap();
    assert_eq!(bench.configure(&base, new).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_need_more_than_metadata_are_refused() {
    let table = table("{}").await;
    for (key, value) in [
        ("delta.columnMapping.mode", "id"),
        ("delta.enableRowTracking", "true"),
        ("delta.enableIcebergCompatV2", "true"),
    ] {
        let error = set(&table, key, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{key}");
        assert_eq!(error.context_value("property"), Some(key));
    }
    assert!(set(&table, "delta.columnMapping.mode", "none").is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn unset_needs_the_key_unless_told_otherwise() {
    let table = table(r#"{"mine":"1","delta.appendOnly":"true"}"#).await;
    let unset = |key: &str, if_exists| {
        validate_properties(&table, &AlterProperties { unset: vec![key.into()], if_exists, ..Default::default() })
    };
    assert!(!unset("mine", false).unwrap().metadata.unwrap().configuration.contains_key("mine"));
    assert!(
        !unset("delta.APPENDONLY", false).unwrap().metadata.unwrap().configuration.contains_key("delta.appendOnly")
    );
    let error = unset("nope", false).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_UNSET_NON_EXISTENT_PROPERTY");
    assert!(error.message().starts_with("Attempted to unset non-existent property 'nope' in table "));
    assert!(unset("nope", true).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_must_outlive_the_files_it_removed() {
    let table = table("{}").await;
    let error = set(&table, "delta.logRetentionDuration", "interval 1 day").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(set(&table, "delta.logRetentionDuration", "interval 7 days").is_ok());
    assert!(set(&table, "delta.deletedFileRetentionDuration", "interval 31 days").is_err());
}
