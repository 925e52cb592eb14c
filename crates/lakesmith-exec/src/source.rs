//! Bytes of one file for the Parquet reader: a row group's chunks fetched at once, or blocks on demand.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lakesmith_core::Result;
use lakesmith_storage::{Location, Store};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::failure::missing_file;

/// Gaps up to this are read along rather than asked for separately.
const COALESCE_BYTES: u64 = 256 << 10;
/// Small reads on demand take at least this much.
const BLOCK_BYTES: u64 = 256 << 10;

/// What every read of a file needs.
#[derive(Debug, Clone)]
pub(crate) struct FileHandle {
    /// Its storage.
    pub store: Store,
    /// Where it is.
    pub location: Location,
    /// Bytes.
    pub size: u64,
    /// Waits for the storage.
    pub runtime: tokio::runtime::Handle,
}

/// A fetched part of a file; everything else is read in blocks on demand.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    file: Arc<FileHandle>,
    chunks: Arc<Vec<(u64, Bytes)>>,
    blocks: Arc<Mutex<VecDeque<(u64, Bytes)>>>,
    max_blocks: usize,
}

impl Window {
    /// A window over chunks that are in memory; `columns` bounds the blocks kept for reads outside of them.
    pub(crate) fn new(file: Arc<FileHandle>, chunks: Vec<(u64, Bytes)>, columns: usize) -> Self {
        Self { file, chunks: Arc::new(chunks), blocks: Arc::default(), max_blocks: columns.clamp(1, 64) }
    }

    fn cached(&self, start: u64, length: usize) -> Option<Bytes> {
        let within = |(at, bytes): &(u64, Bytes)| {
            let from = usize::try_from(start.checked_sub(*at)?).ok()?;
            (from.checked_add(length)? <= bytes.len()).then(|| bytes.slice(from..from + length))
        };
        if let Some(found) = self.chunks.iter().find_map(within) {
            return Some(found);
        }
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(within)
    }

    fn fetch(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if let Some(found) = self.cached(start, length) {
            return Ok(found);
        }
        let end = start.saturating_add(length as u64);
        if end > self.file.size {
            return Err(ParquetError::EOF("a read beyond the end of the file".to_owned()));
        }
        let block_end = end.max(start + BLOCK_BYTES).min(self.file.size);
        let read = self.file.store.get_range(&self.file.location, start..block_end);
        let bytes = self.file.runtime.block_on(read).map_err(|e| ParquetError::External(Box::new(missing_file(e))))?;
        // Large pages are used once; only what is left of small reads is worth keeping.
        if block_end - start <= BLOCK_BYTES {
            let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            if blocks.len() >= self.max_blocks {
                blocks.pop_front();
            }
            blocks.push_back((start, bytes.clone()));
        }
        Ok(bytes.slice(..length))
    }
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.file.size
    }
}

impl ChunkReader for Window {
    type T = WindowRead;

    fn get_read(&self, start: u64) -> Result<WindowRead, ParquetError> {
        Ok(WindowRead { window: self.clone(), position: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.fetch(start, length)
    }
}

/// Sequential reads through a window.
#[derive(Debug)]
pub(crate) struct WindowRead {
    window: Window,
    position: u64,
}

impl Read for WindowRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.window.file.size.saturating_sub(self.position);
        let wanted = (buffer.len() as u64).min(left).min(64 << 10) as usize;
        if wanted == 0 {
            return Ok(0);
        }
        let bytes = self.window.fetch(self.position, wanted).map_err(std::io::Error::other)?;
        buffer[..wanted].copy_from_slice(&bytes);
        self.position += wanted as u64;
        Ok(wanted)
    }
}

/// Byte ranges of the wanted root columns' chunks in a row group, ascending and coalesced.
pub(crate) fn chunk_ranges(
    metadata: &ParquetMetaData,
    group: usize,
    wanted: &dyn Fn(usize) -> bool,
) -> Vec<Range<u64>> {
    let schema = metadata.file_metadata().schema_descr();
    let mut ranges: Vec<Range<u64>> = metadata
        .row_group(group)
        .columns()
        .iter()
        .enumerate()
        .filter(|(leaf, _)| wanted(schema.get_column_root_idx(*leaf)))
        .map(|(_, column)| {
            let (start, length) = column.byte_range();
            start..start + length
        })
        .collect();
    ranges.sort_by_key(|r| r.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end + COALESCE_BYTES => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Fetches ranges; those inside `tail` need no request.
///
/// # Errors
/// Those of the storage.
pub(crate) async fn fetch(
    file: &FileHandle,
    ranges: &[Range<u64>],
    tail_start: u64,
    tail: &Bytes,
) -> Result<Vec<(u64, Bytes)>> {
    if ranges.iter().all(|r| r.start >= tail_start) {
        return Ok(vec![(tail_start, tail.clone())]);
    }
    let bytes = file.store.get_ranges(&file.location, ranges).await.map_err(missing_file)?;
    Ok(ranges.iter().map(|r| r.start).zip(bytes).collect())
}
