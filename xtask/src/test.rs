//! `cargo xtask test`: every test, in one command.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use crate::oracle::Oracle;
use crate::{process, tidy};

/// pytest's exit code when a filter leaves no test.
const PYTEST_NOTHING_COLLECTED: i32 = 5;

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also the slow tests: clippy, the full fault sweep, the kill loop, every foreign table, storage services
    #[arg(long)]
    all: bool,
    /// Only tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// Runs the tests. What fails does not stop the rest; the test runners' summaries come last.
///
/// # Errors
/// Names the steps that failed.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let mut failed = Vec::new();
    let mut step = |name: &'static str, done: Result<()>| {
        if let Err(error) = done {
            process::say(&format!("{name} failed: {error:#}"));
            failed.push(name);
        }
    };
    step("tidy", tidy::run(root));
    if options.all {
        let mut clippy = process::cargo(root);
        clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
        step("clippy", process::run(&mut clippy));
    }
    // The foreign readers are installed first: the Rust tests use the storage services too.
    let oracle = Oracle::install(root, options.all)?;
    let binary = process::build_binary(root, false)?;
    step("cargo test", rust_tests(root, &oracle, options));
    step("foreign readers", foreign_tests(&oracle, &binary, options));
    match failed.as_slice() {
        [] => Ok(()),
        names => bail!("failed: {}", names.join(", ")),
    }
}

fn rust_tests(root: &Path, oracle: &Oracle, options: &Options) -> Result<()> {
    let mut command = process::cargo(root);
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.args(&options.filter);
    process::run(&mut prepared(command, oracle, options))
}

fn foreign_tests(oracle: &Oracle, binary: &Path, options: &Options) -> Result<()> {
    let mut command = oracle.python(["-m", "pytest", "tests"]);
    command.env("LAKESMITH_BIN", binary);
    if !options.all {
        command.args(["-m", "not full"]);
    }
    if let Some(filter) = &options.filter {
        command.args(["-k", filter]);
    }
    match process::status(&mut prepared(command, oracle, options))? {
        0 => Ok(()),
        PYTEST_NOTHING_COLLECTED if options.filter.is_some() => Ok(()),
        code => bail!("exit code {code} from pytest"),
    }
}

/// With `--all`, tests know it, and storage services are up while they run.
fn prepared(mut command: Command, oracle: &Oracle, options: &Options) -> Command {
    if !options.all {
        return command;
    }
    command.env("LAKESMITH_TEST_ALL", "1");
    oracle.with_services(&command)
}
