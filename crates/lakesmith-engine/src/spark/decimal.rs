//! Decimal arithmetic: results have Spark's types, and fail where they have too many digits.
//!
//! # Source
//! Spark `DecimalType.adjustPrecisionScale`, `resultDecimalType` of `Add`, `Subtract`, `Multiply`, `Divide`, `Remainder`.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, i256};
use datafusion::common::{DataFusionError, Result};

use super::arithmetic::{Op, divide_by_zero, out_of_range, remainder_by_zero};
use crate::failure::external;

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

/// Precision and scale of what comes of an operator, were there no limit of digits.
fn wanted(op: Op, left: (u8, i8), right: (u8, i8)) -> (i16, i16) {
    let (p1, s1) = (i16::from(left.0), i16::from(left.1));
    let (p2, s2) = (i16::from(right.0), i16::from(right.1));
    let longer = s1.max(s2);
    match op {
        Op::Multiply => (p1 + p2 + 1, s1 + s2),
        Op::Divide | Op::IntegerDivide => {
            let scale = SCALE_KEPT.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        Op::Remainder => ((p1 - s1).min(p2 - s2) + longer, longer),
        Op::Add | Op::Subtract => ((p1 - s1).max(p2 - s2) + longer + 1, longer),
    }
}

/// The type of what comes of an operator.
pub(crate) fn result_type(op: Op, left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let (precision, scale) = wanted(op, left, right);
    let (precision, scale) = if precision <= PRECISION_MAX {
        (precision, scale)
    } else {
        let whole = precision - scale;
        (PRECISION_MAX, (PRECISION_MAX - whole).max(scale.min(SCALE_KEPT)))
    };
    (precision as u8, scale as i8)
}

/// True if no result of the operator has too many digits.
pub(crate) fn is_total(op: Op, left: (u8, i8), right: (u8, i8)) -> bool {
    matches!(op, Op::Add | Op::Subtract | Op::Multiply) && wanted(op, left, right).0 <= PRECISION_MAX
}

/// The failure of a number with too many digits.
fn too_long(precision: u8, scale: i8) -> DataFusionError {
    let message =
        format!("a number has too many digits for DECIMAL({precision},{scale}); cast its operands to narrower types");
    external(lakesmith::Error::usage(message).class("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"))
}

/// Sums, differences, products or remainders, rounded half up.
///
/// # Errors
/// Where a result has too many digits; where a remainder is one by zero.
pub(crate) fn compute(op: Op, left: &ArrayRef, right: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let ten = i256::from_i128(10);
    let (s1, s2) = (left.scale(), right.scale());
    let longer = s1.max(s2);
    let exact_scale = if op == Op::Multiply { s1 + s2 } else { longer };
    let lift = |scale: i8| ten.wrapping_pow(u32::from(longer.abs_diff(scale)));
    let (lift_left, lift_right) = (lift(s1), lift(s2));
    let drop = ten.wrapping_pow(u32::from(exact_scale.abs_diff(scale)));
    let limit = ten.wrapping_pow(u32::from(precision));
    let narrow = Narrow::of(op, (s1, s2), (exact_scale, scale), precision);
    let one = |l: i128, r: i128| -> Result<i128> {
        if let Some(result) = narrow.as_ref().and_then(|narrow| narrow.result(l, r)) {
            return Ok(result);
        }
        let (l, r) = (i256::from_i128(l), i256::from_i128(r));
        let exact = match op {
            Op::Multiply => l.checked_mul(r),
            _ => {
                let (l, r) = (l.checked_mul(lift_left), r.checked_mul(lift_right));
                match (l, r, op) {
                    (Some(_), Some(r), Op::Remainder) if r == i256::ZERO => return Err(remainder_by_zero()),
                    (Some(l), Some(r), Op::Remainder) => l.checked_rem(r),
                    (Some(l), Some(r), Op::Subtract) => l.checked_sub(r),
                    (Some(l), Some(r), _) => l.checked_add(r),
                    _ => None,
                }
            }
        };
        let exact = exact.ok_or_else(|| too_long(precision, scale))?;
        let rounded = if exact_scale > scale { half_up(exact, drop) } else { exact };
        if rounded >= limit || rounded <= limit.wrapping_neg() {
            return Err(too_long(precision, scale));
        }
        rounded.to_i128().ok_or_else(|| too_long(precision, scale))
    };
    let results = by_row(left, right, one)?;
    Ok(Arc::new(results.with_precision_and_scale(precision, scale)?))
}

/// The results of the rows in which neither operand is null.
fn by_row(
    left: &Decimal128Array,
    right: &Decimal128Array,
    one: impl Fn(i128, i128) -> Result<i128>,
) -> Result<Decimal128Array> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let pairs = left.values().iter().zip(right.values().iter());
    let values: Vec<i128> = match nulls.as_ref().filter(|nulls| nulls.null_count() > 0) {
        None => pairs.map(|(l, r)| one(*l, *r)).collect::<Result<_>>()?,
        Some(nulls) => {
            let pairs = pairs.zip(nulls.iter());
            pairs.map(|((l, r), valid)| if valid { one(*l, *r) } else { Ok(0) }).collect::<Result<_>>()?
        }
    };
    Ok(Decimal128Array::new(values.into(), nulls))
}

/// Sums, differences and products that are not rounded, as long as a machine's numbers hold them.
struct Narrow {
    op: Op,
    lift_left: i128,
    lift_right: i128,
    limit: i128,
}

impl Narrow {
    /// For operands and results of these scales; `exact_scale` is that of a result before it is rounded.
    fn of(op: Op, scales: (i8, i8), (exact_scale, scale): (i8, i8), precision: u8) -> Option<Self> {
        let longer = scales.0.max(scales.1);
        let lift = |scale: i8| match op {
            Op::Multiply => Some(1),
            _ => 10i128.checked_pow(u32::from(longer.abs_diff(scale))),
        };
        let wanted = matches!(op, Op::Add | Op::Subtract | Op::Multiply) && exact_scale == scale;
        let limit = 10i128.checked_pow(u32::from(precision)).filter(|_| wanted)?;
        Some(Self { op, lift_left: lift(scales.0)?, lift_right: lift(scales.1)?, limit })
    }

    /// `None`: not to be told this way.
    fn result(&self, left: i128, right: i128) -> Option<i128> {
        let exact = match self.op {
            Op::Multiply => left.checked_mul(right)?,
            op => {
                let (left, right) = (left.checked_mul(self.lift_left)?, right.checked_mul(self.lift_right)?);
                if op == Op::Subtract { left.checked_sub(right)? } else { left.checked_add(right)? }
            }
        };
        (exact < self.limit && exact > -self.limit).then_some(exact)
    }
}

/// `value / divisor` for a divisor above zero; halves go away from zero.
fn half_up(value: i256, divisor: i256) -> i256 {
    let (quotient, rest) = (value.wrapping_div(divisor), value.wrapping_rem(divisor).wrapping_abs());
    match rest >= divisor.wrapping_sub(rest) {
        true if value.is_negative() => quotient.wrapping_sub(i256::ONE),
        true => quotient.wrapping_add(i256::ONE),
        false => quotient,
    }
}

/// How often the divisor goes into the dividend as a whole.
///
/// # Errors
/// Where a divisor is zero, or a result no BIGINT.
pub(crate) fn whole_quotients(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let longer = left.scale().max(right.scale());
    let lift = |scale: i8| i256::from_i128(10).wrapping_pow(u32::from(longer.abs_diff(scale)));
    let (lift_left, lift_right) = (lift(left.scale()), lift(right.scale()));
    let one = |row: usize| -> Result<Option<i64>> {
        if left.is_null(row) || right.is_null(row) {
            return Ok(None);
        }
        let l = i256::from_i128(left.value(row)).checked_mul(lift_left);
        let r = i256::from_i128(right.value(row)).checked_mul(lift_right);
        let (l, r) = l.zip(r).ok_or_else(|| out_of_range("integer"))?;
        if r == i256::ZERO {
            return Err(divide_by_zero());
        }
        let quotient = l.wrapping_div(r).to_i128().and_then(|quotient| i64::try_from(quotient).ok());
        quotient.map(Some).ok_or_else(|| out_of_range("integer"))
    };
    let quotients: Int64Array = (0..left.len()).map(one).collect::<Result<_>>()?;
    Ok(Arc::new(quotients))
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
    let one = |l: i128, r: i128| -> Result<i128> {
        let (mut dividend, mut divisor) = (i256::from_i128(l), i256::from_i128(r));
        if divisor == i256::ZERO {
            return Err(divide_by_zero());
        }
        if shift >= 0 {
            dividend = dividend.checked_mul(factor).ok_or_else(|| too_long(precision, scale))?;
        } else {
            divisor = divisor.checked_mul(factor).ok_or_else(|| too_long(precision, scale))?;
        }
        let negative = dividend.is_negative() != divisor.is_negative();
        let (dividend, divisor) = (dividend.wrapping_abs(), divisor.wrapping_abs());
        let mut quotient = dividend.wrapping_div(divisor);
        let rest = dividend.wrapping_rem(divisor);
        if rest >= divisor.wrapping_sub(rest) {
            quotient = quotient.wrapping_add(i256::ONE);
        }
        if quotient >= limit {
            return Err(too_long(precision, scale));
        }
        let value = quotient.to_i128().ok_or_else(|| too_long(precision, scale))?;
        Ok(if negative { -value } else { value })
    };
    let quotients = by_row(left, right, one)?;
    let typed = quotients.with_precision_and_scale(precision, scale);
    Ok(Arc::new(typed.map_err(DataFusionError::from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_spark_s_types() {
        for (op, left, right, expected) in [
            (Op::Divide, (10, 2), (10, 0), (21, 13)),
            (Op::Divide, (2, 1), (2, 1), (8, 6)),
            (Op::Divide, (38, 18), (38, 18), (38, 6)),
            (Op::Add, (10, 2), (5, 4), (13, 4)),
            (Op::Add, (38, 10), (38, 10), (38, 9)),
            (Op::Subtract, (38, 0), (38, 0), (38, 0)),
            (Op::Multiply, (10, 2), (5, 1), (16, 3)),
            (Op::Multiply, (38, 18), (38, 18), (38, 6)),
            (Op::Remainder, (10, 2), (5, 4), (5, 4)),
        ] {
            assert_eq!(result_type(op, left, right), expected, "{op:?} {left:?} {right:?}");
        }
    }
}
