//! Values of the metadata as values of queries.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::ScalarValue;
use lakesmith::table::Scalar;
use lakesmith::{Error, Result};

/// The value of a partition column.
///
/// # Errors
/// Corrupt if it does not fit the column.
pub(crate) fn partition_value(value: Option<&Scalar>, field: &Field) -> Result<ScalarValue> {
    value
        .and_then(|value| scalar(value, field.data_type()))
        .ok_or_else(|| Error::corrupt("a partition's value does not fit its column").with("column", field.name()))
}

/// `value` as `to`; `None` if it is none of that type. A null is one of every type.
pub(crate) fn scalar(value: &Scalar, to: &DataType) -> Option<ScalarValue> {
    Some(match (value, to) {
        (Scalar::Null, _) => ScalarValue::try_from(to).ok()?,
        (Scalar::Boolean(v), DataType::Boolean) => ScalarValue::Boolean(Some(*v)),
        (Scalar::Long(v), DataType::Int8) => ScalarValue::Int8(Some(i8::try_from(*v).ok()?)),
        (Scalar::Long(v), DataType::Int16) => ScalarValue::Int16(Some(i16::try_from(*v).ok()?)),
        (Scalar::Long(v), DataType::Int32) => ScalarValue::Int32(Some(i32::try_from(*v).ok()?)),
        (Scalar::Long(v), DataType::Int64) => ScalarValue::Int64(Some(*v)),
        (Scalar::Double(v), DataType::Float32) => ScalarValue::Float32(Some(*v as f32)),
        (Scalar::Double(v), DataType::Float64) => ScalarValue::Float64(Some(*v)),
        (Scalar::Decimal(v, scale), DataType::Decimal128(precision, to_scale)) => {
            let shift = u32::try_from(to_scale.checked_sub(*scale)?).ok()?;
            let unscaled = v.checked_mul(10i128.checked_pow(shift)?)?;
            let fits = unscaled.unsigned_abs() < 10u128.checked_pow(u32::from(*precision))?;
            fits.then_some(ScalarValue::Decimal128(Some(unscaled), *precision, *to_scale))?
        }
        (Scalar::Date(v), DataType::Date32) => ScalarValue::Date32(Some(*v)),
        (Scalar::Timestamp(v), DataType::Timestamp(TimeUnit::Microsecond, Some(zone))) => {
            ScalarValue::TimestampMicrosecond(Some(*v), Some(Arc::clone(zone)))
        }
        (Scalar::TimestampNtz(v), DataType::Timestamp(TimeUnit::Microsecond, None)) => {
            ScalarValue::TimestampMicrosecond(Some(*v), None)
        }
        (Scalar::String(v), DataType::Utf8) => ScalarValue::Utf8(Some(v.clone())),
        (Scalar::Binary(v), DataType::Binary) => ScalarValue::Binary(Some(v.clone())),
        _ => return None,
    })
}
