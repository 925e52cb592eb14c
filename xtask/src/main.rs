//! The project's own commands: `cargo xtask test | tidy | bench | setup`.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod bench;
mod oracle;
mod process;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tests, checks and benchmarks of Lakesmith")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run tidy, the Rust tests and the foreign readers; installs what the readers need
    Test(test::Options),
    /// Check formatting and the rules of the house that no compiler knows
    Tidy,
    /// Compare Lakesmith with deltalake and Spark on generated tables
    Bench(bench::Options),
    /// Install the foreign readers (Spark, deltalake, DuckDB) without running anything
    Setup {
        /// Also the storage services (SeaweedFS, Azurite)
        #[arg(long)]
        services: bool,
    },
}

fn main() -> ExitCode {
    let root = root();
    let done = match Cli::parse().command {
        Command::Test(options) => test::run(&root, &options),
        Command::Tidy => tidy::run(&root),
        Command::Bench(options) => bench::run(&root, &options),
        Command::Setup { services } => oracle::Oracle::install(&root, services).map(drop),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
