//! Reading delete files, and the columns of data files that they are compared with.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use lakesmith_core::table::{DeleteFile, FileFormat, InputFile};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::file_read::{FileReader, OpenFile};
use crate::footer::{self, Footer};
use crate::opener::check_rows;
use crate::rewrite::TAIL_BYTES;
use crate::source::FileHandle;
use crate::target::Strings;

/// Delete files that are opened ahead of the one being read.
const OPEN_AHEAD: usize = 8;

/// Takes a batch: the position of its first row, itself, and which roots its columns are. False to stop.
pub(super) type EachBatch<'a> = dyn FnMut(u64, &RecordBatch, &[usize]) -> Result<bool> + 'a;

/// A footer on its way.
type Opening = (Location, JoinHandle<Result<Footer>>);

/// How files are read.
pub(super) struct Reads {
    store: Store,
    runtime: Handle,
    cancel: Cancel,
    /// Compressed bytes fetched at once.
    window_bytes: u64,
    /// Decoded bytes of a batch, about.
    batch_bytes: u64,
    /// Files up to this size come whole with their footer.
    whole_bytes: u64,
}

impl Reads {
    pub(super) fn new(store: Store, runtime: Handle, cancel: Cancel, memory_bytes: u64) -> Self {
        Self {
            store,
            runtime,
            cancel,
            window_bytes: (memory_bytes / 16).clamp(256 << 10, 32 << 20),
            batch_bytes: (memory_bytes / 32).clamp(128 << 10, 4 << 20),
            whole_bytes: (memory_bytes / 64).clamp(TAIL_BYTES, 4 << 20),
        }
    }

    /// Opens a data file.
    ///
    /// # Errors
    /// Those of its footer, Corrupt if it has other rows than were promised.
    pub(super) fn open_data(&self, input: &InputFile) -> Result<OpenFile> {
        let location = Location::from_canonical(&input.location)?;
        let guess = if input.size <= self.whole_bytes { input.size } else { TAIL_BYTES };
        let footer = self.runtime.block_on(footer::read(&self.store, &location, input.size, guess))?;
        check_rows(input, footer.rows())?;
        OpenFile::new(self.handle(location, input.size), footer, Strings::Bytes)
    }

    fn handle(&self, location: Location, size: u64) -> Arc<FileHandle> {
        Arc::new(FileHandle { store: self.store.clone(), location, size, runtime: self.runtime.clone() })
    }

    /// Opens delete files one after the other, a few ahead.
    pub(super) fn open_all<'a>(&'a self, files: &'a [&'a DeleteFile]) -> OpenAhead<'a> {
        OpenAhead { reads: self, files: files.iter(), on_the_way: VecDeque::new() }
    }

    /// Hands out the batches of some root columns until `each` says no. True if it never did.
    ///
    /// # Errors
    /// Those of `each`, of reading, Corrupt if other rows come than the footer says.
    pub(super) fn each_batch(
        &self,
        file: &OpenFile,
        roots: &[usize],
        deleting: Option<&DeleteFile>,
        each: &mut EachBatch<'_>,
    ) -> Result<bool> {
        let named = |error| match deleting {
            Some(delete) => unreadable(error, delete),
            None => error,
        };
        let mut reader = FileReader::new(file, roots.to_vec(), self.window_bytes, self.batch_bytes);
        let mut position = 0;
        while let Some(group) = reader.next_group().map_err(named)? {
            let mut batches = reader.decode(&group, roots.to_vec()).map_err(named)?;
            while let Some(batch) = batches.next_batch().map_err(named)? {
                self.cancel.check()?;
                if !each(position, &batch, batches.roots())? {
                    return Ok(false);
                }
                position += batch.num_rows() as u64;
            }
        }
        let rows = file.footer.rows();
        if position != rows {
            return Err(Error::corrupt(format!("the file gave {position} rows, its footer says {rows}"))
                .with("path", &file.handle.location));
        }
        Ok(true)
    }
}

/// Delete files on their way.
pub(super) struct OpenAhead<'a> {
    reads: &'a Reads,
    files: std::slice::Iter<'a, &'a DeleteFile>,
    on_the_way: VecDeque<(&'a DeleteFile, Result<Opening>)>,
}

impl<'a> OpenAhead<'a> {
    /// The next one.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the delete file.
    pub(super) fn next(&mut self) -> Result<Option<(&'a DeleteFile, OpenFile)>> {
        self.reads.cancel.check()?;
        while self.on_the_way.len() <= OPEN_AHEAD {
            let Some(file) = self.files.next() else { break };
            self.on_the_way.push_back((file, self.start(file)));
        }
        let Some((file, started)) = self.on_the_way.pop_front() else { return Ok(None) };
        let (location, opening) = started?;
        let opened =
            self.reads.runtime.block_on(opening).map_err(|e| {
                Error::internal("opening a delete file was stopped").with("path", &file.path).caused_by(e)
            })?;
        let open =
            opened.and_then(|footer| OpenFile::new(self.reads.handle(location, file.size), footer, Strings::Bytes));
        Ok(Some((file, open.map_err(|e| unreadable(e, file))?)))
    }

    fn start(&self, file: &DeleteFile) -> Result<Opening> {
        let format = match file.format {
            FileFormat::Parquet => None,
            FileFormat::Orc => Some("ORC"),
            FileFormat::Avro => Some("Avro"),
        };
        if let Some(format) = format {
            return Err(Error::unsupported(format!(
                "the delete file {} is written in {format}; only Parquet is read: let the engine that wrote it rewrite \
                 the data files that it deletes rows of",
                file.path
            ))
            .with("path", &file.path)
            .with("format", format));
        }
        let location = Location::from_canonical(&file.path)?;
        let guess = if file.size <= self.reads.whole_bytes { file.size } else { TAIL_BYTES };
        let (store, at, size) = (self.reads.store.clone(), location.clone(), file.size);
        let opening = self.reads.runtime.spawn(async move { footer::read(&store, &at, size, guess).await });
        Ok((location, opening))
    }
}

impl Drop for OpenAhead<'_> {
    fn drop(&mut self) {
        self.on_the_way
            .iter()
            .filter_map(|(_, started)| started.as_ref().ok())
            .for_each(|(_, opening)| opening.abort());
    }
}

/// The error for a delete file that cannot be read: which rows are deleted is then not known.
pub(super) fn unreadable(error: Error, file: &DeleteFile) -> Error {
    let told = match error.kind() {
        ErrorKind::NotFound => Error::not_found(
            "a delete file of the table is gone, so the rows that it deletes cannot be told from the others; restore it \
             from a copy",
        )
        .class(error.class_name().to_owned()),
        ErrorKind::Corrupt => Error::corrupt(format!(
            "a delete file of the table cannot be read, so the rows that it deletes are not known; restore it from a \
             copy: {}",
            error.message()
        )),
        ErrorKind::Unsupported => {
            Error::unsupported(format!("the delete file {} cannot be read: {}", file.path, error.message()))
        }
        _ => return error,
    };
    let told = match error.context_value("column") {
        Some(column) => told.with("column", column.to_owned()),
        None => told,
    };
    told.with("path", &file.path).caused_by(error)
}
