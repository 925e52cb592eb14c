//! Functions of numbers that are NULL or no number where DataFusion fails.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::Result;

use super::builtin::{Builtin, cast_to};
use super::texts::half_even;
use crate::spark::out_of_range;

/// # Source
/// Spark `Sqrt`, `Logarithm` and its kin, `BRound`.
pub(super) const FUNCTIONS: [Builtin; 6] = [
    unary("sqrt", |arrays, _| each(arrays, |value| Some(value.sqrt()))),
    unary("ln", |arrays, _| each(arrays, |value| above(0.0, value).map(f64::ln))),
    unary("log10", |arrays, _| each(arrays, |value| above(0.0, value).map(f64::log10))),
    unary("log2", |arrays, _| each(arrays, |value| above(0.0, value).map(|value| value.ln() / 2f64.ln()))),
    unary("log1p", |arrays, _| each(arrays, |value| above(-1.0, value).map(f64::ln_1p))),
    Builtin {
        name: "bround",
        arguments: 1..=2,
        takes: |types| {
            let number = match &types[0] {
                DataType::Utf8 | DataType::Null | DataType::Float32 => DataType::Float64,
                number if number.is_numeric() => number.clone(),
                _ => return None,
            };
            let mut to = vec![number];
            to.extend(types[1..].iter().map(|_| DataType::Int32));
            Some(to)
        },
        gives: |types| types[0].clone(),
        apply: bround,
    },
];

const fn unary(name: &'static str, apply: fn(&[ArrayRef], &DataType) -> Result<ArrayRef>) -> Builtin {
    Builtin {
        name,
        arguments: 1..=1,
        takes: |types| cast_to(types, &[DataType::Float64]),
        gives: |_| DataType::Float64,
        apply,
    }
}

/// The value unless it is at `limit` or below.
fn above(limit: f64, value: f64) -> Option<f64> {
    (value > limit || value.is_nan()).then_some(value)
}

fn each(arrays: &[ArrayRef], value: impl Fn(f64) -> Option<f64>) -> Result<ArrayRef> {
    let values = arrays[0].as_primitive::<Float64Type>().iter();
    Ok(Arc::new(values.map(|v| v.and_then(&value)).collect::<Float64Array>()))
}

fn bround(arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let scales = arrays.get(1).map(|scales| scales.as_primitive::<Int32Type>());
    let scale = |row: usize| match scales {
        None => Some(0),
        Some(scales) => scales.is_valid(row).then(|| scales.value(row)),
    };
    let rows = 0..arrays[0].len();
    Ok(match result {
        DataType::Float64 => {
            let values = arrays[0].as_primitive::<Float64Type>();
            let row = |row: usize| values.is_valid(row).then(|| rounded(values.value(row), scale(row)?)).flatten();
            Arc::new(rows.map(row).collect::<Float64Array>())
        }
        DataType::Decimal128(precision, digits) => {
            let values = arrays[0].as_primitive::<Decimal128Type>();
            let row = |row: usize| {
                let drop = i32::from(*digits).saturating_sub(scale(row)?).min(38);
                let kept = values.is_valid(row).then(|| half_even(values.value(row), drop))?;
                kept.checked_mul(10i128.checked_pow(u32::try_from(drop).unwrap_or(0))?)
            };
            Arc::new(rows.map(row).collect::<Decimal128Array>().with_precision_and_scale(*precision, *digits)?)
        }
        whole => {
            let values = cast(&arrays[0], &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>();
            let row = |row: usize| -> Result<Option<i64>> {
                let Some(scale) = scale(row).filter(|_| values.is_valid(row)) else { return Ok(None) };
                let drop = scale.saturating_neg().clamp(0, 20);
                let unit = 10i128.pow(drop.unsigned_abs());
                let kept = half_even(values.value(row).into(), drop) * unit;
                i64::try_from(kept).map(Some).map_err(|_| out_of_range("bround"))
            };
            let kept = rows.map(row).collect::<Result<Int64Array>>()?;
            cast(&kept, whole)?
        }
    })
}

/// A float rounded by its shortest digits, as Java's `BigDecimal` of its text is.
fn rounded(value: f64, scale: i32) -> Option<f64> {
    if !value.is_finite() {
        return Some(value);
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    // The number is `unscaled` without its last `places` digits.
    let (unscaled, places) = (digits.parse::<i128>().ok()?, fraction - exponent.parse::<i32>().ok()?);
    let drop = places.saturating_sub(scale);
    if drop <= 0 {
        return Some(value);
    }
    format!("{}e{}", half_even(unscaled, drop.min(39)), drop - places).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_side() {
        for (value, scale, expected) in [
            (2.5, 0, 2.0),
            (3.5, 0, 4.0),
            (-2.5, 0, -2.0),
            (1.25, 1, 1.2),
            (25.0, -1, 20.0),
            (1e-7, 2, 0.0),
            (0.5, 9, 0.5),
        ] {
            assert_eq!(rounded(value, scale), Some(expected), "{value} {scale}");
        }
    }

    #[test]
    fn logarithms_of_nothing_are_null() {
        assert_eq!([above(0.0, 0.0), above(0.0, -1.0), above(0.0, 2.0)], [None, None, Some(2.0)]);
        assert!(above(0.0, f64::NAN).is_some());
    }
}
