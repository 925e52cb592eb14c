//! Decimal division.
//!
//! # Source
//! Spark `DecimalType.adjustPrecisionScale`, `Divide.resultDecimalType`.

use arrow::array::{Array as _, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DataType, Decimal128Type, i256};
use datafusion::common::{DataFusionError, Result};

use super::arithmetic::{divide_by_zero, out_of_range};

const PRECISION_MAX: i16 = 38;
const SCALE_KEPT: i16 = 6;

/// Precision and scale of a number that takes part in decimal arithmetic; `None` for floats and what is no number.
pub(crate) fn digits(data_type: &DataType) -> Option<(u8, i8)> {
    Some(match data_type {
        DataType::Decimal128(precision, scale) => (*precision, *scale),
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (20, 0),
        _ => return None,
    })
}

/// The type of a quotient.
pub(crate) fn quotient_type(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let (p1, s1) = (i16::from(left.0), i16::from(left.1));
    let (p2, s2) = (i16::from(right.0), i16::from(right.1));
    let scale = SCALE_KEPT.max(s1 + p2 + 1);
    let precision = p1 - s1 + s2 + scale;
    let (precision, scale) = if precision <= PRECISION_MAX {
        (precision, scale)
    } else {
        let whole = precision - scale;
        (PRECISION_MAX, (PRECISION_MAX - whole).max(scale.min(SCALE_KEPT)))
    };
    (precision as u8, scale as i8)
}

/// Quotients, rounded half up.
///
/// # Errors
/// Where a divisor is zero or a quotient has too many digits.
pub(crate) fn divide(left: &ArrayRef, right: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let shift = i32::from(scale) - i32::from(left.scale()) + i32::from(right.scale());
    let ten = i256::from_i128(10);
    let factor = ten.wrapping_pow(shift.unsigned_abs());
    let limit = ten.wrapping_pow(u32::from(precision));
    let one = |row: usize| -> Result<Option<i128>> {
        if left.is_null(row) || right.is_null(row) {
            return Ok(None);
        }
        let (mut dividend, mut divisor) = (i256::from_i128(left.value(row)), i256::from_i128(right.value(row)));
        if divisor == i256::ZERO {
            return Err(divide_by_zero());
        }
        if shift >= 0 {
            dividend = dividend.checked_mul(factor).ok_or_else(|| out_of_range("decimal"))?;
        } else {
            divisor = divisor.checked_mul(factor).ok_or_else(|| out_of_range("decimal"))?;
        }
        let negative = dividend.is_negative() != divisor.is_negative();
        let (dividend, divisor) = (dividend.wrapping_abs(), divisor.wrapping_abs());
        let mut quotient = dividend.wrapping_div(divisor);
        let rest = dividend.wrapping_rem(divisor);
        if rest >= divisor.wrapping_sub(rest) {
            quotient = quotient.wrapping_add(i256::ONE);
        }
        if quotient >= limit {
            return Err(out_of_range("decimal"));
        }
        let value = quotient.to_i128().ok_or_else(|| out_of_range("decimal"))?;
        Ok(Some(if negative { -value } else { value }))
    };
    let quotients: Decimal128Array = (0..left.len()).map(one).collect::<Result<_>>()?;
    let typed = quotients.with_precision_and_scale(precision, scale);
    Ok(std::sync::Arc::new(typed.map_err(DataFusionError::from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_have_spark_s_types() {
        assert_eq!(quotient_type((10, 2), (10, 0)), (21, 13));
        assert_eq!(quotient_type((2, 1), (2, 1)), (8, 6));
        assert_eq!(quotient_type((38, 18), (38, 18)), (38, 6));
    }
}
