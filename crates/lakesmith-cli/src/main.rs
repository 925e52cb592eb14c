//! The `lakesmith` command: arguments in, one library call, results out.
//!
//! ```text
//! args --settings--> lakesmith::Session --report--> output (tables | JSON) on stdout
//!                       progress, logs, errors ------------------------------ on stderr
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod arenas;
mod args;
mod commands;
mod exit;
mod logging;
mod output;
mod progress;
mod prompt;
mod settings;
mod signals;

use std::process::ExitCode;
use std::sync::Arc;

use crate::exit::Failure;
use crate::output::Stdout;
use crate::progress::Screen;

fn main() -> ExitCode {
    arenas::limit();
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(refused) => return exit::usage(&refused),
    };
    let json = cli.shared.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::failure(&failure, json),
    }
}

fn run(cli: args::Cli) -> Result<(), Failure> {
    let screen = Arc::new(Screen::new(&cli.shared));
    logging::start(&cli.shared, &screen)?;
    let mut out = Stdout::new(cli.shared.verbose > 0);
    let done = commands::run(cli, &screen, &mut out);
    screen.clear();
    // Rows that were already printed stay visible when a later statement fails.
    let flushed = out.finish();
    done?;
    Ok(flushed?)
}
