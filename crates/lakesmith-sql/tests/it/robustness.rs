use lakesmith_sql::{Settings, StatementKind, parse, parse_predicate, render_snippet, to_operation};
use proptest::prelude::*;

/// Pieces that reach deep into the grammar when they are thrown together.
const PIECES: &[&str] = &[
    "OPTIMIZE ",
    "REORG TABLE ",
    "DESCRIBE HISTORY ",
    "DESC DETAIL ",
    "ALTER TABLE ",
    "SET ",
    "SHOW TBLPROPERTIES ",
    "UNSET ",
    "TBLPROPERTIES ",
    "delta.`/p` ",
    "t ",
    "WHERE ",
    "ZORDER BY ",
    "APPLY (PURGE)",
    "LIMIT ",
    "FULL ",
    "a ",
    "b.c ",
    "= ",
    "== ",
    "<=> ",
    "<> ",
    "AND ",
    "OR ",
    "NOT ",
    "IN ",
    "(",
    ")",
    ", ",
    "1 ",
    "-2.5e3 ",
    "9L ",
    "'x' ",
    "\"y\" ",
    "r'\\' ",
    "X'0f' ",
    "X'zz' ",
    "INTERVAL ",
    "DAYS ",
    "TO ",
    "'1 2:3' ",
    "DAY ",
    "DATE ",
    "TIMESTAMP ",
    "'2026-01-01' ",
    "CAST( ",
    "AS ",
    "::",
    "DECIMAL(3,1) ",
    "LIKE ",
    "ESCAPE ",
    "BETWEEN ",
    "IS ",
    "NULL ",
    "current_date() ",
    "+ ",
    "- ",
    "|| ",
    "* ",
    "/ ",
    "% ",
    "DIV ",
    "EXTRACT( ",
    "FROM ",
    "YEAR ",
    ";",
    "--",
    "/*",
    "*/",
    "`",
    "'",
    "\"",
    "\\",
    "\n",
    "\r",
    "é",
    "\u{1f600}",
    "\0",
    "$$",
    "$a$",
    "#",
    "@",
];

fn check(text: &str) -> Result<(), TestCaseError> {
    for error in [parse(text).err(), parse_predicate(text).err()].into_iter().flatten() {
        prop_assert!(render_snippet(text, &error).is_some(), "{error}");
    }
    for statement in parse(text).unwrap_or_default() {
        prop_assert_eq!(&text[statement.span.start..statement.span.end], &statement.text);
        if let StatementKind::Table { op, .. } = &statement.kind {
            to_operation(op, &Settings::default()).unwrap();
        }
    }
    if let Ok(expr) = parse_predicate(text) {
        expr.spark_text();
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn arbitrary_pieces_never_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..25)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn settings_never_panic(key in "(lakesmith|spark)?[.a-zA-Zé]{0,20}", value in any::<String>()) {
        let _ = Settings::default().set(&key, &value);
    }
}

#[test]
fn deep_and_long_text_is_refused_or_read_on_a_small_stack() {
    let work = || {
        for open in ["(", "NOT ", "- ", "-(", "f(", "a IN (", "CAST(", "a AND (", "- - "] {
            assert!(parse_predicate(&open.repeat(100_000)).is_err(), "{open}");
            let _ = parse_predicate(&format!("{}a = 1{}", open.repeat(90), ")".repeat(90)));
        }
        for chain in ["a AND ", "1 + ", "a = ", "a || "] {
            assert!(parse_predicate(&format!("{}a", chain.repeat(100_000))).is_err(), "{chain}");
            assert!(parse_predicate(&format!("{}a", chain.repeat(900))).is_ok(), "{chain}");
        }
        let nested = format!("{}a{}", format!("({}", "a OR ".repeat(900)).repeat(90), ")".repeat(90));
        assert!(parse_predicate(&nested).is_err());
        assert!(parse_predicate(&format!("a IN ({}1)", "1, ".repeat(100_000))).is_ok());
        assert!(parse_predicate(&format!("a{}", "::int".repeat(100_000))).is_err());
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}
