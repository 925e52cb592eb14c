//! Arguments of `health`.

use clap::Args;
use lakesmith::op::Severity;

use super::{AtArgs, values};

pub(crate) const EXAMPLES: &str = "\
Examples:
  lakesmith health /lake/events
  lakesmith health s3://lake/events --json | jq '.findings[] | .command'
  lakesmith health /lake/events --deep --fail-on critical

It reads the log alone and changes nothing. --deep lists the storage as well.";

/// Arguments of `health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    pub(crate) table: AtArgs,
    /// List the storage as well (orphans, missing files, exact reclaimable bytes) and look at every file's statistics
    #[arg(long)]
    pub(crate) deep: bool,
    /// Exit with 1 if there is a finding of this severity or worse
    #[arg(long, value_name = "SEVERITY", value_parser = values::severities(), ignore_case = true)]
    pub(crate) fail_on: Option<Severity>,
    /// Size of the files that OPTIMIZE would make
    #[arg(long, value_name = "SIZE", value_parser = values::size, env = "LAKESMITH_TARGET_SIZE")]
    pub(crate) target_size: Option<u64>,
    /// Newest commits to look through for the last OPTIMIZE and VACUUM
    #[arg(long, value_name = "COMMITS")]
    pub(crate) history: Option<u64>,
}
