//! A partition value as a column of equal values.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, TimeUnit};
use lakesmith_core::table::Scalar;
use lakesmith_core::{Error, Result};

/// `rows` times `value`, as `to`.
///
/// # Errors
/// Corrupt if the value does not fit the type.
pub(crate) fn repeat(value: &Scalar, to: &DataType, rows: usize) -> Result<ArrayRef> {
    let misfit = || Error::corrupt(format!("the partition value {value:?} does not fit the column's type {to}"));
    Ok(match (value, to) {
        (Scalar::Null, _) => new_null_array(to, rows),
        (Scalar::Boolean(v), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*v; rows])),
        (Scalar::Long(v), DataType::Int8) => {
            Arc::new(Int8Array::from_value(i8::try_from(*v).map_err(|_| misfit())?, rows))
        }
        (Scalar::Long(v), DataType::Int16) => {
            Arc::new(Int16Array::from_value(i16::try_from(*v).map_err(|_| misfit())?, rows))
        }
        (Scalar::Long(v), DataType::Int32) => {
            Arc::new(Int32Array::from_value(i32::try_from(*v).map_err(|_| misfit())?, rows))
        }
        (Scalar::Long(v), DataType::Int64) => Arc::new(Int64Array::from_value(*v, rows)),
        (Scalar::Double(v), DataType::Float32) => Arc::new(Float32Array::from_value(*v as f32, rows)),
        (Scalar::Double(v), DataType::Float64) => Arc::new(Float64Array::from_value(*v, rows)),
        (Scalar::Decimal(v, scale), DataType::Decimal128(precision, to_scale)) => {
            let shift = u32::try_from(to_scale - scale).map_err(|_| misfit())?;
            let scaled = 10i128.checked_pow(shift).and_then(|f| v.checked_mul(f)).ok_or_else(misfit)?;
            let array = Decimal128Array::from_value(scaled, rows)
                .with_precision_and_scale(*precision, *to_scale)
                .map_err(|_| misfit())?;
            array.validate_decimal_precision(*precision).map_err(|_| misfit())?;
            Arc::new(array)
        }
        (Scalar::Date(v), DataType::Date32) => Arc::new(Date32Array::from_value(*v, rows)),
        (Scalar::Timestamp(v), DataType::Timestamp(TimeUnit::Microsecond, Some(_)))
        | (Scalar::TimestampNtz(v), DataType::Timestamp(TimeUnit::Microsecond, None)) => {
            Arc::new(TimestampMicrosecondArray::from_value(*v, rows).with_data_type(to.clone()))
        }
        (Scalar::String(v), DataType::Utf8) => Arc::new(StringArray::from(vec![v.as_str(); rows])),
        (Scalar::Binary(v), DataType::Binary) => Arc::new(BinaryArray::from(vec![v.as_slice(); rows])),
        _ => return Err(misfit()),
    })
}
