//! The Parquet reader as scans use it: what a file's rows lose is read when the file is opened, filters that may fail stay
//! above it, and failures name the file.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::morsel::Morselizer;
use lakesmith::{Error, Table};
use object_store::ObjectStore;

use super::file_reader::FileReaders;
use super::opening::Opening;
use crate::failure::external;
use crate::spark::is_guarded;

/// The first failure of a scan inside a filter of the Parquet reader, which gives nothing but its text away.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterFailure(Arc<Mutex<Option<Error>>>);

impl FilterFailure {
    /// Notes a failure, and gives it on.
    pub(crate) fn note(&self, error: Error) -> DataFusionError {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| error.clone());
        external(error)
    }

    /// The failure.
    pub(crate) fn first(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What decoding columns costs that filters inside the reader must spare; see [`decoding`].
const DECODING_SPARED: usize = 8;

/// Bytes that a scan holds of what delete files delete, where nothing limits the memory.
const DELETE_FILES_BYTES: u64 = 256 << 20;

/// What decoding a column costs, in columns of a fixed width.
fn decoding(data_type: &DataType) -> usize {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => DECODING_SPARED,
        nested if nested.is_nested() => DECODING_SPARED,
        _ => 1,
    }
}

/// Bytes that a scan may hold of what delete files delete.
fn delete_files_bytes(pool: &dyn MemoryPool) -> u64 {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes as u64 / 8,
        MemoryLimit::Infinite | MemoryLimit::Unknown => DELETE_FILES_BYTES,
    }
}

/// Reads files of one table.
#[derive(Clone)]
pub(crate) struct TableFiles {
    parquet: Arc<dyn FileSource>,
    opening: Arc<Opening>,
}

impl TableFiles {
    /// Reads files of `table` with the options; what opening them takes is charged to `pool`.
    pub(crate) fn new(
        table: &Table,
        schema: TableSchema,
        options: TableParquetOptions,
        pool: Arc<dyn MemoryPool>,
        failure: FilterFailure,
    ) -> Self {
        let text = schema.file_schema().fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
        let text = Arc::new(text.map(|field| field.name().clone()).collect());
        let parquet = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::new(FileReaders { table: table.clone(), text }))
            .with_reorder_filters(true)
            .with_bloom_filter_on_read(true);
        let some = !table.state().files.delete_files().is_empty();
        let deletes = some.then(|| Arc::new(table.deletes(delete_files_bytes(pool.as_ref()))));
        Self { parquet: Arc::new(parquet), opening: Arc::new(Opening { table: table.clone(), deletes, pool, failure }) }
    }

    fn with(&self, parquet: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { parquet, opening: Arc::clone(&self.opening) })
    }

    /// True if asking the filters inside the reader pays: rows that they keep out need not be decoded, which is worth it for
    /// values of any length, or for many. Row groups and pages are passed over by them in any case.
    fn spares_decoding(&self, filters: &[Arc<dyn PhysicalExpr>]) -> Result<bool> {
        let schema = self.parquet.table_schema().table_schema();
        let asked: HashSet<usize> = filters.iter().flat_map(collect_columns).map(|column| column.index()).collect();
        let mut given: HashSet<usize> = match self.parquet.projection() {
            Some(projection) => projection.column_indices().into_iter().collect(),
            None => (0..schema.fields().len()).collect(),
        };
        given.retain(|index| !asked.contains(index));
        let costs =
            given.iter().filter_map(|index| schema.fields().get(*index)).map(|field| decoding(field.data_type()));
        Ok(costs.sum::<usize>() >= DECODING_SPARED)
    }
}

impl FileSource for TableFiles {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.parquet.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let inner = self.parquet.create_morselizer(store, config, partition)?;
        Ok(Opening::morselizer(&self.opening, inner))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.with(self.parquet.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parquet.fmt_extra(format, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.parquet.supports_repartitioning()
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        file_min_size: usize,
        ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.parquet.repartitioned(target_partitions, file_min_size, ordering, config)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let taken: Vec<bool> = filters.iter().map(|filter| !is_guarded(filter)).collect();
        let offered: Vec<_> = filters.into_iter().zip(&taken).filter_map(|(f, taken)| taken.then_some(f)).collect();
        let mut config = config.clone();
        config.execution.parquet.pushdown_filters = self.spares_decoding(&offered)?;
        let answer = self.parquet.try_pushdown_filters(offered, &config)?;
        let mut answers = answer.filters.into_iter();
        let filters = taken.into_iter().map(|taken| if taken { answers.next() } else { None });
        let filters = filters.map(|answer| answer.unwrap_or(PushedDown::No)).collect();
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(filters);
        Ok(match answer.updated_node {
            Some(parquet) => propagation.with_updated_node(self.with(parquet)),
            None => propagation,
        })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.parquet.try_pushdown_sort(order, properties)?.map(|parquet| self.with(parquet)))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.parquet.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.parquet.try_pushdown_projection(projection)?.map(|parquet| self.with(parquet)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.parquet.apply_expressions(f)
    }
}
