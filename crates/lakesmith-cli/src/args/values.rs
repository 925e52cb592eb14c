//! Text of single arguments to values.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil;
use jiff::tz::TimeZone;
use lakesmith::op::{RewriteLimits, Severity};
use lakesmith::units;

/// Column paths, each as its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns(pub(crate) Vec<Vec<String>>);

pub(crate) fn size(text: &str) -> Result<u64, String> {
    positive(units::parse_bytes(text))
}

/// Memory that a rewrite can keep to.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let least = RewriteLimits::MEMORY_BYTES_MIN;
    match size(text)? {
        bytes if bytes < least => Err(format!("must be at least {}", units::bytes_text(least))),
        bytes => Ok(bytes),
    }
}

/// The codecs that files can be written with.
pub(crate) fn codecs() -> PossibleValuesParser {
    let key = "spark.sql.parquet.compression.codec";
    let words = lakesmith::settings_reference().into_iter().find(|s| s.key == key).map_or(&[][..], |s| s.words);
    PossibleValuesParser::new(words)
}

pub(crate) fn severities() -> impl TypedValueParser<Value = Severity> {
    let names = [Severity::Info, Severity::Warning, Severity::Critical].map(Severity::as_str);
    PossibleValuesParser::new(names).try_map(|name| Severity::parse(&name))
}

pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    units::parse_duration_ms(text).map_err(|e| e.message().to_owned())
}

/// A duration that may be negative, so that the library can say what is wrong with it.
pub(crate) fn retention_ms(text: &str) -> Result<i64, String> {
    let (sign, rest) = text.trim().strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let ms = i64::try_from(duration_ms(rest)?).map_err(|_| "is too long".to_owned())?;
    Ok(sign * ms)
}

/// A number of days, in milliseconds.
pub(crate) fn days_ms(text: &str) -> Result<u64, String> {
    let days = text.trim().trim_end_matches(['d', 'D']);
    match days.parse::<f64>() {
        Ok(days) if (0.0..36_500.0).contains(&days) => Ok((days * 86_400_000.0).round() as u64),
        _ => Err("write a number of days, for example 7".to_owned()),
    }
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write key=value, for example lakesmith.compat=spark".to_owned()),
    }
}

pub(crate) fn timestamp_ms(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let utc = |t: civil::DateTime| t.to_zoned(TimeZone::UTC).map(|z| z.timestamp());
    text.parse::<jiff::Timestamp>()
        .or_else(|_| text.parse::<civil::DateTime>().and_then(utc))
        .or_else(|_| text.parse::<civil::Date>().and_then(|d| utc(d.to_datetime(civil::Time::midnight()))))
        .map(|t| t.as_millisecond())
        .map_err(|_| "write a time such as 2026-01-31, '2026-01-31 12:00:00' or 2026-01-31T12:00:00+01:00".to_owned())
}

/// `a,b.c,`d.e`` as three paths of 1, 2 and 1 parts.
pub(crate) fn columns(text: &str) -> Result<Columns, String> {
    let mut paths = vec![vec![String::new()]];
    let mut quoted = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let path = paths.last_mut().ok_or("no column")?;
        let part = path.last_mut().ok_or("no column")?;
        match c {
            '`' if quoted && rest.peek() == Some(&'`') => {
                rest.next();
                part.push('`');
            }
            '`' => quoted = !quoted,
            '.' if !quoted => path.push(String::new()),
            ',' if !quoted => paths.push(vec![String::new()]),
            c if c.is_whitespace() && !quoted => {}
            c => part.push(c),
        }
    }
    if quoted || paths.iter().flatten().any(String::is_empty) {
        return Err(
            "write column names with commas between them, for example a,b.c; quote odd names with backticks".to_owned()
        );
    }
    Ok(Columns(paths))
}

fn positive(size: lakesmith::Result<u64>) -> Result<u64, String> {
    match size {
        Ok(0) => Err("must be more than 0".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.message().to_owned()),
    }
}

/// Statements may begin with a comment; an option that there is not is none.
pub(super) fn statements(text: &str) -> Result<String, String> {
    let is_option = text.starts_with('-') && text != "-" && !text.contains(char::is_whitespace);
    if is_option { Err("there is no such option, and no statement in it".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_an_offset_are_utc() {
        for (text, expected) in [
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-01 00:00:01.5", Some(1_500)),
            ("1970-01-01T00:00:01", Some(1_000)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(timestamp_ms(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn columns_are_paths_and_backticks_quote() {
        let parsed = |text| columns(text).ok().map(|c| c.0);
        let paths = |list: &[&[&str]]| -> Option<Vec<Vec<String>>> {
            Some(list.iter().map(|p| p.iter().map(ToString::to_string).collect()).collect())
        };
        assert_eq!(parsed("a, b.c"), paths(&[&["a"], &["b", "c"]]));
        assert_eq!(parsed("`d.e`,`f``g`,`h,i j`"), paths(&[&["d.e"], &["f`g"], &["h,i j"]]));
        for text in ["", "a,", "a..b", "`a"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn settings_split_at_the_first_equals_sign() {
        assert_eq!(setting("a.b = c=d").ok(), Some(("a.b".to_owned(), "c=d".to_owned())));
        assert_eq!(setting("a=").ok(), Some(("a".to_owned(), String::new())));
        assert!(setting("=x").is_err());
        assert!(setting("x").is_err());
    }

    #[test]
    fn sizes_must_be_positive() {
        assert_eq!(size("256MiB").ok(), Some(256 << 20));
        assert!(size("0").is_err());
        assert_eq!(memory("12MiB").ok(), Some(12 << 20));
        assert_eq!(memory("12582911").err().as_deref(), Some("must be at least 12MiB"));
    }
}
