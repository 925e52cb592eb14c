//! Data files as the Parquet reader wants them: bytes from the table's own storage, footers without what other writers say
//! of Arrow types.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result as DfResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::ParquetFileMetrics;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use lakesmith::{ErrorKind, Location, Table};
use lakesmith_exec::is_legacy_calendar;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataFetch};
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type as ParquetType, TypePtr};

/// Key under which a file's schema names the file.
pub(crate) const FILE_PATH: &str = "lakesmith.path";
/// Key that a file's schema has if its early dates may mean other days than they seem to.
pub(crate) const LEGACY_CALENDAR: &str = "lakesmith.legacyCalendar";

/// Read at once from the end of a file: the footers of most files are smaller.
const TAIL_BYTES: usize = 64 << 10;

/// Where a file of a scan lies.
#[derive(Debug, Clone)]
pub(crate) struct FileLocation(pub Location);

/// Begins the name of a column of bytes that the reader would take for text, unchecked, by its name alone.
pub(crate) const BYTES: char = '\u{1}';

/// Opens the files of a table.
#[derive(Debug)]
pub(crate) struct FileReaders {
    /// The table.
    pub table: Table,
    /// Columns of text, as scans name them.
    pub text: Arc<HashSet<String>>,
}

impl ParquetFileReaderFactory for FileReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DfResult<Box<dyn AsyncFileReader + Send>> {
        let Some(FileLocation(location)) = file.extension::<FileLocation>() else {
            return datafusion::common::internal_err!("a file of a scan has no location");
        };
        Ok(Box::new(FileReader {
            table: self.table.clone(),
            text: Arc::clone(&self.text),
            location: location.clone(),
            size: file.object_meta.size,
            metrics: ParquetFileMetrics::new(partition, file.object_meta.location.as_ref(), metrics),
        }))
    }
}

struct FileReader {
    table: Table,
    text: Arc<HashSet<String>>,
    location: Location,
    size: u64,
    metrics: ParquetFileMetrics,
}

impl FileReader {
    fn failed(&self, error: lakesmith::Error) -> ParquetError {
        let error = match error.kind() {
            ErrorKind::NotFound => self.table.missing_file(error),
            _ => error,
        };
        ParquetError::External(Box::new(error))
    }
}

impl AsyncFileReader for FileReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.metrics.bytes_scanned.add((range.end - range.start) as usize);
        async move { self.table.store().get_range(&self.location, range).await.map_err(|e| self.failed(e)) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        self.metrics.bytes_scanned.add(ranges.iter().map(|r| (r.end - r.start) as usize).sum());
        async move { self.table.store().get_ranges(&self.location, &ranges).await.map_err(|e| self.failed(e)) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        async move {
            let policy = options.map_or(PageIndexPolicy::Skip, ArrowReaderOptions::column_index_policy);
            let size = self.size;
            let reader =
                ParquetMetaDataReader::new().with_page_index_policy(policy).with_prefetch_hint(Some(TAIL_BYTES));
            let metadata = reader.load_and_finish(Footer(&mut *self), size).await.map_err(|e| self.readable(e))?;
            self.with_own_schema(metadata).map(Arc::new)
        }
        .boxed()
    }
}

impl FileReader {
    /// The schema with other names for columns of bytes that have the name of a column of text.
    fn with_bytes_apart(&self, schema: SchemaDescPtr) -> Result<SchemaDescPtr> {
        let root = schema.root_schema();
        let is_taken = |column: &TypePtr| is_bytes(column) && self.text.contains(column.name());
        if !root.get_fields().iter().any(is_taken) {
            return Ok(schema);
        }
        let fields = root.get_fields().iter().map(|column| match is_taken(column) {
            true => renamed(column),
            false => Ok(Arc::clone(column)),
        });
        let root = ParquetType::group_type_builder(root.name()).with_fields(fields.collect::<Result<_>>()?).build()?;
        Ok(Arc::new(SchemaDescriptor::new(Arc::new(root))))
    }

    /// A footer that cannot be read names its file.
    fn readable(&self, error: ParquetError) -> ParquetError {
        match error {
            ParquetError::External(inner) => ParquetError::External(inner),
            other => ParquetError::External(Box::new(
                lakesmith::Error::corrupt("the data file cannot be read as Parquet")
                    .class("FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER")
                    .with("path", &self.location)
                    .caused_by(other),
            )),
        }
    }

    /// Types follow from the Parquet schema alone: what a writer noted of its Arrow types says nothing of the table's.
    fn with_own_schema(&self, metadata: ParquetMetaData) -> Result<ParquetMetaData> {
        let file = metadata.file_metadata();
        let kept = file.key_value_metadata().into_iter().flatten().filter(|pair| pair.key.starts_with("org.apache"));
        let mut pairs: Vec<KeyValue> = kept.cloned().collect();
        pairs.push(KeyValue::new(FILE_PATH.to_owned(), self.location.to_string()));
        if is_legacy_calendar(file) {
            pairs.push(KeyValue::new(LEGACY_CALENDAR.to_owned(), "true".to_owned()));
        }
        let file = FileMetaData::new(
            file.version(),
            file.num_rows(),
            file.created_by().map(str::to_owned),
            Some(pairs),
            self.with_bytes_apart(file.schema_descr_ptr())?,
            file.column_orders().cloned(),
        );
        let (columns, offsets) = (metadata.column_index().cloned(), metadata.offset_index().cloned());
        let built = ParquetMetaDataBuilder::new(file)
            .set_row_groups(metadata.row_groups().iter().map(without_old_bounds).collect::<Result<_>>()?)
            .set_column_index(columns)
            .set_offset_index(offsets)
            .build();
        Ok(built)
    }
}

fn is_bytes(column: &TypePtr) -> bool {
    let info = column.get_basic_info();
    column.is_primitive()
        && column.get_physical_type() == PhysicalType::BYTE_ARRAY
        && info.converted_type() != ConvertedType::UTF8
        && !matches!(info.logical_type_ref(), Some(LogicalType::String))
}

fn renamed(column: &TypePtr) -> Result<TypePtr> {
    let info = column.get_basic_info();
    let named = ParquetType::primitive_type_builder(&format!("{BYTES}{}", column.name()), PhysicalType::BYTE_ARRAY)
        .with_repetition(info.repetition())
        .with_converted_type(info.converted_type())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_id(info.has_id().then(|| info.id()))
        .build()?;
    Ok(Arc::new(named))
}

/// The row group without bounds of bytes that were compared as signed numbers, as old writers did.
///
/// # Source
/// parquet-format `Statistics`: `min` and `max` are deprecated, their order is defined for signed types only.
fn without_old_bounds(group: &RowGroupMetaData) -> Result<RowGroupMetaData> {
    let is_old = |column: &ColumnChunkMetaData| {
        let bytes = matches!(column.column_type(), PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY);
        bytes && column.statistics().is_some_and(Statistics::is_min_max_deprecated)
    };
    if !group.columns().iter().any(is_old) {
        return Ok(group.clone());
    }
    let columns = group.columns().iter().map(|column| {
        if !is_old(column) {
            return Ok(column.clone());
        }
        column.clone().into_builder().clear_statistics().build()
    });
    group.clone().into_builder().set_column_metadata(columns.collect::<Result<_>>()?).build()
}

/// Reads a footer.
struct Footer<'a>(&'a mut FileReader);

impl MetadataFetch for Footer<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.0.get_bytes(range)
    }
}
