//! Partition transforms: their names, the type of what they give, and what a partition value says of its source.
//!
//! # Source
//! Iceberg spec, "Partition Transforms".

use lakesmith_core::table::Scalar;

use crate::types::Primitive;

const MICROS_PER_HOUR: i64 = 3_600_000_000;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// How a partition value is made of its source column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// Hash modulo this number.
    Bucket(u32),
    /// Cut to this width.
    Truncate(u32),
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01 00:00.
    Hour,
    /// Always NULL.
    Void,
    /// One that we don't know: its spelling.
    Unknown(String),
}

impl Transform {
    /// Reads the spelling of the metadata; what is not known stays as it is.
    pub fn parse(text: &str) -> Self {
        let number = |kind: &str| {
            let inside = text.strip_prefix(kind)?.strip_prefix('[')?.strip_suffix(']')?;
            inside.parse::<u32>().ok().filter(|number| (1..=i32::MAX as u32).contains(number))
        };
        match text {
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "void" => Self::Void,
            _ => match (number("bucket"), number("truncate")) {
                (Some(buckets), _) => Self::Bucket(buckets),
                (_, Some(width)) => Self::Truncate(width),
                _ => Self::Unknown(text.to_owned()),
            },
        }
    }

    /// As the metadata spells it.
    pub fn spelling(&self) -> String {
        match self {
            Self::Identity => "identity".into(),
            Self::Bucket(buckets) => format!("bucket[{buckets}]"),
            Self::Truncate(width) => format!("truncate[{width}]"),
            Self::Year => "year".into(),
            Self::Month => "month".into(),
            Self::Day => "day".into(),
            Self::Hour => "hour".into(),
            Self::Void => "void".into(),
            Self::Unknown(text) => text.clone(),
        }
    }

    /// Type of the partition value, if it can be told.
    pub fn result_type(&self, source: Option<&Primitive>) -> Option<Primitive> {
        match self {
            Self::Identity | Self::Truncate(_) | Self::Void => source.cloned(),
            Self::Bucket(_) | Self::Year | Self::Month | Self::Hour => Some(Primitive::Int),
            Self::Day => Some(Primitive::Date),
            Self::Unknown(_) => None,
        }
    }

    /// Smallest and largest source value that gives the partition value `value`, which is not NULL; a bound that can't be
    /// told is `None`.
    pub(crate) fn source_range(&self, source: &Primitive, value: &Scalar) -> (Option<Scalar>, Option<Scalar>) {
        let none = (None, None);
        match (self, value) {
            (Self::Identity, value) => match (source, value) {
                // A float that is NaN has no place in an order that each writer has its own idea of.
                (_, Scalar::Double(number)) if number.is_nan() => none,
                (Primitive::TimestampNs | Primitive::TimestampTzNs | Primitive::Time | Primitive::Other(_), _) => none,
                _ => (Some(value.clone()), Some(value.clone())),
            },
            (Self::Truncate(width), Scalar::Long(low)) => {
                (Some(value.clone()), low.checked_add(i64::from(*width) - 1).map(Scalar::Long))
            }
            (Self::Truncate(width), Scalar::Decimal(low, scale)) => {
                let high = low.checked_add(i128::from(*width) - 1);
                (Some(value.clone()), high.map(|high| Scalar::Decimal(high, *scale)))
            }
            (Self::Truncate(width), Scalar::String(text)) => {
                // A text shorter than the width was not cut.
                let whole = text.chars().count() < *width as usize;
                (Some(value.clone()), whole.then(|| value.clone()))
            }
            (Self::Truncate(width), Scalar::Binary(bytes)) => {
                (Some(value.clone()), (bytes.len() < *width as usize).then(|| value.clone()))
            }
            (Self::Year, Scalar::Long(year)) => {
                let start = |year: i64| month_start(year.checked_mul(12)?);
                days(source, first(*year).and_then(start), year.checked_add(1).and_then(start))
            }
            (Self::Month, Scalar::Long(month)) => {
                days(source, first(*month).and_then(month_start), month.checked_add(1).and_then(month_start))
            }
            // Some writers have the day as a plain number.
            (Self::Day, Scalar::Long(day)) => days(source, first(*day), day.checked_add(1)),
            (Self::Day, Scalar::Date(day)) => days(source, first(i64::from(*day)), Some(i64::from(*day) + 1)),
            (Self::Hour, Scalar::Long(hour)) => {
                let start = |hour: i64| hour.checked_mul(MICROS_PER_HOUR);
                instants(source, first(*hour).and_then(start), hour.checked_add(1).and_then(start))
            }
            _ => none,
        }
    }
}

/// The first period that a partition may hold rows of. Old writers rounded towards 1970, so that rows of the period before
/// are in partitions up to 0.
///
/// # Source
/// Apache Iceberg, `ProjectionUtil.fixInclusiveTimeProjection`.
fn first(period: i64) -> Option<i64> {
    if period > 0 { Some(period) } else { period.checked_sub(1) }
}

/// The range from a day up to the day before `end`, in the source's type.
fn days(source: &Primitive, start: Option<i64>, end: Option<i64>) -> (Option<Scalar>, Option<Scalar>) {
    match source {
        Primitive::Date => {
            let date = |day: i64| i32::try_from(day).ok().map(Scalar::Date);
            (start.and_then(date), end.and_then(|end| date(end - 1)))
        }
        _ => {
            let micros = |day: i64| day.checked_mul(MICROS_PER_DAY);
            instants(source, start.and_then(micros), end.and_then(micros))
        }
    }
}

fn instants(source: &Primitive, start: Option<i64>, end: Option<i64>) -> (Option<Scalar>, Option<Scalar>) {
    let scalar = match source {
        Primitive::Timestamp => Scalar::TimestampNtz,
        Primitive::TimestampTz => Scalar::Timestamp,
        _ => return (None, None),
    };
    (start.map(scalar), end.map(|end| scalar(end - 1)))
}

/// Days from 1970-01-01 to the first of a month that is counted from 1970-01.
fn month_start(month: i64) -> Option<i64> {
    let (years, month) = (month.div_euclid(12), month.rem_euclid(12));
    let year = i16::try_from(years.checked_add(1970)?).ok()?;
    let date = jiff::civil::Date::new(year, i8::try_from(month + 1).ok()?, 1).ok()?;
    let epoch = jiff::civil::date(1970, 1, 1);
    Some(i64::from(date.since((jiff::Unit::Day, epoch)).ok()?.get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_read_back() {
        for text in ["identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void", "zorder[2]"] {
            assert_eq!(Transform::parse(text).spelling(), text);
        }
        assert_eq!(Transform::parse("bucket[0]"), Transform::Unknown("bucket[0]".into()));
    }

    #[test]
    fn partition_values_bound_their_source() {
        let date = Primitive::Date;
        let month = Transform::Month.source_range(&date, &Scalar::Long(1));
        assert_eq!(month, (Some(Scalar::Date(31)), Some(Scalar::Date(58))));
        let year = Transform::Year.source_range(&date, &Scalar::Long(-1));
        assert_eq!(year, (Some(Scalar::Date(-731)), Some(Scalar::Date(-1))));
        let day = Transform::Day.source_range(&Primitive::TimestampTz, &Scalar::Date(-1));
        assert_eq!(day, (Some(Scalar::Timestamp(-2 * MICROS_PER_DAY)), Some(Scalar::Timestamp(-1))));
        let hour = Transform::Hour.source_range(&Primitive::Timestamp, &Scalar::Long(1));
        assert_eq!(hour.0, Some(Scalar::TimestampNtz(MICROS_PER_HOUR)));
        assert_eq!(hour.1, Some(Scalar::TimestampNtz(2 * MICROS_PER_HOUR - 1)));
        let cut = Transform::Truncate(10).source_range(&Primitive::Int, &Scalar::Long(-10));
        assert_eq!(cut, (Some(Scalar::Long(-10)), Some(Scalar::Long(-1))));
        let text = |text: &str| Scalar::String(text.into());
        let long = Transform::Truncate(2).source_range(&Primitive::String, &text("öß"));
        assert_eq!(long, (Some(text("öß")), None));
        let short = Transform::Truncate(2).source_range(&Primitive::String, &text("ö"));
        assert_eq!(short, (Some(text("ö")), Some(text("ö"))));
        assert_eq!(Transform::Bucket(4).source_range(&Primitive::Int, &Scalar::Long(1)), (None, None));
    }
}
