//! Functions on dates and timestamps.

use super::arithmetic::{add_days, out_of_range};
use super::calendar::{
    DAY, HOUR, MINUTE, SECOND, add_months, civil, day_of, day_of_year, days, days_in_month, iso_week, time_of, weekday,
};
use super::coerce::Type;
use super::functions::{Param, Signature};
use super::{cast, date_pattern};
use crate::error::{Error, Result};
use crate::table::Scalar;

const fn fixed(
    names: &'static [&'static str],
    params: &'static [Param],
    returns: Type,
    call: super::eval::Call,
) -> Signature {
    Signature { names, params, required: params.len(), repeats: false, returns: Some(returns), call }
}

const DATE: &[Param] = &[Param::Date];
const INSTANT: &[Param] = &[Param::Instant];

pub(super) const SIGNATURES: &[Signature] = &[
    fixed(&["date_add"], &[Param::Date, Param::Int], Type::Date, |a| add_days(day(a, 0)?, long(a, 1)?)),
    fixed(&["date_sub"], &[Param::Date, Param::Int], Type::Date, |a| add_days(day(a, 0)?, -long(a, 1)?)),
    fixed(&["add_months"], &[Param::Date, Param::Int], Type::Date, |a| {
        let months = i32::try_from(long(a, 1)?).map_err(|_| out_of_range())?;
        add_months(day(a, 0)?, months).map(Scalar::Date).ok_or_else(out_of_range)
    }),
    fixed(&["datediff", "date_diff"], &[Param::Date, Param::Date], Type::Int, |a| {
        Ok(Scalar::Long(i64::from(day(a, 0)?) - i64::from(day(a, 1)?)))
    }),
    fixed(&["last_day"], DATE, Type::Date, |a| {
        let (y, m, _) = civil(day(a, 0)?);
        date(days(y, m, days_in_month(y, m)))
    }),
    fixed(&["make_date"], &[Param::Int, Param::Int, Param::Int], Type::Date, |a| {
        let part = |i| long(a, i).map(|v| u32::try_from(v).unwrap_or(0));
        let year = i32::try_from(long(a, 0)?).map_err(|_| out_of_range())?;
        days(year, part(1)?, part(2)?).map(Scalar::Date).ok_or_else(|| {
            let message = format!("there is no date {year}-{}-{}", cast::text(&a[1]), cast::text(&a[2]));
            Error::usage(message).class("DATETIME_FIELD_OUT_OF_BOUNDS")
        })
    }),
    fixed(&["trunc"], &[Param::Date, Param::Text], Type::Date, |a| {
        Ok(truncate_date(day(a, 0)?, text(a, 1)?).map_or(Scalar::Null, Scalar::Date))
    }),
    fixed(&["date_trunc"], &[Param::Text, Param::Instant], Type::Timestamp, |a| {
        Ok(truncate_timestamp(text(a, 0)?, instant(a, 1)?)?.map_or(Scalar::Null, Scalar::Timestamp))
    }),
    fixed(&["date_format"], &[Param::Instant, Param::Text], Type::String, |a| {
        date_pattern::format(instant(a, 0)?, text(a, 1)?).map(Scalar::String)
    }),
    // With one argument these are casts.
    fixed(&["to_date"], &[Param::Text, Param::Text], Type::Date, |a| {
        date_pattern::parse(text(a, 0)?, text(a, 1)?).map(|t| Scalar::Date(day_of(t)))
    }),
    fixed(&["to_timestamp"], &[Param::Text, Param::Text], Type::Timestamp, |a| {
        date_pattern::parse(text(a, 0)?, text(a, 1)?).map(Scalar::Timestamp)
    }),
    fixed(&["year"], DATE, Type::Int, |a| int(i64::from(civil(day(a, 0)?).0))),
    fixed(&["quarter"], DATE, Type::Int, |a| int(i64::from(civil(day(a, 0)?).1.div_ceil(3)))),
    fixed(&["month"], DATE, Type::Int, |a| int(i64::from(civil(day(a, 0)?).1))),
    fixed(&["day", "dayofmonth"], DATE, Type::Int, |a| int(i64::from(civil(day(a, 0)?).2))),
    fixed(&["dayofyear"], DATE, Type::Int, |a| int(i64::from(day_of_year(day(a, 0)?)))),
    // Sunday is 1.
    fixed(&["dayofweek"], DATE, Type::Int, |a| int(i64::from((weekday(day(a, 0)?) + 1) % 7 + 1))),
    fixed(&["weekday"], DATE, Type::Int, |a| int(i64::from(weekday(day(a, 0)?)))),
    fixed(&["weekofyear"], DATE, Type::Int, |a| int(i64::from(iso_week(day(a, 0)?)))),
    fixed(&["hour"], INSTANT, Type::Int, |a| int(time_of(instant(a, 0)?) / HOUR)),
    fixed(&["minute"], INSTANT, Type::Int, |a| int(time_of(instant(a, 0)?) / MINUTE % 60)),
    fixed(&["second"], INSTANT, Type::Int, |a| int(time_of(instant(a, 0)?) / SECOND % 60)),
    fixed(&["unix_date"], DATE, Type::Int, |a| int(i64::from(day(a, 0)?))),
    fixed(&["unix_timestamp", "to_unix_timestamp"], INSTANT, Type::Long, |a| int(instant(a, 0)? / SECOND)),
];

/// The function that EXTRACT(field FROM …) stands for.
pub(super) fn extractor(field: &str) -> Option<&'static str> {
    Some(match field.to_ascii_lowercase().as_str() {
        "year" | "y" | "years" | "yr" | "yrs" => "year",
        "quarter" | "qtr" => "quarter",
        "month" | "mon" | "mons" | "months" => "month",
        "week" | "w" | "weeks" => "weekofyear",
        "day" | "d" | "days" => "day",
        "dayofweek" | "dow" => "dayofweek",
        "doy" => "dayofyear",
        "hour" | "h" | "hours" | "hr" | "hrs" => "hour",
        "minute" | "m" | "min" | "mins" | "minutes" => "minute",
        _ => return None,
    })
}

/// The first day of the year, quarter, month or week of a day, as `trunc` gives it; `None` for a unit that it does not know.
pub fn truncate_date(day: i32, unit: &str) -> Option<i32> {
    let (year, month, _) = civil(day);
    match unit.to_ascii_lowercase().as_str() {
        "year" | "yyyy" | "yy" => days(year, 1, 1),
        "quarter" => days(year, (month - 1) / 3 * 3 + 1, 1),
        "month" | "mm" | "mon" => days(year, month, 1),
        "week" => day.checked_sub(weekday(day) as i32),
        _ => None,
    }
}

/// The first microsecond of the unit that a timestamp lies in, as `date_trunc` gives it; `None` for a unit that it does not
/// know.
///
/// # Errors
/// Usage if a week begins before the first timestamp.
pub fn truncate_timestamp(unit: &str, micros: i64) -> Result<Option<i64>> {
    let unit = unit.to_ascii_lowercase();
    let size = match unit.as_str() {
        "day" | "dd" => DAY,
        "hour" => HOUR,
        "minute" => MINUTE,
        "second" => SECOND,
        "millisecond" => 1000,
        "microsecond" => 1,
        _ => {
            let day = truncate_date(day_of(micros), &unit);
            return day.map(|day| i64::from(day).checked_mul(DAY).ok_or_else(out_of_range)).transpose();
        }
    };
    micros.checked_sub(micros.rem_euclid(size)).map(Some).ok_or_else(out_of_range)
}

fn date(day: Option<i32>) -> Result<Scalar> {
    day.map(Scalar::Date).ok_or_else(out_of_range)
}

fn int(value: i64) -> Result<Scalar> {
    Ok(Scalar::Long(value))
}

fn day(arguments: &[Scalar], index: usize) -> Result<i32> {
    match arguments.get(index) {
        Some(Scalar::Date(day)) => Ok(*day),
        _ => Err(wrong_argument(index)),
    }
}

fn instant(arguments: &[Scalar], index: usize) -> Result<i64> {
    match arguments.get(index) {
        Some(Scalar::Timestamp(micros)) => Ok(*micros),
        _ => Err(wrong_argument(index)),
    }
}

/// The integer argument at `index`.
pub(super) fn long(arguments: &[Scalar], index: usize) -> Result<i64> {
    match arguments.get(index) {
        Some(Scalar::Long(value)) => Ok(*value),
        _ => Err(wrong_argument(index)),
    }
}

/// The text argument at `index`.
pub(super) fn text(arguments: &[Scalar], index: usize) -> Result<&str> {
    match arguments.get(index) {
        Some(Scalar::String(text)) => Ok(text),
        _ => Err(wrong_argument(index)),
    }
}

fn wrong_argument(index: usize) -> Error {
    Error::internal(format!("argument {index} of a function was not converted"))
}
