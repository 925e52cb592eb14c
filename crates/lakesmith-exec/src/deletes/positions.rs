//! Position deletes: files that name rows by the path of their data file and their position in it.
//!
//! # Source
//! Iceberg spec, "Position Delete Files".

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use lakesmith_core::table::{DataType, DeleteFile, DeletionVector, Field};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::Location;

use super::budget::Budget;
use super::reads::{Reads, unreadable};
use crate::adapt::{self, Adapt};
use crate::failure::in_file;
use crate::file_read::OpenFile;

/// Field ids that Iceberg reserves for the two columns.
const PATH_COLUMN: (&str, i32) = ("file_path", 2_147_483_546);
const POSITION_COLUMN: (&str, i32) = ("pos", 2_147_483_545);

/// Bytes of a data file's entry beside its path and positions, and of a bitmap's container, about.
const ENTRY_BYTES: usize = 160;
const CONTAINER_BYTES: usize = 64;

/// Deleted positions by the canonical path of the data file.
type ByPath = HashMap<String, DeletionVector>;

/// The position delete files of a scan, each read once if its positions fit into the memory.
#[derive(Default)]
pub(super) struct PositionFiles {
    files: Mutex<HashMap<String, Arc<Mutex<Held>>>>,
}

#[derive(Default, Clone)]
enum Held {
    #[default]
    Unread,
    Positions(Arc<ByPath>),
    /// It is read again for each data file.
    TooLarge,
}

impl PositionFiles {
    /// Positions of the data file at `data` that these files delete.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the delete file.
    pub(super) fn mark(
        &self,
        files: &[&DeleteFile],
        data: &str,
        reads: &Reads,
        budget: &Budget,
        into: &mut DeletionVector,
    ) -> Result<()> {
        let mut unread = Vec::new();
        for file in files {
            match &*lock(&self.slot(file)) {
                Held::Positions(by_path) => merge(into, by_path, data),
                Held::Unread | Held::TooLarge => unread.push(*file),
            }
        }
        let mut opened = reads.open_all(&unread);
        while let Some((file, open)) = opened.next()? {
            let slot = self.slot(file);
            // Who comes meanwhile waits instead of reading the file too.
            let mut held = lock(&slot);
            if let Held::Unread = *held {
                *held = match read(file, &open, None, reads, budget.room())? {
                    Some(by_path) => {
                        budget.change(0, bytes(&by_path));
                        Held::Positions(Arc::new(by_path))
                    }
                    None => Held::TooLarge,
                };
            }
            match held.clone() {
                Held::Positions(by_path) => merge(into, &by_path, data),
                Held::Unread | Held::TooLarge => {
                    drop(held);
                    let by_path = read(file, &open, Some(data), reads, usize::MAX)?;
                    merge(into, &by_path.unwrap_or_default(), data);
                }
            }
        }
        Ok(())
    }

    fn slot(&self, file: &DeleteFile) -> Arc<Mutex<Held>> {
        Arc::clone(lock(&self.files).entry(file.path.clone()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn merge(into: &mut DeletionVector, by_path: &ByPath, data: &str) {
    if let Some(positions) = by_path.get(data) {
        into.merge(positions);
    }
}

fn bytes(by_path: &ByPath) -> usize {
    by_path.iter().map(|(path, positions)| path.len() + ENTRY_BYTES + positions.encoded_bytes()).sum()
}

/// The positions of one data file, or of all; `None` if they take more than `room` bytes.
fn read(file: &DeleteFile, open: &OpenFile, only: Option<&str>, reads: &Reads, room: usize) -> Result<Option<ByPath>> {
    let columns = [
        find(file, open, PATH_COLUMN, DataType::String, &ArrowType::Utf8)?,
        find(file, open, POSITION_COLUMN, DataType::Long, &ArrowType::Int64)?,
    ];
    let roots = [columns[0].0, columns[1].0];
    let mut rows = Rows { file, only, vectors: Vec::new(), names: HashMap::new(), spellings: HashMap::new(), bytes: 0 };
    let fit = reads.each_batch(open, &roots, Some(file), &mut |_, batch, roots| {
        let [paths, positions] = [0, 1].map(|i| column(file, batch, roots, &columns[i]));
        rows.take(&paths?, &positions?)?;
        Ok(rows.fit(room))
    })?;
    Ok(fit.then(|| rows.into_map()))
}

type Column = (usize, Adapt, ArrowType);

fn find(
    file: &DeleteFile,
    open: &OpenFile,
    (name, id): (&str, i32),
    data_type: DataType,
    to: &ArrowType,
) -> Result<Column> {
    let (name, physical) = (name.to_owned(), name.to_owned());
    let field = Field { name, physical, id: Some(id), data_type, nullable: false, metadata: Default::default() };
    let found = match adapt::plan_column(&field, to, open.fields(), true) {
        Ok(None) => adapt::plan_column(&field, to, open.fields(), false),
        other => other,
    };
    let found = found.map_err(|e| unreadable(e, file))?;
    let (root, adapt) =
        found.ok_or_else(|| broken(file, "a position delete file lacks a column").with("column", &field.name))?;
    Ok((root, adapt, to.clone()))
}

fn column(file: &DeleteFile, batch: &RecordBatch, roots: &[usize], column: &Column) -> Result<ArrayRef> {
    let (root, adapt, to) = column;
    let at = roots.binary_search(root).map_err(|_| Error::internal("a column that was asked for was not read"))?;
    in_file(adapt::apply(adapt, batch.column(at), to), &file.path)
}

fn broken(file: &DeleteFile, what: &str) -> Error {
    Error::corrupt(format!("{what}, so it is not known which rows are deleted; restore the file from a copy"))
        .with("path", &file.path)
}

/// What was read of a file.
struct Rows<'a> {
    file: &'a DeleteFile,
    only: Option<&'a str>,
    vectors: Vec<DeletionVector>,
    /// Numbers of the vectors by canonical path.
    names: HashMap<String, usize>,
    /// Numbers of the vectors by the path as it is written.
    spellings: HashMap<String, Option<usize>>,
    /// Bytes of it all, rather too many.
    bytes: usize,
}

impl Rows<'_> {
    fn take(&mut self, paths: &ArrayRef, positions: &ArrayRef) -> Result<()> {
        if paths.null_count() > 0 || positions.null_count() > 0 {
            return Err(broken(self.file, "a position delete file holds NULL for a path or a position"));
        }
        let (paths, positions) = (paths.as_string::<i32>(), positions.as_primitive::<Int64Type>().values());
        let mut start = 0;
        while start < positions.len() {
            let path = paths.value(start);
            let end = (start + 1..positions.len()).find(|row| paths.value(*row) != path).unwrap_or(positions.len());
            if let Some(number) = self.number(path)? {
                let run = &positions[start..end];
                if let Some(negative) = run.iter().find(|position| **position < 0) {
                    return Err(broken(self.file, &format!("a position delete file holds the position {negative}"))
                        .with("data file", path));
                }
                self.vectors[number].extend(run.iter().map(|position| *position as u64));
                let containers = 1 + run.windows(2).filter(|pair| pair[0] >> 16 != pair[1] >> 16).count();
                self.bytes += 2 * run.len() + CONTAINER_BYTES * containers;
            }
            start = end;
        }
        Ok(())
    }

    /// The number of the vector for a path; `None` for a data file that is not asked for.
    ///
    /// # Errors
    /// Corrupt if it can't be told which data file is meant: its rows would come back.
    fn number(&mut self, path: &str) -> Result<Option<usize>> {
        if let Some(known) = self.spellings.get(path) {
            return Ok(*known);
        }
        let unclear = || {
            broken(self.file, "a position delete file names a data file by a path that does not tell its storage")
                .with("data file", path)
        };
        let canonical = match Location::from_unencoded(path) {
            // On other storages a path without a scheme may mean theirs, or the local one.
            Ok(_) if path.starts_with('/') && !self.file.path.starts_with("file://") => return Err(unclear()),
            Ok(location) => Some(location.to_string()),
            // No data file on a storage that is not known can be opened.
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            Err(error) => return Err(unclear().caused_by(error)),
        };
        let asked = canonical.filter(|canonical| self.only.is_none_or(|only| only == canonical));
        let number = asked.map(|canonical| {
            self.bytes += canonical.len() + ENTRY_BYTES;
            *self.names.entry(canonical).or_insert_with(|| {
                self.vectors.push(DeletionVector::default());
                self.vectors.len() - 1
            })
        });
        self.bytes += path.len() + ENTRY_BYTES / 2;
        self.spellings.insert(path.to_owned(), number);
        Ok(number)
    }

    fn fit(&mut self, room: usize) -> bool {
        if self.bytes > room {
            let paths: usize =
                self.spellings.keys().chain(self.names.keys()).map(|path| path.len() + ENTRY_BYTES).sum();
            self.bytes = paths + self.vectors.iter().map(DeletionVector::encoded_bytes).sum::<usize>();
        }
        self.bytes <= room
    }

    fn into_map(self) -> ByPath {
        let mut vectors = self.vectors;
        self.names.into_iter().map(|(path, number)| (path, std::mem::take(&mut vectors[number]))).collect()
    }
}
