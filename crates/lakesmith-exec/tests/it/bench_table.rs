//! A folder with Parquet files and the task that rewrites them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use lakesmith_core::Result;
use lakesmith_core::table::{
    DataType, DeleteInfo, DeletionVector, Field, FileId, InputFile, PartitionTuple, ReadSpec, RewriteOutcome,
    RewriteTask, Schema, WriteSpec, vector::VectorLocation,
};
use lakesmith_exec::{RewriteControl, TaskContext, rewrite};
use lakesmith_storage::{Cancel, FixedWorld, Location, Progress, Store, StoreOptions};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::properties::WriterProperties;
use tokio::runtime::Runtime;

/// A temporary table folder.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) memory_bytes: u64,
    inputs: Vec<InputFile>,
    told: Arc<Told>,
}

/// Bytes that progress was told of.
#[derive(Default)]
struct Told(AtomicU64);

impl Progress for Told {
    fn begin(&self, _phase: &str, _total_bytes: u64) {}

    fn advance(&self, bytes: u64, _rows: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn end(&self) {}
}

pub(crate) fn field(name: &str, data_type: DataType) -> Field {
    Field {
        name: name.into(),
        physical: name.into(),
        id: None,
        data_type,
        nullable: true,
        metadata: Default::default(),
    }
}

pub(crate) fn spec(fields: Vec<Field>) -> ReadSpec {
    ReadSpec { schema: Schema { fields }, match_by_id: false }
}

pub(crate) fn plain_write() -> WriteSpec {
    WriteSpec {
        partition_fields: vec![],
        partition_indexes: vec![],
        row_tracking: None,
        stats_leaves: vec![],
        max_rows_per_file: None,
        compression: None,
        row_group_rows: 1 << 20,
        row_group_bytes: 128 << 20,
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            runtime,
            memory_bytes: 256 << 20,
            inputs: vec![],
            told: Arc::default(),
        }
    }

    pub(crate) fn root(&self) -> Location {
        Location::from_local_path(self.folder.path()).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.root(), &StoreOptions::default()).unwrap()
    }

    /// Adds the bytes of a file as the next input.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) -> &mut InputFile {
        let name = format!("in-{}.parquet", self.inputs.len());
        std::fs::write(self.folder.path().join(&name), bytes).unwrap();
        self.inputs.push(InputFile {
            id: FileId(self.inputs.len() as u32),
            location: self.root().join(&name).to_string(),
            size: bytes.len() as u64,
            rows: None,
            deletes: None,
            delete_files: Vec::new(),
            base_row_id: None,
            row_commit_version: None,
        });
        self.inputs.last_mut().unwrap()
    }

    /// Adds a batch, written with `properties`, as the next input.
    pub(crate) fn add(&mut self, batch: &RecordBatch, properties: WriterProperties) -> &mut InputFile {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let input = self.add_bytes(&bytes);
        input.rows = Some(batch.num_rows() as u64);
        input
    }

    pub(crate) fn context(&self) -> TaskContext {
        let control = RewriteControl {
            memory_bytes: self.memory_bytes,
            threads: 2,
            spill_folder: std::env::temp_dir(),
            cancel: Cancel::default(),
            progress: self.told.clone(),
            now_ms: Arc::new(FixedWorld::new(1_000)),
            runtime: self.runtime.handle().clone(),
        };
        TaskContext::new(self.store(), control)
    }

    pub(crate) fn task(&self, read: ReadSpec, write: WriteSpec) -> RewriteTask {
        RewriteTask {
            id: 0,
            inputs: self.inputs.clone(),
            partition: PartitionTuple::default(),
            read: Arc::new(read),
            write: Arc::new(write),
            root: self.root().to_string(),
            output_stem: "part-00000-x".into(),
            verify: true,
            order: None,
        }
    }

    pub(crate) fn run(&self, read: ReadSpec, write: WriteSpec) -> Result<RewriteOutcome> {
        rewrite(&self.task(read, write), &self.context())
    }

    /// Bytes that progress was told of, and those of all inputs.
    pub(crate) fn told_and_stored(&self) -> (u64, u64) {
        (self.told.0.load(Ordering::Relaxed), self.inputs.iter().map(|i| i.size).sum())
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// All rows of an output.
    pub(crate) fn rows(&self, relative: &str) -> RecordBatch {
        let file = std::fs::File::open(self.path(relative)).unwrap();
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
        let schema = builder.schema().clone();
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(|b| b.unwrap()).collect();
        concat_batches(&schema, &batches).unwrap()
    }

    /// Names in the folder that are no inputs.
    pub(crate) fn other_names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| !n.starts_with("in-"))
            .collect();
        names.sort();
        names
    }
}

/// An inline vector of the given positions.
pub(crate) fn inline(rows: impl IntoIterator<Item = u64>) -> DeleteInfo {
    let vector = DeletionVector::from_rows(rows);
    let bytes = vector.encode();
    DeleteInfo {
        unique_id: "i-test".into(),
        storage_type: "i".into(),
        path_or_inline: String::new(),
        offset: None,
        size_in_bytes: bytes.len() as i32,
        cardinality: vector.cardinality(),
        at: VectorLocation::Inline(bytes),
    }
}
