//! A file whose path the log spells in two ways: never brought back, never written to; consistent spellings are fine.

use std::collections::BTreeSet;

use lakesmith_core::ErrorKind;
use lakesmith_delta::{check_writable, write_checkpoint};
use serde_json::json;

use crate::commit_bench::{self, Bench, edit};
use crate::tables::{PROTOCOL, TestTable, add, metadata};

fn first(paths: &[&str]) -> String {
    let mut lines = vec![PROTOCOL.to_string(), metadata("string", false, "{}")];
    lines.extend(paths.iter().map(|path| add(path, None, 1)));
    lines.join("\n")
}

fn remove(path: &str) -> String {
    json!({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": true}}).to_string()
}

async fn live(table: &TestTable) -> BTreeSet<String> {
    table.load().await.state.files.iter().map(|f| f.path.to_owned()).collect()
}

fn paths(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

/// An add, a remove of the same object, and whether Spark takes them for the same.
const PAIRS: [(&str, &str, bool); 11] = [
    ("x", "./x", true),
    ("./x", "x", true),
    ("x", "a/../x", true),
    ("d/x", "d//x", true),
    ("d//x", "d/./x", true),
    ("d=a%2Fb/x", "d=a%2fb/x", true),
    ("file:/elsewhere/x", "file:///elsewhere/x", true),
    ("/elsewhere/x", "file:/elsewhere/x", true),
    ("x", "%78", false),
    ("a%2Bb", "a+b", false),
    ("a b", "a%20b", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn files_are_live_as_spark_sees_them_and_the_table_is_not_written() {
    for (added, removed, same) in PAIRS {
        let table = TestTable::with_commits(&[&first(&[added, "other"]), &remove(removed)]);
        let loaded = table.load().await;
        assert_eq!(loaded.state.files.len(), if same { 1 } else { 2 }, "{added} {removed}");
        let error = check_writable(&loaded).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{added} {removed}: {error}");
        assert_eq!(error.context_value("version"), Some("1"));
        assert!([Some(added), Some(removed)].contains(&error.context_value("file")), "{error}");
        assert!(error.context_value("log_file").unwrap().ends_with(".json"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_spelling_that_is_kept_is_no_fault() {
    for path in ["./x", "a//x", "a/../x", "%78", "a b", "d=a%2fb/x", "file:///elsewhere/x"] {
        let table = TestTable::with_commits(&[&first(&[path, "y"]), &add(path, None, 2), &remove("y")]);
        let loaded = table.load().await;
        check_writable(&loaded).unwrap_or_else(|e| panic!("{path}: {e}"));
        // A remove must say what the add said.
        assert_eq!(live(&table).await, paths(&[path]), "{path}");
        write_checkpoint(&table.store(), &table.root(), 2).await.unwrap();
        assert_eq!(live(&table).await, paths(&[path]), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_live_spellings_are_one_file_in_spark() {
    let table = TestTable::with_commits(&[&first(&["x"]), &add("./x", None, 5)]);
    let loaded = table.load().await;
    let rows: Vec<_> = loaded.state.files.iter().map(|f| (f.path.to_owned(), f.rows)).collect();
    assert_eq!(rows, [("x".to_owned(), Some(5))]);
    assert!(check_writable(&loaded).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_settles_the_spelling() {
    let table = TestTable::with_commits(&[&first(&["x", "./y"]), &remove("./x")]);
    assert!(check_writable(&table.load().await).is_err());
    write_checkpoint(&table.store(), &table.root(), 1).await.unwrap();
    let loaded = table.load().await;
    assert_eq!(loaded.log.checkpoint_version, Some(1));
    check_writable(&loaded).unwrap();
    assert_eq!(live(&table).await, paths(&["y"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_takes_an_input_under_another_spelling_takes_it() {
    let removes = ["./a", "x/../a", "%61"];
    for spelling in removes {
        let lines = [
            commit_bench::protocol(&[]),
            commit_bench::metadata(&[]),
            commit_bench::add("a", 10),
            commit_bench::add("b", 10),
        ];
        let bench = Bench::new(&lines).await;
        let base = bench.load().await;
        bench.put(1, &[commit_bench::remove(spelling)]).await;
        let committed = bench.committed(&base, &edit(&base, &[(&["a"], "x"), (&["b"], "y")])).await;
        assert_eq!((committed.groups_done, committed.groups_dropped), (vec![1], vec![0]), "{spelling}");
    }
    let lines = [
        commit_bench::protocol(&[]),
        commit_bench::metadata(&[]),
        commit_bench::add("a", 10),
        commit_bench::add("b", 10),
    ];
    let bench = Bench::new(&lines).await;
    let base = bench.load().await;
    bench.put(1, &[commit_bench::add("./a", 12)]).await;
    let committed = bench.committed(&base, &edit(&base, &[(&["a"], "x"), (&["b"], "y")])).await;
    assert_eq!((committed.groups_done, committed.groups_dropped), (vec![1], vec![0]));
}
