//! A scan of chosen files: what the Parquet reader is told.

use std::sync::Arc;

use datafusion::common::config::{ParquetOptions, TableParquetOptions};
use datafusion::common::{Result, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use lakesmith::table::{FileId, InputFile};
use lakesmith::{Error, Location, RowFact, Table};
use object_store::ObjectMeta;

use super::adapter::{Constants, TableAdapter};
use super::columns::Columns;
use super::file_facts;
use super::file_reader::FileLocation;
use super::metadata_rows::value;
use super::opening::Deleted;
use super::scalars::partition_value;
use super::source::{FilterFailure, TableFiles};
use crate::failure::external;

/// Files, and how they are read.
pub(crate) struct Scan<'a> {
    pub table: &'a Table,
    pub columns: &'a Arc<Columns>,
    /// Files to read.
    pub files: &'a [FileId],
    /// Places of the scan's columns that are wanted.
    pub projection: Vec<usize>,
    /// Files are read by so many at once.
    pub threads: usize,
    /// Enough rows.
    pub limit: Option<usize>,
    /// Charged for what opening files takes.
    pub pool: &'a Arc<dyn MemoryPool>,
    /// How Parquet is read.
    pub parquet: ParquetOptions,
    /// What is known of the rows.
    pub statistics: Statistics,
}

impl Scan<'_> {
    /// The plan.
    ///
    /// # Errors
    /// Corrupt if the metadata contradicts itself.
    pub(crate) fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let inputs = self.table.input_files(self.files).map_err(external)?;
        let constants = inputs.iter().filter_map(|input| {
            let constants = self.table.file_constants(input.id);
            (!constants.is_empty()).then(|| (input.location.clone(), constants))
        });
        let constants: Arc<Constants> = Arc::new(constants.collect());
        let files = inputs.into_iter().map(|input| self.file(input)).collect::<Result<Vec<_>, Error>>();
        let files = files.map_err(external)?;
        let options = TableParquetOptions { global: self.parquet.clone(), ..TableParquetOptions::default() };
        let failure = FilterFailure::default();
        let pool = Arc::clone(self.pool);
        let source = TableFiles::new(self.table, self.columns.scan.clone(), options, pool, failure.clone());
        let config = FileScanConfigBuilder::new(storage_url()?, Arc::new(source))
            .with_file_groups(groups(files, self.threads))
            .with_statistics(self.statistics.clone())
            .with_expr_adapter(Some(Arc::new(TableAdapter { columns: Arc::clone(self.columns), failure, constants })))
            .with_limit(self.limit)
            .with_projection_indices(Some(self.projection.clone()))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file(&self, input: InputFile) -> Result<PartitionedFile, Error> {
        let location = Location::from_canonical(&input.location)?;
        let file = self.table.state().files.get(input.id);
        let mut constants = Vec::with_capacity(self.columns.scan.table_partition_cols().len());
        for (index, field) in self.columns.partitions.iter().enumerate() {
            let value = partition_value(file.partition.values.get(index), field);
            constants.push(value.map_err(|e| e.with("path", &location))?);
        }
        if !self.columns.hidden.is_empty() {
            constants.extend(file_facts::values(&location, &file, &input));
        }
        for column in &self.columns.hidden {
            if let RowFact::OfFile(field) = &column.fact {
                constants.push(value(&self.table.file_value(&column.name, input.id), field)?);
            }
        }
        let meta = ObjectMeta {
            location: self.table.store().path(&location)?,
            last_modified: Default::default(),
            size: input.size,
            e_tag: None,
            version: None,
        };
        let mut part = PartitionedFile::new_from_meta(meta).with_partition_values(constants);
        if input.deletes.is_some() || !input.delete_files.is_empty() {
            let rows = input.rows.ok_or_else(|| {
                Error::corrupt("a file with deleted rows does not tell how many rows it has").with("path", &location)
            })?;
            part = part.with_extension(Deleted { file: Arc::new(input), rows });
        }
        Ok(part.with_extension(FileLocation(location)))
    }
}

/// Rows that are not deleted; `None` if a file does not tell.
pub(crate) fn live_count<'a>(mut files: impl Iterator<Item = lakesmith::table::DataFile<'a>>) -> Option<usize> {
    files.try_fold(0usize, |sum, file| {
        let live = file.live_rows()?;
        sum.checked_add(usize::try_from(live).ok()?)
    })
}

/// The storage that scans are told of; the files' own reader never asks for it.
pub(crate) fn storage_url() -> Result<ObjectStoreUrl> {
    ObjectStoreUrl::parse("lakesmith://tables")
}

/// Files in as many groups of about the same size as are read at once, in their order within each.
fn groups(files: Vec<PartitionedFile>, threads: usize) -> Vec<FileGroup> {
    let count = threads.max(1).min(files.len().max(1));
    let mut groups: Vec<(u64, Vec<PartitionedFile>)> = vec![(0, Vec::new()); count];
    for file in files {
        let smallest = groups.iter_mut().min_by_key(|(bytes, _)| *bytes);
        if let Some((bytes, group)) = smallest {
            *bytes += file.object_meta.size.max(1);
            group.push(file);
        }
    }
    groups.into_iter().filter(|(_, files)| !files.is_empty()).map(|(_, files)| FileGroup::new(files)).collect()
}
