//! What the storage holds beside what the log says: orphans, missing and damaged files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::StreamExt as _;
use lakesmith_core::Result;
use lakesmith_core::health::{CountAndBytes, StorageFacts};
use lakesmith_storage::{Location, ObjectInfo, Store};

use super::identity::of_path;
use super::replay::{Vector, is_simple};
use super::{Odd, odd};
use crate::vector;

/// Listings at once.
const LISTINGS: usize = 16;
const EXAMPLES_MAX: usize = 10;

/// The files that the log names, by the place where they are stored.
#[derive(Debug)]
pub(crate) struct LiveFiles {
    root: Location,
    live: HashMap<u128, Live>,
    /// When they left the table, milliseconds.
    buried: HashMap<u128, i64>,
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
        Self { root: root.clone(), live: HashMap::new(), buried: HashMap::new(), outside: 0 }
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
    pub(crate) fn bury(&mut self, path: &str, vector: Option<Vector<'_>>, deleted_ms: i64) {
        let mut bury = |below: &str| {
            let latest = self.buried.entry(of_path(below)).or_insert(deleted_ms);
            *latest = deleted_ms.max(*latest);
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

    /// Lists the table's folder and compares. Files older than `cutoff_ms` may be deleted unless they are live.
    ///
    /// # Errors
    /// `Unavailable` from the storage.
    pub(crate) async fn inspect(
        mut self,
        store: &Store,
        partition_columns: &[String],
        cutoff_ms: i64,
    ) -> Result<StorageFacts> {
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
            } else if !is_hidden(below, partition_columns) {
                let parent = below.rsplit_once('/').map_or("", |(parent, _)| parent);
                let buried_ms = self.buried.get(&of_path(below)).copied();
                folders.entry(parent.to_owned()).or_default().add(&info, buried_ms, cutoff_ms);
            }
        }
        for (folder, found) in folders {
            if foreign.iter().any(|table| is_within(&folder, table)) {
                continue;
            }
            for (total, part) in [
                (&mut facts.stored, found.stored),
                (&mut facts.orphans, found.orphans),
                (&mut facts.reclaimable, found.reclaimable),
            ] {
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
    reclaimable: CountAndBytes,
}

impl Folder {
    fn add(&mut self, info: &ObjectInfo, buried_ms: Option<i64>, cutoff_ms: i64) {
        self.stored.add(info.size);
        if buried_ms.is_none() {
            self.orphans.add(info.size);
        }
        if buried_ms.unwrap_or(info.modified_ms) < cutoff_ms {
            self.reclaimable.add(info.size);
        }
    }
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

/// True for what a VACUUM never looks at.
///
/// # Source
/// Delta Spark `VacuumCommand`, `DeltaTableUtils.isHiddenDirectory`.
fn is_hidden(below: &str, partition_columns: &[String]) -> bool {
    below.split('/').any(|name| {
        let kept = name.starts_with("_delta_index")
            || name.starts_with("_change_data")
            || partition_columns
                .iter()
                .any(|c| name.strip_prefix(c.as_str()).is_some_and(|rest| rest.starts_with('=')));
        name.starts_with(['_', '.']) && !kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_those_of_a_vacuum() {
        let columns = ["_p".to_owned()];
        for (below, hidden) in [
            ("part-0.parquet", false),
            ("_delta_log/0.json", true),
            (".part-0.crc", true),
            ("a/_tmp/x", true),
            ("_delta_index/x", false),
            ("_change_data/cdc-0", false),
            ("_p=1/part-0", false),
            ("_q=1/part-0", true),
        ] {
            assert_eq!(is_hidden(below, &columns), hidden, "{below}");
        }
    }

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
