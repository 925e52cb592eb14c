//! The seam to a query engine: what a session hands to it, and what comes back.

use std::sync::Arc;

use lakesmith_core::op::TimeTravel;
use lakesmith_core::{Error, Result};
use lakesmith_sql::Span;
use serde_json::Value;

use crate::Session;

/// A statement for a query engine.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The statement's text.
    pub text: &'a str,
    /// Where it stands in the text that the user gave.
    pub span: Span,
}

/// What one scan of one table skipped and read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ScanReport {
    /// The table.
    pub table: String,
    /// Its version.
    pub version: u64,
    /// Files of the version.
    pub files: u64,
    /// Bytes of the version.
    pub bytes: u64,
    /// Files that were not read, by what told that they need not be.
    pub skipped: SkippedFiles,
    /// Files that were read.
    pub read_files: u64,
    /// Bytes of the files that were read, whole.
    pub read_bytes: u64,
}

/// Files that were not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SkippedFiles {
    /// By their partition's values.
    pub partition: u64,
    /// By the bounds and counts in the metadata.
    pub stats: u64,
    /// Because enough rows came before them.
    pub limit: u64,
}

impl std::fmt::Display for ScanReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use lakesmith_core::units::{counted, format_bytes};
        let skipped = self.skipped;
        let parts = [(skipped.partition, "partition"), (skipped.stats, "statistics"), (skipped.limit, "limit")];
        let by: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} by {what}")).collect();
        let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
        write!(
            f,
            "{} version {}: {} ({}), {} skipped{by}, {} read ({})",
            self.table,
            self.version,
            counted(self.files, "file"),
            format_bytes(self.bytes),
            skipped.partition + skipped.stats + skipped.limit,
            self.read_files,
            format_bytes(self.read_bytes),
        )
    }
}

/// Some rows of a query's result. The first ones come even if there are none, for the sake of their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryRows {
    /// Columns, in order; the same each time.
    pub columns: Vec<String>,
    /// Rows, values as in [`crate::SqlResult::rows`].
    pub rows: Vec<Vec<Value>>,
    /// The query's scans; the same each time.
    pub scans: Arc<[ScanReport]>,
}

/// Runs what the library itself does not understand: SELECT and its kin.
pub trait QueryEngine: Send + Sync {
    /// Runs a statement and hands its rows over as they come, so that no result is held whole.
    ///
    /// # Errors
    /// Those of the statement with Spark's classes, and what `each` returns.
    fn run(&self, session: &Session, query: Query<'_>, each: &mut dyn FnMut(QueryRows) -> Result<()>) -> Result<()>;

    /// What a query's scans would skip and read; nothing of it is run.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    fn scans(&self, session: &Session, query: Query<'_>) -> Result<Arc<[ScanReport]>>;
}

impl Session {
    /// What reading the rows of a table that match a condition would skip and read. The table as in [`Session::run`].
    ///
    /// # Errors
    /// Usage with the place in `condition`, Unsupported without a query engine, those of opening the table.
    pub fn explain(&self, table: &str, at: TimeTravel, condition: Option<&str>) -> Result<ScanReport> {
        let Some(engine) = &self.options.engine else {
            return Err(Error::unsupported("this build has no query engine, which explains how a table is read")
                .class("UNSUPPORTED_FEATURE"));
        };
        let target = self.target_of_text(table, false)?;
        let version = match at {
            TimeTravel::Latest => String::new(),
            TimeTravel::Version(version) => format!(" VERSION AS OF {version}"),
            TimeTravel::Timestamp(ms) => {
                let instant = jiff::Timestamp::from_millisecond(ms);
                let instant = instant.map_err(|e| Error::usage("the time is out of range").caused_by(e))?;
                format!(" TIMESTAMP AS OF '{instant}'")
            }
            TimeTravel::Reference(name) => {
                format!(" VERSION AS OF '{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
            }
        };
        let (format, root) = (self.format(&target)?.prefix(), target.root.to_string());
        let before = format!("SELECT * FROM {format}.`{}`{version}", root.replace('`', "``"));
        let before = if condition.is_some() { format!("{before} WHERE ") } else { before };
        let text = format!("{before}{}", condition.unwrap_or_default());
        let whole = Span { line: 1, column: 1, end_line: 1, end_column: 1, start: 0, end: text.len() };
        let scans = engine.scans(self, Query { text: &text, span: whole });
        let scans = scans.map_err(|error| in_condition(error, before.chars().count() as u64))?;
        scans.first().cloned().ok_or_else(|| Error::internal("a query of a table did not scan it"))
    }
}

/// The place of an error in the condition rather than in the query that it stands in.
fn in_condition(error: Error, before: u64) -> Error {
    let number = |key: &str| error.context_value(key).and_then(|v| v.parse::<u64>().ok());
    let (Some(1), Some(position)) = (number("line"), number("position")) else { return error };
    error.replacing("position", position.saturating_sub(before))
}
