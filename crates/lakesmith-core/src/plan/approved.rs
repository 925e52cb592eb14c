//! The part of a plan that somebody read and approved: a later plan does no more than that.

use std::sync::{Mutex, PoisonError};

use super::sweep::PathHash;
use super::{FileGroup, RewritePlan};
use crate::table::{DataFile, FileTable};

/// What was approved, in 17 bytes a file.
#[derive(Debug)]
pub struct Approved {
    /// Identity of the table.
    pub table_id: String,
    /// Digest of its protocol and metadata.
    pub configuration: String,
    /// Its version.
    pub version: u64,
    sorted: Vec<PathHash>,
    done: Mutex<Vec<bool>>,
}

impl PartialEq for Approved {
    fn eq(&self, other: &Self) -> bool {
        (&self.table_id, &self.configuration, self.version, &self.sorted)
            == (&other.table_id, &other.configuration, other.version, &other.sorted)
    }
}

impl Approved {
    /// Approves the files with these keys.
    pub fn new(table_id: String, configuration: String, version: u64, mut keys: Vec<PathHash>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        let done = Mutex::new(vec![false; keys.len()]);
        Self { table_id, configuration, version, sorted: keys, done }
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.sorted.binary_search(&PathHash::of(key)).ok()
    }

    /// True if the file is approved.
    pub fn allows(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Remembers that the file is in the plan that is carried out.
    pub fn take(&self, key: &str) {
        if let Some(position) = self.position(key) {
            self.done.lock().unwrap_or_else(PoisonError::into_inner)[position] = true;
        }
    }

    /// True if the file is in the plan that is carried out.
    pub fn took(&self, key: &str) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        self.position(key).is_some_and(|position| done[position])
    }
}

/// Identity of a data file in an approval: whatever changes it makes it another file.
pub fn rewrite_key(path: &str, vector: Option<&str>, size: u64) -> String {
    format!("{path}\0{}\0{size}", vector.unwrap_or_default())
}

fn key_of(file: &DataFile<'_>) -> String {
    rewrite_key(file.path, file.deletes.map(|d| d.unique_id.as_str()), file.size)
}

/// The groups of a fresh plan with approved files only. A group that is left with one file goes, unless it had one from the
/// start or `purges` says that a file alone is worth it.
pub fn restrict(mut plan: RewritePlan, files: &FileTable, approved: &Approved, purges: bool) -> RewritePlan {
    let mut groups = Vec::new();
    for group in std::mem::take(&mut plan.groups) {
        let planned = group.files.len();
        let kept: Vec<_> = group.files.iter().copied().filter(|id| approved.allows(&key_of(&files.get(*id)))).collect();
        if kept.is_empty() || kept.len() == 1 && planned > 1 && !purges {
            continue;
        }
        kept.iter().for_each(|id| approved.take(&key_of(&files.get(*id))));
        let bytes = kept.iter().map(|id| files.get(*id).size).sum();
        groups.push(FileGroup { files: kept, bytes, ..group });
    }
    RewritePlan { groups, ..plan }
}
