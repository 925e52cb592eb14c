//! Output files of a task: row groups cut by rows, bytes and memory, files rolled at the cap on rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use lakesmith_core::Result;
use lakesmith_core::table::{FileStats, WriteSpec};
use lakesmith_storage::{Location, Store};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::encoding::EncodingChoice;
use crate::failure::write_error;
use crate::stats::StatsCollector;
use crate::target;
use crate::upload_sink::UploadSink;

const CREATED_BY: &str = concat!("lakesmith version ", env!("CARGO_PKG_VERSION"));

/// How and where outputs are written.
#[derive(Debug, Clone)]
pub(crate) struct OutputPlan {
    /// Columns as they are held in memory.
    pub schema: SchemaRef,
    /// Columns as the files declare them.
    pub declared: SchemaRef,
    /// The task's wishes.
    pub write: Arc<WriteSpec>,
    /// Table root.
    pub root: Location,
    /// Stem of the names.
    pub stem: String,
    /// Codec and its part of the name.
    pub codec: (Compression, &'static str),
    /// Bytes that the writer may hold before it closes a row group early.
    pub memory_bytes: u64,
    /// Leaves that get statistics.
    pub stats_leaves: Vec<Vec<String>>,
    properties: WriterProperties,
}

impl OutputPlan {
    /// Fixes the writer's properties.
    pub(crate) fn new(
        (schema, declared): (SchemaRef, SchemaRef),
        write: Arc<WriteSpec>,
        root: Location,
        stem: String,
        choice: &EncodingChoice,
        memory_bytes: u64,
    ) -> Result<Self> {
        let stats_leaves = write.stats_leaves.clone();
        let codec = choice.codec(write.compression.as_deref())?;
        let mut builder = WriterProperties::builder()
            .set_compression(codec.0)
            .set_created_by(CREATED_BY.to_owned())
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_max_row_group_row_count(Some(write.row_group_rows.clamp(1, 1 << 40) as usize));
        for path in choice.plain_columns() {
            builder = builder.set_column_dictionary_enabled(path, false);
        }
        Ok(Self { schema, declared, write, root, stem, codec, memory_bytes, stats_leaves, properties: builder.build() })
    }

    fn path(&self, number: usize) -> String {
        let dot = if self.codec.1.is_empty() { "" } else { "." };
        format!("{}.c{number:03}{dot}{}.parquet", self.stem, self.codec.1)
    }
}

/// A finished output.
#[derive(Debug)]
pub(crate) struct FinishedFile {
    /// On-disk path below the root.
    pub path: String,
    /// Where it is.
    pub location: Location,
    /// Bytes on storage.
    pub size: u64,
    /// Statistics of its rows.
    pub stats: FileStats,
}

/// One output being written. Dropping it leaves nothing behind.
pub(crate) struct OutputFile {
    path: String,
    location: Location,
    writer: Option<ArrowWriter<UploadSink>>,
    sink: UploadSink,
    stats: StatsCollector,
    rows: u64,
    group_bytes: u64,
    plan: Arc<OutputPlan>,
}

impl OutputFile {
    /// Starts output `number`.
    pub(crate) fn start(
        plan: &Arc<OutputPlan>,
        number: usize,
        store: &Store,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Self> {
        let path = plan.path(number);
        let location = plan.root.join(&path);
        let stats = StatsCollector::new(&plan.stats_leaves, &plan.declared)?;
        let sink = UploadSink::start(store, &location, plan.memory_bytes / 2, runtime)?;
        let options = ArrowWriterOptions::new()
            .with_properties(plan.properties.clone())
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(target::parquet_schema(&plan.declared)?);
        let writer = ArrowWriter::try_new_with_options(sink.clone(), Arc::clone(&plan.schema), options)
            .map_err(|e| write_error(e, &location))?;
        Ok(Self { path, location, writer: Some(writer), sink, stats, rows: 0, group_bytes: 0, plan: Arc::clone(plan) })
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a batch whose rows have about `row_bytes` uncompressed bytes.
    pub(crate) fn write(&mut self, batch: &RecordBatch, row_bytes: u64) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.stats.observe(batch);
        writer.write(batch).map_err(|e| write_error(e, &self.location))?;
        self.rows += batch.num_rows() as u64;
        self.group_bytes = row_bytes * writer.in_progress_rows() as u64;
        let full = self.group_bytes >= self.plan.write.row_group_bytes.max(1)
            || writer.memory_size() as u64 >= self.plan.memory_bytes;
        if full && writer.in_progress_rows() > 0 {
            writer.flush().map_err(|e| write_error(e, &self.location))?;
        }
        Ok(())
    }

    /// Writes the footer and makes the file visible.
    pub(crate) fn finish(mut self) -> Result<FinishedFile> {
        if let Some(writer) = self.writer.take() {
            writer.close().map_err(|e| write_error(e, &self.location))?;
        }
        let size = self.sink.finish()?;
        let stats = std::mem::replace(&mut self.stats, StatsCollector::new(&[], &self.plan.schema)?);
        Ok(FinishedFile {
            path: std::mem::take(&mut self.path),
            location: self.location.clone(),
            size,
            stats: stats.finish(),
        })
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        self.sink.abort();
    }
}
