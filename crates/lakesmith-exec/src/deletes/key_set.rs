//! A set of keys in little memory: their bytes one after the other, and a table of their numbers.

use std::collections::HashMap;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an entry in a list of owners, about.
const FURTHER_BYTES: usize = 56;

/// The hash by which keys are found. Keys themselves are compared too.
pub(super) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Keys, each with the numbers of those who own it.
#[derive(Default)]
pub(super) struct KeySet {
    table: HashTable<u32>,
    keys: Keys,
    /// First owner of each key; empty if owners do not matter.
    owners: Vec<u32>,
    /// Other owners.
    further: HashMap<u32, Vec<u32>>,
    further_bytes: usize,
}

/// Keys by number.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    count: usize,
    /// Length of every key, as long as all have the same.
    width: usize,
    /// Where keys end, once their lengths differ.
    ends: Vec<usize>,
}

impl Keys {
    fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        if self.ends.is_empty() {
            return &self.bytes[number * self.width..(number + 1) * self.width];
        }
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    fn allocated(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    fn truncate(&mut self, count: usize) {
        if count >= self.count {
            return;
        }
        let end =
            if self.ends.is_empty() { count * self.width } else { if count == 0 { 0 } else { self.ends[count - 1] } };
        self.bytes.truncate(end);
        self.bytes.shrink_to_fit();
        self.ends.truncate(count);
        self.ends.shrink_to_fit();
        self.count = count;
    }

    /// Bytes held at most while there is made room for one more key.
    fn growth(&self, length: usize) -> usize {
        let ends = match () {
            () if self.ends.is_empty() && (self.count == 0 || length == self.width) => 0,
            () if self.ends.is_empty() => (self.count + 1) * 3 / 2 * size_of::<usize>(),
            () => grown(self.ends.len(), self.ends.capacity(), 1) * size_of::<usize>(),
        };
        grown(self.bytes.len(), self.bytes.capacity(), length) + ends
    }

    fn push(&mut self, key: &[u8]) {
        if self.count == 0 {
            self.width = key.len();
        } else if self.ends.is_empty() && key.len() != self.width {
            let mut ends = Vec::with_capacity((self.count + 1) * 3 / 2);
            ends.extend((1..=self.count).map(|number| number * self.width));
            self.ends = ends;
        }
        make_room(&mut self.bytes, key.len());
        self.bytes.extend_from_slice(key);
        self.count += 1;
        if !self.ends.is_empty() {
            make_room(&mut self.ends, 1);
            self.ends.push(self.bytes.len());
        }
    }
}

/// Elements that are allocated for `more` of them; 0 if there is room.
fn grown(length: usize, capacity: usize, more: usize) -> usize {
    if length + more <= capacity { 0 } else { (capacity + capacity / 2).max(length + more).max(64) }
}

fn make_room<T>(list: &mut Vec<T>, more: usize) {
    let wanted = grown(list.len(), list.capacity(), more);
    if wanted > 0 {
        list.reserve_exact(wanted - list.len());
    }
}

impl KeySet {
    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.count
    }

    /// Bytes that are held.
    pub(super) fn allocated(&self) -> usize {
        self.table.allocation_size()
            + self.keys.allocated()
            + self.owners.capacity() * size_of::<u32>()
            + self.further_bytes
    }

    /// Adds a key; false if that would take more than `room` bytes. One key always has room.
    pub(super) fn insert(&mut self, key: &[u8], hash_of_key: u64, owner: Option<u32>, room: usize) -> bool {
        if let Some(number) = self.table.find(hash_of_key, |number| self.keys.get(*number) == key).copied() {
            if let Some(owner) = owner {
                self.add_owner(number, owner);
            }
            return self.further_bytes == 0 || self.allocated() <= room;
        }
        let Ok(number) = u32::try_from(self.keys.count) else { return false };
        let owners = if owner.is_some() { grown(self.owners.len(), self.owners.capacity(), 1) } else { 0 };
        let full = self.table.len() == self.table.capacity();
        let table = if full { (2 * self.table.allocation_size()).max(64) } else { 0 };
        let growth = self.keys.growth(key.len()) + owners * size_of::<u32>() + table;
        if growth > 0 && number > 0 && self.allocated() + growth > room {
            return false;
        }
        self.keys.push(key);
        if let Some(owner) = owner {
            make_room(&mut self.owners, 1);
            self.owners.push(owner);
        }
        let keys = &self.keys;
        self.table.insert_unique(hash_of_key, number, |number| hash(keys.get(*number)));
        true
    }

    fn add_owner(&mut self, number: u32, owner: u32) {
        if self.owners[number as usize] == owner {
            return;
        }
        let list = self.further.entry(number).or_default();
        // Owners come one after the other.
        if list.last() != Some(&owner) {
            self.further_bytes += if list.is_empty() { FURTHER_BYTES } else { 2 * size_of::<u32>() };
            list.push(owner);
        }
    }

    /// Takes back what the last owner added since the set had `len` keys.
    pub(super) fn forget(&mut self, owner: u32, len: usize) {
        self.table.retain(|number| (*number as usize) < len);
        self.keys.truncate(len);
        self.owners.truncate(len);
        self.owners.shrink_to_fit();
        let mut bytes = 0;
        self.further.retain(|number, list| {
            if list.last() == Some(&owner) {
                list.pop();
            }
            let keep = !list.is_empty() && (*number as usize) < len;
            bytes += if keep { FURTHER_BYTES + 2 * size_of::<u32>() * (list.len() - 1) } else { 0 };
            keep
        });
        self.further_bytes = bytes;
        let keys = &self.keys;
        self.table.shrink_to_fit(|number| hash(keys.get(*number)));
    }

    /// True if the set holds the key.
    pub(super) fn contains(&self, key: &[u8], hash_of_key: u64) -> bool {
        self.table.find(hash_of_key, |number| self.keys.get(*number) == key).is_some()
    }

    /// True if the set holds the key for one of the owners that are `asked`.
    pub(super) fn is_owned(&self, key: &[u8], hash_of_key: u64, asked: &[bool]) -> bool {
        let is_asked = |owner: &u32| asked.get(*owner as usize).is_some_and(|asked| *asked);
        self.table.find(hash_of_key, |number| self.keys.get(*number) == key).is_some_and(|number| {
            is_asked(&self.owners[*number as usize])
                || self.further.get(number).is_some_and(|list| list.iter().any(is_asked))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(set: &mut KeySet, key: &[u8], owner: u32) -> bool {
        set.insert(key, hash(key), Some(owner), usize::MAX)
    }

    #[test]
    fn keys_belong_to_those_who_added_them() {
        let mut set = KeySet::default();
        for key in [&b"aa"[..], b"ab", b"aa", b"a", b"", b"abc"] {
            assert!(add(&mut set, key, 0));
        }
        add(&mut set, b"ab", 1);
        add(&mut set, b"ab", 2);
        add(&mut set, b"zz", 2);
        assert_eq!(set.len(), 6);
        let owned = |set: &KeySet, key: &[u8], asked: &[bool]| set.is_owned(key, hash(key), asked);
        assert!(owned(&set, b"ab", &[false, true]) && owned(&set, b"ab", &[true]));
        assert!(owned(&set, b"", &[true]) && owned(&set, b"abc", &[true]) && !owned(&set, b"zz", &[true, true]));
        set.forget(2, 5);
        assert!(!owned(&set, b"zz", &[true, true, true]) && !owned(&set, b"ab", &[false, false, true]));
        assert!(owned(&set, b"ab", &[false, true, false]) && owned(&set, b"abc", &[true]));
        assert!(add(&mut set, b"zz", 3) && owned(&set, b"zz", &[false, false, false, true]));
    }

    #[test]
    fn a_set_stays_within_its_room() {
        let mut set = KeySet::default();
        let mut taken = 0u64;
        while set.insert(&taken.to_le_bytes(), hash(&taken.to_le_bytes()), None, 1 << 20) {
            assert!(set.allocated() <= 1 << 20);
            taken += 1;
        }
        assert!((30_000..120_000).contains(&taken), "{taken}");
        assert!((0..taken).all(|key| set.contains(&key.to_le_bytes(), hash(&key.to_le_bytes()))));
        assert!(!set.contains(&taken.to_le_bytes(), hash(&taken.to_le_bytes())));
    }
}
