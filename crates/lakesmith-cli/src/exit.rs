//! Failures on standard error, and the process's exit code.

use std::error::Error as _;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind as Refusal;
use lakesmith::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use crate::args::Refused;

/// A failure of the library, with the place in the user's own text that it is about.
pub(crate) struct Failure {
    error: Error,
    snippet: Option<String>,
    /// The results on standard output tell it already.
    told: bool,
}

impl Failure {
    /// A failure about `text`, which the user wrote as SQL.
    pub(crate) fn in_sql(error: Error, text: &str) -> Self {
        let snippet = lakesmith::render_snippet(text, &error);
        Self { error, snippet, told: false }
    }

    /// Results that make the command fail, though they were given as asked.
    pub(crate) fn told(error: Error) -> Self {
        Self { error, snippet: None, told: true }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, snippet: None, told: false }
    }
}

/// Shows a failure.
pub(crate) fn failure(failure: &Failure, json: bool) -> ExitCode {
    let error = &failure.error;
    if failure.told {
        return ExitCode::from(error.kind().exit_code());
    }
    if json {
        let mut context = Map::new();
        for (key, value) in error.context() {
            context.entry(key).or_insert_with(|| Value::from(value));
        }
        document(error.class_name(), error.kind(), &with_causes(error), context);
    } else {
        stderr(&format!("error[{}]: {error}\n", error.class_name()));
        if let Some(snippet) = &failure.snippet {
            stderr(&format!("\n{}\n", snippet.trim_end()));
        }
    }
    ExitCode::from(error.kind().exit_code())
}

/// Shows what is wrong with the command line, or the help that it asked for.
pub(crate) fn usage(refused: &Refused) -> ExitCode {
    let error = &refused.error;
    if matches!(error.kind(), Refusal::DisplayHelp | Refusal::DisplayVersion) {
        // The reader of the help may be gone; that is no failure.
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    let kind = ErrorKind::Usage;
    let rendered = error.render();
    if refused.json {
        let text = rendered.to_string();
        let message = text.split("\n\nUsage:").next().unwrap_or(&text).trim().trim_start_matches("error: ");
        document(kind.default_class(), kind, message, Map::new());
    } else {
        let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let text = if colours { rendered.ansi().to_string() } else { rendered.to_string() };
        stderr(&text.replacen("error:", &format!("error[{}]:", kind.default_class()), 1));
    }
    ExitCode::from(kind.exit_code())
}

fn document(class: &str, kind: ErrorKind, message: &str, context: Map<String, Value>) {
    let error = json!({"error": {"class": class, "kind": kind, "message": message, "context": context}});
    stderr(&format!("{error}\n"));
}

fn with_causes(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let mut cause = error.source();
    while let Some(source) = cause {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = source.source();
    }
    text
}

fn stderr(text: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}
