//! The state that the log gives, collected newest commit first: what is said first about a file decides.

use std::collections::BTreeMap;

use lakesmith_core::Result;
use lakesmith_core::health::{FileTally, TalliedFile, TombstoneFacts};
use lakesmith_core::layout::tag::target_in;
use lakesmith_core::plan::ZCUBE_TAG;
use lakesmith_storage::Location;

use super::identity::{self, Identities, Seen, Sight};
use super::partitions::RawPartitions;
use super::row_counts::Sums;
use super::storage::LiveFiles;
use super::{Odd, odd};
use crate::actions::{DomainMetadata, Metadata, Protocol};
use crate::spelling::is_plain;
use crate::vector;

/// A vector as the log describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vector<'a> {
    pub storage_type: &'a str,
    pub path_or_inline: &'a str,
    pub offset: Option<i32>,
    pub cardinality: i64,
}

impl Vector<'_> {
    pub(super) fn id(&self) -> String {
        vector::unique_id(self.storage_type, self.path_or_inline, self.offset)
    }
}

/// An `add` as far as a survey needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddedFile<'a> {
    pub path: &'a str,
    pub size: i64,
    pub modified_ms: i64,
    pub rows: Option<u64>,
    pub vector: Option<Vector<'a>>,
    pub partition: u32,
    pub target: Option<u64>,
    pub in_cube: bool,
}

/// A `remove` as far as a survey needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemovedFile<'a> {
    pub path: &'a str,
    pub size: Option<i64>,
    pub deleted_ms: i64,
    pub vector: Option<Vector<'a>>,
}

/// A file that left the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tombstone {
    path: u128,
    deleted_ms: i64,
    size: Option<u64>,
}

/// Everything that the log says of one version.
#[derive(Debug)]
pub(crate) struct Replay {
    root: Location,
    pub protocol: Option<Protocol>,
    pub metadata: Option<Metadata>,
    /// Configuration by domain; `None` once removed.
    pub domains: BTreeMap<String, Option<String>>,
    pub seen: Seen,
    pub tally: FileTally,
    pub partitions: RawPartitions,
    /// By the numbers of `partitions`.
    pub sums: Sums,
    /// Only for a deep survey.
    pub live: Option<LiveFiles>,
    tombstones: Vec<Tombstone>,
    /// Paths of live files with vectors: their older selves are tombstones, but the files stay.
    marked: Identities,
}

impl Replay {
    pub(crate) fn new(root: &Location, target_bytes: u64, live: Option<LiveFiles>) -> Self {
        Self {
            root: root.clone(),
            protocol: None,
            metadata: None,
            domains: BTreeMap::new(),
            seen: Seen::default(),
            tally: FileTally::new(target_bytes),
            partitions: RawPartitions::default(),
            sums: Sums::default(),
            live,
            tombstones: Vec::new(),
            marked: Identities::default(),
        }
    }

    /// An `add` of a commit; returns the file's place if it is live.
    pub(crate) fn add_of_commit(&mut self, add: &AddedFile<'_>, commit: u32) -> Result<Option<u32>, Odd> {
        let vector_id = add.vector.map(|v| v.id());
        match self.seen.see(identity::of_file(add.path, vector_id.as_deref()), commit) {
            Sight::First => self.count(add).map(Some),
            Sight::Superseded => Ok(None),
            Sight::Twice => Err(odd("a commit speaks twice of one file")),
        }
    }

    /// An `add` of the checkpoint; returns the file's place if it is live.
    pub(crate) fn add_of_checkpoint(&mut self, add: &AddedFile<'_>) -> Result<Option<u32>, Odd> {
        if !self.seen.is_empty() {
            let vector_id = add.vector.map(|v| v.id());
            if self.seen.contains(identity::of_file(add.path, vector_id.as_deref())) {
                return Ok(None);
            }
        }
        self.count(add).map(Some)
    }

    fn count(&mut self, add: &AddedFile<'_>) -> Result<u32, Odd> {
        check_spelling(add.path, &self.root)?;
        let size = u64::try_from(add.size).map_err(|_| odd("a file has a negative size"))?;
        let deleted = match add.vector {
            Some(v) => Some(u64::try_from(v.cardinality).map_err(|_| odd("a vector has a negative cardinality"))?),
            None => None,
        };
        if deleted.is_some() {
            self.marked.insert(identity::of_path(add.path));
        }
        if let Some(live) = &mut self.live {
            live.insert(add.path, size, add.vector)?;
        }
        if self.tally.len() >= u32::MAX as usize {
            return Err(odd("the table has too many files"));
        }
        self.sums.add(add.partition, size, add.rows, deleted.unwrap_or(0));
        Ok(self.tally.push(TalliedFile {
            partition: add.partition,
            size,
            modified_ms: add.modified_ms,
            rows: add.rows,
            deleted,
            target: add.target,
            in_cube: add.in_cube,
        }))
    }

    pub(crate) fn remove_of_commit(&mut self, remove: &RemovedFile<'_>, commit: u32) -> Result<(), Odd> {
        check_spelling(remove.path, &self.root)?;
        let vector_id = remove.vector.map(|v| v.id());
        match self.seen.see(identity::of_file(remove.path, vector_id.as_deref()), commit) {
            Sight::First => self.bury(remove),
            Sight::Superseded => {}
            Sight::Twice => return Err(odd("a commit speaks twice of one file")),
        }
        Ok(())
    }

    pub(crate) fn remove_of_checkpoint(&mut self, remove: &RemovedFile<'_>) -> Result<(), Odd> {
        check_spelling(remove.path, &self.root)?;
        let vector_id = remove.vector.map(|v| v.id());
        if !self.seen.contains(identity::of_file(remove.path, vector_id.as_deref())) {
            self.bury(remove);
        }
        Ok(())
    }

    fn bury(&mut self, remove: &RemovedFile<'_>) {
        self.tombstones.push(Tombstone {
            path: identity::of_path(remove.path),
            deleted_ms: remove.deleted_ms,
            size: remove.size.and_then(|size| u64::try_from(size).ok()),
        });
        if let Some(live) = &mut self.live {
            live.bury(remove.path, remove.vector);
        }
    }

    pub(crate) fn domain(&mut self, domain: DomainMetadata) {
        self.domains.entry(domain.domain).or_insert_with(|| (!domain.removed).then_some(domain.configuration));
    }

    /// Tombstones whose files are not live again, those older than `cutoff_ms` apart. Those that a VACUUM at
    /// `vacuumed_before_ms` already took don't count as expired.
    pub(crate) fn tombstones(
        &self,
        cutoff_ms: i64,
        vacuumed_before_ms: Option<i64>,
        retention_ms: i64,
    ) -> TombstoneFacts {
        let mut facts = TombstoneFacts { retention_ms, ..TombstoneFacts::default() };
        let mut counted = Identities::default();
        for tombstone in &self.tombstones {
            // A file may have left once for each vector that it had.
            if self.marked.contains(&tombstone.path) || !counted.insert(tombstone.path) {
                continue;
            }
            let size = tombstone.size.unwrap_or(0);
            facts.without_size += u64::from(tombstone.size.is_none());
            facts.all.add(size);
            if tombstone.deleted_ms < cutoff_ms
                && vacuumed_before_ms.is_none_or(|before| tombstone.deleted_ms >= before)
            {
                facts.expired.add(size);
            }
        }
        facts
    }
}

/// Readers compare paths by text; where another text could name the same file, the general reader decides.
pub(super) fn check_spelling(path: &str, root: &Location) -> Result<(), Odd> {
    if is_simple(path) || is_plain(path, root) { Ok(()) } else { Err(odd("a path is spelled in an unusual way")) }
}

/// True for most paths that writers write, which stand for themselves: no escapes, no scheme, no dots that move.
pub(crate) fn is_simple(path: &str) -> bool {
    let bytes = path.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    // No branch and nothing that is carried on, so that the compiler takes many bytes at once.
    let plain = bytes.iter().fold(true, |plain, b| {
        let letter = (*b | 0x20).wrapping_sub(b'a') < 26;
        // From `-` to `9` there are `.`, `/` and the digits.
        plain & (letter | (b.wrapping_sub(b'-') < 13) | (*b == b'_') | (*b == b'='))
    });
    let moves = bytes
        .iter()
        .zip(&bytes[1..])
        .fold(false, |moves, (before, b)| moves | ((*before == b'/') & ((*b == b'.') | (*b == b'/'))));
    plain && !moves && !matches!(*first, b'.' | b'/') && *last != b'/'
}

/// The tags that matter to a survey: target of a packing run, and whether a cube holds the file.
pub(crate) fn marks<'a>(tags: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> (Option<u64>, bool) {
    let (mut target, mut in_cube) = (None, false);
    for (key, value) in tags {
        match key {
            ZCUBE_TAG => in_cube = value.is_some(),
            _ => target = target_in(key, value).or(target),
        }
    }
    (target, in_cube)
}
