//! Operands of different types meet in the type that Spark has for them.

use crate::asking::{ask, rows};

/// A DOUBLE that is not 0.3, but so near that a decimal of 15 digits cannot tell.
const NEAR: &str = "(VALUES (CAST(0.1 AS DOUBLE) + CAST(0.2 AS DOUBLE))) t(x)";

#[test]
fn a_decimal_beside_a_float_is_a_double() {
    for (select, expected) in [
        ("x = 0.3, x IN (0.3), x <= 0.3, 0.3 >= x, x BETWEEN 0.0 AND 0.3", "false|false|false|false|false"),
        ("x <=> 0.3, x <> 0.3, x > 0.3, x > -0.3", "false|true|true|true"),
        ("CASE x WHEN 0.3 THEN 1 ELSE 2 END", "2"),
        (
            "if(true, x, 0.1), coalesce(0.1, x), CASE WHEN false THEN 0.1 ELSE x END",
            "0.30000000000000004|0.1|0.30000000000000004",
        ),
        (
            "x + 0.1, x - 0.1, x * 1.0, x / 1.0, 1e-20 + 0.0, x % 0.2",
            "0.4|0.20000000000000004|0.30000000000000004|0.30000000000000004|1e-20|0.10000000000000003",
        ),
        ("greatest(x, 0.1), array(x, 0.1)", "0.30000000000000004|[0.30000000000000004,0.1]"),
        ("x > (SELECT 0.3)", "true"),
        ("CAST(0.1 AS FLOAT) = 0.1, CAST(0.5 AS FLOAT) = 0.5", "false|true"),
        ("CAST(0.1 AS FLOAT) + 0.0", "0.10000000149011612"),
        ("sum(x * 1.5e0 + 0.5)", "0.9500000000000001"),
    ] {
        assert_eq!(rows(&format!("SELECT {select} FROM {NEAR}")), [expected], "{select}");
    }
    for (sql, expected) in [
        (format!("SELECT count(*) FROM {NEAR} WHERE x IN (SELECT 0.3)"), vec!["0"]),
        (format!("SELECT count(*) FROM {NEAR} WHERE EXISTS (SELECT 1 FROM (SELECT 0.3 y) WHERE x = y)"), vec!["0"]),
        (format!("SELECT count(*) FROM {NEAR} JOIN (SELECT 0.3 y) ON x = y"), vec!["0"]),
        (format!("SELECT count(*) FROM {NEAR} JOIN (SELECT 0.3 x) u USING (x)"), vec!["0"]),
        (
            format!("SELECT * FROM (SELECT x FROM {NEAR} UNION SELECT 0.3) ORDER BY x"),
            vec!["0.3", "0.30000000000000004"],
        ),
        (format!("SELECT x + 0.5, count(*) FROM {NEAR} GROUP BY x + 0.5 HAVING x + 0.5 > 0.1"), vec!["0.8|1"]),
        ("SELECT count(*) FROM (VALUES (CAST('-Infinity' AS DOUBLE)), (1e0)) t(x) WHERE x < 0.0".into(), vec!["1"]),
        ("SELECT * FROM (SELECT 1.5 a UNION ALL SELECT CAST('NaN' AS DOUBLE)) ORDER BY a".into(), vec!["1.5", "NaN"]),
    ] {
        assert_eq!(rows(&sql), expected, "{sql}");
    }
}

#[test]
fn a_string_becomes_what_it_stands_beside() {
    for (select, expected) in [
        ("1 < '3000000000', '10' > 9, 2 = ' 2'", "true|true|true"),
        ("1.5 = '1.50', 1e0 = '1', 0.1 < '1e300'", "true|true|true"),
        ("true = 'true', 'f' = false", "true|true"),
        ("1 + '2', typeof(1 + '2'), '1' * 1.5", "3|bigint|1.5"),
        ("1 IN ('1', '5000000000'), 7 BETWEEN '0' AND '5000000000'", "true|true"),
        (
            "typeof(coalesce(1, '2')), typeof(if(true, 1, '2')), typeof(CASE WHEN true THEN '1' ELSE 1.5 END)",
            "bigint|bigint|double",
        ),
        ("CASE 1 WHEN '1' THEN 'a' ELSE 'b' END, coalesce(NULL, '7', 8)", "a|7"),
        ("typeof(coalesce(NULL, 'a'))", "string"),
        ("DATE'2026-01-01' = '2026-01-01', TIMESTAMP'2026-01-01 00:00:00' > '2025-12-31'", "true|true"),
        ("DATE'2026-01-05' IN ('2026-01-05'), DATE'2026-01-05' BETWEEN '2026-01-01' AND '2026-01-05'", "true|true"),
        ("TIMESTAMP'2026-01-01 00:00:00' = '2026-01-01 02:00:00+02:00'", "true"),
    ] {
        assert_eq!(rows(&format!("SELECT {select}")), [expected], "{select}");
    }
    let join = "SELECT count(*) FROM VALUES (1), (2) a(x) JOIN VALUES ('01'), ('3000000000') b(y) ON x = y";
    assert_eq!(rows(join), ["1"]);
    assert_eq!(rows("SELECT count(*) FROM range(20) WHERE id > '9'"), ["10"]);
    for sql in
        ["SELECT 1 = '1.0'", "SELECT 1 = 'x'", "SELECT coalesce(1, 'x')", "SELECT CASE WHEN false THEN 1 ELSE 'x' END"]
    {
        assert_eq!(ask(sql).unwrap_err().class_name(), "CAST_INVALID_INPUT", "{sql}");
    }
}

#[test]
fn columns_of_values_and_of_set_operations_have_a_common_type() {
    for (sql, expected) in [
        ("SELECT typeof(x), x FROM VALUES (1.5), (2e0) t(x)", "double|1.5 double|2.0"),
        (
            "SELECT typeof(x), x FROM VALUES (-0.1), (CAST(1 AS FLOAT)), (NULL) t(x)",
            "double|-0.1 double|1.0 double|null",
        ),
        ("SELECT typeof(x) FROM VALUES (1.5F), (2F) t(x)", "float float"),
        (
            "SELECT typeof(x), x FROM VALUES (1.5), (2.25), (100) t(x)",
            "decimal(12,2)|1.50 decimal(12,2)|2.25 decimal(12,2)|100.00",
        ),
        ("SELECT typeof(x) FROM (SELECT 1.5 AS x UNION SELECT 1.5e0)", "double"),
        ("SELECT typeof(x) FROM (SELECT 1.50 AS x UNION ALL SELECT 12345.5)", "decimal(7,2) decimal(7,2)"),
        ("SELECT x FROM (SELECT 1.5 AS x EXCEPT SELECT 1.5e0)", ""),
    ] {
        assert_eq!(rows(sql).join(" "), expected, "{sql}");
    }
}

#[test]
fn a_date_beside_a_timestamp_is_a_timestamp_of_any_year() {
    for (select, expected) in [
        ("DATE'0001-01-01' < TIMESTAMP'2020-01-01 00:00:00'", "true"),
        (
            "DATE'9999-12-31' = TIMESTAMP'9999-12-31 00:00:00', DATE'9999-12-31' IN (TIMESTAMP'9999-12-31 00:00:00')",
            "true|true",
        ),
        ("DATE'2020-01-01' = TIMESTAMP_NTZ'2020-01-01 00:00:00'", "true"),
        ("DATE'0001-01-01' BETWEEN TIMESTAMP'0001-01-01 00:00:00' AND TIMESTAMP'2020-01-01 00:00:00'", "true"),
        ("DATE'0001-01-01' < current_timestamp()", "true"),
        ("coalesce(DATE'0001-01-01', TIMESTAMP'2020-01-01 00:00:00')", "0001-01-01T00:00:00+00:00"),
    ] {
        assert_eq!(rows(&format!("SELECT {select}")), [expected], "{select}");
    }
    let both = "SELECT * FROM (SELECT DATE'0001-01-01' d UNION ALL SELECT TIMESTAMP'2020-01-01 00:00:00') ORDER BY d";
    assert_eq!(rows(both), ["0001-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00"]);
}

#[test]
fn a_column_of_floats_that_is_grouped_by_can_be_selected() {
    for rest in ["GROUP BY x", "GROUP BY x HAVING x > 0.5", "GROUP BY x ORDER BY x", "GROUP BY ALL", "GROUP BY 1"] {
        for float in ["DOUBLE", "FLOAT"] {
            let sql = format!("SELECT x FROM (VALUES (CAST(1 AS {float}))) t(x) {rest}");
            assert_eq!(rows(&sql), ["1.0"], "{sql}");
        }
    }
}

#[test]
fn times_of_four_digit_years_are_written_out() {
    for (time, text, json) in [
        ("9999-12-31 00:00:00", "9999-12-31 00:00:00", "9999-12-31T00:00:00+00:00"),
        ("9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999", "9999-12-31T23:59:59.999999+00:00"),
        ("0001-01-01 00:00:00", "0001-01-01 00:00:00", "0001-01-01T00:00:00+00:00"),
    ] {
        let sql = format!("SELECT CAST(TIMESTAMP'{time}' AS STRING), TIMESTAMP'{time}'");
        assert_eq!(rows(&sql), [format!("{text}|{json}")], "{sql}");
    }
}

#[test]
fn suffixes_tell_the_types_of_numbers() {
    for (select, expected) in [
        ("arrow_typeof(1.5D), arrow_typeof(1.5BD), arrow_typeof(1.5F)", "Float64|Decimal128(2, 1)|Float32"),
        (
            "arrow_typeof(5S), arrow_typeof(-128Y), arrow_typeof(-5L), arrow_typeof(5bd)",
            "Int16|Int8|Int64|Decimal128(1, 0)",
        ),
        ("1.5D = 1.5, 1.5D + 1, 5Y AS x", "true|2.5|5"),
        ("5 S", "5"),
        ("count(*), count(1) c1, count('x') c2, count(NULL) c3", "1|1|1|0"),
    ] {
        assert_eq!(rows(&format!("SELECT {select}")), [expected], "{select}");
    }
}

#[test]
fn long_chains_are_planned_or_refused() {
    let ors = |count: u64| (0..count).map(|i| format!("id * 2 = {i}")).collect::<Vec<_>>().join(" OR ");
    let unions = vec!["SELECT 1 a"; 300].join(" UNION ALL ");
    assert_eq!(rows(&format!("SELECT count(*) FROM ({unions})")), ["300"]);
    let equal = (0..800).map(|i| format!("id = {i}")).collect::<Vec<_>>().join(" OR ");
    assert_eq!(rows(&format!("SELECT count(*) FROM range(10) WHERE {equal}")), ["10"]);
    for sql in [
        format!("SELECT {}", vec!["1"; 5000].join(" + ")),
        vec!["SELECT 1 a"; 5000].join(" UNION ALL "),
        format!("SELECT count(*) FROM range(10) WHERE {}", ors(5000)),
    ] {
        let error = ask(&sql).unwrap_err();
        assert_eq!(error.class_name(), "PARSE_SYNTAX_ERROR", "{error}");
    }
}
