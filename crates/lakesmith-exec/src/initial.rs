//! The value that a column has in files which were written before it existed.
//!
//! # Source
//! Iceberg spec, "Default values" and "JSON single-value serialization".

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};
use serde_json::Value;

use crate::cast;

/// Metadata of a field that holds the value as JSON.
const INITIAL_DEFAULT: &str = "initial-default";

/// The value as an array of one row; NULL if the field has none. Of the type `to`, but for text, which comes as its bytes.
///
/// # Errors
/// Corrupt if it is no value of the type.
pub(crate) fn value(field: &Field, to: &ArrowType) -> Result<ArrayRef> {
    let Some(json) = field.metadata.get(INITIAL_DEFAULT) else { return Ok(new_null_array(to, 1)) };
    let wrong = || {
        Error::corrupt(format!(
            "the initial default {json} of a column is no value of its type {}; repair the table's schema",
            field.data_type.simple_string()
        ))
        .with("column", &field.name)
    };
    let text = match serde_json::from_str(json).map_err(|e| wrong().caused_by(e))? {
        Value::Null => return Ok(new_null_array(to, 1)),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => value,
        Value::Array(_) | Value::Object(_) => return Err(wrong()),
    };
    let bytes = match &field.data_type {
        DataType::String => Some(text.clone().into_bytes()),
        DataType::Binary => Some(from_hex(&text).ok_or_else(wrong)?),
        _ => None,
    };
    if let Some(bytes) = bytes {
        return Ok(Arc::new(BinaryArray::from_vec(vec![&bytes])));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    // Arrow reads offsets, and no names of zones.
    let with_offset = ArrowType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let parsed = if field.data_type == DataType::Timestamp { &with_offset } else { to };
    let array = cast_with_options(&text, parsed, &options).map_err(|e| wrong().caused_by(e))?;
    let cast = cast::plan(parsed, to).ok_or_else(wrong)?;
    cast::apply(cast, &array, to).map_err(|e| wrong().caused_by(e))
}

/// The same of the type `to` in any case; `None` if the field has none.
///
/// # Errors
/// As [`value`].
pub(crate) fn of_absent(field: &Field, to: &ArrowType) -> Result<Option<ArrayRef>> {
    if !field.metadata.contains_key(INITIAL_DEFAULT) {
        return Ok(None);
    }
    let found = value(field, to)?;
    if found.data_type() == to {
        return Ok(Some(found));
    }
    let wrong =
        |e| Error::corrupt("the initial default of a column is no text").with("column", &field.name).caused_by(e);
    cast_with_options(&found, to, &CastOptions { safe: false, ..CastOptions::default() }).map(Some).map_err(wrong)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use lakesmith_core::table::Scalar;

    use super::*;
    use crate::constants::value_at;
    use crate::target::primitive_type;

    fn initial(data_type: DataType, json: Option<&str>) -> Result<Scalar> {
        let to = match &data_type {
            DataType::String => ArrowType::Binary,
            other => primitive_type(other).unwrap(),
        };
        let metadata = json.map(|json| (INITIAL_DEFAULT.to_owned(), json.to_owned())).into_iter().collect();
        let name = "c".to_owned();
        let field = Field { physical: name.clone(), name, id: Some(1), data_type, nullable: true, metadata };
        value(&field, &to).and_then(|array| value_at(&array, 0))
    }

    #[test]
    fn values_are_read_from_their_json() {
        let cases = [
            (DataType::Boolean, "true", Scalar::Boolean(true)),
            (DataType::Integer, "-34", Scalar::Long(-34)),
            (DataType::Long, "9223372036854775807", Scalar::Long(i64::MAX)),
            (DataType::Float, "1.5", Scalar::Double(1.5)),
            (DataType::Double, "-1e300", Scalar::Double(-1e300)),
            (DataType::Decimal { precision: 9, scale: 2 }, "\"14.20\"", Scalar::Decimal(1420, 2)),
            (DataType::Date, "\"2017-11-16\"", Scalar::Date(17_486)),
            (DataType::Timestamp, "\"1970-01-02T00:00:00.000001+00:00\"", Scalar::Timestamp(86_400_000_001)),
            (DataType::TimestampNtz, "\"1969-12-31T23:59:59.999999\"", Scalar::TimestampNtz(-1)),
            (DataType::String, "\"\\u00fc\"", Scalar::Binary("ü".into())),
            (DataType::Binary, "\"00ffA1\"", Scalar::Binary(vec![0, 255, 161])),
            (DataType::Binary, "null", Scalar::Null),
        ];
        for (data_type, json, expected) in cases {
            assert_eq!(initial(data_type.clone(), Some(json)).unwrap(), expected, "{data_type:?}");
        }
        assert_eq!(initial(DataType::Long, None).unwrap(), Scalar::Null);
    }

    #[test]
    fn other_values_are_refused() {
        let cases = [(DataType::Integer, "2147483648"), (DataType::Date, "\"soon\""), (DataType::Binary, "\"0\"")];
        for (data_type, json) in cases.into_iter().chain([(DataType::Long, "[1]"), (DataType::Long, "{")]) {
            let error = initial(data_type.clone(), Some(json)).unwrap_err();
            assert_eq!(error.kind(), lakesmith_core::ErrorKind::Corrupt, "{data_type:?} {json}");
        }
    }
}
