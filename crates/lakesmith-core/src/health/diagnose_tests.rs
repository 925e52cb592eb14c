use proptest::prelude::*;

use super::*;
use crate::health::{
    CheckpointHint, Checksum, CountAndBytes, FileTally, KeyOverlap, LogFacts, TalliedFile, TombstoneFacts,
};
use crate::layout::depth::Depth;
use crate::layout::tag::{LAYOUT_TAG, packed_for};
use crate::op::health::{Finding, Severity};
use crate::op::{FileSizes, OptimizeOptions};
use crate::plan::cluster::ZCUBE_KEYS_TAG;
use crate::plan::compact::tests::{TestFile, file, state};
use crate::plan::{TARGET_TAG, ZCUBE_TAG};
use crate::units::GIB;

const MB: u64 = 1_000_000;
const DAY_MS: i64 = 86_400_000;
const NOW_MS: i64 = 1_800_000_000_000;

fn tallied(files: &[TestFile], target: u64) -> TalliedFiles {
    let of_state = state(files);
    let mut tally = FileTally::new(target);
    for f in of_state.files.iter() {
        tally.push(TalliedFile {
            partition: f.partition_index,
            size: f.size,
            modified_ms: f.modified_ms,
            rows: f.rows,
            deleted: f.deletes.map(|d| d.cardinality),
            target: packed_for(f.marks),
            in_cube: f.marks.tag(ZCUBE_TAG).is_some(),
        });
    }
    let partitions = of_state.files.partitions().to_vec();
    let places: Vec<u32> = (0..partitions.len() as u32).collect();
    tally.finish(partitions, &places)
}

fn healthy_log() -> LogFacts {
    LogFacts { last_checkpoint_hint: CheckpointHint::Current, checkpoint_interval: 10, ..LogFacts::default() }
}

fn check(files: &[TestFile], change: impl FnOnce(&mut TableState, &mut HealthFacts)) -> HealthReport {
    let mut table = state(files);
    let options = HealthOptions::default();
    let mut facts =
        HealthFacts { files: tallied(files, options.sizes.target_bytes), log: healthy_log(), ..HealthFacts::default() };
    change(&mut table, &mut facts);
    diagnose(&table, facts, &options, NOW_MS)
}

fn found<'a>(report: &'a HealthReport, id: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|f| f.id == id)
}

fn many(count: u64, size: u64, partitions: i64) -> Vec<TestFile> {
    let one = |i: u64| TestFile { partition: i as i64 % partitions, ..file(&format!("f{i:06}"), size + i % 7) };
    (0..count).map(one).collect()
}

fn severity(report: &HealthReport, id: &str) -> Option<Severity> {
    found(report, id).map(|f| f.severity)
}

#[test]
fn healthy_and_tiny_tables_are_left_in_peace() {
    for files in [vec![], many(1, 2 * MB, 1), many(9, 1_000, 1), many(5, 900 * MB, 1), many(30, MB, 30)] {
        let report = check(&files, |_, _| {});
        assert_eq!((report.score, report.findings.len()), (100, 0), "{:?}", report.findings);
    }
}

#[test]
fn small_files_are_found_by_what_optimize_would_save() {
    let report = check(&many(24, 1_500, 1), |_, _| {});
    assert_eq!(severity(&report, "small-files"), Some(Severity::Info));
    let report = check(&many(200, MB, 2), |_, _| {});
    let small = found(&report, "small-files").unwrap();
    assert_eq!(small.severity, Severity::Warning);
    assert_eq!(small.evidence["files_after_optimize"], 2);
    assert_eq!(small.command.as_deref(), Some("lakesmith optimize memory:///t --target-size 1GiB"));
    assert_eq!(report.score, 100 - small.points);
    let report = check(&many(100_001, MB, 10), |_, _| {});
    assert_eq!(severity(&report, "small-files"), Some(Severity::Critical));
    assert!(report.score < 50, "{}", report.score);
    // Files of a good size are no problem although a larger target would pack them.
    assert!(check(&many(200, 100 * MB, 1), |_, _| {}).findings.is_empty());
    // So many files slow every reader, and yet OPTIMIZE has nothing to pack.
    let report = check(&many(100_001, 1_000 * MB, 5), |_, _| {});
    assert_eq!(severity(&report, "too-many-files"), Some(Severity::Info));
    assert_eq!(found(&report, "too-many-files").unwrap().command, None);
}

#[test]
fn clustering_is_foreseen_as_it_is_planned() {
    let in_cube = |f: TestFile| {
        let tags = vec![(ZCUBE_TAG, "c".to_owned()), (ZCUBE_KEYS_TAG, r#"["a"]"#.to_owned())];
        TestFile { tags, provider: Some("liquid"), ..f }
    };
    let clustered = |state: &mut TableState| {
        let field = crate::plan::keys::tests::field("a", crate::table::DataType::Long);
        state.schema = crate::table::Schema { fields: vec![field] };
        state.features = vec!["clustering".into()];
        state.clustering_columns = Some(vec![vec!["a".into()]]);
        state.partition_columns.clear();
    };
    for (new, old) in [(30, 0), (30, 20), (1, 20), (1, 0), (0, 20)] {
        let files: Vec<TestFile> = many(new + old, 400 * MB, 1)
            .into_iter()
            .enumerate()
            .map(|(i, f)| if (i as u64) < old { in_cube(f) } else { f })
            .collect();
        let report = check(&files, |state, _| clustered(state));
        let mut table = state(&files);
        clustered(&mut table);
        let plan = crate::plan::cluster(&table, &OptimizeOptions::default(), "r", &mut || "new".into()).unwrap();
        let outputs: u64 = plan.groups.iter().filter_map(|g| g.order.as_ref()).map(|order| order.files).sum();
        assert_eq!(report.sizes.optimize_inputs, plan.input_files() as u64, "{new} {old}");
        assert_eq!(report.sizes.optimize_input_bytes, plan.input_bytes(), "{new} {old}");
        assert_eq!(report.sizes.files_after_optimize, new + old - plan.input_files() as u64 + outputs, "{new} {old}");
        if let Some(unclustered) = found(&report, "unclustered-files") {
            assert_eq!(unclustered.command.as_deref(), Some("lakesmith optimize memory:///t --target-size 1GiB"));
        }
    }
}

#[test]
fn files_that_lie_over_each_other_in_a_clustering_key_are_told_whatever_their_size() {
    let of = |mean, worst, unknown_files, keys: usize| {
        check(&many(20, 900 * MB, 1), |state, facts| {
            state.clustering_columns = Some(vec![vec!["a".into()]; keys]);
            let depth = Depth { mean, worst, unknown_files };
            let key = KeyOverlap { column: "a".into(), files: 20, depth, advice: vec![] };
            facts.layout = vec![key; keys];
        })
    };
    let report = of(Some(13.3), Some(20), 0, 1);
    let bad = found(&report, "badly-ordered").unwrap();
    assert_eq!(
        (bad.severity, &bad.evidence["mean_depth"], &bad.evidence["worst_depth"]),
        (Severity::Warning, &13.3.into(), &20.into())
    );
    assert_eq!(bad.command.as_deref(), Some("lakesmith optimize memory:///t --target-size 1GiB"));
    assert_eq!(report.layout.len(), 1);
    // In order; in order by two keys; not known; without statistics, which is another finding.
    for (mean, unknown, keys) in [(Some(1.2), 0, 1), (Some(5.0), 0, 2), (None, 20, 1), (Some(20.0), 20, 1)] {
        assert_eq!(found(&of(mean, mean.map(|_| 20), unknown, keys), "badly-ordered"), None, "{mean:?}");
    }
}

#[test]
fn outputs_that_stayed_small_are_cured_by_force() {
    let tagged = |f: TestFile| TestFile { tags: vec![(TARGET_TAG, GIB.to_string())], ..f };
    let report = check(&many(80, MB, 1).into_iter().map(tagged).collect::<Vec<_>>(), |_, _| {});
    assert_eq!(found(&report, "small-files"), None);
    let settled = found(&report, "settled-small-files").unwrap();
    assert!(settled.command.as_deref().unwrap().ends_with("--target-size 1GiB --force"));
}

#[test]
fn oversize_files_and_bad_partitions_are_found() {
    let report = check(&many(3, 3_000 * MB, 1), |_, _| {});
    assert_eq!(severity(&report, "oversize-files"), Some(Severity::Warning));
    let report = check(&many(10_001, 200 * MB, 10_001), |_, _| {});
    assert_eq!(severity(&report, "over-partitioned"), Some(Severity::Warning));
    let report = check(&many(1_000, MB, 1_000), |_, _| {});
    assert_eq!(severity(&report, "tiny-partitions"), Some(Severity::Warning));
    let mut skewed = many(8, 100 * MB, 8);
    skewed.extend((0..20).map(|i| file(&format!("big{i}"), 900 * MB)));
    let report = check(&skewed, |_, _| {});
    assert_eq!(severity(&report, "skewed-partitions"), Some(Severity::Warning));
    assert_eq!(found(&report, "skewed-partitions").unwrap().evidence["largest"]["p"], "0");
}

#[test]
fn deleted_rows_weigh_by_the_five_percent_rule() {
    let with = |deleted| TestFile { deleted, ..file("a", 500 * MB) };
    let report = check(&[with(5), file("b", 600 * MB)], |_, _| {});
    assert_eq!(severity(&report, "deleted-rows-stored"), Some(Severity::Info));
    let report = check(&[with(40), file("b", 600 * MB)], |_, _| {});
    let stored = found(&report, "deleted-rows-stored").unwrap();
    assert_eq!((stored.severity, &stored.evidence["files_above_ratio"]), (Severity::Warning, &1.into()));
    assert_eq!(stored.evidence["bytes_estimate"], 200 * MB);
    assert_eq!(stored.command.as_deref(), Some("lakesmith reorg memory:///t --purge"));
    assert_eq!((report.rows, report.deletes.rows_of_files), (Some(160), Some(100)));
    let unknown = TestFile { rows: None, ..with(40) };
    let report = check(&[unknown], |_, _| {});
    assert_eq!((report.rows, report.deletes.rows_of_files, report.deletes.files_above_ratio), (None, None, 1));
}

#[test]
fn the_log_is_judged_by_what_readers_replay() {
    let of = |change: fn(&mut LogFacts)| check(&many(2, MB, 1), |_, facts| change(&mut facts.log));
    let report = of(|log| (log.commits_since_checkpoint, log.checkpoint_version) = (150, Some(3)));
    let stale = found(&report, "stale-checkpoint").unwrap();
    assert_eq!(
        (stale.severity, stale.command.as_deref()),
        (Severity::Warning, Some("lakesmith checkpoint memory:///t"))
    );
    assert_eq!(severity(&of(|log| log.commits_since_checkpoint = 21), "stale-checkpoint"), Some(Severity::Info));
    assert!(of(|log| log.commits_since_checkpoint = 20).findings.is_empty());
    let report = of(|log| (log.checkpoint_version, log.last_checkpoint_hint) = (Some(1), CheckpointHint::NamesMissing));
    assert_eq!(severity(&report, "last-checkpoint-hint"), Some(Severity::Warning));
    let report = of(|log| log.expired = CountAndBytes { files: 500, bytes: 1 });
    assert!(found(&report, "expired-log-files").unwrap().command.as_deref().unwrap().ends_with("--clean-log"));
    let report = of(|log| log.checksum = Some(Checksum { files: 3, bytes: 2 * MB + 1 }));
    assert_eq!(severity(&report, "checksum-mismatch"), Some(Severity::Critical));
    assert!(of(|log| log.checksum = Some(Checksum { files: 2, bytes: 2 * MB + 1 })).findings.is_empty());
}

#[test]
fn storage_that_can_be_reclaimed_names_the_vacuum() {
    let expired = CountAndBytes { files: 40, bytes: 5 * GIB };
    let tombstones = TombstoneFacts { all: expired, expired, without_size: 0, retention_ms: 7 * DAY_MS };
    let report = check(&many(2, 800 * MB, 1), |_, facts| facts.tombstones = Some(tombstones));
    let reclaimable = found(&report, "reclaimable-storage").unwrap();
    assert_eq!((reclaimable.severity, &reclaimable.evidence["exact"]), (Severity::Warning, &false.into()));
    assert_eq!(reclaimable.command.as_deref(), Some("lakesmith vacuum memory:///t"));
}

#[test]
fn a_table_that_cannot_be_written_gets_no_commands() {
    let report = check(&many(200, MB, 1), |_, facts| {
        facts.blocked = Some(("the table requires features".into(), vec!["fancyFutureThing".into()]));
    });
    assert!(report.findings.iter().all(|f| f.command.is_none()));
    assert_eq!(found(&report, "maintenance-blocked").unwrap().evidence["features"][0], "fancyFutureThing");
}

#[test]
fn findings_come_worst_first_and_the_score_stays_in_bounds() {
    let report = check(&many(200_000, MB, 3), |_, facts| {
        facts.log.commits_since_checkpoint = 5_000;
        facts.log.checksum = Some(Checksum { files: 1, bytes: 1 });
    });
    assert!(report.findings.is_sorted_by(|a, b| a.severity >= b.severity));
    assert_eq!((report.score, report.worst()), (0, Some(Severity::Critical)));
}

#[test]
fn the_histogram_holds_every_file_once_and_bounds_are_inclusive() {
    let report = check(&[file("a", 64 << 10), file("b", (64 << 10) + 1), file("c", 5 * GIB)], |_, _| {});
    let filled: Vec<(Option<u64>, u64)> =
        report.histogram.iter().filter(|b| b.files > 0).map(|b| (b.upto, b.bytes)).collect();
    assert_eq!(filled, [(Some(64 << 10), 64 << 10), (Some(1 << 20), (64 << 10) + 1), (None, 5 * GIB)]);
}

fn any_file() -> impl Strategy<Value = TestFile> {
    let rows = prop_oneof![Just(None), Just(Some(100u64))];
    let tag = prop_oneof![Just(None), Just(Some(TARGET_TAG)), Just(Some(LAYOUT_TAG))];
    (1u64..1_000, rows, 0u64..12, 0i64..3, tag, 0i64..10).prop_map(
        |(size, rows, deleted, partition, tag, modified_ms)| TestFile {
            rows,
            deleted: deleted.saturating_sub(6),
            partition,
            modified_ms,
            tags: tag.map(|key| (key, String::new())).into_iter().collect(),
            ..file("", size)
        },
    )
}

proptest! {
    /// What is promised is what OPTIMIZE then plans.
    #[test]
    fn the_prediction_is_the_plan(mut files in prop::collection::vec(any_file(), 0..40)) {
        for (place, file) in files.iter_mut().enumerate() {
            // Distinct sizes: equal ones are ordered by names, which the tally does not hold.
            file.size = file.size * 64 + place as u64;
            file.path = format!("f{place}");
        }
        let target = 500 * 64;
        let sizes = FileSizes { target_bytes: target, min_file_bytes: 800 * 64, ..FileSizes::default() };
        for file in &mut files {
            for (key, value) in &mut file.tags {
                *value = match *key {
                    LAYOUT_TAG => {
                        format!(r#"{{"v":1,"curve":"sort","columns":[["a"]],"run":"r","target":{target}}}"#)
                    }
                    _ => target.to_string(),
                };
            }
        }
        let options = HealthOptions { sizes, ..HealthOptions::default() };
        let facts = HealthFacts { files: tallied(&files, target), ..HealthFacts::default() };
        let report = diagnose(&state(&files), facts, &options, NOW_MS);
        let optimize = OptimizeOptions { sizes, ..OptimizeOptions::default() };
        let plan = compact::compact(&state(&files), &optimize, None).unwrap();
        prop_assert_eq!(report.sizes.optimize_inputs, plan.input_files() as u64);
        prop_assert_eq!(report.sizes.optimize_input_bytes, plan.input_bytes());
        let saved = plan.input_files() - plan.groups.len();
        prop_assert_eq!(report.sizes.files_after_optimize, (files.len() - saved) as u64);
        prop_assert_eq!(report.histogram.iter().map(|b| b.files).sum::<u64>(), report.files);
    }
}
