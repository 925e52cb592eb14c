//! `files`, `data_files`, `delete_files`, and `all_…` of them.

use std::collections::BTreeSet;

use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;
use lakesmith_core::table::Scalar;
use lakesmith_storage::Store;

use super::partition_type::{PartitionColumn, in_columns, partition_columns};
use crate::manifest::{ContentFile, Entry, Metrics, Status};
use crate::manifest_list::{self, ManifestContent, ManifestFile};
use crate::metadata::TableMetadata;
use crate::snapshot_files::ManifestReader;
use crate::table::IcebergTable;

/// Of which snapshots rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The one that was loaded.
    Snapshot,
    /// Those that the metadata names; a manifest that several have in common counts once.
    All,
}

/// Which files are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKinds {
    /// Data files and delete files.
    Both,
    /// Data files.
    Data,
    /// Delete files.
    Deletes,
}

impl FileKinds {
    fn wants(self, content: ManifestContent) -> bool {
        match self {
            Self::Both => true,
            Self::Data => content == ManifestContent::Data,
            Self::Deletes => content == ManifestContent::Deletes,
        }
    }
}

/// A row of `files`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct FileRow {
    pub content: i32,
    pub file_path: String,
    pub file_format: &'static str,
    pub spec_id: i32,
    /// A value for each of [`partition_columns`].
    pub partition: Vec<Scalar>,
    pub record_count: u64,
    pub file_size_in_bytes: u64,
    pub column_sizes: Option<Vec<(i32, i64)>>,
    pub value_counts: Option<Vec<(i32, i64)>>,
    pub null_value_counts: Option<Vec<(i32, i64)>>,
    pub nan_value_counts: Option<Vec<(i32, i64)>>,
    pub lower_bounds: Option<Vec<(i32, Vec<u8>)>>,
    pub upper_bounds: Option<Vec<(i32, Vec<u8>)>>,
    pub key_metadata: Option<Vec<u8>>,
    pub split_offsets: Option<Vec<i64>>,
    pub equality_ids: Option<Vec<i32>>,
    pub sort_order_id: Option<i32>,
    pub first_row_id: Option<i64>,
    pub referenced_data_file: Option<String>,
    pub content_offset: Option<i64>,
    pub content_size_in_bytes: Option<i64>,
}

impl FileRow {
    pub(super) fn new(columns: &[PartitionColumn], metadata: &TableMetadata, file: ContentFile) -> Self {
        Self {
            content: file.content.number(),
            partition: in_columns(columns, metadata, file.spec_id, &file.partition),
            file_path: file.path,
            file_format: file.format.name(),
            spec_id: file.spec_id,
            record_count: file.record_count,
            file_size_in_bytes: file.size,
            column_sizes: file.column_sizes,
            value_counts: file.value_counts,
            null_value_counts: file.null_value_counts,
            nan_value_counts: file.nan_value_counts,
            lower_bounds: file.lower_bounds,
            upper_bounds: file.upper_bounds,
            key_metadata: file.key_metadata,
            split_offsets: file.split_offsets,
            equality_ids: file.equality_ids,
            sort_order_id: file.sort_order_id,
            first_row_id: file.first_row_id,
            referenced_data_file: file.referenced_data_file,
            content_offset: file.content_offset,
            content_size_in_bytes: file.content_size,
        }
    }
}

/// The live files, manifest by manifest.
///
/// # Errors
/// As [`crate::load`], also as items of the stream.
pub async fn files(
    store: &Store,
    table: &IcebergTable,
    kinds: FileKinds,
    reach: Reach,
) -> Result<BoxStream<'static, Result<Vec<FileRow>>>> {
    let metadata = table.log.metadata.clone();
    let columns = partition_columns(&metadata);
    let live = |manifest: &ManifestFile| manifest.may_hold_live_files() && kinds.wants(manifest.content);
    let entries = read_entries(store, table, reach, live, Metrics::All).await?;
    let rows = move |entries: Vec<Entry>| {
        let live = entries.into_iter().filter(|entry| entry.status != Status::Deleted);
        live.map(|entry| FileRow::new(&columns, &metadata, entry.file)).collect()
    };
    Ok(entries.map_ok(rows).boxed())
}

/// The entries of those manifests that `wanted` takes.
pub(super) async fn read_entries(
    store: &Store,
    table: &IcebergTable,
    reach: Reach,
    wanted: impl Fn(&ManifestFile) -> bool,
    metrics: Metrics,
) -> Result<BoxStream<'static, Result<Vec<Entry>>>> {
    let manifests: Vec<ManifestFile> = match reach {
        Reach::Snapshot => manifests_of(store, table).await?,
        Reach::All => {
            let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
            for snapshot in &table.log.metadata.snapshots {
                let listed = manifest_list::manifests(store, &table.paths(), snapshot).await?;
                all.extend(listed.into_iter().filter(|manifest| seen.insert(manifest.path.clone())));
            }
            all
        }
    };
    let manifests = manifests.into_iter().filter(|manifest| wanted(manifest)).collect();
    let reader = ManifestReader { store: store.clone(), paths: table.paths(), metadata: table.log.metadata.clone() };
    Ok(reader.read(manifests, metrics).map_ok(|manifest| manifest.entries).boxed())
}

/// The manifests of the snapshot that was loaded.
pub(super) async fn manifests_of(store: &Store, table: &IcebergTable) -> Result<Vec<ManifestFile>> {
    match table.snapshot() {
        Some(snapshot) if table.log.manifests.is_empty() => {
            manifest_list::manifests(store, &table.paths(), snapshot).await
        }
        _ => Ok(table.log.manifests.to_vec()),
    }
}
