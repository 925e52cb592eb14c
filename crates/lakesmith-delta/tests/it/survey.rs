//! The direct reader of the log against the kernel.

use std::collections::BTreeMap;

use lakesmith_core::health::CheckpointHint;
use lakesmith_core::op::{HealthOptions, TimeTravel};
use lakesmith_core::table::{PartitionTuple, TableState};
use lakesmith_core::{Error, ErrorKind};
use lakesmith_delta::{PartitionRows, Survey, row_counts, survey, survey_by_kernel};
use lakesmith_storage::{Location, Store, StoreOptions};

use crate::golden::names;
use crate::tables::{PROTOCOL, TestTable, add, metadata};

pub(crate) const NOW_MS: i64 = 1_900_000_000_000;

/// Partition, size and deleted rows of every live file.
pub(crate) fn files(survey: &Survey) -> Vec<(Vec<Option<String>>, u64, u64)> {
    let mut files: Vec<_> =
        survey.facts.files.iter().map(|(p, size, deleted)| (p.raw.clone(), size, deleted)).collect();
    files.sort();
    files
}

/// What both readers say of a version, checked to be the same.
pub(crate) async fn both(store: &Store, root: &Location, at: TimeTravel) -> (Survey, Survey) {
    let options = HealthOptions { at: at.clone(), ..HealthOptions::default() };
    let direct = survey(store, root, &options, NOW_MS).await.unwrap();
    let kernel = survey_by_kernel(store, root, &options, NOW_MS).await.unwrap();
    assert_eq!(files(&direct), files(&kernel), "{root} {at:?}");
    let (a, b) = (&direct.facts.files, &kernel.facts.files);
    assert_eq!((a.len(), a.bytes(), a.deletes()), (b.len(), b.bytes(), b.deletes()));
    let mut partitions = (a.partitions().to_vec(), b.partitions().to_vec());
    partitions.0.sort();
    partitions.1.sort();
    assert_eq!(partitions.0, partitions.1);
    let (s, k) = (&direct.table.state, &kernel.table.state);
    assert_eq!((s.version, s.timestamp_ms, &s.id, s.created_ms), (k.version, k.timestamp_ms, &k.id, k.created_ms));
    assert_eq!((&s.name, &s.description, &s.schema), (&k.name, &k.description, &k.schema));
    assert_eq!((&s.partition_columns, &s.clustering_columns), (&k.partition_columns, &k.clustering_columns));
    assert_eq!((&s.properties, &s.features), (&k.properties, &k.features));
    assert_eq!((s.min_reader_version, s.min_writer_version), (k.min_reader_version, k.min_writer_version));
    let (s, k) = (&direct.table.log, &kernel.table.log);
    assert_eq!((&s.protocol, &s.metadata, &s.domains), (&k.protocol, &k.metadata, &k.domains));
    assert_eq!((s.row_id_high_water_mark, s.in_commit_timestamps), (k.row_id_high_water_mark, k.in_commit_timestamps));
    let counted = row_counts(store, root, &kernel.table).await.unwrap();
    assert!(counted.is_some() || direct.facts.source != "checkpoint", "{root} {at:?}");
    if let Some(counted) = counted {
        assert_eq!(counted.into_iter().collect::<BTreeMap<_, _>>(), rows(&kernel.table.state), "{root} {at:?}");
    }
    (direct, kernel)
}

/// The files of each partition, added up.
fn rows(state: &TableState) -> BTreeMap<PartitionTuple, PartitionRows> {
    let mut found = BTreeMap::new();
    for file in state.files.iter() {
        let sum = found.entry(file.partition.clone()).or_insert(PartitionRows { files: 0, bytes: 0, rows: Some(0) });
        let live = file.rows.and_then(|rows| rows.checked_sub(file.deleted_rows()));
        (sum.files, sum.bytes) = (sum.files + 1, sum.bytes + file.size);
        sum.rows = sum.rows.zip(live).map(|(rows, live)| rows + live);
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_table_is_read_as_the_kernel_reads_it_at_every_version() {
    for name in names().iter().filter(|n| *n != "unknown_reader_feature") {
        let table = TestTable::golden(name);
        let (store, root) = (table.store(), table.root());
        let (latest, _) = both(&store, &root, TimeTravel::Latest).await;
        assert_eq!(latest.facts.source, "checkpoint", "{name}");
        let newest = latest.table.state.version;
        for version in 0..=newest {
            if table.try_load(TimeTravel::Version(version)).await.is_ok() {
                let (direct, _) = both(&store, &root, TimeTravel::Version(version)).await;
                assert_eq!(direct.facts.source, "checkpoint", "{name} {version}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_know_the_rows_of_their_files() {
    for name in ["dv_file", "dv_inline", "dv_random_prefix"] {
        let table = TestTable::golden(name);
        let (direct, kernel) = both(&table.store(), &table.root(), TimeTravel::Latest).await;
        assert!(
            direct.facts.files.rows().is_some() && direct.facts.files.rows() == kernel.facts.files.rows(),
            "{name}"
        );
        assert!(direct.facts.files.deletes().0 > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_reader_feature_is_refused_by_name() {
    let table = TestTable::golden("unknown_reader_feature");
    let error = survey_error(&table).await;
    assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
    assert!(error.message().contains("fancyFutureThing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_writer_feature_blocks_and_is_named() {
    let table = TestTable::golden("unknown_writer_feature");
    let found = survey(&table.store(), &table.root(), &HealthOptions::default(), NOW_MS).await.unwrap();
    let (reason, features) = found.facts.blocked.unwrap();
    assert!(reason.contains("fancyFutureThing"));
    assert_eq!(features, ["fancyFutureThing"]);
}

async fn survey_error(table: &TestTable) -> Error {
    survey(&table.store(), &table.root(), &HealthOptions::default(), NOW_MS).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpointed_table_costs_a_handful_of_requests() {
    let table = TestTable::golden("plain_24_appends");
    let store = table.store();
    let options = HealthOptions { history_commits: 0, ..HealthOptions::default() };
    let found = survey(&store, &table.root(), &options, NOW_MS).await.unwrap();
    let commits = found.facts.log.commits_since_checkpoint;
    // The listing, the checkpoint, the hint and the version's checksum.
    let requests = store.requests();
    assert_eq!((requests.list, requests.put, requests.delete), (1, 0, 0));
    assert!(requests.total() <= 4 + commits, "{requests:?}");
    // Older commits are looked at only for the last runs, one request each.
    let store = table.store();
    let found = survey(&store, &table.root(), &HealthOptions::default(), NOW_MS).await.unwrap();
    assert_eq!(found.facts.maintenance.commits_read, 24);
    assert!(store.requests().total() <= 4 + 24, "{:?}", store.requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_logs_go_to_the_kernel_with_the_same_result() {
    let creation = format!("{PROTOCOL}\n{}\n", metadata("string", true, "{}"));
    let spelled = [add("a%2fb", Some("x"), 3), add("./c", None, 4)].join("\n");
    let table = TestTable::with_commits(&[&creation, &spelled]);
    let (direct, _) = both(&table.store(), &table.root(), TimeTravel::Latest).await;
    assert_eq!((direct.facts.source, direct.facts.files.len()), ("kernel", 2));
    assert!(direct.facts.tombstones.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_logs_are_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let root = Location::from_local_path(folder.path()).unwrap();
    let store = Store::open(&root, &StoreOptions::default()).unwrap();
    let error = survey(&store, &root, &HealthOptions::default(), NOW_MS).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_MISSING_DELTA_TABLE");

    let creation = format!("{PROTOCOL}\n{}\n", metadata("string", true, "{}"));
    let table = TestTable::with_commits(&[&creation, "{\"add\":{\"path\""]);
    assert_eq!(survey_error(&table).await.kind(), ErrorKind::Corrupt);
    let table = TestTable::with_commits(&[&creation, &add("x", Some("p"), 1), "{}"]);
    std::fs::remove_file(table.commit_path(1)).unwrap();
    assert_eq!(survey_error(&table).await.kind(), ErrorKind::Corrupt);

    let table = TestTable::golden("log_cleaned");
    for entry in std::fs::read_dir(table.path().join("_delta_log")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".checkpoint.parquet") {
            std::fs::write(&path, b"not parquet, but long enough to be looked at").unwrap();
        }
    }
    assert_eq!(survey_error(&table).await.kind(), ErrorKind::Corrupt);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hint_is_judged_by_the_checkpoints_that_are_there() {
    let hint = async |table: &TestTable| {
        let options = HealthOptions { history_commits: 0, ..HealthOptions::default() };
        survey(&table.store(), &table.root(), &options, NOW_MS).await.unwrap().facts.log.last_checkpoint_hint
    };
    assert_eq!(hint(&TestTable::golden("no_last_checkpoint")).await, CheckpointHint::Missing);
    let table = TestTable::golden("plain_24_appends");
    assert_eq!(hint(&table).await, CheckpointHint::Current);
    let file = table.path().join("_delta_log/_last_checkpoint");
    for (text, expected) in [
        ("{\"version\":10,\"size\":1}", CheckpointHint::Older),
        ("{\"version\":15,\"size\":1}", CheckpointHint::NamesMissing),
        ("{\"version\":99,\"size\":1}", CheckpointHint::BeyondLog),
        ("nonsense", CheckpointHint::Damaged),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(hint(&table).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_statistics_and_times_are_counted() {
    let creation = format!("{PROTOCOL}\n{}\n", metadata("string", true, "{}"));
    let bare = r#"{"add":{"path":"x","partitionValues":{"p":null},"size":7,"dataChange":true}}"#;
    let table = TestTable::with_commits(&[&creation, &format!("{bare}\n{}", add("y", Some("v"), 2))]);
    let found = survey(&table.store(), &table.root(), &HealthOptions::default(), NOW_MS).await.unwrap();
    let statistics = &found.facts.statistics;
    assert_eq!((statistics.files_read, statistics.files_without, statistics.complete), (2, 1, true));
    assert_eq!((found.facts.files.len(), found.facts.files.rows()), (2, None));
}
