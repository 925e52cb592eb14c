//! Arguments of the verbs that rewrite data files.

use clap::Args;

use super::values;

pub(crate) const OPTIMIZE_EXAMPLES: &str = "\
Examples:
  lakesmith optimize /lake/events --dry-run
  lakesmith optimize s3://lake/events --target-size 256MiB --where \"day >= '2026-01-01'\"
  lakesmith optimize /lake/events --zorder-by customer_id,event_date --target-size 256MiB
  lakesmith optimize /lake/clustered --max-bytes 50GiB
  lakesmith optimize /lake/events --memory 2GiB --threads 4 --commit-every 50GiB --verify --json

Running it again commits nothing. Rows that others append or delete meanwhile are kept.";

pub(crate) const REORG_EXAMPLES: &str = "\
Examples:
  lakesmith reorg /lake/events --purge
  lakesmith reorg s3://lake/events --purge --where \"day < '2026-01-01'\" --dry-run

The old files stay readable for time travel until a vacuum removes them.";

/// Arguments of `optimize`.
#[derive(Debug, Args)]
pub(crate) struct OptimizeArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
    /// Rewrite also the files that an earlier run with this target made
    #[arg(long)]
    pub(crate) force: bool,
    /// Recluster everything (clustered tables only)
    #[arg(long)]
    pub(crate) full: bool,
    /// Columns to order by along a Z-curve, as ZORDER BY does
    #[arg(long, value_name = "COLUMNS", value_parser = values::columns, group = "order")]
    pub(crate) zorder_by: Option<values::Columns>,
    /// Columns to order by along a Hilbert curve, which keeps rows that are close in all of them closer together
    #[arg(long, value_name = "COLUMNS", value_parser = values::columns, group = "order")]
    pub(crate) hilbert_by: Option<values::Columns>,
    /// Columns to sort by, the first one first
    #[arg(long, value_name = "COLUMNS", value_parser = values::columns, group = "order")]
    pub(crate) sort_by: Option<values::Columns>,
    /// Bytes of input that a run on a clustered table orders at most; the files that overlap most come first
    #[arg(long, value_name = "SIZE", value_parser = values::size, env = "LAKESMITH_MAX_BYTES")]
    pub(crate) max_bytes: Option<u64>,
}

/// Arguments of `reorg`.
#[derive(Debug, Args)]
pub(crate) struct ReorgArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Purge deleted rows and dropped columns (required: the only kind of reorganisation)
    #[arg(long)]
    pub(crate) purge: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

/// What a run is about.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Only partitions for which this holds, in SQL: "day >= '2026-01-01'"
    #[arg(long = "where", value_name = "PREDICATE", allow_hyphen_values = true)]
    pub(crate) predicate: Option<String>,
    /// Print what would be done and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the plan to this file and stop; `lakesmith apply FILE` carries it out
    #[arg(long, value_name = "FILE")]
    pub(crate) plan_out: Option<std::path::PathBuf>,
}

/// How files are rewritten and committed; each stands for a setting.
#[derive(Debug, Default, Args)]
pub(crate) struct TuningArgs {
    /// Size of the files to make
    #[arg(long, value_name = "SIZE", value_parser = values::size, env = "LAKESMITH_TARGET_SIZE")]
    pub(crate) target_size: Option<u64>,
    /// Compare a content hash of all rows before and after, ahead of the commit
    #[arg(long)]
    pub(crate) verify: bool,
    /// Memory for reading and writing over all threads
    #[arg(long, value_name = "SIZE", value_parser = values::memory, env = "LAKESMITH_MEMORY")]
    pub(crate) memory: Option<u64>,
    /// Files rewritten at once; 0: one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1024), env = "LAKESMITH_THREADS")]
    pub(crate) threads: Option<u64>,
    /// Commit whenever this many bytes of input are rewritten, instead of once at the end
    #[arg(long, value_name = "SIZE", value_parser = values::size, env = "LAKESMITH_COMMIT_EVERY")]
    pub(crate) commit_every: Option<u64>,
    /// Give up retrying a commit after this long
    #[arg(long, value_name = "DURATION", value_parser = values::duration_ms, env = "LAKESMITH_COMMIT_TIMEOUT")]
    pub(crate) commit_timeout: Option<u64>,
    /// Rows a file at most; 0: no limit
    #[arg(long, value_name = "N", env = "LAKESMITH_MAX_ROWS_PER_FILE")]
    pub(crate) max_rows_per_file: Option<u64>,
    /// Codec of the files to make
    #[arg(long, value_name = "CODEC", value_parser = values::codecs(), ignore_case = true, env = "LAKESMITH_COMPRESSION")]
    pub(crate) compression: Option<String>,
    /// Rows a row group at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), env = "LAKESMITH_ROW_GROUP_ROWS")]
    pub(crate) row_group_rows: Option<u64>,
    /// Folder for what does not fit into the memory
    #[arg(long, value_name = "DIR", env = "LAKESMITH_SPILL_DIR")]
    pub(crate) spill_dir: Option<String>,
    /// Text to keep in the table's history with the commit
    #[arg(long, value_name = "TEXT", env = "LAKESMITH_USER_METADATA", allow_hyphen_values = true)]
    pub(crate) user_metadata: Option<String>,
}
