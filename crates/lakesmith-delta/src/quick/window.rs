//! A Parquet file on the storage, read by windows: only the needed columns, in few requests, never a whole column at once.
//!
//! The Parquet reader asks for one page after the other, in turn from each column. Each column has one window; what is
//! asked for beyond it moves it on.

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lakesmith_core::units::MIB;
use lakesmith_storage::{Location, Store};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Files up to this size are read at once.
const WHOLE_BYTES: u64 = 2 * MIB;
/// End of a larger file that is read first: it holds the footer.
const TAIL_BYTES: u64 = MIB / 4;
/// Columns of a row group that are together below this size are read at once; larger ones by pieces of it.
const WINDOW_BYTES: u64 = 4 * MIB;

/// The file; cloning shares the windows. To be used on blocking threads of the runtime only.
#[derive(Clone)]
pub(crate) struct WindowedFile(Arc<Inner>);

struct Inner {
    store: Store,
    location: Location,
    size: u64,
    runtime: tokio::runtime::Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The end of the file, or all of it.
    tail: Option<(u64, Bytes)>,
    /// Chunks that will be read, ascending.
    chunks: Vec<Range<u64>>,
    /// One a chunk.
    windows: Vec<(u64, Bytes)>,
}

impl WindowedFile {
    pub(crate) fn new(store: &Store, location: &Location, size: u64, runtime: tokio::runtime::Handle) -> Self {
        let state = Mutex::new(State::default());
        Self(Arc::new(Inner { store: store.clone(), location: location.clone(), size, runtime, state }))
    }

    /// Announces the chunks that will be read next, each of another column of one row group.
    pub(crate) fn announce(&self, mut chunks: Vec<Range<u64>>) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|c| c.start);
        state.windows = vec![(0, Bytes::new()); chunks.len()];
        state.chunks = chunks;
    }

    /// At least one byte from `start`, at most `length`; all of them if `all`.
    fn read(&self, start: u64, length: u64, all: bool) -> Result<Bytes> {
        if start.saturating_add(if all { length } else { 1 }) > self.0.size {
            return Err(ParquetError::EOF(format!("the file ends before byte {}", start.saturating_add(length))));
        }
        let length = length.min(self.0.size - start);
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.tail.is_none() {
            let from = if self.0.size <= WHOLE_BYTES { 0 } else { self.0.size - TAIL_BYTES };
            state.tail = Some((from, self.fetch(from..self.0.size)?));
        }
        if let Some(found) = state.tail.as_ref().and_then(|tail| slice(tail, start, length, all)) {
            return Ok(found);
        }
        let Some((column, chunk)) = state.chunk(start) else { return self.fetch(start..start + length) };
        if let Some(found) = slice(&state.windows[column], start, length, all) {
            return Ok(found);
        }
        let together: u64 = state.chunks.iter().map(|c| c.end - c.start).sum();
        if start == chunk.start && together <= WINDOW_BYTES {
            let fetched = self.0.runtime.block_on(self.0.store.get_ranges(&self.0.location, &state.chunks));
            let starts = state.chunks.iter().map(|c| c.start);
            state.windows = starts.zip(fetched.map_err(external)?).collect();
            if let Some(found) = slice(&state.windows[column], start, length, all) {
                return Ok(found);
            }
        }
        let end = start.saturating_add(length.max(WINDOW_BYTES)).min(chunk.end.max(start + length));
        // The old window goes before the new one comes.
        state.windows[column] = (start, Bytes::new());
        state.windows[column] = (start, self.fetch(start..end)?);
        slice(&state.windows[column], start, length, all)
            .ok_or_else(|| ParquetError::EOF("the storage returned fewer bytes than asked for".into()))
    }

    fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        self.0.runtime.block_on(self.0.store.get_range(&self.0.location, range)).map_err(external)
    }
}

impl State {
    /// The chunk that holds a byte, and its place.
    fn chunk(&self, at: u64) -> Option<(usize, Range<u64>)> {
        let place = self.chunks.partition_point(|c| c.start <= at).checked_sub(1)?;
        self.chunks[place].contains(&at).then(|| (place, self.chunks[place].clone()))
    }
}

fn slice((from, bytes): &(u64, Bytes), start: u64, length: u64, all: bool) -> Option<Bytes> {
    let skip = usize::try_from(start.checked_sub(*from)?).ok()?;
    let there = bytes.len().checked_sub(skip).filter(|n| *n > 0)?;
    let wanted = usize::try_from(length).ok()?;
    if all && there < wanted {
        return None;
    }
    Some(bytes.slice(skip..skip + wanted.min(there)))
}

fn external(error: lakesmith_core::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl Length for WindowedFile {
    fn len(&self) -> u64 {
        self.0.size
    }
}

impl ChunkReader for WindowedFile {
    type T = WindowedRead;

    fn get_read(&self, start: u64) -> Result<WindowedRead> {
        Ok(WindowedRead { file: self.clone(), at: start, buffer: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        self.read(start, length as u64, true)
    }
}

/// Bytes of the file from a place on.
pub(crate) struct WindowedRead {
    file: WindowedFile,
    at: u64,
    buffer: Bytes,
}

/// Page headers are read byte by byte.
const HEADER_BYTES: u64 = 4096;

impl Read for WindowedRead {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if into.is_empty() || (self.buffer.is_empty() && self.at >= self.file.0.size) {
            return Ok(0);
        }
        if self.buffer.is_empty() {
            self.buffer =
                self.file.read(self.at, HEADER_BYTES.max(into.len() as u64), false).map_err(std::io::Error::other)?;
            self.at += self.buffer.len() as u64;
        }
        let taken = self.buffer.split_to(into.len().min(self.buffer.len()));
        into[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}
