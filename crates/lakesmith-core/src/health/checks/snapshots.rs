//! Snapshots, manifests and delete files that pile up.

use serde_json::json;

use super::{Subject, days, finding, plural};
use crate::health::SnapshotFacts;
use crate::op::health::{Finding, Severity};
use crate::units::format_bytes;

/// Snapshots that may go before anybody is told.
const EXPIRABLE_FEW: u64 = 10;
const EXPIRABLE_MANY: u64 = 500;
/// Manifests that are never worth a word.
const MANIFESTS_FEW: u64 = 20;
/// A table whose manifests are so many times more than their bytes ask for has them rewritten.
const MANIFESTS_RATIO: u64 = 4;
/// Delete files that every reader of one data file has to look at.
const DELETES_OF_A_FILE_MANY: u64 = 5;
const METADATA_FILES_MANY: u64 = 200;

fn of<'a>(s: &Subject<'a>) -> Option<&'a SnapshotFacts> {
    s.facts.snapshots.as_ref()
}

/// Snapshots that nobody keeps, and with them files that no reader needs.
pub(super) fn expirable(s: &Subject<'_>) -> Option<Finding> {
    let facts = of(s).filter(|f| f.expirable > EXPIRABLE_FEW)?;
    let many = facts.expirable > EXPIRABLE_MANY;
    let age = facts.oldest_ms.map(|oldest| s.now_ms.saturating_sub(oldest).max(0));
    let oldest = age.map_or_else(String::new, |age| format!("; the oldest is {} old", days(age)));
    let message = format!(
        "{} of {} may expire by the table's own rules{oldest}: each keeps the files of its time on the storage",
        plural(facts.expirable, "snapshot"),
        facts.snapshots,
    );
    let evidence = json!({
        "snapshots": facts.snapshots,
        "expirable": facts.expirable,
        "references": facts.references,
        "oldest_ms": super::null_or(facts.oldest_ms),
    });
    let (severity, points) = if many { (Severity::Warning, 10.0) } else { (Severity::Info, 2.0) };
    Some(finding("expirable-snapshots", severity, points, message, evidence))
}

/// Manifests that are far smaller than they should be: a query opens them all to find its files.
pub(super) fn manifests(s: &Subject<'_>) -> Option<Finding> {
    let facts = of(s)?;
    let (count, bytes) = (facts.manifests.files, facts.manifests.bytes);
    let needed = bytes.div_ceil(facts.manifest_target_bytes.max(1)).max(1);
    if count <= MANIFESTS_FEW || count < needed.saturating_mul(MANIFESTS_RATIO) {
        return None;
    }
    let message = format!(
        "{} of {} together, where about {needed} would do: every query opens them to find its files; rewrite the manifests",
        plural(count, "manifest"),
        format_bytes(bytes),
    );
    let evidence = json!({"manifests": count, "bytes": bytes, "target_bytes": facts.manifest_target_bytes});
    let heavy = count >= needed.saturating_mul(MANIFESTS_RATIO * MANIFESTS_RATIO);
    let (severity, points) = if heavy { (Severity::Warning, 10.0) } else { (Severity::Info, 3.0) };
    Some(finding("many-manifests", severity, points, message, evidence))
}

/// Delete files, which every reader applies anew.
pub(super) fn delete_files(s: &Subject<'_>) -> Option<Finding> {
    let facts = of(s)?;
    let (positions, equality) = (facts.position_delete_files, facts.equality_delete_files);
    if positions.files + equality.files == 0 {
        return None;
    }
    let share = facts.files_with_deletes as f64 / s.files().max(1) as f64;
    let heavy = equality.files > 0 && share > 0.1 || facts.most_deletes_of_a_file > DELETES_OF_A_FILE_MANY;
    let message = format!(
        "{} and {} with {} apply to {} of {}, up to {} to one: every reader applies them anew; rewrite these data files",
        plural(positions.files, "position delete file"),
        plural(equality.files, "equality delete file"),
        plural(facts.delete_records, "row"),
        facts.files_with_deletes,
        plural(s.files(), "data file"),
        facts.most_deletes_of_a_file,
    );
    let evidence = json!({
        "position_delete_files": positions.files,
        "equality_delete_files": equality.files,
        "bytes": positions.bytes.saturating_add(equality.bytes),
        "delete_records": facts.delete_records,
        "files_with_deletes": facts.files_with_deletes,
        "most_deletes_of_a_file": facts.most_deletes_of_a_file,
    });
    let (severity, points) = if heavy { (Severity::Warning, 5.0 + 15.0 * share) } else { (Severity::Info, 2.0) };
    Some(finding("delete-files", severity, points, message, evidence))
}

/// Delete files that delete nothing any more.
pub(super) fn dangling_delete_files(s: &Subject<'_>) -> Option<Finding> {
    let facts = of(s).filter(|f| f.dangling_delete_files > 0)?;
    let message = format!(
        "{} to no data file any more: {} of metadata that every query plans with",
        match facts.dangling_delete_files {
            1 => "1 delete file applies".to_owned(),
            count => format!("{count} delete files apply"),
        },
        if facts.dangling_delete_files == 1 { "an entry" } else { "entries" },
    );
    let evidence = json!({"dangling_delete_files": facts.dangling_delete_files});
    Some(finding("dangling-deletes", Severity::Info, 2.0, message, evidence))
}

/// Metadata files that are kept, one a commit.
pub(super) fn metadata_files(s: &Subject<'_>) -> Option<Finding> {
    let facts = of(s).filter(|f| f.metadata_files > METADATA_FILES_MANY && !f.metadata_files_are_deleted)?;
    let message = format!(
        "{} are kept, one of each commit, and each names all before it: set write.metadata.delete-after-commit.enabled \
         and write.metadata.previous-versions-max",
        plural(facts.metadata_files, "metadata file"),
    );
    let evidence = json!({"metadata_files": facts.metadata_files});
    Some(finding("metadata-files", Severity::Info, 2.0, message, evidence))
}
