//! Sizes and durations as people write them: `256MiB`, `1 GiB`, `168h`, `7 days`.

use crate::error::{Error, Result};

/// One mebibyte in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte in bytes.
pub const GIB: u64 = 1 << 30;

/// Parses a size in bytes: a number with an optional unit (`b`, `k`/`kb`/`kib`, … up to `p`), powers of 1024, any
/// case, optional space. A plain number is bytes, as in Spark's configuration.
///
/// # Errors
/// [`crate::ErrorKind::Usage`] if the text is not a size or does not fit 63 bits.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let (number, unit) = split_number(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => 1 << 40,
        "p" | "pb" | "pib" => 1 << 50,
        _ => return Err(bad_size(text)),
    };
    let value = number * factor as f64;
    if !(0.0..9.2e18).contains(&value) {
        return Err(bad_size(text));
    }
    // Whole numbers must not go through floating point: 2^53 + 1 bytes is a legal size.
    match number_as_integer(text) {
        Some(whole) => whole.checked_mul(factor).filter(|v| *v < 1 << 63).ok_or_else(|| bad_size(text)),
        None => Ok(value as u64),
    }
}

/// Parses a duration in milliseconds: a number with `ms`, `s`, `m`/`min`, `h`/`hour(s)`, `d`/`day(s)` or `w`/`week(s)`.
///
/// # Errors
/// [`crate::ErrorKind::Usage`] if the text is not a duration.
pub fn parse_duration_ms(text: &str) -> Result<u64> {
    let (number, unit) = split_number(text).map_err(|_| bad_duration(text))?;
    let factor: f64 = match unit.to_ascii_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
        "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
        "h" | "hour" | "hours" => 3.6e6,
        "d" | "day" | "days" => 8.64e7,
        "w" | "week" | "weeks" => 6.048e8,
        _ => return Err(bad_duration(text)),
    };
    Ok((number * factor).round() as u64)
}

/// `1536` as `1.5 KiB`: for people; exact bytes go into JSON.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// `268435456` as `256MiB`: exact, as [`parse_bytes`] reads it.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value > 0 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", UNITS[unit])
}

/// `1800000` milliseconds as `30min`: exact, as [`parse_duration_ms`] reads it.
pub fn duration_text(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match UNITS.iter().find(|(factor, _)| ms > 0 && ms.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("{}{unit}", ms / factor),
        None => format!("{ms}ms"),
    }
}

/// `1 file`, `2 files`: for people.
pub fn counted(number: u64, one: &str) -> String {
    let plural = match one.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    };
    if number == 1 { format!("1 {one}") } else { format!("{number} {plural}") }
}

/// `1234567` as `1,234,567`: for people.
pub fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn split_number(text: &str) -> Result<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text[..end].parse::<f64>().map_err(|_| bad_size(text))?;
    Ok((number, text[end..].trim()))
}

fn number_as_integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if text[end..].starts_with('.') { None } else { text[..end].parse().ok() }
}

fn bad_size(text: &str) -> Error {
    Error::usage(format!("'{text}' is not a size; write bytes or a unit, for example 256MiB or 1GiB"))
}

fn bad_duration(text: &str) -> Error {
    Error::usage(format!("'{text}' is not a duration; write for example 168h, 7d or 30min"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_exact() {
        for (text, expected) in [
            ("262144", 262_144),
            ("256KiB", 262_144),
            ("256 kb", 262_144),
            ("1g", GIB),
            ("1.5MiB", 1_572_864),
            ("9007199254740993", 9_007_199_254_740_993),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(text).ok(), Some(expected), "{text}");
        }
        for text in ["", "x", "-1", "1 foo", "1..2", "99999999999g"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_know_the_usual_units() {
        assert_eq!(parse_duration_ms("168h").ok(), Some(604_800_000));
        assert_eq!(parse_duration_ms("7 days").ok(), Some(604_800_000));
        assert_eq!(parse_duration_ms("1.5 s").ok(), Some(1_500));
        assert!(parse_duration_ms("7").is_err());
    }

    #[test]
    fn counts_for_people() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(format_count(number), expected);
        }
    }

    #[test]
    fn exact_texts_are_short_and_read_back() {
        for (bytes, text) in
            [(0, "0"), (1023, "1023"), (512 * MIB, "512MiB"), (GIB, "1GiB"), (GIB + 1024, "1048577KiB")]
        {
            assert_eq!(bytes_text(bytes), text);
            assert_eq!(parse_bytes(text).ok(), Some(bytes), "{text}");
        }
        for (ms, text) in
            [(0, "0ms"), (1_500, "1500ms"), (1_800_000, "30min"), (604_800_000, "7d"), (5_400_000, "90min")]
        {
            assert_eq!(duration_text(ms), text);
            assert_eq!(parse_duration_ms(text).ok(), Some(ms), "{text}");
        }
    }

    #[test]
    fn one_is_singular() {
        let counts = [counted(0, "file"), counted(1, "file"), counted(2, "directory"), counted(1, "directory")];
        assert_eq!(counts, ["0 files", "1 file", "2 directories", "1 directory"]);
    }

    #[test]
    fn bytes_for_people() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(1536), "1.5 KiB");
        assert_eq!(format_bytes(u64::MAX), "16384.0 PiB");
    }
}
