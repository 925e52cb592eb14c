//! `cargo xtask bench`: Lakesmith beside its peers, on the same tables in the same run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::oracle::Oracle;
use crate::process;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Benchmarks to run
    #[arg(value_enum, default_value = "compact")]
    names: Vec<Benchmark>,
    /// compact, order, skipping: size of the table; 1 is 10 million rows in 2,000 files, 1.8 GB, by default 0.1; tpch: the
    /// scale factor, by default 1
    #[arg(long)]
    scale: Option<f64>,
    /// daily-loads: loads; load, health, vacuum, vacuum-lite, vacuum-s3, vacuum-s3-flat: files in the table; by default as many as the benchmark says
    #[arg(long)]
    files: Option<u32>,
    /// Runs of each contestant; medians are shown
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Contestants, of lakesmith, duckdb, deltalake, spark
    #[arg(long, value_delimiter = ',', default_value = "lakesmith,duckdb,deltalake,spark")]
    peers: Vec<String>,
    /// Folder for the tables and their copies, and for the results as JSON
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Benchmark {
    /// Compaction of many small files
    Compact,
    /// Loading the log of a table of very many files
    Load,
    /// The health check of such a table
    Health,
    /// Files that filters leave after the same rows were ordered by one to four keys, by us and by Spark
    Skipping,
    /// Ordering of many small files by two keys
    Order,
    /// A hundred loads into clustered tables with an OPTIMIZE within a budget after each: what is written, how deep files lie
    DailyLoads,
    /// All rows of a table written into a new one
    Insert,
    /// One customer's rows deleted of a table of many files
    Delete,
    /// The queries of TPC-H, beside DuckDB on Parquet
    Tpch,
    /// Deletion of the many small files that were compacted long ago, found by listing
    Vacuum,
    /// The same, found in the log alone
    VacuumLite,
    /// Deletion of very many objects in a bucket, by us alone: time, requests, and memory beside that of a tenth of them
    VacuumS3,
    /// The same with all objects in one folder
    VacuumS3Flat,
}

impl Benchmark {
    fn needs_services(self) -> bool {
        matches!(self, Self::VacuumS3 | Self::VacuumS3Flat)
    }
}

/// Builds the release binary, makes the tables that are not there, runs the contestants in turn and prints one table for
/// each benchmark.
///
/// # Errors
/// When a build, an installation or a contestant fails.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let oracle = Oracle::install(root, options.names.iter().any(|name| name.needs_services()))?;
    let binary = process::build_binary(root, true)?;
    let mut command = oracle.python(["bench/bench.py"]);
    command.env("LAKESMITH_BIN", binary);
    command.args(options.names.iter().filter_map(|name| Some(name.to_possible_value()?.get_name().to_owned())));
    if let Some(scale) = options.scale {
        command.args(["--scale", &scale.to_string()]);
    }
    if let Some(files) = options.files {
        command.args(["--files", &files.to_string()]);
    }
    command.args(["--repeats", &options.repeats.to_string(), "--peers", &options.peers.join(",")]);
    if let Some(data) = &options.data {
        command.arg("--data").arg(std::path::absolute(data)?);
    }
    process::run(&mut command)
}
