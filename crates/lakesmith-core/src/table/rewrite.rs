//! What crosses from the planners and formats to the data room and back: plain data, no Arrow, no format.

use std::sync::Arc;

use crate::Error;
use crate::layout::RowOrder;

use super::{DeleteFile, DeleteInfo, Field, FileId, FileStats, PartitionTuple, Schema};

/// How input files are to be read.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ReadSpec {
    /// Data columns (no partition columns) in table order. Files may lack columns (read as NULL), hold narrower types
    /// (widened) and hold columns that the schema dropped (ignored).
    pub schema: Schema,
    /// True: match file columns by Parquet field id where the file has ids; false: by physical name.
    pub match_by_id: bool,
}

/// Names of the hidden columns that keep row ids and commit versions stable across rewrites.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RowTrackingColumns {
    /// Physical name of the row id column.
    pub row_id: String,
    /// Physical name of the row commit version column.
    pub commit_version: String,
    /// Parquet field ids for the two, where the format demands them.
    pub field_ids: Option<(i32, i32)>,
}

/// How output files are to be written.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct WriteSpec {
    /// Partition columns to be written into the files, after the data columns; usually empty.
    pub partition_fields: Vec<Field>,
    /// Indexes of `partition_fields` in the table's partition tuple.
    pub partition_indexes: Vec<usize>,
    /// Hidden row-tracking columns to write, when row tracking is enabled.
    pub row_tracking: Option<RowTrackingColumns>,
    /// Physical paths of the leaves that get statistics, in schema order.
    pub stats_leaves: Vec<Vec<String>>,
    /// Rows a file at most; `None`: no cap.
    pub max_rows_per_file: Option<u64>,
    /// Codec name as in `parquet.compression.codec` (`snappy`, `zstd`, …); `None`: the inputs' own.
    pub compression: Option<String>,
    /// Rows a row group at most.
    pub row_group_rows: u64,
    /// Uncompressed bytes a row group, about.
    pub row_group_bytes: u64,
}

/// One input file of a task.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct InputFile {
    /// The file in the table that was loaded.
    pub id: FileId,
    /// Canonical absolute location, decoded (`file:///lake/t/part-1.parquet`); what storage opens.
    pub location: String,
    /// Bytes on storage, from the log.
    pub size: u64,
    /// Physical rows from the log, if known: the footer must agree.
    pub rows: Option<u64>,
    /// Rows to leave out.
    pub deletes: Option<DeleteInfo>,
    /// Files that name more rows to leave out, paths in canonical form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete_files: Vec<Arc<DeleteFile>>,
    /// Row tracking: first row id.
    pub base_row_id: Option<i64>,
    /// Row tracking: default commit version.
    pub row_commit_version: Option<i64>,
}

/// Unit of execution, retry and shipping: inputs in, one or more outputs out.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RewriteTask {
    /// Number in its plan, from 0.
    pub id: u32,
    /// Inputs; without another order, in the order in which their rows come out.
    pub inputs: Vec<InputFile>,
    /// Partition that all inputs share and the outputs get.
    pub partition: PartitionTuple,
    /// How to read.
    pub read: Arc<ReadSpec>,
    /// How to write.
    pub write: Arc<WriteSpec>,
    /// Canonical table root, as [`super::TableState::location`].
    pub root: String,
    /// Outputs are `{root}/{output_stem}.c{n:03}.{codec}.parquet`, n from 0; on-disk names, not URL-encoded.
    pub output_stem: String,
    /// Compute the order-free content hash of inputs and outputs and compare them.
    pub verify: bool,
    /// The order of the outputs' rows; `None`: that of the inputs.
    pub order: Option<RowOrder>,
}

/// One file that a task wrote.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct WrittenFile {
    /// On-disk path relative to the table root, not URL-encoded.
    pub path: String,
    /// Bytes on storage.
    pub size: u64,
    /// Rows, from the footer of the reopened file.
    pub rows: u64,
    /// Exact statistics over the rows written.
    pub stats: FileStats,
    /// Milliseconds since the epoch, the writer's clock or the store's.
    pub modified_ms: i64,
}

/// Where a run of an input's live rows went. Rows keep their order: the k-th live row of the segment is row
/// `output_start + k` of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RowMapSegment {
    /// Input file.
    pub input: FileId,
    /// Index of the segment's first row among the input's live rows (deleted rows not counted).
    pub first_live: u64,
    /// Rows in the segment.
    pub rows: u64,
    /// Index into [`RewriteOutcome::outputs`].
    pub output: u32,
    /// Position of the first row in the output.
    pub output_start: u64,
}

/// What a task did. `rows_in == rows_out` was checked against the reopened outputs before this value was made.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RewriteOutcome {
    /// The task's number.
    pub task: u32,
    /// Files written, in order; empty if every input row was deleted.
    pub outputs: Vec<WrittenFile>,
    /// Where each input row went, in output order; empty if the task gave the rows another order.
    pub row_map: Vec<RowMapSegment>,
    /// Live rows of the inputs: footer counts minus deleted rows.
    pub rows_in: u64,
    /// Rows in the outputs' footers.
    pub rows_out: u64,
    /// Bytes of the inputs on storage.
    pub bytes_in: u64,
    /// Bytes of the outputs on storage.
    pub bytes_out: u64,
    /// Bytes that were spilled to disk on the way.
    pub bytes_spilled: u64,
    /// Equal hashes of inputs and outputs, when verification was asked for.
    pub content_hash: Option<u64>,
    /// Inputs of which no row is in the outputs, because they hold something that is not rewritten.
    pub left_out: Vec<LeftOut>,
}

/// An input that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// The input.
    pub input: FileId,
    /// Its canonical location.
    pub path: String,
    /// The column that is the reason, if one is.
    pub column: Option<String>,
    /// Why, and the way out.
    pub reason: String,
}

impl LeftOut {
    /// The refusal of `input` by `error`.
    pub fn new(input: &InputFile, error: &Error) -> Self {
        Self {
            input: input.id,
            path: input.location.clone(),
            column: error.context_value("column").map(str::to_owned),
            reason: error.message().to_owned(),
        }
    }

    /// The refusal as an error.
    pub fn error(&self) -> Error {
        let error = Error::unsupported(&self.reason);
        let error = match &self.column {
            Some(column) => error.with("column", column),
            None => error,
        };
        error.with("path", &self.path)
    }
}
