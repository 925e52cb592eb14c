//! What a commit that won against ours did.

use std::collections::BTreeSet;

use crate::table::{FileKey, Version};

/// One winning commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSummary {
    /// Its version.
    pub version: Version,
    /// What it calls itself (`WRITE`, `DELETE`, …).
    pub operation: Option<String>,
    /// Identity of the writer's attempt.
    pub transaction_id: Option<String>,
    /// Files that it took out.
    pub removed: Vec<FileKey>,
    /// Files that it put in.
    pub added: Vec<FileKey>,
    /// True if it changed schema, partitioning or properties.
    pub metadata_changed: bool,
    /// True if it changed what readers and writers must know.
    pub protocol_changed: bool,
    /// Metadata domains that it changed.
    pub domains_changed: BTreeSet<String>,
}
