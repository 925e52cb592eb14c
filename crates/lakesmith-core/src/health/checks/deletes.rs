//! Rows that are deleted but still stored.

use serde_json::json;

use super::{Subject, finding, null_or, percent, plural};
use crate::op::health::{Finding, Severity};
use crate::units::{GIB, format_bytes, format_count as counted};

/// Dead bytes beyond which the share no longer matters.
const DEAD_BYTES: u64 = 10 * GIB;

/// Deletion vectors: every reader merges them, and the rows stay on storage.
pub(super) fn stored_deletes(s: &Subject<'_>) -> Option<Finding> {
    let deletes = s.deletes;
    if deletes.files == 0 {
        return None;
    }
    let share = deletes.rows_of_files.filter(|rows| *rows > 0).map(|rows| deletes.rows as f64 / rows as f64);
    let dead = deletes.bytes_estimate as f64 / s.bytes().max(1) as f64;
    let unknown = deletes.rows_of_files.is_none();
    let heavy = deletes.files_above_ratio > 0
        && (dead > deletes.max_ratio
            || deletes.bytes_estimate > DEAD_BYTES
            || (unknown && deletes.files > s.files() / 2));
    let severity = if heavy { Severity::Warning } else { Severity::Info };
    let points = if heavy { 5.0 + 20.0 * dead } else { 2.0 * dead };
    let of_rows = share.map_or_else(String::new, |share| format!(" ({} of their rows)", percent(share)));
    let message = format!(
        "{} still stored in {}{of_rows}, about {}; {} above {}",
        plural_deleted(deletes.rows),
        plural(deletes.files, "file"),
        format_bytes(deletes.bytes_estimate),
        plural(deletes.files_above_ratio, "file"),
        percent(deletes.max_ratio),
    );
    let evidence = json!({
        "deleted_rows": deletes.rows,
        "files": deletes.files,
        "share_of_files": (deletes.files as f64 / s.files().max(1) as f64 * 10_000.0).round() / 10_000.0,
        "rows_of_files": null_or(deletes.rows_of_files),
        "files_above_ratio": deletes.files_above_ratio,
        "max_ratio": deletes.max_ratio,
        "bytes_estimate": deletes.bytes_estimate,
    });
    Some(Finding { command: s.cure.purge(), ..finding("deleted-rows-stored", severity, points, message, evidence) })
}

fn plural_deleted(rows: u64) -> String {
    if rows == 1 { "1 deleted row is".into() } else { format!("{} deleted rows are", counted(rows)) }
}
