//! Structured logs on standard error, above the progress bar.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use lakesmith::{Error, Result};
use tracing_subscriber::EnvFilter;

use crate::args::{LogFormat, Shared};
use crate::progress::Screen;

/// Starts logging. With `--json` the logs are JSON too, so that every line on standard error is.
///
/// # Errors
/// Usage for a `LAKESMITH_LOG` that is no filter.
pub(crate) fn start(shared: &Shared, screen: &Arc<Screen>) -> Result<()> {
    let screen = Arc::clone(screen);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(shared)?)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(move || Lines(Arc::clone(&screen)));
    let format = shared.log_format.unwrap_or(if shared.json { LogFormat::Json } else { LogFormat::Text });
    match format {
        LogFormat::Json => builder.json().flatten_event(true).with_ansi(false).init(),
        LogFormat::Text => builder.with_target(shared.verbose > 1).init(),
    }
    Ok(())
}

fn filter(shared: &Shared) -> Result<EnvFilter> {
    let directives = match shared.verbose {
        0 => match std::env::var("LAKESMITH_LOG") {
            Ok(text) if !text.trim().is_empty() => text,
            _ if shared.quiet => "off".to_owned(),
            // What libraries log as errors comes back as an error of ours, with a class and a next step.
            _ => "off,lakesmith=warn".to_owned(),
        },
        1 => "off,lakesmith=info".to_owned(),
        2 => "info,lakesmith=debug".to_owned(),
        _ => "trace".to_owned(),
    };
    EnvFilter::try_new(&directives).map_err(|e| {
        Error::usage("LAKESMITH_LOG is not a filter; write for example info or lakesmith=debug")
            .with("LAKESMITH_LOG", directives)
            .caused_by(e)
    })
}

struct Lines(Arc<Screen>);

impl Write for Lines {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.write(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
