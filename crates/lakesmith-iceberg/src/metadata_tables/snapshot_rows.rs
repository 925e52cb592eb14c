//! What the metadata file alone tells: snapshots, history, branches and tags, earlier metadata files.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::{RefKind, TableMetadata};
use crate::table::IcebergTable;

/// A row of `snapshots`. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct SnapshotRow {
    pub committed_at: i64,
    pub snapshot_id: i64,
    pub parent_id: Option<i64>,
    pub operation: Option<String>,
    pub manifest_list: Option<String>,
    /// Without the operation.
    pub summary: BTreeMap<String, String>,
}

/// A row of `history`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct HistoryRow {
    pub made_current_at: i64,
    pub snapshot_id: i64,
    pub parent_id: Option<i64>,
    pub is_current_ancestor: bool,
}

/// A row of `refs`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct RefRow {
    pub name: String,
    /// `BRANCH` or `TAG`.
    pub kind: &'static str,
    pub snapshot_id: i64,
    pub max_reference_age_in_ms: Option<i64>,
    pub min_snapshots_to_keep: Option<i32>,
    pub max_snapshot_age_in_ms: Option<i64>,
}

/// A row of `metadata_log_entries`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct MetadataLogRow {
    pub timestamp: i64,
    pub file: String,
    pub latest_snapshot_id: Option<i64>,
    pub latest_schema_id: Option<i32>,
    pub latest_sequence_number: Option<i64>,
}

/// The snapshots, in the order of the metadata.
pub fn snapshots(table: &IcebergTable) -> Vec<SnapshotRow> {
    let rows = table.log.metadata.snapshots.iter();
    rows.map(|snapshot| {
        let mut summary = snapshot.summary.clone();
        let operation = summary.remove("operation");
        SnapshotRow {
            committed_at: snapshot.timestamp_ms,
            snapshot_id: snapshot.snapshot_id,
            parent_id: snapshot.parent_snapshot_id,
            operation,
            manifest_list: snapshot.manifest_list.clone(),
            summary,
        }
    })
    .collect()
}

/// Which snapshot was current from when on.
pub fn history(table: &IcebergTable) -> Vec<HistoryRow> {
    let metadata = &table.log.metadata;
    let ancestors = ancestors(metadata);
    let rows = metadata.snapshot_log.iter();
    rows.map(|entry| HistoryRow {
        made_current_at: entry.timestamp_ms,
        snapshot_id: entry.snapshot_id,
        parent_id: metadata.snapshot(entry.snapshot_id).and_then(|snapshot| snapshot.parent_snapshot_id),
        is_current_ancestor: ancestors.contains(&entry.snapshot_id),
    })
    .collect()
}

/// The current snapshot and those that it was made from.
fn ancestors(metadata: &TableMetadata) -> BTreeSet<i64> {
    let mut ancestors = BTreeSet::new();
    let mut next = metadata.current_snapshot_id;
    while let Some(snapshot) = next.and_then(|id| metadata.snapshot(id)) {
        // Parents that go round in a circle are no reason to do so.
        if !ancestors.insert(snapshot.snapshot_id) {
            break;
        }
        next = snapshot.parent_snapshot_id;
    }
    ancestors
}

/// Branches and tags, by name.
pub fn refs(table: &IcebergTable) -> Vec<RefRow> {
    let rows = table.log.metadata.refs.iter();
    rows.map(|(name, reference)| RefRow {
        name: name.clone(),
        kind: match reference.kind {
            RefKind::Branch => "BRANCH",
            RefKind::Tag => "TAG",
        },
        snapshot_id: reference.snapshot_id,
        max_reference_age_in_ms: reference.max_ref_age_ms,
        min_snapshots_to_keep: reference.min_snapshots_to_keep,
        max_snapshot_age_in_ms: reference.max_snapshot_age_ms,
    })
    .collect()
}

/// Metadata files, the one that was read last, each with the snapshot that was current then.
pub fn metadata_log(table: &IcebergTable) -> Vec<MetadataLogRow> {
    let metadata = &table.log.metadata;
    let row = |timestamp: i64, file: String| {
        let current = metadata.snapshot_log.iter().rfind(|entry| entry.timestamp_ms <= timestamp);
        let snapshot = current.and_then(|entry| metadata.snapshot(entry.snapshot_id));
        MetadataLogRow {
            timestamp,
            file,
            latest_snapshot_id: current.map(|entry| entry.snapshot_id),
            latest_schema_id: snapshot.and_then(|snapshot| snapshot.schema_id),
            latest_sequence_number: snapshot.map(|snapshot| snapshot.sequence_number),
        }
    };
    let earlier = metadata.metadata_log.iter().map(|entry| row(entry.timestamp_ms, entry.metadata_file.clone()));
    let current = format!("{}/metadata/{}", metadata.location, table.log.metadata_location.file_name());
    earlier.chain([row(metadata.last_updated_ms, current)]).collect()
}
