//! What planners know of a table: one immutable value per version, free of any table format.

pub mod delete_file;
pub mod edit;
pub mod file_table;
pub mod log_file;
pub mod marks;
pub mod partition;
pub mod rewrite;
pub mod rows;
pub mod scalar;
pub mod schema;
pub mod stats;
pub mod vector;

use std::collections::BTreeMap;

pub use delete_file::{DeleteContent, DeleteFile, DeleteFileId, FileFormat};
pub use edit::{DataEdit, FileKey, GroupEdit, MarkedFile, NewFile, OperationInfo, ReadSet, VersionEdit};
pub use file_table::{DataFile, FileId, FileTable, FileTableBuilder, NewRow};
pub use log_file::{LogFile, LogRole, complete_checkpoints};
pub use marks::FileMarks;
pub use partition::PartitionTuple;
pub use rewrite::{
    InputFile, LeftOut, ReadSpec, RewriteOutcome, RewriteTask, RowMapSegment, RowTrackingColumns, WriteSpec,
    WrittenFile,
};
pub use rows::{MetadataTable, Rows, Value};
pub use scalar::Scalar;
pub use schema::{DataType, Field, Schema};
pub use stats::{ColumnBounds, FileStats, LeafStats};
pub use vector::{DeleteInfo, DeletionVector};

/// Version number of a table.
pub type Version = u64;

/// One version of a table, immutable.
#[derive(Debug, Clone)]
pub struct TableState {
    /// Canonical location without credentials, without a trailing slash (`file:///lake/events`, `s3://bucket/events`).
    pub location: String,
    /// The version that this value describes.
    pub version: Version,
    /// When the version was committed, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Identity that never changes over the table's life.
    pub id: String,
    /// Name given at creation, if any.
    pub name: Option<String>,
    /// Description given at creation, if any.
    pub description: Option<String>,
    /// When the table was created, milliseconds since the epoch.
    pub created_ms: Option<i64>,
    /// Logical schema, with physical names and ids where the table maps columns.
    pub schema: Schema,
    /// Logical names of the partition columns, in order.
    pub partition_columns: Vec<String>,
    /// Logical clustering columns as dotted paths; `None` when the table was never clustered, empty after CLUSTER BY NONE.
    pub clustering_columns: Option<Vec<Vec<String>>>,
    /// Table properties as stored.
    pub properties: BTreeMap<String, String>,
    /// Names of the table features in force, sorted; legacy protocol versions expanded.
    pub features: Vec<String>,
    /// Reader version of the protocol.
    pub min_reader_version: u32,
    /// Writer version of the protocol.
    pub min_writer_version: u32,
    /// Every live file.
    pub files: FileTable,
}

impl TableState {
    /// True if the feature is in force.
    pub fn has_feature(&self, name: &str) -> bool {
        self.features.iter().any(|f| f == name)
    }

    /// A property's value, the key compared without regard to case as Spark does.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties
            .get(key)
            .or_else(|| self.properties.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v))
            .map(String::as_str)
    }

    /// True if the property is set to `true` in any case.
    pub fn property_is_true(&self, key: &str) -> bool {
        self.property(key).is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }
}
