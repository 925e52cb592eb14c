//! OPTIMIZE of clustered tables: files that belong to no cube, and small cubes, become new cubes along Hilbert's curve.
//!
//! Contract: cubes on other keys are left to FULL, large cubes are finished. Fixed point: a single cube, or cubes of a
//! single run, are left alone. FULL also redoes cubes that several runs wrote to ([`super::budget`]), whose files overlap.
//!
//! # Source
//! Delta Spark `OptimizeTableStrategy.scala` (`ClusteringStrategy`), `ZCube.scala`. Spark redoes small cubes of one run,
//! where several are left, at every run; knowing them by their layout tag is Lakesmith's own.

use std::collections::{BTreeMap, BTreeSet};

use super::order::output_files;
use super::request::{self, Mode};
use super::{FileGroup, RewritePlan, ZCUBE_TAG, bin_pack, by_size, invariant, keys as names, order};
use crate::error::{Error, Result};
use crate::layout::tag::{Layout, layout};
use crate::layout::{Curve, OrderKey, RowOrder};
use crate::op::{Compat, OptimizeOptions};
use crate::table::{DataFile, FileId, FileMarks, TableState};

/// Tag with the keys of a file's cube, a JSON list of logical names.
pub const ZCUBE_KEYS_TAG: &str = "ZCUBE_ZORDER_BY";

/// What Delta Spark's clustering calls itself.
pub const PROVIDER: &str = "liquid";

/// Plans the clustering of a table; `new_cube_id` names the cube of each group.
///
/// # Errors
/// Usage, with Spark's classes, for requests that a clustered table forbids; Corrupt if a key is not in the schema.
pub fn cluster(
    state: &TableState,
    options: &OptimizeOptions,
    run_id: &str,
    new_cube_id: &mut dyn FnMut() -> String,
) -> Result<RewritePlan> {
    request::mode(state, options)?.expect(Mode::Clustering)?;
    let keys = keys(state)?;
    let picked = pick(state, options, &cube_keys(&keys));
    let files = &state.files;
    let sizes: Vec<u64> = picked.iter().map(|id| files.get(*id).size).collect();
    let capacity = options.cubes.target_bytes.max(options.cubes.min_bytes);
    let mut plan = RewritePlan { considered_files: files.len() as u64, ..RewritePlan::default() };
    for range in bin_pack::next_fit(&sizes, capacity) {
        let bytes = sizes[range.clone()].iter().sum();
        let order = RowOrder { curve: Curve::Hilbert, keys: keys.clone(), files: output_files(bytes, options) };
        plan.groups.push(FileGroup {
            files: picked[range.clone()].to_vec(),
            partition_index: files.get(picked[range.start]).partition_index,
            bytes,
            marks: cube_marks(options, &order, run_id, &new_cube_id()),
            order: Some(order),
        });
    }
    assert!(invariant::groups_are_disjoint(&plan) && invariant::groups_share_a_partition(&plan, files));
    Ok(plan)
}

/// The table's clustering keys.
///
/// # Errors
/// Corrupt if one is not in the schema, or has no order.
pub fn keys(state: &TableState) -> Result<Vec<OrderKey>> {
    let columns = state.clustering_columns.as_deref().unwrap_or_default();
    columns
        .iter()
        .map(|parts| match names::find(&state.schema, parts) {
            names::Found::Key(key) => Ok(key),
            names::Found::NoOrder(_, data_type) => Err(Error::corrupt(format!(
                "the clustering column has the type {}, by which rows cannot be ordered; choose other keys with ALTER TABLE \
                 … CLUSTER BY",
                data_type.simple_string()
            ))
            .with("column", names::attribute_name(parts))),
            names::Found::Nothing => Err(Error::corrupt(
                "the clustering column is not in the schema; choose other keys with ALTER TABLE … CLUSTER BY",
            )
            .with("column", names::attribute_name(parts))),
        })
        .collect()
}

/// The keys as tags of cubes name them.
pub(super) fn cube_keys(keys: &[OrderKey]) -> Vec<String> {
    keys.iter().map(|key| names::reference_name(&key.name)).collect()
}

/// The cube that a file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cube<'a> {
    pub id: &'a str,
    /// The keys by which it is ordered; empty if the tag cannot be read.
    pub keys: Vec<String>,
}

/// A file's cube; files with one of the two tags alone have none, as for Spark.
pub(super) fn cube<'a>(marks: &'a FileMarks) -> Option<Cube<'a>> {
    let (id, keys) = (marks.tag(ZCUBE_TAG)?, marks.tag(ZCUBE_KEYS_TAG)?);
    Some(Cube { id, keys: serde_json::from_str(keys).unwrap_or_default() })
}

/// Marks of the outputs that form, or join, the cube of that name.
pub(super) fn cube_marks(options: &OptimizeOptions, order: &RowOrder, run_id: &str, cube_id: &str) -> FileMarks {
    let mut marks = order::marks(options, order, run_id);
    let keys = serde_json::to_string(&cube_keys(&order.keys)).unwrap_or_default();
    marks.tags.insert(ZCUBE_TAG.into(), Some(cube_id.to_owned()));
    marks.tags.insert(ZCUBE_KEYS_TAG.into(), Some(keys));
    marks.clustering_provider = Some(PROVIDER.into());
    marks
}

/// True if clustering may take the file: no other clustering than Spark's owns it, and its cube, if any, has these keys.
pub(super) fn is_candidate(marks: &FileMarks, keys: &[String]) -> bool {
    marks.clustering_provider.as_deref().is_none_or(|provider| provider == PROVIDER)
        && cube(marks).is_none_or(|cube| cube.keys == keys)
}

/// Bytes that a file would have without its deleted rows.
fn live_bytes(file: &DataFile<'_>) -> u64 {
    match (file.deletes, file.rows) {
        (Some(vector), Some(rows)) if rows > 0 => {
            let live = rows.saturating_sub(vector.cardinality);
            (u128::from(file.size) * u128::from(live) / u128::from(rows)) as u64
        }
        _ => file.size,
    }
}

/// The files to rewrite, those of no cube first, then cube by cube.
fn pick(state: &TableState, options: &OptimizeOptions, keys: &[String]) -> Vec<FileId> {
    let files = &state.files;
    let mut all: Vec<FileId> = files.iter().map(|f| f.id).collect();
    all.sort_by(|a, b| {
        let (a, b) = (files.get(*a), files.get(*b));
        a.marks.tag(ZCUBE_TAG).cmp(&b.marks.tag(ZCUBE_TAG)).then_with(|| by_size(&a, &b))
    });
    let (candidates, skipped): (Vec<FileId>, Vec<FileId>) =
        all.into_iter().partition(|id| is_candidate(files.get(*id).marks, keys));
    let cubes = Cubes::of(state, &candidates);
    let ours = options.compat == Compat::Lakesmith;
    let everything = ours && options.force;
    let mut picked: Vec<FileId> = candidates
        .iter()
        .copied()
        .filter(|id| match cube(files.get(*id).marks) {
            None => true,
            Some(cube) => {
                let redone = ours && options.full && cubes.is_of_several_runs(cube.id);
                everything || redone || cubes.live_bytes[cube.id] < options.cubes.min_bytes
            }
        })
        .collect();
    if options.full && !skipped.is_empty() {
        picked.extend(skipped);
        return picked;
    }
    if everything || picked.iter().any(|id| cube(files.get(*id).marks).is_none()) {
        return picked;
    }
    let left: BTreeSet<&str> = picked.iter().filter_map(|id| cube(files.get(*id).marks)).map(|cube| cube.id).collect();
    let redone = ours && options.full && left.iter().any(|id| cubes.is_of_several_runs(id));
    if !redone && (left.len() <= 1 || ours && cubes.are_of_one_run(&left)) {
        picked.clear();
    }
    picked
}

/// What is known of the candidates' cubes.
struct Cubes<'a> {
    live_bytes: BTreeMap<&'a str, u64>,
    /// Runs that wrote to each; `None` stands for writers that leave no layout tag.
    runs: BTreeMap<&'a str, BTreeSet<Option<String>>>,
}

impl<'a> Cubes<'a> {
    fn of(state: &'a TableState, candidates: &[FileId]) -> Self {
        let mut cubes = Self { live_bytes: BTreeMap::new(), runs: BTreeMap::new() };
        for id in candidates {
            let file = state.files.get(*id);
            if let Some(cube) = cube(file.marks) {
                *cubes.live_bytes.entry(cube.id).or_default() += live_bytes(&file);
                let run = match layout(file.marks) {
                    Layout::Known(tag) => Some(tag.run),
                    Layout::None | Layout::Unknown => None,
                };
                cubes.runs.entry(cube.id).or_default().insert(run);
            }
        }
        cubes
    }

    fn is_of_several_runs(&self, cube: &str) -> bool {
        self.runs.get(cube).is_some_and(|runs| runs.len() > 1)
    }

    /// True if one run of Lakesmith's wrote all these cubes, whole.
    fn are_of_one_run(&self, cubes: &BTreeSet<&str>) -> bool {
        let runs: BTreeSet<&Option<String>> = cubes.iter().filter_map(|cube| self.runs.get(cube)).flatten().collect();
        runs.len() == 1 && runs.first().is_some_and(|run| run.is_some())
    }
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
