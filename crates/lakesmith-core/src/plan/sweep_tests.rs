use proptest::prelude::*;

use super::*;

const NOW: i64 = 2_000_000_000_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn retention(hours: i64, no_writers: bool) -> Retention {
    Retention::of(RetentionRequest {
        specified_ms: Some(hours * HOUR),
        table_ms: 7 * DAY,
        check: false,
        no_writers,
        now_ms: NOW,
    })
    .unwrap()
}

fn below(path: &str) -> LoggedPath<'_> {
    LoggedPath::Below { path, as_stored: None, absolute: false }
}

fn rule(retention: Retention, build: impl FnOnce(&mut ReferencesBuilder)) -> SweepRule {
    let mut references = ReferencesBuilder::default();
    build(&mut references);
    SweepRule::unreferenced(retention, references.complete(), NameRule::new(&["_p".to_string()], false))
}

fn file(path: &str, age_ms: i64) -> Found<'_> {
    Found { path, kind: FoundKind::File { modified_ms: Some(NOW - age_ms) } }
}

fn judge(rule: &SweepRule, found: Found<'_>) -> Verdict {
    rule.judge(&found, &Guards::default())
}

#[test]
fn a_short_retention_is_refused_unless_the_check_is_off() {
    let request = |specified_ms, check| RetentionRequest {
        specified_ms,
        table_ms: 7 * DAY,
        check,
        no_writers: false,
        now_ms: NOW,
    };
    let error = Retention::of(request(Some(0), true)).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT");
    assert_eq!((error.kind().exit_code(), error.context_value("required_hours")), (3, Some("168")));
    let error = Retention::of(request(Some(-1), false)).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE");
    assert_eq!(Retention::of(request(Some(0), false)).unwrap().cutoff_ms(), NOW);
    assert_eq!(Retention::of(request(Some(7 * DAY), true)).unwrap().cutoff_ms(), NOW - 7 * DAY);
    assert_eq!(Retention::of(request(None, true)).unwrap().cutoff_ms(), NOW - 7 * DAY);
}

#[test]
fn unknown_files_wait_for_a_day_whatever_the_retention() {
    let careful = rule(retention(0, false), |_| {});
    assert_eq!(judge(&careful, file("a", 23 * HOUR)), Verdict::Keep(KeepReason::TooYoung));
    assert_eq!(judge(&careful, file("a", 25 * HOUR)), Verdict::Delete(SweepReason::Unreferenced));
    let alone = rule(retention(0, true), |_| {});
    assert_eq!(judge(&alone, file("a", 1)), Verdict::Delete(SweepReason::Unreferenced));
    assert_eq!(judge(&alone, file("a", 0)), Verdict::Keep(KeepReason::TooYoung));
    let long = rule(retention(48, false), |_| {});
    assert_eq!(judge(&long, file("a", 47 * HOUR)), Verdict::Keep(KeepReason::TooYoung));
}

#[test]
fn removed_files_follow_the_log_and_not_their_age() {
    let rule = rule(retention(168, false), |r| {
        r.removed(below("gone"));
        r.retained(below("travel"));
    });
    assert_eq!(judge(&rule, file("gone", 1)), Verdict::Delete(SweepReason::Removed));
    assert_eq!(judge(&rule, file("travel", 400 * DAY)), Verdict::Keep(KeepReason::WithinRetention));
}

#[test]
fn what_a_link_in_the_table_leads_to_stays() {
    let rule = rule(retention(0, true), |_| {});
    let mut guards = Guards::default();
    guards.note_link("real");
    let judge = |path| rule.judge(&Found { path, kind: file(path, 400 * DAY).kind }, &guards);
    assert_eq!(judge("real/part-0.parquet"), Verdict::Keep(KeepReason::Linked));
    assert_eq!(judge("really"), Verdict::Delete(SweepReason::Unreferenced));
}

#[test]
fn a_file_without_a_time_stays() {
    let rule = rule(retention(0, true), |_| {});
    for modified_ms in [None, Some(0), Some(-5)] {
        let found = Found { path: "a", kind: FoundKind::File { modified_ms } };
        assert_eq!(judge(&rule, found), Verdict::Keep(KeepReason::NoModificationTime));
    }
}

#[test]
fn references_protect_both_readings_of_a_path_and_the_folders_above() {
    let rule = rule(retention(0, true), |r| {
        r.live(LoggedPath::Below { path: "p=a/x/f", as_stored: Some("p=a%2Fx/f"), absolute: false });
    });
    for path in ["p=a/x/f", "p=a%2Fx/f"] {
        assert_eq!(judge(&rule, file(path, 9 * DAY)), Verdict::Ignore);
    }
    for path in ["p=a", "p=a/x", "p=a%2Fx"] {
        let found = Found { path, kind: FoundKind::Folder { empty: true } };
        assert_eq!(judge(&rule, found), Verdict::Ignore, "{path}");
    }
}

#[test]
fn absolute_paths_are_never_candidates() {
    let rule = rule(retention(0, true), |r| {
        r.live(LoggedPath::Elsewhere { file_name: "shared.parquet" });
        r.removed(LoggedPath::Below { path: "own.parquet", as_stored: None, absolute: true });
    });
    for path in ["sub/shared.parquet", "own.parquet"] {
        assert_eq!(judge(&rule, file(path, 9 * DAY)), Verdict::Keep(KeepReason::ReferencedElsewhere));
    }
}

#[test]
fn hidden_names_are_left_alone_as_spark_leaves_them() {
    let rule = rule(retention(0, true), |_| {});
    for hidden in ["_x", ".x", "a/_x/b", "_delta_log/0.json", "_q=1/f", "_lakesmith/condemned/r", ".p=1/f"] {
        assert_eq!(judge(&rule, file(hidden, 9 * DAY)), Verdict::Ignore, "{hidden}");
    }
    for swept in ["_change_data/c", "_delta_index/i", "_p=1/f", "a b/c", "k=1/f", "metadata/f"] {
        assert_eq!(judge(&rule, file(swept, 9 * DAY)), Verdict::Delete(SweepReason::Unreferenced), "{swept}");
    }
    assert!(NameRule::new(&[], true).hides("metadata/f"));
}

#[test]
fn tables_below_the_root_are_found_by_their_marks() {
    let rule = rule(retention(0, true), |_| {});
    let mut guards = Guards::default();
    for path in [
        "a/_delta_log/0.json",
        "b/c/metadata/v1.metadata.json",
        "d/.hoodie",
        "metadata/v2.gz.metadata.json",
        "e/metadata/x",
    ] {
        guards.note(path);
    }
    for (path, reason) in [
        ("a/f", KeepReason::ForeignTable),
        ("a", KeepReason::ForeignTable),
        ("a/k=1/f", KeepReason::ForeignTable),
        ("b/c/data/f", KeepReason::ForeignTable),
        ("d/f", KeepReason::ForeignTable),
        ("metadata/snap.avro", KeepReason::IcebergMetadata),
    ] {
        assert_eq!(rule.judge(&file(path, 9 * DAY), &guards), Verdict::Keep(reason), "{path}");
    }
    for path in ["ab/f", "b/f", "b/cc/f", "e/metadata/x", "metadata2"] {
        assert_eq!(rule.judge(&file(path, 9 * DAY), &guards), Verdict::Delete(SweepReason::Unreferenced), "{path}");
    }
    let mut own = Guards::default();
    own.note("_delta_log/0.json");
    assert!(own.is_empty());
}

#[test]
fn only_paths_straight_down_are_judged() {
    let rule = rule(retention(0, true), |_| {});
    for path in ["", "..", "../f", "a/../f", "a//f", "/f", "f/", "./f"] {
        assert_eq!(judge(&rule, file(path, 9 * DAY)), Verdict::Ignore, "{path}");
    }
}

#[derive(Debug, Clone)]
struct Logged {
    path: String,
    /// 0 live, 1 retained, 2 removed.
    role: u8,
    absolute: bool,
    elsewhere: bool,
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_string()),
        Just("b".to_string()),
        Just("_h".to_string()),
        Just("_p=1".to_string()),
        Just("k=%2F".to_string()),
        Just("_delta_log".to_string()),
        Just("metadata".to_string()),
        Just("x.metadata.json".to_string()),
        Just("..".to_string()),
        "[a-c]{1,2}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(segment(), 1..4).prop_map(|segments| segments.join("/"))
}

fn logged() -> impl Strategy<Value = Logged> {
    (path(), 0u8..3, any::<bool>(), any::<bool>()).prop_map(|(path, role, absolute, elsewhere)| Logged {
        path,
        role,
        absolute,
        elsewhere,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Nothing live, kept for time travel, young and unknown, hidden, foreign or outside the root is ever a candidate.
    #[test]
    fn only_the_superfluous_is_a_candidate(
        log in prop::collection::vec(logged(), 0..12),
        listing in prop::collection::vec((path(), prop::option::of(0i64..12 * DAY), any::<bool>()), 1..30),
        hours in 0i64..240,
        no_writers in any::<bool>(),
        shuffle in any::<u64>(),
    ) {
        let build = |log: &[Logged]| rule(retention(hours, no_writers), |r| {
            for entry in log {
                let path = if entry.elsewhere {
                    LoggedPath::Elsewhere { file_name: entry.path.rsplit('/').next().unwrap() }
                } else {
                    LoggedPath::Below { path: &entry.path, as_stored: None, absolute: entry.absolute }
                };
                match entry.role {
                    0 => r.live(path),
                    1 => r.retained(path),
                    _ => r.removed(path),
                }
            }
        });
        let sweep = build(&log);
        let mut guards = Guards::default();
        listing.iter().for_each(|(path, ..)| guards.note(path));
        let mut other_order = log.clone();
        let length = other_order.len().max(1);
        other_order.rotate_left(shuffle as usize % length);
        let again = build(&other_order);
        let name = |path: &str| path.rsplit('/').next().unwrap().to_string();
        for (path, age, folder) in &listing {
            let kind = if *folder {
                FoundKind::Folder { empty: true }
            } else {
                FoundKind::File { modified_ms: age.map(|age| NOW - age) }
            };
            let verdict = sweep.judge(&Found { path, kind }, &guards);
            prop_assert_eq!(verdict, again.judge(&Found { path, kind }, &guards));
            let Verdict::Delete(reason) = verdict else { continue };
            for entry in log.iter().filter(|e| e.role < 2) {
                if entry.elsewhere {
                    prop_assert!(*folder || name(path) != name(&entry.path));
                } else {
                    let below = format!("{path}/");
                    prop_assert!(path != &entry.path && !entry.path.starts_with(&below));
                }
            }
            prop_assert!(!path.split('/').any(|s| s == ".." || s == "_h" || s == "_delta_log"));
            prop_assert!(guards.covers(path).is_none());
            match reason {
                SweepReason::EmptyFolder => prop_assert!(*folder),
                SweepReason::Removed => prop_assert!(log.iter().any(|e| e.role == 2 && &e.path == path && !e.elsewhere)),
                SweepReason::Unreferenced => {
                    let age = age.unwrap();
                    prop_assert!(age > hours * HOUR && (no_writers || age > DAY));
                }
            }
        }
    }
}
