//! SHOW TBLPROPERTIES and ALTER TABLE … SET | UNSET TBLPROPERTIES.

use std::collections::BTreeMap;

use lakesmith_core::op::{AlterProperties, PropertiesReport, Report, TimeTravel};
use lakesmith_core::table::{OperationInfo, VersionEdit};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{CommitResult, DeltaTable, NewConfiguration};
use lakesmith_storage::{Location, Store};

use super::{json_text, load};
use crate::Session;
use crate::catalog::Target;
use crate::format::Opened;

pub(crate) fn show(session: &Session, store: &Store, target: &Target, key: Option<&str>) -> Result<Report> {
    let properties = Opened::open(session, store, target, TimeTravel::Latest, false)?.shown_properties();
    let properties = match key {
        None => properties,
        Some(key) => {
            // Spark answers a missing key with a sentence in the value.
            let value = properties
                .get(key)
                .cloned()
                .unwrap_or_else(|| format!("Table {} does not have property: {key}", name_of(target)));
            BTreeMap::from([(key.to_string(), value)])
        }
    };
    Ok(Report::Properties(PropertiesReport(properties)))
}

/// The table's properties with those that stand for its protocol.
pub(crate) fn shown(table: &DeltaTable) -> BTreeMap<String, String> {
    let mut properties = table.state.properties.clone();
    properties.insert("delta.minReaderVersion".into(), table.state.min_reader_version.to_string());
    properties.insert("delta.minWriterVersion".into(), table.state.min_writer_version.to_string());
    if table.state.min_writer_version >= 7 {
        for feature in &table.state.features {
            properties.insert(format!("delta.feature.{feature}"), "supported".into());
        }
    }
    properties
}

/// The table as Spark names it in sentences.
fn name_of(target: &Target) -> String {
    target.name.as_ref().map_or_else(|| super::describe::spark_uri(&target.root), ToString::to_string)
}

pub(crate) fn alter(session: &Session, store: &Store, root: &Location, options: &AlterProperties) -> Result<Report> {
    let table = load(session, store, root, TimeTravel::Latest, false)?;
    lakesmith_delta::check_writable(&table)?;
    let changed = lakesmith_delta::validate_properties(&table, options)?;
    if options.dry_run {
        return Ok(Report::Done { version: table.state.version });
    }
    commit(session, store, root, &table, changed, operation(options)).map(|version| Report::Done { version })
}

/// Commits what leaves the files alone; returns the version that it made.
pub(super) fn commit(
    session: &Session,
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    changed: NewConfiguration,
    operation: OperationInfo,
) -> Result<u64> {
    let context = session.commit_context(None)?;
    let edit = VersionEdit { operation, ..Default::default() };
    let commit = lakesmith_delta::commit(store, root, table, &edit, Some(changed), &context);
    match session.runtime.block_on(commit) {
        CommitResult::Committed(committed) => Ok(committed.version),
        CommitResult::NothingLeft { .. } => Err(Error::internal("a change of the table's configuration was dropped")),
        CommitResult::Failed { error, .. } => Err(error),
    }
}

fn operation(options: &AlterProperties) -> OperationInfo {
    let (name, parameters) = if options.unset.is_empty() {
        ("SET TBLPROPERTIES", vec![("properties".to_string(), json_text(&json_text(&options.set)))])
    } else {
        (
            "UNSET TBLPROPERTIES",
            vec![
                ("properties".to_string(), json_text(&json_text(&options.unset))),
                ("ifExists".to_string(), options.if_exists.to_string()),
            ],
        )
    };
    OperationInfo { name: name.into(), parameters, user_metadata: options.user_metadata.clone() }
}
