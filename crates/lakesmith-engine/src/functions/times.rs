//! Parts, units and texts of times, for every year that they have.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, PrimitiveArray, StringArray};
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::Result;
use lakesmith::predicate::calendar::{DAY, SECOND, civil, day_of, days_in_month, time_of};
use lakesmith::predicate::{parse_with_pattern, truncate_date, truncate_timestamp};

use super::builtin::{Builtin, cast_to, instant};
use crate::failure::external;

/// # Source
/// Spark `TruncTimestamp`, `TruncDate`, `UnixSeconds`, `UnixMillis`, `UnixMicros`, `MonthsBetween`, `GetTimestamp`,
/// `UnixTimestamp`, `DateFromUnixDate`.
pub(super) const FUNCTIONS: [Builtin; 10] = [
    Builtin {
        name: "date_trunc",
        arguments: 2..=2,
        takes: |types| cast_to(types, &[DataType::Utf8, instant()]),
        gives: |_| instant(),
        apply: |arrays, _| {
            let (units, times) = (arrays[0].as_string::<i32>(), arrays[1].as_primitive::<TimestampMicrosecondType>());
            let truncated = units.iter().zip(times).map(|pair| match pair {
                (Some(unit), Some(micros)) => truncate_timestamp(unit, micros).map_err(external),
                _ => Ok(None),
            });
            of_micros(truncated)
        },
    },
    Builtin {
        name: "trunc",
        arguments: 2..=2,
        takes: |types| cast_to(types, &[DataType::Date32, DataType::Utf8]),
        gives: |_| DataType::Date32,
        apply: |arrays, _| {
            let (dates, units) = (arrays[0].as_primitive::<Date32Type>(), arrays[1].as_string::<i32>());
            let truncated = dates.iter().zip(units).map(|(day, unit)| truncate_date(day?, unit?));
            Ok(Arc::new(truncated.collect::<Date32Array>()))
        },
    },
    since_epoch("unix_seconds", |arrays, _| floored(&arrays[0], SECOND)),
    since_epoch("unix_millis", |arrays, _| floored(&arrays[0], 1000)),
    since_epoch("unix_micros", |arrays, _| floored(&arrays[0], 1)),
    // Unlike its kin, this one rounds towards the epoch.
    since_epoch("unix_timestamp", |arrays, _| {
        let times = arrays[0].as_primitive::<TimestampMicrosecondType>();
        Ok(Arc::new(times.unary::<_, Int64Type>(|micros| micros / SECOND)))
    }),
    Builtin {
        name: "date_from_unix_date",
        arguments: 1..=1,
        takes: |types| cast_to(types, &[DataType::Int32]),
        gives: |_| DataType::Date32,
        apply: |arrays, to| Ok(arrow::compute::cast(&arrays[0], to)?),
    },
    Builtin {
        name: "months_between",
        arguments: 2..=3,
        takes: |types| cast_to(types, &[instant(), instant(), DataType::Boolean]),
        gives: |_| DataType::Float64,
        apply: |arrays, _| {
            let times = [&arrays[0], &arrays[1]].map(|array| array.as_primitive::<TimestampMicrosecondType>());
            let rounds = arrays.get(2).map(|array| array.as_boolean());
            let between = |row: usize| {
                let is_null = times.iter().any(|t| t.is_null(row)) || rounds.is_some_and(|r| r.is_null(row));
                let round = rounds.is_none_or(|r| r.value(row));
                (!is_null).then(|| months_between(times[0].value(row), times[1].value(row), round))
            };
            Ok(Arc::new((0..times[0].len()).map(between).collect::<Float64Array>()))
        },
    },
    Builtin {
        name: "__lakesmith_parse_time",
        arguments: 2..=2,
        // A pattern has nothing to say about what is a time already.
        takes: |types| match &types[0] {
            DataType::Date32 | DataType::Timestamp(..) => cast_to(types, &[instant(), DataType::Utf8]),
            _ => cast_to(types, &[DataType::Utf8, DataType::Utf8]),
        },
        gives: |_| instant(),
        apply: |arrays, _| {
            if !matches!(arrays[0].data_type(), DataType::Utf8) {
                return Ok(Arc::clone(&arrays[0]));
            }
            let (texts, patterns) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
            let parsed = texts.iter().zip(patterns).map(|pair| match pair {
                (Some(text), Some(pattern)) => parse_with_pattern(text, pattern).map(Some).map_err(external),
                _ => Ok(None),
            });
            of_micros(parsed)
        },
    },
    Builtin {
        name: "dayname",
        arguments: 1..=1,
        takes: |types| cast_to(types, &[DataType::Date32]),
        gives: |_| DataType::Utf8,
        apply: |arrays, _| {
            const NAMES: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
            let dates = arrays[0].as_primitive::<Date32Type>();
            let names = dates.iter().map(|day| Some(NAMES[day?.rem_euclid(7) as usize]));
            Ok(Arc::new(names.collect::<StringArray>()))
        },
    },
];

const fn since_epoch(name: &'static str, apply: fn(&[ArrayRef], &DataType) -> Result<ArrayRef>) -> Builtin {
    Builtin { name, arguments: 1..=1, takes: |types| cast_to(types, &[instant()]), gives: |_| DataType::Int64, apply }
}

fn floored(times: &ArrayRef, unit: i64) -> Result<ArrayRef> {
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Ok(Arc::new(times.unary::<_, Int64Type>(|micros| micros.div_euclid(unit))))
}

fn of_micros(values: impl Iterator<Item = Result<Option<i64>>>) -> Result<ArrayRef> {
    let values = values.collect::<Result<Int64Array>>()?;
    let times: PrimitiveArray<TimestampMicrosecondType> = values.reinterpret_cast();
    Ok(Arc::new(times.with_timezone("UTC")))
}

/// Whole months between the same days, or last days, of months; otherwise a month has 31 days.
fn months_between(left: i64, right: i64, round: bool) -> f64 {
    let date = |micros: i64| civil(day_of(micros));
    let ((y1, m1, d1), (y2, m2, d2)) = (date(left), date(right));
    let months = f64::from((y1 - y2) * 12 + m1 as i32 - m2 as i32);
    let ends = |y: i32, m: u32, d: u32| d == days_in_month(y, m);
    if d1 == d2 || (ends(y1, m1, d1) && ends(y2, m2, d2)) {
        return months;
    }
    let of_month = |day: u32, micros: i64| i64::from(day) * DAY + time_of(micros);
    let seconds = (of_month(d1, left) - of_month(d2, right)).div_euclid(SECOND);
    let between = months + seconds as f64 / (31 * DAY / SECOND) as f64;
    if round { (between * 1e8).round() / 1e8 } else { between }
}

#[cfg(test)]
mod tests {
    use lakesmith::predicate::calendar::days;

    use super::*;

    fn micros(year: i32, month: u32, day: u32, time: i64) -> i64 {
        i64::from(days(year, month, day).unwrap()) * DAY + time
    }

    #[test]
    fn months_have_31_days_but_whole_ones() {
        let half_past_ten = 37_800 * SECOND;
        let (later, earlier) = (micros(1997, 2, 28, half_past_ten), micros(1996, 10, 30, 0));
        assert_eq!(months_between(later, earlier, true), 3.949_596_77);
        assert_eq!(months_between(later, earlier, false), 3.949_596_774_193_548_6);
        assert_eq!(months_between(micros(2020, 3, 31, 0), micros(2020, 2, 29, 5), true), 1.0);
        assert_eq!(months_between(micros(2020, 1, 31, 0), micros(2020, 3, 31, 0), true), -2.0);
    }

    #[test]
    fn seconds_before_the_epoch_are_rounded_down() {
        let times: ArrayRef = Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from(vec![-1, 0, 1_999_999]));
        let seconds = floored(&times, SECOND).unwrap();
        assert_eq!(seconds.as_primitive::<Int64Type>().values(), &[-1, 0, 1]);
    }
}
