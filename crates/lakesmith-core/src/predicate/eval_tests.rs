use super::*;
use crate::predicate::bind_partition_predicate;
use crate::table::{Field, Schema};

fn column(name: &str) -> Expr {
    Expr::Column(vec![name.into()])
}

fn text(s: &str) -> Expr {
    Expr::Literal(Scalar::String(s.into()))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn matches(expr: &Expr, values: Vec<Scalar>) -> Result<bool> {
    let field = |name: &str, data_type| Field {
        name: name.into(),
        physical: name.into(),
        id: None,
        data_type,
        nullable: true,
        metadata: Default::default(),
    };
    let schema = Schema {
        fields: vec![
            field("d", DataType::Date),
            field("n", DataType::Integer),
            field("s", DataType::String),
            field("x", DataType::Long),
        ],
    };
    let names = ["d".to_string(), "n".into(), "s".into()];
    let bound = bind_partition_predicate(expr, &schema, &names, 86_400_000 * 100)?;
    let raw = vec![None; values.len()];
    bound.matches(&PartitionTuple { raw, values })
}

fn row(d: i32, n: i64, s: &str) -> Vec<Scalar> {
    vec![Scalar::Date(d), Scalar::Long(n), Scalar::String(s.into())]
}

#[test]
fn literals_take_the_type_of_the_column() {
    let e = binary(BinaryOp::GtEq, column("D"), text("1970-01-02"));
    assert!(!matches(&e, row(0, 0, "")).unwrap());
    assert!(matches(&e, row(1, 0, "")).unwrap());
    let bad = binary(BinaryOp::Eq, column("d"), text("yesterday"));
    assert_eq!(matches(&bad, row(0, 0, "")).unwrap_err().class_name(), "CAST_INVALID_INPUT");
    assert!(matches(&binary(BinaryOp::Lt, column("n"), Expr::Literal(Scalar::Decimal(15, 1))), row(0, 1, "")).unwrap());
}

#[test]
fn null_is_no_match_and_three_valued_logic_holds() {
    let eq = binary(BinaryOp::Eq, column("s"), text("a"));
    let null = vec![Scalar::Null, Scalar::Null, Scalar::Null];
    assert!(!matches(&eq, null.clone()).unwrap());
    assert!(!matches(&Expr::Not(Box::new(eq.clone())), null.clone()).unwrap());
    let or = binary(BinaryOp::Or, eq.clone(), Expr::IsNull(Box::new(column("s"))));
    assert!(matches(&or, null.clone()).unwrap());
    let list = Expr::In(Box::new(column("s")), vec![text("b"), Expr::Literal(Scalar::Null)]);
    assert!(!matches(&Expr::Not(Box::new(list)), row(0, 0, "a")).unwrap());
    assert!(matches(&binary(BinaryOp::NullSafeEq, column("s"), Expr::Literal(Scalar::Null)), null).unwrap());
}

#[test]
fn logical_operators_agree_with_the_truth_table() {
    let values = [Scalar::Boolean(true), Scalar::Boolean(false), Scalar::Null];
    let as_option = |s: &Scalar| if let Scalar::Boolean(b) = s { Some(*b) } else { None };
    for l in &values {
        for r in &values {
            let (a, b) = (as_option(l), as_option(r));
            let and = if a == Some(false) || b == Some(false) { Some(false) } else { a.zip(b).map(|(a, b)| a && b) };
            let or = if a == Some(true) || b == Some(true) { Some(true) } else { a.zip(b).map(|(a, b)| a || b) };
            assert_eq!(as_option(&logical(BinaryOp::And, l, r)), and, "{l:?} and {r:?}");
            assert_eq!(as_option(&logical(BinaryOp::Or, l, r)), or, "{l:?} or {r:?}");
        }
    }
}

#[test]
fn dates_move_by_days_and_intervals() {
    let today = Expr::Function("current_date".into(), vec![]);
    let week = Expr::Interval {
        months: 0,
        days: 7,
        micros: 0,
        fields: (crate::predicate::IntervalField::Day, crate::predicate::IntervalField::Day),
    };
    let e = binary(BinaryOp::GtEq, column("d"), binary(BinaryOp::Minus, today, week));
    assert!(matches(&e, row(93, 0, "")).unwrap());
    assert!(!matches(&e, row(92, 0, "")).unwrap());
}

#[test]
fn columns_must_be_partition_columns_and_filters_conditions() {
    let e = binary(BinaryOp::Eq, column("x"), Expr::Literal(Scalar::Long(1)));
    let error = matches(&e, row(0, 0, "")).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_NON_PARTITION_COLUMN_REFERENCE");
    assert_eq!(
        error.message(),
        "Predicate references non-partition column 'x'. Only the partition columns may be referenced: [d, n, s]"
    );
    assert_eq!(matches(&column("n"), row(0, 0, "")).unwrap_err().class_name(), "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN");
    let unknown = binary(BinaryOp::Eq, Expr::Function("soundex".into(), vec![column("s")]), text("a"));
    assert_eq!(matches(&unknown, row(0, 0, "")).unwrap_err().class_name(), "UNRESOLVED_ROUTINE");
}

#[test]
fn like_matches_as_sql_does() {
    for (value, pattern, expected) in [
        ("abc", "a%", true),
        ("abc", "_b_", true),
        ("abc", "%d%", false),
        ("a%c", "a\\%c", true),
        ("", "%", true),
        ("abc", "a", false),
    ] {
        assert_eq!(like(value, pattern, '\\'), expected, "{value} like {pattern}");
    }
}

#[test]
fn sparks_text_of_a_predicate() {
    let e = binary(
        BinaryOp::And,
        binary(BinaryOp::GtEq, column("event_date"), text("2026-11-29")),
        Expr::IsNotNull(Box::new(column("p"))),
    );
    assert_eq!(e.spark_text(), "(('event_date >= 2026-11-29) AND isnotnull('p))");
}
