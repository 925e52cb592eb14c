use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::layout::Curve;
use crate::layout::tag::LAYOUT_TAG;
use crate::op::OrderBy;
use crate::plan::RewritePlan;
use crate::table::{DeleteInfo, FileTableBuilder, NewRow, PartitionTuple, Scalar, Schema, vector::VectorLocation};

#[derive(Debug, Clone)]
pub(crate) struct TestFile {
    pub path: String,
    pub size: u64,
    pub rows: Option<u64>,
    pub deleted: u64,
    pub partition: i64,
    pub modified_ms: i64,
    pub tags: Vec<(&'static str, String)>,
    pub provider: Option<&'static str>,
}

pub(crate) fn file(path: &str, size: u64) -> TestFile {
    TestFile {
        path: path.into(),
        size,
        rows: Some(100),
        deleted: 0,
        partition: 0,
        modified_ms: 0,
        tags: vec![],
        provider: None,
    }
}

pub(crate) fn state(files: &[TestFile]) -> TableState {
    let mut builder = FileTableBuilder::new(false);
    for f in files {
        let partition_index = builder.partition(PartitionTuple {
            raw: vec![Some(f.partition.to_string())],
            values: vec![Scalar::Long(f.partition)],
        });
        let marks_index = builder.marks(FileMarks {
            tags: f.tags.iter().map(|(k, v)| (k.to_string(), Some(v.clone()))).collect(),
            clustering_provider: f.provider.map(str::to_owned),
        });
        let deletes = (f.deleted > 0).then(|| DeleteInfo {
            unique_id: format!("u{}", f.path),
            storage_type: "i".into(),
            path_or_inline: String::new(),
            offset: None,
            size_in_bytes: 0,
            cardinality: f.deleted,
            at: VectorLocation::Inline(vec![]),
        });
        builder.push(
            NewRow {
                path: &f.path,
                size: f.size,
                rows: f.rows,
                modified_ms: f.modified_ms,
                partition_index,
                marks_index,
                base_row_id: None,
                row_commit_version: None,
                stats_json: None,
            },
            deletes,
        );
    }
    TableState {
        location: "memory:///t".into(),
        version: 1,
        timestamp_ms: 0,
        id: "id".into(),
        name: None,
        description: None,
        created_ms: None,
        schema: Schema::default(),
        partition_columns: vec!["p".into()],
        clustering_columns: None,
        properties: Default::default(),
        features: vec![],
        min_reader_version: 1,
        min_writer_version: 2,
        files: builder.finish(),
    }
}

fn options(target: u64, compat: Compat) -> OptimizeOptions {
    OptimizeOptions { sizes: FileSizes { target_bytes: target, ..Default::default() }, compat, ..Default::default() }
}

fn paths(state: &TableState, plan: &RewritePlan) -> Vec<Vec<String>> {
    plan.groups.iter().map(|g| g.files.iter().map(|f| state.files.get(*f).path.to_string()).collect()).collect()
}

#[test]
fn bins_are_cut_next_fit_in_ascending_size_within_a_partition() {
    let mut files = vec![file("a", 60), file("b", 10), file("c", 50), file("d", 45), file("e", 5)];
    files[4].partition = 7;
    let state = state(&files);
    let plan = compact(&state, &options(100, Compat::Spark), None).unwrap();
    assert_eq!(paths(&state, &plan), vec![vec!["b".to_string(), "d".into()],]);
    assert_eq!(plan.considered_files, 5);
}

#[test]
fn a_file_of_exactly_the_minimum_size_is_no_candidate() {
    let mut o = options(1000, Compat::Spark);
    o.sizes.min_file_bytes = 50;
    let state = state(&[file("a", 50), file("b", 49), file("c", 49)]);
    let plan = compact(&state, &o, None).unwrap();
    assert_eq!(paths(&state, &plan), vec![vec!["b".to_string(), "c".into()]]);
}

#[test]
fn a_lone_file_above_the_deleted_rows_ratio_is_rewritten_by_default_and_left_by_spark() {
    let at_ratio = TestFile { deleted: 5, ..file("at", 10) };
    let above = TestFile { deleted: 6, partition: 1, ..file("above", 10) };
    let uncounted = TestFile { deleted: 1, rows: None, partition: 2, ..file("uncounted", 10) };
    let state = state(&[at_ratio, above, uncounted]);
    let ours = compact(&state, &options(100, Compat::Lakesmith), None).unwrap();
    assert_eq!(paths(&state, &ours), vec![vec!["above".to_string()], vec!["uncounted".into()]]);
    let spark = compact(&state, &options(100, Compat::Spark), None).unwrap();
    assert!(spark.groups.is_empty());
}

#[test]
fn a_bin_of_this_targets_outputs_is_finished_unless_forced_or_deleted_from() {
    let tagged = |p: &str| TestFile { tags: vec![(TARGET_TAG, "100".into())], ..file(p, 10) };
    let finished = state(&[tagged("a"), tagged("b")]);
    assert!(compact(&finished, &options(100, Compat::Lakesmith), None).unwrap().groups.is_empty());
    let forced = OptimizeOptions { force: true, ..options(100, Compat::Lakesmith) };
    assert_eq!(compact(&finished, &forced, None).unwrap().groups.len(), 1);
    assert_eq!(compact(&finished, &options(99, Compat::Lakesmith), None).unwrap().groups.len(), 1);
    let deleted = state(&[tagged("a"), TestFile { deleted: 50, ..tagged("b") }]);
    assert_eq!(compact(&deleted, &options(100, Compat::Lakesmith), None).unwrap().groups.len(), 1);
    let newcomer = state(&[tagged("a"), TestFile { modified_ms: 1, ..file("b", 1) }]);
    assert_eq!(compact(&newcomer, &options(100, Compat::Lakesmith), None).unwrap().groups.len(), 1);
}

#[test]
fn the_target_of_a_layout_counts_as_one_of_packing() {
    let layout = |target: u64| {
        (LAYOUT_TAG, format!(r#"{{"v":1,"curve":"sort","columns":[["a"]],"run":"r","target":{target}}}"#))
    };
    let ordered = |p: &str, target| TestFile { tags: vec![layout(target)], ..file(p, 10) };
    let plan = |files: &[TestFile]| compact(&state(files), &options(100, Compat::Lakesmith), None).unwrap();
    assert!(plan(&[ordered("a", 100), ordered("b", 100)]).groups.is_empty());
    assert_eq!(plan(&[ordered("a", 99), ordered("b", 99)]).groups.len(), 1);
}

#[test]
fn requests_for_an_order_are_not_compacted() {
    let by = OrderBy { curve: Curve::Zorder, columns: vec![vec!["amount".into()]] };
    let zorder = OptimizeOptions { order_by: Some(by), ..Default::default() };
    assert_eq!(compact(&state(&[]), &zorder, None).unwrap_err().kind(), ErrorKind::Usage);
}

fn any_files() -> impl Strategy<Value = Vec<TestFile>> {
    prop::collection::vec((1u64..200, 0u64..20, 0i64..3, any::<bool>()), 0..40).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(i, (size, deleted, partition, tagged))| TestFile {
                deleted,
                partition,
                modified_ms: i64::from(!tagged),
                tags: if tagged { vec![(TARGET_TAG, "100".into())] } else { vec![] },
                ..file(&format!("f{i}"), size)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_order_of_the_table_does_not_reach_the_plan(files in any_files(), seed in any::<u64>()) {
        let mut shuffled = files.clone();
        let mut x = seed | 1;
        for i in (1..shuffled.len()).rev() {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            shuffled.swap(i, (x >> 33) as usize % (i + 1));
        }
        let (a, b) = (state(&files), state(&shuffled));
        let o = options(100, Compat::Lakesmith);
        prop_assert_eq!(paths(&a, &compact(&a, &o, None).unwrap()), paths(&b, &compact(&b, &o, None).unwrap()));
    }

    #[test]
    fn a_run_is_a_fixed_point_whatever_the_outputs_shrink_to(files in any_files(), percent in 10u64..=100) {
        let o = options(100, Compat::Lakesmith);
        let before = state(&files);
        let plan = compact(&before, &o, None).unwrap();
        let rewritten: std::collections::BTreeSet<_> = plan.groups.iter().flat_map(|g| g.files.clone()).collect();
        let mut after: Vec<TestFile> = files.iter().enumerate()
            .filter(|(i, _)| !rewritten.contains(&FileId(*i as u32))).map(|(_, f)| f.clone()).collect();
        for (i, group) in plan.groups.iter().enumerate() {
            after.push(TestFile {
                size: (group.bytes * percent / 100).max(1),
                partition: files[group.files[0].0 as usize].partition,
                modified_ms: 2,
                tags: vec![(TARGET_TAG, "100".into())],
                ..file(&format!("out{i}"), 0)
            });
        }
        prop_assert!(compact(&state(&after), &o, None).unwrap().groups.is_empty());
    }
}
