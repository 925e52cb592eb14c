//! Identities of files as 16-byte hashes: a log may name millions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

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

/// Takes an identity for its own hash.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, identity: u128) {
        self.0 = identity as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map by identity.
pub(crate) type ByIdentity<T> = HashMap<u128, T, BuildHasherDefault<Hashed>>;
/// A set of identities.
pub(crate) type Identities = HashSet<u128, BuildHasherDefault<Hashed>>;

/// The files that newer commits have spoken about.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// With the number of the commit.
    files: ByIdentity<u32>,
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
