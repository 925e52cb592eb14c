//! Planners: pure, synchronous, deterministic. The same files in any order give the same plan.

pub mod approved;
pub mod batch;
pub mod bin_pack;
pub mod budget;
pub mod cluster;
pub mod compact;
pub mod invariant;
mod key_layout;
pub mod keys;
pub mod log_cleanup;
pub mod metrics;
pub mod order;
mod overlap;
pub mod purge;
pub mod request;
pub mod restore;
pub mod sweep;

use std::cmp::Ordering;

use crate::layout::RowOrder;
use crate::table::{DataFile, FileId, FileMarks, FileTable};

pub use crate::layout::tag::TARGET_TAG;
pub use approved::{Approved, restrict, rewrite_key};
pub use batch::into_batches;
pub use cluster::cluster;
pub use compact::compact;
pub use key_layout::KeyLayouts;
pub use log_cleanup::{
    KeptLogFile, LogCleanupInput, LogCleanupPlan, LogCut, LogCutRules, log_cut, log_cutoff_ms, plan_log_cleanup,
};
pub use metrics::{AddedFile, GroupResult, MetricsInput, optimize_metrics};
pub use order::order;
pub use purge::{purge, purge_candidates};
pub use request::{KeyBounds, LayoutContext, Mode, mode, optimize};

/// Tag that names the cube of a file (liquid clustering).
pub const ZCUBE_TAG: &str = "ZCUBE_ID";

/// Files chosen to be rewritten together; they share a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct FileGroup {
    /// Inputs in the order in which their rows come out.
    pub files: Vec<FileId>,
    /// Index of the shared partition in [`FileTable::partitions`].
    pub partition_index: u32,
    /// Bytes of the inputs on storage.
    pub bytes: u64,
    /// Tags and provider of the outputs.
    pub marks: FileMarks,
    /// The order of the outputs' rows; `None`: that of the inputs.
    pub order: Option<RowOrder>,
}

/// What a rewrite will do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RewritePlan {
    /// Disjoint groups, ordered by partition value, then by size.
    pub groups: Vec<FileGroup>,
    /// Files that matched the predicate.
    pub considered_files: u64,
    /// Files that stay as they are because their layout tag is of a newer version of Lakesmith.
    pub unknown_layouts: Vec<FileId>,
}

impl RewritePlan {
    /// Bytes that the run will read.
    pub fn input_bytes(&self) -> u64 {
        self.groups.iter().map(|g| g.bytes).sum()
    }

    /// Files that the run will replace.
    pub fn input_files(&self) -> usize {
        self.groups.iter().map(|g| g.files.len()).sum()
    }
}

/// Ascending by size, equal sizes by identity, so that the order of the table doesn't reach the plan.
fn sort_by_size(files: &FileTable, ids: &mut [FileId]) {
    ids.sort_by(|a, b| by_size(&files.get(*a), &files.get(*b)));
}

fn by_size(a: &DataFile<'_>, b: &DataFile<'_>) -> Ordering {
    let vector = |f: &DataFile<'_>| f.deletes.map(|d| d.unique_id.clone());
    a.size.cmp(&b.size).then_with(|| a.path.cmp(b.path)).then_with(|| vector(a).cmp(&vector(b)))
}

/// Rank of each partition in the order of typed values.
fn partition_ranks(files: &FileTable) -> Vec<u32> {
    let partitions = files.partitions();
    let mut order: Vec<u32> = (0..partitions.len() as u32).collect();
    order.sort_by(|a, b| partitions[*a as usize].cmp(&partitions[*b as usize]));
    let mut rank = vec![0; partitions.len()];
    for (position, index) in order.into_iter().enumerate() {
        rank[index as usize] = position as u32;
    }
    rank
}
