//! Where the ordered rows are cut into files.

use std::cmp::Ordering;

use super::keys::{KeyValue, Keys, OwnedKey};
use super::primary::Primary;
use super::sample::{Ordinal, Sample, SampledRow};

/// A cut moves by this part of a file at most, to keep rows with equal keys together, or to where the curve leaves a cell.
const MOVED_AT_MOST: f64 = 0.1;

/// The first place after a cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cut {
    primary: u64,
    keys: Box<[OwnedKey]>,
    ordinal: Ordinal,
}

impl Cut {
    /// The order of a row and this place.
    pub(crate) fn compare(&self, primary: u64, keys: &Keys, row: usize, ordinal: Ordinal) -> Ordering {
        primary
            .cmp(&self.primary)
            .then_with(|| keys.compare_owned(row, &self.keys))
            .then_with(|| ordinal.cmp(&self.ordinal))
    }
}

/// Cuts the sampled rows into at most `files` equal shares.
pub(crate) fn cuts(sample: Sample, primary: &Primary, files: u64) -> Vec<Cut> {
    let mut rows: Vec<(u64, SampledRow)> =
        sample.rows.into_iter().map(|row| (primary.of_owned(&row.keys), row)).collect();
    let files = files.min(rows.len() as u64).max(1);
    rows.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.keys.cmp(&y.keys)).then_with(|| x.ordinal.cmp(&y.ordinal)));
    let mut before = Vec::with_capacity(rows.len() + 1);
    let mut sum = 0.0;
    for (_, row) in &rows {
        before.push(sum);
        sum += row.weight;
    }
    before.push(sum);
    let share = sum / files as f64;
    let same = |a: usize, b: usize| rows[a].0 == rows[b].0 && rows[a].1.keys == rows[b].1.keys;
    let on_curve = primary.is_curve();
    let mut cuts: Vec<Cut> = Vec::new();
    let mut last = 0;
    for file in 1..files {
        let wanted = share * file as f64;
        // Weights that are no whole numbers don't add up exactly.
        let mut at = before.partition_point(|weight| *weight < wanted - share * 1e-6);
        if at == 0 || at >= rows.len() {
            continue;
        }
        if on_curve {
            let reach = |at: &usize| (before[*at] - wanted).abs() <= share * MOVED_AT_MOST;
            at = leaves_largest_cell(&rows, at, reach);
        }
        let mut ordinal = (0, 0);
        if same(at - 1, at) {
            let low = at - before_while(at, |i| same(i - 1, at));
            let high = at + (at..rows.len()).take_while(|i| same(*i, at)).count();
            let distance = |edge: usize| (before[edge] - before[at]).abs();
            let nearer = if distance(low) <= distance(high) { low } else { high };
            if distance(nearer) <= share * MOVED_AT_MOST && nearer > 0 && nearer < rows.len() {
                at = nearer;
            } else {
                ordinal = rows[at].1.ordinal;
            }
        }
        if at <= last {
            continue;
        }
        last = at;
        let (primary, row) = &rows[at];
        cuts.push(match (primary ^ rows[at - 1].0).checked_ilog2() {
            // Rows that are not in the sample may be in the new cell, too.
            Some(bits) if on_curve => {
                Cut { primary: primary >> bits << bits, keys: vec![KeyValue::Null; row.keys.len()].into(), ordinal }
            }
            _ => Cut { primary: *primary, keys: row.keys.clone(), ordinal },
        });
    }
    cuts
}

/// The place within `reach` of `at` before which a curve leaves its largest cell; the nearest one of several. A file that
/// holds a bit of the next cell spans both.
fn leaves_largest_cell(rows: &[(u64, SampledRow)], at: usize, reach: impl Fn(&usize) -> bool) -> usize {
    let size = |at: usize| (rows[at - 1].0 ^ rows[at].0).checked_ilog2();
    let below = (1..at).rev().take_while(&reach);
    let above = (at + 1..rows.len()).take_while(&reach);
    let nearest_first = |place: &usize| (size(*place), std::cmp::Reverse(place.abs_diff(at)));
    below.chain(above).chain([at]).max_by_key(nearest_first).unwrap_or(at)
}

/// How many steps down from `at` hold.
fn before_while(at: usize, holds: impl Fn(usize) -> bool) -> usize {
    (1..=at).rev().take_while(|i| holds(*i)).count()
}
