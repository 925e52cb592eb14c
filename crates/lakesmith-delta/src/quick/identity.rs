//! Identities of files as 16-byte hashes: a log may name millions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Identity of a path as the log spells it.
pub(crate) fn of_path(path: &str) -> u128 {
    xxh3_128(path.as_bytes())
}

/// Identity of a file within the log: its path and its vector's id.
pub(crate) fn of_file(path: &str, vector_id: Option<&str>) -> u128 {
    let Some(vector_id) = vector_id else { return of_path(path) };
    let mut hash = Xxh3::new();
    hash.update(path.as_bytes());
    hash.update(b"\0");
    hash.update(vector_id.as_bytes());
    hash.digest128()
}

/// The files that newer commits have spoken about.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// With the number of the commit.
    files: HashMap<u128, u32>,
}

/// What is known of a file when an action about it is read, newest commit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// This action decides.
    First,
    /// A newer commit decided.
    Superseded,
    /// This same commit has another action about the file.
    Twice,
}

impl Seen {
    pub(crate) fn see(&mut self, file: u128, commit: u32) -> Sight {
        match self.files.entry(file) {
            Entry::Vacant(free) => {
                free.insert(commit);
                Sight::First
            }
            Entry::Occupied(found) if *found.get() == commit => Sight::Twice,
            Entry::Occupied(_) => Sight::Superseded,
        }
    }

    pub(crate) fn contains(&self, file: u128) -> bool {
        self.files.contains_key(&file)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
