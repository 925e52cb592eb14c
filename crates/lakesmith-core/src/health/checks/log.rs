//! The log and its checkpoints.

use serde_json::json;

use super::{Subject, days, finding, null_or, plural};
use crate::health::CheckpointHint;
use crate::op::health::{Finding, Severity};
use crate::units::{GIB, MIB, format_bytes, format_count as counted};

/// Commits after a checkpoint that are never worth a word.
const COMMITS_FEW: u64 = 20;
/// Commits that every reader has to read one by one.
const COMMITS_MANY: u64 = 100;
const REPLAY_BYTES_MANY: u64 = 128 * MIB;
const LOG_FILES_MANY: u64 = 50_000;
const LOG_BYTES_MANY: u64 = GIB;
const EXPIRED_MANY: u64 = 10_000;

/// The newest checkpoint cannot be read.
pub(super) fn broken_checkpoint(s: &Subject<'_>) -> Option<Finding> {
    let version = s.facts.log.broken_checkpoint?;
    let message = format!(
        "the checkpoint of version {version} cannot be read: this table was read around it, other readers may fail, and \
         once the log before it is cleaned up nothing gives the table any more; write a new one"
    );
    let evidence = json!({"broken_checkpoint": version, "checkpoint_version": null_or(s.facts.log.checkpoint_version)});
    let found = finding("unreadable-checkpoint", Severity::Critical, 40.0, message, evidence);
    Some(Finding { command: s.cure.checkpoint(), ..found })
}

/// A commit that says nothing at all.
pub(super) fn empty_commit(s: &Subject<'_>) -> Option<Finding> {
    let version = s.facts.log.empty_commit?;
    let message = format!(
        "the commit of version {version} has not a single byte: unless its writer is still at work, what it did is lost; \
         restore _delta_log/{version:020}.json from a copy"
    );
    let found = finding("empty-commit", Severity::Critical, 60.0, message, json!({"empty_commit": version}));
    Some(Finding { command: Some(s.cure.fsck()), ..found })
}

/// A checksum of a version that the log does not have.
pub(super) fn checksum_beyond(s: &Subject<'_>) -> Option<Finding> {
    let version = s.facts.log.checksum_beyond?;
    let latest = s.facts.log.latest;
    let message = format!(
        "there is a checksum of version {version}, but the log ends at version {latest}: commits seem to be lost; \
         restore them from a copy, or delete _delta_log/{version:020}.crc if the log is known to be whole"
    );
    let evidence = json!({"checksum_version": version, "latest_version": latest});
    let found = finding("checksum-beyond-log", Severity::Critical, 60.0, message, evidence);
    Some(Finding { command: Some(s.cure.fsck()), ..found })
}

/// No checkpoint, or one long ago.
pub(super) fn checkpoint(s: &Subject<'_>) -> Option<Finding> {
    let log = &s.facts.log;
    let behind = log.commits_since_checkpoint;
    let usual = log.checkpoint_interval.saturating_mul(2).max(COMMITS_FEW);
    if behind <= usual && log.bytes_since_checkpoint <= REPLAY_BYTES_MANY {
        return None;
    }
    let heavy = behind > COMMITS_MANY.max(usual) || log.bytes_since_checkpoint > REPLAY_BYTES_MANY;
    let severity = if heavy { Severity::Warning } else { Severity::Info };
    let points = if heavy { 10.0 + (behind as f64 / COMMITS_MANY as f64).min(10.0) } else { 2.0 };
    let since = match log.checkpoint_version {
        Some(version) => format!("the newest checkpoint is of version {version}"),
        None => "there is no checkpoint".to_owned(),
    };
    let message = format!(
        "{since}: every reader replays {} ({})",
        plural(behind, "commit"),
        format_bytes(log.bytes_since_checkpoint),
    );
    let evidence = json!({
        "checkpoint_version": null_or(log.checkpoint_version),
        "commits_since_checkpoint": behind,
        "bytes_since_checkpoint": log.bytes_since_checkpoint,
        "checkpoint_interval": log.checkpoint_interval,
    });
    Some(Finding { command: s.cure.checkpoint(), ..finding("stale-checkpoint", severity, points, message, evidence) })
}

/// The hint that saves readers a listing.
pub(super) fn checkpoint_hint(s: &Subject<'_>) -> Option<Finding> {
    let log = &s.facts.log;
    if log.checkpoint_version.is_none() && log.last_checkpoint_hint != CheckpointHint::BeyondLog {
        return None;
    }
    let (severity, points, what) = match log.last_checkpoint_hint {
        CheckpointHint::Current | CheckpointHint::Older => return None,
        CheckpointHint::Missing if log.files.files < 1_000 => {
            (Severity::Info, 1.0, "is missing: readers list the whole log")
        }
        CheckpointHint::Missing => (Severity::Warning, 4.0, "is missing: readers list the whole log"),
        CheckpointHint::Damaged => {
            (Severity::Warning, 4.0, "is damaged: readers that need it fail or list the whole log")
        }
        CheckpointHint::NamesMissing => {
            (Severity::Warning, 10.0, "names a checkpoint that is not there: some readers fail")
        }
        CheckpointHint::BeyondLog => (
            Severity::Critical,
            40.0,
            "names a version that the log does not reach: commits seem to be lost; restore them from a copy, or \
             delete the hint if the log is known to be whole",
        ),
    };
    let evidence = json!({"hint": log.last_checkpoint_hint, "checkpoint_version": null_or(log.checkpoint_version), "log_files": log.files.files});
    let message = format!("_delta_log/_last_checkpoint {what}");
    let command = match log.last_checkpoint_hint {
        CheckpointHint::BeyondLog => Some(s.cure.fsck()),
        _ => s.cure.checkpoint(),
    };
    Some(Finding { command, ..finding("last-checkpoint-hint", severity, points, message, evidence) })
}

/// Log files that nobody needs any more.
pub(super) fn expired_log_files(s: &Subject<'_>) -> Option<Finding> {
    let log = &s.facts.log;
    let expired = log.expired;
    if expired.files < 100 {
        return None;
    }
    let many = expired.files > EXPIRED_MANY || expired.bytes > LOG_BYTES_MANY;
    let severity = if many { Severity::Warning } else { Severity::Info };
    let message = format!(
        "{} of the log ({}) are older than its retention of {} and no longer needed",
        plural(expired.files, "file"),
        format_bytes(expired.bytes),
        days(log.retention_ms),
    );
    let evidence = json!({"files": expired.files, "bytes": expired.bytes, "retention_ms": log.retention_ms});
    let points = if many { 5.0 } else { 1.0 };
    Some(Finding { command: s.cure.clean_log(), ..finding("expired-log-files", severity, points, message, evidence) })
}

/// A log that is heavy whatever its checkpoints.
pub(super) fn large_log(s: &Subject<'_>) -> Option<Finding> {
    let log = &s.facts.log;
    let many = log.files.files > LOG_FILES_MANY;
    let heavy = log.files.bytes > LOG_BYTES_MANY && log.files.bytes > s.bytes() / 20;
    if !many && !heavy {
        return None;
    }
    let message = format!(
        "the log holds {} of {}: listing it takes long; write less often or keep it for a shorter time \
         (delta.logRetentionDuration is {})",
        plural(log.files.files, "file"),
        format_bytes(log.files.bytes),
        days(log.retention_ms),
    );
    let evidence = json!({"files": log.files.files, "bytes": log.files.bytes, "commits": log.commits, "checkpoint_bytes": log.checkpoint_bytes});
    Some(finding("large-log", Severity::Warning, 5.0, message, evidence))
}

/// A version checksum that contradicts the log: engines that trust it show wrong data.
pub(super) fn checksum(s: &Subject<'_>) -> Option<Finding> {
    let checksum = s.facts.log.checksum?;
    if (checksum.files, checksum.bytes) == (s.files(), s.bytes()) {
        return None;
    }
    let message = format!(
        "the checksum file of version {} says {} and {}, but the log gives {} and {}: engines that trust it go wrong; \
         delete that .crc file",
        s.state.version,
        plural(checksum.files, "file"),
        format_bytes(checksum.bytes),
        counted(s.files()),
        format_bytes(s.bytes()),
    );
    let evidence = json!({
        "checksum_files": checksum.files, "checksum_bytes": checksum.bytes, "files": s.files(), "bytes": s.bytes(),
    });
    Some(finding("checksum-mismatch", Severity::Critical, 30.0, message, evidence))
}
