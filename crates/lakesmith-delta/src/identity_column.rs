//! Identity columns: their high-water marks live in the schema, and must never go back.
//!
//! # Source
//! Delta PROTOCOL.md, "Identity Columns"; Delta Spark `IdentityColumn.copySchemaWithMergedHighWaterMarks`.

use lakesmith_core::{Error, Result};
use serde_json::Value;

const STEP: &str = "delta.identity.step";
const MARK: &str = "delta.identity.highWaterMark";

/// The schema `of` with the marks of `current` where those have gone further.
///
/// # Errors
/// `Corrupt` if a text is no schema.
pub(crate) fn with_later_marks(of: &str, current: &str) -> Result<String> {
    if !of.contains(STEP) {
        return Ok(of.to_owned());
    }
    let (mut schema, current) = (parse(of)?, parse(current)?);
    for field in schema.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = field.get("name").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let is_it = |other: &&Value| {
            other.get("name").and_then(Value::as_str).is_some_and(|other| other.to_lowercase() == name)
        };
        let now = current.get("fields").and_then(Value::as_array).into_iter().flatten().find(is_it);
        let number = |field: Option<&Value>, key| field?.get("metadata")?.get(key)?.as_i64();
        let (Some(step), Some(now)) = (number(Some(field), STEP), number(now, MARK)) else { continue };
        let then = number(Some(field), MARK);
        let is_later = then.is_none_or(|then| if step > 0 { now > then } else { now < then });
        if let (true, Some(metadata)) = (is_later, field.get_mut("metadata").and_then(Value::as_object_mut)) {
            metadata.insert(MARK.to_owned(), now.into());
        }
    }
    Ok(schema.to_string())
}

fn parse(schema: &str) -> Result<Value> {
    serde_json::from_str(schema).map_err(|e| Error::corrupt("the table's schema is not valid JSON").caused_by(e))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_only_go_on() {
        let schema = |name: &str, step: i64, mark: Option<i64>| {
            let mut metadata = json!({ STEP: step });
            if let Some(mark) = mark {
                metadata[MARK] = mark.into();
            }
            json!({"type": "struct", "fields": [{"name": name, "type": "long", "metadata": metadata}]}).to_string()
        };
        for (step, then, now, expected) in [
            (1, Some(5), Some(9), Some(9)),
            (1, Some(9), Some(5), Some(9)),
            (-2, Some(-5), Some(-9), Some(-9)),
            (-2, Some(-9), Some(-5), Some(-9)),
            (1, None, Some(9), Some(9)),
            (1, Some(9), None, Some(9)),
        ] {
            let merged = with_later_marks(&schema("Id", step, then), &schema("id", step, now)).unwrap();
            assert_eq!(merged, schema("Id", step, expected), "{step} {then:?} {now:?}");
        }
        let none = r#"{"type":"struct","fields":[]}"#;
        assert_eq!(with_later_marks(none, "not looked at").unwrap(), none);
    }
}
