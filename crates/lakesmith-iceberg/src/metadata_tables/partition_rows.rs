//! `partitions`: live files summed up by partition.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use lakesmith_core::Result;
use lakesmith_core::table::Scalar;
use lakesmith_storage::Store;

use super::files::{Reach, read_entries};
use super::partition_type::{in_columns, partition_columns};
use crate::manifest::{Content, Entry, Metrics, Status};
use crate::manifest_list::ManifestFile;
use crate::table::IcebergTable;

/// A row of `partitions`. Times are milliseconds since the epoch.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct PartitionRow {
    /// A value for each of [`partition_columns`].
    pub partition: Vec<Scalar>,
    pub spec_id: i32,
    pub record_count: u64,
    pub file_count: u32,
    pub total_data_file_size_in_bytes: u64,
    pub position_delete_record_count: u64,
    pub position_delete_file_count: u32,
    pub equality_delete_record_count: u64,
    pub equality_delete_file_count: u32,
    pub last_updated_at: Option<i64>,
    pub last_updated_snapshot_id: Option<i64>,
}

/// The partitions of the snapshot that was loaded, by their values. A table that was never partitioned has one, unless it
/// is empty.
///
/// # Errors
/// As [`crate::load`].
pub async fn partitions(store: &Store, table: &IcebergTable) -> Result<Vec<PartitionRow>> {
    let metadata = &table.log.metadata;
    let columns = partition_columns(metadata);
    let mut rows: BTreeMap<Vec<Scalar>, PartitionRow> = BTreeMap::new();
    let live = ManifestFile::may_hold_live_files;
    let mut read = read_entries(store, table, Reach::Snapshot, live, Metrics::Of(Vec::new())).await?;
    while let Some(entries) = read.try_next().await? {
        for entry in entries.into_iter().filter(|entry| entry.status != Status::Deleted) {
            let partition = in_columns(&columns, metadata, entry.file.spec_id, &entry.file.partition);
            let row = rows
                .entry(partition)
                .or_insert_with_key(|key| PartitionRow { partition: key.clone(), ..PartitionRow::default() });
            row.add(&entry);
            let snapshot = entry.snapshot_id.and_then(|id| metadata.snapshot(id));
            if let Some(snapshot) = snapshot
                && row.last_updated_at.is_none_or(|last| snapshot.timestamp_ms > last)
            {
                row.last_updated_at = Some(snapshot.timestamp_ms);
                row.last_updated_snapshot_id = Some(snapshot.snapshot_id);
            }
        }
    }
    Ok(rows.into_values().collect())
}

impl PartitionRow {
    fn add(&mut self, entry: &Entry) {
        let (rows, files) = match entry.file.content {
            Content::Data => {
                let bytes = &mut self.total_data_file_size_in_bytes;
                *bytes = bytes.saturating_add(entry.file.size);
                (&mut self.record_count, &mut self.file_count)
            }
            Content::PositionDeletes => (&mut self.position_delete_record_count, &mut self.position_delete_file_count),
            Content::EqualityDeletes => (&mut self.equality_delete_record_count, &mut self.equality_delete_file_count),
        };
        *rows = rows.saturating_add(entry.file.record_count);
        *files = files.saturating_add(1);
        self.spec_id = entry.file.spec_id;
    }
}
