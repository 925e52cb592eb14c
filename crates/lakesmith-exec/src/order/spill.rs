//! Ordered rows on disk: compressed blocks in files that have no name.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::read_record_batch;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow::ipc::{MetadataVersion, root_as_message};
use lakesmith_core::error::Cause;
use lakesmith_core::{Error, ErrorKind, Result};
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

/// Lengths before a block: of its description, plain and compressed, and of its values, plain.
const PREFIX: usize = 12;

/// Rows on disk that belong together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    offset: u64,
    stored: u32,
    /// Rows.
    pub rows: u32,
    /// Bytes when it is read.
    pub bytes: u32,
}

/// A file of blocks, which is gone when nobody reads it any more.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    folder: PathBuf,
    schema: SchemaRef,
}

impl SpillFile {
    /// Reads a block.
    ///
    /// # Errors
    /// Unavailable if the folder does not give back what it took.
    pub(crate) fn read(&self, block: &Block) -> Result<RecordBatch> {
        let mut stored = vec![0u8; block.stored as usize];
        read_at(&self.file, &mut stored, block.offset).map_err(|e| failed(e.into(), &self.folder))?;
        self.decode(&stored).map_err(|e| failed(e, &self.folder))
    }

    fn decode(&self, stored: &[u8]) -> Result<RecordBatch, Cause> {
        let word = |at: usize| -> Result<usize, Cause> {
            let bytes = stored.get(4 * at..4 * at + 4).ok_or("a block is too short")?;
            Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
        };
        let (plain, compressed, values) = (word(0)?, word(1)?, word(2)?);
        let rest = &stored[PREFIX..];
        let mut description = vec![0u8; plain];
        decompress_into(rest.get(..compressed).ok_or("a block is too short")?, &mut description)?;
        let mut body = MutableBuffer::from_len_zeroed(values);
        decompress_into(&rest[compressed..], body.as_slice_mut())?;
        let message = root_as_message(&description).map_err(|e| e.to_string())?;
        let batch = message.header_as_record_batch().ok_or("a block holds no rows")?;
        let (schema, none) = (Arc::clone(&self.schema), HashMap::new());
        Ok(read_record_batch(&Buffer::from(body), batch, schema, &none, None, &MetadataVersion::V5)?)
    }
}

/// Appends blocks to a file.
pub(crate) struct SpillWriter {
    file: Arc<SpillFile>,
    /// Bytes so far.
    pub length: u64,
    options: IpcWriteOptions,
    context: IpcWriteContext,
    stored: Vec<u8>,
}

impl SpillWriter {
    /// Begins a file in `folder`.
    ///
    /// # Errors
    /// Unavailable if the folder takes no file.
    pub(crate) fn new(folder: &Path, schema: &SchemaRef) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|e| failed(e.into(), folder))?;
        let file = SpillFile { file, folder: folder.to_owned(), schema: Arc::clone(schema) };
        Ok(Self {
            file: Arc::new(file),
            length: 0,
            options: IpcWriteOptions::default(),
            context: IpcWriteContext::default(),
            stored: Vec::new(),
        })
    }

    /// The file, for reading.
    pub(crate) fn file(&self) -> Arc<SpillFile> {
        Arc::clone(&self.file)
    }

    /// Writes rows as one block.
    ///
    /// # Errors
    /// Limit if the disk is full.
    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<Block> {
        let folder = &self.file.folder;
        let mut tracker = DictionaryTracker::new(false);
        let encoded = IpcDataGenerator::default().encode(batch, &mut tracker, &self.options, &mut self.context);
        let (_, encoded) = encoded.map_err(|e| failed(e.into(), folder))?;
        let (description, values) = (&encoded.ipc_message, &encoded.arrow_data);
        let (most_description, most_values) =
            (get_maximum_output_size(description.len()), get_maximum_output_size(values.len()));
        self.stored.resize(PREFIX + most_description + most_values, 0);
        let (prefix, rest) = self.stored.split_at_mut(PREFIX);
        let compressed = compress_into(description, rest).map_err(|e| failed(e.into(), folder))?;
        let compressed_values = compress_into(values, &mut rest[compressed..]).map_err(|e| failed(e.into(), folder))?;
        let length = |bytes: usize| u32::try_from(bytes).map_err(|e| failed(e.into(), folder));
        for (at, bytes) in [description.len(), compressed, values.len()].into_iter().enumerate() {
            prefix[4 * at..4 * at + 4].copy_from_slice(&length(bytes)?.to_le_bytes());
        }
        let stored = PREFIX + compressed + compressed_values;
        let block = Block {
            offset: self.length,
            stored: length(stored)?,
            rows: length(batch.num_rows())?,
            bytes: length(values.len())?,
        };
        write_at(&self.file.file, &self.stored[..stored], self.length).map_err(|e| failed(e.into(), folder))?;
        self.length += stored as u64;
        Ok(block)
    }
}

fn failed(cause: Cause, folder: &Path) -> Error {
    let full =
        |e: &std::io::Error| matches!(e.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    let error = if cause.downcast_ref::<std::io::Error>().is_some_and(full) {
        let text =
            "the disk is full with rows that wait to be ordered; free space, or name another folder with --spill-dir";
        Error::new(ErrorKind::Limit, text).class("INSUFFICIENT_DISK_SPACE")
    } else {
        let text = "rows that wait to be ordered cannot be kept on disk; name another folder with --spill-dir";
        Error::new(ErrorKind::Unavailable, text)
    };
    error.with("folder", folder.display()).caused_by(cause)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, offset) = (&mut bytes[read..], offset + read as u64),
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        (bytes, offset) = (&bytes[written..], offset + written as u64);
    }
    Ok(())
}
