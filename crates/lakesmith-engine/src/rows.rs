//! Arrow batches as rows of JSON values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine as _;
use lakesmith::{Error, Result};
use parquet::variant::{Variant, variant_to_json};
use serde_json::{Map, Number, Value};

use crate::read::VARIANT;
use crate::statement::Output;
use crate::wall_clock::date_time;

/// The batch's rows. Fields of structs get their spelling from `output`.
///
/// # Errors
/// Corrupt for a variant that is none, Internal for a type without a JSON form.
pub(crate) fn rows(batch: &RecordBatch, output: &Output) -> Result<Vec<Vec<Value>>> {
    let schema = batch.schema();
    let columns: Vec<(&ArrayRef, &Field)> =
        batch.columns().iter().zip(schema.fields().iter().map(AsRef::as_ref)).collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|(array, field)| value(array.as_ref(), row, field.metadata(), output)).collect())
        .collect()
}

fn value(array: &dyn Array, row: usize, metadata: &HashMap<String, String>, output: &Output) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    if metadata.get(VARIANT.0).is_some_and(|v| v == VARIANT.1) {
        return variant(array, row);
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            // The digits of the shorter type are the shortest that give it back.
            if value.is_finite() { short_float(value) } else { float(value.into()) }
        }
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Binary => base64(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => base64(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => base64(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => base64(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000),
                TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1_000),
                TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
                TimeUnit::Nanosecond => {
                    Some(array.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1_000))
                }
            };
            timestamp(micros.unwrap_or(i64::MAX), zone.is_some())
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let mut object = Map::new();
            for (column, field) in parts.columns().iter().zip(fields) {
                object.insert(output.spelling(field.name()), value(column.as_ref(), row, field.metadata(), output)?);
            }
            Value::Object(object)
        }
        DataType::List(field) => list(&array.as_list::<i32>().value(row), field, output)?,
        DataType::LargeList(field) => list(&array.as_list::<i64>().value(row), field, output)?,
        DataType::FixedSizeList(field, _) => list(&array.as_fixed_size_list().value(row), field, output)?,
        DataType::Map(entries, _) => {
            let pairs = array.as_map().value(row);
            let field = match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => &fields[1],
                _ => return Err(Error::internal("a map has no values")),
            };
            let mut object = Map::new();
            for at in 0..pairs.len() {
                let key = match value(pairs.column(0).as_ref(), at, &HashMap::new(), output)? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                object.insert(key, value(pairs.column(1).as_ref(), at, field.metadata(), output)?);
            }
            Value::Object(object)
        }
        DataType::Dictionary(..) => {
            let values = array.as_any_dictionary();
            let key = values.normalized_keys()[row];
            value(values.values().as_ref(), key, metadata, output)?
        }
        _ => {
            let options = FormatOptions::default();
            let shown = ArrayFormatter::try_new(array, &options)
                .map_err(|e| Error::internal("a value cannot be shown").caused_by(e))?;
            shown.value(row).to_string().into()
        }
    })
}

fn list(values: &ArrayRef, field: &Field, output: &Output) -> Result<Value> {
    let items = (0..values.len()).map(|at| value(values.as_ref(), at, field.metadata(), output));
    items.collect::<Result<Vec<_>>>().map(Value::Array)
}

/// A variant's JSON text.
fn variant(array: &dyn Array, row: usize) -> Result<Value> {
    let parts = array.as_struct();
    let failed = |e| Error::corrupt("a variant cannot be read").class("MALFORMED_VARIANT").caused_by(e);
    let part = |name: &str| {
        let column = parts.column_by_name(name).ok_or_else(|| Error::internal("a variant lacks a part"))?;
        Ok::<_, Error>(column.slice(row, 1))
    };
    let (metadata, value) = (part("metadata")?, part("value")?);
    Variant::try_new(metadata.as_binary::<i32>().value(0), value.as_binary::<i32>().value(0)).map_err(failed)?;
    let fields = vec![Field::new("metadata", DataType::Binary, true), Field::new("value", DataType::Binary, true)];
    let one = StructArray::try_new(fields.into(), vec![metadata, value], None).map_err(failed)?;
    let text = variant_to_json(&(Arc::new(one) as ArrayRef)).map_err(failed)?;
    Ok(text.value(0).into())
}

fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

fn short_float(value: f32) -> Value {
    serde_json::from_str::<Number>(&format!("{value:?}")).map_or_else(|_| float(value.into()), Value::Number)
}

fn base64(bytes: &[u8]) -> Value {
    base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

fn date(days: i32) -> Value {
    match date_time(i64::from(days).saturating_mul(86_400_000_000)) {
        Some(time) => time.date().to_string().into(),
        None => days.into(),
    }
}

/// ISO 8601, with microseconds where there are any, and with the offset for instants.
fn timestamp(micros: i64, is_instant: bool) -> Value {
    let Some(time) = date_time(micros) else { return micros.into() };
    let fraction = if micros.rem_euclid(1_000_000) == 0 { "" } else { "%.6f" };
    let format = format!("%Y-%m-%dT%H:%M:%S{fraction}");
    format!("{}{}", time.strftime(&format), if is_instant { "+00:00" } else { "" }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_fractions_only_where_there_are_any() {
        assert_eq!(timestamp(1_767_225_600_000_000, true), "2026-01-01T00:00:00+00:00");
        assert_eq!(timestamp(1_767_225_600_123_400, false), "2026-01-01T00:00:00.123400");
        assert_eq!(timestamp(-1, false), "1969-12-31T23:59:59.999999");
        assert_eq!(date(-1), "1969-12-31");
    }

    #[test]
    fn floats_are_numbers_or_words() {
        assert_eq!(float(f64::NAN), "NaN");
        assert_eq!(float(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(short_float(1.1).to_string(), "1.1");
        assert_eq!(float(0.1).to_string(), "0.1");
    }
}
