//! Finding fields in a schema by their paths, through arrays (`element`) and maps (`key`, `value`).

use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};

use crate::schema::{COLUMN_ID, PHYSICAL_NAME};
use crate::schema_text::sql_type;

/// Where a path leads.
pub(super) enum Place<'a> {
    /// A field among its siblings.
    Member(&'a mut Vec<Field>, usize),
    /// The element of an array, the key or the value of a map.
    Inner(&'a mut Field),
}

impl Place<'_> {
    /// The field.
    pub(super) fn field(&mut self) -> &mut Field {
        match self {
            Place::Member(siblings, index) => &mut siblings[*index],
            Place::Inner(field) => field,
        }
    }
}

/// The index of a field by its name, in any case.
pub(super) fn index_of(fields: &[Field], name: &str) -> Option<usize> {
    let exact = fields.iter().position(|f| f.name == name);
    exact.or_else(|| fields.iter().position(|f| f.name.to_lowercase() == name.to_lowercase()))
}

/// Follows a path.
pub(super) fn find<'a>(fields: &'a mut Vec<Field>, path: &[String]) -> Option<Place<'a>> {
    let (first, rest) = path.split_first()?;
    let index = index_of(fields, first)?;
    if rest.is_empty() { Some(Place::Member(fields, index)) } else { inside(&mut fields[index], rest) }
}

fn inside<'a>(field: &'a mut Field, path: &[String]) -> Option<Place<'a>> {
    let (first, rest) = path.split_first()?;
    let inner = match &mut field.data_type {
        DataType::Struct(fields) => return find(fields, path),
        DataType::List(element) if first.eq_ignore_ascii_case("element") => element,
        DataType::Map(key, _) if first.eq_ignore_ascii_case("key") => key,
        DataType::Map(_, value) if first.eq_ignore_ascii_case("value") => value,
        _ => return None,
    };
    if rest.is_empty() { Some(Place::Inner(inner)) } else { inside(inner, rest) }
}

/// The path in the schema's spelling, or the error that it leads nowhere.
pub(super) fn spelled(fields: &[Field], path: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(path.len());
    let mut at: Option<&Field> = None;
    for part in path {
        let next = match at.map(|field| &field.data_type) {
            None => index_of(fields, part).map(|i| &fields[i]),
            Some(DataType::Struct(inner)) => index_of(inner, part).map(|i| &inner[i]),
            Some(DataType::List(element)) if part.eq_ignore_ascii_case("element") => Some(element.as_ref()),
            Some(DataType::Map(key, _)) if part.eq_ignore_ascii_case("key") => Some(key.as_ref()),
            Some(DataType::Map(_, value)) if part.eq_ignore_ascii_case("value") => Some(value.as_ref()),
            Some(_) => None,
        };
        let next = next.ok_or_else(|| unresolved(fields, path))?;
        names.push(next.name.clone());
        at = Some(next);
    }
    Ok(names)
}

/// There is no such column.
pub(super) fn unresolved(fields: &[Field], path: &[String]) -> Error {
    let names: Vec<String> = fields.iter().map(|f| quoted(std::slice::from_ref(&f.name))).collect();
    Error::usage(format!(
        "A column, variable, or function parameter with name {} cannot be resolved. Did you mean one of the following? [{}].",
        quoted(path),
        names.join(", ")
    ))
    .class("UNRESOLVED_COLUMN.WITH_SUGGESTION")
    .with("column", path.join("."))
}

/// Another column has the name.
pub(super) fn exists(what: &str, path: &[String], fields: &[Field]) -> Error {
    let schema = sql_type(&DataType::Struct(fields.to_vec()));
    Error::usage(format!("Cannot {what} column, because {} already exists in \"{schema}\".", quoted(path)))
        .class("FIELD_ALREADY_EXISTS")
        .with("column", path.join("."))
}

/// `` `a`.`b` ``
pub(super) fn quoted(path: &[String]) -> String {
    path.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect::<Vec<_>>().join(".")
}

/// The highest id that a field has.
pub(super) fn largest_id(fields: &[Field]) -> i64 {
    let mut largest = 0;
    each(fields, &mut |field| {
        let id = field.metadata.get(COLUMN_ID).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        largest = largest.max(id);
    });
    largest
}

fn each(fields: &[Field], look: &mut impl FnMut(&Field)) {
    for field in fields {
        look(field);
        each_inside(&field.data_type, look);
    }
}

fn each_inside(of: &DataType, look: &mut impl FnMut(&Field)) {
    match of {
        DataType::Struct(inner) => each(inner, look),
        DataType::List(element) => each_inside(&element.data_type, look),
        DataType::Map(key, value) => {
            each_inside(&key.data_type, look);
            each_inside(&value.data_type, look);
        }
        _ => {}
    }
}

/// Gives the field and those inside it ids above `last` and physical names.
pub(super) fn give_ids(field: &mut Field, last: &mut i64, name: &mut impl FnMut() -> String) {
    *last += 1;
    field.physical = name();
    field.id = i32::try_from(*last).ok();
    field.metadata.insert(COLUMN_ID.to_owned(), last.to_string());
    field.metadata.insert(PHYSICAL_NAME.to_owned(), serde_json::Value::from(field.physical.as_str()).to_string());
    give_ids_inside(&mut field.data_type, last, name);
}

fn give_ids_inside(of: &mut DataType, last: &mut i64, name: &mut impl FnMut() -> String) {
    match of {
        DataType::Struct(inner) => inner.iter_mut().for_each(|field| give_ids(field, last, name)),
        DataType::List(element) => give_ids_inside(&mut element.data_type, last, name),
        DataType::Map(key, value) => {
            give_ids_inside(&mut key.data_type, last, name);
            give_ids_inside(&mut value.data_type, last, name);
        }
        _ => {}
    }
}
