//! Patterns of `date_format`, `to_date` and `to_timestamp`: the letters that partition names use.
//!
//! # Source
//! Spark "Datetime Patterns for Formatting and Parsing".

use super::calendar::{DAY, HOUR, MINUTE, SECOND, civil, day_of, days, time_of};
use super::temporal_text::digits;
use crate::error::{Error, Result};

enum Part {
    Literal(char),
    /// A letter and how often it stands.
    Field(char, usize),
}

/// Formats a timestamp.
pub(super) fn format(micros: i64, pattern: &str) -> Result<String> {
    let (year, month, day) = civil(day_of(micros));
    let time = time_of(micros);
    let mut text = String::new();
    for part in parts(pattern)? {
        let (letter, count) = match part {
            Part::Literal(c) => {
                text.push(c);
                continue;
            }
            Part::Field(letter, count) => (letter, count),
        };
        let number = match letter {
            'y' if count == 2 => i64::from(year.rem_euclid(100)),
            'y' => i64::from(year),
            'M' => i64::from(month),
            'd' => i64::from(day),
            'H' => time / HOUR,
            'm' => time / MINUTE % 60,
            's' => time / SECOND % 60,
            _ => {
                text.push_str(&format!("{:06}000", time % SECOND)[..count]);
                continue;
            }
        };
        text.push_str(&format!("{number:0count$}"));
    }
    Ok(text)
}

/// Reads a timestamp as `to_timestamp` does; what the pattern doesn't name is the start of 1970. Microseconds since the epoch.
///
/// # Errors
/// Usage: `CANNOT_PARSE_TIMESTAMP` if the text is not of the pattern, `INVALID_DATETIME_PATTERN` for a pattern with other
/// letters than those of partition names.
pub fn parse(text: &str, pattern: &str) -> Result<i64> {
    let fail = |rest: &str| {
        Error::usage(format!(
            "Text '{text}' could not be parsed at index {} with the pattern '{pattern}'",
            text.len() - rest.len()
        ))
        .class("CANNOT_PARSE_TIMESTAMP")
    };
    let (mut year, mut month, mut day, mut time) = (1970, 1, 1, 0);
    let mut rest = text;
    for part in parts(pattern)? {
        let (letter, count) = match part {
            Part::Literal(c) => {
                rest = rest.strip_prefix(c).ok_or_else(|| fail(rest))?;
                continue;
            }
            Part::Field(letter, count) => (letter, count),
        };
        // One letter takes one or two digits, more letters exactly as many: that is what lets yyyyMMdd be read.
        let most = if count == 1 { if letter == 'y' { 4 } else { 2 } } else { count };
        let least = if letter == 'S' { 1 } else { count };
        let end = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (number, _) = digits(&rest[..end], least, most).ok_or_else(|| fail(rest))?;
        rest = &rest[end..];
        match letter {
            'y' if count == 2 => year = 2000 + number as i32,
            'y' => year = number as i32,
            'M' => month = number as u32,
            'd' => day = number as u32,
            'H' if number < 24 => time += number * HOUR,
            'm' if number < 60 => time += number * MINUTE,
            's' if number < 60 => time += number * SECOND,
            'S' => time += number * SECOND / 10i64.pow(end as u32),
            _ => return Err(fail(rest)),
        }
    }
    if !rest.is_empty() {
        return Err(fail(rest));
    }
    days(year, month, day).map(|d| i64::from(d) * DAY + time).ok_or_else(|| fail(rest))
}

fn parts(pattern: &str) -> Result<Vec<Part>> {
    let invalid = |reason: String| {
        Error::usage(format!("the date pattern '{pattern}' is not available: {reason}"))
            .class("INVALID_DATETIME_PATTERN")
    };
    let mut parts = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            if chars.next_if_eq(&'\'').is_some() {
                parts.push(Part::Literal('\''));
                continue;
            }
            loop {
                match chars.next() {
                    Some('\'') if chars.next_if_eq(&'\'').is_some() => parts.push(Part::Literal('\'')),
                    Some('\'') => break,
                    Some(quoted) => parts.push(Part::Literal(quoted)),
                    None => return Err(invalid("a quote is not closed".into())),
                }
            }
        } else if c.is_ascii_alphabetic() {
            let mut count = 1;
            while chars.next_if_eq(&c).is_some() {
                count += 1;
            }
            let known = match c {
                'y' => matches!(count, 1 | 2 | 4),
                'M' | 'd' | 'H' | 'm' | 's' => count <= 2,
                'S' => count <= 9,
                _ => false,
            };
            if !known {
                let written = c.to_string().repeat(count.min(20));
                return Err(invalid(format!("'{written}' is none of yyyy, yy, MM, dd, HH, mm, ss, S")));
            }
            parts.push(Part::Field(c, count));
        } else {
            parts.push(Part::Literal(c));
        }
    }
    Ok(parts)
}
