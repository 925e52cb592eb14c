use proptest::prelude::*;

use super::*;
use crate::error::Result;
use crate::table::{Field, PartitionTuple, Schema};

fn column(name: &str) -> Expr {
    Expr::Column(vec![name.into()])
}

fn text(s: &str) -> Expr {
    Expr::Literal(Scalar::String(s.into()))
}

fn number(n: i64) -> Expr {
    Expr::Literal(Scalar::Long(n))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn days(days: i32) -> Expr {
    Expr::Interval { months: 0, days, micros: 0, fields: (IntervalField::Day, IntervalField::Day) }
}

fn not(e: Expr) -> Expr {
    Expr::Not(Box::new(e))
}

fn schema() -> Schema {
    let field = |name: &str, data_type| Field {
        name: name.into(),
        physical: name.into(),
        id: None,
        data_type,
        nullable: true,
        metadata: Default::default(),
    };
    Schema {
        fields: vec![
            field("d", DataType::Date),
            field("n", DataType::Integer),
            field("s", DataType::String),
            field("x", DataType::Long),
            field("b", DataType::Boolean),
        ],
    }
}

const HUNDRED_DAYS_MS: i64 = 86_400_000 * 100;

fn bind(expr: &Expr) -> Result<BoundPredicate> {
    let names = ["d".to_string(), "n".into(), "s".into(), "b".into()];
    bind_partition_predicate(expr, &schema(), &names, HUNDRED_DAYS_MS)
}

fn matches(expr: &Expr, values: Vec<Scalar>) -> Result<bool> {
    bind(expr)?.matches(&PartitionTuple { raw: vec![None; values.len()], values })
}

fn row(d: i32, n: i64, s: &str) -> Vec<Scalar> {
    vec![Scalar::Date(d), Scalar::Long(n), Scalar::String(s.into()), Scalar::Boolean(true)]
}

fn nulls() -> Vec<Scalar> {
    vec![Scalar::Null; 4]
}

fn class_of(expr: &Expr) -> String {
    matches(expr, row(0, 0, "a")).unwrap_err().class_name().to_owned()
}

#[test]
fn literals_take_the_type_of_the_column() {
    let e = binary(BinaryOp::GtEq, column("D"), text("1970-01-02"));
    assert!(!matches(&e, row(0, 0, "")).unwrap());
    assert!(matches(&e, row(1, 0, "")).unwrap());
    assert!(matches(&binary(BinaryOp::Lt, column("n"), Expr::Literal(Scalar::Decimal(15, 1))), row(0, 1, "")).unwrap());
    assert!(matches(&binary(BinaryOp::Eq, column("n"), text(" 1 ")), row(0, 1, "")).unwrap());
    assert!(matches(&binary(BinaryOp::Eq, column("s"), number(7)), row(0, 1, "7")).unwrap());
    assert!(matches(&binary(BinaryOp::Eq, column("b"), text("yes")), row(0, 1, "7")).unwrap());
    let mixed = Expr::In(Box::new(column("n")), vec![text("1"), number(2)]);
    assert!(matches(&mixed, row(0, 1, "")).unwrap());
}

#[test]
fn bad_literals_fail_before_any_partition_is_looked_at() {
    for (name, literal) in [("d", "yesterday"), ("n", "1.5"), ("n", "x"), ("b", "maybe")] {
        let e = binary(BinaryOp::Eq, column(name), text(literal));
        assert_eq!(bind(&e).unwrap_err().class_name(), "CAST_INVALID_INPUT", "{name} = {literal}");
    }
    // A column of text fails only on the values that are no numbers.
    let e = binary(BinaryOp::Eq, column("s"), number(7));
    assert_eq!(class_of(&e), "CAST_INVALID_INPUT");
}

#[test]
fn types_that_do_not_go_together_are_refused() {
    for (expr, class) in [
        (binary(BinaryOp::Eq, column("d"), number(1)), "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        (binary(BinaryOp::Eq, column("b"), number(1)), "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        (column("n"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        (text("true"), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        (Expr::Literal(Scalar::Null), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        (not(column("n")), "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
        (binary(BinaryOp::And, column("b"), column("n")), "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        (Expr::In(Box::new(column("d")), vec![number(1)]), "DATATYPE_MISMATCH.DATA_DIFF_TYPES"),
    ] {
        assert_eq!(class_of(&expr), class, "{}", expr.spark_text());
    }
}

#[test]
fn null_is_no_match() {
    let eq = binary(BinaryOp::Eq, column("s"), text("a"));
    assert!(!matches(&eq, nulls()).unwrap());
    assert!(!matches(&not(eq.clone()), nulls()).unwrap());
    assert!(matches(&binary(BinaryOp::Or, eq, Expr::IsNull(Box::new(column("s")))), nulls()).unwrap());
    let list = Expr::In(Box::new(column("s")), vec![text("b"), Expr::Literal(Scalar::Null)]);
    assert!(!matches(&not(list), row(0, 0, "a")).unwrap());
    assert!(matches(&binary(BinaryOp::NullSafeEq, column("s"), Expr::Literal(Scalar::Null)), nulls()).unwrap());
    assert!(matches(&Expr::IsNotNull(Box::new(column("s"))), row(0, 0, "")).unwrap());
}

#[test]
fn dates_move_by_days_and_intervals() {
    let today = || Expr::Function("Current_Date".into(), vec![]);
    for edge in [
        binary(BinaryOp::Minus, today(), days(7)),
        binary(BinaryOp::Minus, today(), number(7)),
        binary(BinaryOp::Plus, days(-7), today()),
        binary(BinaryOp::Minus, column("CURRENT_DATE"), Expr::Negative(Box::new(days(-7)))),
        Expr::Function("DATE_SUB".into(), vec![today(), number(7)]),
    ] {
        let e = binary(BinaryOp::GtEq, column("d"), edge);
        assert!(matches(&e, row(93, 0, "")).unwrap(), "{}", e.spark_text());
        assert!(!matches(&e, row(92, 0, "")).unwrap(), "{}", e.spark_text());
    }
    // Hours make a timestamp of a date.
    let hour = Expr::Interval { months: 0, days: 0, micros: 1, fields: (IntervalField::Hour, IntervalField::Hour) };
    let e = binary(BinaryOp::Lt, column("d"), binary(BinaryOp::Plus, column("d"), hour));
    assert!(matches(&e, row(92, 0, "")).unwrap());
}

#[test]
fn columns_must_be_partition_columns() {
    let e = binary(BinaryOp::Eq, column("x"), number(1));
    let error = bind(&e).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_NON_PARTITION_COLUMN_REFERENCE");
    assert_eq!(
        error.message(),
        "Predicate references non-partition column 'x'. Only the partition columns may be referenced: [d, n, s, b]"
    );
    let error = bind_partition_predicate(&e, &schema(), &[], 0).unwrap_err();
    assert!(error.message().ends_with("may be referenced: []"), "{error}");
    assert_eq!(class_of(&Expr::Column(vec!["s".into(), "n".into()])), "DELTA_NON_PARTITION_COLUMN_REFERENCE");
}

#[test]
fn a_partition_of_another_table_is_an_error() {
    assert!(matches(&Expr::Literal(Scalar::Boolean(true)), vec![Scalar::Null]).is_err());
}

#[test]
fn long_chains_are_bound_evaluated_and_printed_on_a_small_stack() {
    let work = || {
        let term = |i: i64| binary(BinaryOp::Eq, column("n"), number(i));
        let chain = (1..2000).fold(term(0), |e, i| binary(BinaryOp::Or, e, term(i)));
        assert!(matches(&chain, row(0, 1999, "")).unwrap());
        assert!(!matches(&chain, row(0, 2000, "")).unwrap());
        assert!(chain.spark_text().ends_with("OR ('n = 1999))"));
        let sum = (1..2000).fold(column("n"), |e, i| binary(BinaryOp::Plus, e, number(i)));
        assert!(bind(&binary(BinaryOp::Eq, sum, number(1))).is_err());
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn sparks_text_of_a_predicate() {
    let function = |name: &str, args: Vec<Expr>| Expr::Function(name.into(), args);
    let like = |escape| Expr::Like { value: Box::new(column("p")), pattern: "a/%".into(), escape };
    let interval = |months, days, micros, first, last| Expr::Interval { months, days, micros, fields: (first, last) };
    use IntervalField::*;
    let minute = 60_000_000;
    for (expr, expected) in [
        (binary(BinaryOp::GtEq, column("event_date"), text("2026-11-29")), "('event_date >= 2026-11-29)"),
        (
            binary(
                BinaryOp::And,
                binary(BinaryOp::Eq, column("a"), number(1)),
                binary(BinaryOp::Lt, column("b"), number(2)),
            ),
            "(('a = 1) AND ('b < 2))",
        ),
        (Expr::In(Box::new(column("p")), vec![text("a"), text("b")]), "'p IN (a,b)"),
        (Expr::IsNull(Box::new(column("p"))), "isnull('p)"),
        (Expr::IsNotNull(Box::new(column("p"))), "isnotnull('p)"),
        (not(binary(BinaryOp::Eq, column("p"), number(1))), "NOT ('p = 1)"),
        (function("between", vec![column("n"), number(1), number(2)]), "'between('n, 1, 2)"),
        (like('\\'), "'p LIKE a/%"),
        (like('/'), "'p LIKE a/% ESCAPE '/'"),
        (
            binary(BinaryOp::Concat, binary(BinaryOp::Concat, column("p"), text("x")), text("y")),
            "concat(concat('p, x), y)",
        ),
        (binary(BinaryOp::IntegerDivide, column("n"), number(2)), "('n div 2)"),
        (Expr::Negative(Box::new(column("n"))), "-'n"),
        (Expr::Cast(Box::new(column("p")), DataType::Decimal { precision: 10, scale: 2 }), "cast('p as decimal(10,2))"),
        (function("DATE_SUB", vec![function("current_date", vec![]), number(7)]), "'DATE_SUB('current_date(), 7)"),
        (Expr::Column(vec!["s".into(), "a".into()]), "'s.a"),
        (Expr::Column(vec!["s.a".into()]), "'`s.a`"),
        (Expr::Literal(Scalar::Null), "null"),
        (Expr::Literal(Scalar::Double(1000.0)), "1000.0"),
        (Expr::Literal(Scalar::Decimal(150, 2)), "1.50"),
        (Expr::Literal(Scalar::Binary(vec![10, 11])), "0x0A0B"),
        (Expr::Literal(Scalar::Timestamp(500_000)), "1970-01-01 00:00:00.5"),
        (days(7), "INTERVAL '7' DAY"),
        (interval(0, 0, 7 * 60 * minute, Hour, Hour), "INTERVAL '07' HOUR"),
        (interval(0, 0, 90 * minute, Hour, Minute), "INTERVAL '01:30' HOUR TO MINUTE"),
        (interval(0, 0, 90 * minute, Minute, Minute), "INTERVAL '90' MINUTE"),
        (interval(0, 0, 1_500_000, Second, Second), "INTERVAL '01.5' SECOND"),
        (interval(14, 0, 0, Year, Month), "INTERVAL '1-2' YEAR TO MONTH"),
        (interval(13, 0, 0, Month, Month), "INTERVAL '13' MONTH"),
        (interval(0, -1, -12 * 60 * minute, Day, Hour), "INTERVAL '-1 12' DAY TO HOUR"),
        (interval(0, 1, 7_384_500_000, Day, Second), "INTERVAL '1 02:03:04.5' DAY TO SECOND"),
    ] {
        assert_eq!(expr.spark_text(), expected);
    }
}

/// Conditions over two columns, with the obvious evaluation beside them.
#[derive(Debug, Clone)]
enum Condition {
    Less(bool, i64),
    IsNull(bool),
    In(bool, Vec<Option<i64>>),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn expr(&self) -> Expr {
        let name = |first: bool| column(if first { "n" } else { "d" });
        let value = |first: bool, v: i64| if first { number(v) } else { Expr::Literal(Scalar::Date(v as i32)) };
        match self {
            Condition::Less(first, v) => binary(BinaryOp::Lt, name(*first), value(*first, *v)),
            Condition::IsNull(first) => Expr::IsNull(Box::new(name(*first))),
            Condition::In(first, list) => {
                let item = |v: &Option<i64>| v.map_or(Expr::Literal(Scalar::Null), |v| value(*first, v));
                Expr::In(Box::new(name(*first)), list.iter().map(item).collect())
            }
            Condition::Not(inner) => not(inner.expr()),
            Condition::And(a, b) => binary(BinaryOp::And, a.expr(), b.expr()),
            Condition::Or(a, b) => binary(BinaryOp::Or, a.expr(), b.expr()),
        }
    }

    fn value(&self, n: Option<i64>, d: Option<i64>) -> Option<bool> {
        let pick = |first: bool| if first { n } else { d };
        match self {
            Condition::Less(first, v) => pick(*first).map(|x| x < *v),
            Condition::IsNull(first) => Some(pick(*first).is_none()),
            Condition::In(first, list) => {
                let x = pick(*first)?;
                if list.contains(&Some(x)) {
                    Some(true)
                } else if list.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            Condition::Not(inner) => inner.value(n, d).map(|b| !b),
            Condition::And(a, b) => match (a.value(n, d), b.value(n, d)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Condition::Or(a, b) => match (a.value(n, d), b.value(n, d)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        (any::<bool>(), -3i64..4).prop_map(|(c, v)| Condition::Less(c, v)),
        any::<bool>().prop_map(Condition::IsNull),
        (any::<bool>(), proptest::collection::vec(proptest::option::of(-3i64..4), 1..4))
            .prop_map(|(c, l)| Condition::In(c, l)),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|c| Condition::Not(Box::new(c))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_the_truth_tables(c in condition(), n in proptest::option::of(-4i64..5), d in proptest::option::of(-4i64..5)) {
        let values = vec![
            d.map_or(Scalar::Null, |d| Scalar::Date(d as i32)),
            n.map_or(Scalar::Null, Scalar::Long),
            Scalar::Null,
            Scalar::Null,
        ];
        let expr = c.expr();
        // `x IN (NULL)` is a type of its own to Spark and to us.
        prop_assert_eq!(matches(&expr, values).unwrap(), c.value(n, d) == Some(true), "{}", expr.spark_text());
    }
}
