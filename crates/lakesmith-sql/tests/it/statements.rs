use lakesmith_core::op::Replacing;
use lakesmith_sql::{CatalogStatement, StatementKind, StatementOp, TableRef, parse};

fn one(text: &str) -> StatementKind {
    let mut all = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0).kind
}

fn table_op(text: &str) -> (TableRef, StatementOp) {
    match one(text) {
        StatementKind::Table { table, op } => (table, op),
        other => panic!("{text}: {other:?}"),
    }
}

fn path(text: &str) -> TableRef {
    TableRef::Path(text.into())
}

fn columns(list: &[&[&str]]) -> Vec<Vec<String>> {
    list.iter().map(|parts| parts.iter().map(|p| (*p).to_owned()).collect()).collect()
}

#[test]
fn optimize_in_all_its_forms() {
    for (text, table, full, predicate, zorder) in [
        ("OPTIMIZE delta.`/p`", path("/p"), false, None, columns(&[])),
        (
            "optimize Delta.`/path with spaces %41/ünï``x`;",
            path("/path with spaces %41/ünï`x"),
            false,
            None,
            columns(&[]),
        ),
        ("OPTIMIZE '/p'", path("/p"), false, None, columns(&[])),
        ("OPTIMIZE \"s3://b/p;q\"", path("s3://b/p;q"), false, None, columns(&[])),
        (
            "OPTIMIZE a.`b c`.d FULL",
            TableRef::Name(vec!["a".into(), "b c".into(), "d".into()]),
            true,
            None,
            columns(&[]),
        ),
        ("OPTIMIZE full FULL", TableRef::Name(vec!["full".into()]), true, None, columns(&[])),
        (
            "OPTIMIZE delta.`/p` WHERE d >= '2026-11-29' AND p IN ('a;b') ZORDER BY (a, b.c, `d.e`)",
            path("/p"),
            false,
            Some("d >= '2026-11-29' AND p IN ('a;b')"),
            columns(&[&["a"], &["b", "c"], &["d.e"]]),
        ),
        (
            "OPTIMIZE t ZORDER BY a, b -- done",
            TableRef::Name(vec!["t".into()]),
            false,
            None,
            columns(&[&["a"], &["b"]]),
        ),
        (
            "/* why */ OPTIMIZE\n\tt /* a /* b */ */ WHERE\n x = 1 -- one",
            TableRef::Name(vec!["t".into()]),
            false,
            Some("x = 1"),
            columns(&[]),
        ),
    ] {
        let (found, op) = table_op(text);
        assert_eq!(found, table, "{text}");
        let StatementOp::Optimize { full: f, predicate: p, zorder_by } = op else { panic!("{text}") };
        assert_eq!((f, p.as_ref().map(|p| p.1.as_str()), zorder_by), (full, predicate, zorder), "{text}");
    }
}

#[test]
fn reorg_and_descriptions() {
    let (table, op) = table_op("REORG TABLE delta.`/p` WHERE n = 1 APPLY (PURGE)");
    assert_eq!(table, path("/p"));
    assert!(matches!(op, StatementOp::ReorgPurge { predicate: Some((_, text)) } if text == "n = 1"));
    assert_eq!(table_op("reorg table t apply(purge)").1, StatementOp::ReorgPurge { predicate: None });
    assert_eq!(table_op("DESCRIBE DETAIL delta.`/p`"), (path("/p"), StatementOp::Detail));
    assert_eq!(table_op("desc detail '/p'"), (path("/p"), StatementOp::Detail));
    assert_eq!(table_op("DESCRIBE HISTORY delta.`/p`").1, StatementOp::History { limit: None });
    assert_eq!(table_op("DESC HISTORY '/p' LIMIT 5").1, StatementOp::History { limit: Some(5) });
}

#[test]
fn properties() {
    assert_eq!(table_op("SHOW TBLPROPERTIES t").1, StatementOp::ShowProperties { key: None });
    for text in ["SHOW TBLPROPERTIES t ('a.b')", "SHOW TBLPROPERTIES t (\"a.b\")", "SHOW TBLPROPERTIES t (a.b)"] {
        assert_eq!(table_op(text).1, StatementOp::ShowProperties { key: Some("a.b".into()) }, "{text}");
    }
    let text = "ALTER TABLE delta.`/p` SET TBLPROPERTIES ('k'='v', k.x = 1, c = TRUE, d=1.5, e 'x', 'f' = \"it's\")";
    let expected = [("k", "v"), ("k.x", "1"), ("c", "true"), ("d", "1.5"), ("e", "x"), ("f", "it's")];
    let set = expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(table_op(text).1, StatementOp::AlterProperties { set, unset: vec![], if_exists: false });
    let text = "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('k', a.b, `z z`)";
    let unset = vec!["k".to_owned(), "a.b".into(), "z z".into()];
    assert_eq!(table_op(text).1, StatementOp::AlterProperties { set: vec![], unset, if_exists: true });
}

#[test]
fn settings() {
    for (text, key, value) in [
        ("SET", None, None),
        ("SET spark.x.y", Some("spark.x.y"), None),
        ("set spark.x.max-size = 256k", Some("spark.x.max-size"), Some("256k")),
        ("SET spark.x=1;", Some("spark.x"), Some("1")),
        ("SET spark.x = hello  world -- why", Some("spark.x"), Some("hello  world")),
        ("SET spark.x = \"hello world\"", Some("spark.x"), Some("\"hello world\"")),
        ("SET `spark x` = `a;b`", Some("spark x"), Some("a;b")),
        ("SET x.y=", Some("x.y"), Some("")),
        (
            "SET fs.azure.account.key.a1.dfs.core.windows.net = a/b+c==",
            Some("fs.azure.account.key.a1.dfs.core.windows.net"),
            Some("a/b+c=="),
        ),
        ("SET TIME ZONE 'UTC'", Some("spark.sql.session.timeZone"), Some("UTC")),
    ] {
        let (key, value) = (key.map(str::to_owned), value.map(str::to_owned));
        assert_eq!(one(text), StatementKind::Set { key, value }, "{text}");
    }
    assert_eq!(one("RESET"), StatementKind::Reset { key: None });
    assert_eq!(one("RESET spark.x.y"), StatementKind::Reset { key: Some("spark.x.y".into()) });
}

#[test]
fn statements_for_an_engine_are_carried_as_text() {
    for text in [
        "SELECT * FROM delta.`/p` WHERE a = ';'",
        "(SELECT 1)",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "insert into t values (1)",
        "DELETE FROM t",
        "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE",
        "ALTER TABLE t SET LOCATION 'x'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t USING delta PARTITIONED BY (a) AS SELECT 1 AS a, 2 AS b",
        "CREATE OR REPLACE TABLE t AS SELECT 1",
        "CREATE TABLE t LIKE u",
        "CREATE VIEW v AS SELECT 1",
        "DROP VIEW v",
        "DESCRIBE SELECT 1",
        "DESCRIBE FUNCTION abs",
        "DESCRIBE t PARTITION (a = 1)",
        "SHOW FUNCTIONS",
        "COMMENT ON COLUMN t.a IS 'x'",
    ] {
        assert_eq!(one(text), StatementKind::Query { text: text.into() });
    }
}

#[test]
fn scripts_split_into_statements_with_their_places() {
    let text = ";; OPTIMIZE delta.`/a;b`; -- ; not one\n\n  SET x.y = 1 ;\n/* ; */ DESCRIBE DETAIL 'ü;';";
    let all = parse(text).unwrap();
    let shown: Vec<(&str, u64, u64)> = all.iter().map(|s| (s.text.as_str(), s.span.line, s.span.column)).collect();
    assert_eq!(shown, [("OPTIMIZE delta.`/a;b`", 1, 4), ("SET x.y = 1", 3, 3), ("DESCRIBE DETAIL 'ü;'", 4, 9)]);
    for statement in &all {
        assert_eq!(&text[statement.span.start..statement.span.end], statement.text);
    }
    assert_eq!((all[0].span.end_line, all[0].span.end_column), (1, 25));
    assert!(parse(" -- nothing\n ; /* */").unwrap().is_empty());
}

fn names(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|p| (*p).to_owned()).collect()
}

#[test]
fn databases_in_each_of_sparks_words() {
    for word in ["DATABASE", "schema", "NAMESPACE"] {
        let create = format!("CREATE {word} IF NOT EXISTS a.`b c` COMMENT 'x'");
        let expected = CatalogStatement::CreateDatabase {
            name: names(&["a", "b c"]),
            if_not_exists: true,
            comment: Some("x".into()),
        };
        assert_eq!(one(&create), StatementKind::Catalog(expected));
        let drop = CatalogStatement::DropDatabase { name: names(&["a"]), if_exists: true, cascade: true };
        assert_eq!(one(&format!("DROP {word} IF EXISTS a CASCADE")), StatementKind::Catalog(drop));
        let drop = CatalogStatement::DropDatabase { name: names(&["a"]), if_exists: false, cascade: false };
        assert_eq!(one(&format!("DROP {word} a RESTRICT")), StatementKind::Catalog(drop));
        let describe = CatalogStatement::DescribeDatabase { name: names(&["a"]), extended: true };
        assert_eq!(one(&format!("DESC {word} EXTENDED a")), StatementKind::Catalog(describe));
        assert_eq!(
            one(&format!("USE {word} a")),
            StatementKind::Catalog(CatalogStatement::Use { name: names(&["a"]) })
        );
        let like = Some("a*".to_owned());
        let show = CatalogStatement::ShowDatabases { within: vec![], like };
        assert_eq!(one(&format!("SHOW {word}S LIKE 'a*'")), StatementKind::Catalog(show.clone()));
        assert_eq!(one(&format!("SHOW {word}S 'a*'")), StatementKind::Catalog(show));
    }
    assert_eq!(one("USE c.d"), StatementKind::Catalog(CatalogStatement::Use { name: names(&["c", "d"]) }));
    assert_eq!(one("USE database"), StatementKind::Catalog(CatalogStatement::Use { name: names(&["database"]) }));
}

#[test]
fn tables_by_name() {
    let show = CatalogStatement::ShowTables { database: names(&["a"]), like: Some("x".into()) };
    assert_eq!(one("SHOW TABLES FROM a LIKE 'x'"), StatementKind::Catalog(show));
    let table = TableRef::Name(names(&["a", "t"]));
    let drop = CatalogStatement::DropTable { table: table.clone(), if_exists: true };
    assert_eq!(one("DROP TABLE IF EXISTS a.t PURGE"), StatementKind::Catalog(drop));
    for (text, op) in [
        ("SHOW COLUMNS IN a.t", StatementOp::ShowColumns),
        ("SHOW COLUMNS FROM t IN a", StatementOp::ShowColumns),
        ("SHOW COLUMNS FROM a.t FROM A", StatementOp::ShowColumns),
        ("SHOW CREATE TABLE a.t", StatementOp::ShowCreate),
        ("DESCRIBE a.t", StatementOp::Describe { extended: false }),
        ("DESC TABLE EXTENDED a.t", StatementOp::Describe { extended: true }),
        ("DESCRIBE FORMATTED a.t", StatementOp::Describe { extended: true }),
        ("DESCRIBE a.t id", StatementOp::DescribeColumn { column: "id".into() }),
    ] {
        let StatementKind::Table { table: found, op: read } = one(text) else { panic!("{text}") };
        let TableRef::Name(parts) = &found else { panic!("{text}") };
        assert!(parts.join(".").eq_ignore_ascii_case("a.t"), "{text}: {found:?}");
        assert_eq!(read, op, "{text}");
    }
    for (text, replacing) in [
        ("CREATE TABLE a.t (x INT)", Replacing::Never),
        ("CREATE OR REPLACE TABLE a.t (x INT) USING delta", Replacing::IfThere),
        ("REPLACE TABLE a.t (x INT)", Replacing::Only),
        ("CREATE TABLE a.t USING delta LOCATION '/x'", Replacing::Never),
    ] {
        match one(text) {
            StatementKind::Table { table: found, op: StatementOp::CreateTable(clauses) } => {
                assert_eq!((&found, clauses.replacing), (&table, replacing), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn names_that_are_not_understood_are_shown() {
    for (text, class) in [
        ("CREATE DATABASE", "PARSE_SYNTAX_ERROR"),
        ("CREATE DATABASE a LOCATION '/x'", "UNSUPPORTED_FEATURE"),
        ("DROP DATABASE a b", "PARSE_SYNTAX_ERROR"),
        ("DROP TABLE", "PARSE_SYNTAX_ERROR"),
        ("USE", "PARSE_SYNTAX_ERROR"),
        ("SHOW TABLES LIKE", "PARSE_SYNTAX_ERROR"),
        ("SHOW COLUMNS a", "PARSE_SYNTAX_ERROR"),
        ("SHOW COLUMNS IN a.t FROM b", "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE"),
        ("DESCRIBE t a.b", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE t", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE t USING delta", "PARSE_SYNTAX_ERROR"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE t (a INT) USING parquet", "PARSE_SYNTAX_ERROR"),
    ] {
        assert_eq!(parse(text).unwrap_err().class_name(), class, "{text}");
    }
}
