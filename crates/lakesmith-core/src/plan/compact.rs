//! OPTIMIZE: bin-packing of small files and of files with too many deleted rows.
//!
//! Contract: candidates are files below the minimum size or above the deleted-rows ratio; bins are cut next-fit in
//! ascending size within a partition. Fixed point: outputs carry [`TARGET_TAG`], and a bin of such files is left alone.
//!
//! # Source
//! Delta Spark `OptimizeTableCommand.scala` (selection, packing); the tag and lone files are Lakesmith's own.

use std::collections::BTreeMap;

use super::request::{self, Mode};
use super::{FileGroup, RewritePlan, TARGET_TAG, bin_pack, invariant, partition_ranks, sort_by_size};
use crate::error::Result;
use crate::layout::tag::packed_for;
use crate::op::{Compat, FileSizes, OptimizeOptions};
use crate::predicate::BoundPredicate;
use crate::table::{DataFile, FileId, FileMarks, TableState};

/// Plans a compaction of the files whose partition matches `predicate`.
///
/// # Errors
/// Usage, with Spark's classes, for requests that the table's layout forbids or that are none for a compaction.
pub fn compact(
    state: &TableState,
    options: &OptimizeOptions,
    predicate: Option<&BoundPredicate>,
) -> Result<RewritePlan> {
    request::mode(state, options)?.expect(Mode::Compaction)?;
    let files = &state.files;
    let matching = matching_partitions(state, predicate)?;
    let ranks = partition_ranks(files);
    let mut considered_files = 0;
    let mut by_partition: BTreeMap<u32, Vec<FileId>> = BTreeMap::new();
    for file in files.iter().filter(|f| matching[f.partition_index as usize]) {
        considered_files += 1;
        if is_candidate(&file, &options.sizes) {
            by_partition.entry(ranks[file.partition_index as usize]).or_default().push(file.id);
        }
    }
    let mut groups = Vec::new();
    for mut ids in by_partition.into_values() {
        sort_by_size(files, &mut ids);
        let sizes: Vec<u64> = ids.iter().map(|id| files.get(*id).size).collect();
        let last_run_ms = last_run_ms(state, &ids, options.sizes.target_bytes);
        for range in bin_pack::next_fit(&sizes, options.sizes.target_bytes) {
            let bin = &ids[range.clone()];
            if !is_worth_rewriting(state, bin, options, last_run_ms) {
                continue;
            }
            groups.push(FileGroup {
                files: bin.to_vec(),
                partition_index: files.get(bin[0]).partition_index,
                bytes: sizes[range].iter().sum(),
                marks: output_marks(options),
                order: None,
            });
        }
    }
    let plan = RewritePlan { groups, considered_files, ..RewritePlan::default() };
    assert!(invariant::groups_are_disjoint(&plan) && invariant::groups_share_a_partition(&plan, files));
    Ok(plan)
}

/// For each partition, whether its files are in scope.
pub(super) fn matching_partitions(state: &TableState, predicate: Option<&BoundPredicate>) -> Result<Vec<bool>> {
    state.files.partitions().iter().map(|p| predicate.map_or(Ok(true), |e| e.matches(p))).collect()
}

fn is_candidate(file: &DataFile<'_>, sizes: &FileSizes) -> bool {
    file.size < sizes.min_file_bytes || has_too_many_deletes(file, sizes)
}

pub(super) fn has_too_many_deletes(file: &DataFile<'_>, sizes: &FileSizes) -> bool {
    file.deletes.is_some_and(|d| deletes_too_many(file.rows, d.cardinality, sizes))
}

/// True if the rows that a file's vector deletes are reason enough to rewrite it; without a row count they are.
pub(crate) fn deletes_too_many(rows: Option<u64>, deleted: u64, sizes: &FileSizes) -> bool {
    match rows {
        None | Some(0) => true,
        Some(rows) => deleted as f64 / rows as f64 > sizes.max_deleted_rows_ratio,
    }
}

fn is_worth_rewriting(state: &TableState, bin: &[FileId], options: &OptimizeOptions, last_run_ms: Option<i64>) -> bool {
    if options.compat == Compat::Spark {
        return bin.len() > 1;
    }
    let files = || bin.iter().map(|id| state.files.get(*id));
    let target = Some(options.sizes.target_bytes);
    let strangers = files().filter(|f| packed_for(f.marks) != target);
    let finished = is_settled(strangers.map(|f| f.modified_ms), last_run_ms);
    files().any(|f| has_too_many_deletes(&f, &options.sizes)) || (bin.len() > 1 && (options.force || !finished))
}

/// True if a bin is finished work: every file is an output for this target but for at most one, which was there when
/// the newest output of its partition was made.
///
/// `strangers_modified_ms`: modification times of the files that are not such outputs.
pub(crate) fn is_settled(mut strangers_modified_ms: impl Iterator<Item = i64>, last_run_ms: Option<i64>) -> bool {
    match (strangers_modified_ms.next(), strangers_modified_ms.next()) {
        (None, _) => true,
        // It stood alone in its bin then; only because outputs shrank does it have company now, and packing it would
        // make every run commit again.
        (Some(one), None) => last_run_ms.is_some_and(|last| one <= last),
        (Some(_), Some(_)) => false,
    }
}

/// When the newest output for this target among `ids` was written.
fn last_run_ms(state: &TableState, ids: &[FileId], target_bytes: u64) -> Option<i64> {
    let files = ids.iter().map(|id| state.files.get(*id));
    files.filter(|f| packed_for(f.marks) == Some(target_bytes)).map(|f| f.modified_ms).max()
}

fn output_marks(options: &OptimizeOptions) -> FileMarks {
    let mut marks = FileMarks::default();
    if options.compat == Compat::Lakesmith {
        marks.tags.insert(TARGET_TAG.into(), Some(options.sizes.target_bytes.to_string()));
    }
    marks
}

#[cfg(test)]
#[path = "compact_tests.rs"]
pub(crate) mod tests;
