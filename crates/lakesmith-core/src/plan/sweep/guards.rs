//! Folders below the root that belong to somebody else, found by their marks while the listing streams.

use std::collections::BTreeSet;

use super::names::ICEBERG_FOLDER;
use super::rule::KeepReason;

/// A folder of this name makes the one that holds it a table.
pub const TABLE_MARKS: [&str; 2] = ["_delta_log", ".hoodie"];
/// Part of the name of every Iceberg metadata file, packed or not.
const ICEBERG_MARK: &str = ".metadata.json";

/// Folders of other tables below the root, and the root's own Iceberg metadata.
///
/// Complete only once the whole listing has been [noted](Guards::note): a mark may come after the files beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guards {
    foreign: BTreeSet<String>,
    linked: BTreeSet<String>,
    own_iceberg_metadata: bool,
}

impl Guards {
    /// Looks at a path of the listing, hidden ones included.
    pub fn note(&mut self, path: &str) {
        let mut end = 0;
        for segment in path.split('/') {
            if end > 0 && TABLE_MARKS.contains(&segment) {
                self.add(&path[..end - 1]);
                return;
            }
            end += segment.len() + 1;
        }
        let Some((folder, name)) = path.rsplit_once('/') else { return };
        if !name.contains(ICEBERG_MARK) {
            return;
        }
        if folder == ICEBERG_FOLDER {
            self.own_iceberg_metadata = true;
        } else if let Some(root) = folder.strip_suffix(ICEBERG_FOLDER).and_then(|r| r.strip_suffix('/')) {
            self.add(root);
        }
    }

    /// A link in the table leads to this file or folder below the root.
    pub fn note_link(&mut self, target: &str) {
        self.linked.insert(target.to_owned());
    }

    fn add(&mut self, folder: &str) {
        if !self.foreign.contains(folder) {
            self.foreign.insert(folder.to_owned());
        }
    }

    /// Why the path is somebody else's, if it is.
    pub fn covers(&self, path: &str) -> Option<KeepReason> {
        let inside = |folder: &str| path == folder || path.strip_prefix(folder).is_some_and(|r| r.starts_with('/'));
        if self.own_iceberg_metadata && inside(ICEBERG_FOLDER) {
            return Some(KeepReason::IcebergMetadata);
        }
        if self.foreign.is_empty() && self.linked.is_empty() {
            return None;
        }
        let mut above = Some(path);
        while let Some(folder) = above {
            if self.foreign.contains(folder) {
                return Some(KeepReason::ForeignTable);
            }
            if self.linked.contains(folder) {
                return Some(KeepReason::Linked);
            }
            above = folder.rsplit_once('/').map(|(parent, _)| parent);
        }
        None
    }

    /// True if nobody else has anything here.
    pub fn is_empty(&self) -> bool {
        self.foreign.is_empty() && self.linked.is_empty() && !self.own_iceberg_metadata
    }

    /// The guarded folders and why, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, KeepReason)> {
        let own = self.own_iceberg_metadata.then_some((ICEBERG_FOLDER, KeepReason::IcebergMetadata));
        let foreign = self.foreign.iter().map(|folder| (folder.as_str(), KeepReason::ForeignTable));
        own.into_iter().chain(foreign).chain(self.linked.iter().map(|path| (path.as_str(), KeepReason::Linked)))
    }
}
