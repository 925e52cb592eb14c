//! Expressions mean what they mean in Spark 4 with its defaults.

use crate::asking::{ask, rows};

#[test]
fn expressions_give_spark_s_values() {
    for (sql, expected) in [
        ("SELECT 7 / 2", "3.5"),
        ("SELECT 7 DIV 2", "3"),
        ("SELECT 1 + 7 DIV 2 * 2", "7"),
        ("SELECT -7 % 3", "-1"),
        ("SELECT CAST(7 AS DECIMAL(10,2)) / 2", "3.500000"),
        ("SELECT 1.0 / 3.0", "0.333333"),
        ("SELECT \"text\"", "text"),
        ("SELECT 'it''s'", "it's"),
        ("SELECT 'a\\tb'", "a\tb"),
        ("SELECT 2147483647", "2147483647"),
        ("SELECT 2147483647 + 1L", "2147483648"),
        ("SELECT -2147483648", "-2147483648"),
        ("SELECT 1e3", "1000.0"),
        ("SELECT sum(id) FROM range(5)", "10"),
        ("SELECT max(id) FROM range(3, 9, 2)", "7"),
        ("SELECT ID FROM range(1)", "0"),
        ("SELECT count(*) FROM range(100000)", "100000"),
        ("SELECT DATE'2026-01-31' + INTERVAL 1 DAY", "2026-02-01"),
        ("SELECT TIMESTAMP'2026-01-01 10:00:00'", "2026-01-01T10:00:00+00:00"),
        ("SELECT TIMESTAMP'2026-01-01 10:00:00+02:00'", "2026-01-01T08:00:00+00:00"),
        ("SELECT year(DATE'2026-03-04'), month(DATE'2026-03-04')", "2026|3"),
        ("SELECT CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "true"),
        ("SELECT CAST('NaN' AS DOUBLE) > 1e300", "true"),
        ("SELECT CAST(-0.0 AS DOUBLE) = 0e0", "true"),
        ("SELECT try_cast('x' AS INT)", "null"),
        ("SELECT CAST('12' AS INT) + 1", "13"),
        ("SELECT named_struct('a', 1, 'B', 'x')", "{\"a\":1,\"B\":\"x\"}"),
        ("SELECT array(1, 2, 3)[0]", "1"),
        ("SELECT map('k', 5)['k']", "5"),
        ("SELECT TIMESTAMP_NTZ'2026-01-01 10:00:00'", "2026-01-01T10:00:00"),
        ("SELECT CAST('2026-01-01 10:00:00' AS TIMESTAMP)", "2026-01-01T10:00:00+00:00"),
        ("SELECT size(array(1, 2, 3))", "3"),
        ("SELECT coalesce(NULL, 5)", "5"),
        ("SELECT count(DISTINCT id % 3) FROM range(10)", "3"),
        ("SELECT x, count(*) FROM VALUES (0e0), (double('-0.0')) t(x) GROUP BY x ORDER BY x", "0.0|2"),
        ("SELECT avg(id) FROM range(4)", "1.5"),
        ("SELECT id FROM range(3) ORDER BY id DESC LIMIT 1", "2"),
        ("SELECT x FROM VALUES (2), (NULL), (1) AS t(x) ORDER BY x LIMIT 1", "null"),
        ("WITH t AS (SELECT 1 AS a) SELECT a + 1 FROM t", "2"),
        ("SELECT if(1 < 2, 'yes', 'no')", "yes"),
        ("SELECT upper('ä'), length('äöü')", "Ä|3"),
        ("SELECT substring('Spark', 2, 3)", "par"),
        ("SELECT concat('a', 1)", "a1"),
        ("SELECT 5 IN (1, 5)", "true"),
        ("SELECT 'abc' LIKE 'a%'", "true"),
        ("SELECT CAST(1.5 AS INT)", "1"),
        ("SELECT CAST(TIMESTAMP'2026-01-01 10:00:00.12' AS STRING)", "2026-01-01 10:00:00.12"),
        ("SELECT concat('at ', TIMESTAMP'2026-01-01 10:00:00')", "at 2026-01-01 10:00:00"),
        ("SELECT CAST(TIMESTAMP'2026-01-01 00:00:00.9' AS BIGINT)", "1767225600"),
        ("SELECT CAST(1767225600 AS TIMESTAMP)", "2026-01-01T00:00:00+00:00"),
        ("SELECT CAST(1e10 AS STRING), CAST(0.1e0 AS STRING)", "1.0E10|0.1"),
        ("SELECT sum(id) OVER (ORDER BY id) FROM range(1)", "0"),
        ("SELECT sum(DISTINCT id % 3) FROM range(10)", "3"),
        ("SELECT sum(id) + 1 FROM range(10) HAVING sum(id) > 5", "46"),
        ("SELECT log(exp(2e0))", "2.0"),
        ("SELECT avg(x), avg(-x) FROM VALUES (1.00), (1.00), (0.00) t(x)", "0.666667|-0.666667"),
        ("SELECT avg(CAST(id AS INT)) FROM range(4)", "1.5"),
        ("SELECT CAST(TIMESTAMP'9999-12-31 23:59:59.9' AS STRING)", "9999-12-31 23:59:59.9"),
        ("SELECT round(2.5), round(1.005, 2), round(-1.15, 1)", "3|1.01|-1.2"),
        ("SELECT struct(id, id + 1) FROM range(1)", "{\"id\":0,\"col2\":1}"),
        (
            "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM range(3) ORDER BY id DESC LIMIT 1",
            "3",
        ),
        ("SELECT regexp_replace('aba', 'a', 'x')", "xbx"),
        ("SELECT array_position(array(1, 2), 3)", "0"),
        ("SELECT median(id) FROM range(4)", "1.5"),
        ("SELECT DISTINCT x FROM VALUES (CAST('-0.0' AS DOUBLE)), (0e0) t(x)", "0.0"),
        ("SELECT count(*) FROM VALUES (CAST('-0.0' AS DOUBLE)) t(x) JOIN VALUES (0e0) u(y) ON x = y", "1"),
        ("SELECT CAST(X'4142' AS STRING)", "AB"),
    ] {
        assert_eq!(rows(sql), [expected], "{sql}");
    }
}

#[test]
fn strings_have_spark_s_escapes() {
    for (sql, expected) in [
        (r"SELECT 'a\tb\\n\'\u00e9\101'", "a\tb\\n'éA"),
        (r##"SELECT 'it''s', 'a\'b', "x\\y", """""##, "it's|a'b|x\\y|\""),
        (r#"SELECT r'a\tb', R"\d+", length(r'\n')"#, r"a\tb|\d+|2"),
        (r"SELECT '50%' LIKE '50\%', '50x' LIKE '50\%'", "true|false"),
        (r"SELECT regexp_replace('a1b', '\\d', '-'), regexp_replace('a1b', r'\d', '-')", "a-b|a-b"),
        (r#"SELECT 'a' "b" 'c'"#, "abc"),
        (r"SELECT x AS r, r FROM (SELECT 1 AS x, 2 AS r)", "1|2"),
    ] {
        assert_eq!(rows(sql), [expected], "{sql}");
    }
    let error = ask(r"SELECT r'a''b'").unwrap_err();
    assert_eq!(error.class_name(), "PARSE_SYNTAX_ERROR");
}

#[test]
fn what_has_no_value_is_an_error_of_spark_s_class() {
    for (sql, class) in [
        ("SELECT 2147483647 + 1", "ARITHMETIC_OVERFLOW"),
        ("SELECT CAST(9223372036854775807 AS BIGINT) + 1L", "ARITHMETIC_OVERFLOW"),
        ("SELECT -CAST(-9223372036854775807 AS BIGINT) + 1L", "ARITHMETIC_OVERFLOW"),
        ("SELECT 100000 * 100000", "ARITHMETIC_OVERFLOW"),
        ("SELECT sum(id + 9223372036854775000) FROM range(3)", "ARITHMETIC_OVERFLOW"),
        ("SELECT date_format(DATE'2026-01-02', 'q')", "UNSUPPORTED_FEATURE"),
        ("SELECT s.zz FROM (SELECT named_struct('a', 1) AS s)", "FIELD_NOT_FOUND"),
        ("SELECT split('a', '(')", "INVALID_PARAMETER_VALUE.PATTERN"),
        ("SELECT * FROM range(3) TABLESAMPLE (50 PERCENT)", "UNSUPPORTED_FEATURE"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
        ("SELECT 1e0 / 0e0", "DIVIDE_BY_ZERO"),
        ("SELECT 1.5 / 0.0", "DIVIDE_BY_ZERO"),
        ("SELECT 1 DIV 0", "DIVIDE_BY_ZERO"),
        ("SELECT 1 % 0", "REMAINDER_BY_ZERO"),
        ("SELECT array(1, 2, 3)[3]", "INVALID_ARRAY_INDEX"),
        ("SELECT CAST('x' AS INT)", "CAST_INVALID_INPUT"),
        ("SELECT CAST('2026-13-01' AS DATE)", "CAST_INVALID_INPUT"),
        ("SELECT CAST(300 AS TINYINT)", "CAST_OVERFLOW"),
        ("SELECT nothing FROM range(1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("SELECT no_such_function(1)", "UNRESOLVED_ROUTINE"),
        ("SELECT * FROM no_such_table", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM delta.`/no/such/path`", "PATH_NOT_FOUND"),
        ("SELECT id FROM range(2) GROUP BY id % 2", "MISSING_AGGREGATION"),
        ("SELECT FROM WHERE", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM parquet.`/no/such/path`", "PATH_NOT_FOUND"),
    ] {
        match ask(sql) {
            Err(error) => assert_eq!(error.class_name(), class, "{sql}: {error}"),
            Ok(answer) => panic!("{sql} gave {answer:?}"),
        }
    }
}

#[test]
fn columns_are_called_as_spark_calls_them() {
    for (sql, columns) in [
        ("SELECT count(*), sum(id), ID FROM range(3) GROUP BY id", vec!["count(1)", "sum(id)", "ID"]),
        ("SELECT id + 1, id AS Nr, 'x' FROM range(1)", vec!["(id + 1)", "Nr", "x"]),
        ("SELECT *, id AS Twice FROM range(1)", vec!["id", "Twice"]),
        ("SELECT a.id, b.id FROM range(1) a JOIN range(1) b ON a.id = b.id", vec!["id", "id"]),
        ("SELECT id, id FROM range(1)", vec!["id", "id"]),
        ("SELECT `count(1)` FROM (SELECT count(*) FROM range(3))", vec!["count(1)"]),
        ("SELECT CAST(id AS STRING) FROM range(1)", vec!["id"]),
        ("SELECT s.A FROM (SELECT named_struct('a', 1) AS S)", vec!["A"]),
    ] {
        let answer = ask(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(answer.columns, columns, "{sql}");
    }
}

#[test]
fn a_syntax_error_tells_its_place_in_the_whole_text() {
    let error = ask("SELECT 1;\n  SELECT 1 +").unwrap_err();
    assert_eq!(error.class_name(), "PARSE_SYNTAX_ERROR");
    assert_eq!((error.context_value("line"), error.context_value("position")), (Some("2"), Some("12")), "{error}");
    let error = ask("SELECT 1 FRM t x").unwrap_err();
    assert_eq!(error.context_value("line"), Some("1"), "{error}");
}

#[test]
fn the_nearest_column_is_named_as_it_is_spelled() {
    let error = ask("SELECT custmer FROM (SELECT 1 AS Customer, 2 AS other)").unwrap_err();
    assert!(error.message().contains("[`Customer`, `other`]"), "{error}");
    assert_eq!((error.context_value("line"), error.context_value("position")), (Some("1"), Some("7")), "{error}");
}

#[test]
fn a_field_that_is_missing_is_named_with_its_place() {
    let error = ask("SELECT 1;\nSELECT s.a,\n  s.Zz FROM (SELECT named_struct('a', 1) AS s)").unwrap_err();
    assert!(error.message().contains("`zz`"), "{error}");
    assert_eq!((error.context_value("line"), error.context_value("position")), (Some("3"), Some("4")), "{error}");
}

#[test]
fn functions_of_spark_s_are_there() {
    for (sql, expected) in [
        (
            "SELECT date_format(DATE'2026-03-04', 'dd/MM/yyyy'), date_format('2026-03-04 05:06:07', 'HH:mm')",
            "04/03/2026|05:06",
        ),
        ("SELECT date_format(CAST(NULL AS DATE), 'yyyy')", "null"),
        (
            "SELECT split('a1b22c', '\\\\d+'), split('a,b,c', ',', 2), split('a,b', ',')[1]",
            "[\"a\",\"b\",\"c\"]|[\"a\",\"b,c\"]|b",
        ),
        ("SELECT 'abc' RLIKE 'b.$', 'abc' NOT RLIKE 'b', NOT 'abc' RLIKE 'x', NULL RLIKE 'a'", "true|false|true|null"),
        ("SELECT percentile(id, 0.5), percentile(id, 0.25) FROM range(4)", "1.5|0.75"),
        ("SELECT double('1'), int('2')", "1.0|2"),
        (
            "SELECT typeof(1), typeof(1.5), typeof('a'), typeof(array(1L)), typeof(named_struct('a', 1e0)), typeof(NULL)",
            "int|decimal(2,1)|string|array<bigint>|struct<a:double>|void",
        ),
        (
            "SELECT typeof(DATE'2026-01-01'), typeof(current_timestamp()), typeof(map('a', true))",
            "date|timestamp|map<string,boolean>",
        ),
    ] {
        assert_eq!(rows(sql), [expected], "{sql}");
    }
}

#[test]
fn with_in_with_is_planned_in_no_time() {
    let mut sql = "SELECT 7 AS a".to_owned();
    for _ in 0..40 {
        sql = format!("WITH c AS ({sql}) SELECT a FROM c");
    }
    // Work that doubled with each level would outlast the machine.
    assert_eq!(rows(&sql), ["7"]);
}
