//! DESCRIBE DETAIL, DESCRIBE HISTORY and the list of files.

use std::sync::Arc;

use lakesmith_core::Result;
use lakesmith_core::op::{DetailReport, FilesReport, HistoryOptions, Report, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_storage::{Location, Store};

use super::iso;
use crate::Session;
use crate::catalog::Target;
use crate::format::Opened;

pub(crate) fn detail(session: &Session, store: &Store, target: &Target, at: TimeTravel) -> Result<Report> {
    let root = &target.root;
    let table = Opened::open(session, store, target, at, true)?;
    let state = table.state();
    Ok(Report::Detail(Box::new(DetailReport {
        format: table.format().prefix().into(),
        id: state.id.clone(),
        name: target.name.as_ref().map(ToString::to_string).or_else(|| state.name.clone()),
        description: state.description.clone(),
        location: spark_uri(root),
        created_at: state.created_ms.map(iso),
        last_modified: iso(state.timestamp_ms),
        partition_columns: state.partition_columns.clone(),
        clustering_columns: state.clustering_columns.iter().flatten().map(|path| reference_name(path)).collect(),
        num_files: state.files.len() as u64,
        size_in_bytes: state.files.total_bytes(),
        properties: state.properties.clone(),
        min_reader_version: state.min_reader_version,
        min_writer_version: state.min_writer_version,
        table_features: state.features.clone(),
        num_partitions: if state.partition_columns.is_empty() { 0 } else { state.files.partitions().len() as u64 },
        version: state.version,
    })))
}

/// Hadoop writes local URIs with one slash.
pub(crate) fn spark_uri(root: &Location) -> String {
    let text = root.to_string();
    match text.strip_prefix("file://") {
        Some(path) => format!("file:{path}"),
        None => text,
    }
}

pub(crate) fn history(session: &Session, store: &Store, target: &Target, options: HistoryOptions) -> Result<Report> {
    session.runtime.block_on(Opened::history(store, target, options, &session.options.cancel)).map(Report::History)
}

pub(crate) fn files(session: &Session, store: &Store, target: &Target, at: TimeTravel) -> Result<Report> {
    let table = Opened::open(session, store, target, at, true)?;
    Ok(Report::Files(FilesReport::new(Arc::clone(table.state()), iso)))
}
