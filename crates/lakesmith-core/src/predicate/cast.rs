//! Spark's ANSI casts between the values that partitions and literals have.

use crate::error::{Error, Result};
use crate::predicate::calendar::{self, DAY_MICROS};
use crate::table::{DataType, Scalar};

/// Casts a value to a column's type.
///
/// # Errors
/// Usage with class `CAST_INVALID_INPUT` if the value has no counterpart in the type.
pub(super) fn cast(value: &Scalar, to: &DataType) -> Result<Scalar> {
    let invalid = || {
        Error::usage(format!(
            "the value '{}' cannot be cast to \"{}\" because it is malformed; correct the value",
            text(value),
            to.simple_string().to_uppercase()
        ))
        .class("CAST_INVALID_INPUT")
    };
    Ok(match (value, to) {
        (Scalar::Null, _) => Scalar::Null,
        (v, DataType::String) => Scalar::String(text(v)),
        (Scalar::Boolean(b), DataType::Boolean) => Scalar::Boolean(*b),
        (Scalar::String(s), DataType::Boolean) => match s.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "1" => Scalar::Boolean(true),
            "false" | "f" | "no" | "n" | "0" => Scalar::Boolean(false),
            _ => return Err(invalid()),
        },
        (Scalar::Long(n), DataType::Byte | DataType::Short | DataType::Integer | DataType::Long) => Scalar::Long(*n),
        (Scalar::String(s), DataType::Byte | DataType::Short | DataType::Integer | DataType::Long) => {
            Scalar::Long(s.trim().parse().map_err(|_| invalid())?)
        }
        (Scalar::Double(d), DataType::Float | DataType::Double) => Scalar::Double(*d),
        (Scalar::Long(n), DataType::Float | DataType::Double) => Scalar::Double(*n as f64),
        (Scalar::Decimal(u, s), DataType::Float | DataType::Double) => {
            Scalar::Double(*u as f64 / 10f64.powi(i32::from(*s)))
        }
        (Scalar::String(s), DataType::Float | DataType::Double) => {
            Scalar::Double(s.trim().parse().map_err(|_| invalid())?)
        }
        (Scalar::Decimal(..), DataType::Decimal { .. }) => value.clone(),
        (Scalar::Long(n), DataType::Decimal { .. }) => Scalar::Decimal(i128::from(*n), 0),
        (Scalar::String(s), DataType::Decimal { .. }) => parse_decimal(s.trim()).ok_or_else(invalid)?,
        (Scalar::Date(d), DataType::Date) => Scalar::Date(*d),
        (Scalar::Timestamp(t) | Scalar::TimestampNtz(t), DataType::Date) => {
            Scalar::Date(t.div_euclid(DAY_MICROS) as i32)
        }
        (Scalar::String(s), DataType::Date) => {
            let days = calendar::parse_date(s)
                .or_else(|| calendar::parse_timestamp(s).map(|t| t.div_euclid(DAY_MICROS) as i32));
            Scalar::Date(days.ok_or_else(invalid)?)
        }
        (Scalar::Timestamp(t) | Scalar::TimestampNtz(t), DataType::Timestamp) => Scalar::Timestamp(*t),
        (Scalar::Timestamp(t) | Scalar::TimestampNtz(t), DataType::TimestampNtz) => Scalar::TimestampNtz(*t),
        (Scalar::Date(d), DataType::Timestamp) => Scalar::Timestamp(i64::from(*d) * DAY_MICROS),
        (Scalar::Date(d), DataType::TimestampNtz) => Scalar::TimestampNtz(i64::from(*d) * DAY_MICROS),
        (Scalar::String(s), DataType::Timestamp) => {
            Scalar::Timestamp(calendar::parse_timestamp(s).ok_or_else(invalid)?)
        }
        (Scalar::String(s), DataType::TimestampNtz) => {
            Scalar::TimestampNtz(calendar::parse_timestamp(s).ok_or_else(invalid)?)
        }
        (Scalar::Binary(b), DataType::Binary) => Scalar::Binary(b.clone()),
        (Scalar::String(s), DataType::Binary) => Scalar::Binary(s.as_bytes().to_vec()),
        _ => {
            return Err(Error::usage(format!(
                "cannot compare '{}' with a column of type {}; write the value in the column's type",
                text(value),
                to.simple_string()
            ))
            .class("DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"));
        }
    })
}

fn parse_decimal(text: &str) -> Option<Scalar> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = i8::try_from(fraction.len()).ok().filter(|s| *s <= 38)?;
    format!("{whole}{fraction}").parse::<i128>().ok().map(|unscaled| Scalar::Decimal(unscaled, scale))
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

pub(super) fn text(value: &Scalar) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Boolean(b) => b.to_string(),
        Scalar::Long(n) => n.to_string(),
        Scalar::Double(d) => d.to_string(),
        Scalar::Decimal(u, s) => decimal_text(*u, *s),
        Scalar::Date(d) => calendar::date_text(*d),
        Scalar::Timestamp(t) | Scalar::TimestampNtz(t) => calendar::timestamp_text(*t),
        Scalar::String(s) => s.clone(),
        Scalar::Binary(b) => String::from_utf8_lossy(b).into_owned(),
    }
}
