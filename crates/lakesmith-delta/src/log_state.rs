//! What a commit needs to know of the log beyond the files: protocol, metadata, domains and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::table::TableState;

use crate::actions;
use crate::log_view::LogView;
use crate::path_watch::TwoSpellings;
use crate::version_file::VersionFile;

/// One version of a Delta table.
#[derive(Debug, Clone)]
pub struct DeltaTable {
    /// What planners see.
    pub state: Arc<TableState>,
    /// What commits need.
    pub log: LogState,
}

/// The log's own facts at one version.
#[derive(Debug, Clone)]
pub struct LogState {
    /// Protocol in force.
    pub protocol: actions::Protocol,
    /// Metadata in force.
    pub metadata: actions::Metadata,
    /// Configuration of every domain that is not removed, by domain.
    pub domains: BTreeMap<String, String>,
    /// Highest row id given out (row tracking); `None` before the first one.
    pub row_id_high_water_mark: Option<i64>,
    /// When the version was committed: in-commit timestamp where enabled, else the file's time. Milliseconds.
    pub commit_timestamp_ms: i64,
    /// True if commits of this table carry their own timestamp.
    pub in_commit_timestamps: bool,
    /// Version of the checkpoint that the version was built from.
    pub checkpoint_version: Option<u64>,
    /// A commit without a byte: what it did is lost, or about to be written.
    pub(crate) empty_commit: Option<u64>,
    /// The version's commit, or the checkpoint that stands for it in a log that was cleaned up.
    pub(crate) file: Option<VersionFile>,
    /// What of the log was looked at.
    pub(crate) view: LogView,
    /// A file whose path the log spells in two ways: readers don't agree on which files are live.
    pub(crate) two_spellings: Option<TwoSpellings>,
}

impl LogState {
    /// A file whose path the log spells in two ways: the spelling read last, and the log's file that holds it.
    pub fn two_spellings(&self) -> Option<(String, String)> {
        self.two_spellings.as_ref().map(|two| (two.path.clone(), two.log_file.clone()))
    }
}
