use lakesmith_core::ErrorKind;
use lakesmith_sql::{parse, parse_predicate, render_snippet};

/// Statement, where the error is (`^` stands before it), class, part of the message.
const WRONG: &[(&str, &str, &str)] = &[
    ("OPTIMIZE^", "PARSE_SYNTAX_ERROR", "end of input: expected a table"),
    ("^OPTIMISE t", "PARSE_SYNTAX_ERROR", "near 'OPTIMISE': expected a statement; did you mean OPTIMIZE?"),
    ("^XYZZY x", "PARSE_SYNTAX_ERROR", "near 'XYZZY': expected a statement such as"),
    ("OPTIMIZE t ^WHER n = 1", "PARSE_SYNTAX_ERROR", "near 'WHER': expected FULL, WHERE, ZORDER BY or the end"),
    ("OPTIMIZE t WHERE^", "PARSE_SYNTAX_ERROR", "end of input: expected a value"),
    ("OPTIMIZE t WHERE n =^", "PARSE_SYNTAX_ERROR", "end of input: expected a value"),
    ("OPTIMIZE t WHERE ^ZORDER BY (a)", "PARSE_SYNTAX_ERROR", "near 'ZORDER': expected a value"),
    ("OPTIMIZE t WHERE n = 1 ^extra", "PARSE_SYNTAX_ERROR", "expected an operator, ZORDER BY or the end"),
    ("OPTIMIZE t WHERE (n = 1^", "PARSE_SYNTAX_ERROR", "expected an operator or ')'"),
    ("OPTIMIZE t WHERE n = 1^)", "PARSE_SYNTAX_ERROR", "near ')'"),
    ("OPTIMIZE t WHERE n IN (1, ^)", "PARSE_SYNTAX_ERROR", "expected a value"),
    ("OPTIMIZE t WHERE n BETWEEN 1 ^OR 2", "PARSE_SYNTAX_ERROR", "expected AND"),
    ("OPTIMIZE t WHERE n IS ^5", "PARSE_SYNTAX_ERROR", "expected NULL, NOT NULL"),
    ("OPTIMIZE t WHERE n ^MOD 2 = 1", "PARSE_SYNTAX_ERROR", "near 'MOD'"),
    ("OPTIMIZE t ZORDER ^(id)", "PARSE_SYNTAX_ERROR", "expected BY"),
    ("OPTIMIZE t ZORDER BY^", "PARSE_SYNTAX_ERROR", "expected a column"),
    ("OPTIMIZE t ZORDER BY (id,^)", "PARSE_SYNTAX_ERROR", "expected a column"),
    ("OPTIMIZE t ZORDER BY (id^", "PARSE_SYNTAX_ERROR", "expected ',' or ')'"),
    ("OPTIMIZE t FULL ^FULL", "PARSE_SYNTAX_ERROR", "expected WHERE, ZORDER BY"),
    ("OPTIMIZE delta.^/tmp/x", "PARSE_SYNTAX_ERROR", "a path in backquotes"),
    ("OPTIMIZE delta.^`/tmp/x", "PARSE_SYNTAX_ERROR", "not closed"),
    ("OPTIMIZE t WHERE n = ^'abc", "PARSE_SYNTAX_ERROR", "the string that starts here is not closed"),
    ("OPTIMIZE t WHERE n = ^\"abc", "PARSE_SYNTAX_ERROR", "expected a closing \""),
    ("OPTIMIZE t /* never closed^", "UNCLOSED_BRACKETED_COMMENT", "comment is not closed"),
    ("REORG ^t APPLY (PURGE)", "PARSE_SYNTAX_ERROR", "expected TABLE"),
    ("REORG TABLE t^", "PARSE_SYNTAX_ERROR", "expected WHERE or APPLY (PURGE)"),
    ("REORG TABLE t APPLY (^PURG)", "PARSE_SYNTAX_ERROR", "expected PURGE"),
    ("REORG TABLE t APPLY (^UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "UNSUPPORTED_FEATURE", "not supported"),
    ("DESCRIBE DETAIL^", "PARSE_SYNTAX_ERROR", "expected a table"),
    ("DESCRIBE HISTORY t LIMIT ^x", "PARSE_SYNTAX_ERROR", "expected a whole number"),
    ("DESCRIBE HISTORY t LIMIT ^1.5", "PARSE_SYNTAX_ERROR", "expected a whole number"),
    ("ALTER TABLE t^", "PARSE_SYNTAX_ERROR", "SET or UNSET TBLPROPERTIES"),
    ("ALTER TABLE t SET TBLPROPERTIES (^)", "PARSE_SYNTAX_ERROR", "expected a property key"),
    ("ALTER TABLE t SET TBLPROPERTIES ^('k')", "PARSE_SYNTAX_ERROR", "Values must be specified for key(s): [k]"),
    ("ALTER TABLE t UNSET TBLPROPERTIES ^('k' = 'v')", "PARSE_SYNTAX_ERROR", "Values should not be specified"),
    ("ALTER TABLE t SET TBLPROPERTIES ^('k'='1','k'='2')", "DUPLICATE_KEY", "duplicate keys `k`"),
    ("ALTER TABLE t SET TBLPROPERTIES ('k' = ^-3)", "PARSE_SYNTAX_ERROR", "near '-'"),
    ("SET foo ^bar", "INVALID_SET_SYNTAX", "Expected format"),
    ("OPTIMIZE t WHERE ^EXISTS (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES", "Subquery"),
    ("OPTIMIZE t WHERE n IN (^SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES", "Subquery"),
    ("OPTIMIZE t WHERE n = (^SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES", "Subquery"),
    ("OPTIMIZE t WHERE p ^RLIKE 'a'", "UNSUPPORTED_FEATURE", "'RLIKE' is not available"),
    ("OPTIMIZE t WHERE ^CASE WHEN a THEN b END", "UNSUPPORTED_FEATURE", "'CASE' is not available"),
    ("OPTIMIZE t WHERE n ^& 1 = 1", "UNSUPPORTED_FEATURE", "'&' is not available"),
    ("OPTIMIZE t WHERE d = ^DATE '2026-02-30'", "INVALID_TYPED_LITERAL", "'2026-02-30'"),
    ("OPTIMIZE t WHERE d = ^INTERVAL 1 MONTH 2 DAYS", "INVALID_INTERVAL_FORMAT", "Cannot mix"),
    ("OPTIMIZE t WHERE d = INTERVAL 1 ^parsec", "PARSE_SYNTAX_ERROR", "expected a unit"),
    ("OPTIMIZE t WHERE n = ^300Y", "PARSE_SYNTAX_ERROR", "not a number of its type"),
    ("OPTIMIZE t WHERE CAST(n AS ^MAP) = 1", "UNSUPPORTED_DATATYPE", "MAP"),
];

#[test]
fn every_error_names_its_place() {
    for (marked, class, part) in WRONG {
        let position = marked.find('^').unwrap();
        let text = marked.replace('^', "");
        let error = parse(&text).unwrap_err();
        assert_eq!(error.class_name(), *class, "{text}: {error}");
        assert!(error.message().contains(part), "{text}: {error}");
        assert_eq!(error.context_value("position"), Some(position.to_string().as_str()), "{text}: {error}");
        assert_eq!(error.context_value("line"), Some("1"));
        let expected = if *class == "UNSUPPORTED_FEATURE" && text.contains("UNIFORM") {
            ErrorKind::Unsupported
        } else {
            ErrorKind::Usage
        };
        assert_eq!(error.kind(), expected, "{text}");
        assert_eq!(render_snippet(&text, &error).unwrap(), format!("{text}\n{}^", " ".repeat(position)));
    }
}

#[test]
fn lines_are_counted_over_the_whole_script() {
    let text = "SET x.y = 1;\nOPTIMIZE t WHERE\n  ü = = 1";
    let error = parse(text).unwrap_err();
    assert_eq!((error.context_value("line"), error.context_value("position")), (Some("3"), Some("6")));
    assert_eq!(render_snippet(text, &error).unwrap(), "  ü = = 1\n      ^");
}

#[test]
fn predicates_alone_have_errors_too() {
    let error = parse_predicate("a = 1 b").unwrap_err();
    assert_eq!(error.context_value("position"), Some("6"));
    assert!(parse_predicate("").unwrap_err().message().contains("end of input"));
    assert!(parse_predicate("a = 1;").is_err());
}
