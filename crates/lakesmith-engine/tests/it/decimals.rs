//! Decimals have Spark's types and digits, and what has too many is an error rather than another number.

use std::sync::Arc;

use arrow::array::Decimal128Array;
use serde_json::json;

use crate::asking::{ask, rows};
use crate::crafted::Crafted;

const NINES: &str = "99999999999999999999999999999999999999";

#[test]
fn arithmetic_gives_spark_s_types_and_digits() {
    for (select, expected) in [
        ("a + b", "Decimal128(13, 4)|12.3512"),
        ("a - b", "Decimal128(13, 4)|12.3288"),
        ("a * b", "Decimal128(16, 6)|0.138208"),
        ("a % b", "Decimal128(5, 4)|0.0088"),
        ("b % a", "Decimal128(5, 4)|0.0112"),
        ("a / b", "Decimal128(20, 8)|1101.78571429"),
        ("-a % 5", "Decimal128(3, 2)|-2.34"),
        ("a div b", "Int64|1101"),
        ("a + 1", "Decimal128(11, 2)|13.34"),
        ("a * 2", "Decimal128(12, 2)|24.68"),
        ("a + id", "Decimal128(23, 2)|19.34"),
        ("w * w", "Decimal128(38, 6)|1.562500"),
        ("w + w", "Decimal128(38, 17)|2.50000000000000000"),
    ] {
        let table = "(SELECT CAST(12.34 AS DECIMAL(10,2)) a, CAST(0.0112 AS DECIMAL(5,4)) b, \
                      CAST(1.25 AS DECIMAL(38,18)) w, CAST(7 AS BIGINT) id)";
        assert_eq!(rows(&format!("SELECT arrow_typeof({select}), {select} FROM {table}")), [expected], "{select}");
    }
    assert_eq!(rows("SELECT 5.5 div 0.5, -7.5 div 2"), ["11|-3"]);
    assert_eq!(
        rows("SELECT 0.0000005 * CAST(1 AS DECIMAL(38,6)), -0.0000005 * CAST(1 AS DECIMAL(38,6))"),
        ["0.000001|-0.000001"]
    );
}

#[test]
fn a_number_with_too_many_digits_is_an_error() {
    let long = format!("CAST({NINES} AS DECIMAL(38,0))");
    for (select, class) in [
        (format!("{long} + {long}"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("{long} + 1"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("-{long} - 1"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("{long} * 2"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("{long} * {long}"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("{long} / CAST(0.001 AS DECIMAL(38,18))"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        (format!("{long} % 0"), "REMAINDER_BY_ZERO"),
        (format!("{long} div 1"), "ARITHMETIC_OVERFLOW"),
        ("1.5 div 0.0".to_owned(), "DIVIDE_BY_ZERO"),
        (format!("CAST({NINES} AS DECIMAL(37,0))"), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
    ] {
        match ask(&format!("SELECT {select}")) {
            Err(error) => assert_eq!(error.class_name(), class, "{select}: {error}"),
            Ok(answer) => panic!("{select} gave {answer:?}"),
        }
    }
    assert_eq!(
        rows(&format!("SELECT {long} - 1, {long} * 1, try_cast({NINES} AS DECIMAL(37,0))")),
        [format!("{}8|{NINES}|null", &NINES[1..])]
    );
}

#[test]
fn sums_of_long_decimals_fail_or_are_right() {
    let nines: i128 = NINES.parse().unwrap();
    let column = |values: Vec<i128>| Decimal128Array::from(values).with_precision_and_scale(38, 10).unwrap();
    let table = Crafted::new(&json!([Crafted::field("d", "decimal(38,10)")]), &[], &[])
        .with_file(vec![("d", Arc::new(column(vec![nines, nines, -nines])))], &json!({}));
    let t = table.sql();
    let one = format!("{}.{}", &NINES[..28], &NINES[28..]);
    assert_eq!(rows(&format!("SELECT sum(d), arrow_typeof(sum(d)) FROM {t}")), [format!("{one}|Decimal128(38, 10)")]);
    assert_eq!(rows(&format!("SELECT sum(d) OVER (ORDER BY d ROWS UNBOUNDED PRECEDING) FROM {t} LIMIT 1")).len(), 1);
    for sql in [
        format!("SELECT sum(d) FROM {t} WHERE d > 0"),
        format!("SELECT sum(d) OVER () FROM (SELECT * FROM {t} WHERE d > 0)"),
        format!("SELECT d > 0, sum(d) FROM {t} GROUP BY d > 0"),
    ] {
        assert_eq!(ask(&sql).unwrap_err().class_name(), "ARITHMETIC_OVERFLOW", "{sql}");
    }
    let filtered = ask(&format!("SELECT count(*) FROM {t} WHERE d * d > 0")).unwrap_err();
    assert_eq!(filtered.class_name(), "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", "{filtered}");
    assert_eq!(rows(&format!("SELECT count(*) FROM {t} WHERE d < 0 AND d - 1 < 0")), ["1"]);
}
