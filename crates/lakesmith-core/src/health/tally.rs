//! The live files as a health check needs them: a few words a file.

use super::CountAndBytes;
use crate::table::PartitionTuple;

/// A live file to count.
#[derive(Debug, Clone, Copy, Default)]
pub struct TalliedFile {
    /// The caller's number of the file's partition.
    pub partition: u32,
    /// Bytes.
    pub size: u64,
    /// Modification time in the log, milliseconds since the epoch.
    pub modified_ms: i64,
    /// Rows, deleted ones included, if known.
    pub rows: Option<u64>,
    /// Rows deleted by the file's vector, if it has one.
    pub deleted: Option<u64>,
    /// The target in bytes that it was written for, as its tags say ([`crate::layout::tag::packed_for`]).
    pub target: Option<u64>,
    /// True if a clustering run put it into a cube.
    pub in_cube: bool,
}

pub(super) const TAGGED: u8 = 1;
pub(super) const IN_CUBE: u8 = 2;

/// A file with a deletion vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked {
    /// Its place among the files.
    pub file: u32,
    pub deleted: u64,
    pub rows: Option<u64>,
}

/// Collects live files one by one.
#[derive(Debug, Default)]
pub struct FileTally {
    target: u64,
    files: TalliedFiles,
    unknown_rows: bool,
}

impl FileTally {
    /// For a check with this target of OPTIMIZE, in bytes.
    pub fn new(target_bytes: u64) -> Self {
        Self { target: target_bytes, ..Self::default() }
    }

    /// Counts a file and returns its place, for [`FileTally::set_rows`].
    pub fn push(&mut self, file: TalliedFile) -> u32 {
        let place = self.files.size.len() as u32;
        let t = &mut self.files;
        t.size.push(file.size);
        t.modified_ms.push(file.modified_ms);
        t.partition.push(file.partition);
        let tagged = file.target == Some(self.target);
        t.flags.push(if tagged { TAGGED } else { 0 } | if file.in_cube { IN_CUBE } else { 0 });
        if let Some(deleted) = file.deleted {
            t.marked.push(Marked { file: place, deleted, rows: file.rows });
        }
        match file.rows {
            Some(rows) => t.rows = t.rows.saturating_add(rows),
            None => self.unknown_rows = true,
        }
        place
    }

    /// Says the rows of a file with a vector that were not known when it was counted.
    pub fn set_rows(&mut self, place: u32, rows: u64) {
        if let Ok(index) = self.files.marked.binary_search_by_key(&place, |m| m.file) {
            self.files.marked[index].rows = Some(rows);
        }
    }

    /// Files counted so far.
    pub fn len(&self) -> usize {
        self.files.size.len()
    }

    /// True before the first file.
    pub fn is_empty(&self) -> bool {
        self.files.size.is_empty()
    }

    /// The files, with `partitions` in place of the caller's own numbers, which `places` maps to them. A partition
    /// without files is dropped.
    pub fn finish(mut self, partitions: Vec<PartitionTuple>, places: &[u32]) -> TalliedFiles {
        let place = |number: u32| places.get(number as usize).copied().unwrap_or(0);
        let mut used = vec![false; partitions.len()];
        self.files.partition.iter().for_each(|number| used[place(*number) as usize] = true);
        let mut kept = 0;
        let moved: Vec<u32> = used
            .iter()
            .map(|used| {
                let at = kept;
                kept += u32::from(*used);
                at
            })
            .collect();
        self.files.partition.iter_mut().for_each(|number| *number = moved[place(*number) as usize]);
        let filled = partitions.into_iter().zip(used).filter_map(|(partition, used)| used.then_some(partition));
        self.files.partitions = filled.collect();
        self.files.rows_known = !self.unknown_rows;
        self.files
    }
}

/// The live files of a version.
#[derive(Debug, Clone, Default)]
pub struct TalliedFiles {
    pub(super) size: Vec<u64>,
    pub(super) modified_ms: Vec<i64>,
    pub(super) partition: Vec<u32>,
    pub(super) flags: Vec<u8>,
    pub(super) marked: Vec<Marked>,
    pub(super) partitions: Vec<PartitionTuple>,
    rows: u64,
    rows_known: bool,
}

impl TalliedFiles {
    /// Number of files.
    pub fn len(&self) -> usize {
        self.size.len()
    }

    /// True without files.
    pub fn is_empty(&self) -> bool {
        self.size.is_empty()
    }

    /// Sum of the files' bytes.
    pub fn bytes(&self) -> u64 {
        self.size.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Distinct partitions.
    pub fn partitions(&self) -> &[PartitionTuple] {
        &self.partitions
    }

    /// Rows of all files, deleted ones included, if every file's are known.
    pub fn rows(&self) -> Option<u64> {
        self.rows_known.then_some(self.rows)
    }

    /// Files with a vector and the rows that these delete.
    pub fn deletes(&self) -> (u64, u64) {
        (self.marked.len() as u64, self.marked.iter().map(|m| m.deleted).sum())
    }

    /// Files that belong to no cube of a clustering run.
    pub(super) fn outside_cubes(&self) -> CountAndBytes {
        let mut found = CountAndBytes::default();
        for (flags, size) in self.flags.iter().zip(&self.size) {
            if flags & IN_CUBE == 0 {
                found.add(*size);
            }
        }
        found
    }

    /// Partition, bytes and deleted rows of each file, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&PartitionTuple, u64, u64)> {
        let mut marked = self.marked.iter().peekable();
        (0..self.len()).map(move |i| {
            let deleted = marked.next_if(|m| m.file as usize == i).map_or(0, |m| m.deleted);
            (&self.partitions[self.partition[i] as usize], self.size[i], deleted)
        })
    }
}
