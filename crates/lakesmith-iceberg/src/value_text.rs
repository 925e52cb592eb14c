//! Partition values as people read them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use lakesmith_core::table::Scalar;

/// The text of a value; `None` for NULL.
pub(crate) fn value_text(value: &Scalar) -> Option<String> {
    Some(match value {
        Scalar::Null => return None,
        Scalar::Boolean(value) => value.to_string(),
        Scalar::Long(value) => value.to_string(),
        Scalar::Double(value) => value.to_string(),
        Scalar::Decimal(unscaled, scale) => decimal_text(*unscaled, *scale),
        Scalar::Date(days) => date_text(*days),
        Scalar::Timestamp(micros) => timestamp_text(*micros, "+00:00"),
        Scalar::TimestampNtz(micros) => timestamp_text(*micros, ""),
        Scalar::String(text) => text.clone(),
        Scalar::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

fn decimal_text(unscaled: i128, scale: i8) -> String {
    let Ok(scale @ 1..) = usize::try_from(scale) else { return unscaled.to_string() };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
}

fn date_text(days: i32) -> String {
    let epoch = jiff::civil::date(1970, 1, 1);
    let span = jiff::Span::new().try_days(days);
    let date: Option<Date> = span.ok().and_then(|span| epoch.checked_add(span).ok());
    date.map_or_else(|| format!("day {days}"), |date| date.to_string())
}

/// A time in milliseconds as error messages show it.
pub(crate) fn instant_text(timestamp_ms: i64) -> String {
    Timestamp::from_millisecond(timestamp_ms)
        .map_or_else(|_| format!("millisecond {timestamp_ms}"), |time| time.to_string())
}

fn timestamp_text(micros: i64, zone: &str) -> String {
    match Timestamp::from_microsecond(micros) {
        Ok(timestamp) => format!("{}{zone}", timestamp.to_zoned(TimeZone::UTC).datetime()),
        Err(_) => format!("microsecond {micros}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_their_type_shows_them() {
        for (value, text) in [
            (Scalar::Decimal(-5, 2), "-0.05"),
            (Scalar::Decimal(1234, 2), "12.34"),
            (Scalar::Decimal(7, 0), "7"),
            (Scalar::Date(-1), "1969-12-31"),
            (Scalar::Date(i32::MAX), "day 2147483647"),
            (Scalar::TimestampNtz(1_500_000), "1970-01-01T00:00:01.5"),
            (Scalar::Timestamp(0), "1970-01-01T00:00:00+00:00"),
            (Scalar::Timestamp(i64::MAX), "microsecond 9223372036854775807"),
            (Scalar::Binary(vec![1, 0xab]), "01ab"),
        ] {
            assert_eq!(value_text(&value).as_deref(), Some(text));
        }
        assert_eq!(value_text(&Scalar::Null), None);
    }
}
