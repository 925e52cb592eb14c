//! Output files of a task: row groups cut by rows, bytes and memory, files rolled at the cap on rows.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use lakesmith_core::table::{FileStats, WriteSpec};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::encoding::EncodingChoice;
use crate::failure::write_error;
use crate::merge::{InputChunk, Packer};
use crate::row_group::{self, GroupContext, RootLayout, RowGroup};
use crate::skipping;
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
    /// Root columns.
    pub roots: Vec<RootLayout>,
    /// The schema as it is stored.
    pub stored: SchemaDescriptor,
    /// Leaves that get bloom filters.
    filtered: BTreeSet<Vec<String>>,
    /// Leaves of which the inputs did not tell whether a dictionary pays.
    untold: HashSet<ColumnPath>,
    small_inputs: bool,
    properties: Arc<WriterProperties>,
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
        let stored = target::parquet_schema(&declared)?;
        let roots = row_group::layout(&schema, &declared, &stored);
        let (properties, filtered) = (Arc::new(builder.build()), BTreeSet::new());
        let plan = Self {
            schema,
            declared,
            write,
            root,
            stem,
            codec,
            memory_bytes,
            stats_leaves,
            roots,
            stored,
            filtered,
            untold: choice.untold_columns(),
            small_inputs: choice.has_small_groups(),
            properties,
        };
        Ok(plan.with_filters(choice.bloom_filter_columns())?.unwrap_or(plan))
    }

    /// The same plan with bloom filters for these leaves, too; `None` if all of them have theirs.
    ///
    /// # Errors
    /// Internal if the library refuses them.
    pub(crate) fn with_filters(&self, leaves: &BTreeSet<Vec<String>>) -> Result<Option<Self>> {
        if leaves.is_subset(&self.filtered) {
            return Ok(None);
        }
        let columns = self.stored.columns().iter().filter(|c| c.physical_type() != PhysicalType::BOOLEAN);
        let mut filtered = self.filtered.clone();
        filtered.extend(columns.map(|c| c.path().parts().to_vec()).filter(|path| leaves.contains(path)));
        if filtered.len() == self.filtered.len() {
            return Ok(None);
        }
        let filters = skipping::filters(filtered.len(), self.write.row_group_rows, self.memory_bytes / 8)?;
        let mut builder = WriterProperties::clone(&self.properties).into_builder();
        for path in &filtered {
            builder = builder.set_column_bloom_filter_properties(ColumnPath::new(path.clone()), filters.clone());
        }
        Ok(Some(Self { filtered, properties: Arc::new(builder.build()), ..self.clone() }))
    }

    /// Makes encoders.
    fn encoders(&self) -> Result<ArrowRowGroupWriterFactory> {
        let (root, properties) = (self.stored.root_schema_ptr(), Arc::clone(&self.properties));
        let writer = SerializedFileWriter::new(std::io::sink(), root, properties)
            .map_err(|e| Error::internal("encoders cannot be made; please report this").caused_by(e))?;
        Ok(ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&self.schema)))
    }

    /// Bytes that merging one chunk may take.
    pub(crate) fn merge_bytes(&self) -> u64 {
        self.memory_bytes / 3
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
    writer: Option<SerializedFileWriter<UploadSink>>,
    factory: ArrowRowGroupWriterFactory,
    packer: Option<Packer>,
    group: RowGroup,
    sink: UploadSink,
    stats: StatsCollector,
    rows: u64,
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
        let factory = plan.encoders()?;
        let sink = UploadSink::start(store, &location, plan.memory_bytes / 2, runtime)?;
        let (root, properties) = (plan.stored.root_schema_ptr(), Arc::clone(&plan.properties));
        let writer = match SerializedFileWriter::new(sink.clone(), root, properties) {
            Ok(writer) => writer,
            Err(e) => {
                sink.abort();
                return Err(write_error(e, &location));
            }
        };
        Ok(Self {
            factory,
            packer: Packer::new(plan.codec.0),
            group: RowGroup::new(plan.roots.len()),
            path,
            location,
            writer: Some(writer),
            sink,
            stats,
            rows: 0,
            plan: Arc::clone(plan),
        })
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Goes on as a plan with other bloom filters says, in another row group.
    ///
    /// # Errors
    /// Those of [`RowGroup::close`].
    pub(crate) fn follow(&mut self, plan: &Arc<OutputPlan>) -> Result<()> {
        self.end_group()?;
        self.factory = plan.encoders()?;
        self.plan = Arc::clone(plan);
        Ok(())
    }

    /// Appends a batch whose rows have about `row_bytes` uncompressed bytes.
    pub(crate) fn write(&mut self, batch: &RecordBatch, row_bytes: u64) -> Result<()> {
        let mut done = 0;
        while done < batch.num_rows() {
            let fitting = self.max_group_rows().saturating_sub(self.group.rows).max(1);
            let rows = (batch.num_rows() - done).min(usize::try_from(fitting).unwrap_or(usize::MAX));
            let part = batch.slice(done, rows);
            for (root, column) in part.columns().iter().enumerate() {
                self.encode(root, column)?;
            }
            self.end_rows(rows as u64, row_bytes)?;
            done += rows;
        }
        Ok(())
    }

    /// Makes sure that so many rows and bytes of one input fit the row group; false if they would pass its rows, since
    /// only encoded rows can be cut where it ends. Between this and [`OutputFile::end_rows`], each root column gets these
    /// rows by [`OutputFile::merge`] or [`OutputFile::encode`].
    pub(crate) fn make_room(&mut self, rows: u64, bytes: u64) -> Result<bool> {
        let passes = self.group.rows.saturating_add(rows) > self.max_group_rows();
        if self.packer.is_none() || passes || bytes > self.plan.memory_bytes {
            return Ok(false);
        }
        let held = self.group.memory() as u64;
        if held + bytes > self.plan.memory_bytes {
            self.end_group()?;
        }
        Ok(true)
    }

    /// Encodes values of a root column.
    pub(crate) fn encode(&mut self, root: usize, column: &ArrayRef) -> Result<()> {
        let context = context(&self.plan, &self.factory);
        let failed = |e| write_error(e, &self.location);
        let packer = self.packer.as_mut();
        self.group.encode(root, column, &context, packer, &failed)?;
        if !self.group.is_merging(root) {
            self.stats.observe(root, column);
        }
        Ok(())
    }

    /// Merges chunks of a root column; false, and nothing is changed, if that cannot be.
    pub(crate) fn merge(&mut self, root: usize, inputs: &[InputChunk], rows: u64) -> Result<bool> {
        let (Some(packer), Ok(rows)) = (&mut self.packer, usize::try_from(rows)) else { return Ok(false) };
        let context = context(&self.plan, &self.factory);
        self.group.merge(root, inputs, rows, &context, packer).map_err(|e| e.with("path", &self.location))
    }

    /// Counts rows that all columns got; closes the row group if it is full.
    pub(crate) fn end_rows(&mut self, rows: u64, row_bytes: u64) -> Result<()> {
        self.stats.observe_rows(rows);
        self.rows += rows;
        self.group.rows += rows;
        if let Some(packer) = self.packer.as_mut().filter(|_| self.group.memory() as u64 >= self.plan.memory_bytes / 2)
        {
            let context = context(&self.plan, &self.factory);
            self.group.end_trials(&context, packer).map_err(|e| e.with("path", &self.location))?;
        }
        let full = self.group.rows >= self.max_group_rows()
            || row_bytes.saturating_mul(self.group.rows) >= self.plan.write.row_group_bytes.max(1)
            || self.group.memory() as u64 >= self.plan.memory_bytes;
        if full { self.end_group() } else { Ok(()) }
    }

    fn max_group_rows(&self) -> u64 {
        self.plan.write.row_group_rows.clamp(1, 1 << 40)
    }

    fn end_group(&mut self) -> Result<()> {
        let group = std::mem::replace(&mut self.group, RowGroup::new(self.plan.roots.len()));
        let Some(writer) = self.writer.as_mut().filter(|_| group.rows > 0) else { return Ok(()) };
        let context = context(&self.plan, &self.factory);
        let failed = |e| write_error(e, &self.location);
        group.close(writer, &context, self.packer.as_mut(), &mut self.stats, &failed)
    }

    /// Writes the footer and makes the file visible.
    pub(crate) fn finish(mut self) -> Result<FinishedFile> {
        self.end_group()?;
        if let Some(writer) = self.writer.take() {
            writer.close().map_err(|e| write_error(e, &self.location))?;
        }
        let size = self.sink.finish()?;
        let stats = std::mem::replace(&mut self.stats, StatsCollector::new(&[], &self.plan.declared)?);
        Ok(FinishedFile {
            path: std::mem::take(&mut self.path),
            location: self.location.clone(),
            size,
            stats: stats.finish(),
        })
    }
}

fn context<'a>(plan: &'a OutputPlan, factory: &'a ArrowRowGroupWriterFactory) -> GroupContext<'a> {
    GroupContext {
        roots: &plan.roots,
        stored: &plan.stored,
        properties: &plan.properties,
        untold: &plan.untold,
        small_inputs: plan.small_inputs,
        factory,
        merge_bytes: usize::try_from(plan.merge_bytes()).unwrap_or(usize::MAX),
        trial_bytes: usize::try_from(plan.memory_bytes / 2).unwrap_or(usize::MAX) / plan.roots.len().max(1),
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        self.sink.abort();
    }
}
