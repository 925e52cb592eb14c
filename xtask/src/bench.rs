//! `cargo xtask bench`: Lakesmith beside its peers, on the same tables in the same run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::oracle::Oracle;
use crate::process;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Size of the table: 1 is 10 million rows in 2,000 files, 1.8 GB
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// Runs of each contestant; medians are shown
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Contestants, of lakesmith, deltalake, spark
    #[arg(long, value_delimiter = ',', default_value = "lakesmith,deltalake,spark")]
    peers: Vec<String>,
    /// Folder for the tables and their copies
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Builds the release binary, makes the table if it is not there, runs the contestants in turn and prints one table.
///
/// # Errors
/// When a build, an installation or a contestant fails.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let oracle = Oracle::install(root, false)?;
    let binary = process::build_binary(root, true)?;
    let mut command = oracle.python(["bench/bench.py"]);
    command.env("LAKESMITH_BIN", binary);
    command.args(["--scale", &options.scale.to_string(), "--repeats", &options.repeats.to_string()]);
    command.args(["--peers", &options.peers.join(",")]);
    if let Some(data) = &options.data {
        command.arg("--data").arg(data);
    }
    process::run(&mut command)
}
