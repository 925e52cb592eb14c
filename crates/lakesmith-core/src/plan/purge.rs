//! REORG … APPLY (PURGE): every file that still holds deleted rows or dropped columns is rewritten, even alone.
//!
//! Contract: bins as in compaction, never mixing cubes; outputs keep their cube's tags and carry no target tag, so the
//! next OPTIMIZE may pack them. Fixed point: outputs hold no vector and no dropped column.
//!
//! # Source
//! Delta Spark `OptimizeTableCommand.scala`, `DeltaPurgeOperation`. Unlike Spark, cubes above the minimum size or with
//! other keys are purged too: a purge that leaves rows behind is none.

use std::collections::{BTreeMap, BTreeSet};

use super::compact::matching_partitions;
use super::{FileGroup, RewritePlan, ZCUBE_TAG, bin_pack, invariant, partition_ranks, sort_by_size};
use crate::error::{Error, Result};
use crate::op::ReorgOptions;
use crate::predicate::BoundPredicate;
use crate::table::{FileId, FileMarks, TableState};

/// Files in scope whose footers must be looked at, because their vectors alone don't decide.
///
/// # Errors
/// Those of the predicate's evaluation, and Usage for a predicate on a clustered table.
pub fn purge_candidates(
    state: &TableState,
    options: &ReorgOptions,
    predicate: Option<&BoundPredicate>,
) -> Result<Vec<FileId>> {
    check_request(state, options)?;
    let matching = matching_partitions(state, predicate)?;
    Ok(state
        .files
        .iter()
        .filter(|f| matching[f.partition_index as usize] && f.deletes.is_none())
        .map(|f| f.id)
        .collect())
}

/// Plans a purge; `with_dropped_columns` are the files whose footers hold columns that the schema lacks.
///
/// # Errors
/// As [`purge_candidates`].
pub fn purge(
    state: &TableState,
    options: &ReorgOptions,
    predicate: Option<&BoundPredicate>,
    with_dropped_columns: &BTreeSet<FileId>,
) -> Result<RewritePlan> {
    check_request(state, options)?;
    let files = &state.files;
    let matching = matching_partitions(state, predicate)?;
    let ranks = partition_ranks(files);
    let mut considered_files = 0;
    let mut by_group: BTreeMap<(u32, FileMarks), Vec<FileId>> = BTreeMap::new();
    for file in files.iter().filter(|f| matching[f.partition_index as usize]) {
        considered_files += 1;
        if file.deletes.is_some() || with_dropped_columns.contains(&file.id) {
            by_group.entry((ranks[file.partition_index as usize], cube_marks(file.marks))).or_default().push(file.id);
        }
    }
    let mut groups = Vec::new();
    for ((_, marks), mut ids) in by_group {
        sort_by_size(files, &mut ids);
        let sizes: Vec<u64> = ids.iter().map(|id| files.get(*id).size).collect();
        for range in bin_pack::next_fit(&sizes, options.sizes.target_bytes) {
            groups.push(FileGroup {
                files: ids[range.clone()].to_vec(),
                partition_index: files.get(ids[range.start]).partition_index,
                bytes: sizes[range].iter().sum(),
                marks: marks.clone(),
                order: None,
            });
        }
    }
    let plan = RewritePlan { groups, considered_files, ..RewritePlan::default() };
    assert!(invariant::groups_are_disjoint(&plan) && invariant::groups_share_a_partition(&plan, files));
    assert!(invariant::groups_share_a_cube(&plan, files));
    Ok(plan)
}

fn check_request(state: &TableState, options: &ReorgOptions) -> Result<()> {
    match &options.predicate {
        Some(predicate) if state.has_feature("clustering") => Err(Error::usage(format!(
            "REORG command for Delta table with clustering doesn't support partition predicates. Please remove the \
             predicates: {}.",
            options.predicate_text.clone().unwrap_or_else(|| predicate.spark_text())
        ))
        .class("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE")),
        _ => Ok(()),
    }
}

fn cube_marks(marks: &FileMarks) -> FileMarks {
    if marks.tag(ZCUBE_TAG).is_none() {
        return FileMarks::default();
    }
    FileMarks {
        tags: marks.tags.iter().filter(|(k, _)| k.starts_with("ZCUBE_")).map(|(k, v)| (k.clone(), v.clone())).collect(),
        clustering_provider: marks.clustering_provider.clone(),
    }
}

#[cfg(test)]
#[path = "purge_tests.rs"]
mod tests;
