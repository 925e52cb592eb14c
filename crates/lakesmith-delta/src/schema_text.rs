//! Schemas as text: `metaData.schemaString`, and the tree that Spark prints in messages.
//!
//! # Source
//! Delta PROTOCOL.md, "Schema Serialization Format"; Spark `StructType.treeString`.

use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::{DataType, Field};
use serde_json::{Map, Value, json};

/// Key of a column's metadata under which Spark keeps CHAR and VARCHAR.
pub(crate) const CHAR_VARCHAR: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// `schemaString` of these columns. The fields' own metadata is taken over; ids and physical names come later.
pub(crate) fn schema_string(fields: &[Field]) -> String {
    structure(fields).to_string()
}

fn structure(fields: &[Field]) -> Value {
    let field = |f: &Field| {
        let metadata: Map<String, Value> = f
            .metadata
            .iter()
            .map(|(key, text)| {
                let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
                (key.clone(), value)
            })
            .collect();
        json!({"name": f.name, "type": data_type(&f.data_type), "nullable": f.nullable, "metadata": metadata})
    };
    json!({"type": "struct", "fields": fields.iter().map(field).collect::<Vec<_>>()})
}

fn data_type(of: &DataType) -> Value {
    match of {
        DataType::Struct(fields) => structure(fields),
        DataType::List(element) => json!({
            "type": "array", "elementType": data_type(&element.data_type), "containsNull": element.nullable
        }),
        DataType::Map(key, value) => json!({
            "type": "map", "keyType": data_type(&key.data_type), "valueType": data_type(&value.data_type),
            "valueContainsNull": value.nullable
        }),
        other => type_name(other).into(),
    }
}

/// A type's name in a schema; for nested ones the kind alone.
pub(crate) fn type_name(of: &DataType) -> String {
    match of {
        DataType::Byte => "byte".into(),
        DataType::Short => "short".into(),
        DataType::Integer => "integer".into(),
        DataType::Long => "long".into(),
        DataType::Struct(_) => "struct".into(),
        DataType::List(_) => "array".into(),
        DataType::Map(..) => "map".into(),
        other => other.simple_string(),
    }
}

/// A type as Spark's own class for it is called, such as `LongType`.
pub(crate) fn type_class(of: &DataType) -> String {
    match of {
        DataType::Decimal { precision, scale } => format!("DecimalType({precision},{scale})"),
        DataType::TimestampNtz => "TimestampNTZType".into(),
        other => format!("{other:?}Type"),
    }
}

/// A type as SQL names it, as in `ARRAY<INT>` or `STRUCT<x: INT>`.
pub(crate) fn sql_type(of: &DataType) -> String {
    match of {
        DataType::Struct(fields) => {
            let field = |f: &Field| {
                let name = reference_name(std::slice::from_ref(&f.name));
                let not_null = if f.nullable { "" } else { " NOT NULL" };
                let comment = f.metadata.get("comment").and_then(|text| serde_json::from_str::<String>(text).ok());
                let comment = comment.map(|c| format!(" COMMENT '{}'", c.replace('\'', "\\'"))).unwrap_or_default();
                format!("{name}: {}{not_null}{comment}", sql_type(&f.data_type))
            };
            format!("STRUCT<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        DataType::List(element) => format!("ARRAY<{}>", sql_type(&element.data_type)),
        DataType::Map(key, value) => format!("MAP<{}, {}>", sql_type(&key.data_type), sql_type(&value.data_type)),
        other => other.simple_string().to_uppercase(),
    }
}

/// A column's type as SQL names it, CHAR and VARCHAR as they were written.
pub fn column_type(field: &Field) -> String {
    let written = field.metadata.get(CHAR_VARCHAR).and_then(|text| serde_json::from_str::<String>(text).ok());
    written.map_or_else(|| sql_type(&field.data_type), |text| text.to_uppercase())
}

/// The columns as Spark prints a schema.
pub(crate) fn tree(fields: &[Field]) -> String {
    let mut text = String::from("root");
    branches(fields, " |", &mut text);
    text
}

fn branches(fields: &[Field], prefix: &str, text: &mut String) {
    for field in fields {
        let nullable = format!("nullable = {}", field.nullable);
        branch(&field.name, &field.data_type, Some(&nullable), prefix, text);
    }
}

fn branch(name: &str, of: &DataType, note: Option<&str>, prefix: &str, text: &mut String) {
    let note = note.map(|n| format!(" ({n})")).unwrap_or_default();
    text.push_str(&format!("\n{prefix}-- {name}: {}{note}", type_name(of)));
    let inner = format!("{prefix}    |");
    match of {
        DataType::Struct(fields) => branches(fields, &inner, text),
        DataType::List(element) => {
            let note = format!("containsNull = {}", element.nullable);
            branch("element", &element.data_type, Some(&note), &inner, text);
        }
        DataType::Map(key, value) => {
            branch("key", &key.data_type, None, &inner, text);
            let note = format!("valueContainsNull = {}", value.nullable);
            branch("value", &value.data_type, Some(&note), &inner, text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ColumnMapping, parse_schema};

    const SCHEMA: &str = r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":false,"metadata":{"comment":"x \"y\""}},{"name":"s","type":{"type":"struct","fields":[{"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"short","containsNull":false},"valueContainsNull":true},"nullable":true,"metadata":{}}]}"#;

    #[test]
    fn a_schema_is_written_as_it_was_read() {
        let schema = parse_schema(SCHEMA, ColumnMapping::None).unwrap();
        assert_eq!(schema_string(&schema.fields), SCHEMA);
    }

    #[test]
    fn the_tree_is_sparks() {
        let schema = parse_schema(SCHEMA, ColumnMapping::None).unwrap();
        let expected = "root\n |-- a: long (nullable = false)\n |-- s: struct (nullable = true)\n |    |-- d: decimal(10,2) \
                        (nullable = true)\n |-- m: map (nullable = true)\n |    |-- key: string\n |    |-- value: array \
                        (valueContainsNull = true)\n |    |    |-- element: short (containsNull = false)";
        assert_eq!(tree(&schema.fields), expected);
        let types: Vec<String> = schema.fields.iter().map(|f| sql_type(&f.data_type)).collect();
        assert_eq!(types, ["BIGINT", "STRUCT<d: DECIMAL(10,2)>", "MAP<STRING, ARRAY<SMALLINT>>"]);
    }
}
