//! Which files of the log give a version: the newest complete checkpoint at or before it and the commits after.

use std::collections::BTreeMap;

use lakesmith_core::table::LogRole;
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, ObjectInfo};

use crate::log_files::{CommitFile, LOG_FOLDER, LogFiles, log_file};

/// A checkpoint's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckpointFiles {
    /// One Parquet file with a plain name; it may be of either kind.
    Single(ObjectInfo),
    /// All parts, in order.
    Parts(Vec<ObjectInfo>),
    /// The head of a V2 checkpoint: Parquet, or JSON if its name says so.
    Head(ObjectInfo),
}

impl CheckpointFiles {
    pub(crate) fn files(&self) -> &[ObjectInfo] {
        match self {
            Self::Single(file) | Self::Head(file) => std::slice::from_ref(file),
            Self::Parts(parts) => parts,
        }
    }
}

/// The files of one version.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub version: u64,
    pub checkpoint: Option<(u64, CheckpointFiles)>,
    /// The version's own commit, which a log that was cleaned up to its checkpoint may lack.
    pub own: Option<CommitFile>,
    /// Commits after the checkpoint, newest first.
    pub commits: Vec<CommitFile>,
}

impl Segment {
    /// The file that gives the version: its commit, or the checkpoint that stands for it.
    pub(crate) fn file(&self) -> Option<&ObjectInfo> {
        let checkpoint = self.checkpoint.as_ref().filter(|(version, _)| *version == self.version);
        self.own.as_ref().map(|commit| &commit.info).or_else(|| checkpoint?.1.files().first())
    }
}

/// A listing of the log's folder, sorted by meaning.
pub(crate) struct LogListing {
    pub all: Vec<ObjectInfo>,
    pub files: LogFiles,
    folder: Location,
    checkpoints: BTreeMap<u64, CheckpointFiles>,
}

impl LogListing {
    pub(crate) fn new(root: &Location, all: Vec<ObjectInfo>) -> Self {
        let folder = root.join(LOG_FOLDER);
        let files = LogFiles::from_listing(&folder, all.clone());
        let mut checkpoints: BTreeMap<u64, CheckpointFiles> = BTreeMap::new();
        let mut parts: BTreeMap<(u64, u64), BTreeMap<u64, ObjectInfo>> = BTreeMap::new();
        for info in all.iter().filter(|info| info.size > 0) {
            let Some(file) = log_file(&folder, info) else { continue };
            match file.role {
                LogRole::Checkpoint => {
                    let plain = file.name.ends_with(".checkpoint.parquet");
                    let found = if plain { CheckpointFiles::Single } else { CheckpointFiles::Head };
                    checkpoints.insert(file.version, found(info.clone()));
                }
                LogRole::CheckpointPart { part, of } => {
                    parts.entry((file.version, of)).or_default().insert(part, info.clone());
                }
                _ => {}
            }
        }
        for ((version, of), found) in parts {
            if (1..=of).all(|part| found.contains_key(&part)) {
                checkpoints.entry(version).or_insert_with(|| CheckpointFiles::Parts(found.into_values().collect()));
            }
        }
        Self { all, files, folder, checkpoints }
    }

    /// The file directly in the log's folder that has this name.
    pub(crate) fn named(&self, name: &str) -> Option<&ObjectInfo> {
        let location = self.folder.join(name);
        self.all.iter().find(|info| info.location == location)
    }

    /// Versions that have a complete checkpoint, ascending, with its files.
    pub(crate) fn checkpoints(&self) -> impl DoubleEndedIterator<Item = (u64, &CheckpointFiles)> {
        self.checkpoints.iter().map(|(version, files)| (*version, files))
    }

    /// # Errors
    /// `Corrupt` if commits are missing between the checkpoint and the version.
    pub(crate) fn segment(&self, version: u64) -> Result<Segment> {
        let checkpoint = self.checkpoints.range(..=version).next_back().map(|(v, files)| (*v, files.clone()));
        let first = checkpoint.as_ref().map_or(0, |(v, _)| v + 1);
        let commits: Vec<CommitFile> =
            self.files.commits.iter().rev().filter(|c| (first..=version).contains(&c.version)).cloned().collect();
        let expected = (first..=version).rev();
        if !commits.iter().map(|c| c.version).eq(expected) {
            return Err(
                Error::corrupt("the log has a gap: the versions it holds are not contiguous").with("version", version)
            );
        }
        let own = self.files.commits.iter().rfind(|c| c.version == version).cloned();
        Ok(Segment { version, checkpoint, own, commits })
    }
}
