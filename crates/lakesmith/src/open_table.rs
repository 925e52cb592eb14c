//! One version of a table, opened for readers that know nothing of its format.

use std::sync::Arc;

use lakesmith_core::layout::OrderKey;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{
    ColumnBounds, DeletionVector, FileId, InputFile, PartitionTuple, ReadSpec, RowTrackingColumns, TableState,
};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::PartitionRows;
use lakesmith_exec::Deletes;
use lakesmith_storage::{Cancel, Location, Store};
use tokio::runtime::Handle;

use crate::Session;
use crate::catalog::Target;
use crate::format::Opened;
use crate::ops::describe::spark_uri;

/// One version of a table. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Table {
    opened: Opened,
    store: Store,
    target: Target,
    read: Arc<ReadSpec>,
    row_tracking: Option<RowTrackingColumns>,
    io: Io,
}

/// What reading delete files needs of the session.
#[derive(Debug, Clone)]
struct Io {
    runtime: Handle,
    cancel: Cancel,
}

impl Io {
    fn of(session: &Session) -> Self {
        Self { runtime: session.runtime.handle().clone(), cancel: session.options.cancel.clone() }
    }
}

impl Table {
    pub(crate) fn open(session: &Session, target: &Target, at: TimeTravel) -> Result<Table> {
        let store = session.open_target(target)?;
        let io = Io::of(session);
        session.runtime.block_on(Table::load(store, target.clone(), at, true, io))
    }

    async fn load(store: Store, target: Target, at: TimeTravel, files: bool, io: Io) -> Result<Table> {
        let opened = Opened::load(&store, &target, at, files).await?;
        let target = target.of(opened.format());
        let read = Arc::new(opened.read_spec()?);
        let row_tracking = opened.row_tracking()?;
        Ok(Table { opened, store, target, read, row_tracking, io })
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Schema, properties and the live files.
    pub fn state(&self) -> &TableState {
        self.opened.state()
    }

    /// Where it lies.
    pub fn root(&self) -> &Location {
        &self.target.root
    }

    /// The storage that holds it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How the columns stand in the data files.
    pub fn read_spec(&self) -> &Arc<ReadSpec> {
        &self.read
    }

    /// The hidden columns in which files hold row ids that are not counted from the file's first.
    pub fn row_tracking(&self) -> Option<&RowTrackingColumns> {
        self.row_tracking.as_ref()
    }

    /// The files with their locations, in the order given.
    ///
    /// # Errors
    /// Corrupt or Unsupported for a path that names no place we know.
    pub fn input_files(&self, ids: &[FileId]) -> Result<Vec<InputFile>> {
        self.opened.input_files(self.root(), ids)
    }

    /// What the metadata says of the columns in `files`, in their order; the metadata is read once for all of them.
    ///
    /// # Errors
    /// Corrupt if it no longer gives the same files, those of the storage.
    pub async fn column_bounds(&self, columns: &[OrderKey], files: &[FileId]) -> Result<Vec<ColumnBounds>> {
        self.opened.column_bounds(&self.store, self.root(), columns, files).await
    }

    /// The rows of a file that its vector deletes; none without one.
    ///
    /// # Errors
    /// Corrupt with Spark's class where the bytes contradict the metadata, [`Table::missing_file`] if they are gone.
    pub async fn deleted_rows(&self, file: &InputFile) -> Result<DeletionVector> {
        let Some(info) = &file.deletes else { return Ok(DeletionVector::default()) };
        let read = self.opened.read_vector(&self.store, info).await;
        read.map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.missing_file(error),
            _ => error,
        })
    }

    /// Reads the files that delete rows of others, for a scan that holds about so many bytes of them.
    pub fn deletes(&self, memory_bytes: u64) -> Deletes {
        Deletes::new(self.store.clone(), self.io.runtime.clone(), self.io.cancel.clone(), memory_bytes)
    }

    /// True if the error says that no table is where one was looked for.
    pub fn is_missing(error: &Error) -> bool {
        error.kind() == ErrorKind::NotFound && error.class_name() == "DELTA_MISSING_DELTA_TABLE"
    }

    /// The time that `text` names a version by, in milliseconds since the epoch.
    ///
    /// # Errors
    /// Usage if it is no time.
    pub fn instant_ms(text: &str) -> Result<i64> {
        match lakesmith_core::predicate::parse_timestamp(text) {
            Some((micros, _)) => Ok(micros.div_euclid(1000)),
            None => {
                Err(Error::usage(format!("the provided timestamp ({text}) cannot be converted to a valid timestamp"))
                    .class("DELTA_TIMESTAMP_INVALID"))
            }
        }
    }

    /// What it means that a file of this version does not exist.
    pub fn missing_file(&self, error: Error) -> Error {
        let path = error.context_value("path").unwrap_or("?").to_owned();
        Error::not_found(
            "a file that this version of the table refers to does not exist any more: a VACUUM has taken it, or it was \
             removed by hand; read a later version, which `lakesmith history --readable` lists",
        )
        .class("FAILED_READ_FILE.FILE_NOT_EXIST")
        .with("path", path)
        .with("table", spark_uri(self.root()))
        .with("version", self.state().version)
    }
}

/// One version of a table whose files are not loaded. Cloning shares it.
#[derive(Debug, Clone)]
pub struct TableOutline(Table);

impl TableOutline {
    pub(crate) fn open(session: &Session, target: &Target, at: TimeTravel) -> Result<TableOutline> {
        let store = session.open_target(target)?;
        let io = Io::of(session);
        session.runtime.block_on(Table::load(store, target.clone(), at, false, io)).map(TableOutline)
    }

    /// The table, which seems to have no files.
    pub fn without_files(&self) -> &Table {
        &self.0
    }

    /// The same version with its files.
    ///
    /// # Errors
    /// As [`Session::open_table`].
    pub async fn with_files(&self) -> Result<Table> {
        let Table { opened, store, target, io, .. } = &self.0;
        let at = TimeTravel::Version(opened.state().version);
        Table::load(store.clone(), target.clone(), at, true, io.clone()).await
    }

    /// How many rows each partition has, without loading the files; `None`: only these tell.
    ///
    /// # Errors
    /// Unavailable, Cancelled.
    pub async fn row_counts(&self) -> Result<Option<Vec<(PartitionTuple, PartitionRows)>>> {
        self.0.opened.row_counts(&self.0.store, self.0.root()).await
    }
}
