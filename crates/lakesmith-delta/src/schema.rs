//! The table's schema: `metaData.schemaString` to the core's [`Schema`], and column paths between their logical and
//! physical names.
//!
//! # Source
//! Delta PROTOCOL.md, "Schema Serialization Format" and "Column Mapping".

use std::collections::BTreeMap;

use lakesmith_core::table::{DataType, Field, Schema};
use lakesmith_core::{Error, Result};
use serde_json::{Map, Value};

pub(crate) const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
pub(crate) const COLUMN_ID: &str = "delta.columnMapping.id";
pub(crate) const NESTED_IDS: &str = "delta.columnMapping.nested.ids";

/// How a table maps logical columns to those in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMapping {
    /// Files hold the logical names.
    None,
    /// Files are matched by physical name.
    Name,
    /// Files are matched by field id.
    Id,
}

impl ColumnMapping {
    /// From the table's properties.
    ///
    /// # Errors
    /// [`lakesmith_core::ErrorKind::Unsupported`] for an unknown mode.
    pub fn of(properties: &BTreeMap<String, String>) -> Result<Self> {
        let mode = properties.get("delta.columnMapping.mode").map_or("none", String::as_str);
        match mode.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "name" => Ok(Self::Name),
            "id" => Ok(Self::Id),
            _ => Err(Error::unsupported(format!("the column mapping mode '{mode}' is not known"))
                .with("property", "delta.columnMapping.mode")),
        }
    }
}

/// Parses `schemaString`. Fields carry physical names and ids only if the table maps columns.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Corrupt`] if the text is not a schema, `Unsupported` for a type that is not known.
pub fn parse_schema(schema_string: &str, mapping: ColumnMapping) -> Result<Schema> {
    let json: Value = serde_json::from_str(schema_string)
        .map_err(|e| Error::corrupt("the table's schema is not valid JSON").caused_by(e))?;
    match (Parser { mapping }).data_type(&json, None)? {
        DataType::Struct(fields) => Ok(Schema { fields }),
        other => Err(Error::corrupt(format!("the table's schema is a {}, not a struct", other.simple_string()))),
    }
}

/// Ids of list elements, map keys and values: kept on the nearest enclosing struct field, by path below it.
struct NestedIds<'a> {
    ids: Option<&'a Map<String, Value>>,
    path: String,
}

struct Parser {
    mapping: ColumnMapping,
}

impl Parser {
    fn data_type(&self, json: &Value, nested: Option<&NestedIds<'_>>) -> Result<DataType> {
        if let Some(name) = json.as_str() {
            return primitive(name);
        }
        let part = |key: &str| json.get(key).ok_or_else(|| malformed(&format!("a type lacks '{key}'")));
        let boolean = |key: &str| part(key)?.as_bool().ok_or_else(|| malformed(&format!("'{key}' is not a boolean")));
        match part("type")?.as_str() {
            Some("struct") => {
                let fields = part("fields")?.as_array().ok_or_else(|| malformed("'fields' is not a list"))?;
                Ok(DataType::Struct(fields.iter().map(|f| self.field(f)).collect::<Result<_>>()?))
            }
            Some("array") => {
                let element = self.nested("element", part("elementType")?, boolean("containsNull")?, nested)?;
                Ok(DataType::List(Box::new(element)))
            }
            Some("map") => {
                let key = self.nested("key", part("keyType")?, false, nested)?;
                let value = self.nested("value", part("valueType")?, boolean("valueContainsNull")?, nested)?;
                Ok(DataType::Map(Box::new(key), Box::new(value)))
            }
            Some(other) => Err(unknown_type(other)),
            None => Err(malformed("a type has no name")),
        }
    }

    fn field(&self, json: &Value) -> Result<Field> {
        let name = json.get("name").and_then(Value::as_str).ok_or_else(|| malformed("a field has no name"))?;
        let empty = Map::new();
        let metadata = json.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let mapped = self.mapping != ColumnMapping::None;
        let physical = if mapped {
            metadata.get(PHYSICAL_NAME).and_then(Value::as_str).ok_or_else(|| {
                malformed("a column has no physical name although the table maps columns").with("column", name)
            })?
        } else {
            name
        };
        let id = if mapped { metadata.get(COLUMN_ID).and_then(as_id) } else { None };
        let ids = metadata.get(NESTED_IDS).and_then(Value::as_object).filter(|_| mapped);
        let nested = NestedIds { ids, path: physical.to_owned() };
        let type_json = json.get("type").ok_or_else(|| malformed("a field has no type").with("column", name))?;
        Ok(Field {
            name: name.to_owned(),
            physical: physical.to_owned(),
            id,
            data_type: self.data_type(type_json, Some(&nested)).map_err(|e| e.with("column", name))?,
            nullable: json.get("nullable").and_then(Value::as_bool).unwrap_or(true),
            metadata: metadata.iter().map(|(k, v)| (k.clone(), v.to_string())).collect(),
        })
    }

    fn nested(&self, name: &str, json: &Value, nullable: bool, parent: Option<&NestedIds<'_>>) -> Result<Field> {
        let (ids, path) = parent.map_or((None, name.to_owned()), |p| (p.ids, format!("{}.{name}", p.path)));
        let id = ids.and_then(|ids| ids.get(&path)).and_then(as_id);
        Ok(Field {
            name: name.to_owned(),
            physical: name.to_owned(),
            id,
            data_type: self.data_type(json, Some(&NestedIds { ids, path }))?,
            nullable,
            metadata: BTreeMap::new(),
        })
    }
}

fn as_id(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|id| i32::try_from(id).ok())
}

fn primitive(name: &str) -> Result<DataType> {
    Ok(match name {
        "boolean" => DataType::Boolean,
        "byte" => DataType::Byte,
        "short" => DataType::Short,
        "integer" => DataType::Integer,
        "long" => DataType::Long,
        "float" => DataType::Float,
        "double" => DataType::Double,
        "decimal" => DataType::Decimal { precision: 10, scale: 0 },
        "string" => DataType::String,
        "binary" => DataType::Binary,
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp,
        "timestamp_ntz" => DataType::TimestampNtz,
        "variant" => DataType::Variant,
        "void" | "null" => DataType::Null,
        _ => return decimal(name).ok_or_else(|| unknown_type(name)),
    })
}

fn decimal(name: &str) -> Option<DataType> {
    let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
    let valid = (1..=38).contains(&precision) && (0..=precision as i8).contains(&scale);
    valid.then_some(DataType::Decimal { precision, scale })
}

fn unknown_type(name: &str) -> Error {
    Error::unsupported(format!("the column type '{name}' is not known; a newer version may read it"))
        .class("DELTA_UNSUPPORTED_DATA_TYPES")
}

fn malformed(why: &str) -> Error {
    Error::corrupt(format!("the table's schema is malformed: {why}"))
}

/// Logical path of a column given by its physical path.
pub fn logical_path(schema: &Schema, physical: &[String]) -> Option<Vec<String>> {
    walk(schema, physical, |f| &f.physical, |f| f.name.clone())
}

fn walk<T>(
    schema: &Schema,
    path: &[String],
    key: impl Fn(&Field) -> &String,
    value: impl Fn(&Field) -> T,
) -> Option<Vec<T>> {
    let mut fields = &schema.fields;
    let mut found = Vec::with_capacity(path.len());
    for (depth, part) in path.iter().enumerate() {
        let field = fields.iter().find(|f| key(f) == part)?;
        found.push(value(field));
        match &field.data_type {
            DataType::Struct(inner) => fields = inner,
            _ if depth + 1 == path.len() => {}
            _ => return None,
        }
    }
    Some(found)
}

/// A column given by its logical path, without regard to case.
pub fn find_column<'a>(schema: &'a Schema, path: &[String]) -> Option<Vec<&'a Field>> {
    let mut fields = &schema.fields;
    let mut found = Vec::with_capacity(path.len());
    for (depth, part) in path.iter().enumerate() {
        let field = fields
            .iter()
            .find(|f| f.name == *part)
            .or_else(|| fields.iter().find(|f| f.name.to_lowercase() == part.to_lowercase()))?;
        found.push(field);
        match &field.data_type {
            DataType::Struct(inner) => fields = inner,
            _ if depth + 1 == path.len() => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Splits `` a.`b.c`, d `` into column paths. A backtick inside backticks is doubled.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Usage`] if a name is empty or a backtick stays open.
pub fn parse_column_list(text: &str) -> Result<Vec<Vec<String>>> {
    let wrong = |why: &str| Error::usage(format!("'{text}' is not a list of columns: {why}"));
    let mut columns = Vec::new();
    let mut path = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.peek().is_some_and(|c| c.is_whitespace()) {
            chars.next();
        }
        let mut part = String::new();
        if chars.next_if_eq(&'`').is_some() {
            loop {
                match chars.next() {
                    Some('`') if chars.next_if_eq(&'`').is_some() => part.push('`'),
                    Some('`') => break,
                    Some(c) => part.push(c),
                    None => return Err(wrong("a backtick is not closed")),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| !matches!(c, '.' | ',' | '`')) {
                part.push(c);
            }
            part.truncate(part.trim_end().len());
        }
        if part.is_empty() {
            return Err(wrong("a name is empty"));
        }
        path.push(part);
        while chars.peek().is_some_and(|c| c.is_whitespace()) {
            chars.next();
        }
        match chars.next() {
            Some('.') => {}
            Some(',') => columns.push(std::mem::take(&mut path)),
            None => {
                columns.push(path);
                return Ok(columns);
            }
            Some(_) => return Err(wrong("names are separated by commas")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|s| (*s).to_string()).collect()
    }

    const MAPPED: &str = r#"{"type":"struct","fields":[
        {"name":"a","type":"integer","nullable":false,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"p-1"}},
        {"name":"s","type":{"type":"struct","fields":[
            {"name":"x","type":"decimal(10,2)","nullable":true,"metadata":{"delta.columnMapping.id":3,"delta.columnMapping.physicalName":"p-3"}}
        ]},"nullable":true,"metadata":{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"p-2"}},
        {"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"long","containsNull":true},"valueContainsNull":false},
         "nullable":true,"metadata":{"delta.columnMapping.id":4,"delta.columnMapping.physicalName":"p-4",
         "delta.columnMapping.nested.ids":{"p-4.key":5,"p-4.value":6,"p-4.value.element":7}}}]}"#;

    #[test]
    fn mapped_columns_keep_physical_names_and_nested_ids() {
        let schema = parse_schema(MAPPED, ColumnMapping::Name).unwrap();
        assert_eq!(schema.fields[0].physical, "p-1");
        assert!(!schema.fields[0].nullable);
        assert_eq!(logical_path(&schema, &strings(&["p-2", "p-3"])), Some(strings(&["s", "x"])));
        assert_eq!(logical_path(&schema, &strings(&["p-1", "p-3"])), None);
        let DataType::Map(key, value) = &schema.fields[2].data_type else { panic!("a map was written") };
        let DataType::List(element) = &value.data_type else { panic!("a list was written") };
        assert_eq!((key.id, value.id, element.id), (Some(5), Some(6), Some(7)));
        assert!(!value.nullable && element.nullable);
    }

    #[test]
    fn without_mapping_the_metadata_is_ignored() {
        let schema = parse_schema(MAPPED, ColumnMapping::None).unwrap();
        assert_eq!((schema.fields[0].physical.as_str(), schema.fields[0].id), ("a", None));
        let found = find_column(&schema, &strings(&["S", "X"])).unwrap();
        assert_eq!(found[1].data_type, DataType::Decimal { precision: 10, scale: 2 });
    }

    #[test]
    fn malformed_schemas_are_refused() {
        for text in
            ["", "[]", "{}", r#""long""#, r#"{"type":"struct"}"#, r#"{"type":"struct","fields":[{"name":"a"}]}"#]
        {
            assert_eq!(parse_schema(text, ColumnMapping::None).unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
        }
        let text = r#"{"type":"struct","fields":[{"name":"a","type":"interval day","nullable":true,"metadata":{}}]}"#;
        let error = parse_schema(text, ColumnMapping::None).unwrap_err();
        assert_eq!(error.kind(), lakesmith_core::ErrorKind::Unsupported);
        assert_eq!(error.context_value("column"), Some("a"));
    }

    #[test]
    fn column_lists_may_be_quoted_and_nested() {
        assert_eq!(parse_column_list("a, b.c").unwrap(), vec![strings(&["a"]), strings(&["b", "c"])]);
        assert_eq!(parse_column_list("`a.b`.`c``d`").unwrap(), vec![strings(&["a.b", "c`d"])]);
        for text in ["", "a,", ".a", "`a", "a`b`"] {
            assert!(parse_column_list(text).is_err(), "{text}");
        }
    }
}
