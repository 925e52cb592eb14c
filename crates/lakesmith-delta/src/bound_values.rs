//! Bounds in statistics, read back as typed values.
//!
//! # Source
//! Delta PROTOCOL.md, "Per-file Statistics": timestamps are cut to milliseconds.

use lakesmith_core::table::{DataType, Scalar};
use serde_json::Value;

use crate::partition_value::typed;

/// Some writers hold bounds of decimals as DOUBLE, and come there by roundings: what is this much smaller than a bound may be lost.
const DOUBLE_BITS: u32 = 50;

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

/// A bound that no value is smaller than. `was_float`: the column was FLOAT once, and is DOUBLE.
pub(crate) fn lowest(min: Scalar, was_float: bool) -> Scalar {
    match min {
        Scalar::Double(v) if was_float => Scalar::Double(v.min(as_float(v))),
        Scalar::Decimal(v, scale) => Scalar::Decimal(v.saturating_sub(lost_digits(v)), scale),
        other => other,
    }
}

/// A bound that no value is greater than. `was_float`: the column was FLOAT once, and is DOUBLE.
pub(crate) fn highest(max: Scalar, was_float: bool) -> Scalar {
    match max {
        Scalar::Double(v) if was_float => Scalar::Double(v.max(as_float(v))),
        Scalar::Decimal(v, scale) => Scalar::Decimal(v.saturating_add(lost_digits(v)), scale),
        other => widened(other),
    }
}

/// The shortest digits of a FLOAT stand for the FLOAT that is nearest to them, not for the DOUBLE.
fn as_float(value: f64) -> f64 {
    f64::from(value as f32)
}

fn lost_digits(unscaled: i128) -> i128 {
    (unscaled.unsigned_abs() >> DOUBLE_BITS) as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_that_a_double_holds_are_kept() {
        for unscaled in [0, 1, -7, 123_456_789_012_345, -999_999_999_999_999] {
            let decimal = Scalar::Decimal(unscaled, 2);
            assert_eq!(lowest(decimal.clone(), false), decimal);
            assert_eq!(highest(decimal.clone(), false), decimal);
        }
    }

    #[test]
    fn floats_are_what_their_digits_stand_for() {
        let float = f64::from(0.7f32);
        assert_eq!(lowest(Scalar::Double(0.7), true), Scalar::Double(float));
        assert_eq!(highest(Scalar::Double(0.7), true), Scalar::Double(0.7));
        assert_eq!(lowest(Scalar::Double(0.7), false), Scalar::Double(0.7));
    }

    proptest! {
        #[test]
        fn a_decimal_lies_between_the_bounds_that_a_double_makes_of_it(
            unscaled in any::<i128>().prop_map(|v| v % 10i128.pow(38)), digits in 0u32..38, scale in 0i8..=20,
        ) {
            let unscaled = unscaled / 10i128.pow(digits);
            let rounded = unscaled as f64 / 10f64.powi(scale.into());
            let data_type = DataType::Decimal { precision: 38, scale };
            let json: Value = serde_json::from_str(&format!("{rounded:e}")).unwrap();
            // A bound with digits that the type has not says nothing.
            if let Some(bound) = value(&data_type, &json) {
                let held = Scalar::Decimal(unscaled, scale);
                prop_assert!(lowest(bound.clone(), false) <= held, "{bound:?}");
                prop_assert!(highest(bound.clone(), false) >= held, "{bound:?}");
            }
        }
    }
}
