//! The diagnosis: summaries, findings and the score.

use serde_json::{Map, Value};

use super::checks::{self, Subject};
use super::command::Cure;
use super::facts::HealthFacts;
use super::packing::{Packing, packings};
use super::tally::TalliedFiles;
use crate::op::health::{DeleteSummary, HealthOptions, HealthReport, HistogramBin, PartitionHealth, SizeSummary};
use crate::plan::compact;
use crate::table::TableState;
use crate::units::{GIB, MIB};

/// Upper bounds of the histogram's bins, bytes; one bin more holds the rest.
const BINS: [u64; 10] = [64 << 10, MIB, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, GIB, 2 * GIB];
/// Below this average a table has a small-files problem.
const SMALL_BYTES: u64 = 32_000_000;
/// Above this size one file keeps one reader busy too long.
const OVERSIZE_BYTES: u64 = 2_048_000_000;
/// Partitions that are shown.
const WORST_PARTITIONS: usize = 5;

/// Judges a table. `state` needs no files: `facts` has them.
pub fn diagnose(state: &TableState, facts: HealthFacts, options: &HealthOptions, now_ms: i64) -> HealthReport {
    let clustered = state.clustering_columns.as_ref().is_some_and(|c| !c.is_empty());
    let packings = packings(&facts.files, &options.sizes, clustered);
    let small_below = SMALL_BYTES.min(options.sizes.target_bytes / 2);
    let partitions = per_partition(&facts.files, &packings, small_below);
    let sizes = sizes(&facts.files, &packings, options, small_below);
    let deletes = deletes(&facts.files, options);
    // What is broken is repaired first: a rewrite would fail, and a vacuum could take what a repair needs.
    let is_damaged = facts.storage.as_ref().is_some_and(|found| found.missing_files > 0 || found.wrong_size_files > 0);
    // Neither is a log that commands refuse.
    let is_damaged = is_damaged || facts.log.empty_commit.is_some() || facts.log.checksum_beyond.is_some();
    let subject = Subject {
        state,
        facts: &facts,
        sizes: &sizes,
        deletes: &deletes,
        partitions: &partitions,
        cure: Cure::new(
            &state.location,
            options.sizes.target_bytes,
            facts.blocked.is_some() || facts.read_only || is_damaged,
        ),
        now_ms,
    };
    let mut findings = checks::all(&subject);
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.points.cmp(&a.points)));
    let lost: u32 = findings.iter().map(|f| f.points).sum();
    let files = facts.files.len() as u64;
    let bytes = facts.files.bytes();
    let partitioned = !state.partition_columns.is_empty();
    HealthReport {
        table: state.location.clone(),
        version: state.version,
        committed_ms: state.timestamp_ms,
        files,
        bytes,
        avg_file_bytes: bytes.checked_div(files).unwrap_or(0),
        rows: facts.files.rows().map(|rows| rows.saturating_sub(deletes.rows)),
        partitions: if partitioned { facts.files.partitions.len() as u64 } else { 0 },
        score: 100u32.saturating_sub(lost),
        histogram: histogram(&facts.files),
        findings,
        partition_columns: state.partition_columns.clone(),
        clustering_columns: state.clustering_columns.iter().flatten().map(|path| path.join(".")).collect(),
        sizes,
        worst_partitions: if partitioned { worst(state, &facts.files, &partitions) } else { Vec::new() },
        deletes,
        log: facts.log,
        snapshots: facts.snapshots,
        tombstones: facts.tombstones,
        statistics: facts.statistics,
        layout: facts.layout,
        storage: facts.storage,
        maintenance: facts.maintenance,
        features: state.features.clone(),
        source: facts.source,
    }
}

/// One partition's files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartitionSizes {
    pub files: u64,
    pub bytes: u64,
    pub small: u64,
    pub oversize: u64,
    pub packing: Packing,
}

fn per_partition(files: &TalliedFiles, packings: &[Packing], small_below: u64) -> Vec<PartitionSizes> {
    let mut found: Vec<PartitionSizes> =
        packings.iter().map(|packing| PartitionSizes { packing: *packing, ..PartitionSizes::default() }).collect();
    for (size, partition) in files.size.iter().zip(&files.partition) {
        let of = &mut found[*partition as usize];
        of.files += 1;
        of.bytes = of.bytes.saturating_add(*size);
        of.small += u64::from(*size < small_below);
        of.oversize += u64::from(*size > OVERSIZE_BYTES);
    }
    found
}

fn sizes(files: &TalliedFiles, packings: &[Packing], options: &HealthOptions, small_below: u64) -> SizeSummary {
    let count = files.size.len() as u64;
    let (mut small, mut small_bytes, mut oversize) = (0, 0u64, 0);
    for size in &files.size {
        if *size < small_below {
            small += 1;
            small_bytes = small_bytes.saturating_add(*size);
        }
        oversize += u64::from(*size > OVERSIZE_BYTES);
    }
    let mut halved = files.size.clone();
    let middle = halved.len() / 2;
    let median = if halved.is_empty() { 0 } else { *halved.select_nth_unstable(middle).1 };
    let total = |of: fn(&Packing) -> u64| packings.iter().map(of).sum::<u64>();
    SizeSummary {
        target_bytes: options.sizes.target_bytes,
        small_below_bytes: small_below,
        small_files: small,
        small_bytes,
        small_ratio: ratio(small, count),
        oversize_above_bytes: OVERSIZE_BYTES,
        oversize_files: oversize,
        oversize_ratio: ratio(oversize, count),
        min_bytes: files.size.iter().min().copied().unwrap_or(0),
        median_bytes: median,
        max_bytes: files.size.iter().max().copied().unwrap_or(0),
        optimize_inputs: total(|p| p.inputs),
        optimize_input_bytes: total(|p| p.input_bytes),
        files_after_optimize: count - total(Packing::saved),
        settled_files: total(|p| p.settled),
    }
}

fn deletes(files: &TalliedFiles, options: &HealthOptions) -> DeleteSummary {
    let mut found = DeleteSummary {
        rows_of_files: Some(0),
        max_ratio: options.sizes.max_deleted_rows_ratio,
        ..DeleteSummary::default()
    };
    for marked in &files.marked {
        found.files += 1;
        found.rows = found.rows.saturating_add(marked.deleted);
        found.rows_of_files = found.rows_of_files.zip(marked.rows).map(|(sum, rows)| sum.saturating_add(rows));
        found.files_above_ratio += u64::from(compact::deletes_too_many(marked.rows, marked.deleted, &options.sizes));
        if let Some(rows) = marked.rows.filter(|rows| *rows > 0) {
            let share = (marked.deleted as f64 / rows as f64).min(1.0);
            found.bytes_estimate += (files.size[marked.file as usize] as f64 * share) as u64;
        }
    }
    found
}

fn histogram(files: &TalliedFiles) -> Vec<HistogramBin> {
    let upper = BINS.iter().copied().map(Some).chain([None]);
    let mut bins: Vec<HistogramBin> = upper.map(|upto| HistogramBin { upto, files: 0, bytes: 0 }).collect();
    for size in &files.size {
        let bin = &mut bins[BINS.partition_point(|upto| upto < size)];
        bin.files += 1;
        bin.bytes = bin.bytes.saturating_add(*size);
    }
    bins
}

/// The partitions with most to gain, then those with most small files.
fn worst(state: &TableState, files: &TalliedFiles, partitions: &[PartitionSizes]) -> Vec<PartitionHealth> {
    let mut order: Vec<usize> = (0..partitions.len()).collect();
    let badness = |i: &usize| (partitions[*i].packing.saved(), partitions[*i].oversize, partitions[*i].small);
    order.sort_by(|a, b| badness(b).cmp(&badness(a)).then_with(|| files.partitions[*a].cmp(&files.partitions[*b])));
    let ill = |i: &usize| partitions[*i].packing.saved() > 0 || partitions[*i].oversize > 0;
    order
        .into_iter()
        .filter(ill)
        .take(WORST_PARTITIONS)
        .map(|i| {
            let of = &partitions[i];
            PartitionHealth {
                values: values(state, files, i),
                files: of.files,
                bytes: of.bytes,
                small_ratio: ratio(of.small, of.files),
                oversize_ratio: ratio(of.oversize, of.files),
                files_after_optimize: of.files - of.packing.saved(),
            }
        })
        .collect()
}

pub(super) fn values(state: &TableState, files: &TalliedFiles, partition: usize) -> Map<String, Value> {
    let raw = &files.partitions[partition].raw;
    state
        .partition_columns
        .iter()
        .cloned()
        .zip(raw.iter().map(|v| v.clone().map_or(Value::Null, Value::from)))
        .collect()
}

/// A share, rounded so that JSON stays readable; 0 of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0 }
}

#[cfg(test)]
#[path = "diagnose_tests.rs"]
mod tests;
