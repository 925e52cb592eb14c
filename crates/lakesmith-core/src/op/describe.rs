//! DESCRIBE DETAIL, DESCRIBE HISTORY and the list of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::table::{FileId, TableState};

/// Which version of a table is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TimeTravel {
    /// The newest.
    #[default]
    Latest,
    /// That version.
    Version(u64),
    /// The last version committed at or before this time, milliseconds since the epoch.
    Timestamp(i64),
    /// The one that a branch or a tag names.
    Reference(String),
}

/// Row of DESCRIBE DETAIL, columns in Spark's order.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Spark's own and documented there")]
pub struct DetailReport {
    pub format: String,
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub location: String,
    /// ISO timestamp with offset.
    pub created_at: Option<String>,
    /// ISO timestamp with offset.
    pub last_modified: String,
    pub partition_columns: Vec<String>,
    pub clustering_columns: Vec<String>,
    pub num_files: u64,
    pub size_in_bytes: u64,
    pub properties: BTreeMap<String, String>,
    pub min_reader_version: u32,
    pub min_writer_version: u32,
    pub table_features: Vec<String>,
    /// Ours: distinct partitions.
    pub num_partitions: u64,
    /// Ours: the version described.
    pub version: u64,
}

/// Options of DESCRIBE HISTORY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryOptions {
    /// Newest entries at most.
    pub limit: Option<u64>,
    /// Only commits that changed data.
    pub data_changes: bool,
    /// Find out which versions can still be read whole.
    pub readable: bool,
}

/// Row of DESCRIBE HISTORY, columns in Spark's order.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Spark's own and documented there")]
pub struct HistoryEntry {
    pub version: u64,
    /// ISO timestamp with offset.
    pub timestamp: String,
    pub user_id: Option<String>,
    pub user_name: Option<String>,
    pub operation: Option<String>,
    pub operation_parameters: Option<BTreeMap<String, Option<String>>>,
    pub job: Option<serde_json::Value>,
    pub notebook: Option<serde_json::Value>,
    pub cluster_id: Option<String>,
    pub read_version: Option<u64>,
    pub isolation_level: Option<String>,
    pub is_blind_append: Option<bool>,
    pub operation_metrics: Option<BTreeMap<String, String>>,
    pub user_metadata: Option<String>,
    pub engine_info: Option<String>,
    /// Ours: whether the version can still be read whole, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable: Option<bool>,
    /// Ours: files of the version that are missing, if that was asked for and its log is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_files: Option<u64>,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct HistoryReport(pub Vec<HistoryEntry>);

/// One live file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Path as stored in the log.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Physical rows, if known.
    pub num_records: Option<u64>,
    /// Rows deleted by the vector.
    pub deleted_rows: u64,
    /// Partition values by logical column name.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// ISO timestamp with offset.
    pub modification_time: String,
    /// Unique id of the vector.
    pub deletion_vector: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, Option<String>>,
    /// Row tracking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// Row tracking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// Clustering provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}

/// The live files by path. Entries are made one by one: all of them at once would take several times the memory of the
/// table's own state.
#[derive(Debug, Clone)]
pub struct FilesReport {
    state: Arc<TableState>,
    by_path: Vec<FileId>,
    written_time: fn(i64) -> String,
}

impl FilesReport {
    /// The files of a version; `written_time` writes milliseconds since the epoch.
    pub fn new(state: Arc<TableState>, written_time: fn(i64) -> String) -> Self {
        let mut by_path: Vec<FileId> = state.files.iter().map(|file| file.id).collect();
        by_path.sort_unstable_by_key(|id| state.files.get(*id).path);
        Self { state, by_path, written_time }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// True if there are no files.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.state.files.total_bytes()
    }

    /// The files, by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FileEntry> {
        self.by_path.iter().map(|id| self.entry(*id))
    }

    fn entry(&self, id: FileId) -> FileEntry {
        let file = self.state.files.get(id);
        let columns = self.state.partition_columns.iter().cloned();
        FileEntry {
            path: file.path.to_owned(),
            size: file.size,
            num_records: file.rows,
            deleted_rows: file.deleted_rows(),
            partition_values: columns.zip(file.partition.raw.iter().cloned()).collect(),
            modification_time: (self.written_time)(file.modified_ms),
            deletion_vector: file.deletes.map(|deletes| deletes.unique_id.clone()),
            tags: file.marks.tags.clone(),
            base_row_id: file.base_row_id,
            default_row_commit_version: file.row_commit_version,
            clustering_provider: file.marks.clustering_provider.clone(),
        }
    }
}

impl PartialEq for FilesReport {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl serde::Serialize for FilesReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
