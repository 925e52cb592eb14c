//! Identity columns: their high-water marks live in the schema, and must never go back.
//!
//! # Source
//! Delta PROTOCOL.md, "Identity Columns"; Delta Spark `IdentityColumn.copySchemaWithMergedHighWaterMarks`.

use lakesmith_core::table::Field;
use lakesmith_core::{Error, Result};
use serde_json::Value;

use crate::log_state::DeltaTable;
use crate::properties::NewConfiguration;

const START: &str = "delta.identity.start";
const STEP: &str = "delta.identity.step";
const MARK: &str = "delta.identity.highWaterMark";
const EXPLICIT: &str = "delta.identity.allowExplicitInsert";

/// How a column numbers its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The next number; `None` if there is none that fits.
    pub next: Option<i64>,
    /// From one number to the next.
    pub step: i64,
    /// Whether rows may bring their own numbers.
    pub takes_values: bool,
}

/// How the column numbers its rows, if it does.
pub(crate) fn identity(field: &Field) -> Option<Identity> {
    let number = |key: &str| field.metadata.get(key).and_then(|text| text.parse::<i64>().ok());
    let step = number(STEP)?;
    let next = match number(MARK) {
        Some(mark) => mark.checked_add(step),
        None => Some(number(START).unwrap_or(1)),
    };
    let takes_values = field.metadata.get(EXPLICIT).is_some_and(|text| text == "true");
    Some(Identity { next, step, takes_values })
}

/// The table's metadata after so many rows were numbered by each of these columns, given by their places.
///
/// # Errors
/// `Corrupt` if the schema is none; Usage if numbers ran out.
pub fn after_numbers(table: &DeltaTable, numbered: &[(usize, u64)]) -> Result<NewConfiguration> {
    let mut metadata = table.log.metadata.clone();
    let mut schema = parse(&metadata.schema_string)?;
    let fields = schema.get_mut("fields").and_then(Value::as_array_mut);
    let fields = fields.ok_or_else(|| Error::corrupt("the table's schema has no fields"))?;
    for (place, count) in numbered.iter().filter(|(_, count)| *count > 0) {
        let known = table.state.schema.fields.get(*place);
        let last = known.and_then(identity).and_then(|identity| {
            let steps = i64::try_from(count - 1).ok()?.checked_mul(identity.step)?;
            identity.next?.checked_add(steps)
        });
        let last =
            last.ok_or_else(|| Error::usage("an identity column ran out of numbers").class("ARITHMETIC_OVERFLOW"))?;
        let field = fields.get_mut(*place).and_then(|field| field.get_mut("metadata")).and_then(Value::as_object_mut);
        field.ok_or_else(|| Error::corrupt("an identity column has no metadata"))?.insert(MARK.to_owned(), last.into());
    }
    metadata.schema_string = schema.to_string();
    Ok(NewConfiguration { metadata: Some(metadata), ..NewConfiguration::default() })
}

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
