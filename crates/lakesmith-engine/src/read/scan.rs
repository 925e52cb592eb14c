//! A scan of chosen files: what the Parquet reader is told.

use std::sync::Arc;

use datafusion::common::config::{ParquetOptions, TableParquetOptions};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith::table::{DeletionVector, FileId, InputFile};
use lakesmith::{Error, Location, Table};
use object_store::ObjectMeta;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::adapter::TableAdapter;
use super::columns::Columns;
use super::file_facts;
use super::file_reader::{FileLocation, FileReaders};
use super::scalars::scalar;
use crate::failure::external;

/// Vectors read at once.
const VECTORS_AT_ONCE: usize = 16;

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
    /// How Parquet is read.
    pub parquet: ParquetOptions,
    /// True if all rows of the files are wanted.
    pub whole: bool,
}

impl Scan<'_> {
    /// The plan.
    ///
    /// # Errors
    /// Those of reading deletion vectors.
    pub(crate) async fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let inputs = self.table.input_files(self.files).map_err(external)?;
        let files: Vec<PartitionedFile> = futures::stream::iter(inputs)
            .map(|input| self.file(input))
            .buffered(VECTORS_AT_ONCE)
            .try_collect()
            .await
            .map_err(external)?;
        let options = TableParquetOptions { global: self.parquet.clone(), ..TableParquetOptions::default() };
        let source = ParquetSource::new(self.columns.scan.clone())
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::new(FileReaders(self.table.clone())))
            .with_pushdown_filters(true)
            .with_reorder_filters(true)
            .with_bloom_filter_on_read(true);
        let config = FileScanConfigBuilder::new(storage_url()?, Arc::new(source))
            .with_file_groups(groups(files, self.threads))
            .with_statistics(self.statistics())
            .with_expr_adapter(Some(Arc::new(TableAdapter(Arc::clone(self.columns)))))
            .with_limit(self.limit)
            .with_projection_indices(Some(self.projection.clone()))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn file(&self, input: InputFile) -> Result<PartitionedFile, Error> {
        let location = Location::from_canonical(&input.location)?;
        let file = self.table.state().files.get(input.id);
        let mut constants = Vec::with_capacity(self.columns.scan.table_partition_cols().len());
        for (index, field) in self.columns.partitions.iter().enumerate() {
            let value = file.partition.values.get(index).and_then(|v| scalar(v, field.data_type()));
            constants.push(value.ok_or_else(|| {
                Error::corrupt("a file's partition value does not fit its column")
                    .with("column", field.name())
                    .with("path", &location)
            })?);
        }
        if self.columns.with_facts {
            constants.extend(file_facts::values(&location, &file, &input));
        }
        let meta = ObjectMeta {
            location: self.table.store().path(&location)?,
            last_modified: Default::default(),
            size: input.size,
            e_tag: None,
            version: None,
        };
        let mut part = PartitionedFile::new_from_meta(meta).with_partition_values(constants);
        if let Some(info) = &input.deletes {
            let deleted = self.table.deleted_rows(info).await.map_err(|e| e.with("file", &location))?;
            let rows = input.rows.ok_or_else(|| {
                Error::corrupt("a file with deleted rows does not tell how many rows it has").with("path", &location)
            })?;
            let selection = live_rows(&deleted, rows).map_err(|e| e.with("path", &location))?;
            part = part.with_extension(ParquetRowSelection::new(selection));
        }
        Ok(part.with_extension(FileLocation(location)))
    }

    /// Row counts are exact if every file tells its own.
    fn statistics(&self) -> Statistics {
        let schema = self.columns.scan.table_schema();
        let mut statistics = Statistics::new_unknown(schema);
        let files = self.files.iter().map(|id| self.table.state().files.get(*id));
        let rows = live_count(files.clone());
        let bytes: u64 = files.map(|f| f.size).sum();
        if let Some(rows) = rows {
            statistics.num_rows = if self.whole { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        }
        statistics.total_byte_size = Precision::Inexact(bytes as usize);
        statistics
    }
}

/// Rows that are not deleted; `None` if a file does not tell.
pub(crate) fn live_count<'a>(mut files: impl Iterator<Item = lakesmith::table::DataFile<'a>>) -> Option<usize> {
    files.try_fold(0usize, |sum, file| {
        let live = file.rows?.checked_sub(file.deleted_rows())?;
        sum.checked_add(usize::try_from(live).ok()?)
    })
}

/// The storage that scans are told of; the files' own reader never asks for it.
pub(crate) fn storage_url() -> Result<ObjectStoreUrl> {
    ObjectStoreUrl::parse("lakesmith://tables")
}

/// Runs of rows that are not deleted among `rows`.
fn live_rows(deleted: &DeletionVector, rows: u64) -> Result<RowSelection, Error> {
    if deleted.max().is_some_and(|last| last >= rows) {
        return Err(Error::corrupt("a deletion vector marks rows that the file does not have"));
    }
    let mut selectors: Vec<RowSelector> = Vec::new();
    let (mut next, mut run) = (0u64, 0u64);
    let flush = |selectors: &mut Vec<RowSelector>, run: &mut u64| {
        if *run > 0 {
            selectors.push(RowSelector::skip(*run as usize));
            *run = 0;
        }
    };
    for row in deleted.iter() {
        if row > next {
            flush(&mut selectors, &mut run);
            selectors.push(RowSelector::select((row - next) as usize));
        }
        run += 1;
        next = row + 1;
    }
    flush(&mut selectors, &mut run);
    if rows > next {
        selectors.push(RowSelector::select((rows - next) as usize));
    }
    Ok(selectors.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_rows_are_what_a_vector_leaves() {
        for (deleted, rows) in
            [(vec![], 3), (vec![0], 3), (vec![2], 3), (vec![0, 1, 2], 3), (vec![1, 3, 4, 7], 9), (vec![], 0)]
        {
            let selection = live_rows(&DeletionVector::from_rows(deleted.clone()), rows).unwrap();
            let mut kept = Vec::new();
            let mut at = 0u64;
            for selector in selection.iter() {
                if !selector.skip {
                    kept.extend(at..at + selector.row_count as u64);
                }
                at += selector.row_count as u64;
            }
            let expected: Vec<u64> = (0..rows).filter(|r| !deleted.contains(r)).collect();
            assert_eq!((kept, at), (expected, rows), "{deleted:?}");
        }
        assert!(live_rows(&DeletionVector::from_rows([3]), 3).is_err());
    }
}
