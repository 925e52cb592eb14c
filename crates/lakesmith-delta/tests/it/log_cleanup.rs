//! Cleaning up a log: every version that was current at the cut-off or later is read back afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lakesmith_core::ErrorKind;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::plan::{LogCleanupPlan, LogCut};
use lakesmith_delta::{Needs, clean_log, load, plan_log_clean, write_checkpoint};
use lakesmith_storage::{FixedWorld, Store};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::commit_bench::{Bench, add, edit, metadata, protocol};
use crate::tables::TestTable;

pub(crate) const DAY_MS: i64 = 86_400_000;
/// Day 20,000 since the epoch, a little after midnight.
pub(crate) const NOW_MS: i64 = 20_000 * DAY_MS + 7_000;

/// A log of one file a version, committed on these days (of the last hundred), with checkpoints of these versions.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub days: Vec<u64>,
    pub checkpoints: BTreeSet<u64>,
    pub retention_days: u64,
    /// Commits carry their own time, and the files' times say nothing.
    pub own_clock: bool,
}

impl Spec {
    /// When each version was committed, by the table's clock.
    fn times_ms(&self) -> Vec<i64> {
        let mut previous = i64::MIN;
        let time = |day: &u64| {
            previous = (NOW_MS - DAY_MS * (100 - *day as i64)).max(previous + if self.own_clock { 1 } else { 1000 });
            previous
        };
        self.days.iter().map(time).collect()
    }

    /// The version that was current at the cut-off, by looking at every commit.
    pub(crate) fn cutoff_version(&self) -> Option<u64> {
        let cutoff_ms = (NOW_MS - self.retention_days as i64 * DAY_MS).div_euclid(DAY_MS) * DAY_MS;
        self.times_ms().iter().rposition(|time| *time <= cutoff_ms).map(|v| v as u64)
    }

    pub(crate) async fn build(&self) -> TestTable {
        let retention = format!("interval {} days", self.retention_days);
        let mut properties = vec![("delta.logRetentionDuration", retention.as_str())];
        let mut features = vec![];
        if self.own_clock {
            properties.push(("delta.enableInCommitTimestamps", "true"));
            features.push("inCommitTimestamp");
        }
        let times_ms = self.times_ms();
        let commit = |version: usize| {
            let mut lines = vec![json!({"commitInfo": {"operation": "WRITE", "inCommitTimestamp": times_ms[version]}})];
            if version == 0 {
                lines.extend([protocol(&features), metadata(&properties)]);
            }
            lines.push(add(&format!("f{version}"), 10));
            lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
        };
        let commits: Vec<String> = (0..self.days.len()).map(commit).collect();
        let table = TestTable::with_commits(&commits.iter().map(String::as_str).collect::<Vec<_>>());
        for version in &self.checkpoints {
            write_checkpoint(&table.store(), &table.root(), *version).await.unwrap();
        }
        for (version, time_ms) in times_ms.iter().enumerate() {
            let seconds = if self.own_clock { 1_000_000_000 } else { (*time_ms / 1000) as u64 };
            table.touch(version as u64, seconds);
        }
        table
    }
}

pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let days = proptest::collection::vec(0u64..100, 2..12).prop_map(|mut days| {
        days.sort_unstable();
        days
    });
    (days, proptest::collection::btree_set(0u64..12, 0..4), 0u64..100, any::<bool>()).prop_map(
        |(days, checkpoints, retention_days, own_clock)| {
            let checkpoints = checkpoints.into_iter().filter(|v| *v < days.len() as u64).collect();
            Spec { days, checkpoints, retention_days, own_clock }
        },
    )
}

/// The paths of the version; `None` if it can't be read.
pub(crate) async fn paths(table: &TestTable, version: u64) -> Option<BTreeSet<String>> {
    let loaded = table.try_load(TimeTravel::Version(version)).await.ok()?;
    Some(loaded.state.files.iter().map(|f| f.path.to_owned()).collect())
}

pub(crate) async fn plan(table: &TestTable, store: &Store) -> lakesmith_core::Result<LogCleanupPlan> {
    let newest = load(store, &table.root(), TimeTravel::Latest, Needs::default()).await?;
    plan_log_clean(store, &table.root(), &newest, NOW_MS, None).await
}

async fn clean(table: &TestTable) -> LogCleanupPlan {
    let planned = plan(table, &table.store()).await.unwrap();
    let report = clean_log(&table.store(), &table.root(), &planned).await.unwrap();
    assert!(report.failed.is_empty());
    planned
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn log_names(table: &TestTable) -> BTreeSet<String> {
    let log = table.path().join("_delta_log");
    let mut names = BTreeSet::new();
    let mut folders = vec![log.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                names.insert(path.strip_prefix(&log).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn versions_within_the_retention_stay_readable(spec in spec()) {
        runtime().block_on(async {
            let table = spec.build().await;
            let latest = spec.days.len() as u64 - 1;
            let strangers = ["keep.me", "00000000000000000000.json.bak", "_commits/00000000000000000000.x.json"];
            for stranger in strangers {
                let path = table.path().join("_delta_log").join(stranger);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "x").unwrap();
            }
            let mut before = BTreeMap::new();
            for version in 0..=latest {
                before.insert(version, paths(&table, version).await);
            }
            let planned = clean(&table).await;
            let from = spec.cutoff_version().unwrap_or(0);
            for version in from..=latest {
                prop_assert!(before[&version].is_some());
                prop_assert_eq!(&paths(&table, version).await, &before[&version], "version {}", version);
            }
            let expected = spec.cutoff_version().and_then(|v| spec.checkpoints.range(..=v).next_back().copied());
            match planned.cut() {
                LogCut::Before(version) => prop_assert_eq!(Some(*version), expected),
                LogCut::Nothing(_) => prop_assert_eq!(None, expected),
            }
            let left = log_names(&table);
            let commits = (0..=latest).filter(|v| left.contains(&format!("{v:020}.json"))).collect::<Vec<_>>();
            prop_assert_eq!(commits, (expected.unwrap_or(0)..=latest).collect::<Vec<_>>());
            for stranger in strangers {
                prop_assert!(left.contains(stranger));
            }
            prop_assert!(clean(&table).await.is_empty(), "a second clean-up finds more");
            Ok(())
        })?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_of_kept_checkpoints_and_young_ones_stay() {
    let table = TestTable::golden("v2_checkpoint_parquet");
    let log = table.path().join("_delta_log");
    let log_of = |name: &str| log.join(name);
    std::fs::write(log_of("_sidecars/young.parquet"), "x").unwrap();
    std::fs::write(log_of("_sidecars/notes.txt"), "x").unwrap();
    let set = |name: &str, ms: i64| {
        let file = std::fs::File::options().append(true).open(log_of(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms as u64)).unwrap();
    };
    for name in log_names(&table) {
        set(&name, NOW_MS - 90 * DAY_MS);
    }
    set("_sidecars/young.parquet", NOW_MS - DAY_MS);
    let before = paths(&table, 11).await.unwrap();
    let planned = clean(&table).await;
    assert_eq!(*planned.cut(), LogCut::Before(10));
    let left = log_names(&table);
    let sidecars: Vec<&str> = left.iter().filter_map(|n| n.strip_prefix("_sidecars/")).collect();
    assert_eq!(sidecars.len(), 5, "{sidecars:?}");
    assert!(
        sidecars.iter().all(|n| n.starts_with("00000000000000000010") || ["young.parquet", "notes.txt"].contains(n))
    );
    for gone in ["00000000000000000009.crc", "00000000000000000009.json", "00000000000000000000.json"] {
        assert!(!left.contains(gone), "{gone}");
    }
    assert!(!left.iter().any(|n| n.starts_with("00000000000000000005")), "{left:?}");
    assert_eq!(paths(&table, 11).await.unwrap(), before);
    assert!(paths(&table, 10).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_cannot_be_read_takes_no_place() {
    let spec = Spec { days: (0..8).collect(), checkpoints: BTreeSet::from([5]), retention_days: 10, own_clock: false };
    let table = spec.build().await;
    let checkpoint = table.path().join(format!("_delta_log/{:020}.checkpoint.parquet", 5));
    std::fs::write(&checkpoint, "torn").unwrap();
    std::fs::remove_file(table.path().join("_delta_log/_last_checkpoint")).unwrap();
    let names = log_names(&table);
    let newest = load(&table.store(), &table.root(), TimeTravel::Version(4), Needs::default()).await.unwrap();
    let planned = plan_log_clean(&table.store(), &table.root(), &newest, NOW_MS, None).await.unwrap();
    assert_eq!(*planned.cut(), LogCut::Before(5));
    let error = clean_log(&table.store(), &table.root(), &planned).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(log_names(&table), names);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_forbid_it_are_refused_by_name() {
    async fn refused(features: &[&str], properties: &[(&str, &str)]) -> (ErrorKind, String, String) {
        let lines = [protocol(features), metadata(properties)].map(|l| l.to_string()).join("\n");
        let table = TestTable::with_commits(&[&lines]);
        let error = plan(&table, &table.store()).await.unwrap_err();
        (error.kind(), error.class_name().to_owned(), error.to_string())
    }
    let (kind, class, _) = refused(&["coordinatedCommits-preview"], &[]).await;
    assert_eq!(kind, ErrorKind::Unsupported);
    assert_eq!(class, "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION");
    let (kind, _, text) = refused(&[], &[("delta.enableExpiredLogCleanup", "false")]).await;
    assert_eq!(kind, ErrorKind::Retention);
    assert!(text.contains("delta.enableExpiredLogCleanup"), "{text}");
    let (kind, _, text) = refused(&[], &[("delta.logRetentionDuration", "soon")]).await;
    assert_eq!(kind, ErrorKind::Usage);
    assert!(text.contains("soon"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_cleans_up_after_its_checkpoint_where_the_table_wants_it() {
    for (wanted, first) in [("true", 2), ("false", 0)] {
        let properties = [
            ("delta.checkpointInterval", "2"),
            ("delta.enableExpiredLogCleanup", wanted),
            ("delta.logRetentionDuration", "interval 1 day"),
        ];
        let mut bench = Bench::new(&[protocol(&[]), metadata(&properties), add("a", 10), add("b", 10)]).await;
        // The storage's clock runs by itself; ours is two days ahead of it.
        let written_ms = bench.store.head(&bench.commit_location(0)).await.unwrap().modified_ms;
        bench.world = FixedWorld::new((written_ms + 2 * DAY_MS) as u64);
        let crc = bench.root.join("_delta_log/00000000000000000001.crc");
        let base = bench.load().await;
        bench.put(1, &[add("c", 10)]).await;
        bench.store.put(&crc, "{}".into()).await.unwrap();
        bench.committed(&base, &edit(&base, &[(&["a"], "x")])).await;
        let commits: Vec<bool> = [bench.actions(0).await, bench.actions(1).await, bench.actions(2).await]
            .iter()
            .map(Option::is_some)
            .collect();
        assert_eq!(commits.iter().position(|there| *there), Some(first), "{wanted}");
        assert_eq!(bench.store.exists(&crc).await.unwrap(), wanted == "false");
        let after = bench.load().await;
        assert_eq!(after.log.checkpoint_version, Some(2));
        assert_eq!(after.state.files.iter().map(|f| f.path).collect::<BTreeSet<_>>(), BTreeSet::from(["b", "c", "x"]));
    }
}
