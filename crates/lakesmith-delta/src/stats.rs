//! Statistics of a data file as the JSON text that Delta's `add.stats` holds, written as Spark writes it.
//!
//! # Source
//! Delta PROTOCOL.md, "Per-file Statistics"; Delta Spark `StatisticsCollection.scala`.

use lakesmith_core::table::{DataType, Field, FileStats, LeafStats, Scalar, Schema};
use serde_json::{Map, Number, Value};

use crate::DeltaTable;

const DEFAULT_PREFIX: usize = 32;
const MICROS_PER_DAY: i64 = 86_400_000_000;
const LARGEST_CHARACTER: char = '\u{10FFFF}';
const LARGEST_ASCII: char = '\u{7F}';

/// The text of `add.stats`. `tightBounds` is written on tables that support deletion vectors; it is false if rows of the
/// file are deleted, because the statistics are those of all its rows.
pub fn stats_json(table: &DeltaTable, stats: &FileStats, has_deleted_rows: bool) -> String {
    let prefix = string_prefix(table);
    let tight = table.state.has_feature("deletionVectors").then_some(!has_deleted_rows);
    render(&table.state.schema, stats, prefix, tight)
}

/// Characters to which the bounds of long texts are cut.
pub fn string_prefix(table: &DeltaTable) -> usize {
    table
        .state
        .property("delta.dataSkippingStringPrefixLength")
        .and_then(|v| v.trim().parse().ok())
        .unwrap_or(DEFAULT_PREFIX)
}

fn render(schema: &Schema, stats: &FileStats, prefix: usize, tight: Option<bool>) -> String {
    let (mut min, mut max, mut nulls) = (Map::new(), Map::new(), Map::new());
    for leaf in &stats.leaves {
        let Some(field) = physical_field(schema, &leaf.path) else { continue };
        place(&mut nulls, &leaf.path, Some(leaf.null_count.into()));
        if has_bounds(&field.data_type) {
            let (low, high) = bounds(leaf, &field.data_type, prefix);
            place(&mut min, &leaf.path, low);
            place(&mut max, &leaf.path, high);
        }
    }
    let mut json = Map::new();
    json.insert("numRecords".into(), stats.rows.into());
    for (key, values) in [("minValues", min), ("maxValues", max), ("nullCount", nulls)] {
        if !values.is_empty() {
            json.insert(key.into(), Value::Object(values));
        }
    }
    if let Some(tight) = tight {
        json.insert("tightBounds".into(), tight.into());
    }
    Value::Object(json).to_string()
}

pub(crate) fn physical_field<'a>(schema: &'a Schema, path: &[String]) -> Option<&'a Field> {
    let mut fields = &schema.fields;
    let mut found = None;
    for part in path {
        let field = fields.iter().find(|f| f.physical == *part)?;
        found = Some(field);
        fields = match &field.data_type {
            DataType::Struct(inner) => inner,
            _ => const { &Vec::new() },
        };
    }
    found
}

/// True for the types that get a minimum and a maximum.
pub(crate) fn has_bounds(data_type: &DataType) -> bool {
    match data_type {
        DataType::Byte
        | DataType::Short
        | DataType::Integer
        | DataType::Long
        | DataType::Float
        | DataType::Double
        | DataType::Decimal { .. }
        | DataType::Date
        | DataType::Timestamp
        | DataType::TimestampNtz
        | DataType::String => true,
        DataType::Boolean
        | DataType::Binary
        | DataType::Variant
        | DataType::Null
        | DataType::Struct(_)
        | DataType::List(_)
        | DataType::Map(..) => false,
    }
}

/// Puts a value at a nested path. A missing value still makes its parents, as Spark writes structs of nulls.
fn place(object: &mut Map<String, Value>, path: &[String], value: Option<Value>) {
    match path {
        [] => {}
        [leaf] => {
            if let Some(value) = value {
                object.insert(leaf.clone(), value);
            }
        }
        [parent, rest @ ..] => {
            if let Value::Object(inner) = object.entry(parent).or_insert_with(|| Value::Object(Map::new())) {
                place(inner, rest, value);
            }
        }
    }
}

fn bounds(leaf: &LeafStats, data_type: &DataType, prefix: usize) -> (Option<Value>, Option<Value>) {
    let (Some(min), Some(max)) = (&leaf.min, &leaf.max) else { return (None, None) };
    match (min, max) {
        (Scalar::String(min), Scalar::String(max)) => {
            (truncate_min(min, prefix).map(Value::from), truncate_max(max, prefix).map(Value::from))
        }
        _ => (value(min, data_type), value(max, data_type)),
    }
}

fn value(scalar: &Scalar, data_type: &DataType) -> Option<Value> {
    match scalar {
        Scalar::Long(v) => Some((*v).into()),
        Scalar::Double(v) => Some(float(*v, data_type)),
        Scalar::Decimal(unscaled, scale) => decimal(*unscaled, *scale).parse::<Number>().ok().map(Value::Number),
        Scalar::Date(days) => date(i64::from(*days)).map(Value::from),
        Scalar::Timestamp(micros) => timestamp(*micros).map(|t| format!("{t}Z").into()),
        Scalar::TimestampNtz(micros) => timestamp(*micros).map(Value::from),
        Scalar::String(_) | Scalar::Null | Scalar::Boolean(_) | Scalar::Binary(_) => None,
    }
}

fn float(v: f64, data_type: &DataType) -> Value {
    if v.is_nan() {
        return "NaN".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    // The shortest text that reads back as the same float of the column's own width.
    let text = match data_type {
        DataType::Float => format!("{:?}", v as f32),
        _ => format!("{v:?}"),
    };
    text.parse::<Number>().map_or(Value::Null, Value::Number)
}

/// All digits of the scale: `-15.00`, never an exponent.
pub(crate) fn decimal(unscaled: i128, scale: i8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let Ok(scale) = usize::try_from(scale) else { return format!("{sign}{digits}") };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Year, month and day of a day number; `None` outside the years 1 to 9999, which no reader parses alike.
///
/// # Source
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn date(days: i64) -> Option<String> {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (1..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Date and time with all six digits of a second, `between` them this character; `None` as [`date`].
pub(crate) fn micros_text(micros: i64, between: char) -> Option<String> {
    let day = date(micros.div_euclid(MICROS_PER_DAY))?;
    let micros = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(format!("{day}{between}{hour:02}:{minute:02}:{second:02}.{micros:06}"))
}

/// Cut to milliseconds towards the past; readers allow for the lost part of a maximum.
fn timestamp(micros: i64) -> Option<String> {
    let text = micros_text(micros, 'T')?;
    Some(text[..text.len() - 3].to_owned())
}

/// A lower bound: the first characters.
fn truncate_min(text: &str, prefix: usize) -> Option<String> {
    (prefix > 0).then(|| text.chars().take(prefix).collect())
}

/// An upper bound: a prefix with a character after it that is larger than what was cut off; `None` if there is none
/// within twice the length. Lengths are UTF-16 units, as in Spark.
///
/// # Source
/// Delta Spark `StatisticsCollection.truncateMaxStringAgg`.
fn truncate_max(text: &str, prefix: usize) -> Option<String> {
    if prefix == 0 {
        return None;
    }
    let mut units = 0;
    for (position, character) in text.char_indices() {
        if units > 2 * prefix {
            return None;
        }
        if units >= prefix && character != LARGEST_CHARACTER {
            let tie = if character < LARGEST_ASCII { LARGEST_ASCII } else { LARGEST_CHARACTER };
            return Some(format!("{}{tie}", &text[..position]));
        }
        units += character.len_utf16();
    }
    (units <= 2 * prefix).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lakesmith_core::table::LeafStats;
    use proptest::prelude::*;

    fn field(name: &str, data_type: DataType) -> Field {
        Field {
            name: name.to_uppercase(),
            physical: name.into(),
            id: None,
            data_type,
            nullable: true,
            metadata: Default::default(),
        }
    }

    fn leaf(path: &[&str], null_count: u64, bounds: Option<(Scalar, Scalar)>) -> LeafStats {
        let path = path.iter().map(|s| (*s).to_string()).collect();
        let (min, max) = bounds.unzip();
        LeafStats { path, null_count, min, max }
    }

    #[test]
    fn renders_as_spark_does() {
        let schema = Schema {
            fields: vec![
                field("id", DataType::Long),
                field("st", DataType::Struct(vec![field("a", DataType::Integer), field("y", DataType::String)])),
                field("ok", DataType::Boolean),
                field("f", DataType::Float),
                field("d", DataType::Decimal { precision: 5, scale: 2 }),
                field("t", DataType::Timestamp),
                field("none", DataType::String),
            ],
        };
        let stats = FileStats {
            rows: 3,
            leaves: vec![
                leaf(&["id"], 0, Some((Scalar::Long(-1), Scalar::Long(i64::MAX)))),
                leaf(&["st", "a"], 1, Some((Scalar::Long(0), Scalar::Long(1)))),
                leaf(&["st", "y"], 3, None),
                leaf(&["ok"], 2, Some((Scalar::Boolean(false), Scalar::Boolean(true)))),
                leaf(&["f"], 0, Some((Scalar::Double(f64::from(1.1f32)), Scalar::Double(f64::NAN)))),
                leaf(&["d"], 0, Some((Scalar::Decimal(-1500, 2), Scalar::Decimal(5, 2)))),
                leaf(&["t"], 0, Some((Scalar::Timestamp(-1), Scalar::Timestamp(1_999)))),
                leaf(&["none"], 3, None),
            ],
        };
        assert_eq!(
            render(&schema, &stats, 32, Some(true)),
            concat!(
                r#"{"numRecords":3,"minValues":{"id":-1,"st":{"a":0},"f":1.1,"d":-15.00,"t":"1969-12-31T23:59:59.999Z"},"#,
                r#""maxValues":{"id":9223372036854775807,"st":{"a":1},"f":"NaN","d":0.05,"t":"1970-01-01T00:00:00.001Z"},"#,
                r#""nullCount":{"id":0,"st":{"a":1,"y":3},"ok":2,"f":0,"d":0,"t":0,"none":3},"tightBounds":true}"#
            )
        );
        assert_eq!(render(&schema, &FileStats { rows: 7, leaves: vec![] }, 32, None), r#"{"numRecords":7}"#);
    }

    #[test]
    fn decimals_have_all_their_digits() {
        assert_eq!(
            decimal(-12_345_678_901_234_567_890_123_456_000_000_000_029, 12),
            "-12345678901234567890123456.000000000029"
        );
        assert_eq!(decimal(0, 18), "0.000000000000000000");
        assert_eq!(decimal(7, 0), "7");
        assert_eq!(decimal(-7, 1), "-0.7");
    }

    #[test]
    fn dates_of_all_ages() {
        for (days, expected) in [
            (0, Some("1970-01-01")),
            (-1, Some("1969-12-31")),
            (19_782, Some("2024-02-29")),
            (-719_162, Some("0001-01-01")),
            (2_932_896, Some("9999-12-31")),
            (-719_163, None),
            (2_932_897, None),
        ] {
            assert_eq!(date(days).as_deref(), expected, "{days}");
        }
        assert_eq!(timestamp(i64::MIN), None);
    }

    #[test]
    fn long_strings_are_cut_with_a_tie_breaker() {
        let a32 = "a".repeat(32);
        let cases = [
            ("a".repeat(31), Some("a".repeat(31))),
            (a32.clone(), Some(a32.clone())),
            (format!("{a32}b"), Some(format!("{a32}\u{7f}"))),
            (format!("{a32}\u{7f}"), Some(format!("{a32}\u{10FFFF}"))),
            (format!("{a32}é"), Some(format!("{a32}\u{10FFFF}"))),
            (format!("{a32}\u{10FFFF}b"), Some(format!("{a32}\u{10FFFF}\u{7f}"))),
            (format!("{a32}\u{10FFFF}"), Some(format!("{a32}\u{10FFFF}"))),
            // The cut would fall inside a surrogate pair, so the pair is kept.
            (format!("{}😀b", "a".repeat(31)), Some(format!("{}😀\u{7f}", "a".repeat(31)))),
            (format!("{a32}{}", "\u{10FFFF}".repeat(40)), None),
        ];
        for (text, expected) in cases {
            assert_eq!(truncate_max(&text, 32), expected, "{text}");
        }
        assert_eq!(truncate_min(&"😀".repeat(40), 32), Some("😀".repeat(32)));
        assert_eq!((truncate_min("a", 0), truncate_max("a", 0)), (None, None));
    }

    proptest! {
        #[test]
        fn cut_strings_still_bound(text in "[a-c\u{7e}\u{7f}é😀\u{FFFF}\u{10FFFF}]{0,80}", prefix in 1usize..40) {
            prop_assert!(truncate_min(&text, prefix).unwrap() <= text);
            if let Some(max) = truncate_max(&text, prefix) {
                prop_assert!(max >= text, "{:?} < {:?}", max, text);
            }
        }

        #[test]
        fn every_double_reads_back(v in any::<f64>()) {
            if let Value::Number(n) = float(v, &DataType::Double) {
                prop_assert_eq!(n.to_string().parse::<f64>().unwrap(), v);
            }
        }
    }
}
