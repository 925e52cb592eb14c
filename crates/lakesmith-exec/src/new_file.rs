//! New data files from rows that come from elsewhere, in the order in which they come.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use lakesmith_core::op::RewriteLimits;
use lakesmith_core::table::{DataType, ReadSpec, Schema, WriteSpec, WrittenFile};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Cancel, Location, Store, World};

use crate::encoding::EncodingChoice;
use crate::footer;
use crate::output::{FinishedFile, OutputFile, OutputPlan};
use crate::prepare::is_void;
use crate::relabel::as_field;
use crate::rewrite::TAIL_BYTES;
use crate::target::{Strings, Target};

/// Where new files go and what writing them may use.
#[derive(Clone)]
pub struct NewFiles {
    /// Storage of the files.
    pub store: Store,
    /// Table root.
    pub root: Location,
    /// Data columns of the files.
    pub read: Arc<ReadSpec>,
    /// How they are written.
    pub write: Arc<WriteSpec>,
    /// Bytes that one file's writer may hold.
    pub memory_bytes: u64,
    /// Runs the storage's requests; never entered from its own threads.
    pub runtime: tokio::runtime::Handle,
    /// Stops writing.
    pub cancel: Cancel,
    /// Clock for the files' modification times.
    pub world: Arc<dyn World>,
    /// Files that became visible, for sweeping if they are not committed.
    pub visible: Arc<Mutex<Vec<Location>>>,
}

impl NewFiles {
    /// The columns of the batches that [`NewFile::write`] takes: data columns that files hold, then partition columns that
    /// the table wants in them, all by their physical names.
    ///
    /// # Errors
    /// Unsupported for a column that no file can hold.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(self.target()?.schema)
    }

    fn target(&self) -> Result<Target> {
        Target::new(&self.read, &self.write, holds_variants(&self.read.schema), Strings::Text)
    }
}

/// Rows of a data file, deleted ones counted, by its own account.
///
/// # Errors
/// NotFound with Spark's class, Corrupt naming the file, those of the storage.
pub async fn count_rows(store: &Store, location: &Location, size: u64) -> Result<u64> {
    Ok(footer::read(store, location, size, TAIL_BYTES).await?.rows())
}

fn holds_variants(schema: &Schema) -> bool {
    fn holds(data_type: &DataType) -> bool {
        match data_type {
            DataType::Variant => true,
            DataType::Struct(fields) => fields.iter().any(|f| holds(&f.data_type)),
            DataType::List(element) => holds(&element.data_type),
            DataType::Map(key, value) => holds(&key.data_type) || holds(&value.data_type),
            _ => false,
        }
    }
    schema.fields.iter().any(|f| holds(&f.data_type))
}

/// One or, by the cap on rows, more new files of one partition. Dropping it gives up the one that is being written.
pub struct NewFile {
    files: NewFiles,
    plan: Arc<OutputPlan>,
    output: Option<OutputFile>,
    finished: Vec<FinishedFile>,
    rows: u64,
}

impl NewFile {
    /// Begins files named `{stem}.c000.….parquet` below the root; there is none before the first row.
    ///
    /// # Errors
    /// Unsupported for a column that no file can hold, Usage for an unknown codec.
    pub fn new(files: &NewFiles, stem: String) -> Result<Self> {
        let target = files.target()?;
        let memory_bytes = files.memory_bytes.max(RewriteLimits::MEMORY_BYTES_MIN / 3);
        let mut plan = OutputPlan::new(
            (target.schema, target.declared),
            Arc::clone(&files.write),
            files.root.clone(),
            stem,
            &EncodingChoice::default(),
            memory_bytes,
        )?;
        plan.stats_leaves.retain(|path| !is_void(&files.read.schema.fields, path));
        Ok(Self { files: files.clone(), plan: Arc::new(plan), output: None, finished: Vec::new(), rows: 0 })
    }

    /// Appends rows; the columns in the order of [`NewFiles::schema`] and of its types, whatever they are called.
    ///
    /// # Errors
    /// Internal for a column of another type; Cancelled, those of the encoders and of the storage.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = &self.plan.schema;
        if batch.num_columns() != schema.fields().len() {
            return Err(Error::internal("rows have another number of columns than the files of the table"));
        }
        let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| as_field(column, field));
        let batch = RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)
            .map_err(|e| Error::internal("rows do not have the columns of the table").caused_by(e))?;
        let cap = self.plan.write.max_rows_per_file.unwrap_or(u64::MAX).max(1);
        // A slice holds on to all of its array, but its own part is what is written.
        let own = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
        let row_bytes = (batch.columns().iter().map(own).sum::<usize>() / batch.num_rows().max(1)) as u64;
        let mut done = 0;
        while done < batch.num_rows() {
            self.files.cancel.check()?;
            let output = match &mut self.output {
                Some(output) => output,
                none => none.insert(OutputFile::start(
                    &self.plan,
                    self.finished.len(),
                    &self.files.store,
                    &self.files.runtime,
                )?),
            };
            let fitting = usize::try_from(cap - output.rows()).unwrap_or(usize::MAX);
            let rows = fitting.min(batch.num_rows() - done);
            output.write(&batch.slice(done, rows), row_bytes)?;
            self.rows += rows as u64;
            done += rows;
            if output.rows() >= cap {
                self.end_file()?;
            }
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let finished = output.finish()?;
        let mut visible = self.files.visible.lock().unwrap_or_else(PoisonError::into_inner);
        visible.push(finished.location.clone());
        self.finished.push(finished);
        Ok(())
    }

    /// Ends the last file, and looks at all of them again: they hold the rows that came, or it is an error.
    ///
    /// # Errors
    /// Internal if rows are missing; those of the storage.
    pub fn finish(mut self) -> Result<Vec<WrittenFile>> {
        self.end_file()?;
        let mut written = Vec::with_capacity(self.finished.len());
        for file in self.finished.drain(..) {
            let read = footer::read(&self.files.store, &file.location, file.size, TAIL_BYTES);
            let rows = self.files.runtime.block_on(read)?.rows();
            if rows != file.stats.rows {
                return Err(Error::internal(format!(
                    "{} rows were written to a new file, which holds {rows}; nothing is committed, please report this",
                    file.stats.rows
                ))
                .with("path", &file.location));
            }
            let modified_ms = self.files.world.now_ms();
            written.push(WrittenFile { path: file.path, size: file.size, rows, stats: file.stats, modified_ms });
        }
        let total: u64 = written.iter().map(|file| file.rows).sum();
        if total != self.rows {
            return Err(Error::internal(format!(
                "{} rows came and {total} were written; nothing is committed, please report this",
                self.rows
            ))
            .with("path", &self.files.root));
        }
        Ok(written)
    }
}
