//! ALTER TABLE of columns and constraints: the new metadata and protocol, checked as Delta checks them.
//!
//! # Source
//! Delta Spark `alterDeltaTableCommands.scala`; Delta PROTOCOL.md, "Column Mapping", "Type Widening", "CHECK Constraints",
//! "Default Columns".

mod add;
mod change;
mod constraint;
mod dependents;
mod mentions;
mod path;
mod remove;
mod widen;

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::op::TableChange;
use lakesmith_core::table::Field;
use lakesmith_core::{Error, Result};
use lakesmith_storage::World;
use serde_json::{Map, Value, json};

use crate::clustering::check_keys_have_statistics;
use crate::features::with_features;
use crate::log_state::DeltaTable;
use crate::properties::{FileUse, MAX_COLUMN_ID, NewConfiguration};
use crate::schema_text::{CHAR_VARCHAR, schema_string, type_name};

pub(crate) use change::{DEFAULT, defaults_not_enabled, set_default};
pub(crate) use widen::was_float;

/// A change, and what the history says of it.
#[derive(Debug, Clone)]
pub struct Altered {
    /// What is committed.
    pub configuration: NewConfiguration,
    /// Name of the operation.
    pub operation: &'static str,
    /// Its parameters, values as JSON.
    pub parameters: Vec<(String, String)>,
}

/// Checks a change of columns or constraints and applies it; `None` if there is nothing to do. For a constraint the table's
/// files must be loaded. `rows_are_judged`: a query engine looks at the rows of this version before the change is committed.
///
/// # Errors
/// Usage, mostly with Spark's classes; `Unsupported` for what needs the rows or more than new metadata.
pub fn alter_table(
    table: &DeltaTable,
    change: &TableChange,
    rows_are_judged: bool,
    world: &dyn World,
) -> Result<Option<Altered>> {
    let mut draft = Draft::new(table, world);
    let altered = match change {
        TableChange::AddColumns(columns) => add::columns(&mut draft, columns).map(Some),
        TableChange::RenameColumn { path, to } => change::rename(&mut draft, path, to).map(Some),
        TableChange::DropColumns { paths, if_exists } => remove::columns(&mut draft, paths, *if_exists),
        TableChange::ChangeColumns(changes) => change::columns(&mut draft, changes),
        TableChange::AddConstraint { name, check, condition } => {
            constraint::add(&mut draft, name, check, condition.as_ref(), rows_are_judged).map(Some)
        }
        TableChange::DropConstraint { name, if_exists } => constraint::remove(&mut draft, name, *if_exists).map(Some),
    };
    let at_table = |e: Error| e.with("path", &table.state.location);
    let Some(history) = altered.map_err(at_table)? else { return Ok(None) };
    let configuration = draft.finish().map_err(at_table)?;
    Ok(Some(Altered { configuration, operation: history.operation, parameters: history.parameters }))
}

/// What the history says of a change.
struct History {
    operation: &'static str,
    parameters: Vec<(String, String)>,
}

impl History {
    fn new(operation: &'static str, parameters: Vec<(&str, Value)>) -> Self {
        let parameters = parameters.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect();
        Self { operation, parameters }
    }
}

/// The table as it is being changed.
struct Draft<'a> {
    table: &'a DeltaTable,
    world: &'a dyn World,
    fields: Vec<Field>,
    partition_columns: Vec<String>,
    configuration: BTreeMap<String, String>,
    features: BTreeSet<&'static str>,
    files: FileUse,
}

impl<'a> Draft<'a> {
    fn new(table: &'a DeltaTable, world: &'a dyn World) -> Self {
        Self {
            table,
            world,
            fields: table.state.schema.fields.clone(),
            partition_columns: table.log.metadata.partition_columns.clone(),
            configuration: table.log.metadata.configuration.clone(),
            features: BTreeSet::new(),
            files: FileUse::Untouched,
        }
    }

    fn maps_columns(&self) -> bool {
        let mode = self.table.state.property("delta.columnMapping.mode").unwrap_or("none");
        !mode.eq_ignore_ascii_case("none")
    }

    /// Refuses tables that keep themselves readable in another format, whose schema has rules of its own.
    fn check_only_delta(&self) -> Result<()> {
        if (1..=3).any(|v| self.table.state.property_is_true(&format!("delta.enableIcebergCompatV{v}"))) {
            return Err(Error::unsupported(
                "changing the columns of a table that keeps itself readable as Iceberg is not supported yet; use Spark for it",
            )
            .class("UNSUPPORTED_FEATURE"));
        }
        Ok(())
    }

    /// Gives new fields their ids and physical names, where the table maps columns.
    fn map_new(&mut self, field: &mut Field) {
        if !self.maps_columns() {
            return;
        }
        let named = self.table.state.property(MAX_COLUMN_ID).and_then(|v| v.trim().parse::<i64>().ok()).unwrap_or(0);
        let drafted = self.configuration.get(MAX_COLUMN_ID).and_then(|v| v.trim().parse::<i64>().ok()).unwrap_or(0);
        let mut last = path::largest_id(&self.fields).max(named).max(drafted);
        path::give_ids(field, &mut last, &mut || format!("col-{}", self.world.new_uuid()));
        self.configuration.insert(MAX_COLUMN_ID.to_owned(), last.to_string());
    }

    fn finish(self) -> Result<NewConfiguration> {
        let table = self.table;
        check_keys_have_statistics(table, &self.fields, &self.configuration)?;
        let mut metadata = table.log.metadata.clone();
        if self.fields != table.state.schema.fields {
            metadata.schema_string = schema_string(&self.fields);
        }
        metadata.partition_columns = self.partition_columns;
        metadata.configuration = self.configuration;
        let additions: Vec<&str> = self.features.into_iter().collect();
        let protocol = with_features(&table.log.protocol, &additions);
        Ok(NewConfiguration {
            metadata: Some(metadata),
            protocol: (protocol != table.log.protocol).then_some(protocol),
            files: self.files,
            ..NewConfiguration::default()
        })
    }
}

/// A field as the history shows it: by its path, a nested type by its kind alone.
fn shown(path: &[String], field: &Field) -> Value {
    let metadata: Map<String, Value> = field
        .metadata
        .iter()
        .filter(|(key, _)| *key != CHAR_VARCHAR)
        .map(|(key, text)| (key.clone(), serde_json::from_str(text).unwrap_or(Value::Null)))
        .collect();
    let written = field.metadata.get(CHAR_VARCHAR);
    let kind =
        written.and_then(|t| serde_json::from_str::<String>(t).ok()).unwrap_or_else(|| type_name(&field.data_type));
    let name = lakesmith_core::plan::keys::attribute_name(path);
    json!({"name": name, "type": kind, "nullable": field.nullable, "metadata": metadata})
}

#[cfg(test)]
mod tests;
