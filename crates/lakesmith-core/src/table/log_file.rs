//! The files of a table's log, by what they are for.

use std::collections::{BTreeMap, BTreeSet};

/// What a file of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogRole {
    /// The commit of a version.
    Commit,
    /// The summary of a version that readers check themselves by.
    Checksum,
    /// Several commits in one file, up to and including this version.
    Compaction {
        /// The last version in it.
        last: u64,
    },
    /// A commit that waits for its catalog, or has been published since.
    Staged,
    /// A whole checkpoint, or the head of one.
    Checkpoint,
    /// One of several parts of a checkpoint.
    CheckpointPart {
        /// Number of the part, from 1.
        part: u64,
        /// Number of parts.
        of: u64,
    },
    /// Files of a checkpoint, kept apart from its head.
    Sidecar,
    /// A file system's own hidden checksum of a commit, summary or compaction.
    HiddenChecksum,
    /// A file system's own hidden checksum of a checkpoint.
    HiddenCheckpointChecksum,
    /// Anything else.
    Unknown,
}

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Name below the log's folder.
    pub name: String,
    /// What it is.
    pub role: LogRole,
    /// Its version, the first one of several; 0 where names have none.
    pub version: u64,
    /// Bytes.
    pub size: u64,
    /// Last modification, milliseconds since the epoch; 0 or less if the storage does not say.
    pub modified_ms: i64,
}

/// Versions that have a complete checkpoint: a head, or all of its parts, none of them empty.
pub fn complete_checkpoints(files: &[LogFile]) -> BTreeSet<u64> {
    let mut complete = BTreeSet::new();
    let mut parts: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for file in files.iter().filter(|f| f.size > 0) {
        match file.role {
            LogRole::Checkpoint => {
                complete.insert(file.version);
            }
            LogRole::CheckpointPart { part, of } => {
                parts.entry((file.version, of)).or_default().insert(part);
            }
            _ => {}
        }
    }
    let whole = |(_, of): &(u64, u64), found: &BTreeSet<u64>| *of > 0 && found.range(1..=*of).count() as u64 == *of;
    complete.extend(parts.iter().filter(|(key, found)| whole(key, found)).map(|((version, _), _)| *version));
    complete
}
