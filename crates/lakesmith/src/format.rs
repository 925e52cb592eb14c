//! The formats of tables: the one place that knows more than one of them.

use std::sync::Arc;

use lakesmith_core::layout::OrderKey;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{
    ColumnBounds, DeleteInfo, DeletionVector, FileId, InputFile, PartitionTuple, ReadSpec, RowTrackingColumns,
    TableState,
};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{DeltaTable, PartitionRows};
use lakesmith_storage::{Location, Store};

use crate::Session;
use crate::catalog::Target;

/// A table format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Delta,
    Iceberg,
}

impl Format {
    /// The word before a path in SQL.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Iceberg => "iceberg",
        }
    }
}

impl Session {
    /// The format of a table; Delta where none lies.
    ///
    /// # Errors
    /// Unavailable.
    pub(crate) fn format(&self, target: &Target) -> Result<Format> {
        match target.format {
            Some(format) => Ok(format),
            None => Ok(Format::Delta),
        }
    }
}

/// What `what` asks for is not done to tables of this format.
pub(crate) fn not_written(what: &str, root: &Location) -> Error {
    Error::unsupported(format!(
        "{what} is not available for Iceberg tables in this version, which reads them only: health, detail, history, \
         files, explain, SHOW, DESCRIBE and SELECT are"
    ))
    .class("UNSUPPORTED_FEATURE.TABLE_OPERATION")
    .with("path", root)
}

/// One version of a table as its format loaded it.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Delta(Arc<DeltaTable>),
}

impl Opened {
    /// Loads the table at `root`; without a format, that of the table which lies there.
    pub(crate) async fn load(
        store: &Store,
        root: &Location,
        format: Option<Format>,
        at: TimeTravel,
        files: bool,
    ) -> Result<Opened> {
        let needs = lakesmith_delta::Needs { files, stats: false };
        match format {
            Some(Format::Iceberg) => Err(not_written("reading", root)),
            Some(Format::Delta) => lakesmith_delta::load(store, root, at, needs).await.map(Arc::new).map(Self::Delta),
            None => lakesmith_delta::load(store, root, at, needs).await.map(Arc::new).map(Self::Delta),
        }
    }

    /// The table if rows of it can be written.
    ///
    /// # Errors
    /// Unsupported.
    pub(crate) fn delta(&self) -> Result<&Arc<DeltaTable>> {
        match self {
            Self::Delta(table) => Ok(table),
        }
    }

    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Delta(_) => Format::Delta,
        }
    }

    pub(crate) fn state(&self) -> &TableState {
        match self {
            Self::Delta(table) => &table.state,
        }
    }

    pub(crate) fn read_spec(&self) -> Result<ReadSpec> {
        match self {
            Self::Delta(table) => lakesmith_delta::read_spec(table),
        }
    }

    pub(crate) fn row_tracking(&self) -> Result<Option<RowTrackingColumns>> {
        match self {
            Self::Delta(table) => lakesmith_delta::row_tracking(table),
        }
    }

    pub(crate) fn input_files(&self, root: &Location, ids: &[FileId]) -> Result<Vec<InputFile>> {
        match self {
            Self::Delta(table) => lakesmith_delta::input_files(table, root, ids),
        }
    }

    pub(crate) async fn column_bounds(
        &self,
        store: &Store,
        root: &Location,
        columns: &[OrderKey],
        files: &[FileId],
    ) -> Result<Vec<ColumnBounds>> {
        match self {
            Self::Delta(table) => lakesmith_delta::column_bounds(store, root, table, columns, files).await,
        }
    }

    pub(crate) async fn read_vector(&self, store: &Store, info: &DeleteInfo) -> Result<DeletionVector> {
        match self {
            Self::Delta(_) => lakesmith_delta::read_vector(store, info).await,
        }
    }

    pub(crate) async fn row_counts(
        &self,
        store: &Store,
        root: &Location,
    ) -> Result<Option<Vec<(PartitionTuple, PartitionRows)>>> {
        match self {
            Self::Delta(table) => lakesmith_delta::row_counts(store, root, table).await,
        }
    }
}
