//! Arguments of `restore`.

use clap::{ArgGroup, Args};
use lakesmith::op::TimeTravel;

use super::values;

pub(crate) const EXAMPLES: &str = "\
Examples:
  lakesmith restore /lake/events --version 12 --dry-run
  lakesmith restore s3://lake/events --timestamp '2026-01-31 12:00:00'

The earlier version becomes a new one on top, so that nothing is lost and the restore can be undone. It is refused if any
file of that version is gone; `lakesmith history TABLE --readable` shows which versions are whole. Streaming writers go
on where they are, unless --reset-transactions is given.";

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("to").args(["version", "timestamp"]).required(true))]
pub(crate) struct RestoreArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Return to this version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// Return to the last version committed at or before this time (ISO 8601; UTC unless it has an offset)
    #[arg(long, value_name = "TIME", value_parser = values::timestamp_ms)]
    pub(crate) timestamp: Option<i64>,
    /// Set the progress of streaming writers back, too: they write again what they wrote after that version
    #[arg(long)]
    pub(crate) reset_transactions: bool,
    /// Check that the version can come back whole, tell what would change, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Text to keep in the table's history with the commit
    #[arg(long, value_name = "TEXT", env = "LAKESMITH_USER_METADATA", allow_hyphen_values = true)]
    pub(crate) user_metadata: Option<String>,
}

impl RestoreArgs {
    /// The version meant.
    pub(crate) fn to(&self) -> TimeTravel {
        match (self.version, self.timestamp) {
            (Some(version), _) => TimeTravel::Version(version),
            (None, Some(timestamp_ms)) => TimeTravel::Timestamp(timestamp_ms),
            (None, None) => TimeTravel::Latest,
        }
    }
}
