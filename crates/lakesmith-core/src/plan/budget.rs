//! Clustering within a budget: each run rewrites the files whose overlap is worst, and no more bytes than it may.
//!
//! Contract: a run reads at most the budget; sets of files that would not lower the depth by one where they lie stay. Outputs
//! join the cube of what they replace, so that Spark sees one cube, and FULL redoes it as a whole.
//!
//! A run's outputs are cut finer than the target where a file would be too large a part of the budget: what cannot be
//! rewritten within one is never rewritten again.

use std::collections::BTreeMap;

use super::cluster::{cube, cube_keys, cube_marks, is_candidate, keys};
use super::overlap::{Extent, Set, choose};
use super::request::{self, KeyBounds, LayoutContext, Mode};
use super::{FileGroup, RewritePlan, invariant, sort_by_size};
use crate::error::{Error, Result};
use crate::layout::tag::{Layout, layout};
use crate::layout::{Curve, RowOrder};
use crate::op::OptimizeOptions;
use crate::table::{FileId, Scalar, TableState};

/// Plans the clustering of a table with at most `bytes` of input.
///
/// # Errors
/// As [`super::cluster()`]; Internal if `context` has not the bounds of every key and file.
pub fn budget(
    state: &TableState,
    options: &OptimizeOptions,
    bytes: u64,
    context: &mut LayoutContext<'_>,
) -> Result<RewritePlan> {
    request::mode(state, options)?.expect(Mode::Clustering)?;
    let keys = keys(state)?;
    let files = &state.files;
    if context.bounds.len() != keys.len() || context.bounds.iter().any(|b| b.len() != files.len()) {
        return Err(Error::internal("a budget needs the bounds of every clustering key in every file"));
    }
    let names = cube_keys(&keys);
    let mut ids: Vec<FileId> = files.iter().filter(|f| is_candidate(f.marks, &names)).map(|f| f.id).collect();
    sort_by_size(files, &mut ids);
    let boxes = boxes(state, &ids, context.bounds);
    let total: u64 = ids.iter().map(|id| files.get(*id).size).sum();
    let largest = largest_cube(state, &ids);
    let (mut plan, mut new_cube) =
        (RewritePlan { considered_files: files.len() as u64, ..RewritePlan::default() }, None);
    for set in choose(&boxes, bytes) {
        let members: Vec<FileId> = set.members.iter().map(|i| ids[*i]).collect();
        let order = RowOrder {
            curve: Curve::Hilbert,
            keys: keys.clone(),
            files: outputs(&set, total, bytes, options.sizes.target_bytes, keys.len()),
        };
        let joined = largest_cube(state, &members).or(largest).map(str::to_owned);
        let cube_id = joined.unwrap_or_else(|| new_cube.get_or_insert_with(|| (context.new_cube_id)()).clone());
        plan.groups.push(FileGroup {
            partition_index: files.get(members[0]).partition_index,
            files: members,
            bytes: set.bytes,
            marks: cube_marks(options, &order, context.run_id, &cube_id),
            order: Some(order),
        });
    }
    assert!(invariant::groups_are_disjoint(&plan) && invariant::groups_share_a_partition(&plan, files));
    assert!(plan.input_bytes() <= bytes);
    Ok(plan)
}

/// Files to write for a set of a table of `total` bytes.
pub(super) fn outputs(set: &Set, total: u64, budget: u64, target: u64, keys: usize) -> u64 {
    // All that lies over one output should come to half a budget, as far as the number of files allows.
    let regions = (2.0 * total as f64 / budget.max(1) as f64).clamp(8.0, 64.0);
    let files = (set.mass * regions).max(set.bytes as f64 / target.max(1) as f64).max(1.0);
    match keys {
        1 => files as u64,
        // The curve fills boxes that don't overlap if it is cut into halves of halves.
        _ => 2f64.powf(files.log2().round()) as u64,
    }
}

/// The cube that holds the most bytes of these files.
fn largest_cube<'a>(state: &'a TableState, ids: &[FileId]) -> Option<&'a str> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for id in ids {
        let file = state.files.get(*id);
        if let Some(cube) = cube(file.marks) {
            *bytes.entry(cube.id).or_default() += file.size;
        }
    }
    bytes.into_iter().max_by_key(|(id, bytes)| (*bytes, std::cmp::Reverse(*id))).map(|(id, _)| id)
}

/// The files as boxes; a file without bounds lies over everything.
fn boxes(state: &TableState, ids: &[FileId], bounds: &[KeyBounds]) -> Vec<Extent> {
    let mut runs: BTreeMap<String, u32> = BTreeMap::new();
    let mut boxes: Vec<Extent> = ids
        .iter()
        .map(|id| {
            let file = state.files.get(*id);
            let next = runs.len() as u32;
            let run = match layout(file.marks) {
                Layout::Known(tag) => Some(*runs.entry(tag.run).or_insert(next)),
                Layout::None | Layout::Unknown => None,
            };
            let rows = file.rows.map_or(1, |rows| rows.saturating_sub(file.deleted_rows()).max(1));
            Extent { span: Vec::with_capacity(bounds.len()), bytes: file.size, rows, run }
        })
        .collect();
    for of_key in bounds {
        let known = |id: &FileId| of_key[id.0 as usize].as_ref().filter(|(min, max)| min <= max && !min.is_null());
        let values = || ids.iter().filter_map(known).flat_map(|(min, max)| [min, max]);
        let shared = shared_prefix(values());
        let all = values().map(|v| number(v, shared)).fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        let all = if all.0 <= all.1 { all } else { (0.0, 0.0) };
        for (id, of_file) in ids.iter().zip(&mut boxes) {
            of_file.span.push(known(id).map_or(all, |(min, max)| (number(min, shared), number(max, shared))));
        }
    }
    boxes
}

fn bytes_of(value: &Scalar) -> &[u8] {
    match value {
        Scalar::String(text) => text.as_bytes(),
        Scalar::Binary(bytes) => bytes,
        _ => &[],
    }
}

/// Bytes that all the texts start with.
fn shared_prefix<'a>(mut values: impl Iterator<Item = &'a Scalar>) -> usize {
    let first = values.next().map_or(&[][..], bytes_of);
    values.fold(first.len(), |shared, value| {
        first[..shared].iter().zip(bytes_of(value)).take_while(|(a, b)| a == b).count()
    })
}

/// A finite number whose order is that of the values, as far as its precision goes; of texts it holds the eight bytes
/// behind those that all share.
fn number(value: &Scalar, shared: usize) -> f64 {
    let number = match value {
        Scalar::Null => f64::MIN,
        Scalar::Boolean(v) => f64::from(u8::from(*v)),
        Scalar::Long(v) | Scalar::Timestamp(v) | Scalar::TimestampNtz(v) => *v as f64,
        Scalar::Date(v) => f64::from(*v),
        Scalar::Double(v) if v.is_nan() => f64::MAX,
        Scalar::Double(v) => *v,
        Scalar::Decimal(v, scale) => *v as f64 / 10f64.powi(i32::from(*scale)),
        Scalar::String(_) | Scalar::Binary(_) => {
            let behind = bytes_of(value).get(shared..).unwrap_or_default();
            (0..8).fold(0u64, |sum, i| sum << 8 | u64::from(behind.get(i).copied().unwrap_or(0))) as f64
        }
    };
    // Differences of these stay finite too.
    number.clamp(-1e300, 1e300)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
