//! Widening of values from the type that a file holds to the table's type; nothing is ever changed silently.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::error::ArrowError;

const MICROS_A_DAY: i64 = 86_400_000_000;

/// How a primitive column of a file becomes the table's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cast {
    /// The same type.
    None,
    /// Arrow's checked cast: an error where a value doesn't fit.
    Checked,
    /// Days to microseconds.
    DateToNtz,
    /// Any timestamp to microseconds; the instant is kept, the zone's label replaced.
    Micros,
}

/// The cast between two primitive types, or `None` if values could change.
pub(crate) fn plan(from: &DataType, to: &DataType) -> Option<Cast> {
    use DataType as D;
    if from == to {
        return Some(Cast::None);
    }
    let checked = match (from, to) {
        (D::Int8 | D::Int16 | D::Int32, D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::Float64) => true,
        (D::Int8 | D::Int16, D::Float32) => true,
        (D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64, D::Int8 | D::Int16 | D::Int32 | D::Int64) => true,
        (
            D::Int8 | D::Int16 | D::Int32 | D::Int64 | D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64,
            D::Decimal128(..),
        ) => true,
        (D::Float16, D::Float32 | D::Float64) | (D::Float32, D::Float64) => true,
        (D::Decimal128(_, from_scale), D::Decimal128(_, to_scale)) => to_scale >= from_scale,
        (D::Binary | D::FixedSizeBinary(_) | D::Utf8, D::Binary) | (D::Binary, D::Utf8) => true,
        _ => false,
    };
    match (from, to) {
        _ if checked => Some(Cast::Checked),
        (D::Date32, D::Timestamp(TimeUnit::Microsecond, None)) => Some(Cast::DateToNtz),
        (D::Timestamp(..), D::Timestamp(TimeUnit::Microsecond, _)) => Some(Cast::Micros),
        _ => None,
    }
}

/// Applies a cast.
///
/// # Errors
/// Where a value does not fit the type `to`.
pub(crate) fn apply(cast: Cast, array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match cast {
        Cast::None => Ok(Arc::clone(array)),
        Cast::Checked => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options)
        }
        Cast::DateToNtz => {
            let days = array.as_primitive::<Date32Type>();
            let micros: PrimitiveArray<TimestampMicrosecondType> = days.try_unary(|d| {
                i64::from(d).checked_mul(MICROS_A_DAY).ok_or_else(|| out_of_range("date", "timestamp_ntz"))
            })?;
            Ok(Arc::new(micros))
        }
        Cast::Micros => to_micros(array, to),
    }
}

fn to_micros(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let DataType::Timestamp(unit, _) = array.data_type() else {
        return Err(ArrowError::CastError("not a timestamp".to_owned()));
    };
    let scaled = |value: i64, factor: i64| {
        value.checked_mul(factor).ok_or_else(|| out_of_range("timestamp", "timestamp in microseconds"))
    };
    let micros: PrimitiveArray<TimestampMicrosecondType> = match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().try_unary(|v| scaled(v, 1_000_000))?,
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().try_unary(|v| scaled(v, 1_000))?,
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().clone(),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().try_unary(|v| {
            if v % 1_000 == 0 {
                Ok(v / 1_000)
            } else {
                Err(ArrowError::CastError("a timestamp has nanoseconds, which the table's type cannot hold".to_owned()))
            }
        })?,
    };
    Ok(Arc::new(micros.with_data_type(to.clone())))
}

fn out_of_range(from: &str, to: &str) -> ArrowError {
    ArrowError::CastError(format!("a {from} lies outside the range of {to}"))
}

/// `values` where valid, else `fallback`.
pub(crate) fn coalesce(
    values: &PrimitiveArray<Int64Type>,
    fallback: impl Fn(usize) -> i64,
) -> PrimitiveArray<Int64Type> {
    (0..values.len()).map(|i| if values.is_valid(i) { values.value(i) } else { fallback(i) }).collect::<Vec<_>>().into()
}
