//! Do the statistics in the log bound what the files hold?
//!
//! # Source
//! Delta PROTOCOL.md, "Per-file Statistics": tight bounds are exact but for strings, which are cut, and timestamps, which
//! are cut to milliseconds.

use lakesmith_core::table::{DataType, LeafStats, Scalar};
use serde_json::Value;

use crate::DeltaTable;
use crate::bound_values::{nested, value, widened};
use crate::stats::{has_bounds, physical_field};

/// What was found in a data file.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// Physical rows.
    pub rows: u64,
    /// Rows that the vector leaves, if every row was read.
    pub live_rows: Option<u64>,
    /// What is known of its leaves; a count of nulls that is not known is `u64::MAX`.
    pub leaves: &'a [LeafStats],
    /// True if the file has a deletion vector.
    pub has_vector: bool,
}

/// Contradictions between a file's statistics and what it holds, as sentences.
pub fn contradictions(table: &DeltaTable, statistics: &str, held: Held<'_>) -> Vec<String> {
    let Ok(Value::Object(log)) = serde_json::from_str::<Value>(statistics) else {
        return vec!["its statistics are no JSON object".to_owned()];
    };
    let mut found = Vec::new();
    let records = log.get("numRecords").and_then(Value::as_u64);
    if let Some(records) = records.filter(|records| *records != held.rows) {
        found.push(format!("numRecords is {records}, the file holds {} rows", held.rows));
    }
    let tight = log.get("tightBounds").and_then(Value::as_bool).unwrap_or(true);
    for leaf in held.leaves {
        let Some(field) = physical_field(&table.state.schema, &leaf.path) else { continue };
        let at = |key: &str| log.get(key).and_then(|v| nested(v, &leaf.path));
        let name = leaf.path.join(".");
        if let Some(nulls) = at("nullCount").and_then(Value::as_u64).filter(|_| leaf.null_count != u64::MAX) {
            let wrong = if tight && !held.has_vector {
                nulls != leaf.null_count
            } else {
                // Bounds that are not tight only tell "none" and "all" apart from the rest.
                let rows = held.live_rows.unwrap_or(held.rows);
                (nulls == 0 && leaf.null_count > 0) || (Some(nulls) == records && leaf.null_count < rows)
            };
            if wrong {
                found.push(format!("nullCount of {name} is {nulls}, {} values are null", leaf.null_count));
            }
        }
        if !has_bounds(&field.data_type) {
            continue;
        }
        let bound = |key: &str| at(key).and_then(|v| value(&field.data_type, v));
        let exact = held.live_rows.is_some() && tight && !held.has_vector && is_kept_whole(&field.data_type);
        if let (Some(log), Some(real)) = (bound("minValues"), &leaf.min)
            && (log > *real || exact && log != *real)
        {
            found.push(format!("minValues of {name} is {}, the smallest value is {}", shown(&log), shown(real)));
        }
        if let (Some(log), Some(real)) = (bound("maxValues"), &leaf.max)
            && (widened(log.clone()) < *real || exact && log != *real)
        {
            found.push(format!("maxValues of {name} is {}, the largest value is {}", shown(&log), shown(real)));
        }
    }
    found
}

/// Types whose bounds are neither cut nor written in several ways.
fn is_kept_whole(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Byte
            | DataType::Short
            | DataType::Integer
            | DataType::Long
            | DataType::Date
            | DataType::Decimal { .. }
    )
}

fn shown(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Long(v) => v.to_string(),
        Scalar::Double(v) => v.to_string(),
        Scalar::Boolean(v) => v.to_string(),
        Scalar::String(text) => format!("{text:?}"),
        other => format!("{other:?}"),
    }
}
