//! Predicates against what Spark 4.1 does, recorded in `spark/*.jsonl` (see `spark/README.md`).

use lakesmith_core::predicate::{BoundPredicate, Expr, bind_partition_predicate};
use lakesmith_core::table::{DataType, Field, PartitionTuple, Scalar, Schema};
use lakesmith_core::{ErrorKind, Result};
use lakesmith_sql::parse_predicate;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

/// Noon of 2026-11-30.
const NOW_MS: i64 = 1_796_040_000_000;

fn timestamp(text: &str) -> i64 {
    lakesmith_core::predicate::parse_timestamp(text).unwrap().0
}

fn date(text: &str) -> i32 {
    lakesmith_core::predicate::parse_date(text).unwrap()
}

fn columns() -> Vec<(&'static str, DataType, Scalar, Scalar)> {
    vec![
        ("p", DataType::String, Scalar::String("a".into()), Scalar::String("7".into())),
        ("d", DataType::Date, Scalar::Date(date("2026-11-29")), Scalar::Date(date("2024-02-29"))),
        ("n", DataType::Integer, Scalar::Long(1), Scalar::Long(-3)),
        ("ts", DataType::Timestamp, Scalar::Timestamp(timestamp("2026-11-29 10:11:12.5")), Scalar::Timestamp(-1)),
        ("b", DataType::Boolean, Scalar::Boolean(true), Scalar::Boolean(false)),
        ("dec", DataType::Decimal { precision: 10, scale: 2 }, Scalar::Decimal(150, 2), Scalar::Decimal(-225, 2)),
        ("dbl", DataType::Double, Scalar::Double(2.5), Scalar::Double(-0.5)),
        (
            "ntz",
            DataType::TimestampNtz,
            Scalar::TimestampNtz(timestamp("2026-11-29 10:00:00")),
            Scalar::TimestampNtz(timestamp("1969-12-31 10:00:00")),
        ),
        ("big", DataType::Long, Scalar::Long(5), Scalar::Long(-5)),
        ("sm", DataType::Short, Scalar::Long(6), Scalar::Long(7)),
    ]
}

fn bind(text: &str) -> Result<BoundPredicate> {
    let field = |name: &str, data_type: &DataType| Field {
        name: name.into(),
        physical: name.into(),
        id: None,
        data_type: data_type.clone(),
        nullable: true,
        metadata: Default::default(),
    };
    let mut fields: Vec<Field> = columns().iter().map(|(name, ty, ..)| field(name, ty)).collect();
    let names: Vec<String> = fields.iter().map(|f| f.name.clone()).collect();
    fields.push(field("id", &DataType::Long));
    bind_partition_predicate(&parse_predicate(text)?, &Schema { fields }, &names, NOW_MS)
}

/// The rows, by their ids from 1, that satisfy the predicate.
fn ids(text: &str) -> Result<Vec<u64>> {
    let bound = bind(text)?;
    let rows: [Vec<Scalar>; 3] = [
        columns().into_iter().map(|c| c.2).collect(),
        columns().into_iter().map(|c| c.3).collect(),
        columns().into_iter().map(|_| Scalar::Null).collect(),
    ];
    let mut found = Vec::new();
    for (i, values) in rows.into_iter().enumerate() {
        if bound.matches(&PartitionTuple { raw: vec![None; values.len()], values })? {
            found.push(i as u64 + 1);
        }
    }
    Ok(found)
}

/// Compares every measured line with ours; what differs must be listed in `known`, line by line, so that neither a change
/// of what is available nor a new difference goes unseen.
fn agree(measured: &str, known: &str, ours: impl Fn(&str, &Value) -> Result<Value>) {
    let mut differing = Vec::new();
    for line in measured.lines() {
        let (sql, expected): (String, Value) = serde_json::from_str(line).unwrap();
        let found = match ours(&sql, &expected) {
            Ok(value) => value,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Usage | ErrorKind::Unsupported), "{sql}: {error:?}");
                Value::from(error.class_name())
            }
        };
        if found != expected {
            differing.push(format!("{sql} --> {found}, Spark: {expected}"));
        }
    }
    let found = differing.join("\n");
    assert!(found == known.trim_end(), "the differences have changed; they are now\n{found}");
}

#[test]
fn the_text_in_the_history_is_sparks() {
    agree(include_str!("spark/text.jsonl"), include_str!("spark/text.differs"), |sql, _| {
        Ok(Value::from(parse_predicate(sql)?.spark_text()))
    });
}

#[test]
fn conditions_select_what_they_select_in_spark() {
    agree(include_str!("spark/conditions.jsonl"), include_str!("spark/conditions.differs"), |sql, _| {
        ids(sql).map(Value::from)
    });
}

#[test]
fn expressions_have_the_values_that_they_have_in_spark() {
    agree(include_str!("spark/values.jsonl"), include_str!("spark/values.differs"), |sql, expected| {
        // Intervals have no value of their own here, but a text.
        if let interval @ Expr::Interval { .. } = parse_predicate(sql)? {
            return Ok(Value::from(vec![interval.spark_text(); 3]));
        }
        let text = format!("CAST(({sql}) AS STRING)");
        let Value::Array(expected) = expected else {
            return ids(&format!("{text} = ''")).map(|_| Value::from("a value"));
        };
        let same = |(row, value): (u64, &Value)| {
            let is = match value {
                Value::Null => "IS NULL".to_owned(),
                value => format!("= r\"{}\"", value.as_str().unwrap()),
            };
            ids(&format!("{text} {is}"))
                .map(|ids| if ids.contains(&row) { value.clone() } else { Value::from("another value") })
        };
        (1..).zip(expected).map(same).collect::<Result<Vec<_>>>().map(Value::from)
    });
}

/// Expressions that Spark was asked, as material.
fn expressions() -> Vec<String> {
    let measured = [include_str!("spark/conditions.jsonl"), include_str!("spark/values.jsonl")];
    let lines = measured.iter().flat_map(|text| text.lines());
    lines.map(|line| serde_json::from_str::<(String, Value)>(line).unwrap().0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Halves of two expressions, put together or one within the other: nonsense of the right words.
    #[test]
    fn expressions_put_together_at_random_have_a_value_or_a_clear_error(
        first in select(expressions()), second in select(expressions()), at in any::<Index>(), to in any::<Index>(),
    ) {
        let cut = |text: &str, at: Index| {
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
            places[at.index(places.len())]
        };
        let (head, tail) = (&first[..cut(&first, at)], &second[cut(&second, to)..]);
        for text in [format!("{head}{tail}"), format!("{first} = {second}"), format!("concat({head}, {tail}) = p"), format!("({first}) + ({second}) > n")] {
            if let Err(error) = ids(&text) {
                prop_assert!(matches!(error.kind(), ErrorKind::Usage | ErrorKind::Unsupported), "{}: {:?}", text, error);
            }
        }
    }
}
