//! Checkpoints, and cleaning up the log that they replace.

use crate::plan::KeptLogFile;

/// Options of a checkpoint of the newest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointOptions {
    /// Delete the files of the log that are older than `delta.logRetentionDuration` and that no kept version needs.
    pub clean_log: bool,
    /// Stop after planning.
    pub dry_run: bool,
}

/// Report of a checkpoint.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckpointReport {
    /// The version.
    pub version: u64,
    /// False if a checkpoint of the version was there already, or with `--dry-run`.
    pub written: bool,
    /// The clean-up, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogCleanupReport>,
}

/// What a clean-up of the log did, or would do.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogCleanupReport {
    /// ISO timestamp with offset: versions that were current at or after it stay readable.
    pub cutoff: String,
    /// The oldest version that stays; null if nothing goes.
    pub keep_from: Option<u64>,
    /// Why nothing goes, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing: Option<String>,
    /// Files deleted; with `--dry-run`, those that would be.
    pub files: Vec<ExpiredLogFile>,
    /// Files that stay although they are old or strange.
    pub kept: Vec<KeptLogFile>,
    /// Files that could not be deleted.
    pub failed: Vec<KeptLogFile>,
    /// Bytes of `files`.
    pub bytes: u64,
    /// True if nothing was deleted because a dry run was asked for.
    pub dry_run: bool,
}

/// A file of the log that goes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ExpiredLogFile {
    /// Name below the log's folder.
    pub path: String,
    /// Bytes.
    pub size: u64,
}
