//! Rows into new files, one after another for each partition that follows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::partition;
use lakesmith_core::table::{DataType, NewFile, PartitionTuple, Scalar};
use lakesmith_core::{Error, Result};
use lakesmith_delta::DeltaTable;
use lakesmith_exec::{NewFile as FileWriter, NewFiles, value_at};

use super::{new_file, nulls, stem};

/// Writes rows into new files. Rows of one partition should come together: each time the partition changes a file ends.
pub struct RowWriter {
    files: NewFiles,
    table: Arc<DeltaTable>,
    number: usize,
    /// Places of the columns that files hold, then of the partition columns that they hold, too.
    stored: Vec<usize>,
    /// Places of the partition columns, in their order.
    partitioned: Vec<usize>,
    current: Option<(PartitionTuple, FileWriter)>,
    written: Vec<NewFile>,
    rows: u64,
}

impl RowWriter {
    pub(super) fn new(files: &NewFiles, table: Arc<DeltaTable>, number: usize) -> Result<Self> {
        // An unwritable column is told before the first row.
        files.schema()?;
        let state = &table.state;
        let place = |name: &str| {
            let found = state.schema.fields.iter().position(|f| f.name.eq_ignore_ascii_case(name));
            found.ok_or_else(|| Error::corrupt("a partition column is not in the table's schema").with("column", name))
        };
        let partitioned: Vec<usize> = state.partition_columns.iter().map(|name| place(name)).collect::<Result<_>>()?;
        let is_data = |at: &usize| !partitioned.contains(at) && state.schema.fields[*at].data_type != DataType::Null;
        let mut stored: Vec<usize> = (0..state.schema.fields.len()).filter(is_data).collect();
        stored.extend(files.write.partition_indexes.iter().map(|index| partitioned[*index]));
        Ok(Self {
            files: files.clone(),
            table,
            number,
            stored,
            partitioned,
            current: None,
            written: Vec::new(),
            rows: 0,
        })
    }

    /// Checks rows for nulls where the table takes none; the columns as [`RowWriter::write`] has them.
    ///
    /// # Errors
    /// Usage (`DELTA_NOT_NULL_CONSTRAINT_VIOLATED`) with the column.
    pub fn check(&self, batch: &RecordBatch) -> Result<()> {
        nulls::check(&self.table.state.schema.fields, batch)
    }

    /// Appends rows; the columns are the table's, in its order, in the types of Arrow that stand for theirs.
    ///
    /// # Errors
    /// As [`RowWriter::check`]; Cancelled, those of the storage.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.check(batch)?;
        if self.partitioned.is_empty() {
            return self.append(PartitionTuple::default(), batch);
        }
        let columns: Vec<ArrayRef> = self.partitioned.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let ranges = partition(&columns).map_err(|e| Error::internal("rows have no partitions").caused_by(e))?;
        for range in ranges.ranges() {
            let values: Vec<Scalar> =
                columns.iter().map(|column| value_at(column, range.start)).collect::<Result<_>>()?;
            let values = lakesmith_delta::new_partition(&self.table, values)?;
            self.append(values, &batch.slice(range.start, range.len()))?;
        }
        Ok(())
    }

    fn append(&mut self, values: PartitionTuple, batch: &RecordBatch) -> Result<()> {
        if self.current.as_ref().is_some_and(|(current, _)| *current != values) {
            self.end_partition()?;
        }
        let (_, writer) = match &mut self.current {
            Some(current) => current,
            none => {
                let stem = stem(self.files.world.as_ref(), &self.table, &values, self.number);
                let writer = FileWriter::new(&self.files, stem)?;
                none.insert((values, writer))
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns: Vec<ArrayRef> = self.stored.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let schema = batch.schema().project(&self.stored);
        let rows = schema.and_then(|s| RecordBatch::try_new_with_options(Arc::new(s), columns, &options));
        let rows = rows.map_err(|e| Error::internal("rows do not have the columns of the table").caused_by(e))?;
        writer.write(&rows)?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn end_partition(&mut self) -> Result<()> {
        let Some((values, writer)) = self.current.take() else { return Ok(()) };
        let table = &self.table;
        self.written.extend(writer.finish()?.into_iter().map(|file| new_file(table, values.clone(), file)));
        Ok(())
    }

    /// Ends the last file.
    ///
    /// # Errors
    /// Internal if the files do not hold the rows that came; those of the storage.
    pub fn finish(mut self) -> Result<Vec<NewFile>> {
        self.end_partition()?;
        let held: u64 = self.written.iter().map(|file| file.stats.rows).sum();
        if held != self.rows {
            return Err(Error::internal(format!("{} rows came and {held} are in new files", self.rows)));
        }
        Ok(self.written)
    }
}
