//! Partition values: the log's strings as typed values, and the other way round.
//!
//! # Source
//! Delta PROTOCOL.md, "Partition Value Serialization".

use jiff::civil::{Date, DateTime};
use lakesmith_core::predicate::parse_timestamp;
use lakesmith_core::table::{DataType, Field, PartitionTuple, Scalar};
use lakesmith_core::{Error, Result};

use crate::DeltaTable;
use crate::read::partition_fields;
use crate::stats::{date, decimal as decimal_text, micros_text};

/// The typed value of a partition column; the empty string is NULL.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Corrupt`] if the text is no value of the column's type.
pub(crate) fn parse(field: &Field, raw: Option<&str>) -> Result<Scalar> {
    let Some(text) = raw.filter(|t| !t.is_empty()) else { return Ok(Scalar::Null) };
    typed(&field.data_type, text).ok_or_else(|| {
        Error::corrupt(format!("the partition value '{text}' is not a {}", field.data_type.simple_string()))
            .with("column", &field.name)
    })
}

/// A value of the type by its text; `None` if the text is none.
pub(crate) fn typed(data_type: &DataType, text: &str) -> Option<Scalar> {
    Some(match data_type {
        DataType::Boolean if text.eq_ignore_ascii_case("true") => Scalar::Boolean(true),
        DataType::Boolean if text.eq_ignore_ascii_case("false") => Scalar::Boolean(false),
        DataType::Byte => Scalar::Long(text.trim().parse::<i8>().ok()?.into()),
        DataType::Short => Scalar::Long(text.trim().parse::<i16>().ok()?.into()),
        DataType::Integer => Scalar::Long(text.trim().parse::<i32>().ok()?.into()),
        DataType::Long => Scalar::Long(text.trim().parse().ok()?),
        DataType::Float => Scalar::Double(text.trim().parse::<f32>().ok()?.into()),
        DataType::Double => Scalar::Double(text.trim().parse().ok()?),
        DataType::Decimal { scale, .. } => Scalar::Decimal(decimal(text.trim(), *scale)?, *scale),
        DataType::Date => {
            let date: Date = text.trim().parse().ok()?;
            Scalar::Date(date.since(Date::constant(1970, 1, 1)).ok()?.get_days())
        }
        DataType::Timestamp => Scalar::Timestamp(instant(text.trim())?),
        DataType::TimestampNtz => Scalar::TimestampNtz(wall_clock(text.trim())?),
        DataType::String => Scalar::String(text.to_owned()),
        DataType::Binary => Scalar::Binary(text.as_bytes().to_vec()),
        _ => return None,
    })
}

/// The text of a value in the log; `None` for NULL. Timestamps are instants in UTC, as writers since 2024 have them.
///
/// # Errors
/// Unsupported for bytes that are no text, Usage for a time that has no text.
pub(crate) fn text(field: &Field, value: &Scalar) -> Result<Option<String>> {
    let beyond = || {
        Error::usage("a partition's time is outside of the years that can be written")
            .class("DATETIME_OVERFLOW")
            .with("column", &field.name)
    };
    Ok(Some(match (value, &field.data_type) {
        (Scalar::Null, _) => return Ok(None),
        (Scalar::Boolean(v), _) => v.to_string(),
        (Scalar::Long(v), _) => v.to_string(),
        (Scalar::Double(v), _) if v.is_nan() => "NaN".to_owned(),
        (Scalar::Double(v), _) if v.is_infinite() => if *v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        // Zero has one folder, whatever its sign.
        (Scalar::Double(0.0), _) => "0.0".to_owned(),
        (Scalar::Double(v), DataType::Float) => format!("{:?}", *v as f32),
        (Scalar::Double(v), _) => format!("{v:?}"),
        (Scalar::Decimal(v, scale), _) => decimal_text(*v, *scale),
        (Scalar::Date(days), _) => date(i64::from(*days)).ok_or_else(beyond)?,
        (Scalar::Timestamp(micros), _) => format!("{}Z", micros_text(*micros, 'T').ok_or_else(beyond)?),
        (Scalar::TimestampNtz(micros), _) => micros_text(*micros, ' ').ok_or_else(beyond)?,
        (Scalar::String(v), _) => v.clone(),
        (Scalar::Binary(v), _) => String::from_utf8(v.clone()).map_err(|_| {
            Error::unsupported("a partition's bytes are no text, so the log can't hold them; cast the column to STRING")
                .with("column", &field.name)
        })?,
    }))
}

/// The partition of new rows with these values, in the order of the table's partition columns.
///
/// # Errors
/// As [`text`], which the log holds; Corrupt if a partition column is not in the schema.
pub fn new_partition(table: &DeltaTable, values: Vec<Scalar>) -> Result<PartitionTuple> {
    let state = &table.state;
    let mut tuple = PartitionTuple::default();
    for (field, value) in partition_fields(&state.schema, &state.partition_columns)?.into_iter().zip(values) {
        let raw = text(field, &value)?.filter(|text| !text.is_empty());
        tuple.values.push(if raw.is_none() { Scalar::Null } else { value });
        tuple.raw.push(raw);
    }
    Ok(tuple)
}

/// Both encodings: ISO with a zone, and the older wall clock, which is taken as UTC.
fn instant(text: &str) -> Option<i64> {
    match text.parse::<jiff::Timestamp>() {
        Ok(timestamp) => Some(timestamp.as_microsecond()),
        Err(_) => wall_clock(text).or_else(|| parse_timestamp(text).map(|(micros, _)| micros)),
    }
}

fn wall_clock(text: &str) -> Option<i64> {
    let by_calendar = || {
        let time: DateTime = text.parse().ok()?;
        Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_microsecond())
    };
    // The calendar's instants end a day before the year 9999 does, which people take for the end of time.
    by_calendar().or_else(|| parse_timestamp(text).filter(|(_, zoned)| !zoned).map(|(micros, _)| micros))
}

/// Unscaled value at `scale`; `None` if digits would be lost. Accepts an exponent, as Java writes `0E-18`.
fn decimal(text: &str, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix('+').unwrap_or(exponent).parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let unscaled: i128 = all.parse().ok()?;
    let shift = i32::from(scale).checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(exponent)?;
    let value = if unscaled == 0 {
        0
    } else if shift >= 0 {
        unscaled.checked_mul(10i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        let factor = 10i128.checked_pow(shift.unsigned_abs())?;
        (unscaled % factor == 0).then(|| unscaled / factor)?
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(data_type: DataType, text: &str) -> Result<Scalar> {
        let field = Field {
            name: "p".into(),
            physical: "p".into(),
            id: None,
            data_type,
            nullable: true,
            metadata: Default::default(),
        };
        parse(&field, Some(text))
    }

    #[test]
    fn values_of_every_type() {
        let decimal = DataType::Decimal { precision: 10, scale: 2 };
        for (data_type, text, expected) in [
            (DataType::String, "a/b", Scalar::String("a/b".into())),
            (DataType::String, "", Scalar::Null),
            (DataType::Boolean, "True", Scalar::Boolean(true)),
            (DataType::Timestamp, "9999-12-31 23:59:59.999999", Scalar::Timestamp(253_402_300_799_999_999)),
            (DataType::Timestamp, "9999-12-31T23:59:59.999999Z", Scalar::Timestamp(253_402_300_799_999_999)),
            (DataType::TimestampNtz, "9999-12-31 23:59:59.999999", Scalar::TimestampNtz(253_402_300_799_999_999)),
            (DataType::Timestamp, "0001-01-01 00:00:00", Scalar::Timestamp(-62_135_596_800_000_000)),
            (DataType::Integer, "-7", Scalar::Long(-7)),
            (DataType::Float, "1.1", Scalar::Double(f64::from(1.1f32))),
            (DataType::Double, "NaN", Scalar::Double(f64::NAN)),
            (DataType::Double, "-Infinity", Scalar::Double(f64::NEG_INFINITY)),
            (decimal.clone(), "-1.5", Scalar::Decimal(-150, 2)),
            (decimal.clone(), "0E-18", Scalar::Decimal(0, 2)),
            (decimal, "1E+3", Scalar::Decimal(100_000, 2)),
            (DataType::Date, "2024-02-29", Scalar::Date(19_782)),
            (DataType::Timestamp, "2026-01-01T00:00:00.123456Z", Scalar::Timestamp(1_767_225_600_123_456)),
            (DataType::Timestamp, "2026-01-01 00:00:00.123456", Scalar::Timestamp(1_767_225_600_123_456)),
            (DataType::Timestamp, "2026-01-01T01:00:00+01:00", Scalar::Timestamp(1_767_225_600_000_000)),
            (DataType::TimestampNtz, "2026-01-01 00:00:00", Scalar::TimestampNtz(1_767_225_600_000_000)),
            (DataType::TimestampNtz, "1969-12-31 23:59:59.999999", Scalar::TimestampNtz(-1)),
        ] {
            assert_eq!(value(data_type, text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn text_of_another_type_is_refused() {
        for (data_type, text) in [
            (DataType::Integer, "x"),
            (DataType::Byte, "128"),
            (DataType::Date, "2024-13-01"),
            (DataType::Timestamp, "yesterday"),
            (DataType::Boolean, "1"),
            (DataType::Decimal { precision: 3, scale: 1 }, "1.25"),
            (DataType::Decimal { precision: 3, scale: 1 }, "1e999999999"),
            (DataType::Decimal { precision: 3, scale: 1 }, "."),
        ] {
            let error = value(data_type, text).unwrap_err();
            assert_eq!(error.kind(), lakesmith_core::ErrorKind::Corrupt, "{text}");
            assert_eq!(error.context_value("column"), Some("p"));
        }
    }

    #[test]
    fn texts_are_read_as_the_values_that_they_were() {
        let decimal = DataType::Decimal { precision: 10, scale: 2 };
        for (data_type, held, expected) in [
            (DataType::String, Scalar::String("a/b ü".into()), "a/b ü"),
            (DataType::Boolean, Scalar::Boolean(false), "false"),
            (DataType::Integer, Scalar::Long(-7), "-7"),
            (DataType::Float, Scalar::Double(f64::from(1.1f32)), "1.1"),
            (DataType::Double, Scalar::Double(1e300), "1e300"),
            (DataType::Double, Scalar::Double(f64::NAN), "NaN"),
            (DataType::Double, Scalar::Double(f64::NEG_INFINITY), "-Infinity"),
            (decimal, Scalar::Decimal(-5, 2), "-0.05"),
            (DataType::Date, Scalar::Date(19_782), "2024-02-29"),
            (DataType::Timestamp, Scalar::Timestamp(1_767_225_600_123_456), "2026-01-01T00:00:00.123456Z"),
            (DataType::Timestamp, Scalar::Timestamp(-1), "1969-12-31T23:59:59.999999Z"),
            (DataType::TimestampNtz, Scalar::TimestampNtz(1_767_225_600_000_000), "2026-01-01 00:00:00.000000"),
            (DataType::Binary, Scalar::Binary(b"ab".to_vec()), "ab"),
        ] {
            let field = Field {
                name: "p".into(),
                physical: "p".into(),
                id: None,
                data_type: data_type.clone(),
                nullable: true,
                metadata: Default::default(),
            };
            assert_eq!(text(&field, &held).unwrap().unwrap(), expected);
            assert_eq!(value(data_type, expected).unwrap(), held);
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_value_or_an_error(text in ".{0,30}") {
            for data_type in [
                DataType::Long, DataType::Double, DataType::Decimal { precision: 38, scale: 18 }, DataType::Date,
                DataType::Timestamp, DataType::TimestampNtz, DataType::Boolean,
            ] {
                let _ = value(data_type, &text);
            }
        }
    }
}
