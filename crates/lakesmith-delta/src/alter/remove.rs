//! DROP COLUMNS.

use lakesmith_core::table::DataType;
use lakesmith_core::{Error, Result};
use serde_json::Value;

use super::change::{MAPPING_ADVICE, rewrite_statistics_columns};
use super::dependents::{check_expressions, check_no_key};
use super::path::{Place, find, spelled};
use super::{Draft, History};

/// `None` if none of the columns is there.
pub(super) fn columns(draft: &mut Draft<'_>, paths: &[Vec<String>], if_exists: bool) -> Result<Option<History>> {
    let mut dropped = Vec::new();
    for path in paths {
        match spelled(&draft.fields, path) {
            Ok(path) => dropped.push(path),
            Err(_) if if_exists => {}
            Err(error) => return Err(error),
        }
    }
    if dropped.is_empty() {
        return Ok(None);
    }
    if !draft.maps_columns() {
        return Err(Error::usage(format!("DROP COLUMN is not supported for your Delta table. {MAPPING_ADVICE}"))
            .class("DELTA_UNSUPPORTED_DROP_COLUMN"));
    }
    draft.check_only_delta()?;
    check_no_key(draft, &dropped)?;
    for path in &dropped {
        check_expressions(draft, path)?;
    }
    for path in &dropped {
        remove(draft, path)?;
    }
    let data = draft.fields.iter().filter(|f| !draft.partition_columns.contains(&f.name)).count();
    if data == 0 {
        return Err(last_column(&dropped[0]));
    }
    rewrite_statistics_columns(draft, |column| !dropped.iter().any(|path| starts_with(column, path)));
    let names: Vec<Value> = dropped.iter().map(|p| lakesmith_core::plan::keys::attribute_name(p).into()).collect();
    Ok(Some(History::new("DROP COLUMNS", vec![("columns", Value::from(Value::from(names).to_string()))])))
}

/// True if the column is `path` or inside it, case aside.
fn starts_with(column: &[String], path: &[String]) -> bool {
    column.len() >= path.len() && column.iter().zip(path).all(|(a, b)| a.to_lowercase() == b.to_lowercase())
}

fn remove(draft: &mut Draft<'_>, path: &[String]) -> Result<()> {
    match find(&mut draft.fields, path) {
        Some(Place::Member(siblings, _)) if siblings.len() == 1 => Err(last_column(path)),
        Some(Place::Member(siblings, index)) => {
            siblings.remove(index);
            Ok(())
        }
        Some(Place::Inner(field)) => {
            let kind = match &field.data_type {
                DataType::Struct(_) => "a struct inside an array or a map",
                _ => "the inside of an array or a map",
            };
            Err(Error::usage(format!("Can only drop nested columns from StructType. Found {kind}: {}", path.join(".")))
                .class("DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE")
                .with("column", path.join(".")))
        }
        None => Err(Error::usage(format!("the column {} is named twice", path.join(".")))
            .class("COLUMN_ALREADY_EXISTS")
            .with("column", path.join("."))),
    }
}

fn last_column(path: &[String]) -> Error {
    Error::usage(format!("Cannot drop column {} from a schema with a single column.", path.join(".")))
        .class("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA")
        .with("column", path.join("."))
}
