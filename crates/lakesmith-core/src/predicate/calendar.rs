//! The proleptic Gregorian calendar on day numbers, as SQL dates use it: no time zone, no clock.
//!
//! # Source
//! Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (days_from_civil, civil_from_days).

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub(super) const MINUTE: i64 = 60 * SECOND;
/// Microseconds in an hour.
pub(super) const HOUR: i64 = 60 * MINUTE;
/// Microseconds in a day.
pub const DAY: i64 = 24 * HOUR;

/// First and last year of Spark's DATE.
pub(super) const YEARS: std::ops::RangeInclusive<i32> = -999_999..=999_999;

/// Days since 1970-01-01, or `None` if there is no such day (2026-02-30) or Spark's DATE has no such year.
pub fn days(year: i32, month: u32, day: u32) -> Option<i32> {
    if !YEARS.contains(&year) || !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted_month = i64::from((month + 9) % 12);
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

/// Year, month and day of a day number.
pub fn civil(days: i32) -> (i32, u32, u32) {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as u32, day as u32)
}

/// True for leap years.
pub(super) fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of days of a month, 1 to 12.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day `months` later; a day that the month doesn't have becomes its last. `None` beyond the years of Spark's DATE.
pub fn add_months(from: i32, months: i32) -> Option<i32> {
    let (year, month, day) = civil(from);
    let total = i64::from(year) * 12 + i64::from(month) - 1 + i64::from(months);
    let year = i32::try_from(total.div_euclid(12)).ok()?;
    let month = total.rem_euclid(12) as u32 + 1;
    days(year, month, day.min(days_in_month(year, month)))
}

/// Monday is 0, Sunday is 6.
pub(super) fn weekday(days: i32) -> u32 {
    (i64::from(days) + 3).rem_euclid(7) as u32
}

/// Day of the year, from 1.
pub(super) fn day_of_year(day: i32) -> i32 {
    let (year, _, _) = civil(day);
    days(year, 1, 1).map_or(1, |first| day - first + 1)
}

/// ISO 8601 week number, 1 to 53.
pub(super) fn iso_week(day: i32) -> i32 {
    // A week belongs to the year of its Thursday.
    let thursday = day - weekday(day) as i32 + 3;
    (day_of_year(thursday) - 1) / 7 + 1
}

/// A timestamp's day number.
pub fn day_of(micros: i64) -> i32 {
    micros.div_euclid(DAY) as i32
}

/// A timestamp's microseconds since midnight.
pub fn time_of(micros: i64) -> i64 {
    micros.rem_euclid(DAY)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_days() {
        for (date, number) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2026, 11, 29), 20_786),
            ((1, 1, 1), -719_162),
            ((9999, 12, 31), 2_932_896),
        ] {
            assert_eq!(days(date.0, date.1, date.2), Some(number), "{date:?}");
            assert_eq!(civil(number), date);
        }
        for no_day in [(2026, 2, 29), (1900, 2, 29), (2026, 13, 1), (2026, 0, 1), (2026, 4, 31), (2026, 1, 0)] {
            assert_eq!(days(no_day.0, no_day.1, no_day.2), None, "{no_day:?}");
        }
    }

    #[test]
    fn weeks_and_days_of_the_year() {
        let day = |y, m, d| days(y, m, d).unwrap();
        // 2026-11-29 is a Sunday.
        assert_eq!(weekday(day(2026, 11, 29)), 6);
        assert_eq!(weekday(day(1970, 1, 1)), 3);
        for (date, week) in
            [((2026, 11, 29), 48), ((2021, 1, 3), 53), ((2021, 1, 4), 1), ((2024, 12, 30), 1), ((2020, 12, 31), 53)]
        {
            assert_eq!(iso_week(day(date.0, date.1, date.2)), week, "{date:?}");
        }
        assert_eq!(day_of_year(day(2024, 12, 31)), 366);
    }

    proptest! {
        #[test]
        fn civil_and_days_are_inverse(number in -300_000_000i32..300_000_000) {
            let (y, m, d) = civil(number);
            prop_assert_eq!(days(y, m, d), Some(number));
            let (next_y, next_m, next_d) = civil(number + 1);
            let expected = if d < days_in_month(y, m) { (y, m, d + 1) }
                else if m < 12 { (y, m + 1, 1) } else { (y + 1, 1, 1) };
            prop_assert_eq!((next_y, next_m, next_d), expected);
        }

        #[test]
        fn adding_months_keeps_the_day_or_ends_the_month(number in -1_000_000i32..1_000_000, months in -5_000i32..5_000) {
            let (y, m, d) = civil(number);
            let (y2, m2, d2) = civil(add_months(number, months).unwrap());
            prop_assert_eq!(y2 * 12 + m2 as i32, y * 12 + m as i32 + months);
            prop_assert_eq!(d2, d.min(days_in_month(y2, m2)));
        }
    }
}
