//! `entries` and `all_entries`: what happened to each file, deleted ones included.

use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;
use lakesmith_storage::Store;

use super::files::{FileRow, Reach, read_entries};
use super::partition_type::partition_columns;
use crate::manifest::{Entry, Metrics};
use crate::table::IcebergTable;

/// A row of `entries`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct EntryRow {
    pub status: i32,
    pub snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub file_sequence_number: Option<i64>,
    pub data_file: FileRow,
}

/// The entries, manifest by manifest.
///
/// # Errors
/// As [`crate::load`], also as items of the stream.
pub async fn entries(
    store: &Store,
    table: &IcebergTable,
    reach: Reach,
) -> Result<BoxStream<'static, Result<Vec<EntryRow>>>> {
    let metadata = table.log.metadata.clone();
    let columns = partition_columns(&metadata);
    let read = read_entries(store, table, reach, |_| true, Metrics::All).await?;
    let row = move |entry: Entry| EntryRow {
        status: entry.status.number(),
        snapshot_id: entry.snapshot_id,
        sequence_number: entry.sequence_number,
        file_sequence_number: entry.file_sequence_number,
        data_file: FileRow::new(&columns, &metadata, entry.file),
    };
    Ok(read.map_ok(move |entries| entries.into_iter().map(&row).collect()).boxed())
}
