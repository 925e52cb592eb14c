//! Proleptic Gregorian dates and times as days and microseconds since 1970-01-01, UTC.
//!
//! # Source
//! Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

/// Microseconds in a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// Days since the epoch of a civil date.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_index = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_index + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month, day of days since the epoch.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_index + 2) / 5 + 1) as u32;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days in a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    (days_from_civil(next_year, next_month, 1) - days_from_civil(year, month, 1)) as u32
}

/// Adds months, the day cut to the end of the month as Spark does.
pub fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let index = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// `2026-01-31`.
pub fn date_text(days: i32) -> String {
    let (year, month, day) = civil_from_days(i64::from(days));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-01-31 12:00:00` with a fraction only where there is one.
pub fn timestamp_text(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    let seconds = rest / 1_000_000;
    let mut text =
        format!("{} {:02}:{:02}:{:02}", date_text(days as i32), seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = rest % 1_000_000;
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// Parses `yyyy[-MM[-dd]]`.
pub fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let mut parts = digits.split('-');
    let year_text = parts.next()?;
    let number = |t: &str, most: usize| {
        (!t.is_empty() && t.len() <= most && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse::<i64>().ok())?
    };
    if year_text.len() < 4 {
        return None;
    }
    let year = number(year_text, 7)? * if negative { -1 } else { 1 };
    let month = parts.next().map_or(Some(1), |t| number(t, 2))? as u32;
    let day = parts.next().map_or(Some(1), |t| number(t, 2))? as u32;
    if parts.next().is_some() || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    i32::try_from(days_from_civil(year, month, day)).ok()
}

/// Parses a date with an optional time and an optional zone (`Z`, `+hh:mm`); without a zone it is UTC.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let text = text.trim();
    let Some(split) = text.find(['T', ' ']) else { return Some(i64::from(parse_date(text)?) * DAY_MICROS) };
    let days = i64::from(parse_date(&text[..split])?);
    let time = text[split + 1..].trim();
    let (time, offset_seconds) = split_zone(time)?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.split(':').map(|p| p.parse::<i64>().ok().filter(|_| p.len() <= 2));
    let hour = parts.next()??;
    let minute = parts.next().unwrap_or(Some(0))?;
    let second = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let micros = if fraction.is_empty() { 0 } else { format!("{fraction:0<6}").get(..6)?.parse::<i64>().ok()? };
    let seconds = hour * 3600 + minute * 60 + second - offset_seconds;
    days.checked_mul(DAY_MICROS)?.checked_add(seconds * 1_000_000 + micros)
}

fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(rest) = time.strip_suffix('Z').or_else(|| time.strip_suffix(" UTC")) {
        return Some((rest, 0));
    }
    match time.rfind(['+', '-']) {
        None => Some((time, 0)),
        Some(at) => {
            let (hours, minutes) = time[at + 1..].split_once(':').unwrap_or((&time[at + 1..], "0"));
            let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
            let sign = if time[at..].starts_with('-') { -1 } else { 1 };
            Some((time[..at].trim_end(), sign * seconds))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        assert_eq!(parse_date("1970-01-01"), Some(0));
        assert_eq!(parse_date("2026-11-30"), Some(20_787));
        assert_eq!(parse_date("0001-01-01"), Some(-719_162));
        assert_eq!(parse_date("2026-02-29"), None);
        assert_eq!(date_text(-719_162), "0001-01-01");
        assert_eq!(
            add_months(i64::from(parse_date("2024-01-31").unwrap()), 1),
            i64::from(parse_date("2024-02-29").unwrap())
        );
    }

    #[test]
    fn known_timestamps() {
        assert_eq!(parse_timestamp("1970-01-01T00:00:00.000001Z"), Some(1));
        assert_eq!(parse_timestamp("1970-01-01 01:00:00+01:00"), Some(0));
        assert_eq!(parse_timestamp("1969-12-31 23:59:59.5"), Some(-500_000));
        assert_eq!(parse_timestamp("1970-01-01 25:00:00"), None);
        assert_eq!(timestamp_text(-500_000), "1969-12-31 23:59:59.5");
    }

    proptest! {
        #[test]
        fn civil_round_trips(days in -4_000_000i64..4_000_000) {
            let (y, m, d) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(y, m, d), days);
        }
    }
}
