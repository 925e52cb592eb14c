//! Values of the log and columns of rows: one as the other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType,
};
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

/// The value of a row, if the column's type is one that a partition can have; the inverse of [`repeat`].
///
/// # Errors
/// Unsupported for another type.
pub fn value_at(array: &dyn Array, row: usize) -> Result<Scalar> {
    if array.is_null(row) {
        return Ok(Scalar::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => Scalar::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Scalar::Long(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Scalar::Long(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Scalar::Long(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Scalar::Long(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Scalar::Double(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Scalar::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => Scalar::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Date32 => Scalar::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            if zone.is_some() { Scalar::Timestamp(micros) } else { Scalar::TimestampNtz(micros) }
        }
        DataType::Utf8 => Scalar::String(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Scalar::Binary(array.as_binary::<i32>().value(row).to_vec()),
        other => return Err(Error::unsupported(format!("a partition cannot have values of the type {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_becomes_a_column_and_the_column_the_value() {
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let cases = [
            (Scalar::Null, DataType::Int32),
            (Scalar::Boolean(true), DataType::Boolean),
            (Scalar::Long(-7), DataType::Int8),
            (Scalar::Long(-7), DataType::Int16),
            (Scalar::Long(-7), DataType::Int32),
            (Scalar::Long(i64::MIN), DataType::Int64),
            (Scalar::Double(1.5), DataType::Float32),
            (Scalar::Double(-0.1), DataType::Float64),
            (Scalar::Decimal(-12_345, 2), DataType::Decimal128(10, 2)),
            (Scalar::Date(-1), DataType::Date32),
            (Scalar::Timestamp(-1), zoned),
            (Scalar::TimestampNtz(1), DataType::Timestamp(TimeUnit::Microsecond, None)),
            (Scalar::String("ü".into()), DataType::Utf8),
            (Scalar::Binary(vec![0, 255]), DataType::Binary),
        ];
        for (value, data_type) in cases {
            let column = repeat(&value, &data_type, 3).unwrap();
            assert_eq!(value_at(&column, 2).unwrap(), value, "{data_type}");
        }
        let list = new_null_array(&DataType::new_list(DataType::Int8, true), 1);
        assert_eq!(value_at(&list, 0).unwrap(), Scalar::Null);
    }
}
