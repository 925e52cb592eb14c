use proptest::prelude::*;

use super::*;
use crate::layout::tag::LAYOUT_TAG;
use crate::op::{CubeSizes, FileSizes, OptimizeMetrics};
use crate::plan::compact::tests::{TestFile, file};
use crate::plan::keys::tests::field;
use crate::plan::{AddedFile, GroupResult, MetricsInput, optimize_metrics};
use crate::table::{DataType, Schema};

fn state(files: &[TestFile]) -> TableState {
    let mut state = crate::plan::compact::tests::state(files);
    let inner = vec![field("b c", DataType::String)];
    state.schema = Schema { fields: vec![field("a", DataType::Long), field("s", DataType::Struct(inner))] };
    state.partition_columns.clear();
    state.features = vec!["clustering".into(), "domainMetadata".into()];
    state.clustering_columns = Some(vec![vec!["a".into()], vec!["s".into(), "b c".into()]]);
    state
}

const KEYS: &str = r#"["a","s.`b c`"]"#;

fn in_cube(path: &str, size: u64, id: &str) -> TestFile {
    let tags = vec![(ZCUBE_TAG, id.to_string()), (ZCUBE_KEYS_TAG, KEYS.to_string())];
    TestFile { tags, provider: Some(PROVIDER), ..file(path, size) }
}

fn on_other_keys(path: &str, size: u64, id: &str) -> TestFile {
    let tags = vec![(ZCUBE_TAG, id.to_string()), (ZCUBE_KEYS_TAG, r#"["s.`b c`","a"]"#.to_string())];
    TestFile { tags, ..in_cube(path, size, id) }
}

fn options() -> OptimizeOptions {
    OptimizeOptions {
        sizes: FileSizes { target_bytes: 40, ..Default::default() },
        cubes: CubeSizes { min_bytes: 100, target_bytes: 150 },
        ..Default::default()
    }
}

fn full() -> OptimizeOptions {
    OptimizeOptions { full: true, ..options() }
}

fn plan(state: &TableState, options: &OptimizeOptions) -> RewritePlan {
    let mut next = 0;
    let mut name = || {
        next += 1;
        format!("new{next}")
    };
    cluster(state, options, "r1", &mut name).unwrap()
}

fn paths(files: &[TestFile], options: &OptimizeOptions) -> Vec<Vec<String>> {
    let state = state(files);
    let plan = plan(&state, options);
    plan.groups.iter().map(|g| g.files.iter().map(|f| state.files.get(*f).path.to_string()).collect()).collect()
}

#[test]
fn outputs_form_a_cube_on_the_logical_keys_along_hilberts_curve() {
    let state = state(&[file("b", 50), file("a", 40)]);
    let plan = plan(&state, &options());
    let group = &plan.groups[0];
    assert_eq!((plan.groups.len(), group.files.clone(), group.bytes), (1, vec![FileId(1), FileId(0)], 90));
    assert_eq!(group.marks.clustering_provider.as_deref(), Some("liquid"));
    assert_eq!(group.marks.tag("ZCUBE_ID"), Some("new1"));
    assert_eq!(group.marks.tag("ZCUBE_ZORDER_BY"), Some(KEYS));
    let layout = r#"{"v":1,"curve":"hilbert","columns":[["col-a"],["col-s","col-b c"]],"run":"r1","target":40}"#;
    assert_eq!(group.marks.tag(LAYOUT_TAG), Some(layout));
    assert_eq!(group.order.as_ref().unwrap().files, 2);
    let spark = OptimizeOptions { compat: Compat::Spark, ..options() };
    assert_eq!(self::plan(&state, &spark).groups[0].marks.tag(LAYOUT_TAG), None);
}

#[test]
fn a_single_cube_is_left_alone_and_a_newcomer_brings_it_back() {
    let cube = [in_cube("a", 30, "c"), in_cube("b", 30, "c")];
    assert!(paths(&cube, &options()).is_empty());
    assert!(paths(&cube, &full()).is_empty());
    let [a, b] = cube;
    assert_eq!(paths(&[a.clone(), b.clone(), file("n", 5)], &options()), [["n", "a", "b"]]);
    assert_eq!(paths(&[a.clone(), b, in_cube("other", 5, "d")], &options()), [["a", "b", "other"]]);
    assert_eq!(paths(&[a], &OptimizeOptions { force: true, ..options() }), [["a"]]);
}

#[test]
fn large_cubes_are_finished_by_their_live_bytes() {
    let large = [in_cube("a", 60, "c"), in_cube("b", 40, "c")];
    let with = |extra: TestFile| [large[0].clone(), large[1].clone(), extra];
    assert_eq!(paths(&with(file("n", 5)), &options()), [["n"]]);
    assert!(paths(&with(in_cube("small", 5, "d")), &options()).is_empty());
    assert!(paths(&large, &full()).is_empty());
    let shrunk = [TestFile { deleted: 10, ..large[0].clone() }, large[1].clone(), file("n", 5)];
    assert_eq!(paths(&shrunk, &options()), [["n", "b", "a"]]);
}

#[test]
fn cubes_on_other_keys_and_of_other_providers_are_left_to_full() {
    let theirs = TestFile { provider: Some("theirs"), ..file("theirs", 7) };
    let files = [on_other_keys("old", 120, "o"), file("n", 5), theirs, in_cube("a", 30, "c"), in_cube("big", 110, "d")];
    assert_eq!(paths(&files, &options()), [["n", "a"]]);
    assert_eq!(paths(&files, &full()), [vec!["n", "a", "theirs"], vec!["old"]]);
    // Without one of the two tags a file is in no cube.
    let half = TestFile { tags: vec![(ZCUBE_TAG, "h".into())], ..file("half", 3) };
    assert_eq!(paths(&[half], &options()), [["half"]]);
    let odd = TestFile { tags: vec![(ZCUBE_TAG, "h".into()), (ZCUBE_KEYS_TAG, "{".into())], ..file("odd", 3) };
    assert!(paths(&[odd], &options()).is_empty());
}

#[test]
fn bins_are_cut_next_fit_by_the_larger_of_the_two_sizes() {
    let files = [file("a", 60), file("b", 80), in_cube("c", 20, "c"), in_cube("d", 90, "d")];
    assert_eq!(paths(&files, &options()), [vec!["a", "b"], vec!["c", "d"]]);
    let larger = OptimizeOptions { cubes: CubeSizes { min_bytes: 250, target_bytes: 150 }, ..options() };
    assert_eq!(paths(&files, &larger), [["a", "b", "c", "d"]]);
}

fn by_run(path: &str, size: u64, id: &str, run: &str) -> TestFile {
    let mut file = in_cube(path, size, id);
    let layout =
        format!(r#"{{"v":1,"curve":"hilbert","columns":[["col-a"],["col-s","col-b c"]],"run":"{run}","target":40}}"#);
    file.tags.push((LAYOUT_TAG, layout));
    file
}

#[test]
fn small_cubes_of_one_run_are_finished_but_for_spark() {
    let files = [by_run("a", 20, "c", "r"), by_run("b", 20, "d", "r")];
    assert!(paths(&files, &options()).is_empty());
    assert_eq!(paths(&files, &OptimizeOptions { compat: Compat::Spark, ..options() }), [["a", "b"]]);
    assert_eq!(paths(&[files[0].clone(), by_run("b", 20, "d", "s")], &options()), [["a", "b"]]);
}

#[test]
fn full_redoes_a_cube_of_several_runs_however_large() {
    let files = [by_run("a", 120, "c", "r"), by_run("b", 20, "c", "s"), by_run("x", 110, "d", "r")];
    assert!(paths(&files, &options()).is_empty());
    assert_eq!(paths(&files, &full()), [["b", "a"]]);
    assert!(paths(&files, &OptimizeOptions { compat: Compat::Spark, ..full() }).is_empty());
}

fn metrics(state: &TableState, options: &OptimizeOptions) -> OptimizeMetrics {
    let plan = plan(state, options);
    let done: Vec<GroupResult> = plan
        .groups
        .iter()
        .map(|g| GroupResult {
            removed: g.files.clone(),
            added: vec![AddedFile { size: g.bytes, ..Default::default() }],
        })
        .collect();
    optimize_metrics(&MetricsInput {
        state,
        done: &done,
        planned_groups: plan.groups.len() as u64,
        batches: 1,
        considered_files: plan.considered_files,
        parallelism: 1,
        start_time_ms: 0,
        end_time_ms: 0,
        indexed_columns: 32,
        compat: options.compat,
        mode: Some(Mode::Clustering),
        full: options.full,
    })
}

#[test]
fn metrics_count_cubes_on_the_current_keys_and_for_full_all_of_them() {
    let files = [on_other_keys("old", 120, "o"), file("n", 5), in_cube("a", 30, "c"), in_cube("big", 110, "d")];
    let state = state(&files);
    let shown = |m: &OptimizeMetrics| {
        let s = m.clustering_stats.clone().unwrap();
        let pair = |c: &crate::op::optimize::CountAndSize| (c.num_files, c.size);
        (
            [pair(&s.input_z_cube_files), pair(&s.input_other_files), pair(&s.merged_files)],
            [s.input_num_z_cubes, s.num_output_z_cubes, m.total_considered_files, m.total_files_skipped],
        )
    };
    assert_eq!(shown(&metrics(&state, &options())), ([(2, 140), (2, 125), (2, 35)], [2, 1, 4, 2]));
    assert_eq!(shown(&metrics(&state, &full())), ([(3, 260), (1, 5), (3, 155)], [3, 2, 4, 1]));
}

#[test]
fn a_key_that_the_schema_lacks_is_corrupt_and_named() {
    let mut state = state(&[file("a", 1)]);
    state.clustering_columns = Some(vec![vec!["gone".into()]]);
    let error = cluster(&state, &options(), "r", &mut || String::new()).unwrap_err();
    assert_eq!((error.class_name(), error.context_value("column")), ("CORRUPT", Some("gone")));
}

fn any_files() -> impl Strategy<Value = Vec<TestFile>> {
    prop::collection::vec((1u64..80, 0usize..6, 0u64..30), 0..30).prop_map(|rows| {
        let files = rows.into_iter().enumerate().map(|(i, (size, kind, deleted))| {
            let path = format!("f{i}");
            let file = match kind {
                0 | 1 => file(&path, size),
                2 => on_other_keys(&path, size, "o"),
                3 => by_run(&path, size, "r", "r"),
                kind => in_cube(&path, size, &format!("c{kind}")),
            };
            TestFile { deleted, ..file }
        });
        files.collect()
    })
}

proptest! {
    #[test]
    fn a_second_run_does_nothing_whatever_the_outputs_shrink_to(
        files in any_files(), percent in 10u64..=100, is_full in any::<bool>(),
    ) {
        let options = OptimizeOptions { full: is_full, ..options() };
        let before = state(&files);
        let first = plan(&before, &options);
        let rewritten: BTreeSet<FileId> = first.groups.iter().flat_map(|g| g.files.clone()).collect();
        let mut after: Vec<TestFile> = files.iter().enumerate()
            .filter(|(i, _)| !rewritten.contains(&FileId(*i as u32))).map(|(_, f)| f.clone()).collect();
        for (i, group) in first.groups.iter().enumerate() {
            let parts = group.order.as_ref().unwrap().files;
            for part in 0..parts {
                let path = format!("out{i}-{part}");
                after.push(by_run(&path, (group.bytes / parts * percent / 100).max(1), group.marks.tag(ZCUBE_TAG).unwrap(), "r1"));
            }
        }
        prop_assert!(plan(&state(&after), &options).groups.is_empty());
        let mut reversed = files.clone();
        reversed.reverse();
        prop_assert_eq!(paths(&files, &options), paths(&reversed, &options));
    }
}
