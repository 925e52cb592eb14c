//! What the storage holds beside what the log says: orphans, missing and damaged files.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use lakesmith_core::health::{CountAndBytes, StorageFacts};
use lakesmith_core::op::TimeTravel;
use lakesmith_core::plan::sweep::{NameRule, Retention, RetentionRequest, SweepReason};
use lakesmith_core::{ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, ObjectInfo, Store, survey};

use super::identity::{ByIdentity, Identities, of_path};
use super::replay::{Vector, is_simple};
use super::{Odd, odd};
use crate::{Needs, check_undoubted, deleted_file_retention_ms, load, references, vector};

/// Listings at once.
const LISTINGS: usize = 16;
const EXAMPLES_MAX: usize = 10;

/// The files that the log names, by the place where they are stored.
#[derive(Debug)]
pub(crate) struct LiveFiles {
    root: Location,
    live: ByIdentity<Live>,
    /// Those that left the table.
    buried: Identities,
    outside: u64,
}

#[derive(Debug)]
struct Live {
    path: Box<str>,
    /// `None` for a file of vectors, whose size the log does not say.
    size: Option<u64>,
    found: bool,
}

impl LiveFiles {
    pub(crate) fn new(root: &Location) -> Self {
        Self { root: root.clone(), live: ByIdentity::default(), buried: Identities::default(), outside: 0 }
    }

    /// A live file and that of its vector.
    pub(crate) fn insert(&mut self, path: &str, size: u64, vector: Option<Vector<'_>>) -> Result<(), Odd> {
        if is_simple(path) {
            self.put(path, Some(size));
        } else {
            let location = self.root.resolve(path).map_err(|e| odd(e.message()))?;
            match location.relative_to(&self.root) {
                Some(below) => self.put(below, Some(size)),
                None => self.outside += 1,
            }
        }
        if let Some(below) = vector_file(vector) {
            self.put(&below, None);
        }
        Ok(())
    }

    fn put(&mut self, below: &str, size: Option<u64>) {
        self.live.insert(of_path(below), Live { path: below.into(), size, found: false });
    }

    /// A file that left the table, and that of its vector. A path that is no name was never stored.
    pub(crate) fn bury(&mut self, path: &str, vector: Option<Vector<'_>>) {
        let mut bury = |below: &str| {
            self.buried.insert(of_path(below));
        };
        if let Ok(location) = self.root.resolve(path)
            && let Some(below) = location.relative_to(&self.root)
        {
            bury(below);
        }
        if let Some(below) = vector_file(vector) {
            bury(&below);
        }
    }

    /// Lists the table's folder and compares.
    ///
    /// # Errors
    /// `Unavailable` from the storage.
    pub(crate) async fn inspect(mut self, store: &Store, names: &NameRule) -> Result<StorageFacts> {
        let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
        let mut foreign: BTreeSet<String> = BTreeSet::new();
        let mut facts = StorageFacts { outside_files: self.outside, ..StorageFacts::default() };
        let root = self.root.clone();
        let mut listing = store.list_parallel(&root, LISTINGS);
        while let Some(info) = listing.next().await {
            let info = info?;
            let Some(below) = info.location.relative_to(&root) else { continue };
            if let Some(table) = foreign_table(below) {
                foreign.insert(table.to_owned());
            } else if self.is_live(below, &info, &mut facts) {
                facts.stored.add(info.size);
            } else if !names.hides(below) {
                let parent = below.rsplit_once('/').map_or("", |(parent, _)| parent);
                let is_buried = self.buried.contains(&of_path(below));
                folders.entry(parent.to_owned()).or_default().add(&info, is_buried);
            }
        }
        for (folder, found) in folders {
            if foreign.iter().any(|table| is_within(&folder, table)) {
                continue;
            }
            for (total, part) in [(&mut facts.stored, found.stored), (&mut facts.orphans, found.orphans)] {
                total.files += part.files;
                total.bytes += part.bytes;
            }
        }
        let mut missing: Vec<&str> = self.live.values().filter(|f| !f.found).map(|f| f.path.as_ref()).collect();
        missing.sort_unstable();
        facts.missing_files = missing.len() as u64;
        facts.examples.splice(0..0, missing.into_iter().take(EXAMPLES_MAX).map(str::to_owned));
        facts.examples.truncate(EXAMPLES_MAX);
        Ok(facts)
    }

    fn is_live(&mut self, below: &str, info: &ObjectInfo, facts: &mut StorageFacts) -> bool {
        let Some(file) = self.live.get_mut(&of_path(below)) else { return false };
        file.found = true;
        if file.size.is_some_and(|size| size != info.size) {
            facts.wrong_size_files += 1;
            if facts.examples.len() < EXAMPLES_MAX {
                facts.examples.push(below.to_owned());
            }
        }
        true
    }
}

/// Files of one folder that are not live.
#[derive(Debug, Default)]
struct Folder {
    stored: CountAndBytes,
    orphans: CountAndBytes,
}

impl Folder {
    fn add(&mut self, info: &ObjectInfo, is_buried: bool) {
        self.stored.add(info.size);
        if !is_buried {
            self.orphans.add(info.size);
        }
    }
}

/// The files that a VACUUM of the newest version would delete at `now_ms`, by its own rule: none where it would refuse.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn reclaimable(store: &Store, root: &Location, now_ms: i64) -> Result<CountAndBytes> {
    match swept(store, root, now_ms).await {
        Err(error) if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled) => {
            tracing::debug!(reason = error.message(), "a vacuum would refuse");
            Ok(CountAndBytes::default())
        }
        swept => swept,
    }
}

async fn swept(store: &Store, root: &Location, now_ms: i64) -> Result<CountAndBytes> {
    let table = load(store, root, TimeTravel::Latest, Needs { files: true, stats: false }).await?;
    check_undoubted(store, root, &table).await?;
    let table_ms = deleted_file_retention_ms(&table)?;
    let request = RetentionRequest { specified_ms: None, table_ms, check: true, no_writers: false, now_ms };
    let rule = references::sweep_rule(store, root, &table, Retention::of(request)?, false).await?;
    let found = survey(store, root, &rule, &Cancel::default()).await?;
    let mut files = CountAndBytes::default();
    found.candidates.for_each(|entry| {
        if entry.reason != SweepReason::EmptyFolder {
            files.add(entry.size);
        }
        Ok(())
    })?;
    Ok(files)
}

fn vector_file(vector: Option<Vector<'_>>) -> Option<String> {
    vector.filter(|v| v.storage_type == "u").and_then(|v| vector::relative_path(v.path_or_inline))
}

/// The folder of another table that this file gives away; the table's own log and metadata are none.
fn foreign_table(below: &str) -> Option<&str> {
    let (folder, name) = below.rsplit_once('/')?;
    if let Some((table, _)) = below.split_once("/_delta_log/") {
        return Some(table);
    }
    (name.ends_with(".metadata.json") && (folder == "metadata" || folder.ends_with("/metadata")))
        .then(|| folder.strip_suffix("/metadata").unwrap_or(folder))
}

fn is_within(folder: &str, table: &str) -> bool {
    folder.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_paths_stand_for_themselves() {
        for (path, simple) in [
            ("d=2026-01-01/part-0.c000.parquet", true),
            ("a.b/c", true),
            ("a%20b", false),
            ("s3://b/a", false),
            ("./a", false),
            ("a/../b", false),
            ("a//b", false),
            ("/a", false),
            ("a/", false),
            (".a", false),
            ("", false),
            ("ü", false),
        ] {
            assert_eq!(is_simple(path), simple, "{path}");
        }
    }

    #[test]
    fn other_tables_inside_are_recognised() {
        assert_eq!(foreign_table("sub/t/_delta_log/00.json"), Some("sub/t"));
        assert_eq!(foreign_table("_delta_log/00.json"), None);
        assert_eq!(foreign_table("metadata/v1.metadata.json"), Some("metadata"));
        assert_eq!(foreign_table("ice/metadata/v1.metadata.json"), Some("ice"));
        assert!(is_within("sub/t/x", "sub/t") && !is_within("sub/tt", "sub/t"));
    }
}
