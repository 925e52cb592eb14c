//! The log as the kernel is shown it: without files that are known to be broken, and with its paths watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use delta_kernel::schema::SchemaRef;
use delta_kernel::{
    Engine, EngineData, EvaluationHandler, FileDataReadResultIterator, FileMeta, FileSize, FileSlice,
    FilteredEngineData, JsonHandler, KernelError, KernelResult, KernelResultIterator, KernelResultIteratorStatic,
    ParquetFooter, ParquetHandler, PredicateRef, StorageHandler,
};
use lakesmith_core::Result;
use lakesmith_storage::{Location, Store};
use url::Url;

use crate::engine;
use crate::log_files::checkpoint_version;
use crate::path_watch::PathWatch;

/// What is left out of the log, and how its paths are spelled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogView {
    /// `_last_checkpoint` is not looked at.
    pub without_hint: bool,
    /// Versions whose checkpoints are not looked at.
    pub without_checkpoints: BTreeSet<u64>,
    /// Paths are compared as Spark compares them.
    pub settled: bool,
}

impl LogView {
    /// An engine that reads this view. Call its methods from blocking threads only.
    ///
    /// # Errors
    /// As [`engine::open`].
    pub(crate) fn open(&self, store: &Store, root: &Location) -> Result<ViewEngine> {
        let inner = engine::open(store, root)?;
        let watch = Arc::new(PathWatch::new(root, self.settled));
        Ok(ViewEngine {
            storage: Arc::new(ViewStorage { inner: inner.storage_handler(), view: self.clone() }),
            json: Arc::new(ViewJson { inner: inner.json_handler(), watch: Arc::clone(&watch) }),
            parquet: Arc::new(ViewParquet { inner: inner.parquet_handler(), watch: Arc::clone(&watch) }),
            inner,
            watch,
        })
    }

    fn hides(&self, file_name: &str) -> bool {
        (self.without_hint && file_name == "_last_checkpoint")
            || checkpoint_version(file_name).is_some_and(|version| self.without_checkpoints.contains(&version))
    }
}

/// The kernel's engine over a view of the log.
pub(crate) struct ViewEngine {
    inner: Arc<dyn Engine>,
    storage: Arc<ViewStorage>,
    json: Arc<ViewJson>,
    parquet: Arc<ViewParquet>,
    watch: Arc<PathWatch>,
}

impl ViewEngine {
    /// What the paths looked like so far.
    pub(crate) fn watch(&self) -> &PathWatch {
        &self.watch
    }
}

impl Engine for ViewEngine {
    fn evaluation_handler(&self) -> Arc<dyn EvaluationHandler> {
        self.inner.evaluation_handler()
    }

    fn storage_handler(&self) -> Arc<dyn StorageHandler> {
        self.storage.clone()
    }

    fn json_handler(&self) -> Arc<dyn JsonHandler> {
        self.json.clone()
    }

    fn parquet_handler(&self) -> Arc<dyn ParquetHandler> {
        self.parquet.clone()
    }
}

struct ViewStorage {
    inner: Arc<dyn StorageHandler>,
    view: LogView,
}

fn file_name(url: &Url) -> &str {
    url.path().rsplit('/').next().unwrap_or_default()
}

impl StorageHandler for ViewStorage {
    fn list_from(&self, path: &Url) -> KernelResult<KernelResultIteratorStatic<FileMeta>> {
        let view = self.view.clone();
        let listed = self.inner.list_from(path)?;
        Ok(Box::new(listed.filter(move |file| !file.as_ref().is_ok_and(|f| view.hides(file_name(&f.location))))))
    }

    fn read_files(&self, files: Vec<FileSlice>) -> KernelResult<KernelResultIteratorStatic<Bytes>> {
        if let Some((hidden, _)) = files.iter().find(|(url, _)| self.view.hides(file_name(url))) {
            return Ok(Box::new(std::iter::once(Err(KernelError::file_not_found(hidden)))));
        }
        self.inner.read_files(files)
    }

    fn copy_atomic(&self, from: &Url, to: &Url) -> KernelResult<()> {
        self.inner.copy_atomic(from, to)
    }

    fn put(&self, path: &Url, data: Bytes, overwrite: bool) -> KernelResult<()> {
        self.inner.put(path, data, overwrite)
    }

    fn head(&self, path: &Url) -> KernelResult<FileMeta> {
        self.inner.head(path)
    }

    fn delete(&self, path: &Url) -> KernelResult<()> {
        self.inner.delete(path)
    }
}

struct ViewJson {
    inner: Arc<dyn JsonHandler>,
    watch: Arc<PathWatch>,
}

impl JsonHandler for ViewJson {
    fn parse_json(&self, json: Box<dyn EngineData>, schema: SchemaRef) -> KernelResult<Box<dyn EngineData>> {
        self.inner.parse_json(json, schema)
    }

    fn read_json_files(
        &self,
        files: &[FileMeta],
        schema: SchemaRef,
        predicate: Option<PredicateRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        let inner = Arc::clone(&self.inner);
        self.watch.over(files, move |files| inner.read_json_files(files, schema.clone(), predicate.clone()))
    }

    fn write_json_file(
        &self,
        path: &Url,
        data: KernelResultIterator<'_, FilteredEngineData>,
        overwrite: bool,
    ) -> KernelResult<FileSize> {
        self.inner.write_json_file(path, data, overwrite)
    }
}

struct ViewParquet {
    inner: Arc<dyn ParquetHandler>,
    watch: Arc<PathWatch>,
}

impl ParquetHandler for ViewParquet {
    fn read_parquet_files(
        &self,
        files: &[FileMeta],
        schema: SchemaRef,
        predicate: Option<PredicateRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        let inner = Arc::clone(&self.inner);
        self.watch.over(files, move |files| inner.read_parquet_files(files, schema.clone(), predicate.clone()))
    }

    fn write_parquet_file(
        &self,
        location: Url,
        data: KernelResultIteratorStatic<Box<dyn EngineData>>,
    ) -> KernelResult<FileSize> {
        self.inner.write_parquet_file(location, data)
    }

    fn read_parquet_footer(&self, file: &FileMeta) -> KernelResult<ParquetFooter> {
        self.inner.read_parquet_footer(file)
    }
}
