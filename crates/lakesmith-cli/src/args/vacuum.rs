//! Arguments of `vacuum`.

use clap::Args;

use super::values;

pub(crate) const EXAMPLES: &str = "\
Examples:
  lakesmith vacuum /lake/events --dry-run
  lakesmith vacuum s3://lake/events --retain 30d --json
  lakesmith vacuum /lake/events --lite
  lakesmith vacuum /lake/events --retain 0h --no-retention-check --no-writers
  lakesmith vacuum /lake/events --condemn 7

Files that the log doesn't know are kept for a day at least, because a running write may be about to commit them;
--no-writers says that there is none.";

/// Arguments of `vacuum`.
#[derive(Debug, Args)]
pub(crate) struct VacuumArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Print what would be deleted, what is kept and why, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the plan to this file and stop; `lakesmith apply FILE` carries it out
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inventory", "condemn", "pardon"])]
    pub(crate) plan_out: Option<std::path::PathBuf>,
    /// Keep what left the table within this time (else: delta.deletedFileRetentionDuration)
    #[arg(long, value_name = "DURATION", value_parser = values::retention_ms, allow_hyphen_values = true)]
    pub(crate) retain: Option<i64>,
    /// Allow a retention below the table's own
    #[arg(long)]
    pub(crate) no_retention_check: bool,
    /// Nobody is writing to the table: files that the log doesn't know need not be a day old
    #[arg(long)]
    pub(crate) no_writers: bool,
    /// Read only the log since the last vacuum, and list nothing; finds no files of failed writes
    #[arg(long, conflicts_with_all = ["inventory", "condemn"])]
    pub(crate) lite: bool,
    /// Take the files from this Parquet or CSV file (path, length, isDir, modificationTime) instead of listing the folder
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<String>,
    /// Only put files on a list, and delete those that have been on one for so many days
    #[arg(long, value_name = "DAYS", value_parser = values::days_ms)]
    pub(crate) condemn: Option<u64>,
    /// Drop the list that an earlier run with --condemn wrote, and do nothing else
    #[arg(long, value_name = "RUN", conflicts_with_all = ["condemn", "lite", "inventory", "retain"])]
    pub(crate) pardon: Option<String>,
    /// Text to keep in the table's history with the commits
    #[arg(long, value_name = "TEXT", env = "LAKESMITH_USER_METADATA", allow_hyphen_values = true)]
    pub(crate) user_metadata: Option<String>,
}
