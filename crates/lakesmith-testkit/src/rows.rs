//! Rows made from their number, and what the log says about a file of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;
use lakesmith_core::{Error, Result};
use serde_json::{Map, Value, json};

/// Microseconds of row 0's timestamp: 2024-01-01T00:00:00Z.
const FIRST_MICROS: i64 = 1_704_067_200_000_000;

/// Rows `from..from + count`: integers hold the number, strings `row-<number>`.
pub(crate) fn generate(schema: &Schema, from: u64, count: u64) -> Result<RecordBatch> {
    let numbers: Vec<i64> = (from..from + count).map(|n| n as i64).collect();
    let columns: Vec<ArrayRef> = schema.fields().iter().map(|f| column(f, &numbers)).collect::<Result<_>>()?;
    RecordBatch::try_new(Arc::new(schema.clone()), columns).map_err(arrow_error)
}

fn column(field: &Field, numbers: &[i64]) -> Result<ArrayRef> {
    let n = || numbers.iter().copied();
    Ok(match field.data_type() {
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(n())),
        DataType::Int32 => Arc::new(Int32Array::from_iter_values(n().map(|i| i as i32))),
        DataType::Int16 => Arc::new(Int16Array::from_iter_values(n().map(|i| i as i16))),
        DataType::Int8 => Arc::new(Int8Array::from_iter_values(n().map(|i| i as i8))),
        DataType::Float64 => Arc::new(Float64Array::from_iter_values(n().map(|i| i as f64 / 4.0))),
        DataType::Float32 => Arc::new(Float32Array::from_iter_values(n().map(|i| i as f32 / 4.0))),
        DataType::Boolean => Arc::new(BooleanArray::from_iter(n().map(|i| Some(i % 2 == 0)))),
        DataType::Utf8 => Arc::new(StringArray::from_iter_values(n().map(|i| format!("row-{i}")))),
        DataType::Date32 => Arc::new(Date32Array::from_iter_values(n().map(|i| i as i32))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => Arc::new(
            TimestampMicrosecondArray::from_iter_values(n().map(|i| FIRST_MICROS + i)).with_timezone_opt(zone.clone()),
        ),
        DataType::Decimal128(precision, scale) => Arc::new(
            Decimal128Array::from_iter_values(n().map(i128::from))
                .with_precision_and_scale(*precision, *scale)
                .map_err(arrow_error)?,
        ),
        other => {
            return Err(Error::usage(format!("rows of type {other} cannot be made up; append a batch"))
                .with("column", field.name()));
        }
    })
}

/// The `stats` of a file: rows and null counts of all columns, bounds of integers and short strings.
pub(crate) fn stats(batch: &RecordBatch, tight_bounds: Option<bool>) -> Value {
    let (mut mins, mut maxes, mut nulls) = (Map::new(), Map::new(), Map::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        nulls.insert(field.name().clone(), json!(column.null_count()));
        if let Some((min, max)) = bounds(column) {
            mins.insert(field.name().clone(), min);
            maxes.insert(field.name().clone(), max);
        }
    }
    let mut stats = json!({"numRecords": batch.num_rows(), "minValues": mins, "maxValues": maxes, "nullCount": nulls});
    if let Some(tight) = tight_bounds {
        stats["tightBounds"] = json!(tight);
    }
    stats
}

fn bounds(column: &ArrayRef) -> Option<(Value, Value)> {
    fn ends<T: Ord + Copy + Into<Value>>(values: impl Iterator<Item = T> + Clone) -> Option<(Value, Value)> {
        Some((values.clone().min()?.into(), values.max()?.into()))
    }
    if let Some(longs) = column.as_any().downcast_ref::<Int64Array>() {
        return ends(longs.iter().flatten());
    }
    if let Some(integers) = column.as_any().downcast_ref::<Int32Array>() {
        return ends(integers.iter().flatten());
    }
    let strings = column.as_any().downcast_ref::<StringArray>()?;
    // Longer ones would have to be cut as Spark cuts them.
    strings.iter().flatten().all(|s| s.chars().count() <= 32).then(|| ends(strings.iter().flatten()))?
}

pub(crate) fn arrow_error(source: ArrowError) -> Error {
    Error::internal("the test rows cannot be built").caused_by(source)
}
