//! Logs that are missing, broken or too new give one clear error; versions and times are found or refused.

use lakesmith_core::ErrorKind;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::Scalar;

use crate::tables::{PROTOCOL, TestTable, add, metadata};

fn first(properties: &str) -> String {
    format!("{PROTOCOL}\n{}\n{}\n", metadata("string", false, properties), add("a.parquet", None, 1))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_log_is_no_table() {
    for commits in [&[][..]] {
        let error = TestTable::with_commits(commits).error().await;
        assert_eq!((error.kind(), error.class_name()), (ErrorKind::NotFound, "DELTA_MISSING_DELTA_TABLE"), "{error}");
        assert!(error.message().contains("is not a Delta table"));
    }
    let table = TestTable::with_commits(&[]);
    std::fs::remove_dir_all(table.path()).unwrap();
    assert_eq!(table.error().await.class_name(), "DELTA_MISSING_DELTA_TABLE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_commit_is_named() {
    let table = TestTable::with_commits(&[&first("{}"), "{\"add\":{\"path\":\"b.par"]);
    let error = table.error().await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(error.context_value("version"), Some("1"), "{error}");
    assert!(error.context_value("path").unwrap().ends_with("00000000000000000001.json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_out_of_range_is_named_with_its_field() {
    for (size, shown) in [
        ("-5", "negative: -5"),
        ("18446744073709551615", "18446744073709551615"),
        ("9223372036854775808", "9223372036854775808"),
        ("99999999999999999999", "99999999999999999999"),
        ("null", "missing"),
    ] {
        let second = add("b.parquet", None, 1).replace("\"size\":10", &format!("\"size\":{size}"));
        let error = TestTable::with_commits(&[&first("{}"), &second]).error().await;
        assert_eq!((error.kind(), error.context_value("file")), (ErrorKind::Corrupt, Some("b.parquet")), "{error}");
        assert!(error.message().contains("size") && error.message().contains(shown), "{size}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_place_of_a_folder_is_no_table() {
    let table = TestTable::with_commits(&[]);
    let log = table.path().join("_delta_log");
    std::fs::remove_dir(&log).unwrap();
    std::fs::write(&log, "a file").unwrap();
    assert_eq!(table.error().await.class_name(), "DELTA_MISSING_DELTA_TABLE");
    std::fs::remove_dir_all(table.path()).unwrap();
    std::fs::write(table.path(), "a file").unwrap();
    assert_eq!(table.error().await.class_name(), "DELTA_MISSING_DELTA_TABLE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_the_log_is_corrupt() {
    let table = TestTable::with_commits(&[&first("{}"), &add("b.parquet", None, 1), &add("c.parquet", None, 1)]);
    std::fs::remove_file(table.commit_path(1)).unwrap();
    assert_eq!(table.error().await.kind(), ErrorKind::Corrupt);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lost_its_beginning_is_corrupt() {
    let table = TestTable::with_commits(&[&first("{}"), &first("{}"), &add("c.parquet", None, 1)]);
    std::fs::remove_file(table.commit_path(0)).unwrap();
    let error = table.error().await;
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::Corrupt, "DELTA_TRUNCATED_TRANSACTION_LOG"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_checkpoint_is_corrupt() {
    let table = TestTable::golden("log_cleaned");
    for entry in std::fs::read_dir(table.path().join("_delta_log")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains(".checkpoint.") {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    let error = table.error().await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_outside_the_log_are_refused_with_the_range() {
    let table = TestTable::golden("append_only");
    let error = table.try_load(TimeTravel::Version(99)).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VERSION_NOT_FOUND");
    assert_eq!(error.message(), "Cannot time travel Delta table to version 99. Available versions: [0, 3].");
    assert_eq!(table.try_load(TimeTravel::Version(0)).await.unwrap().state.version, 0);
    let cleaned = TestTable::golden("log_cleaned");
    let error = cleaned.try_load(TimeTravel::Version(0)).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VERSION_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_go_by_the_files_made_increasing() {
    let table = TestTable::with_commits(&[&first("{}"), &add("b.parquet", None, 1), &add("c.parquet", None, 1)]);
    for (version, seconds) in [(0, 1_000), (1, 2_000), (2, 500)] {
        table.touch(version, seconds);
    }
    let version = async |ms| table.try_load(TimeTravel::Timestamp(ms)).await.map(|t| t.state.version);
    assert_eq!(version(1_000_000).await.unwrap(), 0);
    assert_eq!(version(1_999_999).await.unwrap(), 0);
    assert_eq!(version(2_000_000).await.unwrap(), 1);
    assert_eq!(version(2_000_001).await.unwrap(), 2);
    let class = |e: lakesmith_core::Error| e.class_name().to_string();
    assert_eq!(class(version(999_999).await.unwrap_err()), "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION");
    assert_eq!(class(version(2_000_002).await.unwrap_err()), "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_go_by_the_commits_own_clock_where_enabled() {
    let table = TestTable::golden("ict");
    let at = |ms| table.try_load(TimeTravel::Timestamp(ms));
    for version in 0..=2 {
        table.touch(version, 1);
        let own = table.try_load(TimeTravel::Version(version)).await.unwrap().log.commit_timestamp_ms;
        assert_eq!(at(own).await.unwrap().state.version, version);
    }
    let last = table.load().await.log.commit_timestamp_ms;
    assert_eq!(at(last + 1).await.unwrap_err().class_name(), "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
    assert_eq!(at(0).await.unwrap_err().class_name(), "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_spellings_of_one_partition_are_one() {
    let line = |path, p| add(path, Some(p), 1);
    let commit = [
        PROTOCOL.to_string(),
        metadata("timestamp", true, "{}"),
        line("a", "2026-01-01 00:00:00"),
        line("b", "2026-01-01T00:00:00.000000Z"),
        line("c", ""),
        add("d", None, 1),
    ]
    .join("\n");
    let table = TestTable::with_commits(&[&commit]).load().await;
    let partitions = table.state.files.partitions();
    assert_eq!(partitions.len(), 2, "{partitions:?}");
    let of = |path: &str| table.state.files.iter().find(|f| f.path == path).unwrap().partition_index;
    assert_eq!(of("a"), of("b"));
    assert_eq!(of("c"), of("d"));
    let null = &partitions[of("c") as usize];
    assert_eq!((null.raw.as_slice(), null.values.as_slice()), (&[None][..], &[Scalar::Null][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_partition_values_are_corrupt() {
    let head = format!("{PROTOCOL}\n{}\n", metadata("integer", true, "{}"));
    for line in [add("a", Some("x"), 1), add("a", Some("1"), 1).replace("\"p\"", "\"q\"")] {
        let error = TestTable::with_commits(&[&format!("{head}{line}")]).error().await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(error.context_value("file"), Some("a"), "{error}");
    }
}
