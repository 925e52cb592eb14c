//! OPTIMIZE and REORG … APPLY (PURGE).

use std::path::PathBuf;
use std::sync::Arc;

use crate::layout::Curve;
use crate::layout::depth::Depth;
use crate::plan::Approved;
use crate::predicate::Expr;
use crate::units::{GIB, MIB};

/// Whose habits decide where Lakesmith's better default differs from Spark's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// Lakesmith's.
    #[default]
    Lakesmith,
    /// Spark's exactly (`SET lakesmith.compat=spark`).
    Spark,
}

/// Sizes that select and pack files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSizes {
    /// Bins are closed before their input bytes exceed this (`spark.databricks.delta.optimize.maxFileSize`).
    pub target_bytes: u64,
    /// Files below this many bytes are candidates (`spark.databricks.delta.optimize.minFileSize`).
    pub min_file_bytes: u64,
    /// Files whose share of deleted rows is above this are candidates (`…optimize.maxDeletedRowsRatio`).
    pub max_deleted_rows_ratio: f64,
}

impl Default for FileSizes {
    fn default() -> Self {
        Self { target_bytes: GIB, min_file_bytes: GIB, max_deleted_rows_ratio: 0.05 }
    }
}

/// Limits and habits of a rewrite.
#[derive(Debug, Clone, PartialEq)]
pub struct RewriteLimits {
    /// Memory for reading and writing, bytes, over all tasks.
    pub memory_bytes: u64,
    /// Tasks at once; 0: one a core.
    pub threads: usize,
    /// Compare an order-free content hash of inputs and outputs before committing.
    pub verify: bool,
    /// Commit whenever this many input bytes are rewritten; `None`: one commit (`…optimize.batchSize`).
    pub commit_every_bytes: Option<u64>,
    /// Give up retrying a commit after this long, milliseconds.
    pub commit_timeout_ms: u64,
    /// Rows a file at most (`spark.sql.files.maxRecordsPerFile`).
    pub max_rows_per_file: Option<u64>,
    /// Codec of the outputs; `None` keeps the inputs' own.
    pub compression: Option<String>,
    /// Rows a row group at most.
    pub row_group_rows: u64,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
    /// Folder for what does not fit into the memory; `None`: the system's folder for temporary files.
    pub spill_folder: Option<PathBuf>,
    /// Stop after planning.
    pub dry_run: bool,
    /// Write the plan to this file, and stop.
    pub plan_out: Option<PathBuf>,
    /// Do no more than was approved.
    pub approved: Option<Arc<Approved>>,
}

impl RewriteLimits {
    /// The least memory that a rewrite can keep to, bytes: a third is what an output holds back, and that is 4 MiB at least.
    pub const MEMORY_BYTES_MIN: u64 = 12 * MIB;
}

impl Default for RewriteLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 512 * MIB,
            threads: 0,
            verify: false,
            commit_every_bytes: None,
            commit_timeout_ms: 30 * 60 * 1000,
            max_rows_per_file: None,
            compression: None,
            row_group_rows: 1 << 20,
            user_metadata: None,
            spill_folder: None,
            dry_run: false,
            plan_out: None,
            approved: None,
        }
    }
}

/// Options of OPTIMIZE.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizeOptions {
    /// Partitions to look at; `None`: all.
    pub predicate: Option<Expr>,
    /// The predicate as the user wrote it, for messages.
    pub predicate_text: Option<String>,
    /// Sizes.
    pub sizes: FileSizes,
    /// Habits.
    pub compat: Compat,
    /// Rewrite also what carries this run's target tag.
    pub force: bool,
    /// OPTIMIZE … FULL.
    pub full: bool,
    /// The order that rows get; `None`: that of the table's clustering, or none.
    pub order_by: Option<OrderBy>,
    /// Refuse to order by columns without statistics (`…optimize.zorder.checkStatsCollection.enabled`).
    pub stats_check: bool,
    /// Sizes of cubes (liquid clustering).
    pub cubes: CubeSizes,
    /// Bytes of input a run at most, on clustered tables: the files whose overlap is worst come first. `None`: the choice
    /// of files is Spark's.
    pub budget_bytes: Option<u64>,
    /// Limits.
    pub limits: RewriteLimits,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        Self {
            predicate: None,
            predicate_text: None,
            sizes: FileSizes::default(),
            compat: Compat::default(),
            force: false,
            full: false,
            order_by: None,
            stats_check: true,
            cubes: CubeSizes::default(),
            budget_bytes: None,
            limits: RewriteLimits::default(),
        }
    }
}

/// A wanted order of rows, in the user's words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OrderBy {
    /// The curve.
    pub curve: Curve,
    /// Logical column paths, in any case; the most significant first.
    pub columns: Vec<Vec<String>>,
}

/// Sizes of z-cubes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CubeSizes {
    /// Cubes of at least so many live bytes are finished (`…clustering.mergeStrategy.minCubeSize.threshold`).
    pub min_bytes: u64,
    /// Cubes are cut before their input bytes exceed this (`…minCubeSize.targetCubeSize`).
    pub target_bytes: u64,
}

impl Default for CubeSizes {
    fn default() -> Self {
        Self { min_bytes: 100 * GIB, target_bytes: 150 * GIB }
    }
}

/// Options of REORG … APPLY (PURGE).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReorgOptions {
    /// Partitions to look at; `None`: all.
    pub predicate: Option<Expr>,
    /// The predicate as the user wrote it, for messages.
    pub predicate_text: Option<String>,
    /// Only `target_bytes` counts.
    pub sizes: FileSizes,
    /// Limits.
    pub limits: RewriteLimits,
}

/// Spark's `filesAdded` / `filesRemoved`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSizeMetrics {
    /// Smallest, bytes; null without files.
    pub min: Option<u64>,
    /// Largest, bytes; null without files.
    pub max: Option<u64>,
    /// Mean, bytes; 0 without files.
    pub avg: f64,
    /// Number of files.
    pub total_files: u64,
    /// Sum, bytes.
    pub total_size: u64,
}

/// Number of files and their bytes.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountAndSize {
    /// Files.
    pub num_files: u64,
    /// Bytes.
    pub size: u64,
}

/// Spark's `clusteringStats`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusteringStats {
    /// Files of cubes on the current keys.
    pub input_z_cube_files: CountAndSize,
    /// The rest.
    pub input_other_files: CountAndSize,
    /// Cubes read.
    #[serde(rename = "inputNumZCubes")]
    pub input_num_z_cubes: u64,
    /// Files rewritten.
    pub merged_files: CountAndSize,
    /// Cubes written.
    #[serde(rename = "numOutputZCubes")]
    pub num_output_z_cubes: u64,
}

/// Number of files and their bytes, as `zOrderStats` names them.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct ZOrderCount {
    /// Files.
    pub num: u64,
    /// Bytes.
    pub size: u64,
}

/// Spark's `zOrderStats`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ZOrderStats {
    /// Always `all`: every file of a partition is read.
    pub strategy_name: String,
    /// Nothing; Spark counts no cubes here.
    pub input_cube_files: ZOrderCount,
    /// Files read.
    pub input_other_files: ZOrderCount,
    /// 0.
    pub input_num_cubes: u64,
    /// Files rewritten.
    pub merged_files: ZOrderCount,
    /// Partitions written.
    pub num_output_cubes: u64,
    /// Null.
    pub merged_num_cubes: Option<u64>,
}

/// Spark's `deletionVectorStats`.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorStats {
    /// Vectors that the rewrite applied.
    pub num_deletion_vectors_removed: u64,
    /// Rows that they deleted.
    pub num_deletion_vector_rows_removed: u64,
}

/// Spark's `metrics` struct of OPTIMIZE and REORG, fields in its order.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are Spark's own and documented there")]
pub struct OptimizeMetrics {
    pub num_files_added: u64,
    pub num_files_removed: u64,
    pub files_added: FileSizeMetrics,
    pub files_removed: FileSizeMetrics,
    pub partitions_optimized: u64,
    pub z_order_stats: Option<ZOrderStats>,
    pub clustering_stats: Option<ClusteringStats>,
    pub num_bins: u64,
    pub num_batches: u64,
    pub total_considered_files: u64,
    pub total_files_skipped: u64,
    pub preserve_insertion_order: bool,
    pub num_files_skipped_to_reduce_write_amplification: u64,
    pub num_bytes_skipped_to_reduce_write_amplification: u64,
    pub start_time_ms: i64,
    pub end_time_ms: i64,
    pub total_cluster_parallelism: u64,
    pub total_scheduled_tasks: u64,
    pub auto_compact_parallelism_stats: Option<serde_json::Value>,
    pub deletion_vector_stats: Option<DeletionVectorStats>,
    pub num_table_columns: u64,
    pub num_table_columns_with_stats: i64,
}

/// One planned group, for `--dry-run`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PlannedGroup {
    /// Partition values as stored.
    pub partition: Vec<Option<String>>,
    /// Paths of the inputs as stored.
    pub inputs: Vec<String>,
    /// Bytes of the inputs.
    pub bytes: u64,
    /// Files that the rows are cut into, if they are put in an order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_files: Option<u64>,
}

/// What an order does to the overlap of files in one of its keys.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KeyLayout {
    /// The key, in the schema's spelling.
    pub column: String,
    /// Files that the run looked at.
    pub files: u64,
    /// Files to open within a partition for one value of the key, before the run.
    pub depth_before: Depth,
    /// The same after it; null if the run only planned.
    pub depth_after: Option<Depth>,
    /// What speaks against the key.
    pub advice: Vec<String>,
}

/// Report of OPTIMIZE and REORG.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct OptimizeReport {
    /// Location of the table.
    #[serde(skip)]
    pub path: String,
    /// Version that was loaded.
    pub version_before: u64,
    /// Last version committed; null if nothing was.
    pub version_after: Option<u64>,
    /// Whether anything was committed.
    pub committed: bool,
    /// Spark's metrics.
    pub metrics: OptimizeMetrics,
    /// Rows that were moved: counted in the footers of the inputs, less the deleted ones, and again in the outputs.
    pub rows: u64,
    /// Whether a content hash of inputs and outputs was compared as well.
    pub verified: bool,
    /// Groups committed.
    pub groups_done: u64,
    /// Groups dropped because another writer touched their files.
    pub groups_dropped: u64,
    /// Files that stay as they are because they hold something that is not rewritten.
    pub left_out: Vec<LeftOutFile>,
    /// What would be done; empty unless `--dry-run`.
    pub planned: Vec<PlannedGroup>,
    /// The order that rows get, columns in the schema's spelling; null where they keep their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderBy>,
    /// The overlap in each key of an order or of the table's clustering; empty without keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<KeyLayout>,
    /// Bytes spilled to local disk.
    pub bytes_spilled: u64,
    /// Storage requests made.
    pub requests: u64,
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// Bytes written to storage.
    pub bytes_written: u64,
}

/// A file that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOutFile {
    /// Its canonical location.
    pub path: String,
    /// The column that is the reason, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Why, and the way out.
    pub reason: String,
}
