//! What is stored and no longer needed, and what is needed and not stored.

use serde_json::json;

use super::{Subject, days, finding, null_or, plural};
use crate::op::health::{Finding, Severity};
use crate::units::{GIB, format_bytes, format_count as counted};

const DAY_MS: i64 = 86_400_000;
/// After this long without a run something is amiss.
const OVERDUE_MS: i64 = 30 * DAY_MS;

/// Live files that are gone: every read of them fails.
pub(super) fn missing_files(s: &Subject<'_>) -> Option<Finding> {
    let storage = s.facts.storage.as_ref().filter(|f| f.missing_files > 0)?;
    let message = format!(
        "{} of the table {} not on the storage: readers fail; restore {} from a backup, or go back to a version that can still be read",
        plural(storage.missing_files, "file"),
        if storage.missing_files == 1 { "is" } else { "are" },
        if storage.missing_files == 1 { "it" } else { "them" },
    );
    let evidence = json!({"missing_files": storage.missing_files, "examples": storage.examples});
    let command = Some(s.cure.readable_versions());
    Some(Finding { command, ..finding("missing-files", Severity::Critical, 60.0, message, evidence) })
}

/// Live files that are not what the log says.
pub(super) fn wrong_sizes(s: &Subject<'_>) -> Option<Finding> {
    let storage = s.facts.storage.as_ref().filter(|f| f.wrong_size_files > 0)?;
    let message = format!(
        "{} on the storage {} another size than in the log: overwritten or cut off",
        plural(storage.wrong_size_files, "file"),
        if storage.wrong_size_files == 1 { "has" } else { "have" },
    );
    let evidence = json!({"wrong_size_files": storage.wrong_size_files, "examples": storage.examples});
    let command = Some(s.cure.fsck());
    Some(Finding { command, ..finding("wrong-file-sizes", Severity::Critical, 40.0, message, evidence) })
}

/// Files that a VACUUM may delete: exact after a look at the storage, else what the log still names.
pub(super) fn reclaimable(s: &Subject<'_>) -> Option<Finding> {
    let exact = s.facts.storage.as_ref();
    let tombstones = s.facts.tombstones;
    let found = exact.map(|f| f.reclaimable).or(tombstones.map(|t| t.expired)).filter(|f| f.files > 0)?;
    let retention_ms = tombstones.map_or(7 * DAY_MS, |t| t.retention_ms);
    let heavy = found.bytes > GIB && found.bytes > s.bytes() / 4;
    let severity = if heavy { Severity::Warning } else { Severity::Info };
    let share = found.bytes as f64 / s.bytes().saturating_add(found.bytes).max(1) as f64;
    let message = match exact {
        Some(f) => format!(
            "{} of {} can be deleted, {} of them never referenced by the log or no longer; the table itself holds {}",
            plural(found.files, "file"),
            format_bytes(found.bytes),
            counted(f.orphans.files),
            format_bytes(s.bytes()),
        ),
        None => format!(
            "{} of {} left the table more than {} ago and may still be stored",
            plural(found.files, "file"),
            format_bytes(found.bytes),
            days(retention_ms),
        ),
    };
    let evidence = json!({
        "files": found.files,
        "bytes": found.bytes,
        "exact": exact.is_some(),
        "orphan_files": null_or(exact.map(|f| f.orphans.files)),
        "orphan_bytes": null_or(exact.map(|f| f.orphans.bytes)),
        "tombstones": null_or(tombstones.map(|t| t.all.files)),
        "tombstone_bytes": null_or(tombstones.map(|t| t.all.bytes)),
        "retention_ms": retention_ms,
    });
    let points = if heavy { 5.0 + 10.0 * share } else { 2.0 * share };
    Some(Finding { command: s.cure.vacuum(), ..finding("reclaimable-storage", severity, points, message, evidence) })
}

/// Files pile up and nobody has vacuumed for long.
pub(super) fn maintenance_overdue(s: &Subject<'_>) -> Option<Finding> {
    let removed = s.facts.tombstones.map_or(0, |t| t.all.files);
    let past = s.facts.maintenance;
    let recent = past.last_vacuum.is_some_and(|run| run.age_ms < OVERDUE_MS);
    // A table younger than a month cannot be overdue, and one from which nothing was removed has nothing to clean.
    let young = s.state.created_ms.is_none_or(|created| s.now_ms.saturating_sub(created) < OVERDUE_MS);
    if recent || young || removed == 0 {
        return None;
    }
    let when = match (past.last_vacuum, past.oldest_version_read) {
        (Some(run), _) => format!("the last VACUUM was {} ago", days(run.age_ms)),
        (None, Some(0)) => "the table was never vacuumed".to_owned(),
        (None, Some(version)) => format!("no VACUUM since version {version}, as far back as the history was read"),
        (None, None) => "no VACUUM is known of".to_owned(),
    };
    let message = format!("{when}, and {} left the table", plural(removed, "file"));
    let evidence = json!({
        "last_vacuum_ms": null_or(past.last_vacuum.map(|r| r.time_ms)),
        "last_optimize_ms": null_or(past.last_optimize.map(|r| r.time_ms)),
        "oldest_version_read": null_or(past.oldest_version_read),
        "tombstones": removed,
    });
    Some(Finding { command: s.cure.vacuum(), ..finding("vacuum-overdue", Severity::Info, 2.0, message, evidence) })
}
