//! ALTER TABLE … SET | UNSET TBLPROPERTIES is checked as Delta checks it.

use lakesmith_core::ErrorKind;
use lakesmith_core::op::AlterProperties;
use lakesmith_delta::{DeltaTable, NewConfiguration, validate_properties};

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
    assert_eq!(new.metadata.configuration["delta.appendOnly"], "true");
    assert_eq!(new.metadata.configuration["mine"], "1");
    assert_eq!(new.protocol, None);
    assert_eq!(set(&table, "My.Key", "x").unwrap().metadata.configuration["My.Key"], "x");
    assert_eq!(set(&table, "comment", "text").unwrap().metadata.description.as_deref(), Some("text"));
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
    assert!(new.metadata.configuration.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_need_more_than_metadata_are_refused() {
    let table = table("{}").await;
    for (key, value) in [
        ("delta.columnMapping.mode", "name"),
        ("delta.enableInCommitTimestamps", "true"),
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
    assert!(!unset("mine", false).unwrap().metadata.configuration.contains_key("mine"));
    assert!(!unset("delta.APPENDONLY", false).unwrap().metadata.configuration.contains_key("delta.appendOnly"));
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
