//! The metadata tables of a table, as Spark has them, row by row and without any engine.
//!
//! | table | rows |
//! |---|---|
//! | `snapshots`, `history`, `refs`, `metadata_log_entries` | from the metadata file alone: [`snapshots`], [`history`], [`refs`], [`metadata_log`] |
//! | `manifests`, `all_manifests` | from manifest lists: [`manifests`], [`all_manifests`] |
//! | `files`, `data_files`, `delete_files` and `all_…` of them | from manifests, streamed: [`files`] |
//! | `entries`, `all_entries` | from manifests, streamed: [`entries`] |
//! | `partitions` | from manifests, summed up: [`partitions`] |
//!
//! Fields of rows are called as the columns are, and stand in their order.
//!
//! # Source
//! Apache Iceberg documentation, "Querying with SQL", "Inspecting tables"; its classes `SnapshotsTable`, `BaseFilesTable`,
//! `ManifestEntriesTable`, `PartitionsTable` and their like.

mod entries;
mod files;
mod manifest_rows;
mod metrics;
mod partition_rows;
mod partition_type;
mod snapshot_rows;

pub use entries::{EntryRow, entries};
pub use files::{FileKinds, FileRow, Reach, files};
pub use manifest_rows::{ManifestRow, PartitionSummary, all_manifests, manifests};
pub use metrics::{ReadableMetrics, metric_columns, readable_metrics};
pub use partition_rows::{PartitionRow, partitions};
pub use partition_type::{PartitionColumn, partition_columns};
pub use snapshot_rows::{HistoryRow, MetadataLogRow, RefRow, SnapshotRow, history, metadata_log, refs, snapshots};
