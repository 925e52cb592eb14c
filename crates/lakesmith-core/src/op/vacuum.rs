//! VACUUM: deletes files that no version within the retention needs.

use std::path::PathBuf;
use std::sync::Arc;

use crate::op::{Compat, EntryList};
use crate::plan::Approved;
use crate::plan::sweep::{KeepReason, SweepReason};
use crate::{Error, ErrorKind};

/// How candidates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VacuumMode {
    /// Lists the table's folder: finds everything.
    #[default]
    Full,
    /// Reads only the log's commits since the last vacuum: finds what they removed, and no orphans.
    Lite,
}

/// Format of an [`Inventory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InventoryFormat {
    /// Parquet.
    Parquet,
    /// Comma-separated values with a header.
    Csv,
}

/// A listing made by somebody else (such as a bucket's inventory), taken instead of listing the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// File, or a folder of files. Columns: `path` (full), `length`, `isDir`, `modificationTime` (milliseconds).
    pub location: String,
    /// `None`: by the name's extension.
    pub format: Option<InventoryFormat>,
}

/// Options of VACUUM.
#[derive(Debug, Clone, PartialEq)]
pub struct VacuumOptions {
    /// How candidates are found.
    pub mode: VacuumMode,
    /// `RETAIN`, milliseconds; `None`: the table's `delta.deletedFileRetentionDuration`.
    pub retain_ms: Option<i64>,
    /// Refuse a retention below the table's (`spark.databricks.delta.retentionDurationCheck.enabled`).
    pub retention_check: bool,
    /// Nobody is writing: files that the log does not know may go as soon as the retention allows, not only after a day.
    pub no_writers: bool,
    /// Stop after planning.
    pub dry_run: bool,
    /// Write the plan to this file, and stop.
    pub plan_out: Option<PathBuf>,
    /// Do no more than was approved.
    pub approved: Option<Arc<Approved>>,
    /// Taken instead of listing.
    pub inventory: Option<Inventory>,
    /// Put candidates on a list, and delete only those that have been on one for so many milliseconds.
    pub condemn_ms: Option<u64>,
    /// Drop the list of this run and do nothing else.
    pub pardon: Option<String>,
    /// Commit VACUUM START and VACUUM END (`spark.databricks.delta.vacuum.logging.enabled`); `None`: as Spark, on every
    /// storage but S3.
    pub logging: Option<bool>,
    /// Give up retrying a commit after this long, milliseconds.
    pub commit_timeout_ms: u64,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
    /// Habits: as Spark since 4.1, any `RETAIN` but 0 is ignored.
    pub compat: Compat,
}

impl Default for VacuumOptions {
    fn default() -> Self {
        Self {
            mode: VacuumMode::Full,
            retain_ms: None,
            retention_check: true,
            no_writers: false,
            dry_run: false,
            plan_out: None,
            approved: None,
            inventory: None,
            condemn_ms: None,
            pardon: None,
            logging: None,
            commit_timeout_ms: super::RewriteLimits::default().commit_timeout_ms,
            user_metadata: None,
            compat: Compat::Lakesmith,
        }
    }
}

/// A file or folder that was deleted, or would be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SweptEntry {
    /// On-disk path below the table's root.
    pub path: String,
    /// Bytes; 0 for folders.
    pub size: u64,
    /// Since its last modification, or since it left the table if only the log was read. Milliseconds; null if not known.
    pub age_ms: Option<i64>,
    /// Why.
    pub reason: SweepReason,
}

/// A file that is superfluous at first sight and stays, or a folder that is not entered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeptEntry {
    /// On-disk path below the table's root.
    pub path: String,
    /// Why.
    pub reason: KeepReason,
}

/// An object that could not be deleted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct VacuumFailure {
    /// On-disk path below the table's root.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A list of condemned files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CondemnedRun {
    /// Its name, for `--pardon`.
    pub run: String,
    /// Files on it.
    pub files: u64,
    /// From when on they may be deleted, ISO 8601.
    pub due: String,
}

/// Report of VACUUM.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct VacuumReport {
    /// Location of the table.
    #[serde(skip)]
    pub path: String,
    /// Files that left the table at or after this time are kept, ISO 8601.
    pub cutoff: String,
    /// What is gone; in a dry run what would go.
    pub files: EntryList<SweptEntry>,
    /// What stays although it looks superfluous.
    pub kept: EntryList<KeptEntry>,
    /// Folders looked at, the root included.
    pub directories: u64,
    /// Bytes of `files`.
    pub bytes: u64,
    /// True if nothing was to be deleted.
    pub dry_run: bool,
    /// How candidates were found.
    pub mode: VacuumMode,
    /// Objects that could not be deleted; run again for them.
    pub failed: Vec<VacuumFailure>,
    /// The list that this run wrote.
    pub condemned: Option<CondemnedRun>,
    /// The list that this run dropped.
    pub pardoned: Option<String>,
    /// Version after the run; null if nothing was committed.
    pub version_after: Option<u64>,
    /// Storage requests made.
    pub requests: u64,
}

impl VacuumReport {
    /// Spark's sentence about what was done.
    pub fn sentence(&self) -> String {
        format!("Deleted {} files and directories in a total of {} directories.", self.files.len(), self.directories)
    }

    /// The error that a run ends with if some objects could not be deleted.
    pub fn failure(&self) -> Option<Error> {
        let first = self.failed.first()?;
        Some(
            Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{} of {} objects could not be deleted; the rest is gone, run again for these: {}",
                    self.failed.len(),
                    self.failed.len() as u64 + self.files.len(),
                    first.reason
                ),
            )
            .with("path", &first.path)
            .with("failed", self.failed.len()),
        )
    }
}
