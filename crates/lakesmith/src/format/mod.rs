//! The formats of tables: the one place that knows more than one of them.

pub(crate) mod iceberg;
mod iceberg_health;
pub(crate) mod iceberg_tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::health::HealthFacts;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::op::{HistoryOptions, HistoryReport, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::{
    ColumnBounds, DeleteInfo, DeletionVector, FileId, InputFile, MetadataTable, PartitionTuple, ReadSpec,
    RowTrackingColumns, TableState,
};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{DeltaTable, PartitionRows};
use lakesmith_iceberg::IcebergTable;
use lakesmith_storage::{Cancel, Location, Store};

use crate::Session;
use crate::catalog::Target;
use crate::ops::properties;

/// A table format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Delta Lake.
    Delta,
    /// Apache Iceberg.
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
    /// Opens the storage that holds a table.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub(crate) fn open_target(&self, target: &Target) -> Result<Store> {
        self.open_with(&target.root, &target.storage)
    }

    /// The format of a table; Delta where none lies.
    ///
    /// # Errors
    /// Unavailable.
    pub(crate) fn format(&self, target: &Target) -> Result<Format> {
        match target.format {
            Some(format) => Ok(format),
            None => self.runtime.block_on(find(&self.open_target(target)?, &target.root)),
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
    Iceberg(Arc<IcebergTable>),
}

impl Opened {
    /// Loads a table.
    ///
    /// # Errors
    /// As [`Session::open_table`].
    pub(crate) fn open(
        session: &Session,
        store: &Store,
        target: &Target,
        at: TimeTravel,
        files: bool,
    ) -> Result<Opened> {
        let opened = session.runtime.block_on(Opened::load(store, target, at, files))?;
        let (version, files) = (opened.state().version, opened.state().files.len());
        tracing::info!(version, files, requests = store.requests().total(), "loaded");
        Ok(opened)
    }

    /// Loads a table; without a format, that which lies there.
    pub(crate) async fn load(store: &Store, target: &Target, at: TimeTravel, files: bool) -> Result<Opened> {
        let root = &target.root;
        match target.format {
            Some(Format::Delta) => {
                let needs = lakesmith_delta::Needs { files, stats: false };
                lakesmith_delta::load(store, root, at, needs).await.map(Arc::new).map(Self::Delta)
            }
            Some(Format::Iceberg) => {
                let needs = lakesmith_iceberg::Needs { files };
                let loaded = match &target.metadata {
                    Some(metadata) => {
                        lakesmith_iceberg::load_metadata_at(store, metadata, iceberg::at(at), needs).await
                    }
                    None => lakesmith_iceberg::load(store, root, iceberg::at(at), needs).await,
                };
                loaded.map(Arc::new).map(Self::Iceberg)
            }
            None => {
                let found = target.clone().of(find(store, root).await?);
                Box::pin(Self::load(store, &found, at, files)).await
            }
        }
    }

    /// What was done to a table, the newest first.
    ///
    /// # Errors
    /// As [`Session::open_table`].
    pub(crate) async fn history(
        store: &Store,
        target: &Target,
        options: HistoryOptions,
        cancel: &Cancel,
    ) -> Result<HistoryReport> {
        let root = &target.root;
        let format = match target.format {
            Some(format) => format,
            None => find(store, root).await?,
        };
        match format {
            Format::Delta => lakesmith_delta::history(store, root, options, cancel).await,
            Format::Iceberg => iceberg::history(store, target, options).await,
        }
    }

    /// The table if rows of it can be written.
    ///
    /// # Errors
    /// Unsupported.
    pub(crate) fn delta(&self, what: &str, root: &Location) -> Result<&Arc<DeltaTable>> {
        match self {
            Self::Delta(table) => Ok(table),
            Self::Iceberg(_) => Err(not_written(what, root)),
        }
    }

    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Delta(_) => Format::Delta,
            Self::Iceberg(_) => Format::Iceberg,
        }
    }

    pub(crate) fn state(&self) -> &Arc<TableState> {
        match self {
            Self::Delta(table) => &table.state,
            Self::Iceberg(table) => &table.state,
        }
    }

    /// The properties as SHOW TBLPROPERTIES has them, with those that stand for the format.
    pub(crate) fn shown_properties(&self) -> BTreeMap<String, String> {
        match self {
            Self::Delta(table) => properties::shown(table),
            Self::Iceberg(table) => iceberg::shown_properties(table),
        }
    }

    /// How the table is partitioned, as SQL writes it in PARTITIONED BY.
    pub(crate) fn partitioning(&self) -> Vec<String> {
        match self {
            Self::Delta(table) => {
                table.state.partition_columns.iter().map(|c| reference_name(std::slice::from_ref(c))).collect()
            }
            Self::Iceberg(table) => iceberg::partitioning(table),
        }
    }

    /// The metadata table of this name, which is in lower case.
    ///
    /// # Errors
    /// Usage for a name that means none.
    pub(crate) fn metadata_table(&self, session: &Session, store: &Store, kind: &str) -> Result<MetadataTable> {
        let runtime = session.runtime.handle();
        let found = match self {
            Self::Delta(_) => None,
            Self::Iceberg(table) => runtime.block_on(iceberg_tables::table(store, table, kind, runtime))?,
        };
        found.ok_or_else(|| {
            Error::usage(format!("there is no metadata table '{kind}' of this table")).class("TABLE_OR_VIEW_NOT_FOUND")
        })
    }

    /// What a health check looks at; nothing for a table with a log, which is surveyed instead.
    pub(crate) fn health_facts(&self, target_bytes: u64, now_ms: i64) -> HealthFacts {
        match self {
            Self::Delta(_) => HealthFacts::default(),
            Self::Iceberg(table) => iceberg_health::facts(table, target_bytes, now_ms),
        }
    }

    pub(crate) fn read_spec(&self) -> Result<ReadSpec> {
        match self {
            Self::Delta(table) => lakesmith_delta::read_spec(table),
            Self::Iceberg(table) => lakesmith_iceberg::read_spec(table),
        }
    }

    pub(crate) fn row_tracking(&self) -> Result<Option<RowTrackingColumns>> {
        match self {
            Self::Delta(table) => lakesmith_delta::row_tracking(table),
            Self::Iceberg(table) => Ok(lakesmith_iceberg::row_tracking(table)),
        }
    }

    pub(crate) fn input_files(&self, root: &Location, ids: &[FileId]) -> Result<Vec<InputFile>> {
        match self {
            Self::Delta(table) => lakesmith_delta::input_files(table, root, ids),
            Self::Iceberg(table) => lakesmith_iceberg::input_files(table, ids),
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
            Self::Iceberg(table) => lakesmith_iceberg::column_bounds(store, root, table, columns, files).await,
        }
    }

    pub(crate) async fn read_vector(&self, store: &Store, info: &DeleteInfo) -> Result<DeletionVector> {
        match self {
            Self::Delta(_) => lakesmith_delta::read_vector(store, info).await,
            Self::Iceberg(_) => lakesmith_iceberg::read_vector(store, info).await,
        }
    }

    /// How many rows each partition has, where this is told without the files.
    pub(crate) async fn row_counts(
        &self,
        store: &Store,
        root: &Location,
    ) -> Result<Option<Vec<(PartitionTuple, PartitionRows)>>> {
        match self {
            Self::Delta(table) => lakesmith_delta::row_counts(store, root, table).await,
            Self::Iceberg(_) => Ok(None),
        }
    }
}

/// The format of the table at `root`; Delta where there is none, so that its errors say so.
pub(crate) async fn find(store: &Store, root: &Location) -> Result<Format> {
    let is_iceberg = !lakesmith_delta::is_table(store, root).await? && lakesmith_iceberg::is_table(store, root).await?;
    Ok(if is_iceberg { Format::Iceberg } else { Format::Delta })
}
