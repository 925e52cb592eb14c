//! ALTER TABLE, REPLACE TABLE and what is said of a table, on tables with rows.

use std::sync::{Arc, Mutex};

use lakesmith::op::{HistoryOptions, Operation, Report};
use lakesmith::{ErrorKind, Query, QueryEngine, QueryRows, Result, ScanReport, Session, SessionOptions};
use lakesmith_testkit::{BuiltTable, TableBuilder};
use serde_json::{Value, json};

use crate::catalog::{class, session_in, sql};
use crate::conflicts::Interfere;
use crate::tables::{files, ids, optimize, run, session, small_files};

/// The statement with the table for `{t}`.
fn on(table: &BuiltTable, text: &str) -> String {
    text.replace("{t}", &format!("delta.`{}`", table.folder.display()))
}

fn last_commit(table: &BuiltTable) -> (String, Value, bool) {
    let options = HistoryOptions { limit: Some(1), ..HistoryOptions::default() };
    match session().run(&table.folder.to_string_lossy(), Operation::History(options)).unwrap() {
        Report::History(history) => {
            let entry = history.0[0].clone();
            let parameters = serde_json::to_value(entry.operation_parameters).unwrap();
            (entry.operation.unwrap(), parameters, entry.is_blind_append.unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn columns_change_under_rows_that_stay() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let before = ids(&table);
    let mut s = session();
    for (text, operation) in [
        ("ALTER TABLE {t} ADD COLUMNS (note STRING COMMENT 'why' FIRST, s STRUCT<a: INT>)", "ADD COLUMNS"),
        ("ALTER TABLE {t} ADD COLUMN s.b BIGINT FIRST", "ADD COLUMNS"),
        ("ALTER TABLE {t} ALTER COLUMN id COMMENT 'key'", "CHANGE COLUMN"),
        ("ALTER TABLE {t} CHANGE COLUMN id FIRST", "CHANGE COLUMN"),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "SET TBLPROPERTIES"),
        ("ALTER TABLE {t} RENAME COLUMN note TO `the note`", "RENAME COLUMN"),
        ("ALTER TABLE {t} DROP COLUMN s.a", "DROP COLUMNS"),
        ("ALTER TABLE {t} ADD COLUMN later ARRAY<STRUCT<z: DATE>> AFTER id", "ADD COLUMNS"),
        ("COMMENT ON TABLE {t} IS 'for the test'", "SET TBLPROPERTIES"),
    ] {
        sql(&mut s, &on(&table, text)).unwrap();
        let (made, _, blind) = last_commit(&table);
        assert_eq!((made.as_str(), blind), (operation, true), "{text}");
        assert_eq!(ids(&table), before, "{text}");
    }
    run(&s, &table, optimize(&s)).unwrap();
    assert_eq!(ids(&table), before);
    let described = sql(&mut s, &on(&table, "DESCRIBE {t}")).unwrap();
    assert_eq!(json!(described[0]), json!(["id", "bigint", "key"]));
    assert_eq!(json!(described[1]), json!(["later", "array<struct<z:date>>", null]));
    assert_eq!(json!(described[2]), json!(["the note", "string", "why"]));
    assert!(described.contains(&vec!["s".into(), "struct<b:bigint>".into(), Value::Null]), "{described:?}");
    let nothing = sql(&mut s, &on(&table, "ALTER TABLE {t} DROP COLUMN IF EXISTS nope")).unwrap();
    assert!(nothing.is_empty());
    assert_eq!(last_commit(&table).0, "OPTIMIZE");
}

#[test]
fn a_constraint_is_not_promised_for_rows_that_nobody_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let mut s = session();
    let add = on(&table, "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id >= 0)");
    let error = sql(&mut s, &add).unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::Unsupported, "UNSUPPORTED_FEATURE"));
    assert!(error.message().contains("query engine"), "{error}");
    let warehouse = tempfile::tempdir().unwrap();
    let mut s = session_in(warehouse.path());
    sql(&mut s, "CREATE TABLE t (id INT, v STRING); ALTER TABLE t ADD CONSTRAINT Pos CHECK (id>0 AND v  IS NOT NULL)")
        .unwrap();
    let shown = sql(&mut s, "SHOW TBLPROPERTIES t (delta.constraints.pos)").unwrap();
    assert_eq!(shown[0][1], "id > 0 AND v IS NOT NULL");
    assert_eq!(class(&mut s, "ALTER TABLE t ADD CONSTRAINT pos CHECK (id > 1)"), "DELTA_CONSTRAINT_ALREADY_EXISTS");
    sql(&mut s, "ALTER TABLE t DROP CONSTRAINT pos; ALTER TABLE t DROP CONSTRAINT IF EXISTS pos").unwrap();
    assert_eq!(class(&mut s, "ALTER TABLE t DROP CONSTRAINT pos"), "DELTA_CONSTRAINT_DOES_NOT_EXIST");
}

#[test]
fn what_is_stored_of_an_expression_means_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE TABLE t (id BIGINT, v STRING, d DECIMAL(9,2)) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')").unwrap();
    sql(&mut s, r#"ALTER TABLE t ADD CONSTRAINT c CHECK (v <> r'\d' AND v!=R"it's" AND id>-1L AND d < 1.50BD)"#)
        .unwrap();
    let stored = sql(&mut s, "SHOW TBLPROPERTIES t ('delta.constraints.c')").unwrap();
    assert_eq!(stored[0][1], r#"v <> r'\d' AND v != R"it's" AND id > - 1L AND d < 1.50BD"#);
    sql(&mut s, r"ALTER TABLE t ALTER COLUMN v SET DEFAULT r'\d'").unwrap();
    let log = std::fs::read_to_string(dir.path().join("t/_delta_log/00000000000000000002.json")).unwrap();
    let line = log.lines().find(|line| line.starts_with("{\"metaData\"")).unwrap();
    let schema = serde_json::from_str::<Value>(line).unwrap()["metaData"]["schemaString"].as_str().unwrap().to_owned();
    let field = serde_json::from_str::<Value>(&schema).unwrap()["fields"][1]["metadata"]["CURRENT_DEFAULT"].clone();
    assert_eq!(field, r"r'\d'");
}

/// Counts as many rows as it is told, and keeps what it was asked.
struct Counting {
    rows: u64,
    asked: Mutex<Vec<String>>,
}

impl QueryEngine for Counting {
    fn run(&self, _: &Session, query: Query<'_>, each: &mut dyn FnMut(QueryRows) -> Result<()>) -> Result<()> {
        self.asked.lock().unwrap().push(query.text.to_owned());
        each(QueryRows { columns: vec!["count(1)".into()], rows: vec![vec![self.rows.into()]], ..QueryRows::default() })
    }

    fn scans(&self, _: &Session, _: Query<'_>) -> Result<Arc<[ScanReport]>> {
        Ok(Arc::new([]))
    }
}

#[test]
fn with_an_engine_the_rows_decide_about_a_constraint() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let add = on(&table, "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id>=0 AND some_function(id))");
    for (rows, expected) in [(3, Err("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION".to_owned())), (0, Ok(()))] {
        let engine = Arc::new(Counting { rows, asked: Mutex::default() });
        let options = SessionOptions { engine: Some(engine.clone()), ..SessionOptions::default() };
        let done = sql(&mut Session::new(options).unwrap(), &add);
        assert_eq!(done.map(|_| ()).map_err(|e| e.class_name().to_owned()), expected);
        let place = format!("delta.`{}` VERSION AS OF {}", table.root, table.version);
        let asked =
            format!("SELECT count(*) FROM {place} WHERE NOT coalesce((id >= 0 AND some_function ( id )), false)");
        assert_eq!(*engine.asked.lock().unwrap(), [asked]);
    }
    assert_eq!(last_commit(&table).0, "ADD CONSTRAINT");
    // What no writer could check is not asked at all.
    for check in ["id IN (SELECT 1)", "max(id) OVER () > 1", "exists(array(id), x -> x > 0)"] {
        let engine = Arc::new(Counting { rows: 0, asked: Mutex::default() });
        let options = SessionOptions { engine: Some(engine.clone()), ..SessionOptions::default() };
        let add = on(&table, &format!("ALTER TABLE {{t}} ADD CONSTRAINT other CHECK ({check})"));
        let error = sql(&mut Session::new(options).unwrap(), &add).unwrap_err();
        assert_eq!(error.class_name(), "UNSUPPORTED_FEATURE", "{error}");
        assert!(error.message().contains("more than Lakesmith reads"), "{error}");
        assert!(engine.asked.lock().unwrap().is_empty());
    }
}

#[test]
fn a_statement_rides_over_what_it_does_not_rest_on_alone() {
    const APPEND: &str = r#"{"add":{"path":"x.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":1}"}}"#;
    let (append, files) = (Some("DELTA_CONCURRENT_APPEND"), Some("DELTA_METADATA_CHANGED"));
    let domain = |name: &str, configuration: Value| {
        let configuration = configuration.to_string();
        json!({"domainMetadata": {"domain": name, "configuration": configuration, "removed": false}}).to_string()
    };
    let winners = [
        APPEND.to_owned(),
        json!({"remove": {"path": "a.parquet", "deletionTimestamp": 1, "dataChange": true}}).to_string(),
        domain("somebody's", json!({})),
        domain("delta.clustering", json!({"clusteringColumns": [["id"]], "domainName": "delta.clustering"})),
    ];
    for (text, meets) in [
        ("ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id > 0)", [append, None, None, files]),
        ("CREATE OR REPLACE TABLE {t} (other INT) USING delta", [append, append, None, files]),
        ("ALTER TABLE {t} ADD COLUMN n INT", [None, None, None, files]),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", [None, None, None, files]),
        ("ALTER TABLE {t} CLUSTER BY (id)", [None, None, None, Some("DELTA_CONCURRENT_TRANSACTION")]),
    ] {
        for (winner, expected) in winners.iter().zip(meets) {
            let dir = tempfile::tempdir().unwrap();
            let name = format!("delta.`{}`", dir.path().join("t").display());
            let mut s = session();
            sql(&mut s, &format!("CREATE TABLE {name} (id INT, k INT) USING delta CLUSTER BY (k)")).unwrap();
            let commit = dir.path().join("t/_delta_log/00000000000000000001.json");
            let bytes = format!("{{\"commitInfo\":{{\"timestamp\":1,\"txnId\":\"other\"}}}}\n{winner}\n");
            let world = Interfere::doing(move || std::fs::write(commit, bytes).unwrap());
            let mut s = Session::new(SessionOptions { world: Arc::new(world), ..SessionOptions::default() }).unwrap();
            let done = sql(&mut s, &text.replace("{t}", &name)).map_err(|e| (e.kind(), e.class_name().to_owned()));
            let is_there = dir.path().join("t/_delta_log/00000000000000000002.json").exists();
            assert_eq!(is_there, expected.is_none(), "{text} after {winner}: {done:?}");
            if let Some(class) = expected {
                assert_eq!(done.unwrap_err(), (ErrorKind::Conflict, class.to_owned()), "{text} after {winner}");
            }
        }
    }
}

#[test]
fn a_replaced_table_keeps_what_is_its_logs() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    let clock = "delta.enableInCommitTimestamps";
    sql(&mut s, &format!("CREATE TABLE t (a INT) TBLPROPERTIES ('{clock}' = 'true', 'x' = 'y')")).unwrap();
    for wrong in [clock, "DELTA.enableincommittimestamps"] {
        let text = format!("CREATE OR REPLACE TABLE t (b INT) TBLPROPERTIES ('{wrong}' = 'false')");
        let error = sql(&mut s, &text).unwrap_err();
        assert_eq!((error.kind(), error.context_value("property")), (ErrorKind::Unsupported, Some(clock)), "{error}");
    }
    // As DROP FEATURE leaves it.
    let commit = dir.path().join("t/_delta_log/00000000000000000000.json");
    let first = std::fs::read_to_string(&commit).unwrap();
    let of = |kind: &str| {
        let line = first.lines().find(|line| line.starts_with(&format!("{{\"{kind}\""))).unwrap();
        serde_json::from_str::<Value>(line).unwrap()
    };
    let (mut metadata, mut protocol) = (of("metaData"), of("protocol"));
    let protected = "delta.requireCheckpointProtectionBeforeVersion";
    metadata["metaData"]["configuration"][protected] = "1".into();
    protocol["protocol"]["writerFeatures"].as_array_mut().unwrap().push("checkpointProtection".into());
    let info = json!({"commitInfo": {"inCommitTimestamp": 4_000_000_000_000_i64, "timestamp": 4_000_000_000_000_i64}});
    let second = commit.with_file_name("00000000000000000001.json");
    std::fs::write(second, format!("{info}\n{metadata}\n{protocol}\n")).unwrap();
    let property =
        |s: &mut Session, key: &str| sql(s, &format!("SHOW TBLPROPERTIES t ('{key}')")).unwrap()[0][1].clone();
    for text in ["CREATE OR REPLACE TABLE t (b INT)", "RESTORE TABLE t TO VERSION AS OF 0"] {
        sql(&mut s, text).unwrap();
        assert_eq!((property(&mut s, protected), property(&mut s, clock)), ("1".into(), "true".into()), "{text}");
        let kept_x = property(&mut s, "x") == "y";
        assert_eq!(kept_x, text.starts_with("RESTORE"), "{text}");
    }
}

#[test]
fn a_clustered_table_is_not_replaced_by_a_partitioned_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    let refused = "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE";
    sql(&mut s, "CREATE TABLE t (a INT, b INT) CLUSTER BY (a)").unwrap();
    assert_eq!(class(&mut s, "REPLACE TABLE t (a INT, b INT) PARTITIONED BY (b)"), refused);
    // Without keys it is a clustered table still.
    sql(&mut s, "ALTER TABLE t CLUSTER BY NONE").unwrap();
    assert_eq!(class(&mut s, "CREATE OR REPLACE TABLE t (a INT, b INT) PARTITIONED BY (b)"), refused);
    sql(&mut s, "CREATE TABLE p (a INT, b INT) PARTITIONED BY (b); REPLACE TABLE p (a INT, b INT) CLUSTER BY (b)")
        .unwrap();
    assert_eq!(sql(&mut s, "DESCRIBE DETAIL p").unwrap()[0][8], json!(["b"]));
}

#[test]
fn a_replaced_table_has_no_rows_and_its_past() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("t"));
    let before = files(&table).len();
    assert!(before > 0);
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE OR REPLACE TABLE t (z INT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'new'").unwrap();
    assert!(files(&table).is_empty());
    let (operation, parameters, blind) = last_commit(&table);
    assert_eq!((operation.as_str(), blind), ("CREATE OR REPLACE TABLE", false));
    assert_eq!(
        parameters,
        json!({"partitionBy": "[\"p\"]", "clusterBy": "[]", "description": "new", "isManaged": "true", "properties": "{}"})
    );
    let at = Operation::Files(lakesmith::op::TimeTravel::Version(table.version));
    match s.run("t", at).unwrap() {
        Report::Files(files) => assert_eq!(files.len(), before),
        other => panic!("{other:?}"),
    }
    sql(&mut s, "REPLACE TABLE t (a INT, b INT) USING delta CLUSTER BY (b); CREATE OR REPLACE TABLE t (a INT)")
        .unwrap();
    let detail = sql(&mut s, "DESCRIBE DETAIL t").unwrap();
    assert_eq!(detail[0][8], json!([]));
    assert_eq!(last_commit(&table).0, "CREATE OR REPLACE TABLE");
    sql(&mut s, "CREATE OR REPLACE TABLE fresh (a INT)").unwrap();
    assert_eq!(sql(&mut s, "DESCRIBE HISTORY fresh").unwrap()[0][4], "CREATE OR REPLACE TABLE");
}

#[test]
fn a_table_that_takes_appends_only_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    TableBuilder::new(&folder).property("delta.appendOnly", "true").append(10, 1).build().unwrap();
    let mut s = session_in(dir.path());
    assert_eq!(class(&mut s, "CREATE OR REPLACE TABLE t (a INT)"), "DELTA_CANNOT_MODIFY_APPEND_ONLY");
}

#[test]
fn columns_begin_with_their_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    let columns = "(a INT DEFAULT 1 + 4 COMMENT 'five', b STRING NOT NULL DEFAULT 'it''s, so', c DATE)";
    let without = format!("CREATE TABLE t {columns}");
    assert_eq!(class(&mut s, &without), "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED");
    let with = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')";
    sql(&mut s, &format!("{without} {with}")).unwrap();
    let shown = sql(&mut s, "SHOW CREATE TABLE t").unwrap()[0][0].as_str().unwrap().to_owned();
    assert!(
        shown.contains("a INT DEFAULT 1 + 4 COMMENT 'five',\n  b STRING NOT NULL DEFAULT 'it''s, so',\n"),
        "{shown}"
    );
    sql(&mut s, &format!("DROP TABLE t; {shown}")).unwrap();
    assert_eq!(sql(&mut s, "SHOW CREATE TABLE t").unwrap()[0][0], shown);
    let wrong = format!("CREATE TABLE w (a INT DEFAULT 'x') {with}");
    assert_eq!(class(&mut s, &wrong), "INVALID_DEFAULT_VALUE.DATA_TYPE");
    assert!(!dir.path().join("w").exists());
}

#[test]
fn what_is_shown_makes_the_table_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(
        &mut s,
        "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'the ''key''', `x y` VARCHAR(5), d DATE, s STRUCT<a: INT, `b c`: ARRAY<DATE>>) \
         USING delta PARTITIONED BY (d) COMMENT 'tab ''le' TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'foo' = 'b\\'ar'); \
         ALTER TABLE t ADD CONSTRAINT pos CHECK (id > 0)",
    )
    .unwrap();
    let shown = sql(&mut s, "SHOW CREATE TABLE t").unwrap()[0][0].as_str().unwrap().to_owned();
    let expected = "CREATE TABLE spark_catalog.default.t (\n  id BIGINT NOT NULL COMMENT 'the \\'key\\'',\n  `x y` VARCHAR(5),\n  d \
                    DATE,\n  s STRUCT<a: INT, `b c`: ARRAY<DATE>>)\nUSING delta\nPARTITIONED BY (d)\nCOMMENT 'tab \
                    \\'le'\nTBLPROPERTIES (\n  'delta.columnMapping.mode' = 'name',\n  'foo' = 'b\\'ar');\nALTER TABLE \
                    spark_catalog.default.t ADD CONSTRAINT pos CHECK (id > 0)\n";
    assert_eq!(shown, expected);
    let before = sql(&mut s, "DESCRIBE EXTENDED t").unwrap();
    sql(&mut s, &format!("DROP TABLE t; {shown}")).unwrap();
    assert_eq!(sql(&mut s, "DESCRIBE EXTENDED t").unwrap(), before);
    assert_eq!(sql(&mut s, "SHOW CREATE TABLE t").unwrap()[0][0], expected);
}

#[test]
fn a_description_is_sparks() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(
        &mut s,
        "CREATE TABLE t1 (id BIGINT NOT NULL COMMENT 'the key', name STRING, d DATE) USING delta PARTITIONED BY (d) COMMENT 'a' \
         TBLPROPERTIES ('foo' = 'bar'); CREATE DATABASE db1; CREATE TABLE db1.C (a INT) USING delta CLUSTER BY (a)",
    )
    .unwrap();
    let at = |name: &str| format!("file:{}/{name}", dir.path().display());
    assert_eq!(
        json!(sql(&mut s, "DESC FORMATTED t1").unwrap()),
        json!([
            ["id", "bigint", "the key"],
            ["name", "string", null],
            ["d", "date", null],
            ["# Partition Information", "", ""],
            ["# col_name", "data_type", "comment"],
            ["d", "date", null],
            ["", "", ""],
            ["# Detailed Table Information", "", ""],
            ["Name", "spark_catalog.default.t1", ""],
            ["Type", "MANAGED", ""],
            ["Comment", "a", ""],
            ["Location", at("t1"), ""],
            ["Provider", "delta", ""],
            ["Is_managed_location", "true", ""],
            ["Table Properties", "[delta.minReaderVersion=1,delta.minWriterVersion=2,foo=bar]", ""]
        ])
    );
    let clustered = sql(&mut s, "DESCRIBE TABLE EXTENDED db1.c").unwrap();
    let properties = "[clusteringColumns=[[\"a\"]],delta.feature.appendOnly=supported,delta.feature.clustering=supported,\
                      delta.feature.domainMetadata=supported,delta.feature.invariants=supported,delta.minReaderVersion=1,\
                      delta.minWriterVersion=7]";
    assert_eq!(clustered.last().unwrap()[1], properties);
    assert_eq!(
        json!(sql(&mut s, "DESCRIBE t1 ID").unwrap()),
        json!([["col_name", "id"], ["data_type", "bigint"], ["comment", "the key"]])
    );
    assert_eq!(class(&mut s, "DESCRIBE t1 nope"), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
}
