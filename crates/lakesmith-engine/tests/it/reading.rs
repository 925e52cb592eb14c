//! Versions, facts of files and files that are gone.

use crate::asking::{ask, golden, rows};

#[test]
fn versions_are_read_by_number_time_and_suffix() {
    let (plain, path) = (golden("plain_24_appends"), crate::asking::fixtures().join("plain_24_appends"));
    assert_eq!(rows(&format!("SELECT count(*) FROM {plain} VERSION AS OF 3")), ["200"]);
    assert_eq!(rows(&format!("SELECT count(id) FROM {plain} VERSION AS OF 3 AS t WHERE t.id >= 0")), ["200"]);
    assert_eq!(rows(&format!("SELECT count(*) FROM delta.`{}@v5`", path.display())), ["300"]);
    let error = ask(&format!("SELECT * FROM {plain} TIMESTAMP AS OF '2099-01-01'")).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
    let both = format!(
        "SELECT a.n - b.n FROM (SELECT count(*) AS n FROM {plain}) a, (SELECT count(*) AS n FROM {plain} VERSION AS OF 0) b"
    );
    assert_eq!(rows(&both), ["1150"]);
    let error = ask(&format!("SELECT * FROM {plain} VERSION AS OF 99")).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VERSION_NOT_FOUND");
}

#[test]
fn a_file_that_vacuum_took_is_named_with_its_version() {
    let error = ask(&format!("SELECT * FROM {} VERSION AS OF 2", golden("vacuumed"))).unwrap_err();
    assert_eq!(error.class_name(), "FAILED_READ_FILE.FILE_NOT_EXIST");
    assert_eq!(error.context_value("version"), Some("2"));
    assert!(error.context_value("path").is_some_and(|p| p.ends_with(".parquet")), "{error}");
    assert!(error.message().contains("VACUUM"), "{error}");
}

#[test]
fn facts_of_files_are_read_from_metadata() {
    let plain = golden("plain_24_appends");
    assert_eq!(rows(&format!("SELECT count(DISTINCT _metadata.file_name) FROM {plain}")), ["24"]);
    let first =
        format!("SELECT id, _metadata.row_index FROM {plain} WHERE _metadata.row_index = 7 ORDER BY id LIMIT 1");
    assert_eq!(rows(&first), ["7|7"]);
    let answer = ask(&format!("SELECT *, _metadata.file_size FROM {plain} LIMIT 1")).unwrap();
    assert_eq!(answer.columns.last().map(String::as_str), Some("file_size"));
    assert!(!answer.columns.contains(&"_metadata".to_owned()), "{:?}", answer.columns);
}

#[test]
fn row_numbers_pass_over_deleted_rows() {
    let table = golden("dv_file");
    // Each file was written with 500 rows in the order of their ids; ids that end in 00 to 02 are deleted, and updated
    // rows stand in a file of their own.
    let first = format!("SELECT min(id), max(id), count(*) FROM {table} WHERE id < 480 AND _metadata.row_index = id");
    let moved = format!("SELECT count(*) FROM {table} WHERE id < 480 AND _metadata.row_index <> id");
    let (first, moved) = (rows(&first), rows(&moved));
    let moved: u64 = moved[0].parse().unwrap();
    assert!(moved <= 3, "{moved}");
    assert_eq!(first, [format!("3|479|{}", 480 - 5 * 3 - moved)]);
    let second =
        format!("SELECT count(*) FROM {table} WHERE id >= 600 AND id < 900 AND _metadata.row_index <> id - 500");
    assert!(rows(&second)[0].parse::<u64>().unwrap() <= 3);
}

#[test]
fn row_ids_are_unique_and_stay() {
    let table = golden("row_tracking");
    let counts = rows(&format!("SELECT count(*) - count(DISTINCT _metadata.row_id) FROM {table}"));
    assert_eq!(counts, ["0"]);
    assert_eq!(rows(&format!("SELECT count(*) FROM {table} WHERE _metadata.row_id IS NULL")), ["0"]);
}
