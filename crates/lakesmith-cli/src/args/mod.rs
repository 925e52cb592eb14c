//! The command line's grammar. No default lives here: what is not given is left to the library.

mod defaults;
mod environment;
mod health;
mod restore;
mod rewrite;
mod vacuum;
mod values;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use lakesmith::op::TimeTravel;

pub(crate) use environment::variables;
pub(crate) use health::HealthArgs;
pub(crate) use restore::RestoreArgs;
pub(crate) use rewrite::{OptimizeArgs, ReorgArgs, ScopeArgs, TuningArgs};
pub(crate) use vacuum::VacuumArgs;

/// Keeps Delta Lake tables fast and small, and proves that it did no harm.
#[derive(Debug, Parser)]
#[command(name = "lakesmith", version, arg_required_else_help = true, max_term_width = 120, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// The verb's flags, by their ids, that were not given but stand in their variables.
    #[arg(skip)]
    pub(crate) from_variables: BTreeSet<String>,
}

const AFTER_HELP: &str = "\
A TABLE is a path, a URL (s3://, s3a://, gs://, abfss://, az://, file://), delta.`path`, or the name of a table in the
warehouse, as in events or sales.orders; a local path that exists wins over a name.

Exit codes: 0 done (nothing to do is done), 2 usage, 3 refused by a guard, 4 conflict, 5 unsupported feature,
130 cancelled, 1 anything else.

Examples:
  lakesmith demo
  lakesmith health /lake/events
  lakesmith detail /lake/events
  lakesmith optimize s3://lake/events --target-size 256MiB --dry-run
  lakesmith sql \"OPTIMIZE delta.\\`/lake/events\\` WHERE day >= '2026-01-01'\"

`lakesmith VERB --help` has examples for each verb; `lakesmith config` lists every setting.";

/// Options that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Shared {
    /// Print results as one JSON document (sql: one object a line); errors and logs become JSON on stderr
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Set a session setting, as SQL's SET does; may be repeated (see `lakesmith config`)
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = values::setting, help_heading = "Common options")]
    pub(crate) set: Vec<(String, String)>,
    /// Folder in which tables are found and made by name: a folder a database, and in it one a table
    #[arg(long, global = true, value_name = "DIR", env = "LAKESMITH_WAREHOUSE", help_heading = "Common options")]
    pub(crate) warehouse: Option<String>,
    /// No progress and no notices on stderr, only errors
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
    /// More logs on stderr: -v info, -vv debug, -vvv trace (LAKESMITH_LOG takes a filter such as lakesmith=debug)
    #[arg(long, short, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet", help_heading = "Common options")]
    pub(crate) verbose: u8,
    /// Form of the logs on stderr
    #[arg(long, global = true, value_name = "FORMAT", env = "LAKESMITH_LOG_FORMAT", help_heading = "Common options")]
    pub(crate) log_format: Option<LogFormat>,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Compact small files into larger ones, rows unchanged
    #[command(after_help = rewrite::OPTIMIZE_EXAMPLES)]
    Optimize(Box<OptimizeArgs>),
    /// Rewrite files that still hold deleted rows or dropped columns (REORG … APPLY (PURGE))
    #[command(after_help = rewrite::REORG_EXAMPLES)]
    Reorg(Box<ReorgArgs>),
    /// Delete files that no version within the retention needs
    #[command(after_help = vacuum::EXAMPLES)]
    Vacuum(Box<VacuumArgs>),
    /// Make an earlier version of a table the newest again (RESTORE)
    #[command(after_help = restore::EXAMPLES)]
    Restore(RestoreArgs),
    /// Say what ails a table, how much, and which command cures it; served from the log alone
    #[command(after_help = health::EXAMPLES)]
    Health(HealthArgs),
    /// Show a table's size, layout, properties and protocol (DESCRIBE DETAIL)
    #[command(after_help = "Examples:\n  lakesmith detail /lake/events\n  \
        lakesmith detail s3://lake/events --version 12 --json\n  \
        lakesmith detail /lake/events --timestamp '2026-01-31 12:00:00'")]
    Detail(AtArgs),
    /// Show a table's commits, newest first (DESCRIBE HISTORY)
    #[command(after_help = "Examples:\n  lakesmith history /lake/events --limit 10\n  \
        lakesmith history /lake/events --data-changes --json\n  lakesmith history /lake/events --readable")]
    History(HistoryArgs),
    /// List a table's live data files
    #[command(after_help = "Examples:\n  lakesmith files /lake/events\n  \
        lakesmith files /lake/events --version 3 --json | jq '.[].path'")]
    Files(AtArgs),
    /// Write a checkpoint of the newest version, so that readers start faster, and clean up the log that it replaces
    #[command(after_help = "Examples:\n  lakesmith checkpoint s3://lake/events\n  \
        lakesmith checkpoint /lake/events --clean-log --dry-run\n\n\
        Versions that were current within delta.logRetentionDuration (30 days unless set) stay readable.")]
    Checkpoint(CheckpointArgs),
    /// Carry out a plan that --plan-out wrote, as far as a fresh plan agrees with it
    #[command(after_help = "Examples:\n  lakesmith vacuum /lake/events --plan-out plan.jsonl\n  \
        lakesmith apply plan.jsonl --dry-run\n  lakesmith apply plan.jsonl --table /lake/events\n\n\
        Nothing is done that a fresh plan would not do, whatever the file says; what is left out is named.")]
    Apply(Box<ApplyArgs>),
    /// Compare a table with its log: missing files, doubled rows, broken vectors, gaps, wrong statistics; changes nothing
    #[command(after_help = "Examples:\n  lakesmith fsck /lake/events\n  \
        lakesmith fsck s3://lake/events --stats --json\n  lakesmith fsck /lake/events --stats=data --memory 2GiB\n\n\
        Exits with 0 if all is well and with 1 if anything was found.")]
    Fsck(FsckArgs),
    /// Say how reading the rows that match a condition goes: files in total, skipped and by what, read
    #[command(after_help = "Examples:\n  lakesmith explain /lake/events --where \"day = '2026-01-01'\"\n  \
        lakesmith explain /lake/events --where 'customer_id = 42' --json | jq .read_files\n\n\
        Nothing is read but the table's metadata.")]
    Explain(ExplainArgs),
    /// Run SQL statements in one session, in Spark's spelling; the first failure stops
    #[command(after_help = "Examples:\n  \
        lakesmith sql 'OPTIMIZE delta.`/lake/events`; DESCRIBE HISTORY delta.`/lake/events` LIMIT 1'\n  \
        lakesmith sql --file nightly.sql\n  \
        echo 'DESCRIBE DETAIL delta.`/lake/events`' | lakesmith sql --json")]
    Sql(SqlArgs),
    /// Make a table of many small files, repair it and prove that every row is still there
    #[command(after_help = "Examples:\n  lakesmith demo\n  lakesmith demo --dir /tmp/lakesmith-demo --rows 1000000")]
    Demo(DemoArgs),
    /// Print the completion script of a shell
    #[command(after_help = "Examples:\n  lakesmith completions bash > /etc/bash_completion.d/lakesmith\n  \
        lakesmith completions zsh > ~/.zfunc/_lakesmith\n  \
        lakesmith completions fish > ~/.config/fish/completions/lakesmith.fish")]
    Completions(CompletionsArgs),
    /// Print every setting with its value, where that comes from and its meaning, and every LAKESMITH_* variable
    #[command(after_help = "Precedence: flag, LAKESMITH_* variable, --set or SET, table property, default.\n\n\
        Examples:\n  lakesmith config\n  lakesmith config --memory 2GiB --set lakesmith.compat=spark\n  \
        lakesmith config --json")]
    Config(Box<TuningArgs>),
}

/// Arguments of `checkpoint`.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Delete what the log's retention no longer covers and no version that stays needs
    #[arg(long)]
    pub(crate) clean_log: bool,
    /// Print what would be deleted, what stays and why, and stop
    #[arg(long, requires = "clean_log")]
    pub(crate) dry_run: bool,
}

/// A table at a version.
#[derive(Debug, Args)]
pub(crate) struct AtArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Look at this version instead of the newest
    #[arg(long, value_name = "N", conflicts_with = "timestamp")]
    pub(crate) version: Option<u64>,
    /// Look at the last version committed at or before this time (ISO 8601; UTC unless it has an offset)
    #[arg(long, value_name = "TIME", value_parser = values::timestamp_ms)]
    pub(crate) timestamp: Option<i64>,
}

impl AtArgs {
    /// The version meant.
    pub(crate) fn at(&self) -> TimeTravel {
        match (self.version, self.timestamp) {
            (Some(version), _) => TimeTravel::Version(version),
            (None, Some(timestamp_ms)) => TimeTravel::Timestamp(timestamp_ms),
            (None, None) => TimeTravel::Latest,
        }
    }
}

/// Arguments of `history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Newest commits at most
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only commits that changed data, without maintenance
    #[arg(long)]
    pub(crate) data_changes: bool,
    /// Find out which versions can still be read whole: their log and every file that they refer to exist
    #[arg(long)]
    pub(crate) readable: bool,
}

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The plan
    #[arg(value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// Refuse a plan about another table
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Print what would be done and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say again what the plan of a vacuum was made with
    #[arg(long)]
    pub(crate) no_retention_check: bool,
    /// Say again what the plan of a vacuum was made with
    #[arg(long)]
    pub(crate) no_writers: bool,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

/// Arguments of `fsck`.
#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    /// Path, URL, delta.`path` or name
    pub(crate) table: String,
    /// Compare statistics too: with the files' footers, or (`--stats=data`) with every row
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "footers")]
    pub(crate) stats: Option<StatsArg>,
    /// Memory for reading data files over all threads
    #[arg(long, value_name = "SIZE", value_parser = values::memory, env = "LAKESMITH_MEMORY")]
    pub(crate) memory: Option<u64>,
    /// Data files read at once; 0: one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1024), env = "LAKESMITH_THREADS")]
    pub(crate) threads: Option<u64>,
}

/// What statistics are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsArg {
    Footers,
    Data,
}

/// Arguments of `sql`.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Statements, separated by semicolons; `-` reads them from standard input, nothing too, or on a terminal as they are typed
    #[arg(value_name = "STATEMENTS", conflicts_with = "file", allow_hyphen_values = true, value_parser = values::statements)]
    pub(crate) statements: Option<String>,
    /// Read the statements from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Tell on stderr for each query how many files its scans skipped, by what, and how many they read
    #[arg(long)]
    pub(crate) stats: bool,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) table: AtArgs,
    /// The condition, as it would stand after WHERE
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the demo's table in this folder (else: a temporary folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Rows in the demo's table
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Command line that was not understood (or that asked for help), and whether it asked for JSON.
pub(crate) struct Refused {
    pub(crate) error: clap::Error,
    pub(crate) json: bool,
}

/// The grammar, with the defaults in its help.
pub(crate) fn command() -> clap::Command {
    defaults::shown(Cli::command())
}

/// Reads the process's arguments.
pub(crate) fn parse() -> Result<Cli, Refused> {
    let raw: Vec<OsString> = std::env::args_os().collect();
    let command = environment::without_empty(command());
    let read = command.clone().try_get_matches_from(&raw).and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(Cli { from_variables: environment::used(&matches), ..cli })
    });
    read.map_err(|error| {
        let given = raw.iter().skip(1).take_while(|a| *a != "--");
        let json = given.clone().any(|a| a == "--json");
        Refused { error: environment::named(error, &command, given), json }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_shows_an_example() {
        for verb in Cli::command().get_subcommands() {
            let examples = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains(&format!("lakesmith {}", verb.get_name())), "{}", verb.get_name());
        }
    }
}
