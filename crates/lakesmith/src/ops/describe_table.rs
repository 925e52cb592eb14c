//! SHOW COLUMNS, SHOW CREATE TABLE and DESCRIBE TABLE.
//!
//! # Source
//! Spark `DescribeTableExec`, `ShowCreateTableExec`.

use lakesmith_core::op::{Report, TextRows, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::Field;
use lakesmith_core::{Error, Result};
use lakesmith_storage::Store;

use super::describe::spark_uri;
use super::json_text;
use crate::Session;
use crate::catalog::Target;
use crate::format::Opened;

const DESCRIPTION: [&str; 3] = ["col_name", "data_type", "comment"];
/// Properties that a table gets by itself: CREATE TABLE would refuse them, or give others.
const OWN_PROPERTIES: [&str; 6] = [
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.requireCheckpointProtectionBeforeVersion",
];
const CONSTRAINTS: &str = "delta.constraints.";

fn open(session: &Session, store: &Store, target: &Target) -> Result<Opened> {
    Opened::open(session, store, target, TimeTravel::Latest, false)
}

pub(crate) fn columns(session: &Session, store: &Store, target: &Target) -> Result<Report> {
    let table = open(session, store, target)?;
    let mut rows = TextRows::new(&["col_name"]);
    table.state().schema.fields.iter().for_each(|field| rows.push(&[&field.name]));
    Ok(Report::Rows(rows))
}

pub(crate) fn column(session: &Session, store: &Store, target: &Target, name: &str) -> Result<Report> {
    let table = open(session, store, target)?;
    let schema = &table.state().schema;
    let field = schema.field(name).ok_or_else(|| {
        let names: Vec<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
        Error::usage(format!("a column with name `{name}` cannot be resolved; there are {}", names.join(", ")))
            .class("UNRESOLVED_COLUMN.WITH_SUGGESTION")
            .with("column", name)
    })?;
    let mut rows = TextRows::new(&["info_name", "info_value"]);
    rows.push(&["col_name", &field.name]);
    rows.push(&["data_type", &field.data_type.simple_string()]);
    rows.push(&["comment", text_of(field, "comment").as_deref().unwrap_or("NULL")]);
    Ok(Report::Rows(rows))
}

pub(crate) fn table(session: &Session, store: &Store, target: &Target, extended: bool) -> Result<Report> {
    let table = open(session, store, target)?;
    let state = table.state();
    let mut rows = TextRows::new(&DESCRIPTION);
    state.schema.fields.iter().for_each(|field| push_column(&mut rows, field));
    push_partitioning(&mut rows, &table);
    if extended {
        push_details(&mut rows, &table, target);
        for field in &state.schema.fields {
            if let Some(default) = text_of(field, "CURRENT_DEFAULT") {
                rows.push(&["", "", ""]);
                rows.push(&["# Column Default Values", "", ""]);
                rows.push(&[&field.name, &field.data_type.simple_string(), &default]);
            }
        }
    }
    Ok(Report::Rows(rows))
}

/// Columns that partition the table, or what is made of them.
fn push_partitioning(rows: &mut TextRows, table: &Opened) {
    let (state, parts) = (table.state(), table.partitioning());
    let plain =
        |part: &String| state.schema.fields.iter().find(|f| reference_name(std::slice::from_ref(&f.name)) == *part);
    let columns: Option<Vec<&Field>> = parts.iter().map(plain).collect();
    match columns {
        _ if parts.is_empty() => {}
        Some(columns) => {
            rows.push(&["# Partition Information", "", ""]);
            rows.push(&["# col_name", "data_type", "comment"]);
            columns.into_iter().for_each(|field| push_column(rows, field));
        }
        None => {
            rows.push(&["# Partitioning", "", ""]);
            parts.iter().enumerate().for_each(|(place, part)| rows.push(&[&format!("Part {place}"), part, ""]));
        }
    }
}

fn push_column(rows: &mut TextRows, field: &Field) {
    let comment = text_of(field, "comment");
    rows.rows.push(vec![Some(field.name.clone()), Some(field.data_type.simple_string()), comment]);
}

fn push_details(rows: &mut TextRows, table: &Opened, target: &Target) {
    let (state, format) = (table.state(), table.format().prefix());
    rows.push(&["", "", ""]);
    rows.push(&["# Detailed Table Information", "", ""]);
    let uri = spark_uri(&target.root);
    // Spark calls a table without a name managed, and shows its path as it was given.
    let (name, kind, location) = match &target.name {
        Some(name) => (name.to_string(), if name.managed { "MANAGED" } else { "EXTERNAL" }, uri),
        None => (format!("{format}.`{uri}`"), "MANAGED", uri.strip_prefix("file:").unwrap_or(&uri).to_owned()),
    };
    rows.push(&["Name", &name, ""]);
    rows.push(&["Type", kind, ""]);
    if let Some(comment) = &state.description {
        rows.push(&["Comment", comment, ""]);
    }
    rows.push(&["Location", &location, ""]);
    rows.push(&["Provider", format, ""]);
    if target.name.as_ref().is_some_and(|name| name.managed) {
        rows.push(&["Is_managed_location", "true", ""]);
    }
    let mut properties = table.shown_properties();
    if let Some(keys) = state.clustering_columns.as_ref().filter(|keys| !keys.is_empty()) {
        properties.insert("clusteringColumns".into(), json_text(keys));
    }
    let pairs: Vec<String> = properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
    rows.push(&["Table Properties", &format!("[{}]", pairs.join(",")), ""]);
}

pub(crate) fn create_statement(session: &Session, store: &Store, target: &Target) -> Result<Report> {
    let table = open(session, store, target)?;
    let mut rows = TextRows::new(&["createtab_stmt"]);
    rows.push(&[&statement(&table, target)]);
    Ok(Report::Rows(rows))
}

/// Statements that make a table like this one: CREATE TABLE, and one for each constraint.
fn statement(table: &Opened, target: &Target) -> String {
    let (state, format) = (table.state(), table.format().prefix());
    let name = match &target.name {
        Some(name) => name.to_string(),
        None => format!("{format}.`{}`", spark_uri(&target.root).replace('`', "``")),
    };
    let columns: Vec<String> = state.schema.fields.iter().map(column_text).collect();
    let mut text = format!("CREATE TABLE {name} (\n  {})\nUSING {format}\n", columns.join(",\n  "));
    let list = |columns: &[Vec<String>]| columns.iter().map(|c| reference_name(c)).collect::<Vec<_>>().join(", ");
    let partitioning = table.partitioning();
    if !partitioning.is_empty() {
        text.push_str(&format!("PARTITIONED BY ({})\n", partitioning.join(", ")));
    }
    if let Some(keys) = state.clustering_columns.as_ref().filter(|keys| !keys.is_empty()) {
        text.push_str(&format!("CLUSTER BY ({})\n", list(keys)));
    }
    if let Some(comment) = &state.description {
        text.push_str(&format!("COMMENT {}\n", literal(comment)));
    }
    if target.name.as_ref().is_some_and(|name| !name.managed) {
        text.push_str(&format!("LOCATION {}\n", literal(&spark_uri(&target.root))));
    }
    let is_given = |key: &str| !OWN_PROPERTIES.contains(&key) && !key.starts_with(CONSTRAINTS);
    let mut given: Vec<String> = state
        .properties
        .iter()
        .filter(|(key, _)| is_given(key))
        .map(|(key, value)| format!("  {} = {}", literal(key), literal(value)))
        .collect();
    if state.schema.fields.iter().any(|field| field.metadata.contains_key("CURRENT_DEFAULT")) {
        given.push("  'delta.feature.allowColumnDefaults' = 'supported'".to_owned());
    }
    if !given.is_empty() {
        text.push_str(&format!("TBLPROPERTIES (\n{})\n", given.join(",\n")));
    }
    for (key, check) in &state.properties {
        if let Some(constraint) = key.strip_prefix(CONSTRAINTS) {
            let constraint = reference_name(&[constraint.to_owned()]);
            text.truncate(text.trim_end().len());
            text.push_str(&format!(";\nALTER TABLE {name} ADD CONSTRAINT {constraint} CHECK ({check})\n"));
        }
    }
    text
}

fn column_text(field: &Field) -> String {
    let mut text =
        format!("{} {}", reference_name(std::slice::from_ref(&field.name)), lakesmith_delta::column_type(field));
    if !field.nullable {
        text.push_str(" NOT NULL");
    }
    if let Some(expression) = text_of(field, "delta.generationExpression") {
        text.push_str(&format!(" GENERATED ALWAYS AS ({expression})"));
    }
    if let Some(default) = text_of(field, "CURRENT_DEFAULT") {
        text.push_str(&format!(" DEFAULT {default}"));
    }
    if let Some(comment) = text_of(field, "comment") {
        text.push_str(&format!(" COMMENT {}", literal(&comment)));
    }
    text
}

/// A text of the field's metadata.
fn text_of(field: &Field, key: &str) -> Option<String> {
    serde_json::from_str(field.metadata.get(key)?).ok()
}

/// A string literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
