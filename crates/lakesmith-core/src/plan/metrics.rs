//! Spark's `metrics` struct of OPTIMIZE and REORG, from what was planned and committed.

use std::collections::BTreeSet;

use crate::layout::{OrderKey, RowOrder};
use crate::op::optimize::{
    ClusteringStats, CountAndSize, DeletionVectorStats, FileSizeMetrics, ZOrderCount, ZOrderStats,
};
use crate::op::{Compat, OptimizeMetrics};
use crate::plan::{Mode, cluster};
use crate::table::{DataFile, FileId, FileStats, Scalar, TableState};

/// A group that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupResult {
    /// Inputs.
    pub removed: Vec<FileId>,
    /// Outputs.
    pub added: Vec<AddedFile>,
}

/// An output that was committed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AddedFile {
    /// Bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
    /// Smallest and largest value of each key of the group's order, `None` where there are none; empty without an order.
    pub bounds: Vec<Option<(Scalar, Scalar)>>,
}

impl AddedFile {
    /// An output of `size` bytes in a group of this order.
    pub fn new(size: u64, stats: &FileStats, order: Option<&RowOrder>) -> Self {
        let bounds = |key: &OrderKey| {
            let leaf = stats.leaves.iter().find(|leaf| leaf.path == key.path)?;
            leaf.min.clone().zip(leaf.max.clone())
        };
        Self { size, rows: stats.rows, bounds: order.iter().flat_map(|order| &order.keys).map(bounds).collect() }
    }
}

/// What the metrics are computed from.
#[derive(Debug, Clone, Copy)]
pub struct MetricsInput<'a> {
    /// The table as it was loaded; ids in `done` refer to it.
    pub state: &'a TableState,
    /// Groups committed.
    pub done: &'a [GroupResult],
    /// Groups planned.
    pub planned_groups: u64,
    /// Commits made, at least 1 as in Spark.
    pub batches: u64,
    /// Files that matched the predicate.
    pub considered_files: u64,
    /// Tasks at once.
    pub parallelism: u64,
    /// Start of the command, milliseconds since the epoch.
    pub start_time_ms: i64,
    /// End of the command; Spark leaves 0.
    pub end_time_ms: i64,
    /// Columns with statistics at most, from the table's property.
    pub indexed_columns: i64,
    /// Whose habits.
    pub compat: Compat,
    /// What an OPTIMIZE asked for; `None` for REORG.
    pub mode: Option<Mode>,
    /// OPTIMIZE … FULL.
    pub full: bool,
}

/// The metrics of a finished command.
pub fn optimize_metrics(input: &MetricsInput<'_>) -> OptimizeMetrics {
    let files = &input.state.files;
    let removed: Vec<_> = input.done.iter().flat_map(|g| &g.removed).map(|id| files.get(*id)).collect();
    let added: Vec<u64> = input.done.iter().flat_map(|g| g.added.iter().map(|f| f.size)).collect();
    let partitions: BTreeSet<u32> = removed.iter().map(|f| f.partition_index).collect();
    let vectors = removed.iter().filter(|f| f.deletes.is_some()).count() as u64;
    let columns = input.state.schema.fields.len() as u64;
    OptimizeMetrics {
        num_files_added: added.len() as u64,
        num_files_removed: removed.len() as u64,
        files_added: sizes(&added),
        files_removed: sizes(&removed.iter().map(|f| f.size).collect::<Vec<_>>()),
        partitions_optimized: partitions.len() as u64,
        z_order_stats: (input.mode == Some(Mode::Ordering)).then(|| z_order_stats(&removed, partitions.len() as u64)),
        clustering_stats: clustering_stats(input),
        num_bins: input.planned_groups,
        num_batches: input.batches.max(1),
        total_considered_files: input.considered_files,
        total_files_skipped: input.considered_files.saturating_sub(removed.len() as u64),
        preserve_insertion_order: false,
        num_files_skipped_to_reduce_write_amplification: 0,
        num_bytes_skipped_to_reduce_write_amplification: 0,
        start_time_ms: input.start_time_ms,
        end_time_ms: if input.compat == Compat::Spark { 0 } else { input.end_time_ms },
        total_cluster_parallelism: input.parallelism,
        total_scheduled_tasks: 0,
        auto_compact_parallelism_stats: None,
        deletion_vector_stats: (vectors > 0).then(|| DeletionVectorStats {
            num_deletion_vectors_removed: vectors,
            num_deletion_vector_rows_removed: removed.iter().map(|f| f.deleted_rows()).sum(),
        }),
        num_table_columns: columns,
        num_table_columns_with_stats: input.indexed_columns.min(columns as i64),
    }
}

fn sizes(bytes: &[u64]) -> FileSizeMetrics {
    let total_size: u64 = bytes.iter().sum();
    FileSizeMetrics {
        min: bytes.iter().min().copied(),
        max: bytes.iter().max().copied(),
        avg: if bytes.is_empty() { 0.0 } else { total_size as f64 / bytes.len() as f64 },
        total_files: bytes.len() as u64,
        total_size,
    }
}

/// Spark counts no cubes when it orders on request: every file of a partition is read, and becomes part of one.
fn z_order_stats(removed: &[DataFile<'_>], partitions: u64) -> ZOrderStats {
    let read = ZOrderCount { num: removed.len() as u64, size: removed.iter().map(|f| f.size).sum() };
    ZOrderStats {
        strategy_name: "all".into(),
        input_cube_files: ZOrderCount::default(),
        input_other_files: read.clone(),
        input_num_cubes: 0,
        merged_files: read,
        num_output_cubes: partitions,
        merged_num_cubes: None,
    }
}

fn clustering_stats(input: &MetricsInput<'_>) -> Option<ClusteringStats> {
    input.state.clustering_columns.as_ref().filter(|c| !c.is_empty())?;
    let files = &input.state.files;
    // A key that the schema lacks ends the planning, so that there is nothing to count.
    let keys = cluster::cube_keys(&cluster::keys(input.state).unwrap_or_default());
    let mut stats = ClusteringStats::default();
    let mut cubes = BTreeSet::new();
    for file in files.iter() {
        // For FULL, cubes on other keys are among those that it looks at.
        let of_cube = match cluster::cube(file.marks).filter(|cube| input.full || cube.keys == keys) {
            Some(cube) => {
                cubes.insert(cube.id);
                &mut stats.input_z_cube_files
            }
            None => &mut stats.input_other_files,
        };
        count(of_cube, &file);
    }
    stats.input_num_z_cubes = cubes.len() as u64;
    for id in input.done.iter().flat_map(|g| &g.removed) {
        count(&mut stats.merged_files, &files.get(*id));
    }
    if input.mode == Some(Mode::Clustering) {
        stats.num_output_z_cubes = input.done.len() as u64;
    }
    Some(stats)
}

fn count(to: &mut CountAndSize, file: &DataFile<'_>) {
    to.num_files += 1;
    to.size += file.size;
}
