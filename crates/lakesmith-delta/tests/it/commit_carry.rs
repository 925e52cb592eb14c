//! Winners that delete rows by vector while we move them: the deletes follow their rows.

use lakesmith_core::table::{DeletionVector, RowMapSegment, VersionEdit};
use lakesmith_delta::{CommitResult, DeltaTable, read_vector, write_vectors};
use serde_json::{Value, json};

use crate::commit_bench::{Bench, add, edit, metadata, protocol, remove, with};

async fn bench(properties: &[(&str, &str)]) -> Bench {
    let mut actions = vec![protocol(&["deletionVectors"]), metadata(properties)];
    actions.extend(["a", "b", "c", "d"].map(|path| add(path, 10)));
    Bench::new(&actions).await
}

const ENABLED: &[(&str, &str)] = &[("delta.enableDeletionVectors", "true")];

/// One group of `a` and `b` in output `x`, one of `c` and `d` in output `y`, 10 rows each, in order.
fn two_groups(base: &DeltaTable) -> VersionEdit {
    let mut edit = edit(base, &[(&["a", "b"], "x"), (&["c", "d"], "y")]);
    for group in &mut edit.groups {
        let segment =
            |(k, id)| RowMapSegment { input: id, first_live: 0, rows: 10, output: 0, output_start: 10 * k as u64 };
        group.row_map = group.removed.iter().copied().enumerate().map(segment).collect();
    }
    edit
}

/// What a DELETE of `rows` of `path` commits, `old` being the vector before.
async fn deletes(bench: &Bench, path: &str, rows: &[u64], old: Option<&Value>) -> (Vec<Value>, Value) {
    let vectors = [DeletionVector::from_rows(rows.iter().copied())];
    let vector = serde_json::to_value(&write_vectors(&bench.store, &bench.root, &vectors).await.unwrap()[0]).unwrap();
    let gone = match old {
        Some(old) => with(remove(path), "remove", &[("deletionVector", old.clone())]),
        None => remove(path),
    };
    (vec![gone, with(add(path, 10), "add", &[("deletionVector", vector.clone())])], vector)
}

/// Deleted rows of a live file, by the loader.
async fn deleted_rows(bench: &Bench, path: &str) -> Vec<u64> {
    let table = bench.load().await;
    let file = table.state.files.iter().find(|f| f.path == path).unwrap();
    match file.deletes {
        Some(info) => read_vector(&bench.store, info).await.unwrap().iter().collect(),
        None => vec![],
    }
}

async fn vector_files(bench: &Bench) -> usize {
    let listed = bench.store.list(&bench.root).await.unwrap();
    listed.iter().filter(|info| info.location.file_name().starts_with("deletion_vector_")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_of_several_winners_follow_their_rows() {
    let bench = bench(ENABLED).await;
    let base = bench.load().await;
    let (first, vector) = deletes(&bench, "b", &[2, 3], None).await;
    bench.put(1, &first).await;
    bench.put(2, &[add("new", 5)]).await;
    bench.put(3, &deletes(&bench, "b", &[2, 3, 9], Some(&vector)).await.0).await;
    let committed = bench.committed(&base, &two_groups(&base)).await;
    assert_eq!((committed.version, committed.groups_done, committed.groups_dropped), (4, vec![0, 1], vec![]));
    assert_eq!(committed.metrics["numDeletionVectorsRemoved"], "1");
    assert_eq!(bench.paths().await, ["new", "x", "y"]);
    assert_eq!(deleted_rows(&bench, "x").await, [12, 13, 19]);
    assert_eq!(deleted_rows(&bench, "y").await, [0; 0]);
    let x = &bench.live().await["x"];
    assert_eq!(x["stats"], r#"{"numRecords":20,"tightBounds":false}"#);
    assert_eq!((committed.unused, vector_files(&bench).await), (vec![], 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_without_a_live_row_is_left_out() {
    let bench = bench(ENABLED).await;
    let base = bench.load().await;
    let all: Vec<u64> = (0..10).collect();
    let mut winner = deletes(&bench, "c", &all, None).await.0;
    winner.extend(deletes(&bench, "d", &all, None).await.0);
    bench.put(1, &winner).await;
    let committed = bench.committed(&base, &two_groups(&base)).await;
    assert_eq!(bench.paths().await, ["x"]);
    assert_eq!((committed.metrics["numAddedFiles"].as_str(), committed.unused), ("1", vec![bench.root.join("y")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_carried_over_drops_its_group_alone() {
    // The table takes no new vectors; a vector lost a row that we left out; a row went nowhere; the file left later.
    let disabled = bench(&[]).await;
    let base = disabled.load().await;
    disabled.put(1, &deletes(&disabled, "a", &[1], None).await.0).await;
    let committed = disabled.committed(&base, &two_groups(&base)).await;
    assert_eq!((committed.groups_done, committed.groups_dropped), (vec![1], vec![0]));
    assert_eq!(deleted_rows(&disabled, "a").await, [1]);

    let unmapped = bench(ENABLED).await;
    let base = unmapped.load().await;
    unmapped.put(1, &deletes(&unmapped, "a", &[1], None).await.0).await;
    let mut edit = two_groups(&base);
    edit.groups[0].row_map[0].rows = 1;
    let committed = unmapped.committed(&base, &edit).await;
    assert_eq!(committed.groups_dropped, [0]);

    let left = bench(ENABLED).await;
    let base = left.load().await;
    let (first, vector) = deletes(&left, "a", &[1], None).await;
    left.put(1, &first).await;
    left.put(2, &[with(remove("a"), "remove", &[("deletionVector", vector)])]).await;
    let committed = left.committed(&base, &two_groups(&base)).await;
    assert_eq!((committed.groups_dropped, left.paths().await), (vec![0], vec!["b".to_owned(), "y".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_that_shrank_drops_its_group() {
    let bench = bench(ENABLED).await;
    let (first, old) = deletes(&bench, "a", &[1, 2], None).await;
    bench.put(1, &first).await;
    let base = bench.load().await;
    bench.put(2, &deletes(&bench, "a", &[2, 3], Some(&old)).await.0).await;
    let CommitResult::Committed(committed) = bench.commit(&base, &two_groups(&base)).await else { panic!() };
    assert_eq!(committed.groups_dropped, [0]);
    assert_eq!(deleted_rows(&bench, "a").await, [2, 3]);
    assert_eq!(json!(bench.paths().await), json!(["a", "b", "y"]));
}
