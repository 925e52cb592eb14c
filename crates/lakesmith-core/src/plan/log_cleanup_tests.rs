//! Cuts and plans over listings written by hand and made up.

use proptest::prelude::*;

use super::*;

const CUTOFF_MS: i64 = 100 * DAY_MS;
const NOW_MS: i64 = 130 * DAY_MS + 5;

fn file(role: LogRole, version: u64) -> LogFile {
    LogFile { name: format!("{version:020}-{role:?}"), role, version, size: 1, modified_ms: 1 }
}

fn commits(range: std::ops::RangeInclusive<u64>) -> Vec<LogFile> {
    range.map(|v| file(LogRole::Commit, v)).collect()
}

fn rules(cutoff_version: u64) -> LogCutRules {
    LogCutRules { cutoff_version: Some(cutoff_version), ..LogCutRules::default() }
}

fn plan(files: &[LogFile], cut: LogCut, referenced: Option<&BTreeSet<String>>) -> LogCleanupPlan {
    let input = LogCleanupInput { files, cutoff_ms: CUTOFF_MS, now_ms: NOW_MS, referenced_sidecars: referenced };
    plan_log_cleanup(&input, cut)
}

#[test]
fn nothing_goes_without_a_checkpoint_at_or_before_the_cut_off() {
    let mut files = commits(0..=12);
    files.push(file(LogRole::Checkpoint, 10));
    assert!(matches!(log_cut(&files, rules(5)), LogCut::Nothing(_)));
    assert_eq!(log_cut(&files, rules(10)), LogCut::Before(10));
    assert_eq!(log_cut(&files, rules(12)), LogCut::Before(10));
    assert!(matches!(log_cut(&files, LogCutRules::default()), LogCut::Nothing(_)));
    assert_eq!(log_cut(&files, LogCutRules { planned_checkpoint: Some(12), ..rules(12) }), LogCut::Before(12));
    assert!(matches!(log_cut(&files, LogCutRules { planned_checkpoint: Some(12), ..rules(9) }), LogCut::Nothing(_)));
}

#[test]
fn only_complete_checkpoints_with_their_commit_and_no_gap_behind_them_count() {
    let part = |version, part| file(LogRole::CheckpointPart { part, of: 2 }, version);
    let mut files = commits(0..=12);
    files.extend([part(8, 1), part(10, 1), part(10, 2)]);
    assert!(matches!(log_cut(&files, rules(9)), LogCut::Nothing(_)));
    assert_eq!(log_cut(&files, rules(11)), LogCut::Before(10));
    let without =
        |version: u64| files.iter().filter(move |f| f.role != LogRole::Commit || f.version != version).cloned();
    assert!(matches!(log_cut(&without(10).collect::<Vec<_>>(), rules(11)), LogCut::Nothing(_)));
    assert!(matches!(log_cut(&without(11).collect::<Vec<_>>(), rules(12)), LogCut::Nothing(_)));
    assert_eq!(log_cut(&without(3).collect::<Vec<_>>(), rules(11)), LogCut::Before(10));
    let empty = LogFile { size: 0, ..file(LogRole::Checkpoint, 12) };
    assert_eq!(log_cut(&[files.clone(), vec![empty]].concat(), rules(12)), LogCut::Before(10));
}

#[test]
fn protected_checkpoints_and_the_one_that_readers_are_pointed_to_stay() {
    let mut files = commits(0..=30);
    files.extend([10, 20, 30].map(|v| file(LogRole::Checkpoint, v)));
    assert_eq!(log_cut(&files, LogCutRules { protected_before: 20, ..rules(25) }), LogCut::Before(20));
    assert!(matches!(log_cut(&files, LogCutRules { protected_before: 21, ..rules(25) }), LogCut::Nothing(_)));
    assert_eq!(log_cut(&files, LogCutRules { pointed_to: Some(10), ..rules(25) }), LogCut::Before(10));
    assert_eq!(log_cut(&files, LogCutRules { pointed_to: Some(30), ..rules(25) }), LogCut::Before(20));
}

#[test]
fn each_kind_of_file_goes_or_stays_for_its_reason() {
    let named =
        |name: &str, role, version, modified_ms| LogFile { name: name.into(), role, version, size: 1, modified_ms };
    let old = |name: &str, role, version| named(name, role, version, 1);
    let files = [
        old("4.json", LogRole::Commit, 4),
        old("5.json", LogRole::Commit, 5),
        old("4.crc", LogRole::Checksum, 4),
        old("5.crc", LogRole::Checksum, 5),
        old(".4.json.crc", LogRole::HiddenChecksum, 4),
        old("4.checkpoint", LogRole::Checkpoint, 4),
        old("5.checkpoint", LogRole::Checkpoint, 5),
        old("5.7.compacted", LogRole::Compaction { last: 7 }, 5),
        old("6.8.compacted", LogRole::Compaction { last: 8 }, 6),
        old("_staged_commits/5", LogRole::Staged, 5),
        old("_staged_commits/6", LogRole::Staged, 6),
        old("_sidecars/used", LogRole::Sidecar, 0),
        old("_sidecars/unused", LogRole::Sidecar, 0),
        named("_sidecars/young", LogRole::Sidecar, 0, NOW_MS - DAY_MS),
        named("_sidecars/timeless", LogRole::Sidecar, 0, 0),
        named("stranger", LogRole::Unknown, 0, NOW_MS),
    ];
    let referenced = BTreeSet::from(["used".to_owned()]);
    let planned = plan(&files, LogCut::Before(5), Some(&referenced));
    let names: Vec<Vec<&str>> =
        planned.stages().iter().map(|stage| stage.iter().map(|f| f.name.as_str()).collect()).collect();
    assert_eq!(
        names,
        [
            vec!["4.json", "4.crc", ".4.json.crc", "5.7.compacted", "_staged_commits/5"],
            vec!["4.checkpoint"],
            vec!["_sidecars/unused"],
        ]
    );
    let reason = |path: &str| planned.kept().iter().find(|k| k.path == path).map(|k| k.reason.as_str());
    assert_eq!(reason("stranger"), Some("not a file of the log"));
    assert_eq!(reason("_sidecars/used"), Some("a checkpoint that stays refers to it"));
    assert_eq!(reason("5.json"), Some("needed by version 5 or a later one"));
    assert_eq!(reason("_sidecars/young"), None, "younger than the cut-off, so nothing to explain");
    assert!(plan(&files, LogCut::Before(5), None).stages()[2].is_empty());
    assert!(plan(&files, LogCut::Nothing("no".into()), Some(&referenced)).is_empty());
}

#[test]
fn the_cut_off_is_the_midnight_before() {
    assert_eq!(log_cutoff_ms(NOW_MS, 30 * DAY_MS), CUTOFF_MS);
    assert_eq!(log_cutoff_ms(5, 30 * DAY_MS), -30 * DAY_MS);
    assert_eq!(log_cutoff_ms(0, i64::MAX), midnight(-i64::MAX));
}

proptest! {
    /// A version that can be rebuilt from the listing can be rebuilt without any subset of what goes.
    #[test]
    fn what_was_current_at_the_cut_off_or_later_can_still_be_rebuilt(
        latest in 0u64..40,
        checkpoints in proptest::collection::btree_set(0u64..40, 0..6),
        cutoff_version in 0u64..40,
        pointed_to in proptest::option::of(0u64..40),
        missing in proptest::collection::btree_set(0u64..40, 0..3),
        gone in proptest::collection::vec(any::<bool>(), 120),
    ) {
        let mut files: Vec<LogFile> = commits(0..=latest).into_iter().filter(|f| !missing.contains(&f.version)).collect();
        files.extend(checkpoints.iter().filter(|v| **v <= latest).map(|v| file(LogRole::Checkpoint, *v)));
        files.extend((0..=latest).map(|v| file(LogRole::Checksum, v)));
        let cutoff_version = cutoff_version.min(latest);
        let cut = log_cut(&files, LogCutRules { pointed_to, ..rules(cutoff_version) });
        let planned = plan(&files, cut, None);
        let deleted: BTreeSet<&str> =
            planned.expired().zip(gone.iter().cycle()).filter(|(_, gone)| **gone).map(|(f, _)| f.name.as_str()).collect();
        let left: Vec<LogFile> = files.iter().filter(|f| !deleted.contains(f.name.as_str())).cloned().collect();
        for version in cutoff_version..=latest {
            prop_assert!(!rebuilds(&files, version) || rebuilds(&left, version), "version {version}");
        }
    }
}

/// True if the version has a checkpoint at or before it, or version 0, and every commit from there on.
fn rebuilds(files: &[LogFile], version: u64) -> bool {
    let has = |v: u64| files.iter().any(|f| f.role == LogRole::Commit && f.version == v);
    match complete_checkpoints(files).range(..=version).next_back() {
        Some(start) => (start + 1..=version).all(has),
        None => (0..=version).all(has),
    }
}
