//! Names of tables: databases, tables in a warehouse and elsewhere, races for a name, crashes, object stores.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use lakesmith::op::{Operation, Report, TimeTravel};
use lakesmith::{
    Catalog, CatalogTable, Database, ErrorKind, Location, Result, Session, SessionOptions, Store, TableRef,
};
use lakesmith_testkit::{Fault, FaultKind, FaultStore};
use serde_json::{Value, json};

use crate::fault_sweep::{KINDS, step};
use crate::tables::{files, small_files};

fn options(warehouse: &str) -> SessionOptions {
    let settings = [("lakesmith.warehouse".to_owned(), warehouse.to_owned())];
    SessionOptions { settings: settings.into(), ..SessionOptions::default() }
}

pub(crate) fn session_in(warehouse: &Path) -> Session {
    Session::new(options(&warehouse.to_string_lossy())).unwrap()
}

/// Rows of the last statement.
pub(crate) fn sql(session: &mut Session, text: &str) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    session.sql(text, &mut |result| {
        rows = result.rows;
        Ok(())
    })?;
    Ok(rows)
}

pub(crate) fn class(session: &mut Session, text: &str) -> String {
    sql(session, text).map(|rows| panic!("{text}: {rows:?}")).unwrap_err().class_name().to_owned()
}

fn column(rows: &[Vec<Value>], index: usize) -> Vec<String> {
    rows.iter().map(|row| row[index].as_str().unwrap().to_owned()).collect()
}

fn named(parts: &[&str]) -> TableRef {
    TableRef::Name(parts.iter().map(|p| (*p).to_owned()).collect())
}

#[test]
fn databases_and_tables_come_and_go_as_in_spark() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    let databases = |s: &mut Session| column(&sql(s, "SHOW DATABASES").unwrap(), 0);
    assert_eq!(databases(&mut s), ["default"]);
    sql(&mut s, "CREATE DATABASE Sales COMMENT 'all of it'; CREATE SCHEMA IF NOT EXISTS SALES; CREATE NAMESPACE other")
        .unwrap();
    assert_eq!(databases(&mut s), ["default", "other", "sales"]);
    assert_eq!(column(&sql(&mut s, "SHOW SCHEMAS LIKE 's*|d*'").unwrap(), 0), ["default", "sales"]);
    let described = sql(&mut s, "DESCRIBE DATABASE sales").unwrap();
    let location = format!("file:{}/sales.db", dir.path().display());
    assert_eq!(
        json!(described),
        json!([
            ["Catalog Name", "spark_catalog"],
            ["Namespace Name", "sales"],
            ["Comment", "all of it"],
            ["Location", location]
        ])
    );
    sql(&mut s, "CREATE TABLE Orders (id BIGINT, day DATE) USING delta PARTITIONED BY (day); USE sales").unwrap();
    sql(&mut s, "CREATE TABLE Items (id BIGINT) USING delta; CREATE TABLE IF NOT EXISTS items (x INT)").unwrap();
    assert_eq!(json!(sql(&mut s, "SHOW TABLES").unwrap()), json!([["sales", "items", false]]));
    assert_eq!(json!(sql(&mut s, "SHOW TABLES IN default LIKE 'o*'").unwrap()), json!([["default", "orders", false]]));
    assert!(dir.path().join("orders/_delta_log").is_dir() && dir.path().join("sales.db/items/_delta_log").is_dir());
    for name in [&["items"][..], &["ITEMS"], &["sales", "items"], &["spark_catalog", "SALES", "Items"]] {
        let found = s.resolve(&named(name)).unwrap();
        assert_eq!(found.local_path().unwrap(), dir.path().join("sales.db/items"), "{name:?}");
    }
    assert_eq!(column(&sql(&mut s, "SHOW COLUMNS IN orders FROM default").unwrap(), 0), ["id", "day"]);
    let detail = sql(&mut s, "DESCRIBE DETAIL items").unwrap();
    assert_eq!(detail[0][2], "spark_catalog.sales.items");
    sql(&mut s, "DROP TABLE items; DROP TABLE IF EXISTS items; DROP DATABASE sales").unwrap();
    assert_eq!(databases(&mut s), ["default", "other"]);
    assert!(!dir.path().join("sales.db").exists());
    assert_eq!(json!(sql(&mut s, "SHOW TABLES").unwrap()), json!([["default", "orders", false]]));
    sql(&mut s, "DROP TABLE default.orders; DROP DATABASE other CASCADE").unwrap();
    assert!(!dir.path().join("orders").exists());
}

#[test]
fn wrong_names_are_told_with_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE DATABASE sales; CREATE TABLE sales.orders (id BIGINT); CREATE TABLE events (id BIGINT)")
        .unwrap();
    for (text, expected) in [
        ("OPTIMIZE event", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DESCRIBE DETAIL sale.orders", "TABLE_OR_VIEW_NOT_FOUND"),
        ("VACUUM sales.events", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DROP TABLE event", "TABLE_OR_VIEW_NOT_FOUND"),
        ("REPLACE TABLE nope (id INT)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("REPLACE TABLE nope (id INT) LOCATION '/nowhere/nope'", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SHOW TABLES IN sale", "SCHEMA_NOT_FOUND"),
        ("USE sale", "SCHEMA_NOT_FOUND"),
        ("CREATE TABLE sale.x (id INT)", "SCHEMA_NOT_FOUND"),
        ("DROP DATABASE sale", "SCHEMA_NOT_FOUND"),
        ("DESCRIBE SCHEMA sale", "SCHEMA_NOT_FOUND"),
        ("CREATE TABLE EVENTS (id INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE DATABASE Sales", "SCHEMA_ALREADY_EXISTS"),
        ("CREATE DATABASE default", "SCHEMA_ALREADY_EXISTS"),
        ("DROP DATABASE default", "UNSUPPORTED_FEATURE.DROP_DATABASE"),
        ("DROP DATABASE sales", "SCHEMA_NOT_EMPTY"),
        ("DROP DATABASE sales RESTRICT", "SCHEMA_NOT_EMPTY"),
        ("CREATE DATABASE a.b", "REQUIRES_SINGLE_PART_NAMESPACE"),
        ("CREATE TABLE a.b.c (id INT)", "REQUIRES_SINGLE_PART_NAMESPACE"),
        ("CREATE TABLE `a b` (id INT)", "INVALID_SCHEMA_OR_RELATION_NAME"),
        ("CREATE TABLE `..` (id INT)", "INVALID_SCHEMA_OR_RELATION_NAME"),
        ("CREATE DATABASE `x/y`", "INVALID_SCHEMA_OR_RELATION_NAME"),
        ("OPTIMIZE `../sales`", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SHOW COLUMNS IN sales.orders FROM default", "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE"),
        ("DROP TABLE delta.`/x`", "UNSUPPORTED_FEATURE"),
    ] {
        assert_eq!(class(&mut s, text), expected, "{text}");
    }
    let error = sql(&mut s, "OPTIMIZE event").unwrap_err();
    assert!(error.message().contains("did you mean `default`.`events`?"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let error = sql(&mut s, "USE sale").unwrap_err();
    assert!(error.message().contains("did you mean `sales`?"), "{error}");
}

#[test]
fn a_table_elsewhere_loses_its_name_alone() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = elsewhere.path().join("ev ents");
    let mut s = session_in(dir.path());
    let create = format!("CREATE TABLE ext (id INT, name STRING) USING delta LOCATION '{}'", place.display());
    sql(&mut s, &create).unwrap();
    assert_eq!(s.resolve(&named(&["EXT"])).unwrap().local_path().unwrap(), place);
    assert_eq!(class(&mut s, &create), "TABLE_OR_VIEW_ALREADY_EXISTS");
    let like = |columns: &str| format!("CREATE TABLE again {columns} USING delta LOCATION '{}'", place.display());
    assert_eq!(class(&mut s, &like("(id STRING, name STRING)")), "DELTA_CREATE_TABLE_SCHEME_MISMATCH");
    assert_eq!(
        class(&mut s, &format!("{} TBLPROPERTIES ('a' = 'b')", like("(id INT, name STRING)"))),
        "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
    );
    assert_eq!(json!(sql(&mut s, "SHOW TABLES").unwrap()), json!([["default", "ext", false]]));
    sql(&mut s, &like("")).unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW COLUMNS IN again").unwrap(), 0), ["id", "name"]);
    let nothing = format!("CREATE TABLE no USING delta LOCATION '{}'", elsewhere.path().join("nothing").display());
    assert_eq!(class(&mut s, &nothing), "DELTA_MISSING_DELTA_TABLE");
    let described = sql(&mut s, "DESCRIBE EXTENDED ext").unwrap();
    assert!(described.contains(&vec!["Type".into(), "EXTERNAL".into(), "".into()]), "{described:?}");
    sql(&mut s, "DROP TABLE ext; DROP TABLE again").unwrap();
    assert!(sql(&mut s, "SHOW TABLES").unwrap().is_empty());
    assert!(place.join("_delta_log/00000000000000000000.json").exists());
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn a_drop_takes_the_table_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("Events"));
    small_files(&dir.path().join("events2"));
    let mut s = session_in(dir.path());
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["events", "events2"]);
    small_files(&table.folder.join("inner"));
    let error = sql(&mut s, "DROP TABLE events").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retention, "{error}");
    assert!(table.folder.join(&table.files[0].path).exists());
    std::fs::remove_dir_all(table.folder.join("inner")).unwrap();
    sql(&mut s, "DROP TABLE events").unwrap();
    assert!(!table.folder.exists());
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["events2"]);
    // What is no table is not dropped with its database.
    std::fs::create_dir_all(dir.path().join("plain")).unwrap();
    std::fs::write(dir.path().join("plain/notes.txt"), "x").unwrap();
    small_files(&dir.path().join("plain/orders"));
    assert_eq!(column(&sql(&mut s, "SHOW TABLES IN plain").unwrap(), 1), ["orders"]);
    assert_eq!(class(&mut s, "DROP DATABASE plain"), "SCHEMA_NOT_EMPTY");
    assert_eq!(class(&mut s, "DROP DATABASE plain CASCADE"), "SCHEMA_NOT_EMPTY");
    assert!(dir.path().join("plain/notes.txt").exists());
    assert_eq!(column(&sql(&mut s, "SHOW TABLES IN plain").unwrap(), 1), ["orders"]);
    std::fs::remove_file(dir.path().join("plain/notes.txt")).unwrap();
    sql(&mut s, "DROP DATABASE plain CASCADE").unwrap();
    assert!(!dir.path().join("plain").exists());
}

#[test]
fn no_table_of_a_place_of_its_own_lies_in_the_warehouse() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE DATABASE g").unwrap();
    for place in ["g.db/x", "g.db/inside", "y", ""] {
        let text = format!("CREATE TABLE g.x (id INT) LOCATION '{}'", dir.path().join(place).display());
        assert_eq!(class(&mut s, &text), "UNSUPPORTED_FEATURE", "{place}");
    }
    let links = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path(), links.path().join("link")).unwrap();
    for place in ["link/y", "link/g.db/x", "link"] {
        let text = format!("CREATE TABLE g.x (id INT) LOCATION '{}'", links.path().join(place).display());
        assert_eq!(class(&mut s, &text), "UNSUPPORTED_FEATURE", "{place}");
        let mut by_link = session_in(&links.path().join("link"));
        let text = format!("CREATE TABLE g.x (id INT) LOCATION '{}'", dir.path().join("y").display());
        assert_eq!(class(&mut by_link, &text), "UNSUPPORTED_FEATURE");
    }
    assert!(sql(&mut s, "SHOW TABLES IN g").unwrap().is_empty());
    // A warehouse that was opened further up later: the name stays, or the next DROP would take the files.
    let (inner, place) = (dir.path().join("inner"), dir.path().join("z"));
    let mut s = session_in(&inner);
    sql(&mut s, &format!("CREATE TABLE z (id INT) LOCATION '{}'", place.display())).unwrap();
    std::fs::create_dir_all(dir.path().join("_lakesmith/tables")).unwrap();
    std::fs::copy(entry(&inner, "z"), entry(dir.path(), "z")).unwrap();
    let mut s = session_in(dir.path());
    for _ in 0..2 {
        assert_eq!(class(&mut s, "DROP TABLE z"), "UNSUPPORTED_FEATURE");
    }
    assert!(place.join("_delta_log").exists());
}

#[test]
fn a_database_is_dropped_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE DATABASE q; CREATE TABLE q.a (id INT); CREATE TABLE q.z (id INT)").unwrap();
    small_files(&dir.path().join("q.db/b"));
    small_files(&dir.path().join("q.db/b/nested"));
    let error = sql(&mut s, "DROP DATABASE q CASCADE").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retention, "{error}");
    assert_eq!(column(&sql(&mut s, "SHOW TABLES IN q").unwrap(), 1), ["a", "b", "z"]);
    std::fs::remove_dir_all(dir.path().join("q.db/b/nested")).unwrap();
    sql(&mut s, "DROP DATABASE q CASCADE").unwrap();
    assert!(!dir.path().join("q.db").exists());
}

#[test]
fn a_command_takes_names_and_an_existing_path_wins() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE DATABASE sales; CREATE TABLE sales.orders (id BIGINT)").unwrap();
    let location = |s: &Session, text: &str| match s.run(text, Operation::Detail(TimeTravel::Latest)) {
        Ok(Report::Detail(detail)) => Ok(detail.location),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.class_name().to_owned()),
    };
    let expected = format!("file:{}/sales.db/orders", dir.path().display());
    assert_eq!(location(&s, "sales.orders"), Ok(expected.clone()));
    assert_eq!(location(&s, "SALES.`orders`"), Ok(expected));
    assert_eq!(location(&s, "sales.order"), Err("TABLE_OR_VIEW_NOT_FOUND".into()));
    // The tests run in the crate's folder, which holds this one.
    assert_eq!(location(&s, "src"), Err("DELTA_MISSING_DELTA_TABLE".into()));
}

#[test]
fn of_two_who_want_a_name_for_different_places_one_gets_it() {
    for round in 0..6 {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let barrier = Barrier::new(3);
        let texts: Vec<String> = (0..3)
            .map(|i| {
                let location = format!(" LOCATION '{}/t{i}'", elsewhere.path().display());
                format!("CREATE TABLE t (id INT, v{i} INT) USING delta{}", if i == round % 3 { "" } else { &location })
            })
            .collect();
        let won: Vec<bool> = std::thread::scope(|scope| {
            let runs: Vec<_> = texts
                .iter()
                .map(|text| {
                    scope.spawn(|| {
                        let mut s = session_in(dir.path());
                        barrier.wait();
                        match sql(&mut s, text) {
                            Ok(_) => true,
                            Err(error) => {
                                assert_eq!(error.class_name(), "TABLE_OR_VIEW_ALREADY_EXISTS", "{error}");
                                false
                            }
                        }
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        let winner = won.iter().position(|won| *won).unwrap();
        let mut s = session_in(dir.path());
        let columns = column(&sql(&mut s, "SHOW COLUMNS IN t").unwrap(), 0);
        assert_eq!(columns, ["id".to_owned(), format!("v{winner}")]);
    }
}

#[test]
fn of_two_who_want_the_same_table_one_makes_it() {
    for _ in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::new(2);
        let make = |text: &'static str| {
            let mut s = session_in(dir.path());
            barrier.wait();
            sql(&mut s, text).map(|_| ()).map_err(|e| e.class_name().to_owned())
        };
        let done = std::thread::scope(|scope| {
            let a = scope.spawn(|| make("CREATE TABLE t (a INT)"));
            let b = scope.spawn(|| make("CREATE TABLE t (b INT)"));
            [a.join().unwrap(), b.join().unwrap()]
        });
        let lost: Vec<_> = done.into_iter().filter_map(Result::err).collect();
        assert_eq!(lost, ["TABLE_OR_VIEW_ALREADY_EXISTS"]);
    }
}

/// Where the entry of a table of the database `default` is.
fn entry(warehouse: &Path, name: &str) -> PathBuf {
    warehouse.join(format!("_lakesmith/tables/{name}.json"))
}

#[test]
fn a_name_without_a_table_can_be_given_again() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = elsewhere.path().join("t");
    let mut s = session_in(dir.path());
    let external = format!("CREATE TABLE x (id INT) LOCATION '{}'", place.display());
    sql(&mut s, &format!("{external}; CREATE TABLE m (id INT)")).unwrap();
    // As after a crash between the name and the log.
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::remove_dir_all(dir.path().join("m")).unwrap();
    assert!(entry(dir.path(), "x").exists() && entry(dir.path(), "m").exists());
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["x"]);
    assert_eq!(class(&mut s, "DESCRIBE DETAIL m"), "TABLE_OR_VIEW_NOT_FOUND");
    assert_eq!(class(&mut s, "DESCRIBE DETAIL x"), "DELTA_MISSING_DELTA_TABLE");
    assert_eq!(class(&mut s, "CREATE TABLE x (id INT) LOCATION '/elsewhere'"), "TABLE_OR_VIEW_ALREADY_EXISTS");
    sql(&mut s, &format!("CREATE TABLE m (id INT); {external}")).unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["m", "x"]);
    std::fs::remove_dir_all(&place).unwrap();
    sql(&mut s, "DROP TABLE x").unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["m"]);
    // A name alone can be dropped as well, once.
    for text in ["DROP TABLE m", "DROP TABLE IF EXISTS M"] {
        sql(&mut s, "CREATE TABLE IF NOT EXISTS m (id INT)").unwrap();
        std::fs::remove_dir_all(dir.path().join("m")).unwrap();
        sql(&mut s, text).unwrap();
        assert!(!entry(dir.path(), "m").exists(), "{text}");
        assert_eq!(class(&mut s, "DROP TABLE m"), "TABLE_OR_VIEW_NOT_FOUND");
    }
}

#[test]
fn what_is_refused_gets_no_name() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let there = small_files(&elsewhere.path().join("there"));
    std::fs::create_dir(elsewhere.path().join("full")).unwrap();
    std::fs::write(elsewhere.path().join("full/x"), "x").unwrap();
    let mut s = session_in(dir.path());
    let at = |place: &str| format!("LOCATION '{}'", elsewhere.path().join(place).display());
    for (text, expected) in [
        (format!("REPLACE TABLE t (id INT) {}", at("new")), "TABLE_OR_VIEW_NOT_FOUND"),
        (format!("REPLACE TABLE t (id INT) {}", at("there")), "TABLE_OR_VIEW_NOT_FOUND"),
        (format!("CREATE OR REPLACE TABLE t (id INT, ID INT) {}", at("there")), "COLUMN_ALREADY_EXISTS"),
        (format!("CREATE OR REPLACE TABLE t (id INT, ID INT) {}", at("new")), "COLUMN_ALREADY_EXISTS"),
        (format!("CREATE TABLE t (other INT) {}", at("there")), "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (format!("CREATE TABLE t (id INT) {}", at("full")), "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"),
        ("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.x' = '1')".into(), "DELTA_UNKNOWN_CONFIGURATION"),
    ] {
        assert_eq!(class(&mut s, &text), expected, "{text}");
        assert!(!entry(dir.path(), "t").exists(), "{text}");
    }
    assert_eq!(files(&there).len(), there.files.len());
    sql(&mut s, &format!("CREATE OR REPLACE TABLE t (id INT) {}", at("there"))).unwrap();
    assert!(entry(dir.path(), "t").exists() && files(&there).is_empty());
}

#[test]
fn only_what_is_understood_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    for (readers, feature, expected) in [
        (&["catalogManaged"][..], "catalogManaged", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        (&[], "fromTheFuture", "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
    ] {
        let table = small_files(&dir.path().join("t"));
        let commit = table.folder.join("_delta_log/00000000000000000000.json");
        let text = std::fs::read_to_string(&commit).unwrap();
        let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers,
            "writerFeatures": [feature]}});
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = lines.iter().position(|line| line.starts_with("{\"protocol\"")).unwrap();
        lines[at] = protocol.to_string();
        std::fs::write(&commit, lines.join("\n")).unwrap();
        assert_eq!(class(&mut s, "DROP TABLE t"), expected);
        assert!(table.files.iter().all(|file| table.folder.join(&file.path).exists()));
        std::fs::remove_dir_all(&table.folder).unwrap();
    }
    // A log that can't be read is no reason to keep the table.
    let table = small_files(&dir.path().join("t"));
    std::fs::write(table.folder.join("_delta_log/00000000000000000000.json"), "no JSON").unwrap();
    sql(&mut s, "DROP TABLE t").unwrap();
    assert!(!table.folder.exists());
}

#[test]
fn of_two_who_make_a_database_one_makes_it() {
    for kind in [FaultKind::AlreadyExistsAfterLanding, FaultKind::FailAfterLanding] {
        let mut met = 0;
        for at_request in 0..8 {
            let dir = tempfile::tempdir().unwrap();
            let root = Location::from_local_path(dir.path()).unwrap();
            let (_, store) = FaultStore::open(&root, vec![Fault { at_request, kind }]).unwrap();
            // The fault may meet another request, which then fails; the database is never said to be another's.
            let done = sql(&mut session_on(dir.path(), store), "CREATE DATABASE d");
            let is_there = dir.path().join("d.db/_lakesmith/database.json").exists();
            assert_eq!(done.is_ok(), is_there, "{kind:?} {at_request}: {done:?}");
            met += usize::from(is_there);
        }
        assert!(met > 4, "{kind:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(3);
    let make = || {
        let mut s = session_in(dir.path());
        barrier.wait();
        sql(&mut s, "CREATE DATABASE d COMMENT 'same'").map(|_| ()).map_err(|e| e.class_name().to_owned())
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(make)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let lost: Vec<_> = done.into_iter().filter_map(Result::err).collect();
    assert_eq!(lost, ["SCHEMA_ALREADY_EXISTS", "SCHEMA_ALREADY_EXISTS"]);
}

#[test]
fn an_entry_of_a_later_format_is_left_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = session_in(dir.path());
    sql(&mut s, "CREATE TABLE m (id INT)").unwrap();
    let later = r#"{"lakesmithTable":9,"name":"m","somewhere":"else"}"#;
    std::fs::write(entry(dir.path(), "m"), later).unwrap();
    for text in ["DESCRIBE DETAIL m", "DROP TABLE m", "CREATE TABLE m (id INT)", "OPTIMIZE m"] {
        let error = sql(&mut s, text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
        assert!(error.context_value("path").unwrap().ends_with("_lakesmith/tables/m.json"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(entry(dir.path(), "m")).unwrap(), later);
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["m"]);
}

#[test]
fn an_object_store_is_a_warehouse_as_well() {
    let mut s = Session::new(options("memory://catalog-lake/wh")).unwrap();
    sql(&mut s, "CREATE DATABASE sales; CREATE TABLE sales.orders (id INT); CREATE TABLE events (id INT)").unwrap();
    sql(&mut s, "CREATE TABLE sales.ext (id INT) LOCATION 'memory://catalog-elsewhere/x'").unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW DATABASES").unwrap(), 0), ["default", "sales"]);
    assert_eq!(column(&sql(&mut s, "SHOW TABLES IN sales").unwrap(), 1), ["ext", "orders"]);
    assert_eq!(s.resolve(&named(&["sales", "ext"])).unwrap().to_string(), "memory://catalog-elsewhere/x");
    sql(&mut s, "ALTER TABLE sales.ext ADD COLUMN n STRING; DROP TABLE sales.orders; DROP DATABASE sales CASCADE")
        .unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW DATABASES").unwrap(), 0), ["default"]);
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 1), ["events"]);
    assert_eq!(column(&sql(&mut s, "SHOW COLUMNS IN delta.`memory://catalog-elsewhere/x`").unwrap(), 0), ["id", "n"]);
}

/// A catalog of one table that is always there.
struct One {
    place: Location,
}

impl Catalog for One {
    fn databases(&self) -> Result<Vec<String>> {
        Ok(vec!["default".into()])
    }

    fn database(&self, name: &str) -> Result<Option<Database>> {
        let database = Database { name: name.to_lowercase(), comment: None, location: self.place.clone() };
        Ok(["default", "twin"].contains(&database.name.as_str()).then_some(database))
    }

    fn create_database(&self, _: &str, _: Option<&str>) -> Result<bool> {
        Ok(false)
    }

    fn stray(&self, _: &Database) -> Result<Option<String>> {
        Ok(None)
    }

    fn drop_database(&self, _: &Database) -> Result<()> {
        Ok(())
    }

    fn tables(&self, _: &Database) -> Result<Vec<String>> {
        Ok(vec!["one".into()])
    }

    fn table(&self, _: &Database, name: &str) -> Result<Option<CatalogTable>> {
        let table = CatalogTable::new("one".into(), self.place.clone(), false);
        Ok(name.eq_ignore_ascii_case("one").then_some(table))
    }

    fn place(&self, _: &Database, name: &str, _: Option<Location>) -> Result<CatalogTable> {
        Ok(CatalogTable::new(name.to_lowercase(), self.place.join(name), false))
    }

    fn claim(&self, _: &Database, _: &CatalogTable) -> Result<()> {
        Ok(())
    }

    fn check_droppable(&self, _: &Database, _: &CatalogTable) -> Result<()> {
        Ok(())
    }

    fn drop_table(&self, _: &Database, _: &CatalogTable) -> Result<()> {
        Ok(())
    }
}

#[test]
fn other_catalogs_stand_beside_the_warehouse() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(&dir.path().join("elsewhere"));
    let catalogs = [("lake".to_owned(), Arc::new(One { place: table.root.clone() }) as Arc<dyn Catalog>)];
    let options = options(&dir.path().join("warehouse").to_string_lossy());
    let mut s = Session::new(SessionOptions { catalogs: catalogs.into(), ..options }).unwrap();
    assert_eq!(s.resolve(&named(&["LAKE", "default", "One"])).unwrap(), table.root);
    assert_eq!(class(&mut s, "DESCRIBE DETAIL one"), "TABLE_OR_VIEW_NOT_FOUND");
    sql(&mut s, "USE lake").unwrap();
    assert_eq!(sql(&mut s, "DESCRIBE DETAIL one").unwrap()[0][2], "lake.default.one");
    assert_eq!(json!(sql(&mut s, "SHOW TABLES").unwrap()), json!([["default", "one", false]]));
    sql(&mut s, "USE spark_catalog.default").unwrap();
    assert!(sql(&mut s, "SHOW TABLES").unwrap().is_empty());
    // A database of one catalog goes; the one of that name in another is still the current one.
    sql(&mut s, "CREATE DATABASE twin; USE lake.twin; DROP DATABASE spark_catalog.twin").unwrap();
    assert_eq!(column(&sql(&mut s, "SHOW TABLES").unwrap(), 0), ["twin"]);
    sql(&mut s, "DROP DATABASE TWIN CASCADE").unwrap();
    assert_eq!(json!(sql(&mut s, "SHOW TABLES").unwrap()), json!([["default", "one", false]]));
}

#[test]
fn the_setting_bounds_every_commit() {
    for text in [
        "CREATE TABLE u (id INT)",
        "CREATE OR REPLACE TABLE t (id INT)",
        "ALTER TABLE t SET TBLPROPERTIES ('c' = 'd')",
        "ALTER TABLE t ADD COLUMN n INT",
        "RESTORE TABLE t TO VERSION AS OF 0",
    ] {
        let run = |faults: Vec<Fault>, timeout: &str| {
            let dir = tempfile::tempdir().unwrap();
            small_files(&dir.path().join("t"));
            sql(&mut session_in(dir.path()), "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')").unwrap();
            let root = Location::from_local_path(dir.path()).unwrap();
            let (faulty, store) = FaultStore::open(&root, faults).unwrap();
            let mut s = session_on(dir.path(), store);
            let done = sql(&mut s, &format!("SET lakesmith.commitTimeout = {timeout}; {text}"));
            (faulty.log(), done.map(|_| ()).map_err(|e| e.kind()))
        };
        let (requests, done) = run(vec![], "1ms");
        assert_eq!(done, Ok(()), "{text}");
        let is_put = |request: &String| request.starts_with("put_if_absent") && request.contains("/_delta_log/0");
        let at_request = requests.iter().position(is_put).unwrap() as u64;
        // The put is tried again, unless the time for that is over.
        let fault = Fault { at_request, kind: FaultKind::FailBefore };
        assert_eq!(run(vec![fault], "10min").1, Ok(()), "{text}");
        assert_eq!(run(vec![fault], "1ms").1, Err(ErrorKind::Unavailable), "{text}");
    }
}

/// A warehouse session whose requests go to `store`.
fn session_on(warehouse: &Path, store: Store) -> Session {
    let opener: lakesmith::StoreOpener = Arc::new(move |_| Ok(store.clone()));
    let options = options(&warehouse.to_string_lossy());
    Session::new(SessionOptions { store: Some(opener), ..options }).unwrap()
}

#[test]
fn creating_and_dropping_survive_a_fault_at_every_request() {
    let script = "CREATE DATABASE d; CREATE TABLE d.t (id INT); DROP TABLE d.t; DROP DATABASE d";
    let again = "CREATE DATABASE IF NOT EXISTS d; CREATE TABLE IF NOT EXISTS d.t (id INT); SHOW COLUMNS IN d.t";
    let away = "DROP TABLE IF EXISTS d.t; DROP DATABASE d";
    let run = |faults: Vec<Fault>, dir: &Path| {
        let root = Location::from_local_path(dir).unwrap();
        let (faulty, store) = FaultStore::open(&root, faults).unwrap();
        let done = sql(&mut session_on(dir, store), script);
        (faulty.requests(), done)
    };
    let dir = tempfile::tempdir().unwrap();
    let (requests, done) = run(vec![], dir.path());
    done.unwrap();
    assert!(requests > 20, "{requests}");
    for (offset, kind) in KINDS.into_iter().enumerate() {
        for at_request in (offset as u64..requests).step_by(step()) {
            let dir = tempfile::tempdir().unwrap();
            let fault = Fault { at_request, kind };
            let (_, done) = run(vec![fault], dir.path());
            let mut healthy = session_in(dir.path());
            match &done {
                // Nothing is said to be another's that is our own.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error}"),
                Ok(_) => assert_eq!(column(&sql(&mut healthy, "SHOW DATABASES").unwrap(), 0), ["default"], "{fault:?}"),
            }
            if !matches!(kind, FaultKind::FailBefore | FaultKind::FailAfterLanding) {
                assert!(done.is_ok(), "{fault:?}: {done:?}");
            }
            let rows = sql(&mut healthy, again).unwrap_or_else(|e| panic!("{fault:?} after {done:?}: {e}"));
            assert_eq!(column(&rows, 0), ["id"], "{fault:?}");
            sql(&mut healthy, away).unwrap_or_else(|e| panic!("{fault:?} after {done:?}: {e}"));
            assert_eq!(column(&sql(&mut healthy, "SHOW DATABASES").unwrap(), 0), ["default"], "{fault:?}");
        }
    }
}
