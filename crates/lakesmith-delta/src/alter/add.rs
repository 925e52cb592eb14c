//! ADD COLUMNS.

use std::collections::BTreeSet;

use lakesmith_core::op::{AddedColumn, Position};
use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};
use serde_json::{Value, json};

use super::path::{exists, find, index_of, quoted, spelled};
use super::{Draft, History, shown};
use crate::create::{check_columns, check_names, features_of_types};

/// Names that a table with a change feed keeps for it.
const FEED_COLUMNS: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];

pub(super) fn columns(draft: &mut Draft<'_>, columns: &[AddedColumn]) -> Result<History> {
    draft.check_only_delta()?;
    check_apart(columns)?;
    let mut history = Vec::new();
    for column in columns {
        history.push(add(draft, column)?);
    }
    Ok(History::new("ADD COLUMNS", vec![("columns", Value::from(Value::from(history).to_string()))]))
}

/// No column twice in one statement.
fn check_apart(columns: &[AddedColumn]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for column in columns {
        let path: Vec<String> =
            column.parent.iter().chain([&column.field.name]).map(|part| part.to_lowercase()).collect();
        if !seen.insert(path.clone()) {
            return Err(Error::usage(format!(
                "The column {} already exists. Choose another name or rename the existing column.",
                quoted(&path)
            ))
            .class("COLUMN_ALREADY_EXISTS")
            .with("column", path.join(".")));
        }
    }
    Ok(())
}

fn add(draft: &mut Draft<'_>, column: &AddedColumn) -> Result<Value> {
    let name = &column.field.name;
    let parent = spelled(&draft.fields, &column.parent)?;
    let path: Vec<String> = parent.iter().chain([name]).cloned().collect();
    let at_column = |e: Error| e.with("column", path.join("."));
    check(draft, column, &path).map_err(at_column)?;
    check_columns(std::slice::from_ref(&column.field), &mut Vec::new())?;
    if !draft.maps_columns() {
        check_names(std::slice::from_ref(&column.field))?;
    }
    let shown = shown(&path, &column.field);
    let mut field = column.field.clone();
    draft.map_new(&mut field);
    let all = draft.fields.clone();
    let siblings = members(&mut draft.fields, &parent, &path)?;
    if index_of(siblings, name).is_some() {
        return Err(exists("add", &path, &all));
    }
    let index = match &column.position {
        None => siblings.len(),
        Some(Position::First) => 0,
        Some(Position::After(sibling)) => {
            let names: Vec<&str> = siblings.iter().map(|f| f.name.as_str()).collect();
            let found = index_of(siblings, sibling).ok_or_else(|| {
                Error::usage(format!(
                    "No such struct field {} in {}.",
                    quoted(std::slice::from_ref(sibling)),
                    names.join(", ")
                ))
                .class("FIELD_NOT_FOUND")
                .with("column", sibling)
            });
            found? + 1
        }
    };
    siblings.insert(index, field);
    Ok(match &column.position {
        None => json!({"column": shown}),
        Some(position) => json!({"column": shown, "position": position_text(position)}),
    })
}

/// `FIRST`, `AFTER c`
pub(super) fn position_text(position: &Position) -> String {
    match position {
        Position::First => "FIRST".to_owned(),
        Position::After(sibling) => format!("AFTER {sibling}"),
    }
}

fn check(draft: &mut Draft<'_>, column: &AddedColumn, path: &[String]) -> Result<()> {
    if column.has_default {
        return Err(Error::usage(
            "Failed to execute the command because DEFAULT values are not supported when adding new columns to previously \
             existing Delta tables; please add the column without a default value first, then run a second ALTER TABLE \
             ALTER COLUMN SET DEFAULT command to apply for future inserted rows instead.",
        )
        .class("WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"));
    }
    if !column.field.nullable {
        return Err(Error::usage(
            "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables",
        )
        .class("DELTA_OPERATION_NOT_ALLOWED"));
    }
    let feed = draft.table.state.property_is_true("delta.enableChangeDataFeed");
    if feed && path.len() == 1 && FEED_COLUMNS.iter().any(|name| name.eq_ignore_ascii_case(&path[0])) {
        return Err(Error::usage(format!(
            "the column {} is kept for the table's change feed; choose another name",
            path[0]
        ))
        .class("RESERVED_CDC_COLUMNS_ON_WRITE"));
    }
    check_features(draft, &column.field)
}

/// Spark adds the feature of VARIANT by itself, that of TIMESTAMP_NTZ only when told to.
pub(super) fn check_features(draft: &mut Draft<'_>, field: &Field) -> Result<()> {
    for feature in features_of_types(std::slice::from_ref(field)) {
        let state = &draft.table.state;
        if state.has_feature(feature) || state.has_feature(&format!("{feature}-preview")) {
            continue;
        }
        if feature == "timestampNtz" {
            return Err(Error::usage(format!(
                "Your table schema requires manually enablement of the following table feature(s): {feature}. Run ALTER \
                 TABLE … SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')"
            ))
            .class("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"));
        }
        draft.features.insert(feature);
    }
    Ok(())
}

/// The fields of the struct that a column is added to.
fn members<'a>(fields: &'a mut Vec<Field>, parent: &[String], path: &[String]) -> Result<&'a mut Vec<Field>> {
    if parent.is_empty() {
        return Ok(fields);
    }
    let no_struct = || {
        Error::usage(format!("Field name {} is invalid: {} is not a struct.", quoted(path), quoted(parent)))
            .class("INVALID_FIELD_NAME")
            .with("column", path.join("."))
    };
    let field = match find(fields, parent) {
        Some(super::path::Place::Member(siblings, index)) => &mut siblings[index],
        Some(super::path::Place::Inner(field)) => field,
        None => return Err(no_struct()),
    };
    match &mut field.data_type {
        DataType::Struct(inner) => Ok(inner),
        _ => Err(no_struct()),
    }
}
