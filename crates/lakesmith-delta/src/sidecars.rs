//! Which sidecars the heads of V2 checkpoints refer to.
//!
//! Only the column that names them is read, in ranges: a head without sidecars may hold the whole table.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray};
use bytes::Bytes;
use lakesmith_core::table::LogFile;
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::actions::{Action, parse_commit};
use crate::engine;

/// File names of the sidecars of these heads, without their folders.
///
/// # Errors
/// `Corrupt` if a head can't be read, `Unavailable` from the storage.
pub(crate) async fn referenced_sidecars<'a>(
    store: &Store,
    folder: &Location,
    heads: impl Iterator<Item = &'a LogFile>,
) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for head in heads {
        let location = folder.join(&head.name);
        let paths = if head.name.ends_with(".json") {
            of_json(&store.get(&location).await?, &location)?
        } else {
            of_parquet(store, location, head.size).await?
        };
        names.extend(paths.iter().map(|path| file_name(folder, path)));
    }
    Ok(names)
}

/// A path is a name or a URI; whichever it is, its last segment is the file's name.
fn file_name(folder: &Location, path: &str) -> String {
    folder.resolve(path).map_or_else(|_| path.to_owned(), |location| location.file_name().to_owned())
}

fn of_json(bytes: &[u8], location: &Location) -> Result<Vec<String>> {
    let actions = parse_commit(bytes, location)?.into_iter();
    Ok(actions.filter_map(|a| if let Action::Sidecar(sidecar) = a { Some(sidecar.path) } else { None }).collect())
}

async fn of_parquet(store: &Store, location: Location, size: u64) -> Result<Vec<String>> {
    let file = RangeReader { store: store.clone(), location, size, runtime: tokio::runtime::Handle::current() };
    engine::blocking(move || {
        let location = file.location.clone();
        let failed = |e: Error| e.with("path", &location);
        let corrupt = |e: ParquetError| failed(Error::corrupt("a checkpoint is not a valid Parquet file").caused_by(e));
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(corrupt)?;
        let schema = builder.parquet_schema();
        let leaf = (0..schema.num_columns()).find(|i| schema.column(*i).path().string() == "sidecar.path");
        let Some(leaf) = leaf else { return Ok(Vec::new()) };
        let mask = ProjectionMask::leaves(schema, [leaf]);
        let mut paths = Vec::new();
        for batch in builder.with_projection(mask).build().map_err(corrupt)? {
            let batch = batch.map_err(|e| failed(Error::corrupt("a checkpoint can't be read").caused_by(e)))?;
            let column = batch.column_by_name("sidecar").and_then(|c| c.as_struct_opt());
            let column = column.and_then(|c| c.column_by_name("path").map(|p| (c, p)));
            let (parents, column) =
                column.ok_or_else(|| failed(Error::corrupt("a checkpoint's sidecars are no structs")))?;
            let strings = column.as_string_opt::<i32>();
            let strings = strings.ok_or_else(|| failed(Error::corrupt("a checkpoint's sidecars are no text")))?;
            let present = (0..strings.len()).filter(|i| parents.is_valid(*i) && strings.is_valid(*i));
            paths.extend(present.map(|i| strings.value(i).to_owned()));
        }
        Ok(paths)
    })
    .await
}

/// A file that is read in ranges, from a blocking thread.
struct RangeReader {
    store: Store,
    location: Location,
    size: u64,
    runtime: tokio::runtime::Handle,
}

impl RangeReader {
    fn range(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        let end = start.saturating_add(length as u64).min(self.size);
        let read = self.runtime.block_on(self.store.get_range(&self.location, start..end));
        read.map_err(|e| ParquetError::External(Box::new(e)))
    }
}

impl Length for RangeReader {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for RangeReader {
    type T = std::io::Cursor<Bytes>;

    /// Page headers are read one after another, so some bytes at once are enough.
    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        const AHEAD: usize = 1 << 16;
        self.range(start, AHEAD).map(std::io::Cursor::new)
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        self.range(start, length)
    }
}
