//! An intended change of a table, free of any format.

use std::collections::{BTreeMap, BTreeSet};

use super::{DeletionVector, FileMarks, FileStats, PartitionTuple, RowMapSegment};
use crate::Result;
use crate::predicate::BoundPredicate;

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

/// Rows of a file that a change of rows deletes.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkedFile {
    /// The file.
    pub file: super::FileId,
    /// Positions of the rows; rows that are deleted already may be among them.
    pub rows: DeletionVector,
    /// Rows of the file, deleted ones counted.
    pub physical_rows: u64,
}

/// The rows on which a change of rows rests: one that another writer adds meanwhile must not be among them.
#[derive(Debug, Clone, Default)]
pub enum ReadSet {
    /// None: nothing was read.
    #[default]
    Nothing,
    /// Those of these partitions.
    Partitions(BTreeSet<PartitionTuple>),
    /// Those of the partitions for which a condition holds.
    Matching(BoundPredicate),
    /// All.
    Everything,
}

impl ReadSet {
    /// True if rows of the partition may be among them.
    ///
    /// # Errors
    /// Usage if the condition fails on the partition's values.
    pub fn may_hold(&self, partition: &PartitionTuple) -> Result<bool> {
        match self {
            Self::Nothing => Ok(false),
            Self::Partitions(partitions) => Ok(partitions.contains(partition)),
            Self::Matching(condition) => condition.matches(partition),
            Self::Everything => Ok(true),
        }
    }
}

/// Rows that enter and leave a table (`dataChange = true`): what INSERT, DELETE and a table made from a query commit.
#[derive(Debug, Clone, Default)]
pub struct DataEdit {
    /// New files.
    pub added: Vec<NewFile>,
    /// Files that leave whole.
    pub removed: Vec<super::FileId>,
    /// Files of which rows leave.
    pub marked: Vec<MarkedFile>,
    /// Files that tell readers of changes which rows entered and left, for the case that files do not.
    pub changes: Vec<NewFile>,
    /// What it rests on.
    pub reads: ReadSet,
    /// For the history.
    pub operation: OperationInfo,
    /// Counters for the history. Where rows are marked, those of vectors and of deleted rows are set by the commit, which
    /// knows what other writers had deleted already.
    pub metrics: BTreeMap<String, String>,
}
