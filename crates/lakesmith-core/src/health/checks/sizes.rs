//! Files that are too small or too large.

use serde_json::json;

use super::{Subject, finding, percent, plural, threshold};
use crate::op::health::{Finding, Severity};
use crate::units::{format_bytes, format_count as counted};

/// Files that OPTIMIZE must save before anybody is told.
const SAVED_MIN: u64 = 10;
/// Files that it must save to be worth a warning: what automatic compaction waits for, too.
const SAVED_WARNING: u64 = 50;
/// A table of more files than this strains every reader's planning.
const FILES_MAX: u64 = 100_000;
/// A bin above this average is no small-files problem, however much larger its files could be.
const SMALL_SHARE: f64 = 0.5;

/// Small files that OPTIMIZE would pack, or far too many files.
pub(super) fn small_files(s: &Subject<'_>) -> Option<Finding> {
    let (files, sizes) = (s.files(), s.sizes);
    let saved = files - sizes.files_after_optimize;
    let average = s.bytes().checked_div(files).unwrap_or(0);
    let packable_average = sizes.optimize_input_bytes.checked_div(sizes.optimize_inputs).unwrap_or(u64::MAX);
    let crowded =
        s.partitions.iter().filter(|p| p.small >= SAVED_WARNING && p.packing.saved() >= SAVED_WARNING).count();
    let mostly_small = sizes.small_ratio >= SMALL_SHARE || packable_average < sizes.small_below_bytes;
    let many = files > FILES_MAX;
    let (severity, points) = if saved < SAVED_MIN || !(mostly_small || many || crowded > 0) {
        if !many {
            return None;
        }
        (Severity::Info, 5.0)
    } else {
        let share = saved as f64 / files as f64;
        if many && (share > 0.5 || saved > FILES_MAX) {
            (Severity::Critical, 35.0 + 25.0 * share)
        } else if saved >= SAVED_WARNING {
            (Severity::Warning, 10.0 + 25.0 * share)
        } else {
            (Severity::Info, 4.0 * share)
        }
    };
    let message = if saved < SAVED_MIN {
        format!(
            "{} of {} on average: planning a query takes long, but OPTIMIZE cannot make them fewer",
            plural(files, "file"),
            format_bytes(average)
        )
    } else {
        format!(
            "{} of {} on average, {} of them below {}: OPTIMIZE would leave {}",
            plural(files, "file"),
            format_bytes(average),
            percent(sizes.small_ratio),
            threshold(sizes.small_below_bytes),
            counted(sizes.files_after_optimize),
        )
    };
    let evidence = json!({
        "files": files,
        "avg_file_bytes": average,
        "small_files": sizes.small_files,
        "small_ratio": sizes.small_ratio,
        "small_below_bytes": sizes.small_below_bytes,
        "files_after_optimize": sizes.files_after_optimize,
        "optimize_inputs": sizes.optimize_inputs,
        "optimize_input_bytes": sizes.optimize_input_bytes,
        "crowded_partitions": crowded,
        "files_max": FILES_MAX,
    });
    let mut found = finding("small-files", severity, points, message, evidence);
    if saved >= SAVED_MIN {
        found.command = s.cure.optimize();
    } else {
        found.id = "too-many-files";
    }
    Some(found)
}

/// Outputs of earlier runs that shrank and now would fit together.
pub(super) fn settled_small_files(s: &Subject<'_>) -> Option<Finding> {
    let bins: u64 = s.partitions.iter().map(|p| p.packing.settled_groups).sum();
    let saved = s.sizes.settled_files.saturating_sub(bins);
    if saved < SAVED_MIN || s.sizes.small_files < SAVED_MIN {
        return None;
    }
    let message = format!(
        "{} were packed for this target before and came out smaller; a plain OPTIMIZE leaves them, a forced one would \
         make them {}",
        plural(s.sizes.settled_files, "file"),
        counted(bins),
    );
    let evidence = json!({"files": s.sizes.settled_files, "files_after": bins, "target_bytes": s.sizes.target_bytes});
    let severity = if saved >= SAVED_WARNING { Severity::Warning } else { Severity::Info };
    let points = if saved >= SAVED_WARNING { 8.0 } else { 1.0 };
    Some(Finding {
        command: s.cure.optimize_force(),
        ..finding("settled-small-files", severity, points, message, evidence)
    })
}

/// Files so large that one reader works on them for long.
pub(super) fn oversize_files(s: &Subject<'_>) -> Option<Finding> {
    let sizes = s.sizes;
    if sizes.oversize_files == 0 {
        return None;
    }
    let average = s.bytes() / s.files().max(1);
    let all_large = average > sizes.oversize_above_bytes;
    let severity = if all_large || sizes.oversize_ratio > 0.25 { Severity::Warning } else { Severity::Info };
    let points = if severity == Severity::Warning { 10.0 } else { 2.0 };
    let message = format!(
        "{} above {}, the largest {}: few readers share the work, and an update of one row rewrites much; write them \
         again in smaller pieces, or partition or cluster the table",
        plural(sizes.oversize_files, "file"),
        threshold(sizes.oversize_above_bytes),
        format_bytes(sizes.max_bytes),
    );
    let evidence = json!({
        "oversize_files": sizes.oversize_files,
        "oversize_ratio": sizes.oversize_ratio,
        "oversize_above_bytes": sizes.oversize_above_bytes,
        "max_bytes": sizes.max_bytes,
        "avg_file_bytes": average,
    });
    Some(finding("oversize-files", severity, points, message, evidence))
}
