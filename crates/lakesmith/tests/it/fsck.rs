//! FSCK finds every kind of damage and nothing else; history tells which versions can still be read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use lakesmith::op::{
    CheckpointOptions, FsckOptions, FsckReport, HistoryEntry, HistoryOptions, Operation, Report, StatisticsCheck,
};
use lakesmith_testkit::{BuiltTable, TableBuilder};
use serde_json::{Value, json};

use crate::tables::{on_disk, optimize, purge, run, session, small_files};

fn check(table: &BuiltTable, statistics: StatisticsCheck) -> FsckReport {
    let before = snapshot(&table.folder);
    let options = FsckOptions { statistics, ..FsckOptions::default() };
    let report = session().run(&table.folder.to_string_lossy(), Operation::Fsck(options)).unwrap();
    assert_eq!(snapshot(&table.folder), before, "fsck changed the table");
    match report {
        Report::Fsck(report) => *report,
        other => panic!("{other:?}"),
    }
}

fn snapshot(folder: &Path) -> BTreeMap<String, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path().to_string_lossy().into_owned(), (meta.len(), meta.modified().unwrap()));
            }
        }
    }
    found
}

fn kinds(report: &FsckReport) -> Vec<(&str, u64)> {
    report.counts.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

fn commit_path(table: &BuiltTable, version: u64) -> std::path::PathBuf {
    table.folder.join(format!("_delta_log/{version:020}.json"))
}

fn actions(table: &BuiltTable, version: u64) -> Vec<Value> {
    let text = std::fs::read_to_string(commit_path(table, version)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_actions(table: &BuiltTable, version: u64, actions: &[Value]) {
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    std::fs::write(commit_path(table, version), lines.join("\n")).unwrap();
}

/// Changes the first `add` of a commit.
fn change_add(table: &BuiltTable, version: u64, change: impl Fn(&mut Value)) -> String {
    let mut actions = actions(table, version);
    let add = actions.iter_mut().find_map(|a| a.get_mut("add")).unwrap();
    change(add);
    let path = add["path"].as_str().unwrap().to_owned();
    write_actions(table, version, &actions);
    path
}

#[test]
fn tables_in_order_are_clean_before_and_after_maintenance() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    for statistics in [StatisticsCheck::Off, StatisticsCheck::Footers, StatisticsCheck::Data] {
        let report = check(&table, statistics);
        assert!(report.clean, "{:?}", report.findings);
        assert_eq!((report.files, report.vectors), (8, 4));
        assert_eq!(report.statistics, if statistics == StatisticsCheck::Off { 0 } else { 8 });
    }
    let session = session();
    run(&session, &table, purge(&session)).unwrap();
    run(&session, &table, optimize(&session)).unwrap();
    session.run(&table.folder.to_string_lossy(), Operation::Checkpoint(CheckpointOptions::default())).unwrap();
    let report = check(&table, StatisticsCheck::Data);
    assert!(report.clean, "{:?}", report.findings);
    assert_eq!((report.vectors, report.checkpoints), (0, 1));
}

#[test]
fn files_that_are_missing_or_of_another_size_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let (gone, cut) = (&table.files[1].path, &table.files[3].path);
    std::fs::remove_file(on_disk(&table, gone)).unwrap();
    let bytes = std::fs::read(on_disk(&table, cut)).unwrap();
    std::fs::write(on_disk(&table, cut), &bytes[..bytes.len() - 1]).unwrap();
    let report = check(&table, StatisticsCheck::Data);
    assert_eq!(kinds(&report), [("missing-file", 1), ("wrong-size", 1)]);
    assert_eq!([&report.findings[0].path, &report.findings[1].path], [gone, cut]);
    assert!(report.findings.iter().all(|f| f.version == table.version && !f.cure.is_empty()));
    assert_eq!(report.statistics, 6);
}

#[test]
fn vectors_are_read_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let mut vectors: Vec<_> = std::fs::read_dir(&table.folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "bin"))
        .collect();
    vectors.sort();
    assert_eq!(vectors.len(), 4);
    std::fs::remove_file(&vectors[0]).unwrap();
    let mut bytes = std::fs::read(&vectors[1]).unwrap();
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    std::fs::write(&vectors[1], bytes).unwrap();
    let report = check(&table, StatisticsCheck::Off);
    assert_eq!(kinds(&report), [("corrupt-vector", 1), ("missing-vector", 1)]);
    // A cardinality that the vector does not have, in the log.
    let last = table.version;
    change_add(&table, last, |add| add["deletionVector"]["cardinality"] = json!(11));
    let report = check(&table, StatisticsCheck::Off);
    assert_eq!(report.counts.get("corrupt-vector"), Some(&2), "{:?}", report.findings);
}

#[test]
fn a_file_that_is_live_twice_is_found_in_any_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(10, 1).append(10, 1).delete_rows(0, &[1]).build().unwrap();
    let marked = actions(&table, table.version).into_iter().find_map(|a| a.get("add").cloned()).unwrap();
    let mut plain = marked.clone();
    plain.as_object_mut().unwrap().remove("deletionVector");
    write_actions(&table, table.version + 1, &[json!({"commitInfo": {}}), json!({"add": plain})]);
    let report = check(&table, StatisticsCheck::Off);
    assert_eq!(kinds(&report), [("two-vectors", 1)]);
    assert_eq!(report.findings[0].path, table.files[0].path);

    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(10, 1).build().unwrap();
    let add = actions(&table, 1).into_iter().find_map(|a| a.get("add").cloned()).unwrap();
    let mut other = add.clone();
    other["path"] = json!(format!("file://{}/{}", table.folder.to_str().unwrap(), add["path"].as_str().unwrap()));
    write_actions(&table, 2, &[json!({"commitInfo": {}}), json!({"add": other})]);
    let report = check(&table, StatisticsCheck::Off);
    assert_eq!(report.counts.keys().collect::<Vec<_>>(), ["duplicate-path"], "{:?}", report.findings);
}

/// One file with a column of each kind.
fn typed_table(folder: &Path) -> BuiltTable {
    let zone: Option<Arc<str>> = Some("UTC".into());
    let fields = vec![
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, zone.clone()), true),
        Field::new("d", DataType::Decimal128(9, 2), true),
        Field::new("f", DataType::Float64, true),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(1), None, Some(9)])),
        Arc::new(StringArray::from(vec![Some("b"), Some("c"), Some("x".repeat(40).as_str())])),
        Arc::new(TimestampMicrosecondArray::from(vec![1_500, 2_000, 9_999]).with_timezone_opt(zone)),
        Arc::new(Decimal128Array::from(vec![100, 200, 350]).with_precision_and_scale(9, 2).unwrap()),
        Arc::new(Float64Array::from(vec![1.5, f64::NAN, -2.5])),
    ];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), columns).unwrap();
    TableBuilder::new(folder).schema(fields).append_batch(&[], batch).build().unwrap()
}

fn right_statistics() -> Value {
    json!({
        "numRecords": 3,
        "minValues": {"n": 1, "s": "b", "t": "1970-01-01T00:00:00.001Z", "d": 1.00, "f": -2.5},
        "maxValues": {"n": 9, "s": format!("{}\u{10FFFF}", "x".repeat(32)), "t": "1970-01-01T00:00:00.009Z", "d": 3.5, "f": "NaN"},
        "nullCount": {"n": 1, "s": 0, "t": 0, "d": 0, "f": 0},
    })
}

#[test]
fn statistics_are_compared_with_footers_and_rows_by_the_logs_own_rules() {
    type Spoil = (fn(&mut Value), &'static str, bool);
    // What is wrong, in which words, and whether the footers know it too.
    let cases: [Spoil; 12] = [
        (|_| {}, "", true),
        (|s| s["numRecords"] = json!(4), "numRecords is 4", true),
        (|s| s["nullCount"]["n"] = json!(0), "nullCount of n is 0", true),
        (|s| s["minValues"]["n"] = json!(2), "minValues of n is 2", true),
        (|s| s["maxValues"]["n"] = json!(8), "maxValues of n is 8", true),
        (|s| s["maxValues"]["n"] = json!(10), "maxValues of n is 10", false),
        (|s| s["maxValues"]["s"] = json!("x".repeat(32)), "maxValues of s", true),
        (|s| s["minValues"]["s"] = json!("bb"), "minValues of s", true),
        (|s| s["maxValues"]["t"] = json!("1970-01-01T00:00:00.008Z"), "maxValues of t", true),
        (|s| s["minValues"]["t"] = json!("1970-01-01T00:00:00.002Z"), "minValues of t", true),
        (|s| s["maxValues"]["d"] = json!(3.49), "maxValues of d", true),
        (|s| s["maxValues"]["f"] = json!(1.5), "maxValues of f", false),
    ];
    for (spoil, words, footers_know) in cases {
        let dir = tempfile::tempdir().unwrap();
        let table = typed_table(dir.path());
        let mut statistics = right_statistics();
        spoil(&mut statistics);
        change_add(&table, 1, |add| add["stats"] = json!(statistics.to_string()));
        for (how, knows) in [(StatisticsCheck::Data, true), (StatisticsCheck::Footers, footers_know)] {
            let report = check(&table, how);
            if words.is_empty() || !knows {
                assert!(report.clean, "{how:?} {words}: {:?}", report.findings);
                continue;
            }
            assert_eq!(kinds(&report), [("wrong-statistics", 1)], "{how:?} {words}: {:?}", report.findings);
            assert!(report.findings[0].message.contains(words), "{:?}", report.findings);
        }
        assert!(check(&table, StatisticsCheck::Off).clean);
    }
}

#[test]
fn bounds_that_are_not_tight_may_be_wide_but_not_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let table = typed_table(dir.path());
    let stats = |change: fn(&mut Value)| {
        let mut statistics = right_statistics();
        statistics["tightBounds"] = json!(false);
        change(&mut statistics);
        change_add(&table, 1, |add| add["stats"] = json!(statistics.to_string()));
        check(&table, StatisticsCheck::Data)
    };
    let wide = stats(|s| {
        s["maxValues"]["n"] = json!(100);
        s["nullCount"]["n"] = json!(2);
    });
    assert!(wide.clean, "{:?}", wide.findings);
    assert!(!stats(|s| s["nullCount"]["n"] = json!(0)).clean);
    assert!(!stats(|s| s["maxValues"]["n"] = json!(5)).clean);
}

#[test]
fn gaps_and_broken_commits_of_the_log_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    session.run(&table.folder.to_string_lossy(), Operation::Checkpoint(CheckpointOptions::default())).unwrap();
    std::fs::remove_file(commit_path(&table, 2)).unwrap();
    std::fs::write(commit_path(&table, 4), "{\"add\":").unwrap();
    let report = check(&table, StatisticsCheck::Off);
    assert_eq!(kinds(&report), [("corrupt-commit", 1), ("log-gap", 1)]);
    assert_eq!(report.files, 8, "the checkpoint still gives the table");
    assert_eq!((report.findings[0].version, report.findings[1].version), (4, 2));

    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    std::fs::remove_file(commit_path(&table, 3)).unwrap();
    let report = check(&table, StatisticsCheck::Off);
    assert!(report.counts.contains_key("log-gap") && report.counts.contains_key("unreadable"), "{:?}", report.counts);
}

#[test]
fn a_checkpoint_that_contradicts_the_commits_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let table = small_files(dir.path());
    let session = session();
    session.run(&table.folder.to_string_lossy(), Operation::Checkpoint(CheckpointOptions::default())).unwrap();
    assert_eq!(check(&table, StatisticsCheck::Off).checkpoints, 1);
    let commit: Vec<Value> = actions(&table, 2);
    let kept: Vec<Value> = commit.iter().filter(|a| a.get("add").is_none()).cloned().collect();
    assert!(kept.len() < commit.len());
    write_actions(&table, 2, &kept);
    let report = check(&table, StatisticsCheck::Off);
    assert!(report.counts["checkpoint-differs"] >= 1, "{:?}", report.findings);
    assert!(report.findings.iter().any(|f| f.message.contains("only the checkpoint hold")), "{:?}", report.findings);
    let hint = table.folder.join("_delta_log/_last_checkpoint");
    for (version, kind) in [(1, "misleading-hint"), (1_000, "log-gap")] {
        std::fs::write(&hint, format!(r#"{{"version":{version},"size":1}}"#)).unwrap();
        let counts = check(&table, StatisticsCheck::Off).counts;
        assert!(counts.contains_key(kind), "{kind}: {counts:?}");
    }
}

#[test]
fn a_folder_that_says_another_partition_is_only_noted() {
    let dir = tempfile::tempdir().unwrap();
    let builder = TableBuilder::new(dir.path()).partitioned_by(&["day"]);
    let table = builder.append_partition(&[Some("a/b")], 10, 1).append_partition(&[None], 10, 1).build().unwrap();
    assert!(check(&table, StatisticsCheck::Data).notes.is_empty());
    change_add(&table, 1, |add| add["partitionValues"]["day"] = json!("c"));
    let report = check(&table, StatisticsCheck::Off);
    assert!(report.clean);
    assert_eq!(report.notes.len(), 1);
    assert!(report.notes[0].message.contains("day=c"), "{:?}", report.notes);
}

fn history(table: &BuiltTable, limit: Option<u64>) -> Vec<HistoryEntry> {
    let options = HistoryOptions { limit, readable: true, ..HistoryOptions::default() };
    match session().run(&table.folder.to_string_lossy(), Operation::History(options)).unwrap() {
        Report::History(history) => history.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn history_tells_which_versions_can_still_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let builder = TableBuilder::new(dir.path()).append(100, 2).append(50, 1);
    let table = builder.delete_rows(0, &[3]).remove_file(1).append(10, 1).build().unwrap();
    let missing = |limit| -> Vec<(u64, Option<u64>)> {
        history(&table, limit).iter().map(|e| (e.version, e.missing_files)).collect()
    };
    assert_eq!(missing(None), [5, 4, 3, 2, 1, 0].map(|v| (v, Some(0))));
    // Removed by version 4, so that older versions alone need it.
    std::fs::remove_file(on_disk(&table, &table.files[1].path)).unwrap();
    assert_eq!(missing(None), [(5, Some(0)), (4, Some(0)), (3, Some(1)), (2, Some(1)), (1, Some(1)), (0, Some(0))]);
    assert_eq!(missing(Some(3)), [(5, Some(0)), (4, Some(0)), (3, Some(1))]);
    // The vector that version 3 put in.
    let vector = std::fs::read_dir(&table.folder).unwrap().map(|e| e.unwrap().path());
    std::fs::remove_file(vector.into_iter().find(|p| p.extension().is_some_and(|e| e == "bin")).unwrap()).unwrap();
    assert_eq!(missing(None), [(5, Some(1)), (4, Some(1)), (3, Some(2)), (2, Some(1)), (1, Some(1)), (0, Some(0))]);
    assert_eq!(history(&table, Some(1))[0].readable, Some(false));
}

#[test]
fn versions_whose_log_is_gone_are_not_readable() {
    let dir = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(dir.path()).append(10, 1).append(10, 1).append(10, 1).build().unwrap();
    session().run(&table.folder.to_string_lossy(), Operation::Checkpoint(CheckpointOptions::default())).unwrap();
    std::fs::remove_file(commit_path(&table, 1)).unwrap();
    let seen: Vec<_> = history(&table, None).iter().map(|e| (e.version, e.readable, e.missing_files)).collect();
    assert_eq!(seen, [(3, Some(true), Some(0)), (2, Some(false), None), (0, Some(false), None)]);
}
