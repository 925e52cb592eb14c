use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::layout::Curve;
use crate::op::FileSizes;
use crate::plan::compact::tests::{TestFile, file};
use crate::plan::keys::tests::field;
use crate::table::{DataType, Schema};

fn state(files: &[TestFile]) -> TableState {
    let mut state = crate::plan::compact::tests::state(files);
    let inner = vec![field("x", DataType::Long)];
    state.schema = Schema {
        fields: vec![
            field("p", DataType::Long),
            field("a", DataType::Long),
            field("B", DataType::String),
            field("s", DataType::Struct(inner)),
            field("s.x", DataType::Date),
            field("list", DataType::List(Box::new(field("element", DataType::Long)))),
            field("note", DataType::String),
        ],
    };
    state
}

fn leaves() -> Vec<Vec<String>> {
    let leaf = |parts: &[&str]| parts.iter().map(|p| format!("col-{p}")).collect();
    vec![leaf(&["a"]), leaf(&["B"]), leaf(&["s", "x"]), leaf(&["s.x"]), leaf(&["list"])]
}

fn options(columns: &[&[&str]], target_bytes: u64) -> OptimizeOptions {
    let columns = columns.iter().map(|c| c.iter().map(|p| p.to_string()).collect()).collect();
    OptimizeOptions {
        order_by: Some(OrderBy { curve: Curve::Zorder, columns }),
        sizes: FileSizes { target_bytes, ..Default::default() },
        ..Default::default()
    }
}

fn plan(state: &TableState, options: &OptimizeOptions) -> RewritePlan {
    order(state, options, None, &leaves(), "r1").unwrap()
}

fn refusal(columns: &[&[&str]]) -> (String, String) {
    let error = order(&state(&[file("f", 1)]), &options(columns, 100), None, &leaves(), "r").unwrap_err();
    (error.class_name().to_string(), error.message().to_string())
}

/// The table after a run of `plan` whose outputs are `percent` of their inputs' size.
fn after(files: &[TestFile], plan: &RewritePlan, percent: u64) -> Vec<TestFile> {
    let rewritten: Vec<FileId> = plan.groups.iter().flat_map(|g| g.files.clone()).collect();
    let mut after: Vec<TestFile> = Vec::new();
    for (i, f) in files.iter().enumerate() {
        if !rewritten.contains(&FileId(i as u32)) {
            after.push(f.clone());
        }
    }
    for (i, group) in plan.groups.iter().enumerate() {
        let order = group.order.as_ref().unwrap();
        for part in 0..order.files {
            after.push(TestFile {
                partition: files[group.files[0].0 as usize].partition,
                tags: vec![(LAYOUT_TAG, group.marks.tag(LAYOUT_TAG).unwrap().to_string())],
                ..file(&format!("out{i}-{part}"), (group.bytes / order.files * percent / 100).max(1))
            });
        }
    }
    after
}

#[test]
fn each_partition_is_one_group_cut_by_its_bytes_into_files() {
    let files = [file("b", 150), file("a", 120), TestFile { partition: -1, ..file("lone", 30) }];
    let state = state(&files);
    let plan = plan(&state, &options(&[&["A"], &["b"], &["a"]], 100));
    let shown: Vec<(Vec<&str>, u64, u64)> = plan
        .groups
        .iter()
        .map(|g| (g.files.iter().map(|f| state.files.get(*f).path).collect(), g.bytes, g.order.as_ref().unwrap().files))
        .collect();
    assert_eq!(shown, [(vec!["lone"], 30, 1), (vec!["a", "b"], 270, 2)]);
    let keys: Vec<(&[String], &[String])> =
        plan.groups[0].order.as_ref().unwrap().keys.iter().map(|k| (&k.path[..], &k.name[..])).collect();
    assert_eq!(keys, [(&["col-a".to_string()][..], &["a".to_string()][..]), (&["col-B".into()], &["B".into()])]);
    let tag = r#"{"v":1,"curve":"zorder","columns":[["col-a"],["col-B"]],"run":"r1","target":100}"#;
    assert_eq!(plan.groups[0].marks.tag(LAYOUT_TAG), Some(tag));
    assert_eq!(plan.considered_files, 3);
}

#[test]
fn columns_are_refused_with_sparks_classes_and_words_and_in_its_order() {
    let exists = "Z-Ordering column nope does not exist in data schema.";
    assert_eq!(refusal(&[&["note"], &["nope"]]), ("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST".into(), exists.into()));
    let partition = "P is a partition column. Z-Ordering can only be performed on data columns";
    assert_eq!(
        refusal(&[&["note"], &["P"], &["nope"]]),
        ("DELTA_ZORDERING_ON_PARTITION_COLUMN".into(), partition.into())
    );
    let (class, message) = refusal(&[&["note"], &["a"], &["Note"]]);
    assert_eq!(class, "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS");
    assert_eq!(
        message,
        "Z-Ordering on [note, Note] will be ineffective, because we currently do not collect stats for these columns. You \
         can disable this check by setting\n SET spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled = false"
    );
    let unchecked = OptimizeOptions { stats_check: false, ..options(&[&["note"]], 100) };
    assert_eq!(plan(&state(&[file("f", 1)]), &unchecked).groups.len(), 1);
    assert_eq!(refusal(&[&["list"]]).0, "UNSUPPORTED");
    assert_eq!(refusal(&[&["s"]]).0, "UNSUPPORTED");
}

#[test]
fn nested_fields_and_names_with_dots_are_told_apart() {
    let keys = |columns: &[&[&str]]| {
        let plan = plan(&state(&[file("f", 1)]), &options(columns, 100));
        plan.groups[0].order.as_ref().unwrap().keys.iter().map(|k| k.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[&["s", "x"], &["s.x"]]), [vec!["col-s".to_string(), "col-x".into()], vec!["col-s.x".into()]]);
}

#[test]
fn a_clustered_table_and_a_budget_are_refused() {
    let mut clustered = state(&[]);
    clustered.features = vec!["clustering".into()];
    let error = order(&clustered, &options(&[&["s.x"], &["a"]], 1), None, &leaves(), "r").unwrap_err();
    assert_eq!(error.class_name(), "DELTA_CLUSTERING_WITH_ZORDER_BY");
    assert!(error.message().ends_with("Please remove ZORDER BY (`s.x`, a)."));
    let budget = OptimizeOptions { budget_bytes: Some(1), ..options(&[&["a"]], 1) };
    assert_eq!(order(&state(&[]), &budget, None, &leaves(), "r").unwrap_err().kind(), ErrorKind::Usage);
    let full = OptimizeOptions { full: true, ..options(&[&["a"]], 1) };
    let error = order(&state(&[]), &full, None, &leaves(), "r").unwrap_err();
    assert_eq!(error.class_name(), "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED");
}

#[test]
fn another_order_target_newcomer_or_too_many_deleted_rows_bring_a_partition_back() {
    let files = [file("a", 150), file("b", 120)];
    let wanted = options(&[&["a"], &["B"]], 100);
    let ordered = after(&files, &plan(&state(&files), &wanted), 100);
    let groups = |files: &[TestFile], options: &OptimizeOptions| plan(&state(files), options).groups.len();
    assert_eq!(groups(&ordered, &wanted), 0);
    assert_eq!(groups(&ordered, &options(&[&["B"], &["a"]], 100)), 1);
    assert_eq!(groups(&ordered, &options(&[&["a"], &["B"]], 101)), 1);
    assert_eq!(groups(&ordered, &OptimizeOptions { force: true, ..wanted.clone() }), 1);
    let spark = OptimizeOptions { compat: Compat::Spark, ..wanted.clone() };
    let by_spark = plan(&state(&ordered), &spark);
    assert_eq!((by_spark.groups.len(), &by_spark.groups[0].marks), (1, &FileMarks::default()));
    let with = |f: TestFile| ordered.iter().cloned().chain([f]).collect::<Vec<_>>();
    assert_eq!(groups(&with(file("new", 1)), &wanted), 1);
    let mut deleted = ordered.clone();
    deleted[0].deleted = 5;
    assert_eq!(groups(&deleted, &wanted), 0);
    deleted[0].deleted = 6;
    assert_eq!(groups(&deleted, &wanted), 1);
}

#[test]
fn a_layout_of_a_newer_version_is_left_alone_and_named_unless_forced() {
    let newer = TestFile { tags: vec![(LAYOUT_TAG, r#"{"v":2}"#.into())], ..file("newer", 10) };
    let state = state(&[file("a", 10), newer]);
    let wanted = options(&[&["a"]], 100);
    let careful = plan(&state, &wanted);
    assert_eq!((careful.groups[0].files.clone(), careful.unknown_layouts), (vec![FileId(0)], vec![FileId(1)]));
    let forced = plan(&state, &OptimizeOptions { force: true, ..wanted });
    assert_eq!((forced.groups[0].files.len(), forced.unknown_layouts.len()), (2, 0));
}

proptest! {
    #[test]
    fn a_second_run_does_nothing_whatever_the_outputs_shrink_to(
        sizes in prop::collection::vec((1u64..500, 0i64..3, 0u64..20), 0..30), percent in 10u64..=100,
    ) {
        let files: Vec<TestFile> = sizes.iter().enumerate()
            .map(|(i, (size, partition, deleted))| TestFile { partition: *partition, deleted: *deleted, ..file(&format!("f{i}"), *size) })
            .collect();
        let wanted = options(&[&["a"]], 100);
        let first = plan(&state(&files), &wanted);
        prop_assert_eq!(first.input_files(), files.len());
        prop_assert!(plan(&state(&after(&files, &first, percent)), &wanted).groups.is_empty());
        let mut reversed = files.clone();
        reversed.reverse();
        let paths = |files: &[TestFile]| {
            let state = state(files);
            plan(&state, &wanted).groups.iter()
                .map(|g| g.files.iter().map(|f| state.files.get(*f).path.to_string()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(paths(&files), paths(&reversed));
    }
}
