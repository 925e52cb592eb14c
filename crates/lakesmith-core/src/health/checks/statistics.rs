//! Statistics and the order of rows: what lets readers skip files.

use serde_json::json;

use super::{Subject, finding, percent, plural};
use crate::op::health::{Finding, Severity};
use crate::units::{GIB, format_bytes};

/// Names shown at most.
const NAMES_MAX: usize = 20;
/// Files that must lack a column's statistics before anybody is told.
const LACKING_MIN: u64 = 10;
/// Files for one value that nobody needs to hear of.
const DEPTH_MIN: f64 = 3.0;
/// A table without any order is told so from this size on.
const LARGE_BYTES: u64 = 100 * GIB;

/// Files that carry no statistics, or lack those of columns that should have them.
pub(super) fn missing_statistics(s: &Subject<'_>) -> Option<Finding> {
    let statistics = &s.facts.statistics;
    // A column that was added later has no statistics in older files, which is as it should be while they are few.
    let lacking = statistics.columns_lacking.values().any(|n| *n >= LACKING_MIN && *n * 10 > statistics.files_read);
    // One file is read whatever its statistics say.
    if statistics.files_read < 2 || (statistics.files_without == 0 && !lacking) {
        return None;
    }
    let share = statistics.files_without as f64 / statistics.files_read as f64;
    let matters = s.bytes() > s.sizes.target_bytes;
    let severity = if share > 0.1 && matters { Severity::Warning } else { Severity::Info };
    let points = if severity == Severity::Warning { 5.0 + 10.0 * share } else { 1.0 };
    let of = if statistics.complete { "" } else { " that were sampled" };
    let message = if statistics.files_without > 0 {
        format!(
            "{} of the files{of} have no statistics, so no filter can skip them{}",
            percent(share),
            if statistics.columns_indexed == 0 { "; the table's properties ask for none" } else { "" },
        )
    } else {
        let (column, files) = statistics.columns_lacking.iter().max_by_key(|(_, files)| **files)?;
        format!(
            "{} lack statistics in some files{of}, {column} in {}",
            plural(statistics.columns_lacking.len() as u64, "column"),
            plural(*files, "file"),
        )
    };
    let lacking: serde_json::Map<_, _> =
        statistics.columns_lacking.iter().take(NAMES_MAX).map(|(c, n)| (c.clone(), json!(n))).collect();
    let evidence = json!({
        "files_read": statistics.files_read,
        "complete": statistics.complete,
        "files_without": statistics.files_without,
        "files_without_rows": statistics.files_without_rows,
        "columns_lacking": lacking,
    });
    Some(finding("missing-statistics", severity, points, message, evidence))
}

/// Columns by which no file can ever be skipped.
pub(super) fn columns_without_statistics(s: &Subject<'_>) -> Option<Finding> {
    let statistics = &s.facts.statistics;
    let keys = &statistics.clustering_not_indexed;
    if statistics.columns_not_indexed.is_empty() && keys.is_empty() {
        return None;
    }
    let shown: Vec<&String> = statistics.columns_not_indexed.iter().take(NAMES_MAX).collect();
    let evidence = json!({
        "columns_indexed": statistics.columns_indexed,
        "columns_not_indexed": statistics.columns_not_indexed.len(),
        "names": shown,
        "clustering_columns": keys,
    });
    if !keys.is_empty() {
        let message = format!(
            "the clustering columns {} get no statistics, so clustering by them skips nothing; name them in \
             delta.dataSkippingStatsColumns",
            keys.join(", ")
        );
        return Some(finding("columns-without-statistics", Severity::Warning, 8.0, message, evidence));
    }
    let first: Vec<&str> = statistics.columns_not_indexed.iter().take(3).map(String::as_str).collect();
    let more = statistics.columns_not_indexed.len().saturating_sub(first.len());
    let message = format!(
        "{} that could be filtered by get no statistics ({}{}); if queries filter by them, name them in \
         delta.dataSkippingStatsColumns",
        plural(statistics.columns_not_indexed.len() as u64, "column"),
        first.join(", "),
        if more > 0 { format!(" and {more} more") } else { String::new() },
    );
    Some(finding("columns-without-statistics", Severity::Info, 1.0, message, evidence))
}

/// A large table without partitions and without any order.
pub(super) fn unclustered(s: &Subject<'_>) -> Option<Finding> {
    let keys = s.state.clustering_columns.as_ref().filter(|c| !c.is_empty());
    let files = s.files();
    match keys {
        Some(keys) => {
            let outside = s.facts.files.outside_cubes();
            let bytes = outside.bytes;
            if bytes < s.sizes.target_bytes || outside.files < 2 {
                return None;
            }
            let share = bytes as f64 / s.bytes().max(1) as f64;
            let message = format!(
                "{} of the bytes are not clustered by {} yet",
                percent(share),
                keys.iter().map(|k| k.join(".")).collect::<Vec<_>>().join(", "),
            );
            let evidence =
                json!({"files": outside.files, "bytes": bytes, "share": (share * 10_000.0).round() / 10_000.0});
            let severity = if share > 0.3 { Severity::Warning } else { Severity::Info };
            let found = finding("unclustered-files", severity, 10.0 * share, message, evidence);
            Some(Finding { command: s.cure.optimize(), ..found })
        }
        None if !s.is_partitioned() && s.bytes() > LARGE_BYTES => {
            let message = format!(
                "{} in {} without partitions or clustering: unless rows arrive in the order of what queries filter by, \
                 every query reads all of it",
                format_bytes(s.bytes()),
                plural(files, "file"),
            );
            Some(finding("no-layout", Severity::Info, 2.0, message, json!({"bytes": s.bytes(), "files": files})))
        }
        None => None,
    }
}

/// A clustered table whose files lie over each other in its keys all the same, whatever their sizes.
pub(super) fn badly_ordered(s: &Subject<'_>) -> Option<Finding> {
    let keys = &s.facts.layout;
    let judged = keys.iter().filter(|key| key.depth.unknown_files * 10 <= key.files);
    let with_mean = judged.filter_map(|key| Some((key, key.depth.mean?)));
    let bad = with_mean.filter(|(key, mean)| *mean >= DEPTH_MIN && *mean > 2.0 * expected_depth(key.files, keys.len()));
    let (key, mean) = bad.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = (mean / key.files as f64).min(1.0);
    let worst = key.depth.worst.unwrap_or(0);
    let message = format!(
        "one value of {} is in {mean:.1} of {} on average, in {} at worst: their rows are not in order, and filters by \
         it skip little; packing files keeps their rows as they are, clustering puts them in order",
        key.column,
        plural(key.files, "file"),
        plural(worst, "file"),
    );
    let evidence = json!({
        "column": key.column,
        "files": key.files,
        "mean_depth": (mean * 100.0).round() / 100.0,
        "worst_depth": worst,
        "unknown_files": key.depth.unknown_files,
        "expected_depth": (expected_depth(key.files, keys.len()) * 100.0).round() / 100.0,
    });
    let matters = share >= 0.5 && s.bytes() > s.sizes.target_bytes;
    let (severity, points) = if matters { (Severity::Warning, 5.0 + 10.0 * share) } else { (Severity::Info, 2.0) };
    // Files that are in cubes already are redone only if they must.
    let command = if s.facts.files.outside_cubes().files > 0 { s.cure.optimize() } else { s.cure.cluster_again() };
    Some(Finding { command, ..finding("badly-ordered", severity, points, message, evidence) })
}

/// The depth in one of the keys of files that a curve through them lays out: each key gets its share of the cuts.
fn expected_depth(files: u64, keys: usize) -> f64 {
    (files as f64).powf(1.0 - 1.0 / keys.max(1) as f64)
}
