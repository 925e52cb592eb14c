//! What a scan skips and reads, for those who ask how a query was answered.

use std::sync::{Arc, Mutex, PoisonError};

use lakesmith::{Location, ScanReport};

/// One scan of one table.
#[derive(Debug, Clone)]
pub(crate) struct ScanSummary {
    /// Counts.
    pub report: ScanReport,
    /// Files that are read.
    pub read: Vec<Location>,
}

/// Takes the summaries of a query's scans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summaries(Arc<Mutex<Vec<ScanSummary>>>);

impl Summaries {
    /// Notes a scan.
    pub(crate) fn note(&self, summary: ScanSummary) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(summary);
    }

    /// What was noted.
    pub(crate) fn all(&self) -> Vec<ScanSummary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
