//! Metadata tables of an Iceberg table that its metadata file alone gives.
//!
//! # Source
//! Iceberg `SnapshotsTable`, `HistoryTable`, `RefsTable`, `MetadataLogEntriesTable`.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::table::{DataType, Field, MetadataTable, Rows, Scalar, Schema, Value};
use lakesmith_iceberg::IcebergTable;
use lakesmith_iceberg::metadata::RefKind;

/// True for a name that [`table`] knows.
pub(crate) fn is_known(kind: &str) -> bool {
    ["snapshots", "history", "refs", "metadata_log_entries"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// The metadata table of this name.
pub(crate) fn table(table: &IcebergTable, kind: &str) -> Option<MetadataTable> {
    let (columns, rows) = match kind {
        "snapshots" => (snapshot_columns(), snapshots(table)),
        "history" => (history_columns(), history(table)),
        "refs" => (ref_columns(), refs(table)),
        "metadata_log_entries" => (log_columns(), metadata_log(table)),
        _ => return None,
    };
    let fields = columns.into_iter().map(|(name, data_type)| field(name, data_type)).collect();
    Some(MetadataTable { schema: Schema { fields }, rows: Box::new(std::iter::once(Ok(rows))) })
}

fn field(name: &str, data_type: DataType) -> Field {
    Field {
        name: name.to_owned(),
        physical: name.to_owned(),
        id: None,
        data_type,
        nullable: true,
        metadata: BTreeMap::new(),
    }
}

fn instant(ms: i64) -> Value {
    Value::Scalar(ms.checked_mul(1000).map_or(Scalar::Null, Scalar::Timestamp))
}

fn snapshot_columns() -> Vec<(&'static str, DataType)> {
    let text = || Box::new(field("value", DataType::String));
    vec![
        ("committed_at", DataType::Timestamp),
        ("snapshot_id", DataType::Long),
        ("parent_id", DataType::Long),
        ("operation", DataType::String),
        ("manifest_list", DataType::String),
        ("summary", DataType::Map(Box::new(field("key", DataType::String)), text())),
    ]
}

fn snapshots(table: &IcebergTable) -> Rows {
    let row = |s: &lakesmith_iceberg::Snapshot| {
        let summary = s.summary.iter().filter(|(key, _)| *key != "operation");
        vec![
            instant(s.timestamp_ms),
            s.snapshot_id.into(),
            Value::of(s.parent_snapshot_id),
            Value::of(s.operation()),
            Value::of(s.manifest_list.clone()),
            Value::Map(summary.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()),
        ]
    };
    table.log.metadata.snapshots.iter().map(row).collect()
}

fn history_columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("made_current_at", DataType::Timestamp),
        ("snapshot_id", DataType::Long),
        ("parent_id", DataType::Long),
        ("is_current_ancestor", DataType::Boolean),
    ]
}

fn history(table: &IcebergTable) -> Rows {
    let metadata = &table.log.metadata;
    let mut ancestors = BTreeSet::new();
    let mut next = metadata.current_snapshot_id;
    while let Some(id) = next.filter(|id| ancestors.insert(*id)) {
        next = metadata.snapshot(id).and_then(|snapshot| snapshot.parent_snapshot_id);
    }
    let row = |entry: &lakesmith_iceberg::metadata::SnapshotLogEntry| {
        let snapshot = metadata.snapshot(entry.snapshot_id);
        vec![
            instant(entry.timestamp_ms),
            entry.snapshot_id.into(),
            Value::of(snapshot.and_then(|s| s.parent_snapshot_id)),
            ancestors.contains(&entry.snapshot_id).into(),
        ]
    };
    metadata.snapshot_log.iter().map(row).collect()
}

fn ref_columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("name", DataType::String),
        ("type", DataType::String),
        ("snapshot_id", DataType::Long),
        ("max_reference_age_in_ms", DataType::Long),
        ("min_snapshots_to_keep", DataType::Integer),
        ("max_snapshot_age_in_ms", DataType::Long),
    ]
}

fn refs(table: &IcebergTable) -> Rows {
    let refs = table.log.metadata.refs.iter();
    refs.map(|(name, reference)| {
        let kind = if reference.kind == RefKind::Tag { "TAG" } else { "BRANCH" };
        vec![
            name.as_str().into(),
            kind.into(),
            reference.snapshot_id.into(),
            Value::of(reference.max_ref_age_ms),
            Value::of(reference.min_snapshots_to_keep),
            Value::of(reference.max_snapshot_age_ms),
        ]
    })
    .collect()
}

fn log_columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("timestamp", DataType::Timestamp),
        ("file", DataType::String),
        ("latest_snapshot_id", DataType::Long),
        ("latest_schema_id", DataType::Integer),
        ("latest_sequence_number", DataType::Long),
    ]
}

fn metadata_log(table: &IcebergTable) -> Rows {
    let metadata = &table.log.metadata;
    let current = (metadata.last_updated_ms, table.log.metadata_location.to_string());
    let entries = metadata.metadata_log.iter().map(|entry| (entry.timestamp_ms, entry.metadata_file.clone()));
    entries
        .chain([current])
        .map(|(timestamp_ms, file)| {
            // The snapshot that was current then; the log of snapshots is in the order of time.
            let then = metadata.snapshot_log.iter().rev().find(|entry| entry.timestamp_ms <= timestamp_ms);
            let snapshot = then.and_then(|entry| metadata.snapshot(entry.snapshot_id));
            vec![
                instant(timestamp_ms),
                file.into(),
                Value::of(then.map(|entry| entry.snapshot_id)),
                Value::of(snapshot.and_then(|s| s.schema_id)),
                Value::of(snapshot.map(|s| s.sequence_number)),
            ]
        })
        .collect()
}
