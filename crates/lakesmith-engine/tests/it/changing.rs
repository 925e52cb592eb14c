//! INSERT and DELETE: what rows a table holds afterwards, and what it does not take.

use std::path::Path;

use lakesmith::{ErrorKind, Session};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::asking::{ask_in, fixtures, session};

/// A session in a warehouse of its own.
fn warehouse() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let mut session = session();
    ask_in(&mut session, &format!("SET spark.sql.warehouse.dir = {}", dir.path().display())).unwrap();
    (dir, session)
}

fn run(session: &mut Session, sql: &str) -> Vec<Vec<Value>> {
    ask_in(session, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}")).rows
}

fn class(session: &mut Session, sql: &str) -> String {
    let version =
        |session: &mut Session| ask_in(session, "DESCRIBE HISTORY t LIMIT 1").ok().map(|a| a.rows[0][0].clone());
    let before = version(session);
    let error = ask_in(session, sql).expect_err(sql);
    assert_eq!(version(session), before, "{sql}: nothing may be committed");
    assert_ne!(error.kind(), ErrorKind::Internal, "{sql}: {error}");
    error.class_name().to_owned()
}

/// Data files below a folder.
fn data_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "_delta_log" {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn rows_are_appended_by_place_by_name_and_by_list() {
    let (_dir, mut s) = warehouse();
    run(
        &mut s,
        "CREATE TABLE t (Id BIGINT, name STRING DEFAULT 'none', d DECIMAL(10,2)) USING DELTA TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    );
    run(&mut s, "INSERT INTO t VALUES (1, 'a', 1.5), (2, DEFAULT, NULL)");
    run(&mut s, "INSERT INTO t (d, ID) SELECT 2.345, 3");
    run(&mut s, "INSERT INTO t BY NAME SELECT 'x' AS NAME, 4L AS id, 7 AS d");
    run(&mut s, "INSERT INTO TABLE t WITH c AS (SELECT 5 AS i) SELECT i, NULL, '8.5' FROM c");
    run(&mut s, "INSERT INTO t SELECT * FROM t");
    run(&mut s, "INSERT INTO t SELECT * FROM t WHERE id > 100");
    assert_eq!(
        run(&mut s, "SELECT *, count(*) FROM t GROUP BY ALL ORDER BY id"),
        [
            json!([1, "a", "1.50", 2]).as_array().unwrap().clone(),
            json!([2, "none", null, 2]).as_array().unwrap().clone(),
            json!([3, "none", "2.35", 2]).as_array().unwrap().clone(),
            json!([4, "x", "7.00", 2]).as_array().unwrap().clone(),
            json!([5, null, "8.50", 2]).as_array().unwrap().clone(),
        ]
    );
    let history = run(&mut s, "DESCRIBE HISTORY t");
    assert_eq!(history.len(), 6, "no rows, no version");
    assert_eq!(history[0][4], "WRITE");
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let (_dir, mut s) = warehouse();
    run(&mut s, "CREATE TABLE t (id INT NOT NULL, b TINYINT, v VARCHAR(3), c CHAR(4), s STRUCT<x: INT NOT NULL>)");
    run(&mut s, "ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100)");
    let row = |id: &str, b: &str, v: &str| format!("INSERT INTO t VALUES ({id}, {b}, {v}, 'ab', named_struct('x', 1))");
    for (sql, expected) in [
        (row("NULL", "1", "'a'"), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        (row("100", "1", "'a'"), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        (row("1", "200", "'a'"), "CAST_OVERFLOW_IN_TABLE_INSERT"),
        (row("'x'", "1", "'a'"), "CAST_INVALID_INPUT"),
        (row("1", "1", "'abcd'"), "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"),
        ("INSERT INTO t VALUES (1, 2)".into(), "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT INTO t SELECT 1, 2, 'a', 'b', named_struct('x', 1), 9".into(), "DELTA_METADATA_MISMATCH"),
        ("INSERT INTO t (id, id) SELECT 1, 2".into(), "COLUMN_ALREADY_EXISTS"),
        ("INSERT INTO t (id, nope) SELECT 1, 2".into(), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t (id, b) SELECT 1".into(), "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO t (id) SELECT 1, 2".into(), "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS"),
        ("INSERT INTO nope SELECT 1".into(), "TABLE_OR_VIEW_NOT_FOUND"),
        ("INSERT INTO t SELECT 1, 2, 'a', 'b', named_struct('x', NULL)".into(), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ("INSERT INTO t VALUES (8, NULL, NULL, NULL, NULL)".into(), "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ("INSERT INTO t (id) SELECT nope FROM range(3)".into(), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t SELECT 1 1".into(), "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO t PARTITION (id = 1) SELECT 2".into(), "NON_PARTITION_COLUMN"),
    ] {
        assert_eq!(class(&mut s, &sql), expected, "{sql}");
    }
    run(&mut s, &row("7", "1", "'abc'"));
    run(&mut s, "INSERT INTO t VALUES (8, NULL, NULL, NULL, named_struct('x', 2))");
    assert_eq!(run(&mut s, "SELECT id, c FROM t ORDER BY id"), [[json!(7), json!("ab  ")], [json!(8), json!(null)]]);
}

#[test]
fn a_row_that_is_refused_leaves_no_file() {
    let (dir, mut s) = warehouse();
    run(&mut s, "CREATE TABLE t (id BIGINT)");
    run(&mut s, "ALTER TABLE t ADD CONSTRAINT most CHECK (id < 99999)");
    assert_eq!(
        class(&mut s, "INSERT INTO t SELECT /*+ REPARTITION(3) */ id FROM range(100000)"),
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    );
    assert_eq!(class(&mut s, "INSERT INTO t SELECT 1 / (99998 - id) FROM range(99999)"), "DIVIDE_BY_ZERO");
    assert_eq!(data_files(&dir.path().join("t")), Vec::<String>::new());
}

#[test]
fn hints_say_how_many_files_get_rows() {
    let (dir, mut s) = warehouse();
    run(&mut s, "CREATE TABLE t (id BIGINT)");
    run(&mut s, "INSERT INTO t SELECT /*+ REPARTITION(7) */ id FROM range(1000)");
    assert_eq!(data_files(&dir.path().join("t")).len(), 7);
    run(&mut s, "INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(1000, 9000)");
    assert_eq!(data_files(&dir.path().join("t")).len(), 8);
    run(&mut s, "SET spark.sql.files.maxRecordsPerFile = 100");
    run(&mut s, "INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(9000, 9450)");
    assert_eq!(data_files(&dir.path().join("t")).len(), 13);
    assert_eq!(
        run(&mut s, "SELECT count(DISTINCT id), min(id), max(id) FROM t"),
        [[json!(9450), json!(0), json!(9449)]]
    );
}

#[test]
fn partitions_are_written_replaced_and_taken_out() {
    let (_dir, mut s) = warehouse();
    run(&mut s, "CREATE TABLE t (id INT, day DATE, k STRING, f DOUBLE) PARTITIONED BY (day, k)");
    run(
        &mut s,
        "INSERT INTO t SELECT id, date_add(DATE '2026-01-01', CAST(id % 3 AS INT)), \
         CASE id % 4 WHEN 0 THEN 'a/b=c %' WHEN 1 THEN '' WHEN 2 THEN 'ü' END, 0.5 FROM range(120)",
    );
    let count = |s: &mut Session, filter: &str| run(s, &format!("SELECT count(*) FROM t WHERE {filter}"))[0][0].clone();
    assert_eq!(count(&mut s, "k IS NULL"), 60);
    assert_eq!(count(&mut s, "k = 'a/b=c %' AND day = '2026-01-02'"), 10);
    // Whole partitions, by the log alone.
    assert_eq!(run(&mut s, "DELETE FROM t WHERE k = 'ü'"), [[json!(30)]]);
    let parts = run(&mut s, "DESCRIBE HISTORY t LIMIT 1");
    assert_eq!(parts[0][4], "DELETE");
    // One partition, said whole; then those that get rows.
    run(&mut s, "INSERT OVERWRITE t PARTITION (day = DATE '2026-01-02', k = 'new') SELECT 1000, 1.5");
    assert_eq!(count(&mut s, "true"), 91);
    run(&mut s, "INSERT OVERWRITE t PARTITION (day = DATE '2026-01-02') SELECT 1001, 'new', 2.5");
    assert_eq!(count(&mut s, "day = '2026-01-02'"), 1);
    assert_eq!(count(&mut s, "true"), 61);
    run(&mut s, "SET spark.sql.sources.partitionOverwriteMode = dynamic");
    run(&mut s, "INSERT OVERWRITE t SELECT 7, DATE '2026-01-01', NULL, 1");
    assert_eq!((count(&mut s, "day = '2026-01-01' AND k IS NULL"), count(&mut s, "true")), (json!(1), json!(42)));
    run(&mut s, "SET spark.sql.sources.partitionOverwriteMode = static");
    run(&mut s, "INSERT INTO t REPLACE WHERE day >= '2026-01-02' SELECT 8, DATE '2026-01-05', 'z', 1");
    assert_eq!(count(&mut s, "day > '2026-01-01'"), 1);
    let wrong = "INSERT INTO t REPLACE WHERE day >= '2026-01-02' SELECT 8, DATE '2025-01-05', 'z', 1";
    assert_eq!(class(&mut s, wrong), "DELTA_REPLACE_WHERE_MISMATCH");
    // What the partitions' own conditions cannot say, and quotes.
    run(&mut s, r"INSERT INTO t PARTITION (k = 'it\'s', day = date_add(DATE '2026-03-01', 1)) SELECT 9, 1");
    run(&mut s, r"INSERT OVERWRITE t PARTITION (k = 'it\'s', day = date_add(DATE '2026-03-01', 1)) SELECT 10, 1");
    run(&mut s, "INSERT OVERWRITE t PARTITION (day = CAST(concat('2026-03-0', '2') AS DATE)) SELECT 11, 'kk', 1");
    assert_eq!(run(&mut s, "SELECT id, k FROM t WHERE day = '2026-03-02'"), [[json!(11), json!("kk")]]);
    run(&mut s, r"INSERT OVERWRITE t PARTITION (k = 'it\'s', day = DATE '2026-03-02') SELECT 12, 1");
    assert_eq!(run(&mut s, r"SELECT id FROM t WHERE k = 'it\'s'"), [[json!(12)]]);
    run(&mut s, "INSERT OVERWRITE t SELECT 1, DATE '2030-01-01', 'last', 0");
    assert_eq!(run(&mut s, "SELECT * FROM t"), [[json!(1), json!("2030-01-01"), json!("last"), json!(0.0)]]);
    run(&mut s, "DELETE FROM t");
    assert_eq!(count(&mut s, "true"), 0);
}

#[test]
fn rows_are_deleted_with_vectors_and_without() {
    for vectors in [true, false] {
        let (_dir, mut s) = warehouse();
        run(
            &mut s,
            &format!(
                "CREATE TABLE t (id BIGINT, k INT) TBLPROPERTIES (delta.enableDeletionVectors = {vectors}, delta.enableRowTracking = true)"
            ),
        );
        run(&mut s, "INSERT INTO t SELECT /*+ REPARTITION(3) */ id, id % 7 FROM range(300)");
        let ids = run(&mut s, "SELECT id, _metadata.row_id FROM t WHERE k <> 3 AND id <> 5 ORDER BY id");
        assert_eq!(run(&mut s, "DELETE FROM t AS x WHERE x.k = 3"), [[json!(43)]]);
        assert_eq!(run(&mut s, "DELETE FROM t WHERE ID IN (5, 3)"), [[json!(1)]], "row 3 is gone already");
        assert_eq!(run(&mut s, "DELETE FROM t WHERE id > 1000"), [[json!(0)]]);
        assert_eq!(run(&mut s, "SELECT count(*), sum(id) FROM t"), [[json!(256), json!(38395)]]);
        assert_eq!(run(&mut s, "SELECT id, _metadata.row_id FROM t ORDER BY id"), ids, "rows keep their ids");
        assert_eq!(run(&mut s, "SELECT count(*) FROM t VERSION AS OF 1"), [[json!(300)]]);
        let history = run(&mut s, "DESCRIBE HISTORY t");
        assert_eq!(history.len(), 4, "a DELETE of no row is no version");
        assert_eq!(history[0][12]["numAddedFiles"], if vectors { "0" } else { "1" });
        assert_eq!(history[1][12]["numDeletedRows"], "43");
        assert_eq!(run(&mut s, "DELETE FROM t WHERE k >= 0"), [[json!(256)]]);
        assert_eq!(run(&mut s, "SELECT count(*) FROM t"), [[json!(0)]]);
    }
}

#[test]
fn rows_of_any_row_group_are_the_ones_that_are_deleted() {
    let (dir, mut s) = warehouse();
    run(&mut s, "SET lakesmith.rowGroupRows = 1000");
    run(&mut s, "CREATE TABLE t (id BIGINT, s STRING) TBLPROPERTIES (delta.enableDeletionVectors = true)");
    run(&mut s, "INSERT INTO t SELECT /*+ COALESCE(1) */ id, concat('v', id) FROM range(50000)");
    assert_eq!(data_files(&dir.path().join("t")).len(), 1);
    // Row groups before those of the rows are skipped by their bounds.
    assert_eq!(run(&mut s, "DELETE FROM t WHERE id BETWEEN 30500 AND 30509"), [[json!(10)]]);
    assert_eq!(run(&mut s, "DELETE FROM t WHERE id BETWEEN 100 AND 104 OR id = 49999"), [[json!(6)]]);
    assert_eq!(run(&mut s, "DELETE FROM t WHERE s IN ('v777', 'v31000')"), [[json!(2)]]);
    let gone = "id BETWEEN 30500 AND 30509 OR id BETWEEN 100 AND 104 OR id IN (49999, 777, 31000)";
    assert_eq!(run(&mut s, &format!("SELECT count(*) FROM t WHERE {gone}")), [[json!(0)]]);
    assert_eq!(run(&mut s, "SELECT count(*), sum(id) FROM t"), [[json!(49982), json!(1249587669)]]);
}

#[test]
fn what_cannot_be_deleted_is_refused() {
    let (_dir, mut s) = warehouse();
    run(&mut s, "CREATE TABLE t (id BIGINT, p INT) PARTITIONED BY (p) TBLPROPERTIES (delta.appendOnly = true)");
    run(&mut s, "INSERT INTO t VALUES (1, 1)");
    for sql in
        ["DELETE FROM t", "DELETE FROM t WHERE p = 1", "DELETE FROM t WHERE id = 1", "INSERT OVERWRITE t VALUES (2, 2)"]
    {
        assert_eq!(class(&mut s, sql), "DELTA_CANNOT_MODIFY_APPEND_ONLY", "{sql}");
    }
    run(&mut s, "ALTER TABLE t SET TBLPROPERTIES (delta.appendOnly = false)");
    for (sql, expected) in [
        ("DELETE FROM t WHERE id IN (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY"),
        ("DELETE FROM t WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("DELETE FROM t WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("DELETE FROM t WHERE", "PARSE_SYNTAX_ERROR"),
        ("DELETE t WHERE id = 1", "PARSE_SYNTAX_ERROR"),
        ("DELETE FROM nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DELETE FROM t WHERE 1 / (id - 1) > 0", "DIVIDE_BY_ZERO"),
    ] {
        assert_eq!(class(&mut s, sql), expected, "{sql}");
    }
}

#[test]
fn columns_that_are_computed_or_numbered_get_their_values() {
    let (dir, mut s) = warehouse();
    let table = dir.path().join("g");
    std::fs::create_dir_all(table.join("_delta_log")).unwrap();
    let field = |name: &str, kind: &str, metadata: Value| json!({"name": name, "type": kind, "nullable": true, "metadata": metadata});
    let mut schema = json!({"type": "struct", "fields": [
        field("ts", "timestamp", json!({})),
        field("day", "date", json!({"delta.generationExpression": "CAST(ts AS DATE)"})),
        field("n", "long", json!({"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": true})),
    ]});
    let write = |schema: &Value| {
        let lines = [
            json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}),
            json!({"metaData": {"id": "g", "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_string(),
                "partitionColumns": ["day"], "configuration": {}, "createdTime": 1}}),
        ];
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(table.join("_delta_log/00000000000000000000.json"), text.join("\n")).unwrap();
    };
    write(&schema);
    let t = format!("delta.`{}`", table.display());
    for hour in ["10", "11"] {
        let two = format!("(TIMESTAMP '2026-01-01 {hour}:00:00'), (TIMESTAMP '2026-01-02 {hour}:00:00')");
        run(&mut s, &format!("INSERT INTO {t} (ts) VALUES {two}"));
    }
    run(&mut s, &format!("INSERT INTO {t} (ts, n) VALUES (TIMESTAMP '2026-01-03 10:00:00', 100)"));
    assert_eq!(
        run(&mut s, &format!("SELECT n FROM {t} ORDER BY n")),
        [[json!(1)], [json!(2)], [json!(3)], [json!(4)], [json!(100)]]
    );
    run(&mut s, &format!("INSERT INTO {t} (ts) SELECT TIMESTAMP '2026-01-04 10:00:00' FROM range(20000)"));
    assert_eq!(
        run(&mut s, &format!("SELECT count(DISTINCT n), max(n) FROM {t} WHERE day = '2026-01-04'")),
        [[json!(20000), json!(20004)]]
    );
    schema["fields"][2]["metadata"]["delta.identity.allowExplicitInsert"] = json!(false);
    std::fs::remove_dir_all(table.join("_delta_log")).unwrap();
    std::fs::create_dir_all(table.join("_delta_log")).unwrap();
    write(&schema);
    let explicit = format!("INSERT INTO {t} (ts, n) VALUES (TIMESTAMP '2026-01-01 10:00:00', 7)");
    let error = ask_in(&mut s, &explicit).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", "{error}");
    let mut plain = schema;
    plain["fields"].as_array_mut().unwrap().pop();
    write(&plain);
    run(&mut s, &format!("INSERT INTO {t} (ts) VALUES (TIMESTAMP '2026-01-01 10:00:00')"));
    run(&mut s, &format!("INSERT INTO {t} VALUES (TIMESTAMP '2026-01-02 10:00:00', DATE '2026-01-02')"));
    run(&mut s, &format!("INSERT INTO {t} VALUES (TIMESTAMP '2026-01-03 10:00:00')"));
    let wrong = format!("INSERT INTO {t} VALUES (TIMESTAMP '2026-01-02 10:00:00', DATE '2026-01-03')");
    let error = ask_in(&mut s, &wrong).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "{error}");
    let days = run(&mut s, &format!("SELECT day FROM {t} ORDER BY day"));
    assert_eq!(days, [[json!("2026-01-01")], [json!("2026-01-02")], [json!("2026-01-03")]]);
}

#[test]
fn tables_are_made_from_queries() {
    let (dir, mut s) = warehouse();
    run(
        &mut s,
        "CREATE TABLE t USING DELTA PARTITIONED BY (Kind) TBLPROPERTIES (delta.enableDeletionVectors = true) AS\n\
         SELECT /*+ REPARTITION(3) */ id AS Id, id % 2 AS Kind, named_struct('A', id) AS s, array(id) AS l FROM range(10)",
    );
    assert_eq!(run(&mut s, "SELECT count(*), sum(id), sum(s.a) FROM t"), [[json!(10), json!(45), json!(45)]]);
    let columns = run(&mut s, "SHOW COLUMNS IN t");
    assert_eq!(columns, [[json!("Id")], [json!("Kind")], [json!("s")], [json!("l")]]);
    let history = run(&mut s, "DESCRIBE HISTORY t");
    assert_eq!((history.len(), &history[0][4]), (1, &json!("CREATE TABLE AS SELECT")));
    assert_eq!(history[0][12]["numOutputRows"], "10");
    run(&mut s, "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a");
    for (sql, expected) in [
        ("CREATE TABLE t AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE u (a INT) AS SELECT 1 AS a", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE u AS SELECT 1 AS a, 2 AS A", "COLUMN_ALREADY_EXISTS"),
        ("CREATE TABLE u AS SELECT 1 + 1", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("CREATE TABLE u PARTITIONED BY (nope) AS SELECT 1 AS a", "DELTA_INVALID_PARTITION_COLUMN"),
        ("CREATE TABLE u AS SELECT 1 / (id - 5) AS a FROM range(10)", "DIVIDE_BY_ZERO"),
        ("REPLACE TABLE u AS SELECT 1 AS a", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE u AS SELECT nope FROM range(1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ] {
        assert_eq!(class(&mut s, sql), expected, "{sql}");
    }
    assert_eq!(run(&mut s, "SHOW TABLES").len(), 1, "what failed left no name");
    assert!(!dir.path().join("u").exists() || data_files(&dir.path().join("u")).is_empty());
    run(
        &mut s,
        "CREATE OR REPLACE TABLE t CLUSTER BY (a) AS SELECT a, count(*) AS n FROM (SELECT id % 3 AS a FROM t) GROUP BY a",
    );
    assert_eq!(
        run(&mut s, "SELECT * FROM t ORDER BY a"),
        [[json!(0), json!(4)], [json!(1), json!(3)], [json!(2), json!(3)]]
    );
    assert_eq!(run(&mut s, "SELECT count(*) FROM t VERSION AS OF 0"), [[json!(10)]]);
    let place = dir.path().join("elsewhere");
    run(
        &mut s,
        &format!("CREATE TABLE delta.`{}` AS SELECT DATE '2026-01-01' AS d, 1.5 AS n, 'x' AS s", place.display()),
    );
    assert_eq!(
        run(&mut s, &format!("SELECT * FROM delta.`{}`", place.display())),
        [[json!("2026-01-01"), json!("1.5"), json!("x")]]
    );
    run(&mut s, "CREATE TABLE empty AS SELECT id FROM range(0)");
    assert_eq!(run(&mut s, "SELECT count(*) FROM empty"), [[json!(0)]]);
}

#[test]
fn rows_deleted_by_copies_are_told_to_readers_of_changes() {
    let (dir, mut s) = warehouse();
    run(
        &mut s,
        "CREATE TABLE t (id BIGINT, p INT) PARTITIONED BY (p) TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = false)",
    );
    run(&mut s, "INSERT INTO t SELECT id, id % 2 FROM range(20)");
    run(&mut s, "DELETE FROM t WHERE id IN (3, 4, 6) OR (p = 1 AND id > 0)");
    assert_eq!(run(&mut s, "SELECT count(*) FROM t"), [[json!(8)]]);
    let files = data_files(&dir.path().join("t/_change_data"));
    assert_eq!(files.len(), 2, "{files:?}");
    let folder = dir.path().join("t/_change_data");
    let told = |s: &mut Session, p: u8| {
        let folder = folder.join(format!("p={p}"));
        run(s, &format!("SELECT count(*), sum(id), min(_change_type) FROM parquet.`{}`", folder.display()))
    };
    assert_eq!(told(&mut s, 0), [[json!(2), json!(10), json!("delete")]]);
    assert_eq!(told(&mut s, 1), [[json!(10), json!(100), json!("delete")]]);
    let history = run(&mut s, "DESCRIBE HISTORY t LIMIT 1");
    assert_eq!(history[0][12]["numAddedChangeFiles"], "2");
    assert_eq!(class(&mut s, "INSERT INTO t REPLACE WHERE id = 0 SELECT 0, 0"), "UNSUPPORTED_FEATURE");
}

#[test]
fn a_table_that_is_made_anew_from_its_own_rows_loses_none_that_came_meanwhile() {
    let mut refused = 0;
    for _ in 0..8 {
        let (dir, mut s) = warehouse();
        run(&mut s, "CREATE TABLE t AS SELECT CAST(0 AS BIGINT) AS n");
        let path = format!("delta.`{}`", dir.path().join("t").display());
        let barrier = std::sync::Barrier::new(2);
        let kept = std::thread::scope(|scope| {
            let inserts = scope.spawn(|| {
                barrier.wait();
                let mut s = session();
                (1..6)
                    .filter(|n| ask_in(&mut s, &format!("INSERT INTO {path} VALUES ({n})")).is_ok())
                    .collect::<Vec<_>>()
            });
            let replaces = scope.spawn(|| {
                barrier.wait();
                let mut s = session();
                let sql = format!("CREATE OR REPLACE TABLE {path} AS SELECT n FROM {path}");
                let outcomes = (0..5).map(|_| ask_in(&mut s, &sql));
                outcomes.filter_map(Result::err).inspect(|e| assert_eq!(e.kind(), ErrorKind::Conflict, "{e}")).count()
            });
            refused += replaces.join().unwrap();
            inserts.join().unwrap()
        });
        let expected: Vec<Vec<Value>> = std::iter::once(0).chain(kept).map(|n| vec![json!(n)]).collect();
        assert_eq!(run(&mut s, "SELECT n FROM t ORDER BY n"), expected);
    }
    assert!(refused > 0, "they never met");
}

/// Copies a golden table.
fn copy_of(name: &str) -> (TempDir, String) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &to)
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join(name), &dir.path().join("t"));
    let table = format!("delta.`{}`", dir.path().join("t").display());
    (dir, table)
}

#[test]
fn every_golden_table_takes_its_own_rows_again_and_gives_them_back() {
    let mut tried = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let refused = ["unknown_reader_feature", "unknown_writer_feature", "vacuumed", "empty_table"];
        if name.ends_with(".json") || name == "README.md" || refused.contains(&name.as_str()) {
            continue;
        }
        let (_dir, t) = copy_of(&name);
        let mut s = session();
        let before = run(&mut s, &format!("SELECT count(*) FROM {t}"))[0][0].as_u64().unwrap();
        let sorted = |s: &mut Session, t: &str| {
            let mut rows: Vec<String> =
                run(s, &format!("SELECT * FROM {t}")).iter().map(|row| Value::from(row.clone()).to_string()).collect();
            rows.sort();
            rows
        };
        let rows = sorted(&mut s, &t);
        run(&mut s, &format!("INSERT INTO {t} SELECT * FROM {t}"));
        let mut twice: Vec<String> = rows.iter().chain(&rows).cloned().collect();
        twice.sort();
        assert_eq!(sorted(&mut s, &t), twice, "{name}");
        let deleted = ask_in(&mut s, &format!("DELETE FROM {t} WHERE _metadata.row_index % 2 = 0"));
        match deleted {
            Ok(answer) => {
                let left = run(&mut s, &format!("SELECT count(*) FROM {t}"))[0][0].as_u64().unwrap();
                assert_eq!(left + answer.rows[0][0].as_u64().unwrap(), 2 * before, "{name}");
            }
            Err(error) => assert!(
                ["DELTA_CANNOT_MODIFY_APPEND_ONLY", "UNSUPPORTED_FEATURE"].contains(&error.class_name()),
                "{name}: {error}"
            ),
        }
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
