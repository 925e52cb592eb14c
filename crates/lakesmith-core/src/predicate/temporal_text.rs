//! Dates and timestamps to and from text, as Spark's casts have them.
//!
//! # Source
//! Spark `SparkDateTimeUtils.stringToDate`, `stringToTimestamp`, `TimestampFormatter.getFractionFormatter`.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, civil, day_of, days, time_of};

/// Reads `[+-]yyyy[-m[-d]]`, a trailing space or `T` and anything after it ignored, spaces around it trimmed.
/// Days since the epoch; `None` if the text is no date.
pub fn parse_date(text: &str) -> Option<i32> {
    let text = trim(text);
    let (day, rest) = date_prefix(text)?;
    match rest.chars().next() {
        None => Some(day),
        // Spark takes what follows only after a complete date.
        Some(' ' | 'T') if text[..text.len() - rest.len()].matches('-').count() >= 2 => Some(day),
        Some(_) => None,
    }
}

/// Reads a timestamp: a date, optionally a time (`h[:m[:s[.f]]]`) after a space or `T`, optionally a fixed zone (`Z`, `UTC`,
/// `+h[:mm]`). The text is UTC unless it says otherwise. Microseconds since the epoch, and whether the text had a zone;
/// `None` if it is no timestamp.
pub fn parse_timestamp(text: &str) -> Option<(i64, bool)> {
    let text = trim(text);
    let (day, rest) = date_prefix(text)?;
    let midnight = i64::from(day).checked_mul(DAY)?;
    if rest.is_empty() {
        return Some((midnight, false));
    }
    let rest = rest.strip_prefix([' ', 'T'])?;
    let (time, zone) = time_of_day(rest)?;
    let zone = zone.trim();
    let offset = if zone.is_empty() { 0 } else { parse_zone(zone)? };
    Some((midnight.checked_add(time)?.checked_sub(offset)?, !zone.is_empty()))
}

/// `2026-11-29`; years of more than four digits get a sign, as in Java.
pub(super) fn format_date(day: i32) -> String {
    let (year, month, day) = civil(day);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// `2026-11-29 10:11:12.5`: the fraction without trailing zeros.
pub(super) fn format_timestamp(micros: i64) -> String {
    let time = time_of(micros);
    let fraction = time % SECOND;
    let mut text = format!(
        "{} {:02}:{:02}:{:02}",
        format_date(day_of(micros)),
        time / HOUR,
        time / MINUTE % 60,
        time / SECOND % 60
    );
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// Removes what Spark's `UTF8String.trimAll` removes.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

/// Day of a leading `[+-]yyyy[-m[-d]]` and the rest of the text.
fn date_prefix(text: &str) -> Option<(i32, &str)> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (year, mut rest) = digits(unsigned, 4, 7)?;
    let year = i32::try_from(year).ok()?;
    let mut parts = [1u32, 1];
    for part in &mut parts {
        let Some(after) = rest.strip_prefix('-') else { break };
        let (value, after) = digits(after, 1, 2)?;
        *part = value as u32;
        rest = after;
    }
    Some((days(if negative { -year } else { year }, parts[0], parts[1])?, rest))
}

/// Microseconds of a leading `h[:m[:s[.f]]]` and the rest of the text.
fn time_of_day(text: &str) -> Option<(i64, &str)> {
    let (hour, mut rest) = digits(text, 1, 2)?;
    let (mut minute, mut second, mut fraction) = (0, 0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = digits(after, 1, 2)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = digits(after, 1, 2)?;
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                // Digits beyond the microsecond are cut.
                fraction = format!("{:0<6}", &after[..end.min(6)]).parse().ok()?;
                rest = &after[end..];
            }
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((hour * HOUR + minute * MINUTE + second * SECOND + fraction, rest))
}

fn parse_zone(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let offset = match zone.get(..3) {
        Some("UTC" | "GMT") => &zone[3..],
        _ => zone.strip_prefix("UT").unwrap_or(zone),
    };
    if offset.is_empty() {
        return Some(0);
    }
    let (sign, rest) = match offset.as_bytes()[0] {
        b'+' => (1, &offset[1..]),
        b'-' => (-1, &offset[1..]),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 1, 2)?;
    let mut minutes = 0;
    let mut seconds = 0;
    let mut rest = rest;
    if !rest.is_empty() {
        let colon = rest.starts_with(':');
        (minutes, rest) = digits(rest.strip_prefix(':').unwrap_or(rest), if colon { 1 } else { 2 }, 2)?;
    }
    if let Some(after) = rest.strip_prefix(':') {
        (seconds, rest) = digits(after, 2, 2)?;
    }
    let total = hours * HOUR + minutes * MINUTE + seconds * SECOND;
    (rest.is_empty() && minutes < 60 && seconds < 60 && total <= 18 * HOUR).then_some(sign * total)
}

/// A leading number of `at_least` to `at_most` digits and the rest of the text; more digits are an error.
pub(super) fn digits(text: &str, at_least: usize, at_most: usize) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if !(at_least..=at_most).contains(&end) {
        return None;
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_spark_reads_them() {
        let day = days(2026, 11, 29);
        for text in ["2026-11-29", " 2026-11-29 ", "2026-11-29 10:00", "2026-11-29Tx", "+2026-11-29"] {
            assert_eq!(parse_date(text), day, "{text}");
        }
        assert_eq!(parse_date("2026"), days(2026, 1, 1));
        assert_eq!(parse_date("2026-3"), days(2026, 3, 1));
        assert_eq!(parse_date("-0044-03-15"), days(-44, 3, 15));
        for text in ["", "x", "226-11-29", "2026-02-30", "2026-011-29", "2026-11-29x", "2026/11/29", "20261129"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_as_spark_reads_them() {
        let base = i64::from(days(2026, 11, 29).unwrap()) * DAY;
        for (text, expected) in [
            ("2026-11-29", base),
            ("2026-11-29 10", base + 10 * HOUR),
            ("2026-11-29T10:11:12.1234567Z", base + 10 * HOUR + 11 * MINUTE + 12 * SECOND + 123_456),
            ("2026-11-29 10:11:12+05:30", base + 4 * HOUR + 41 * MINUTE + 12 * SECOND),
            ("2026-11-29 10:11:12 UTC", base + 10 * HOUR + 11 * MINUTE + 12 * SECOND),
            ("2026-11-29 10:00:00 GMT-8", base + 18 * HOUR),
        ] {
            assert_eq!(parse_timestamp(text).map(|t| t.0), Some(expected), "{text}");
        }
        for text in
            ["2026-11-29 24:00:00", "2026-11-29 1:60", "10:11:12", "2026-11-29 10:11:12 Mars/Base", "2026-11-29T", "é"]
        {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn text_drops_trailing_zeros_of_the_fraction() {
        assert_eq!(format_timestamp(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(format_timestamp(500_000), "1970-01-01 00:00:00.5");
        assert_eq!(format_date(days(12026, 1, 2).unwrap()), "+12026-01-02");
        assert_eq!(format_date(days(-5, 1, 2).unwrap()), "-0005-01-02");
    }
}
