//! Reading a footer with ranged reads.

use std::sync::Arc;

use bytes::Bytes;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};

use crate::failure::{missing_file, read_error};

/// Length word and magic number at the end of every file.
const TRAILER: u64 = 8;

/// A parsed footer and the bytes that came with it.
#[derive(Debug, Clone)]
pub(crate) struct Footer {
    /// Row groups, schema, key-value metadata.
    pub metadata: Arc<ParquetMetaData>,
    /// Where `tail` begins in the file.
    pub tail_start: u64,
    /// The end of the file as far as it was read.
    pub tail: Bytes,
}

impl Footer {
    /// Physical rows.
    pub(crate) fn rows(&self) -> u64 {
        self.metadata.row_groups().iter().map(|g| u64::try_from(g.num_rows()).unwrap_or(0)).sum()
    }
}

/// Reads the footer of a file of `size` bytes; `guess` bytes are read at first.
///
/// # Errors
/// NotFound with Spark's class, Corrupt naming the file, those of the storage.
pub(crate) async fn read(store: &Store, location: &Location, size: u64, guess: u64) -> Result<Footer> {
    let corrupt = |why: String| {
        Error::corrupt(format!("the data file is not Parquet: {why}; restore it from a copy")).with("path", location)
    };
    if size < TRAILER + 4 {
        // An absent file is absent whatever size the log gives it.
        let stored = store.head(location).await.map_err(missing_file)?.size;
        return Err(corrupt(format!("{size} bytes are too few (the log's size; {stored} are stored)")));
    }
    let mut start = size.saturating_sub(guess.max(TRAILER));
    let mut tail = read_tail(store, location, start, size).await?;
    let trailer = &tail[tail.len() - TRAILER as usize..];
    match &trailer[4..] {
        b"PAR1" => {}
        b"PARE" => {
            return Err(Error::unsupported("the data file's footer is encrypted").with("path", location));
        }
        _ => {
            let stored = store.head(location).await.map_err(missing_file)?.size;
            return Err(corrupt(if stored == size {
                "its magic number is missing at the end; it may be truncated".to_owned()
            } else {
                format!("the log says that it has {size} bytes, and it has {stored}")
            }));
        }
    }
    let length = u64::from(u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]));
    let footer_start = size
        .checked_sub(TRAILER + length)
        .ok_or_else(|| corrupt(format!("its footer of {length} bytes is longer than the file")))?;
    if footer_start < start {
        start = footer_start;
        tail = read_tail(store, location, start, size).await?;
    }
    let from = (footer_start - start) as usize;
    let bytes = tail.slice(from..from + length as usize);
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|e| read_error(e, location))?;
    let metadata = without_false_dictionaries(metadata);
    check_ranges(&metadata, footer_start).map_err(corrupt)?;
    Ok(Footer { metadata: Arc::new(metadata), tail_start: start, tail })
}

/// The metadata without dictionary pages that cannot be where it says: some writers say 0 for "none".
///
/// # Source
/// Parquet-Java `ColumnChunkMetaData.getStartingPos`.
fn without_false_dictionaries(metadata: ParquetMetaData) -> ParquetMetaData {
    let is_false = |column: &ColumnChunkMetaData| {
        column.dictionary_page_offset().is_some_and(|offset| offset <= 0 || offset > column.data_page_offset())
    };
    let true_columns = |group: &RowGroupMetaData| -> Result<RowGroupMetaData, ParquetError> {
        let column = |column: &ColumnChunkMetaData| match is_false(column) {
            true => column.clone().into_builder().set_dictionary_page_offset(None).build(),
            false => Ok(column.clone()),
        };
        let columns = group.columns().iter().map(column).collect::<Result<_, _>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    };
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_false) {
        return metadata;
    }
    match metadata.row_groups().iter().map(true_columns).collect::<Result<Vec<_>, _>>() {
        Ok(groups) => metadata.into_builder().set_row_groups(groups).build(),
        // What the footer says is then judged as it stands.
        Err(_) => metadata,
    }
}

async fn read_tail(store: &Store, location: &Location, start: u64, size: u64) -> Result<Bytes> {
    match store.get_range(location, start..size).await {
        Err(error) if error.kind() == ErrorKind::Corrupt => Err(Error::corrupt(format!(
            "the data file is truncated: the log says that it has {size} bytes; restore it from a copy"
        ))
        .with("path", location)
        .caused_by(error)),
        other => other.map_err(missing_file),
    }
}

/// Column chunks must lie inside the file, or later reads would panic or fetch nonsense.
fn check_ranges(metadata: &ParquetMetaData, end: u64) -> Result<(), String> {
    let mut rows = 0i64;
    for group in metadata.row_groups() {
        if group.num_rows() < 0 {
            return Err("a row group has a negative number of rows".to_owned());
        }
        rows = rows.saturating_add(group.num_rows());
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let inside = u64::try_from(start)
                .ok()
                .zip(u64::try_from(column.compressed_size()).ok())
                .and_then(|(start, length)| start.checked_add(length))
                .is_some_and(|last| last <= end);
            if !inside {
                return Err(format!("the column chunk of {} lies outside the file", column.column_path().string()));
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        return Err(format!(
            "its row groups hold {rows} rows, its footer says {}",
            metadata.file_metadata().num_rows()
        ));
    }
    Ok(())
}
