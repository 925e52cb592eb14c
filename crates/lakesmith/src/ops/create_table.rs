//! CREATE TABLE from column definitions.

use lakesmith_core::op::{CreateTable, Report, RewriteLimits, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::OperationInfo;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{CommitContext, DeltaTable, NewConfiguration};
use lakesmith_storage::{Location, Store};

use super::{json_text, load};
use crate::drive::ENGINE_INFO;
use crate::{Session, table_ref};

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &CreateTable) -> Result<Report> {
    check_location(root, options)?;
    if let Some(table) = existing(session, store, root)? {
        return found(&table, options);
    }
    let world = session.options.world.as_ref();
    let new = lakesmith_delta::new_table(root, options, world)?;
    session.runtime.block_on(lakesmith_delta::check_room(store, root))?;
    let context = CommitContext {
        world,
        cancel: &session.options.cancel,
        engine_info: ENGINE_INFO.to_string(),
        timeout_ms: RewriteLimits::default().commit_timeout_ms,
    };
    let operation = operation(&new, options);
    if session.runtime.block_on(lakesmith_delta::create(store, root, &new, &operation, &context))? {
        return Ok(Report::Done { version: 0 });
    }
    // Another writer was faster, so that there is a table now.
    let table = load(session, store, root, TimeTravel::Latest, false)?;
    found(&table, options)
}

fn check_location(root: &Location, options: &CreateTable) -> Result<()> {
    match &options.location {
        Some(location) if table_ref::parse(location)? != *root => Err(Error::usage(format!(
            "Creating path-based Delta table with a different location isn't supported. Identifier: delta.`{root}`, \
             Location: {location}"
        ))
        .class("DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH")
        .with("path", root)),
        _ => Ok(()),
    }
}

fn existing(session: &Session, store: &Store, root: &Location) -> Result<Option<DeltaTable>> {
    match load(session, store, root, TimeTravel::Latest, false) {
        Ok(table) => Ok(Some(table)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn found(table: &DeltaTable, options: &CreateTable) -> Result<Report> {
    if options.if_not_exists {
        return Ok(Report::Done { version: table.state.version });
    }
    Err(Error::usage(format!(
        "cannot create the table delta.`{}` because it exists already; write CREATE TABLE IF NOT EXISTS to leave it as it \
         is, or choose another path",
        table.state.location
    ))
    .class("TABLE_OR_VIEW_ALREADY_EXISTS")
        .with("path", &table.state.location)
        .with("version", table.state.version))
}

fn operation(new: &NewConfiguration, options: &CreateTable) -> OperationInfo {
    let metadata = new.metadata.as_ref();
    let keys = lakesmith_delta::schema_spelling(&options.schema, &options.cluster_by);
    let cluster_by: Vec<String> = keys.iter().map(|path| reference_name(path)).collect();
    let partition_by = metadata.map(|m| m.partition_columns.clone()).unwrap_or_default();
    let properties = metadata.map(|m| m.configuration.clone()).unwrap_or_default();
    OperationInfo {
        name: "CREATE TABLE".into(),
        parameters: vec![
            ("partitionBy".into(), json_text(&json_text(&partition_by))),
            ("clusterBy".into(), json_text(&json_text(&cluster_by))),
            ("description".into(), json_text(&metadata.and_then(|m| m.description.clone()))),
            ("isManaged".into(), json_text("false")),
            ("properties".into(), json_text(&json_text(&properties))),
        ],
        user_metadata: options.user_metadata.clone(),
    }
}
