//! Types that a column may grow into without its files being written again.
//!
//! # Source
//! Delta PROTOCOL.md, "Type Widening"; Delta Spark `TypeWidening.isTypeChangeSupported`, `TypeWideningMetadata`.

use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};
use serde_json::{Value, json};

use super::Draft;
use super::add::check_features;
use super::path::{Place, find};
use crate::schema_text::{sql_type, type_name};

const TYPE_CHANGES: &str = "delta.typeChanges";

/// True if the field was FLOAT once: older files hold such values, and their statistics are written as such.
pub(crate) fn was_float(field: &Field) -> bool {
    let changes = field.metadata.get(TYPE_CHANGES).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let is_float = |change: &Value| change["fromType"] == "float";
    changes.as_ref().and_then(Value::as_array).is_some_and(|changes| changes.iter().any(is_float))
}

/// Checks that the column may get the type.
pub(super) fn check(draft: &mut Draft<'_>, path: &[String], field: &Field, to: &DataType) -> Result<()> {
    let from = &field.data_type;
    let name = path.join(".");
    if let Some((class, what)) = container(from) {
        return Err(Error::usage(format!(
            "Cannot update field {name} type: Update {what} by updating its {}.",
            if matches!(from, DataType::Struct(_)) { "fields" } else { "inside, as in c.element or c.value" }
        ))
        .class(class));
    }
    let from_to = format!("{} to {}", sql_type(from), sql_type(to));
    if !is_wider(from, to) {
        let class = if matches!(to, DataType::String) && !matches!(from, DataType::Binary) {
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
        } else {
            "NOT_SUPPORTED_CHANGE_COLUMN"
        };
        return Err(Error::usage(format!(
            "ALTER TABLE CHANGE COLUMN is not supported for changing column {name} from {from_to}"
        ))
        .class(class));
    }
    let state = &draft.table.state;
    if !state.property_is_true("delta.enableTypeWidening") || !state.has_feature("typeWidening") {
        let hint = if state.has_feature("typeWidening-preview") {
            "the table has the preview of type widening only"
        } else {
            "ALTER TABLE … SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true') allows it"
        };
        return Err(Error::usage(format!(
            "ALTER TABLE CHANGE COLUMN is not supported for changing column {name} from {from_to}; {hint}"
        ))
        .class("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"));
    }
    if path.len() == 1 && draft.partition_columns.contains(&path[0]) {
        return Err(Error::unsupported(format!(
            "the type of the partition column {name} can't be changed; use Spark for it"
        ))
        .class("UNSUPPORTED_FEATURE"));
    }
    draft.check_only_delta()?;
    check_features(draft, &Field { data_type: to.clone(), ..field.clone() })
}

fn container(of: &DataType) -> Option<(&'static str, &'static str)> {
    match of {
        DataType::Struct(_) => Some(("CANNOT_UPDATE_FIELD.STRUCT_TYPE", "a struct")),
        DataType::List(_) => Some(("CANNOT_UPDATE_FIELD.ARRAY_TYPE", "the element")),
        DataType::Map(..) => Some(("CANNOT_UPDATE_FIELD.MAP_TYPE", "a map")),
        _ => None,
    }
}

/// True if every value of `from` is one of `to` and readers know the way.
fn is_wider(from: &DataType, to: &DataType) -> bool {
    use DataType::{Byte, Date, Decimal, Double, Float, Integer, Long, Short, TimestampNtz};
    match (from, to) {
        (Byte, Short | Integer | Long | Double) | (Short, Integer | Long | Double) => true,
        (Integer, Long | Double) | (Float, Double) | (Date, TimestampNtz) => true,
        (Byte | Short | Integer, Decimal { precision, scale }) => wide_decimal(*precision, *scale, 10),
        (Long, Decimal { precision, scale }) => wide_decimal(*precision, *scale, 20),
        (Decimal { precision: p, scale: s }, Decimal { precision, scale }) => {
            scale >= s && i16::from(*precision) - i16::from(*p) >= i16::from(*scale) - i16::from(*s)
        }
        _ => false,
    }
}

/// At least `digits` before the point.
fn wide_decimal(precision: u8, scale: i8, digits: i16) -> bool {
    scale >= 0 && i16::from(precision) - i16::from(scale) >= digits
}

/// Notes the change where readers look for it: on the field, or for the inside of an array or a map on the field around
/// it, with the way to it.
pub(super) fn note(draft: &mut Draft<'_>, path: &[String], before: &Field, after: &mut Field) -> Result<()> {
    let (from, to) = (type_name(&before.data_type), type_name(&after.data_type));
    let is_member = matches!(find(&mut draft.fields, path), Some(Place::Member(..)));
    if is_member {
        return push(after, json!({"toType": to, "fromType": from}));
    }
    for end in (1..path.len()).rev() {
        if let Some(Place::Member(siblings, index)) = find(&mut draft.fields, &path[..end]) {
            let way = path[end..].join(".");
            return push(&mut siblings[index], json!({"toType": to, "fromType": from, "fieldPath": way}));
        }
    }
    Err(Error::internal("a column has no field to note a change of its type on").with("column", path.join(".")))
}

fn push(field: &mut Field, change: Value) -> Result<()> {
    let mut changes: Vec<Value> = match field.metadata.get(TYPE_CHANGES) {
        Some(text) => serde_json::from_str(text).map_err(|e| {
            Error::corrupt("the earlier changes of a column's type can't be read")
                .with("column", &field.name)
                .caused_by(e)
        })?,
        None => Vec::new(),
    };
    changes.push(change);
    field.metadata.insert(TYPE_CHANGES.to_owned(), Value::from(changes).to_string());
    Ok(())
}
