//! Microseconds since the epoch as date and time in UTC, for every year that has four digits.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// The date and time; `None` beyond the years that can be written.
pub(crate) fn date_time(micros: i64) -> Option<DateTime> {
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(SignedDuration::from_micros(micros)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_second_can_be_written() {
        for (micros, expected) in [
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59.999999"),
        ] {
            assert_eq!(date_time(micros).map(|t| t.to_string()), Some(expected.to_owned()));
        }
        assert_eq!(date_time(i64::MAX), None);
    }
}
