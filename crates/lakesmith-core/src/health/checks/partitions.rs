//! Partitions that are too many, too small or of too different size.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Subject, finding, plural};
use crate::health::diagnose::values;
use crate::op::health::{Finding, Severity};
use crate::units::{format_bytes, format_count as counted};

/// A partition column with more values than this has too many.
const VALUES_MAX: usize = 10_000;
/// Fewer partitions than this are never called too many.
const PARTITIONS_FEW: usize = 100;
const PARTITIONS_MANY: usize = 1_000;
/// The largest partition is this many times the median before it is called skewed.
const SKEW_RATIO: u64 = 10;

/// More values than a partition column should have, or partitions too small to be worth a folder.
pub(super) fn over_partitioned(s: &Subject<'_>) -> Option<Finding> {
    let partitions = s.facts.files.partitions();
    if !s.is_partitioned() || partitions.len() < PARTITIONS_FEW {
        return None;
    }
    let columns = &s.state.partition_columns;
    let distinct: Vec<usize> =
        (0..columns.len()).map(|i| partitions.iter().map(|p| p.raw.get(i)).collect::<BTreeSet<_>>().len()).collect();
    let (most, worst) = distinct.iter().zip(columns).max_by_key(|(count, _)| **count)?;
    let median = median_bytes(s);
    let tiny = median < s.sizes.small_below_bytes;
    let evidence = json!({
        "partitions": partitions.len(),
        "distinct_values": columns.iter().cloned().zip(distinct.iter().map(|n| json!(n))).collect::<serde_json::Map<_, _>>(),
        "values_max": VALUES_MAX,
        "median_partition_bytes": median,
        "files": s.files(),
    });
    if *most > VALUES_MAX || partitions.len() > VALUES_MAX {
        let message = format!(
            "{}, {} values of {worst}: a column with more than {} values should not partition a table; cluster by it instead",
            plural(partitions.len() as u64, "partition"),
            counted(*most as u64),
            counted(VALUES_MAX as u64),
        );
        let points = if tiny { 25.0 } else { 12.0 };
        return Some(finding("over-partitioned", Severity::Warning, points, message, evidence));
    }
    if !tiny {
        return None;
    }
    let many = partitions.len() >= PARTITIONS_MANY;
    let severity = if many { Severity::Warning } else { Severity::Info };
    let message = format!(
        "{} of {} in the middle: no OPTIMIZE can make files larger than their partition; partition by fewer values, or \
         cluster instead",
        plural(partitions.len() as u64, "partition"),
        format_bytes(median),
    );
    Some(finding("tiny-partitions", severity, if many { 10.0 } else { 2.0 }, message, evidence))
}

/// One partition far larger than the others.
pub(super) fn skewed(s: &Subject<'_>) -> Option<Finding> {
    if !s.is_partitioned() || s.partitions.len() < 4 {
        return None;
    }
    let (place, largest) = s.partitions.iter().enumerate().max_by_key(|(_, p)| p.bytes)?;
    let median = median_bytes(s).max(1);
    if largest.bytes < s.sizes.target_bytes || largest.bytes / median < SKEW_RATIO {
        return None;
    }
    let share = largest.bytes as f64 / s.bytes().max(1) as f64;
    let heavy = share > 0.5;
    let values = values(s.state, &s.facts.files, place);
    let message = format!(
        "the largest partition holds {}, {} times the median of {}: whatever touches it takes longest",
        format_bytes(largest.bytes),
        counted(largest.bytes / median),
        format_bytes(median),
    );
    let evidence = json!({
        "largest": values,
        "largest_bytes": largest.bytes,
        "largest_files": largest.files,
        "median_partition_bytes": median,
        "share": (share * 10_000.0).round() / 10_000.0,
    });
    let severity = if heavy { Severity::Warning } else { Severity::Info };
    Some(finding("skewed-partitions", severity, if heavy { 5.0 } else { 1.0 }, message, evidence))
}

fn median_bytes(s: &Subject<'_>) -> u64 {
    let mut bytes: Vec<u64> = s.partitions.iter().map(|p| p.bytes).collect();
    bytes.sort_unstable();
    bytes.get(bytes.len() / 2).copied().unwrap_or(0)
}
