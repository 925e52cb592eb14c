//! Merging column chunks page by page: values are not decoded into arrays, and those of large chunks not encoded again.
//!
//! ```text
//! leaf    which leaves of a file fit the output's              -> Leaf
//! input   a chunk taken apart, if it holds nothing unusual     -> Prepared
//! chunk   pages copied, dictionaries joined, small pages united -> MergedChunk
//! pending rows that wait until they fill a page
//! trial   whether a dictionary pays for many small chunks
//! facts   what the footer says of a chunk
//! ```
//! Every doubt is answered with `None` before anything is taken in, and the caller decodes and encodes instead.

mod bounds;
mod chunk;
mod codec;
mod dictionary;
mod facts;
mod header;
mod hybrid;
mod input;
mod leaf;
mod pending;
mod trial;

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use bytes::Bytes;
use lakesmith_core::table::Scalar;
use lakesmith_core::{Error, Result};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnPath;

pub(crate) use chunk::{COPIED_ROWS, SMALL_CHUNK_BYTES};
pub(crate) use codec::{Codec, Packer};
pub(crate) use leaf::{Column, Leaf, pair};
pub(crate) use pending::PAGE_ROWS;

use chunk::{ClosedChunk, MergedChunk};
use input::prepare;

/// The chunks of one root column of an output row group.
pub(crate) struct MergedRoot {
    columns: Vec<Arc<Column>>,
    chunks: Vec<MergedChunk>,
}

/// What a chunk of an input is.
pub(crate) struct InputChunk {
    /// All of its pages.
    pub bytes: Bytes,
    /// How they are compressed.
    pub codec: Codec,
    /// How it fits the output.
    pub leaf: Leaf,
}

/// Nulls and bounds of a leaf, for the log.
pub(crate) struct KnownValues {
    /// Physical path.
    pub path: Vec<String>,
    /// Nulls.
    pub nulls: u64,
    /// Smallest and largest, if values of this type have bounds in the log.
    pub bounds: Option<(Scalar, Scalar)>,
}

impl MergedRoot {
    /// Empty chunks for the leaves of a root column, with dictionaries and bloom filters as the properties say. Whether a
    /// dictionary pays for those that are `untold` is found out.
    ///
    /// # Errors
    /// Internal if a bloom filter cannot be made.
    pub(crate) fn new(
        columns: &[Arc<Column>],
        properties: &WriterProperties,
        untold: &HashSet<ColumnPath>,
    ) -> Result<Self> {
        let is_untold = |column: &Column| untold.contains(column.descriptor.path());
        let chunk = |column: &Arc<Column>| MergedChunk::new(Arc::clone(column), properties, is_untold(column));
        Ok(Self { columns: columns.to_vec(), chunks: columns.iter().map(chunk).collect::<Result<_>>()? })
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.chunks.iter().map(MergedChunk::memory).sum()
    }

    /// True while it is open for a leaf whether a dictionary pays.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.chunks.iter().any(MergedChunk::is_on_trial)
    }

    /// Ends the trials if these chunks hold more than so many bytes.
    ///
    /// # Errors
    /// Internal if pages cannot be written.
    pub(crate) fn bound_trials(&mut self, bytes: usize, packer: &mut Packer) -> Result<()> {
        if self.is_on_trial() && self.memory() > bytes { self.end_trials(packer) } else { Ok(()) }
    }

    /// Decides by what came so far whether dictionaries pay, which gives room back where they don't.
    ///
    /// # Errors
    /// Internal if pages cannot be written.
    pub(crate) fn end_trials(&mut self, packer: &mut Packer) -> Result<()> {
        self.chunks.iter_mut().try_for_each(|chunk| chunk.settle(None, packer))
    }

    /// The leaves, and whether they still take ids.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (&ColumnPath, bool)> {
        self.columns.iter().zip(&self.chunks).map(|(column, chunk)| (column.descriptor.path(), chunk.takes_ids()))
    }

    /// Takes one chunk for each leaf in; false, and nothing is changed, if one of them holds anything unusual or would
    /// take more than `limit` bytes.
    ///
    /// # Errors
    /// Internal if pages cannot be written.
    pub(crate) fn append(
        &mut self,
        inputs: &[InputChunk],
        rows: usize,
        limit: usize,
        packer: &mut Packer,
    ) -> Result<bool> {
        // All leaves of a root column are taken apart at once.
        let limit = limit / inputs.len().max(1);
        let prepare = |input: &InputChunk| prepare(&input.bytes, input.codec, &input.leaf, rows, limit);
        let Some(prepared) = inputs.iter().map(prepare).collect::<Option<Vec<_>>>() else { return Ok(false) };
        if prepared.len() != self.chunks.len() || self.chunks.iter().zip(&prepared).any(|(c, p)| !c.accepts(p, limit)) {
            return Ok(false);
        }
        for (chunk, prepared) in self.chunks.iter_mut().zip(prepared) {
            chunk.append(prepared, false, limit, packer)?;
        }
        Ok(true)
    }

    /// Takes chunks in that this program wrote, one for each leaf.
    ///
    /// # Errors
    /// Internal if they cannot be read or pages cannot be written.
    pub(crate) fn append_own(
        &mut self,
        inputs: &[(Bytes, Codec)],
        rows: usize,
        limit: usize,
        packer: &mut Packer,
    ) -> Result<()> {
        for ((chunk, column), (bytes, codec)) in self.chunks.iter_mut().zip(&self.columns).zip(inputs) {
            let prepared = prepare(bytes, *codec, &Leaf::of_own(column), rows, usize::MAX)
                .ok_or_else(|| Error::internal("pages that were just written cannot be read; please report this"))?;
            chunk.append(prepared, true, limit, packer)?;
        }
        Ok(())
    }

    /// Writes the chunks to the row group and tells what they hold.
    ///
    /// # Errors
    /// Internal if pages cannot be written; those of the sink.
    pub(crate) fn close<W: std::io::Write + Send>(
        self,
        compression: Compression,
        packer: &mut Packer,
        group: &mut SerializedRowGroupWriter<'_, W>,
        failed: &dyn Fn(ParquetError) -> Error,
    ) -> Result<Vec<KnownValues>> {
        let mut known = Vec::with_capacity(self.chunks.len());
        for chunk in self.chunks {
            let ClosedChunk { pieces, close, nulls, bounds, column } = chunk.close(compression, packer)?;
            group.append_column(&Pieces(pieces), close).map_err(failed)?;
            let bounds = bounds.and_then(|b| b.logged(&column.data_type));
            let bounds = bounds.filter(|_| column.data_type != DataType::Binary);
            known.push(KnownValues { path: column.descriptor.path().parts().to_vec(), nulls, bounds });
        }
        Ok(known)
    }
}

/// The bytes of a chunk, read once from its start.
struct Pieces(Vec<Bytes>);

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }
}

impl ChunkReader for Pieces {
    type T = PiecesRead;

    fn get_read(&self, start: u64) -> Result<PiecesRead, ParquetError> {
        if start != 0 {
            return Err(ParquetError::General("merged chunks are read from their start".to_owned()));
        }
        Ok(PiecesRead { pieces: self.0.clone().into_iter(), current: Bytes::new() })
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes, ParquetError> {
        Err(ParquetError::General("merged chunks are read from their start".to_owned()))
    }
}

struct PiecesRead {
    pieces: std::vec::IntoIter<Bytes>,
    current: Bytes,
}

impl std::io::Read for PiecesRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.current = piece,
                None => return Ok(0),
            }
        }
        let taken = self.current.split_to(buffer.len().min(self.current.len()));
        buffer[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}
