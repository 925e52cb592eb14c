//! The seam to a query engine: what a session hands to it, and what comes back.

use std::sync::Arc;

use lakesmith_core::Result;
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
}
