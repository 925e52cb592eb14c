//! An Avro schema with Iceberg's ids.

use std::collections::BTreeMap;

use lakesmith_core::{Error, Result};
use serde_json::Value;

/// Types inside types at most.
const DEPTH_MAX: usize = 64;
/// Types of a schema at most, a named type counted wherever it is used.
const TYPES_MAX: usize = 100_000;

/// A type; logical types are what they are stored as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AvroSchema {
    Null,
    Boolean,
    /// An int or a long: their encodings are one.
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum,
    Array(Box<AvroSchema>),
    Map(Box<AvroSchema>),
    Union(Vec<AvroSchema>),
    Record(Vec<AvroField>),
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AvroField {
    pub(crate) name: String,
    /// Iceberg's `field-id`.
    pub(crate) id: Option<i32>,
    pub(crate) schema: AvroSchema,
}

impl AvroSchema {
    /// # Errors
    /// `Corrupt` if the text is no schema.
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(text)
            .map_err(|e| Error::corrupt("the Avro schema of the file is not JSON").caused_by(e))?;
        Parser { named: BTreeMap::new(), types: 0 }.parse(&json, "", 0)
    }
}

struct Parser {
    /// Named types met so far, with the number of types in each.
    named: BTreeMap<String, (AvroSchema, usize)>,
    types: usize,
}

impl Parser {
    fn parse(&mut self, json: &Value, space: &str, depth: usize) -> Result<AvroSchema> {
        self.types += 1;
        if depth > DEPTH_MAX || self.types > TYPES_MAX {
            return Err(wrong("it is nested too deeply or too large"));
        }
        match json {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.parse(branch, space, depth + 1));
                Ok(AvroSchema::Union(branches.collect::<Result<_>>()?))
            }
            Value::Object(object) => {
                let part = |key: &str| object.get(key).ok_or_else(|| wrong(&format!("a type lacks its {key:?}")));
                match part("type")? {
                    Value::String(kind) => match kind.as_str() {
                        "array" => Ok(AvroSchema::Array(Box::new(self.parse(part("items")?, space, depth + 1)?))),
                        "map" => Ok(AvroSchema::Map(Box::new(self.parse(part("values")?, space, depth + 1)?))),
                        "record" | "error" => self.define(json, space, |parser, space| {
                            let fields = part("fields")?.as_array().ok_or_else(|| wrong("a record has no fields"))?;
                            let fields = fields.iter().map(|field| parser.field(field, space, depth + 1));
                            Ok(AvroSchema::Record(fields.collect::<Result<_>>()?))
                        }),
                        "fixed" => self.define(json, space, |_, _| {
                            let size = part("size")?.as_u64().and_then(|size| usize::try_from(size).ok());
                            size.map(AvroSchema::Fixed).ok_or_else(|| wrong("a fixed type has no size"))
                        }),
                        "enum" => self.define(json, space, |_, _| Ok(AvroSchema::Enum)),
                        name => self.named(name, space),
                    },
                    inner => self.parse(inner, space, depth + 1),
                }
            }
            _ => Err(wrong("a type is neither a name, nor a list, nor an object")),
        }
    }

    fn field(&mut self, json: &Value, space: &str, depth: usize) -> Result<AvroField> {
        let name = json.get("name").and_then(Value::as_str).ok_or_else(|| wrong("a field has no name"))?;
        let schema = json.get("type").ok_or_else(|| wrong("a field has no type"))?;
        let id = json.get("field-id").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
        Ok(AvroField { name: name.to_owned(), id, schema: self.parse(schema, space, depth)? })
    }

    fn define(
        &mut self,
        json: &Value,
        space: &str,
        schema: impl FnOnce(&mut Self, &str) -> Result<AvroSchema>,
    ) -> Result<AvroSchema> {
        let name = json.get("name").and_then(Value::as_str).ok_or_else(|| wrong("a named type has no name"))?;
        let space = match (json.get("namespace").and_then(Value::as_str), name.rsplit_once('.')) {
            (_, Some((space, _))) | (Some(space), None) => space,
            (None, None) => space,
        };
        let before = self.types;
        let schema = schema(self, space)?;
        self.named.insert(full_name(name, space), (schema.clone(), self.types - before + 1));
        Ok(schema)
    }

    fn named(&mut self, name: &str, space: &str) -> Result<AvroSchema> {
        Ok(match name {
            "null" => AvroSchema::Null,
            "boolean" => AvroSchema::Boolean,
            "int" | "long" => AvroSchema::Long,
            "float" => AvroSchema::Float,
            "double" => AvroSchema::Double,
            "bytes" => AvroSchema::Bytes,
            "string" => AvroSchema::Text,
            name => {
                let known = self.named.get(&full_name(name, space)).or_else(|| self.named.get(name));
                let (schema, types) = known.ok_or_else(|| wrong(&format!("the type {name:?} is not known")))?;
                self.types += types;
                if self.types > TYPES_MAX {
                    return Err(wrong("it is too large"));
                }
                schema.clone()
            }
        })
    }
}

fn full_name(name: &str, space: &str) -> String {
    if space.is_empty() || name.contains('.') { name.to_owned() } else { format!("{space}.{name}") }
}

fn wrong(why: &str) -> Error {
    Error::corrupt(format!("the Avro schema of the file cannot be understood: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_logical_types_and_named_types_are_understood() {
        let text = r#"{"type": "record", "name": "a.entry", "fields": [
            {"name": "x", "field-id": 7, "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "y", "type": {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}},
            {"name": "z", "type": {"type": "array", "items": "u"}}]}"#;
        let AvroSchema::Record(fields) = AvroSchema::parse(text.as_bytes()).unwrap() else { panic!("a record") };
        assert_eq!(fields[0].id, Some(7));
        assert_eq!(fields[0].schema, AvroSchema::Union(vec![AvroSchema::Null, AvroSchema::Long]));
        assert_eq!(fields[2].schema, AvroSchema::Array(Box::new(AvroSchema::Fixed(16))));
    }

    #[test]
    fn what_is_no_schema_or_grows_without_end_is_refused() {
        let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(100), "}".repeat(100));
        let mut doubling = String::from(r#"{"type":"record","name":"r0","fields":[{"name":"x","type":"int"}]}"#);
        for level in 1..40 {
            let before = level - 1;
            doubling = format!(
                r#"{{"type":"record","name":"r{level}","fields":[{{"name":"a","type":{doubling}}},
                {{"name":"b","type":"r{before}"}}]}}"#
            );
        }
        for text in ["", "7", "{}", r#""unheard""#, r#"{"type":"record","name":"r"}"#, &deep, &doubling] {
            assert!(AvroSchema::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
