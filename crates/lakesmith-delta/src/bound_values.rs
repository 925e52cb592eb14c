//! Bounds in statistics, read back as typed values.
//!
//! # Source
//! Delta PROTOCOL.md, "Per-file Statistics": timestamps are cut to milliseconds.

use lakesmith_core::table::{DataType, Scalar};
use serde_json::Value;

use crate::partition_value::typed;

/// A maximum may lack what its cut to milliseconds took away.
const LOST_MICROS: i64 = 999;

/// The value at a nested path, unless it is null.
pub(crate) fn nested<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, part| value.get(part)).filter(|v| !v.is_null())
}

/// A bound by its type; `None` if it is none.
pub(crate) fn value(data_type: &DataType, json: &Value) -> Option<Scalar> {
    match json {
        Value::String(text) => typed(data_type, text),
        Value::Number(number) => typed(data_type, &number.to_string()),
        _ => None,
    }
}

/// A maximum that is surely none too small.
pub(crate) fn widened(max: Scalar) -> Scalar {
    match max {
        Scalar::Timestamp(micros) => Scalar::Timestamp(micros.saturating_add(LOST_MICROS)),
        Scalar::TimestampNtz(micros) => Scalar::TimestampNtz(micros.saturating_add(LOST_MICROS)),
        other => other,
    }
}
