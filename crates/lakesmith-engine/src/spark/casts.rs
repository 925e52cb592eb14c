//! Casts that give other values in Spark: times and numbers as text, times as numbers and back, sums as BIGINT.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Int64Array, PrimitiveArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, i256,
};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF};

use lakesmith::Error;
use lakesmith::predicate::{parse_date, parse_timestamp};

use super::arithmetic::out_of_range;
use super::function::{Function, named};
use crate::failure::external;
use crate::wall_clock::date_time;

const MICROS_A_SECOND: i64 = 1_000_000;

/// A conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Conversion {
    /// `2026-01-31 12:00:00.5`
    TimeToText,
    /// `1.0E10`, `0.1`
    FloatToText,
    /// Whole seconds since the epoch.
    TimeToSeconds,
    /// The time of whole seconds since the epoch.
    SecondsToTime,
    /// A date that is written down.
    TextToDate {
        /// What is no date is NULL rather than a failure.
        or_null: bool,
    },
    /// A time that is written down, of UTC unless it says otherwise.
    TextToTime {
        /// What is no time is NULL rather than a failure.
        or_null: bool,
    },
    /// A time that is written down, whatever its zone.
    TextToWallClock {
        /// What is no time is NULL rather than a failure.
        or_null: bool,
    },
    /// A sum of BIGINT, which must be one.
    SumToLong,
    /// A sum of decimals, which must have no more digits than one may have.
    SumToDecimal,
}

static FUNCTIONS: LazyLock<[(Conversion, Arc<ScalarUDF>); 12]> = LazyLock::new(|| {
    use Conversion as C;
    [
        C::TimeToText,
        C::FloatToText,
        C::TimeToSeconds,
        C::SecondsToTime,
        C::TextToDate { or_null: false },
        C::TextToDate { or_null: true },
        C::TextToTime { or_null: false },
        C::TextToTime { or_null: true },
        C::TextToWallClock { or_null: false },
        C::TextToWallClock { or_null: true },
        C::SumToLong,
        C::SumToDecimal,
    ]
    .map(|conversion| (conversion, function(conversion)))
});

/// `expr`, converted.
pub(crate) fn convert(conversion: Conversion, expr: Expr) -> Expr {
    let function = FUNCTIONS.iter().find(|(known, _)| *known == conversion).map_or(&FUNCTIONS[0].1, |(_, f)| f);
    function.call(vec![expr])
}

/// The conversion that a cast from one type to another is in Spark, if it is another one than Arrow's; `or_null` if it is a
/// TRY_CAST.
pub(crate) fn conversion(from: &DataType, to: &DataType, or_null: bool) -> Option<Conversion> {
    let is_text = matches!(to, DataType::Utf8);
    if matches!(from, DataType::Utf8) {
        return match to {
            DataType::Date32 => Some(Conversion::TextToDate { or_null }),
            DataType::Timestamp(_, Some(_)) => Some(Conversion::TextToTime { or_null }),
            DataType::Timestamp(_, None) => Some(Conversion::TextToWallClock { or_null }),
            _ => None,
        };
    }
    match from {
        DataType::Timestamp(..) if is_text => Some(Conversion::TimeToText),
        DataType::Float32 | DataType::Float64 if is_text => Some(Conversion::FloatToText),
        DataType::Timestamp(..) if to.is_integer() => Some(Conversion::TimeToSeconds),
        from if from.is_integer() && matches!(to, DataType::Timestamp(..)) && !or_null => {
            Some(Conversion::SecondsToTime)
        }
        _ => None,
    }
}

fn function(conversion: Conversion) -> Arc<ScalarUDF> {
    let name = match conversion {
        Conversion::TimeToText => "__lakesmith_time_to_text",
        Conversion::FloatToText => "__lakesmith_float_to_text",
        Conversion::TimeToSeconds => "__lakesmith_time_to_seconds",
        Conversion::SecondsToTime => "__lakesmith_seconds_to_time",
        Conversion::TextToDate { or_null: false } => "__lakesmith_text_to_date",
        Conversion::TextToDate { or_null: true } => "__lakesmith_text_to_date_or_null",
        Conversion::TextToTime { or_null: false } => "__lakesmith_text_to_time",
        Conversion::TextToTime { or_null: true } => "__lakesmith_text_to_time_or_null",
        Conversion::TextToWallClock { or_null: false } => "__lakesmith_text_to_wall_clock",
        Conversion::TextToWallClock { or_null: true } => "__lakesmith_text_to_wall_clock_or_null",
        Conversion::SumToLong => "__lakesmith_sum_to_long",
        Conversion::SumToDecimal => "__lakesmith_sum_to_decimal",
    };
    let result = move |types: &[DataType]| result_type(conversion, types);
    Function::of(name, 1, result, move |arrays, _| apply(conversion, &arrays[0]), named(name))
}

fn result_type(conversion: Conversion, types: &[DataType]) -> Result<DataType> {
    Ok(match conversion {
        Conversion::SumToDecimal => match types {
            [DataType::Decimal256(_, scale)] => DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale),
            _ => return exec_err!("a sum of decimals is one of wide decimals"),
        },
        Conversion::TimeToText | Conversion::FloatToText => DataType::Utf8,
        Conversion::TimeToSeconds | Conversion::SumToLong => DataType::Int64,
        Conversion::TextToDate { .. } => DataType::Date32,
        Conversion::TextToWallClock { .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
        Conversion::SecondsToTime | Conversion::TextToTime { .. } => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
    })
}

fn micros(array: &ArrayRef) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let zone = match array.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        other => return exec_err!("{other} is no time"),
    };
    let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
    Ok(array.as_primitive::<TimestampMicrosecondType>().clone())
}

fn apply(conversion: Conversion, array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match conversion {
        Conversion::TimeToText => {
            let times = micros(array)?;
            let text: StringArray = times.iter().map(|time| time.map(time_text)).collect();
            Arc::new(text)
        }
        Conversion::FloatToText => match array.data_type() {
            DataType::Float32 => {
                let floats = array.as_primitive::<Float32Type>().iter();
                let text: StringArray = floats.map(|v| v.map(|v| float_text(v.into(), &format!("{v:e}")))).collect();
                Arc::new(text)
            }
            _ => {
                let floats = array.as_primitive::<Float64Type>().iter();
                let text: StringArray = floats.map(|v| v.map(|v| float_text(v, &format!("{v:e}")))).collect();
                Arc::new(text)
            }
        },
        Conversion::TimeToSeconds => {
            let seconds: Int64Array = micros(array)?.unary(|micros| micros.div_euclid(MICROS_A_SECOND));
            Arc::new(seconds)
        }
        Conversion::SecondsToTime => {
            let seconds = cast(array, &DataType::Int64)?;
            let times = seconds
                .as_primitive::<Int64Type>()
                .try_unary(|seconds| seconds.checked_mul(MICROS_A_SECOND).ok_or_else(|| out_of_range("timestamp")));
            let times: PrimitiveArray<TimestampMicrosecondType> = times?;
            Arc::new(times.with_timezone("UTC"))
        }
        Conversion::TextToDate { or_null } => {
            let texts = array.as_string::<i32>().iter();
            let dates = texts.map(|text| text.map_or(Ok(None), |text| read(text, parse_date(text), "DATE", or_null)));
            Arc::new(dates.collect::<Result<Date32Array>>()?)
        }
        Conversion::TextToTime { or_null } => {
            let times = written_times(array, "TIMESTAMP", or_null)?;
            Arc::new(times.with_timezone("UTC"))
        }
        Conversion::TextToWallClock { or_null } => Arc::new(written_times(array, "TIMESTAMP_NTZ", or_null)?),
        Conversion::SumToLong => {
            let sums = array.as_primitive::<Decimal128Type>();
            let long = |sum: i128| i64::try_from(sum).map_err(|_| out_of_range("integer"));
            let longs: Int64Array = sums.iter().map(|sum| sum.map(long).transpose()).collect::<Result<_>>()?;
            Arc::new(longs)
        }
        Conversion::SumToDecimal => {
            let sums = array.as_primitive::<Decimal256Type>();
            let limit = i256::from_i128(10).wrapping_pow(u32::from(DECIMAL128_MAX_PRECISION));
            let narrow = |sum: i256| match sum.to_i128() {
                Some(narrow) if sum < limit && sum > limit.wrapping_neg() => Ok(narrow),
                _ => Err(out_of_range("decimal")),
            };
            let narrow: Decimal128Array = sums.iter().map(|sum| sum.map(narrow).transpose()).collect::<Result<_>>()?;
            Arc::new(narrow.with_precision_and_scale(DECIMAL128_MAX_PRECISION, sums.scale())?)
        }
    })
}

/// Times that are written down. Those of a wall clock stand as they are written, whatever zone is written behind them.
fn written_times(array: &ArrayRef, name: &str, or_null: bool) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let is_instant = name == "TIMESTAMP";
    let micros = |text: &str| match parse_timestamp(text) {
        Some((_, true)) if !is_instant => without_zone(text).and_then(parse_timestamp),
        time => time,
    };
    let texts = array.as_string::<i32>().iter();
    texts
        .map(|text| match text {
            Some(text) => read(text, micros(text).map(|(micros, _)| micros), name, or_null),
            None => Ok(None),
        })
        .collect()
}

/// The text before its zone.
fn without_zone(text: &str) -> Option<&str> {
    let time = text.find(':').or_else(|| text.trim().find([' ', 'T']))?;
    let zone = text[time..].find(|c: char| c.is_ascii_alphabetic() || matches!(c, '+' | '-'))?;
    Some(&text[..time + zone])
}

fn read<T>(text: &str, value: Option<T>, name: &str, or_null: bool) -> Result<Option<T>> {
    if value.is_none() && !or_null {
        let message = format!(
            "the value '{text}' cannot be cast from STRING to {name} because it is malformed; use try_cast to get NULL instead"
        );
        return Err(external(Error::usage(message).class("CAST_INVALID_INPUT")));
    }
    Ok(value)
}

/// The time with as many digits of its fraction as it has.
fn time_text(micros: i64) -> String {
    let Some(time) = date_time(micros) else { return micros.to_string() };
    let text = time.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A float as Java writes it; `scientific` are its shortest digits as Rust writes them.
fn float_text(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(-3..7).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let point = exponent as usize + 1;
    let padded = format!("{digits:0<point$}");
    let (whole, fraction) = padded.split_at(point);
    format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_java_does() {
        for (value, expected) in [
            (1e10, "1.0E10"),
            (12_345_678.0, "1.2345678E7"),
            (1_234_567.0, "1234567.0"),
            (0.001, "0.001"),
            (0.000_123, "1.23E-4"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (-0.0, "-0.0"),
            (-2.5, "-2.5"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float_text(value, &format!("{value:e}")), expected);
        }
        assert_eq!(float_text(1.1f32.into(), &format!("{:e}", 1.1f32)), "1.1");
    }

    #[test]
    fn a_wall_clock_stands_as_it_is_written() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec!["2020-01-01 10:00:00+05:00", "2020-01-01T10:00", "2020"]));
        let given = |conversion| apply(conversion, &texts).unwrap();
        let micros = |array: &ArrayRef| array.as_primitive::<TimestampMicrosecondType>().values().to_vec();
        let (ten, midnight) = (1_577_872_800_000_000, 1_577_836_800_000_000);
        let clock = given(Conversion::TextToWallClock { or_null: false });
        assert_eq!(micros(&clock), [ten, ten, midnight]);
        let instants = given(Conversion::TextToTime { or_null: false });
        assert_eq!(micros(&instants), [ten - 5 * 3600 * MICROS_A_SECOND, ten, midnight]);
    }

    #[test]
    fn what_is_no_date_fails_or_is_null() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["2020", "2020-2-3", "2020-13-01"]));
        assert!(apply(Conversion::TextToDate { or_null: false }, &texts).is_err());
        let dates = apply(Conversion::TextToDate { or_null: true }, &texts).unwrap();
        let dates: Vec<_> = dates.as_primitive::<arrow::datatypes::Date32Type>().iter().collect();
        assert_eq!(dates, [Some(18_262), Some(18_295), None]);
    }

    #[test]
    fn times_have_the_digits_that_they_need() {
        assert_eq!(time_text(1_767_225_600_000_000), "2026-01-01 00:00:00");
        assert_eq!(time_text(1_767_225_600_120_000), "2026-01-01 00:00:00.12");
        assert_eq!(time_text(-1), "1969-12-31 23:59:59.999999");
    }
}
