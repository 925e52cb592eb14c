//! The rule itself.

use super::guards::Guards;
use super::names::NameRule;
use super::references::References;
use super::retention::Retention;

/// An entry of the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// On-disk path below the root.
    pub path: &'a str,
    /// What it is.
    pub kind: FoundKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    /// A file.
    File {
        /// Last modification, milliseconds since the epoch; `None` or at most 0 if the storage does not say.
        modified_ms: Option<i64>,
    },
    /// A file of which the log says that it left the table before the retention, or one of changed rows as old.
    Removed,
    /// A folder of a file system.
    Folder {
        /// True if no file lies in it at any depth, hidden ones included.
        empty: bool,
    },
}

/// Why an object may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepReason {
    /// The log says that it left the table before the retention.
    Removed,
    /// The log does not know it, and it is old enough that no write can be about to commit it.
    Unreferenced,
    /// A folder without files.
    EmptyFolder,
}

/// Why an object that looks superfluous stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// It left the table within the retention; time travel may still need it.
    WithinRetention,
    /// The log does not know it, but a running write may be about to commit it.
    TooYoung,
    /// The storage does not tell when it was written.
    NoModificationTime,
    /// The log names it, or a file of its name, by an absolute path, so it may be another's.
    ReferencedElsewhere,
    /// It belongs to another table below the root.
    ForeignTable,
    /// A link in the table leads to it, so it may be in use under the link's name.
    Linked,
    /// Iceberg's view of this table.
    IcebergMetadata,
    /// It was put on a list first, and its days are not over.
    Condemned,
    /// A list of condemned files in a form that this version does not know, or of another table.
    UnknownList,
}

/// What the rule says about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be deleted.
    Delete(SweepReason),
    /// It stays although no version that can be read needs it for certain.
    Keep(KeepReason),
    /// It is live, hidden or a folder in use.
    Ignore,
}

/// What may be deleted below a table's root. Made only from a checked retention and complete references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepRule {
    retention: Retention,
    references: References,
    names: NameRule,
}

impl SweepRule {
    /// Files that no version within the retention needs.
    pub fn unreferenced(retention: Retention, references: References, names: NameRule) -> Self {
        Self { retention, references, names }
    }

    /// The retention.
    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// The names that are left alone.
    pub fn names(&self) -> &NameRule {
        &self.names
    }

    /// Judges an entry; `guards` must have seen the whole listing for a deletion to be final.
    pub fn judge(&self, found: &Found<'_>, guards: &Guards) -> Verdict {
        let path = found.path;
        if !is_plain(path) || self.names.hides(path) || self.references.is_live(path) {
            return Verdict::Ignore;
        }
        if let Some(reason) = guards.covers(path) {
            return Verdict::Keep(reason);
        }
        if self.references.is_retained(path) {
            return Verdict::Keep(KeepReason::WithinRetention);
        }
        match found.kind {
            FoundKind::Folder { empty: true } => Verdict::Delete(SweepReason::EmptyFolder),
            FoundKind::Folder { empty: false } => Verdict::Ignore,
            FoundKind::File { .. } | FoundKind::Removed if self.references.is_in_doubt(path) => {
                Verdict::Keep(KeepReason::ReferencedElsewhere)
            }
            FoundKind::Removed => Verdict::Delete(SweepReason::Removed),
            FoundKind::File { .. } if self.references.is_removed(path) => Verdict::Delete(SweepReason::Removed),
            FoundKind::File { modified_ms } => match modified_ms.filter(|ms| *ms > 0) {
                None => Verdict::Keep(KeepReason::NoModificationTime),
                Some(ms) if ms >= self.retention.unknown_cutoff_ms() => Verdict::Keep(KeepReason::TooYoung),
                Some(_) => Verdict::Delete(SweepReason::Unreferenced),
            },
        }
    }
}

/// False for the root itself and for anything that is not a path straight down.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}
