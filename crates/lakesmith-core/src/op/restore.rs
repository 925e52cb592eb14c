//! RESTORE: an earlier version becomes the newest.

use super::{RewriteLimits, TimeTravel};

/// Options of RESTORE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreOptions {
    /// The version to return to.
    pub to: TimeTravel,
    /// Set the progress of streaming writers back, too, so that they write again what they wrote after that version. By
    /// default they go on where they are, as in Spark.
    pub reset_transactions: bool,
    /// Stop after checking.
    pub dry_run: bool,
    /// How long unclear answers of the storage are retried.
    pub commit_timeout_ms: u64,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            to: TimeTravel::default(),
            reset_transactions: false,
            dry_run: false,
            commit_timeout_ms: RewriteLimits::default().commit_timeout_ms,
            user_metadata: None,
        }
    }
}

/// What RESTORE did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RestoreReport {
    /// The table.
    pub path: String,
    /// Newest version before.
    pub version_before: u64,
    /// The version whose rows the table has now.
    pub restored_version: u64,
    /// The version that was made; none in a dry run.
    pub version_after: Option<u64>,
    /// False in a dry run.
    pub committed: bool,
    /// Counters.
    pub metrics: RestoreMetrics,
}

/// Spark's result of RESTORE; sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[expect(missing_docs, reason = "the names are Spark's own and documented there")]
pub struct RestoreMetrics {
    pub table_size_after_restore: u64,
    pub num_of_files_after_restore: u64,
    pub num_removed_files: u64,
    pub num_restored_files: u64,
    pub removed_files_size: u64,
    pub restored_files_size: u64,
}
