//! Column mapping for a table that had none: every field gets an id and a physical name. Where there are files, that is
//! the field's name, so that they stay as they are.
//!
//! # Source
//! Delta PROTOCOL.md, "Column Mapping"; Delta Spark `DeltaColumnMapping.assignColumnIdAndPhysicalName`.

use lakesmith_core::{Error, Result};
use serde_json::{Map, Value};

use crate::schema::{COLUMN_ID, NESTED_IDS, PHYSICAL_NAME};

/// The schema with ids above `max_id` and the physical names that `physical` makes of the fields' names, and the highest
/// id given.
///
/// # Errors
/// `Corrupt` if the text is no schema; `Unsupported` if a field carries an id or a physical name already, which may name
/// other columns than the files hold.
pub(crate) fn with_mapping(
    schema_string: &str,
    max_id: i64,
    physical: &mut dyn FnMut(&str) -> String,
) -> Result<(String, i64)> {
    let mut schema: Value = serde_json::from_str(schema_string)
        .map_err(|e| Error::corrupt("the table's schema is not valid JSON").caused_by(e))?;
    let mut ids = Ids { last: max_id, physical };
    ids.walk(&mut schema)?;
    Ok((schema.to_string(), ids.last))
}

struct Ids<'a> {
    last: i64,
    physical: &'a mut dyn FnMut(&str) -> String,
}

impl Ids<'_> {
    /// A field comes before those inside it, and those before its next sibling.
    fn walk(&mut self, data_type: &mut Value) -> Result<()> {
        let Some(object) = data_type.as_object_mut() else { return Ok(()) };
        if let Some(fields) = object.get_mut("fields").and_then(Value::as_array_mut) {
            for field in fields {
                self.name(field)?;
                if let Some(inner) = field.get_mut("type") {
                    self.walk(inner)?;
                }
            }
        }
        for key in ["elementType", "keyType", "valueType"] {
            if let Some(inner) = object.get_mut(key) {
                self.walk(inner)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, field: &mut Value) -> Result<()> {
        let name = field.get("name").and_then(Value::as_str).map(str::to_owned);
        let (Some(name), Some(object)) = (name, field.as_object_mut()) else {
            return Err(Error::corrupt("a field of the table's schema has no name"));
        };
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Some(metadata) = metadata.as_object_mut() else {
            return Err(Error::corrupt("the metadata of a field is no object").with("column", name));
        };
        if [PHYSICAL_NAME, COLUMN_ID, NESTED_IDS].iter().any(|key| metadata.contains_key(*key)) {
            return Err(Error::unsupported(
                "column mapping can't be enabled: the schema holds what an earlier mapping left, and the files may go by \
                 other names",
            )
            .class("DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS")
            .with("column", name));
        }
        self.last += 1;
        metadata.insert(COLUMN_ID.to_owned(), self.last.into());
        metadata.insert(PHYSICAL_NAME.to_owned(), (self.physical)(&name).into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(name: &str, data_type: Value) -> Value {
        json!({"name": name, "type": data_type, "nullable": true, "metadata": {}})
    }

    fn structure(fields: &[Value]) -> Value {
        json!({"type": "struct", "fields": fields})
    }

    #[test]
    fn ids_go_down_before_they_go_on_and_names_stay() {
        let inner = structure(&[field("x", json!("long")), field("y", json!("string"))]);
        let list = json!({"type": "array", "elementType": inner, "containsNull": true});
        let map = json!({"type": "map", "keyType": structure(&[field("k", json!("long"))]),
            "valueType": structure(&[field("v", json!("long"))]), "valueContainsNull": true});
        let schema =
            structure(&[field("a b", inner.clone()), field("l", list), field("m", map), field("z", json!("long"))]);
        let (text, last) = with_mapping(&schema.to_string(), 10, &mut str::to_owned).unwrap();
        let mut found = Vec::new();
        let mut names = Vec::new();
        fn walk(value: &Value, found: &mut Vec<i64>, names: &mut Vec<String>) {
            match value {
                Value::Array(items) => items.iter().for_each(|v| walk(v, found, names)),
                Value::Object(object) => {
                    if let Some(metadata) = object.get("metadata") {
                        found.push(metadata[COLUMN_ID].as_i64().unwrap());
                        names.push(object["name"].as_str().unwrap().to_owned());
                        assert_eq!(metadata[PHYSICAL_NAME], object["name"]);
                    }
                    object.values().for_each(|v| walk(v, found, names));
                }
                _ => {}
            }
        }
        walk(&serde_json::from_str(&text).unwrap(), &mut found, &mut names);
        assert_eq!(names, ["a b", "x", "y", "l", "x", "y", "m", "k", "v", "z"]);
        assert_eq!((found, last), ((11..=20).collect(), 20));
    }

    #[test]
    fn leftovers_of_an_earlier_mapping_are_refused() {
        let mut old = field("a", json!("long"));
        old["metadata"] = json!({PHYSICAL_NAME: "col-1"});
        let error = with_mapping(&structure(&[old]).to_string(), 0, &mut str::to_owned).unwrap_err();
        assert_eq!(error.kind(), lakesmith_core::ErrorKind::Unsupported);
        assert!(with_mapping("{", 0, &mut str::to_owned).is_err());
    }
}
