//! Spark's ANSI casts between the values that partitions and expressions over them have.
//!
//! # Source
//! Spark `Cast` (ansiEnabled), `UTF8String.toLongExact`, `StringUtils.isTrueString`.

use super::calendar::{DAY, SECOND, day_of};
use super::coerce::Type;
use super::temporal_text::{format_date, format_timestamp, parse_date, parse_timestamp, trim};
use crate::error::{Error, Result};
use crate::table::{DataType, Scalar};

/// Casts to a type as written in CAST: with its range, precision and scale.
pub(super) fn to_data_type(value: &Scalar, to: &DataType) -> Result<Scalar> {
    let range = match to {
        DataType::Byte => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DataType::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::Decimal { precision, scale } => return to_decimal(value, *precision, *scale),
        DataType::Float => {
            return Ok(match to_type(value, Type::Double)? {
                Scalar::Double(d) => Scalar::Double(f64::from(d as f32)),
                other => other,
            });
        }
        other => {
            let to = Type::of(other).ok_or_else(|| Error::internal("cast to a type that no partition has"))?;
            return to_type(value, to);
        }
    };
    let name = to.simple_string().to_uppercase();
    match to_long(value, &name)? {
        Scalar::Long(n) if n < range.0 || n > range.1 => {
            Err(if matches!(value, Scalar::String(_)) { malformed(value, &name) } else { overflow(value, &name) })
        }
        other => Ok(other),
    }
}

/// Casts to a type of any width.
pub(super) fn to_type(value: &Scalar, to: Type) -> Result<Scalar> {
    let fail = || malformed(value, to.name());
    Ok(match (value, to) {
        (Scalar::Null, _) => Scalar::Null,
        (_, Type::Null) => Scalar::Null,
        (Scalar::Binary(bytes), Type::String) => Scalar::String(String::from_utf8_lossy(bytes).into_owned()),
        (v, Type::String) => Scalar::String(text(v)),
        (v, Type::Boolean) => to_boolean(v).ok_or_else(fail)?,
        (_, Type::Int) => return to_data_type(value, &DataType::Integer),
        (_, Type::Long) => return to_long(value, to.name()),
        (v, Type::Double) => Scalar::Double(to_double(v).ok_or_else(fail)?),
        (Scalar::Decimal(..), Type::Decimal) => value.clone(),
        (Scalar::Long(n), Type::Decimal) => Scalar::Decimal(i128::from(*n), 0),
        (Scalar::String(s), Type::Binary) => Scalar::Binary(s.as_bytes().to_vec()),
        (Scalar::Binary(_), Type::Binary) | (Scalar::Date(_), Type::Date) => value.clone(),
        (Scalar::Timestamp(t) | Scalar::TimestampNtz(t), Type::Date) => Scalar::Date(day_of(*t)),
        (Scalar::String(s), Type::Date) => Scalar::Date(parse_date(s).ok_or_else(fail)?),
        (v, Type::Timestamp) => Scalar::Timestamp(to_micros(v).ok_or_else(fail)?),
        (v, Type::TimestampNtz) => Scalar::TimestampNtz(to_micros(v).ok_or_else(fail)?),
        _ => return Err(Error::internal(format!("no cast from '{}' to {}", text(value), to.name()))),
    })
}

/// The text that CAST(… AS STRING) gives.
pub(super) fn text(value: &Scalar) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Boolean(b) => b.to_string(),
        Scalar::Long(n) => n.to_string(),
        Scalar::Double(d) => double_text(*d),
        Scalar::Decimal(unscaled, scale) => decimal_text(*unscaled, *scale),
        Scalar::Date(day) => format_date(*day),
        Scalar::Timestamp(micros) | Scalar::TimestampNtz(micros) => format_timestamp(*micros),
        Scalar::String(s) => s.clone(),
        Scalar::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn to_boolean(value: &Scalar) -> Option<Scalar> {
    Some(Scalar::Boolean(match value {
        Scalar::Boolean(b) => *b,
        Scalar::Long(n) => *n != 0,
        Scalar::Double(d) => *d != 0.0,
        Scalar::Decimal(unscaled, _) => *unscaled != 0,
        Scalar::String(s) => match trim(s).to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "1" => true,
            "f" | "false" | "n" | "no" | "0" => false,
            _ => return None,
        },
        _ => return None,
    }))
}

/// `name` is that of the type in messages.
fn to_long(value: &Scalar, name: &str) -> Result<Scalar> {
    Ok(Scalar::Long(match value {
        Scalar::Null => return Ok(Scalar::Null),
        Scalar::Boolean(b) => i64::from(*b),
        Scalar::Long(n) => *n,
        Scalar::Double(d) => {
            let whole = d.trunc();
            // 2^63 is exact in floating point, i64::MAX is not.
            if !(whole >= -(2f64.powi(63)) && whole < 2f64.powi(63)) {
                return Err(overflow(value, name));
            }
            whole as i64
        }
        Scalar::Decimal(unscaled, scale) => {
            let whole = unscaled / 10i128.pow(u32::from(scale.unsigned_abs()));
            i64::try_from(whole).map_err(|_| overflow(value, name))?
        }
        Scalar::String(s) => trim(s).parse().map_err(|_| malformed(value, name))?,
        Scalar::Timestamp(micros) => micros.div_euclid(SECOND),
        _ => return Err(Error::internal(format!("no cast from '{}' to {name}", text(value)))),
    }))
}

fn to_double(value: &Scalar) -> Option<f64> {
    Some(match value {
        Scalar::Boolean(b) => f64::from(u8::from(*b)),
        Scalar::Long(n) => *n as f64,
        Scalar::Double(d) => *d,
        // Through text, so that 0.1 is the double 0.1.
        Scalar::Decimal(unscaled, scale) => decimal_text(*unscaled, *scale).parse().ok()?,
        Scalar::String(s) => parse_double(trim(s))?,
        Scalar::Timestamp(micros) => *micros as f64 / SECOND as f64,
        _ => return None,
    })
}

/// Java's notation: an optional suffix `d` or `f`, no hexadecimal.
fn parse_double(text: &str) -> Option<f64> {
    let number = text
        .strip_suffix(['d', 'D', 'f', 'F'])
        .filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
        .unwrap_or(text);
    number.parse().ok()
}

fn to_micros(value: &Scalar) -> Option<i64> {
    match value {
        Scalar::Timestamp(t) | Scalar::TimestampNtz(t) => Some(*t),
        Scalar::Date(day) => i64::from(*day).checked_mul(DAY),
        Scalar::String(s) => parse_timestamp(s).map(|t| t.0),
        Scalar::Long(seconds) => seconds.checked_mul(SECOND),
        Scalar::Double(seconds) => {
            let micros = seconds * SECOND as f64;
            (micros.abs() < 9.2e18).then_some(micros as i64)
        }
        Scalar::Decimal(unscaled, scale) => {
            let micros = unscaled.checked_mul(i128::from(SECOND))? / 10i128.pow(u32::from(scale.unsigned_abs()));
            i64::try_from(micros).ok()
        }
        _ => None,
    }
}

fn to_decimal(value: &Scalar, precision: u8, scale: i8) -> Result<Scalar> {
    let name = format!("DECIMAL({precision},{scale})");
    let (unscaled, from_scale) = match value {
        Scalar::Null => return Ok(Scalar::Null),
        Scalar::Decimal(unscaled, scale) => (*unscaled, *scale),
        Scalar::Long(n) => (i128::from(*n), 0),
        Scalar::Boolean(b) => (i128::from(*b), 0),
        other => parse_decimal(trim(&text(other))).ok_or_else(|| malformed(value, &name))?,
    };
    let rescaled = rescale(unscaled, from_scale, scale).filter(|u| u.unsigned_abs() < 10u128.pow(u32::from(precision)));
    rescaled.map(|u| Scalar::Decimal(u, scale)).ok_or_else(|| {
        Error::usage(format!("{} cannot be represented as Decimal({precision}, {scale})", text(value)))
            .class("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")
    })
}

/// Changes the scale, rounding half up.
fn rescale(unscaled: i128, from: i8, to: i8) -> Option<i128> {
    let factor = |digits: i8| 10i128.checked_pow(u32::from(digits.unsigned_abs()));
    if to >= from {
        return unscaled.checked_mul(factor(to.checked_sub(from)?)?);
    }
    let Some(divisor) = factor(from.checked_sub(to)?) else { return Some(0) };
    let half_up = i128::from((unscaled % divisor).unsigned_abs() >= divisor.unsigned_abs() / 2);
    Some(unscaled / divisor + half_up * unscaled.signum())
}

/// Plain digits or scientific notation, at most 38 digits.
fn parse_decimal(text: &str) -> Option<(i128, i8)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.trim_start_matches(['+', '-']).is_empty() && fraction.is_empty() {
        return None;
    }
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if scale < 0 {
        return Some((unscaled.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?, 0));
    }
    i8::try_from(scale).ok().filter(|s| *s <= 38).map(|scale| (unscaled, scale))
}

/// A decimal in plain digits.
pub(super) fn decimal_text(unscaled: i128, scale: i8) -> String {
    if scale <= 0 {
        return format!("{unscaled}{}", "0".repeat(usize::from(scale.unsigned_abs())));
    }
    let scale = scale as usize;
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
}

/// Java's `Double.toString`.
fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "NaN".into();
    }
    if d.is_infinite() {
        return if d > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    if d == 0.0 || (1e-3..1e7).contains(&d.abs()) {
        return format!("{d:?}");
    }
    let text = format!("{d:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}

fn malformed(value: &Scalar, to: &str) -> Error {
    Error::usage(format!(
        "The value '{}' of the type \"{}\" cannot be cast to \"{to}\" because it is malformed. Correct the value as per \
         the syntax, or change its target type.",
        text(value),
        type_name(value)
    ))
    .class("CAST_INVALID_INPUT")
}

fn overflow(value: &Scalar, to: &str) -> Error {
    Error::usage(format!(
        "The value {} of the type \"{}\" cannot be cast to \"{to}\" due to an overflow.",
        text(value),
        type_name(value)
    ))
    .class("CAST_OVERFLOW")
}

fn type_name(value: &Scalar) -> &'static str {
    type_of(value).name()
}

/// The type of a literal: INT if it fits, as in Spark.
pub(super) fn type_of(value: &Scalar) -> Type {
    match value {
        Scalar::Null => Type::Null,
        Scalar::Boolean(_) => Type::Boolean,
        Scalar::Long(n) if i32::try_from(*n).is_ok() => Type::Int,
        Scalar::Long(_) => Type::Long,
        Scalar::Double(_) => Type::Double,
        Scalar::Decimal(..) => Type::Decimal,
        Scalar::Date(_) => Type::Date,
        Scalar::Timestamp(_) => Type::Timestamp,
        Scalar::TimestampNtz(_) => Type::TimestampNtz,
        Scalar::String(_) => Type::String,
        Scalar::Binary(_) => Type::Binary,
    }
}
