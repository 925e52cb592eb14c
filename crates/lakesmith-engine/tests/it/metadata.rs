//! Questions that the log answers: how many rows, smallest and largest values. The data files are not there.

use std::fs;
use std::path::{Path, PathBuf};

use lakesmith::ErrorKind;

use crate::asking::{ask, rows};

/// A table made by `statements`, in which `{t}` is its name, without its data files.
fn bare(folder: &Path, statements: &[&str]) -> String {
    let root = folder.join("t");
    let name = format!("delta.`{}`", root.display());
    for statement in statements {
        ask(&statement.replace("{t}", &name)).unwrap();
    }
    let mut found = 0;
    for path in data_files(&root) {
        fs::remove_file(path).unwrap();
        found += 1;
    }
    assert!(found > 0);
    name
}

fn data_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                data_files(&path).into_iter().filter(|p| !p.components().any(|c| c.as_os_str() == "_delta_log")),
            );
        } else if path.extension().is_some_and(|e| e == "parquet") {
            found.push(path);
        }
    }
    found
}

const PARTS: [&str; 4] = [
    "CREATE TABLE {t} (id BIGINT, n INT, d DATE, s STRING, x DOUBLE, p INT) PARTITIONED BY (p)",
    "INSERT INTO {t} VALUES (3, NULL, DATE'2026-01-05', 'b', 1.5, 1), (-7, 4, NULL, 'a', 2.5, 1)",
    "INSERT INTO {t} VALUES (12, NULL, NULL, 'c', 0.5, 2)",
    "INSERT INTO {t} VALUES (5, 9, DATE'2025-12-31', NULL, 3.5, NULL)",
];

#[test]
fn rows_and_ends_are_told_by_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let t = bare(folder.path(), &PARTS);
    for (query, expected) in [
        ("SELECT count(*) FROM {t}", "4"),
        ("SELECT count(1) AS n, count(*) FROM {t} WHERE p = 1", "2|2"),
        ("SELECT count(*) FROM {t} WHERE p IS NULL OR p > 1", "2"),
        ("SELECT count(*) FROM {t} WHERE p > 100", "0"),
        ("SELECT count(*), min(id), max(id) FROM {t}", "4|-7|12"),
        ("SELECT min(n), max(n), min(d), max(d) FROM {t}", "4|9|2025-12-31|2026-01-05"),
        ("SELECT max(id), min(id) FROM {t} WHERE p = 1", "3|-7"),
        ("SELECT min(p), max(p), count(*) FROM {t}", "1|2|4"),
        ("SELECT count(n), count(p), count(id) FROM {t}", "2|3|4"),
    ] {
        assert_eq!(rows(&query.replace("{t}", &t)), [expected], "{query}");
    }
}

#[test]
fn what_the_log_does_not_tell_exactly_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let t = bare(folder.path(), &PARTS);
    for query in [
        "SELECT max(s) FROM {t}",
        "SELECT min(x) FROM {t}",
        "SELECT min(id) FROM {t} WHERE n > 3",
        "SELECT min(id + 1) FROM {t}",
        "SELECT count(*) FROM {t} WHERE id > 0",
        "SELECT min(id), max(s) FROM {t}",
    ] {
        let error = ask(&query.replace("{t}", &t)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{query}: {error:?}");
    }
}

#[test]
fn ends_of_files_with_deleted_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("t");
    let t = format!("delta.`{}`", root.display());
    for statement in [
        "CREATE TABLE {t} (id INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT CAST(id AS INT) FROM range(100)",
        "DELETE FROM {t} WHERE id < 3 OR id = 99",
    ] {
        ask(&statement.replace("{t}", &t)).unwrap();
    }
    assert_eq!(rows(&format!("SELECT count(*), min(id), max(id) FROM {t}")), ["96|3|98"]);
    for path in data_files(&root) {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(rows(&format!("SELECT count(*) FROM {t}")), ["96"]);
    assert!(ask(&format!("SELECT min(id) FROM {t}")).is_err());
}

#[test]
fn bounds_that_are_not_tight_are_no_ends() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("t");
    let t = format!("delta.`{}`", root.display());
    ask(&format!("CREATE TABLE {t} AS SELECT CAST(id AS INT) AS id FROM range(10)")).unwrap();
    let commit = root.join("_delta_log/00000000000000000000.json");
    let text = fs::read_to_string(&commit).unwrap();
    let wide =
        text.replace(r#"\"id\":9"#, r#"\"id\":900"#).replace(r#"\"tightBounds\":true"#, r#"\"tightBounds\":false"#);
    let wide = match wide.contains("tightBounds") {
        true => wide,
        false => wide.replace(r#"{\"numRecords\":10"#, r#"{\"tightBounds\":false,\"numRecords\":10"#),
    };
    assert!(wide.contains("900") && wide.contains("tightBounds"), "{text}");
    fs::write(&commit, wide).unwrap();
    assert_eq!(rows(&format!("SELECT max(id), min(id) FROM {t}")), ["9|0"]);
}

#[test]
fn rows_of_golden_tables_are_counted_as_when_their_files_are_read() {
    let mut counted = 0;
    for entry in fs::read_dir(crate::asking::fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let t = format!("delta.`{}`", path.display());
        let Ok(read) = ask(&format!("SELECT 1 FROM {t}")) else { continue };
        assert_eq!(rows(&format!("SELECT count(*) FROM {t}")), [read.rows.len().to_string()], "{t}");
        counted += 1;
    }
    assert!(counted > 10);
}
