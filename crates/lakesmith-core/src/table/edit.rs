//! An intended change of a table, free of any format.

use std::collections::BTreeMap;

use super::{FileMarks, FileStats, PartitionTuple, RowMapSegment};

/// Logical identity of a file in a log: path as stored plus the unique id of its vector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileKey {
    /// Path as stored in the log.
    pub path: String,
    /// Unique id of the deletion vector, if the file has one.
    pub vector_id: Option<String>,
}

/// A new data file to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFile {
    /// On-disk path relative to the table root, not URL-encoded; the format encodes it.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Modification time, milliseconds.
    pub modified_ms: i64,
    /// Partition.
    pub partition: PartitionTuple,
    /// Statistics over its rows.
    pub stats: FileStats,
    /// Tags and clustering provider.
    pub marks: FileMarks,
}

/// Files that leave and enter together: one finished task. A conflict drops whole groups only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupEdit {
    /// Inputs, by id in the loaded [`super::FileTable`].
    pub removed: Vec<super::FileId>,
    /// Outputs.
    pub added: Vec<NewFile>,
    /// Where the inputs' rows went, so that deletes committed meanwhile can follow them. A row that is not in it makes a
    /// delete of it drop the group.
    pub row_map: Vec<RowMapSegment>,
}

/// Operation name, parameters and metrics for the history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationInfo {
    /// `OPTIMIZE`, `REORG`, `SET TBLPROPERTIES`, …
    pub name: String,
    /// Parameters in order, each value a JSON text (`"\"[]\""` for a string holding `[]`, `false` for a boolean).
    pub parameters: Vec<(String, String)>,
    /// Text of the user's, kept in the history.
    pub user_metadata: Option<String>,
}

/// One intended version of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VersionEdit {
    /// Groups of file changes, each whole or not at all. All are rearrangements (`dataChange = false`).
    pub groups: Vec<GroupEdit>,
    /// Properties to set.
    pub set_properties: BTreeMap<String, String>,
    /// Properties to unset.
    pub unset_properties: Vec<String>,
    /// For the history.
    pub operation: OperationInfo,
    /// Metrics of an operation that changes neither files nor configuration and is committed for the history alone.
    pub history_only: Option<BTreeMap<String, String>>,
}
