//! `date_format`

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use jiff::civil::DateTime;
use lakesmith::Error;

use super::{arrays, given, text};
use crate::wall_clock::date_time;

/// A time as text after a pattern of Java's.
///
/// # Source
/// Spark "Datetime Patterns for Formatting and Parsing".
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DateFormat {
    signature: Signature,
}

impl Default for DateFormat {
    fn default() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DateFormat {
    fn name(&self) -> &str {
        "date_format"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (arrays, scalar) = arrays(&args)?;
        let times = cast(&arrays[0], &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let patterns = text(&arrays[1])?;
        let one = |row: usize| -> Result<Option<String>> {
            if times.is_null(row) || patterns.is_null(row) {
                return Ok(None);
            }
            let time = date_time(times.value(row)).ok_or_else(|| refused("years beyond 9999 have no date_format"))?;
            formatted(time, patterns.value(row)).map(Some)
        };
        let texts: StringArray = (0..times.len()).map(one).collect::<Result<_>>()?;
        given(Arc::new(texts), scalar)
    }
}

fn refused(what: &str) -> DataFusionError {
    DataFusionError::External(Box::new(Error::unsupported(what).class("UNSUPPORTED_FEATURE")))
}

fn formatted(time: DateTime, pattern: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if letter == '\'' {
            rest = quoted(&rest[1..], &mut out)?;
            continue;
        }
        let count = rest.chars().take_while(|c| *c == letter).count();
        rest = &rest[count * letter.len_utf8()..];
        if letter.is_ascii_alphabetic() {
            out += &field(time, letter, count)
                .ok_or_else(|| refused(&format!("date_format does not know '{letter}' {count} times yet")))?;
        } else if matches!(letter, '[' | ']' | '{' | '}' | '#') {
            return Err(refused(&format!("date_format does not know '{letter}' yet")));
        } else {
            out.extend(std::iter::repeat_n(letter, count));
        }
    }
    Ok(out)
}

/// Appends text in quotes, which began before `rest`; two quotes are one.
fn quoted<'a>(rest: &'a str, out: &mut String) -> Result<&'a str> {
    if let Some(rest) = rest.strip_prefix('\'') {
        out.push('\'');
        return Ok(rest);
    }
    let mut rest = rest;
    loop {
        let end = rest.find('\'').ok_or_else(|| refused("a quote in the pattern of date_format is not closed"))?;
        out.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Ok(rest),
        }
    }
}

fn field(time: DateTime, letter: char, count: usize) -> Option<String> {
    let padded = |value: i64, most: usize| (count <= most).then(|| format!("{value:0count$}"));
    let hour12 = || match time.hour().rem_euclid(12) {
        0 => 12,
        hour => i64::from(hour),
    };
    match (letter, count) {
        ('y', 2) => Some(format!("{:02}", time.year() % 100)),
        ('y', _) => padded(time.year().into(), 6),
        ('M' | 'L', 3) => Some(time.strftime("%b").to_string()),
        ('M' | 'L', 4) => Some(time.strftime("%B").to_string()),
        ('M' | 'L', _) => padded(time.month().into(), 2),
        ('d', _) => padded(time.day().into(), 2),
        ('D', _) => padded(time.day_of_year().into(), 3),
        ('E', 1..=3) => Some(time.strftime("%a").to_string()),
        ('E', 4) => Some(time.strftime("%A").to_string()),
        ('H', _) => padded(time.hour().into(), 2),
        ('h', _) => padded(hour12(), 2),
        ('m', _) => padded(time.minute().into(), 2),
        ('s', _) => padded(time.second().into(), 2),
        ('a', 1) => Some(if time.hour() < 12 { "AM" } else { "PM" }.to_owned()),
        ('S', 1..=9) => {
            let mut digits = String::new();
            write!(digits, "{:09}", time.subsec_nanosecond()).ok()?;
            digits.truncate(count);
            Some(digits)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_java() {
        let time: DateTime = "2026-03-04T15:06:07.089".parse().unwrap();
        for (pattern, expected) in [
            ("yyyy-MM-dd HH:mm:ss.SSS", "2026-03-04 15:06:07.089"),
            ("d.M.yy h:m:s a", "4.3.26 3:6:7 PM"),
            ("E, EEEE MMM MMMM", "Wed, Wednesday Mar March"),
            ("y DDD 'o''clock' ''", "2026 063 o'clock '"),
            ("yyyyMMdd'T'HHmmssSSSSSS", "20260304T150607089000"),
        ] {
            assert_eq!(formatted(time, pattern).unwrap(), expected);
        }
        for pattern in ["q", "VV", "ddd", "'open", "[yyyy]"] {
            assert!(formatted(time, pattern).is_err(), "{pattern}");
        }
    }
}
