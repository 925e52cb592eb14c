//! The live files of a table, columnar: tables have millions of files.
//!
//! Fixed-width columns plus one arena for paths; partitions, marks and vectors are interned. A row costs at most 64 bytes
//! and its path.

use std::collections::{BTreeMap, HashMap};

use super::{DeleteFile, DeleteFileId, DeleteInfo, FileMarks, PartitionTuple};

/// Row number in a [`FileTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId(pub u32);

/// Numbers by row that most tables have none of: nothing is held before the first one.
#[derive(Debug, Clone, Default)]
struct SparseNumbers(Vec<i64>);

impl SparseNumbers {
    const NONE: i64 = i64::MIN;

    fn get(&self, row: usize) -> Option<i64> {
        self.0.get(row).copied().filter(|v| *v != Self::NONE)
    }

    fn set(&mut self, row: usize, value: Option<i64>) {
        if let Some(value) = value {
            assert!(self.0.len() <= row, "numbers are set in the order of rows");
            self.0.resize(row, Self::NONE);
            self.0.push(value);
        }
    }
}

/// The live files of one version, in any order. Build with [`FileTableBuilder`].
#[derive(Debug, Clone, Default)]
pub struct FileTable {
    path_arena: Vec<u8>,
    path_end: Vec<u64>,
    size: Vec<u64>,
    rows: Vec<i64>,
    modified_ms: Vec<i64>,
    partition: Vec<u32>,
    marks: Vec<u32>,
    base_row_id: SparseNumbers,
    row_commit_version: SparseNumbers,
    partitions: Vec<PartitionTuple>,
    mark_values: Vec<FileMarks>,
    deletes: BTreeMap<u32, DeleteInfo>,
    delete_files: Vec<DeleteFile>,
    delete_sets: Vec<Vec<DeleteFileId>>,
    delete_set: SparseNumbers,
    stats_arena: Vec<u8>,
    stats_end: Vec<u64>,
}

/// Borrowed view of one file.
#[derive(Debug, Clone, Copy)]
pub struct DataFile<'a> {
    /// Its row in the table.
    pub id: FileId,
    /// As stored in the log: relative and URL-encoded, or an absolute URI. Identity together with the vector's id.
    pub path: &'a str,
    /// Bytes on storage.
    pub size: u64,
    /// Physical rows, deleted ones included; `None` if the log has no count.
    pub rows: Option<u64>,
    /// Modification time recorded in the log, milliseconds since the epoch.
    pub modified_ms: i64,
    /// Index into [`FileTable::partitions`].
    pub partition_index: u32,
    /// Partition values.
    pub partition: &'a PartitionTuple,
    /// Tags and clustering provider.
    pub marks: &'a FileMarks,
    /// Deletion vector, if any.
    pub deletes: Option<&'a DeleteInfo>,
    /// Files that may delete rows of it besides; which ones and how many only reading tells.
    pub delete_files: &'a [DeleteFileId],
    /// First row id of the file (row tracking).
    pub base_row_id: Option<i64>,
    /// Default commit version of its rows (row tracking).
    pub row_commit_version: Option<i64>,
    /// Statistics as stored (JSON text), if they were loaded and exist.
    pub stats_json: Option<&'a str>,
}

impl DataFile<'_> {
    /// Rows deleted by the vector.
    pub fn deleted_rows(&self) -> u64 {
        self.deletes.map_or(0, |d| d.cardinality)
    }

    /// Rows that are not deleted, where the metadata tells.
    pub fn live_rows(&self) -> Option<u64> {
        if self.delete_files.is_empty() { self.rows?.checked_sub(self.deleted_rows()) } else { None }
    }

    /// True if rows of it may be deleted.
    pub fn has_deletes(&self) -> bool {
        self.deletes.is_some() || !self.delete_files.is_empty()
    }
}

impl FileTable {
    /// Number of files.
    pub fn len(&self) -> usize {
        self.size.len()
    }

    /// True if there are no files.
    pub fn is_empty(&self) -> bool {
        self.size.is_empty()
    }

    /// Sum of the files' bytes.
    pub fn total_bytes(&self) -> u64 {
        self.size.iter().sum()
    }

    /// Distinct partitions, by typed value; files refer to them by index.
    pub fn partitions(&self) -> &[PartitionTuple] {
        &self.partitions
    }

    /// The file `id`.
    ///
    /// # Panics
    /// If the id is not of this table.
    pub fn get(&self, id: FileId) -> DataFile<'_> {
        let i = id.0 as usize;
        DataFile {
            id,
            path: text(&self.path_arena, &self.path_end, i),
            size: self.size[i],
            rows: u64::try_from(self.rows[i]).ok(),
            modified_ms: self.modified_ms[i],
            partition_index: self.partition[i],
            partition: &self.partitions[self.partition[i] as usize],
            marks: &self.mark_values[self.marks[i] as usize],
            deletes: self.deletes.get(&id.0),
            delete_files: self.delete_set.get(i).map_or(&[], |set| &self.delete_sets[set as usize]),
            base_row_id: self.base_row_id.get(i),
            row_commit_version: self.row_commit_version.get(i),
            stats_json: if self.stats_end.is_empty() {
                None
            } else {
                Some(text(&self.stats_arena, &self.stats_end, i)).filter(|s| !s.is_empty())
            },
        }
    }

    /// Every file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DataFile<'_>> {
        (0..self.len() as u32).map(|i| self.get(FileId(i)))
    }

    /// Every file that deletes rows of others.
    pub fn delete_files(&self) -> &[DeleteFile] {
        &self.delete_files
    }

    /// A delete file.
    ///
    /// # Panics
    /// If the id is not of this table.
    pub fn delete_file(&self, id: DeleteFileId) -> &DeleteFile {
        &self.delete_files[id.0 as usize]
    }

    /// Approximate heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.path_arena.capacity()
            + self.stats_arena.capacity()
            + (self.path_end.capacity() + self.stats_end.capacity()) * 8
            + (self.size.capacity() + self.rows.capacity() + self.modified_ms.capacity()) * 8
            + (self.base_row_id.0.capacity() + self.row_commit_version.0.capacity()) * 8
            + (self.partition.capacity() + self.marks.capacity()) * 4
            + self.delete_set.0.capacity() * 8
            + self.delete_sets.iter().map(|set| set.capacity() * 4).sum::<usize>()
            + self.delete_files.iter().map(|file| size_of::<DeleteFile>() + file.path.capacity()).sum::<usize>()
    }
}

fn text<'a>(arena: &'a [u8], ends: &[u64], i: usize) -> &'a str {
    let start = if i == 0 { 0 } else { ends[i - 1] as usize };
    // Only whole `&str`s are appended, so the slice is valid UTF-8.
    std::str::from_utf8(&arena[start..ends[i] as usize]).unwrap_or_default()
}

/// One row to append with [`FileTableBuilder::push`]. Fields as in [`DataFile`].
#[derive(Debug, Clone, Copy)]
pub struct NewRow<'a> {
    /// Path as stored in the log.
    pub path: &'a str,
    /// Bytes on storage.
    pub size: u64,
    /// Physical rows.
    pub rows: Option<u64>,
    /// Modification time, milliseconds.
    pub modified_ms: i64,
    /// Index from [`FileTableBuilder::partition`].
    pub partition_index: u32,
    /// Index from [`FileTableBuilder::marks`].
    pub marks_index: u32,
    /// Row tracking.
    pub base_row_id: Option<i64>,
    /// Row tracking.
    pub row_commit_version: Option<i64>,
    /// Statistics as JSON text; kept only by a builder made with statistics.
    pub stats_json: Option<&'a str>,
}

/// Builds a [`FileTable`].
#[derive(Debug, Default)]
pub struct FileTableBuilder {
    table: FileTable,
    partition_index: BTreeMap<PartitionTuple, u32>,
    marks_index: HashMap<FileMarks, u32>,
    delete_set_index: HashMap<Vec<DeleteFileId>, i64>,
    keep_stats: bool,
}

impl FileTableBuilder {
    /// A builder; `keep_stats` says whether statistics are kept.
    pub fn new(keep_stats: bool) -> Self {
        Self { keep_stats, ..Self::default() }
    }

    /// Interns a partition.
    pub fn partition(&mut self, tuple: PartitionTuple) -> u32 {
        let next = self.table.partitions.len() as u32;
        match self.partition_index.entry(tuple) {
            std::collections::btree_map::Entry::Occupied(e) => *e.get(),
            std::collections::btree_map::Entry::Vacant(e) => {
                self.table.partitions.push(e.key().clone());
                *e.insert(next)
            }
        }
    }

    /// Interns tags and clustering provider.
    pub fn marks(&mut self, marks: FileMarks) -> u32 {
        if let Some(i) = self.marks_index.get(&marks) {
            return *i;
        }
        let next = self.table.mark_values.len() as u32;
        self.table.mark_values.push(marks.clone());
        self.marks_index.insert(marks, next);
        next
    }

    /// Appends a file.
    pub fn push(&mut self, row: NewRow<'_>, deletes: Option<DeleteInfo>) -> FileId {
        let t = &mut self.table;
        let id = t.size.len() as u32;
        t.path_arena.extend_from_slice(row.path.as_bytes());
        t.path_end.push(t.path_arena.len() as u64);
        t.size.push(row.size);
        t.rows.push(row.rows.map_or(-1, |r| r as i64));
        t.modified_ms.push(row.modified_ms);
        t.partition.push(row.partition_index);
        t.marks.push(row.marks_index);
        t.base_row_id.set(id as usize, row.base_row_id);
        t.row_commit_version.set(id as usize, row.row_commit_version);
        if let Some(d) = deletes {
            t.deletes.insert(id, d);
        }
        if self.keep_stats {
            t.stats_arena.extend_from_slice(row.stats_json.unwrap_or("").as_bytes());
            t.stats_end.push(t.stats_arena.len() as u64);
        }
        FileId(id)
    }

    /// Adds a file that deletes rows of others.
    pub fn delete_file(&mut self, file: DeleteFile) -> DeleteFileId {
        let id = DeleteFileId(self.table.delete_files.len() as u32);
        self.table.delete_files.push(file);
        id
    }

    /// Says that `deletes` may delete rows of `file`, in ascending order of the files.
    ///
    /// # Panics
    /// If a later file has been told of already.
    pub fn delete_by(&mut self, file: FileId, deletes: Vec<DeleteFileId>) {
        if deletes.is_empty() {
            return;
        }
        let sets = &mut self.table.delete_sets;
        let next = sets.len() as i64;
        let set = *self.delete_set_index.entry(deletes).or_insert_with_key(|key| {
            sets.push(key.clone());
            next
        });
        self.table.delete_set.set(file.0 as usize, Some(set));
    }

    /// The finished table.
    pub fn finish(self) -> FileTable {
        let mut table = self.table;
        // Growth by doubling leaves up to half of each column unused.
        table.path_arena.shrink_to_fit();
        table.stats_arena.shrink_to_fit();
        for column in [&mut table.path_end, &mut table.stats_end, &mut table.size] {
            column.shrink_to_fit();
        }
        let (ids, versions) = (&mut table.base_row_id.0, &mut table.row_commit_version.0);
        for column in [&mut table.rows, &mut table.modified_ms, ids, versions, &mut table.delete_set.0] {
            column.shrink_to_fit();
        }
        table.partition.shrink_to_fit();
        table.marks.shrink_to_fit();
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{DeleteContent, FileFormat};

    #[test]
    fn row_numbers_stay_with_their_files() {
        let mut builder = FileTableBuilder::new(false);
        let partition_index = builder.partition(PartitionTuple::default());
        let marks_index = builder.marks(FileMarks::default());
        let expected = [None, None, Some(7), None, Some(-1), Some(0), None];
        for (number, base_row_id) in expected.into_iter().enumerate() {
            let path = number.to_string();
            let row = NewRow {
                path: &path,
                size: 1,
                rows: None,
                modified_ms: 0,
                partition_index,
                marks_index,
                base_row_id,
                row_commit_version: base_row_id.map(|id| id + 1),
                stats_json: None,
            };
            builder.push(row, None);
        }
        let position = |path: &str| DeleteFile {
            path: path.to_owned(),
            size: 1,
            rows: 1,
            format: FileFormat::Parquet,
            content: DeleteContent::Positions,
        };
        let (a, b) = (builder.delete_file(position("a")), builder.delete_file(position("b")));
        builder.delete_by(FileId(1), vec![a]);
        builder.delete_by(FileId(2), Vec::new());
        builder.delete_by(FileId(4), vec![a, b]);
        let table = builder.finish();
        let deleting: Vec<usize> = table.iter().map(|f| f.delete_files.len()).collect();
        assert_eq!(deleting, [0, 1, 0, 0, 2, 0, 0]);
        assert_eq!(table.delete_file(table.get(FileId(4)).delete_files[1]).path, "b");
        let found: Vec<_> = table.iter().map(|f| (f.base_row_id, f.row_commit_version)).collect();
        assert_eq!(found, expected.map(|id| (id, id.map(|v| v + 1))));
    }
}
