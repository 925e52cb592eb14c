//! Builds small Delta tables: JSON commits and Parquet files, written with nothing of the code under test but the
//! spelling of paths and the bitmap codec.
//!
//! ```text
//! TableBuilder::new(dir).partitioned_by(&["day"]).append_partition(&[Some("a")], 100, 4).build()?
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use lakesmith_core::table::DeletionVector;
use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

use crate::{rows, table_log, vector_file};

/// Time of the first commit: 2024-01-01T00:00:00Z; each next one is a minute later.
const FIRST_MS: i64 = 1_704_067_200_000;
const MINUTE_MS: i64 = 60_000;

/// Describes a table step by step; every `append` and `delete_rows` is a commit of its own. Version 0 creates it.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    folder: PathBuf,
    schema: SchemaRef,
    partition_columns: Vec<String>,
    properties: BTreeMap<String, String>,
    features: BTreeSet<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Rows { partition: Vec<Option<String>>, rows: u64, files: u64 },
    Batch { partition: Vec<Option<String>>, batch: RecordBatch },
    DeleteRows { file: usize, rows: Vec<u64> },
    RemoveFile { file: usize },
}

/// A table on disk.
#[derive(Debug, Clone)]
pub struct BuiltTable {
    /// Its folder.
    pub folder: PathBuf,
    /// The same as a location.
    pub root: Location,
    /// Its last version.
    pub version: u64,
    /// All files that were ever added, in the order in which they were.
    pub files: Vec<BuiltFile>,
}

/// A data file of a built table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltFile {
    /// Path below the table as it is on disk.
    pub path: String,
    /// Rows in the file, deleted ones included.
    pub rows: u64,
    /// Deleted positions, ascending.
    pub deleted: Vec<u64>,
    /// Bytes.
    pub size: u64,
    /// False once a commit removed it.
    pub live: bool,
    partition: Map<String, Value>,
    stats: Value,
    vector: Option<Value>,
}

impl BuiltTable {
    /// Rows that a reader of the last version sees.
    pub fn live_rows(&self) -> u64 {
        self.files.iter().filter(|f| f.live).map(|f| f.rows - f.deleted.len() as u64).sum()
    }
}

impl TableBuilder {
    /// A table of `id: long, name: string` in `folder`, which is created.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)]);
        Self {
            folder: folder.as_ref().to_owned(),
            schema: Arc::new(schema),
            partition_columns: Vec::new(),
            properties: BTreeMap::new(),
            features: BTreeSet::new(),
            steps: Vec::new(),
        }
    }

    /// The columns inside the files, partition columns not among them.
    #[must_use]
    pub fn schema(mut self, fields: Vec<Field>) -> Self {
        self.schema = Arc::new(Schema::new(fields));
        self
    }

    /// Adds string columns that partition the table.
    #[must_use]
    pub fn partitioned_by(mut self, columns: &[&str]) -> Self {
        self.partition_columns = columns.iter().map(|c| (*c).to_owned()).collect();
        self
    }

    /// Sets a table property.
    #[must_use]
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a table feature to the protocol.
    #[must_use]
    pub fn feature(mut self, name: &str) -> Self {
        self.features.insert(name.to_owned());
        self
    }

    /// Allows deletion vectors.
    #[must_use]
    pub fn deletion_vectors(self) -> Self {
        self.feature("deletionVectors").property("delta.enableDeletionVectors", "true")
    }

    /// A commit of made-up rows, numbered on from the last append, split evenly over `files` files.
    #[must_use]
    pub fn append(self, rows: u64, files: u64) -> Self {
        let partition = vec![None; self.partition_columns.len()];
        self.step(Step::Rows { partition, rows, files })
    }

    /// As [`TableBuilder::append`], into one partition; `None` is null.
    #[must_use]
    pub fn append_partition(self, values: &[Option<&str>], rows: u64, files: u64) -> Self {
        self.step(Step::Rows { partition: owned(values), rows, files })
    }

    /// A commit of one file that holds `batch`, whose columns must be those of the schema.
    #[must_use]
    pub fn append_batch(self, values: &[Option<&str>], batch: RecordBatch) -> Self {
        self.step(Step::Batch { partition: owned(values), batch })
    }

    /// A commit that deletes rows by vector, in addition to those deleted before; `file` counts all files ever added.
    #[must_use]
    pub fn delete_rows(self, file: usize, rows: &[u64]) -> Self {
        self.deletion_vectors().step(Step::DeleteRows { file, rows: rows.to_vec() })
    }

    /// A commit that removes a whole file; `file` counts all files ever added.
    #[must_use]
    pub fn remove_file(self, file: usize) -> Self {
        self.step(Step::RemoveFile { file })
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Writes the table.
    ///
    /// # Errors
    /// `Usage` for steps that do not fit the table, `Unavailable` if the folder cannot be written.
    pub fn build(self) -> Result<BuiltTable> {
        let root = Location::from_local_path(&self.folder)?;
        fs::create_dir_all(self.folder.join("_delta_log")).map_err(write_error)?;
        let table = BuiltTable { folder: self.folder.clone(), root, version: 0, files: Vec::new() };
        let mut writer = Writer { spec: &self, table, next_row: 0, next_id: 0 };
        writer.create()?;
        for step in &self.steps {
            writer.apply(step)?;
        }
        Ok(writer.table)
    }
}

fn owned(values: &[Option<&str>]) -> Vec<Option<String>> {
    values.iter().map(|v| v.map(str::to_owned)).collect()
}

fn write_error(source: impl Into<lakesmith_core::error::Cause>) -> Error {
    Error::unavailable("the test table cannot be written").caused_by(source)
}

struct Writer<'a> {
    spec: &'a TableBuilder,
    table: BuiltTable,
    next_row: u64,
    next_id: u128,
}

impl Writer<'_> {
    /// Identifiers that are the same in every run.
    fn new_id(&mut self) -> uuid::Uuid {
        self.next_id += 1;
        uuid::Uuid::from_u128(0x1a4e_0000_0000_4000_8000_0000_0000_0000 + self.next_id)
    }

    fn create(&mut self) -> Result<()> {
        let id = self.new_id();
        let mut fields: Vec<Arc<Field>> = self.spec.schema.fields().to_vec();
        fields.extend(self.spec.partition_columns.iter().map(|c| Arc::new(Field::new(c, DataType::Utf8, true))));
        let schema = Schema::new(fields);
        let metadata = table_log::metadata(id, &schema, &self.spec.partition_columns, &self.spec.properties, FIRST_MS)?;
        self.commit(0, "CREATE TABLE", vec![table_log::protocol(&self.spec.features), metadata])
    }

    fn commit(&mut self, version: u64, operation: &str, actions: Vec<Value>) -> Result<()> {
        let time = FIRST_MS + version as i64 * MINUTE_MS;
        let info = json!({"commitInfo": {
            "timestamp": time, "operation": operation, "operationParameters": {}, "isBlindAppend": operation == "WRITE",
        }});
        let lines: Vec<String> = std::iter::once(info).chain(actions).map(|action| action.to_string()).collect();
        let path = self.table.folder.join(format!("_delta_log/{version:020}.json"));
        fs::write(path, lines.join("\n") + "\n").map_err(write_error)?;
        self.table.version = version;
        Ok(())
    }

    fn apply(&mut self, step: &Step) -> Result<()> {
        let version = self.table.version + 1;
        let time = FIRST_MS + version as i64 * MINUTE_MS;
        match step {
            Step::Rows { partition, rows, files } => {
                let mut actions = Vec::new();
                for file in 0..*files {
                    let count = rows / files + u64::from(file < rows % files);
                    let batch = rows::generate(&self.spec.schema, self.next_row, count)?;
                    self.next_row += count;
                    actions.push(self.write_file(partition, &batch, time)?);
                }
                self.commit(version, "WRITE", actions)
            }
            Step::Batch { partition, batch } => {
                let action = self.write_file(partition, batch, time)?;
                self.commit(version, "WRITE", vec![action])
            }
            Step::DeleteRows { file, rows } => {
                let id = self.new_id();
                let folder = self.table.folder.clone();
                let file = self.live_file(*file)?;
                let remove = file.remove(time);
                let mut deleted: BTreeSet<u64> = file.deleted.iter().copied().collect();
                deleted.extend(rows);
                if deleted.last().is_some_and(|last| *last >= file.rows) {
                    return Err(
                        Error::usage("a row to delete lies behind the end of its file").with("path", &file.path)
                    );
                }
                file.deleted = deleted.into_iter().collect();
                let vector = DeletionVector::from_rows(file.deleted.iter().copied());
                file.vector = Some(vector_file::write(&folder, id, &vector).map_err(write_error)?);
                file.stats["tightBounds"] = json!(false);
                let add = file.add(time);
                self.commit(version, "DELETE", vec![add, remove])
            }
            Step::RemoveFile { file } => {
                let file = self.live_file(*file)?;
                file.live = false;
                let remove = file.remove(time);
                self.commit(version, "DELETE", vec![remove])
            }
        }
    }

    fn live_file(&mut self, index: usize) -> Result<&mut BuiltFile> {
        let file = self.table.files.get_mut(index).filter(|file| file.live);
        file.ok_or_else(|| Error::usage("the test table has no such live file").with("file", index))
    }

    fn write_file(&mut self, partition: &[Option<String>], batch: &RecordBatch, time: i64) -> Result<Value> {
        if partition.len() != self.spec.partition_columns.len() {
            return Err(Error::usage("as many partition values as partition columns are needed"));
        }
        let mut folder = String::new();
        let mut values = Map::new();
        for (column, value) in self.spec.partition_columns.iter().zip(partition) {
            let name = value.as_deref().map_or("__HIVE_DEFAULT_PARTITION__".to_owned(), Location::hive_escape);
            folder.push_str(&format!("{}={name}/", Location::hive_escape(column)));
            values.insert(column.clone(), json!(value));
        }
        let path = format!("{folder}part-{:05}-{}.c000.snappy.parquet", self.table.files.len(), self.new_id());
        let target = self.table.folder.join(&path);
        fs::create_dir_all(self.table.folder.join(&folder)).map_err(write_error)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = File::create(&target).map_err(write_error)?;
        let mut writer =
            ArrowWriter::try_new(file, Arc::clone(&self.spec.schema), Some(properties)).map_err(write_error)?;
        writer.write(batch).map_err(write_error)?;
        writer.close().map_err(write_error)?;
        let tight = self.spec.features.contains("deletionVectors").then_some(true);
        let file = BuiltFile {
            path,
            rows: batch.num_rows() as u64,
            deleted: Vec::new(),
            size: fs::metadata(&target).map_err(write_error)?.len(),
            live: true,
            partition: values,
            stats: rows::stats(batch, tight),
            vector: None,
        };
        let add = file.add(time);
        self.table.files.push(file);
        Ok(add)
    }
}

impl BuiltFile {
    fn add(&self, time: i64) -> Value {
        let mut add = json!({
            "path": Location::encode_log_path(&self.path),
            "partitionValues": self.partition,
            "size": self.size,
            "modificationTime": time,
            "dataChange": true,
            "stats": self.stats.to_string(),
        });
        if let Some(vector) = &self.vector {
            add["deletionVector"] = vector.clone();
        }
        json!({"add": add})
    }

    fn remove(&self, time: i64) -> Value {
        let mut remove = json!({
            "path": Location::encode_log_path(&self.path),
            "deletionTimestamp": time,
            "dataChange": true,
            "extendedFileMetadata": true,
            "partitionValues": self.partition,
            "size": self.size,
        });
        if let Some(vector) = &self.vector {
            remove["deletionVector"] = vector.clone();
        }
        json!({"remove": remove})
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
