//! One input file as a stream of raw batches, row group by row group, the next one fetched ahead.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use bytes::Bytes;
use lakesmith_core::{Error, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{SchemaDescriptor, Type as ParquetType, TypePtr};
use tokio::task::JoinHandle;

use crate::failure::{decode_error, read_error};
use crate::footer::Footer;
use crate::source::{FileHandle, Window, chunk_ranges, fetch};
use crate::target::Strings;

/// Rows a batch at most.
const MAX_BATCH_ROWS: u64 = 32_768;
/// Rows of the first batch of a row group whose decoded size is unknown.
const PROBE_ROWS: u64 = 32;
/// Batches that cannot become larger than this are not probed.
const MAX_UNPROBED_BYTES: u64 = 512 << 20;

/// A file's footer with the Arrow schema under which it is read.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    /// How to read its bytes.
    pub handle: Arc<FileHandle>,
    /// Its footer.
    pub footer: Footer,
    reader: ArrowReaderMetadata,
}

impl OpenFile {
    /// Derives the schema; INT96 is read as microseconds, so that no year overflows.
    ///
    /// # Errors
    /// Unsupported or Corrupt, naming the file.
    pub(crate) fn new(handle: Arc<FileHandle>, footer: Footer, strings: Strings) -> Result<OpenFile> {
        let metadata = match strings {
            Strings::Text => Arc::clone(&footer.metadata),
            Strings::Bytes => Arc::new(without_text(&footer.metadata).map_err(|e| read_error(e, &handle.location))?),
        };
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let failed = |e| read_error(e, &handle.location);
        let mut reader = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options.clone()).map_err(failed)?;
        if let Some(schema) = without_nanosecond_int96(reader.schema(), &metadata) {
            let options = options.with_schema(Arc::new(schema));
            reader = ArrowReaderMetadata::try_new(metadata, options).map_err(failed)?;
        }
        Ok(OpenFile { handle, footer, reader })
    }

    /// The Arrow schema under which the file is read.
    pub(crate) fn schema(&self) -> &Schema {
        self.reader.schema()
    }

    /// Root columns of the file.
    pub(crate) fn fields(&self) -> &Fields {
        self.reader.schema().fields()
    }
}

/// The same footer with strings declared as bytes.
fn without_text(metadata: &ParquetMetaData) -> Result<ParquetMetaData, ParquetError> {
    let file = metadata.file_metadata();
    let schema = SchemaDescriptor::new(as_bytes(file.schema_descr().root_schema_ptr())?);
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(schema),
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaData::new(file, metadata.row_groups().to_vec()))
}

fn as_bytes(stored: TypePtr) -> Result<TypePtr, ParquetError> {
    let info = stored.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let built = if stored.is_primitive() {
        let text = matches!(info.logical_type_ref(), Some(LogicalType::String | LogicalType::Enum | LogicalType::Json))
            || matches!(info.converted_type(), ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
        if !text || stored.get_physical_type() != PhysicalType::BYTE_ARRAY {
            return Ok(stored);
        }
        let builder = ParquetType::primitive_type_builder(stored.name(), PhysicalType::BYTE_ARRAY);
        builder.with_repetition(info.repetition()).with_id(id).build()?
    } else {
        let fields = stored.get_fields().iter().cloned().map(as_bytes).collect::<Result<_, _>>()?;
        let mut builder = ParquetType::group_type_builder(stored.name())
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_fields(fields)
            .with_id(id);
        if info.has_repetition() {
            builder = builder.with_repetition(info.repetition());
        }
        builder.build()?
    };
    Ok(Arc::new(built))
}

fn without_nanosecond_int96(schema: &Schema, metadata: &ParquetMetaData) -> Option<Schema> {
    let columns = metadata.file_metadata().schema_descr().columns();
    if columns.iter().all(|c| c.physical_type() != PhysicalType::INT96) {
        return None;
    }
    let mut leaves = columns.iter().map(|c| c.physical_type());
    let fields: Vec<FieldRef> = schema.fields().iter().map(|f| rewrite_leaves(f, &mut leaves)).collect();
    Some(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn rewrite_leaves(field: &FieldRef, leaves: &mut dyn Iterator<Item = PhysicalType>) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(children) => DataType::Struct(children.iter().map(|c| rewrite_leaves(c, leaves)).collect()),
        DataType::List(inner) => DataType::List(rewrite_leaves(inner, leaves)),
        DataType::Map(inner, sorted) => DataType::Map(rewrite_leaves(inner, leaves), *sorted),
        other => match leaves.next() {
            Some(PhysicalType::INT96) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ => other.clone(),
        },
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Reads the wanted root columns of a file, row group by row group.
pub(crate) struct FileReader<'a> {
    file: &'a OpenFile,
    roots: Vec<usize>,
    window_bytes: u64,
    batch_bytes: u64,
    /// Row groups that are still to come.
    groups: VecDeque<usize>,
    ahead: Option<(usize, Fetch)>,
}

/// A row group whose bytes are at hand, or are read when they are asked for if they are too many.
pub(crate) struct Group {
    /// Its number in the file.
    pub index: usize,
    /// Rows.
    pub rows: u64,
    /// Uncompressed bytes of a row, about.
    pub row_bytes: u64,
    window: Window,
}

impl Group {
    /// The bytes of one leaf's chunk.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn chunk(&self, file: &OpenFile, leaf: usize) -> Result<Bytes> {
        let (start, length) = file.footer.metadata.row_group(self.index).column(leaf).byte_range();
        self.window.get_bytes(start, length as usize).map_err(|e| read_error(e, &file.handle.location))
    }
}

/// Decodes root columns of a row group.
pub(crate) struct GroupReader<'a> {
    file: &'a OpenFile,
    roots: Vec<usize>,
    batch_bytes: u64,
    reader: ParquetRecordBatchReader,
    window: Window,
    group: usize,
    rows: u64,
    /// Rows handed out.
    done: u64,
    batch_rows: u64,
    row_bytes: u64,
    /// The footer does not bound the decoded size, so batches begin small and follow what is seen.
    probing: bool,
}

/// Chunks on their way; dropping it stops the request.
struct Fetch(JoinHandle<Result<Vec<(u64, Bytes)>>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<'a> FileReader<'a> {
    /// `window_bytes`: compressed bytes fetched at once; `batch_bytes`: decoded bytes of a batch, about.
    pub(crate) fn new(file: &'a OpenFile, roots: Vec<usize>, window_bytes: u64, batch_bytes: u64) -> Self {
        let metadata = &file.footer.metadata;
        let groups = (0..metadata.num_row_groups()).filter(|g| metadata.row_group(*g).num_rows() > 0).collect();
        FileReader { file, roots: sorted(roots), window_bytes, batch_bytes, groups, ahead: None }
    }

    /// Leaves out all row groups but those that are `wanted`.
    pub(crate) fn only(mut self, wanted: impl Fn(usize) -> bool) -> Self {
        self.groups.retain(|group| wanted(*group));
        self
    }

    /// The next row group with at least one row.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn next_group(&mut self) -> Result<Option<Group>> {
        let Some(index) = self.groups.pop_front() else { return Ok(None) };
        let width = width(self.file, index, &self.roots);
        let chunks = match self.ahead.take() {
            Some((at, mut fetch)) if at == index => self.wait(&mut fetch)?,
            _ => match self.start(index) {
                Some(mut fetch) => self.wait(&mut fetch)?,
                None => Vec::new(),
            },
        };
        // A single window is in use while the next one arrives.
        self.ahead = self.groups.front().and_then(|next| Some((*next, self.start(*next)?)));
        let window = Window::new(Arc::clone(&self.file.handle), chunks, self.roots.len());
        Ok(Some(Group { index, rows: width.rows, row_bytes: width.row_bytes, window }))
    }

    /// Decodes some of the wanted root columns of a row group.
    ///
    /// # Errors
    /// Corrupt naming the file, those of the storage.
    pub(crate) fn decode(&self, group: &Group, roots: Vec<usize>) -> Result<GroupReader<'a>> {
        let roots = sorted(roots);
        let width = width(self.file, group.index, &roots);
        let fitting = (self.batch_bytes / width.row_bytes).clamp(1, MAX_BATCH_ROWS).min(group.rows);
        let probing = fitting.saturating_mul(width.widest_value) > MAX_UNPROBED_BYTES;
        let batch_rows = if probing { fitting.min(PROBE_ROWS) } else { fitting };
        Ok(GroupReader {
            file: self.file,
            batch_bytes: self.batch_bytes,
            reader: open_reader(self.file, &group.window, &roots, group.index, 0, batch_rows)?,
            roots,
            window: group.window.clone(),
            group: group.index,
            rows: group.rows,
            done: 0,
            batch_rows,
            row_bytes: width.row_bytes,
            probing,
        })
    }

    /// Starts fetching a row group, unless it is larger than the window: then its pages are read one by one.
    fn start(&self, group: usize) -> Option<Fetch> {
        let ranges = chunk_ranges(&self.file.footer.metadata, group, &|root| self.roots.binary_search(&root).is_ok());
        let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
        if bytes > self.window_bytes {
            return None;
        }
        let (handle, footer) = (Arc::clone(&self.file.handle), self.file.footer.clone());
        let runtime = handle.runtime.clone();
        Some(Fetch(runtime.spawn(async move { fetch(&handle, &ranges, footer.tail_start, &footer.tail).await })))
    }

    fn wait(&self, fetch: &mut Fetch) -> Result<Vec<(u64, Bytes)>> {
        self.file
            .handle
            .runtime
            .block_on(&mut fetch.0)
            .map_err(|e| Error::internal("a read was stopped").with("path", &self.file.handle.location).caused_by(e))?
    }
}

impl GroupReader<'_> {
    /// Root columns in the order in which they stand in the batches.
    pub(crate) fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Uncompressed bytes of a row of these columns, about.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The next batch with at least one row.
    ///
    /// # Errors
    /// Corrupt naming the file, those of the storage.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.reader.next() {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    self.done += batch.num_rows() as u64;
                    self.adjust(&batch)?;
                    return Ok(Some(batch));
                }
                // Arrow's strings of one batch hold 2 GiB at most; fewer rows may fit.
                Some(Err(e)) if self.batch_rows > 1 && e.to_string().contains("overflow") => {
                    self.resume((self.batch_rows / 16).max(1))?;
                }
                Some(Err(e)) => return Err(decode_error(e, &self.file.handle.location)),
                None => return Ok(None),
            }
        }
    }

    fn resume(&mut self, batch_rows: u64) -> Result<()> {
        if self.done < self.rows {
            self.batch_rows = batch_rows;
            self.reader = open_reader(self.file, &self.window, &self.roots, self.group, self.done, batch_rows)?;
        }
        Ok(())
    }

    /// Lets the batches of a probed row group follow the size of its rows.
    fn adjust(&mut self, batch: &RecordBatch) -> Result<()> {
        if !self.probing {
            return Ok(());
        }
        let seen = (batch.get_array_memory_size() as u64 / batch.num_rows().max(1) as u64).max(1);
        self.row_bytes = self.row_bytes.max(seen);
        let fitting = (self.batch_bytes / seen).clamp(1, MAX_BATCH_ROWS).min(self.batch_rows * 8);
        let far_off = fitting >= self.batch_rows * 4 || fitting * 2 <= self.batch_rows;
        if far_off { self.resume(fitting) } else { Ok(()) }
    }
}

fn sorted(mut roots: Vec<usize>) -> Vec<usize> {
    roots.sort_unstable();
    roots.dedup();
    roots
}

fn open_reader(
    file: &OpenFile,
    window: &Window,
    roots: &[usize],
    group: usize,
    skip: u64,
    batch_rows: u64,
) -> Result<ParquetRecordBatchReader> {
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(window.clone(), file.reader.clone())
        .with_row_groups(vec![group])
        .with_projection(ProjectionMask::roots(file.reader.parquet_schema(), roots.iter().copied()))
        .with_batch_size(batch_rows as usize);
    if skip > 0 {
        builder = builder.with_offset(skip as usize);
    }
    builder.build().map_err(|e| read_error(e, &file.handle.location))
}

fn width(file: &OpenFile, group: usize, roots: &[usize]) -> Width {
    let metadata = &file.footer.metadata;
    let schema = metadata.file_metadata().schema_descr();
    let group = metadata.row_group(group);
    let rows = u64::try_from(group.num_rows()).unwrap_or(1).max(1);
    let mut bytes = 0u64;
    let mut widest_value = 0;
    for (leaf, column) in group.columns().iter().enumerate() {
        if roots.binary_search(&schema.get_column_root_idx(leaf)).is_err() {
            continue;
        }
        let stored = u64::try_from(column.uncompressed_size()).unwrap_or(0);
        let plain = column.unencoded_byte_array_data_bytes().and_then(|b| u64::try_from(b).ok());
        // Dictionary indexes are narrower than what they decode to.
        let values = 8 * u64::try_from(column.num_values()).unwrap_or(0);
        bytes = bytes.saturating_add(stored.max(plain.unwrap_or(0)).max(values));
        if plain.is_none() && column.column_type() == PhysicalType::BYTE_ARRAY {
            widest_value = stored.max(widest_value);
        }
    }
    Width { rows, row_bytes: (bytes / rows).max(1), widest_value }
}

/// What a footer tells of a row group's decoded size.
struct Width {
    rows: u64,
    /// Decoded bytes of a row, about.
    row_bytes: u64,
    /// No string is longer than its chunk; a dictionary may repeat it in every row.
    widest_value: u64,
}

#[cfg(test)]
#[path = "file_read_tests.rs"]
mod tests;
