//! RENAME COLUMN and ALTER COLUMN.

use lakesmith_core::op::{ColumnChange, ColumnDefault, Position};
use lakesmith_core::plan::keys::{attribute_name, reference_name};
use lakesmith_core::predicate::check_default;
use lakesmith_core::table::Field;
use lakesmith_core::{Error, Result};
use serde_json::Value;

use super::add::position_text;
use super::dependents::check_expressions;
use super::path::{Place, exists, find, index_of, spelled, unresolved};
use super::{Draft, History, shown, widen};
use crate::schema::parse_column_list;

pub(super) const MAPPING_ADVICE: &str = "Please enable Column Mapping on your Delta table with mapping mode 'name': ALTER \
                                         TABLE table_name SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name'), which \
                                         upgrades its protocol";
const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";
/// Key of a column's default value in its metadata.
pub(crate) const DEFAULT: &str = "CURRENT_DEFAULT";
const IDENTITY: &str = "delta.identity.start";

pub(super) fn rename(draft: &mut Draft<'_>, path: &[String], to: &str) -> Result<History> {
    let path = spelled(&draft.fields, path)?;
    let renamed: Vec<String> = path[..path.len() - 1].iter().cloned().chain([to.to_owned()]).collect();
    let all = draft.fields.clone();
    let is_mapped = draft.maps_columns();
    let Some(Place::Member(siblings, index)) = find(&mut draft.fields, &path) else {
        return Err(Error::usage(format!("{} is the inside of an array or a map, which has no name", path.join(".")))
            .class("INVALID_FIELD_NAME")
            .with("column", path.join(".")));
    };
    if index_of(siblings, to).is_some() {
        return Err(exists("rename", &renamed, &all));
    }
    if !is_mapped {
        return Err(Error::usage(format!("Column rename is not supported for your Delta table. {MAPPING_ADVICE}"))
            .class("DELTA_UNSUPPORTED_RENAME_COLUMN"));
    }
    siblings[index].name = to.to_owned();
    draft.check_only_delta()?;
    let fields = std::mem::replace(&mut draft.fields, all);
    check_expressions(draft, &path)?;
    draft.fields = fields;
    if let [column] = path.as_slice() {
        draft.partition_columns.iter_mut().filter(|name| *name == column).for_each(|name| *name = to.to_owned());
    }
    rename_in_statistics_columns(draft, &path, to);
    let parameters = vec![
        ("oldColumnPath", Value::from(attribute_name(&path))),
        ("newColumnPath", Value::from(attribute_name(&renamed))),
    ];
    Ok(History::new("RENAME COLUMN", parameters))
}

/// The columns of `delta.dataSkippingStatsColumns`, which go by their logical names.
fn statistics_columns(draft: &Draft<'_>) -> Option<Vec<Vec<String>>> {
    draft.configuration.get(STATS_COLUMNS).and_then(|list| parse_column_list(list).ok())
}

fn set_statistics_columns(draft: &mut Draft<'_>, columns: &[Vec<String>]) {
    let list = columns.iter().map(|c| reference_name(c)).collect::<Vec<_>>().join(",");
    draft.configuration.insert(STATS_COLUMNS.to_owned(), list);
}

fn rename_in_statistics_columns(draft: &mut Draft<'_>, path: &[String], to: &str) {
    let Some(mut columns) = statistics_columns(draft) else { return };
    let mut changed = false;
    for column in &mut columns {
        let inside =
            column.len() >= path.len() && column.iter().zip(path).all(|(a, b)| a.to_lowercase() == b.to_lowercase());
        if inside {
            column[path.len() - 1] = to.to_owned();
            changed = true;
        }
    }
    if changed {
        set_statistics_columns(draft, &columns);
    }
}

/// Keeps the columns of `delta.dataSkippingStatsColumns` that satisfy `kept`.
pub(super) fn rewrite_statistics_columns(draft: &mut Draft<'_>, kept: impl Fn(&[String]) -> bool) {
    let Some(columns) = statistics_columns(draft) else { return };
    let left: Vec<Vec<String>> = columns.iter().filter(|column| kept(column)).cloned().collect();
    if left.is_empty() {
        draft.configuration.remove(STATS_COLUMNS);
    } else if left.len() != columns.len() {
        set_statistics_columns(draft, &left);
    }
}

/// `None` if the columns are as they are to be, as far as Spark notices.
pub(super) fn columns(draft: &mut Draft<'_>, changes: &[ColumnChange]) -> Result<Option<History>> {
    let mut shown = Vec::new();
    let mut position = None;
    for change in changes {
        let path = spelled(&draft.fields, &change.path)?;
        let at_column = |e: Error| e.with("column", path.join("."));
        if let Some(after) = apply(draft, &path, change).map_err(at_column)? {
            shown.push(after);
            position = change.position.as_ref().map(position_text);
        }
    }
    Ok(match shown.len() {
        0 => None,
        1 => {
            let mut parameters = vec![("column", Value::from(shown.swap_remove(0).to_string()))];
            parameters.extend(position.map(|text| ("position", Value::from(text))));
            Some(History::new("CHANGE COLUMN", parameters))
        }
        _ => Some(History::new("CHANGE COLUMNS", vec![("columns", Value::from(Value::from(shown).to_string()))])),
    })
}

/// The column as the history shows it.
fn apply(draft: &mut Draft<'_>, path: &[String], change: &ColumnChange) -> Result<Option<Value>> {
    let found =
        find(&mut draft.fields, path).map(|mut place| (place.field().clone(), matches!(place, Place::Inner(_))));
    let (before, is_inner) = found.ok_or_else(|| unresolved(&draft.fields, path))?;
    if is_inner && change.comment.is_some() {
        return Err(Error::usage(format!(
            "Can't add a comment to {}. Adding a comment to a map key/value or array element is not supported.",
            path.join(".")
        ))
        .class("DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"));
    }
    let widened = change.data_type.clone().filter(|to| *to != before.data_type);
    let said =
        [change.comment.is_some(), change.position.is_some(), change.nullable.is_some(), change.default.is_some()];
    let says_more = said.contains(&true);
    if widened.is_none() && !says_more {
        return Ok(None);
    }
    let is_identity = before.metadata.contains_key(IDENTITY);
    if is_identity && (widened.is_some() || change.default.is_some() || change.nullable.is_some()) {
        return Err(Error::usage("ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns.")
            .class("DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"));
    }
    if let Some(to) = &widened {
        check_expressions(draft, path)?;
        widen::check(draft, path, &before, to)?;
    }
    let mut after = changed(&before, path, change)?;
    match &change.default {
        Some(Some(default)) => {
            check_takes_default(draft, path, &before)?;
            set_default(&mut after, default, draft.world.now_ms())?;
        }
        Some(None) => {
            after.metadata.remove(DEFAULT);
        }
        None => {}
    }
    let history = shown(path, &after);
    if widened.is_some() {
        widen::note(draft, path, &before, &mut after)?;
    }
    if let Some(mut place) = find(&mut draft.fields, path) {
        *place.field() = after;
    }
    if let Some(position) = &change.position {
        move_to(draft, path, position)?;
    }
    Ok(Some(history))
}

fn changed(before: &Field, path: &[String], change: &ColumnChange) -> Result<Field> {
    let mut field = before.clone();
    if let Some(data_type) = &change.data_type {
        field.data_type = data_type.clone();
    }
    if let Some(comment) = &change.comment {
        field.metadata.insert("comment".into(), Value::from(comment.as_str()).to_string());
    }
    match change.nullable {
        Some(false) if before.nullable => {
            return Err(Error::usage(format!(
                "Cannot change nullable column to non-nullable: {}; add a constraint CHECK ({} IS NOT NULL) instead",
                path.join("."),
                reference_name(path)
            ))
            .class("_LEGACY_ERROR_TEMP_2330"));
        }
        Some(nullable) => field.nullable = nullable,
        None => {}
    }
    Ok(field)
}

/// A default value without the feature that it needs.
pub(crate) fn defaults_not_enabled(statement: &str) -> Error {
    Error::usage(format!(
        "Failed to execute {statement} command because it assigned a column DEFAULT value, but the corresponding table \
         feature was not enabled. Please retry the command again after executing ALTER TABLE tableName SET \
         TBLPROPERTIES('delta.feature.allowColumnDefaults' = 'supported'), or with that property in CREATE TABLE."
    ))
    .class("WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED")
}

/// Gives a column a default value.
///
/// # Errors
/// Usage (`INVALID_DEFAULT_VALUE.…`) if it does not fit, `Unsupported` if it can't be judged without an engine.
pub(crate) fn set_default(field: &mut Field, default: &ColumnDefault, now_ms: i64) -> Result<()> {
    match &default.value {
        Some(value) => check_default(value, &field.data_type, now_ms)?,
        None => {
            return Err(Error::unsupported(format!(
                "the default value {} needs the query engine to be checked; write a literal, or use Spark for it",
                default.text
            ))
            .class("UNSUPPORTED_FEATURE"));
        }
    }
    field.metadata.insert(DEFAULT.into(), Value::from(default.text.as_str()).to_string());
    Ok(())
}

fn check_takes_default(draft: &Draft<'_>, path: &[String], field: &Field) -> Result<()> {
    if !draft.table.state.has_feature("allowColumnDefaults") {
        return Err(defaults_not_enabled("ALTER TABLE"));
    }
    if path.len() > 1 || field.metadata.contains_key("delta.generationExpression") {
        return Err(Error::usage("a generated column and a field inside a column have no default value of their own")
            .class("UNSUPPORTED_FEATURE"));
    }
    Ok(())
}

fn move_to(draft: &mut Draft<'_>, path: &[String], position: &Position) -> Result<()> {
    let all = draft.fields.clone();
    let Some(Place::Member(siblings, from)) = find(&mut draft.fields, path) else {
        return Err(Error::usage(format!("{} is the inside of an array or a map and can't be moved", path.join(".")))
            .class("INVALID_FIELD_NAME"));
    };
    let to = match position {
        Position::First => 0,
        Position::After(sibling) => {
            let missing: Vec<String> = path[..path.len() - 1].iter().cloned().chain([sibling.clone()]).collect();
            let after = index_of(siblings, sibling).ok_or_else(|| unresolved(&all, &missing))?;
            if after == from {
                return Ok(());
            }
            if after < from { after + 1 } else { after }
        }
    };
    let field = siblings.remove(from);
    siblings.insert(to, field);
    Ok(())
}
