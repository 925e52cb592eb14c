//! A misleading hint or a broken checkpoint: the same state comes from what else the log holds, or the load is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lakesmith_core::ErrorKind;
use lakesmith_core::health::{CheckpointHint, diagnose};
use lakesmith_core::op::health::{HealthReport, Severity};
use lakesmith_core::op::{HealthOptions, TimeTravel};
use lakesmith_delta::{survey, write_checkpoint};

use crate::survey::NOW_MS;
use crate::tables::{PROTOCOL, TestTable, add, metadata};

/// Versions 0 to 9, checkpoints of the versions given, the last of which the hint names.
async fn table(checkpoints: &[u64]) -> TestTable {
    let first = format!("{PROTOCOL}\n{}\n{}", metadata("string", false, "{}"), add("f0", None, 1));
    let later: Vec<String> = (1..10).map(|v| add(&format!("f{v}"), None, 1)).collect();
    let commits: Vec<&str> = std::iter::once(first.as_str()).chain(later.iter().map(String::as_str)).collect();
    let table = TestTable::with_commits(&commits);
    for version in checkpoints {
        write_checkpoint(&table.store(), &table.root(), *version).await.unwrap();
    }
    table
}

fn log(table: &TestTable, name: &str) -> PathBuf {
    table.path().join("_delta_log").join(name)
}

fn checkpoint(table: &TestTable, version: u64) -> PathBuf {
    log(table, &format!("{version:020}.checkpoint.parquet"))
}

async fn assert_whole(table: &TestTable, what: &str) {
    let loaded = table.try_load(TimeTravel::Latest).await.unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let files: BTreeSet<_> = loaded.state.files.iter().map(|f| f.path.to_owned()).collect();
    let expected: BTreeSet<_> = (0..10).map(|v| format!("f{v}")).collect();
    assert_eq!((loaded.state.version, files), (9, expected), "{what}");
}

/// A name and what it does to a table's log.
type Damage = (&'static str, fn(&Path));

fn damages() -> Vec<Damage> {
    vec![
        ("empty", |path| std::fs::write(path, "").unwrap()),
        ("text", |path| std::fs::write(path, "not a parquet file at all").unwrap()),
        ("half", |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("garbled head", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let half = bytes.len() / 2;
            bytes[4..half].fill(0xAB);
            std::fs::write(path, bytes).unwrap();
        }),
        ("footer only", |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[bytes.len() - 8..]).unwrap();
        }),
        ("gone", |path| std::fs::remove_file(path).unwrap()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_checkpoint_is_passed_over() {
    for (what, damage) in damages() {
        let with_older = table(&[3, 6]).await;
        damage(&checkpoint(&with_older, 6));
        assert_whole(&with_older, what).await;
        let alone = table(&[6]).await;
        damage(&checkpoint(&alone, 6));
        assert_whole(&alone, what).await;
        let both = table(&[3, 6]).await;
        damage(&checkpoint(&both, 6));
        damage(&checkpoint(&both, 3));
        assert_whole(&both, what).await;
        write_checkpoint(&both.store(), &both.root(), 9).await.unwrap();
        assert_eq!(both.load().await.log.checkpoint_version, Some(9), "{what}");
        assert_whole(&both, what).await;
        write_checkpoint(&alone.store(), &alone.root(), 6).await.unwrap();
        let at_six = alone.try_load(TimeTravel::Version(6)).await.unwrap();
        assert_eq!(at_six.log.checkpoint_version, Some(6), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misleading_hint_is_passed_over() {
    for hint in [
        "",
        "{",
        "[]",
        "null",
        r#"{"version":"six","size":1}"#,
        r#"{"version":4,"size":1}"#,
        r#"{"version":50,"size":1}"#,
        r#"{"version":-1,"size":1}"#,
        r#"{"version":6,"size":1,"parts":3}"#,
        r#"{"version":18446744073709551615,"size":1}"#,
    ] {
        for checkpoints in [&[][..], &[3, 6]] {
            let table = table(checkpoints).await;
            std::fs::write(log(&table, "_last_checkpoint"), hint).unwrap();
            assert_whole(&table, hint).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_only_the_broken_checkpoint_holds_is_not_replaced_by_an_older_one() {
    for (what, damage) in damages().into_iter().filter(|(what, _)| *what != "gone") {
        for gone_up_to in [6, 9] {
            let table = table(&[6, 9]).await;
            damage(&checkpoint(&table, if gone_up_to == 6 { 6 } else { 9 }));
            if gone_up_to == 6 {
                std::fs::remove_file(checkpoint(&table, 9)).unwrap();
            }
            for version in 4..=gone_up_to {
                std::fs::remove_file(table.commit_path(version)).unwrap();
            }
            if gone_up_to == 9 {
                damage(&checkpoint(&table, 6));
            }
            let error = table.error().await;
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what} {gone_up_to}: {error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_broken_sidecar_is_passed_over() {
    let mut tried = 0;
    for (what, damage) in damages() {
        for entry in std::fs::read_dir(crate::tables::golden_folder()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let golden = crate::tables::golden_folder().join(&name).join("_delta_log");
            let whole = golden.join(format!("{:020}.json", 0)).exists();
            let Ok(sidecars) = std::fs::read_dir(golden.join("_sidecars")) else { continue };
            if !whole {
                continue;
            }
            let table = TestTable::golden(&name);
            let before = table.load().await;
            for sidecar in sidecars {
                damage(&log(&table, "_sidecars").join(sidecar.unwrap().file_name()));
                tried += 1;
            }
            let after = table.try_load(TimeTravel::Latest).await.unwrap_or_else(|e| panic!("{name} {what}: {e:?}"));
            let files = |t: &lakesmith_delta::DeltaTable| {
                t.state.files.iter().map(|f| f.path.to_owned()).collect::<BTreeSet<_>>()
            };
            assert_eq!((after.state.version, files(&after)), (before.state.version, files(&before)), "{name} {what}");
        }
    }
    assert!(tried > 0, "no golden table has both sidecars and its whole log");
}

/// With a version checksum the newest protocol and metadata are known without a look at the checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_written_although_the_one_before_is_broken() {
    for (what, damage) in damages() {
        let table = TestTable::golden("v2_checkpoint_parquet");
        let before = table.load().await;
        let version = before.state.version;
        for entry in std::fs::read_dir(table.path().join("_delta_log")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(".checkpoint.") {
                damage(&path);
            }
        }
        if before.log.checkpoint_version == Some(version) {
            write_checkpoint(&table.store(), &table.root(), version).await.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(table.load().await.state.files.len(), before.state.files.len(), "{what}");
        }
        let last = std::fs::read_to_string(table.commit_path(version)).unwrap();
        let path = "part-new.parquet";
        std::fs::write(table.commit_path(version + 1), add(path, None, 1)).unwrap();
        assert!(!last.contains(path));
        write_checkpoint(&table.store(), &table.root(), version + 1).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let after = table.load().await;
        assert_eq!(after.log.checkpoint_version, Some(version + 1), "{what}");
        assert_eq!(after.state.files.len(), before.state.files.len() + 1, "{what}");
    }
}

async fn health(table: &TestTable) -> HealthReport {
    diagnosed(table, HealthOptions::default()).await
}

async fn diagnosed(table: &TestTable, options: HealthOptions) -> HealthReport {
    let survey = survey(&table.store(), &table.root(), &options, NOW_MS).await.unwrap();
    diagnose(&survey.table.state, survey.facts, &options, NOW_MS)
}

fn critical(report: &HealthReport) -> Vec<(&'static str, bool)> {
    let critical = report.findings.iter().filter(|f| f.severity == Severity::Critical);
    critical.map(|f| (f.id, f.command.as_ref().is_some_and(|c| c.starts_with("lakesmith checkpoint ")))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_checkpoint_is_critical_until_a_new_one_is_written() {
    for (what, damage) in damages().into_iter().filter(|(what, _)| *what != "gone") {
        for checkpoints in [&[6][..], &[3, 6], &[3, 9]] {
            let table = table(checkpoints).await;
            assert_eq!(critical(&health(&table).await), [], "{what}");
            let broken = *checkpoints.last().unwrap();
            damage(&checkpoint(&table, broken));
            let report = health(&table).await;
            assert_eq!(critical(&report), [("unreadable-checkpoint", true)], "{what} {checkpoints:?}");
            assert_eq!(report.log.broken_checkpoint, Some(broken));
            assert!(report.score < 100 && report.files == 10);
            write_checkpoint(&table.store(), &table.root(), 9).await.unwrap();
            assert_eq!(critical(&health(&table).await), [], "{what} {checkpoints:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_beyond_the_log_is_critical_and_no_checkpoint_takes_it_away() {
    for checkpoints in [&[][..], &[3], &[3, 9]] {
        let table = table(checkpoints).await;
        let (hint, text) = (log(&table, "_last_checkpoint"), r#"{"version":50,"size":1}"#);
        std::fs::write(&hint, text).unwrap();
        let names = || std::fs::read_dir(table.path().join("_delta_log")).unwrap().count();
        let before = names();
        for version in [9, 6] {
            let error = write_checkpoint(&table.store(), &table.root(), version).await.unwrap_err();
            assert_eq!((error.kind(), error.context_value("version")), (ErrorKind::Corrupt, Some("9")), "{error:?}");
            assert!(error.context_value("path").unwrap().ends_with("/_last_checkpoint"), "{error:?}");
            assert!(error.message().contains("version 50") && error.message().contains("delete"), "{error:?}");
            assert_eq!((std::fs::read_to_string(&hint).unwrap().as_str(), names()), (text, before));
        }
        let report = health(&table).await;
        assert_eq!(report.log.last_checkpoint_hint, CheckpointHint::BeyondLog);
        assert_eq!(critical(&report), [("last-checkpoint-hint", false)], "{checkpoints:?}");
        // Somebody who knows better says so.
        std::fs::remove_file(&hint).unwrap();
        assert!(write_checkpoint(&table.store(), &table.root(), 9).await.unwrap().written.is_some());
        let report = health(&table).await;
        assert_eq!((critical(&report), report.log.last_checkpoint_hint), (vec![], CheckpointHint::Current));
        // And then there is nothing left to do.
        assert!(write_checkpoint(&table.store(), &table.root(), 9).await.unwrap().written.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_hint_that_is_right_is_left_alone() {
    let table = table(&[9]).await;
    let before = std::fs::read(log(&table, "_last_checkpoint")).unwrap();
    assert!(write_checkpoint(&table.store(), &table.root(), 6).await.unwrap().written.is_some());
    assert_eq!(std::fs::read(log(&table, "_last_checkpoint")).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_newest_commit_is_critical() {
    for checkpoints in [&[][..], &[6]] {
        let table = table(checkpoints).await;
        std::fs::write(table.commit_path(9), "").unwrap();
        assert_eq!(critical(&health(&table).await), [("empty-commit", false)], "{checkpoints:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_beyond_the_log_is_named_by_every_load_and_critical_to_health() {
    for (checkpoints, version) in [(&[][..], 10), (&[6], 10), (&[9], 12)] {
        let table = table(checkpoints).await;
        let name = format!("{version:020}.crc");
        std::fs::write(log(&table, &name), r#"{"tableSizeBytes":11,"numFiles":11}"#).unwrap();
        let error = table.try_load(TimeTravel::Latest).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        assert!(error.context_value("path").unwrap().ends_with(&name), "{error:?}");
        assert_eq!(critical(&health(&table).await), [("checksum-beyond-log", false)], "{checkpoints:?}");
        let deep = diagnosed(&table, HealthOptions { deep: true, ..HealthOptions::default() }).await;
        assert_eq!(deep.storage.unwrap().reclaimable.files, 0);
        assert!(deep.findings.iter().any(|f| f.id == "checksum-beyond-log"));
        std::fs::remove_file(log(&table, &name)).unwrap();
        assert_whole(&table, &name).await;
        assert_eq!(critical(&health(&table).await), []);
    }
}
