use super::*;
use crate::op::FileSizes;
use crate::plan::compact::tests::{TestFile, file, state};

fn options(target: u64) -> ReorgOptions {
    ReorgOptions { sizes: FileSizes { target_bytes: target, ..Default::default() }, ..Default::default() }
}

#[test]
fn every_file_with_deleted_rows_or_dropped_columns_goes_even_alone() {
    let files = [
        TestFile { deleted: 1, ..file("a", 10) },
        TestFile { deleted: 1, partition: 1, ..file("b", 10_000_000_000) },
        file("c", 10),
        TestFile { partition: 2, ..file("d", 10) },
    ];
    let state = state(&files);
    assert_eq!(purge_candidates(&state, &options(100), None).unwrap(), vec![FileId(2), FileId(3)]);
    let plan = purge(&state, &options(100), None, &BTreeSet::from([FileId(3)])).unwrap();
    let groups: Vec<_> = plan.groups.iter().map(|g| g.files.clone()).collect();
    assert_eq!(groups, vec![vec![FileId(0)], vec![FileId(1)], vec![FileId(3)]]);
    assert!(plan.groups.iter().all(|g| g.marks == FileMarks::default()));
}

#[test]
fn cubes_are_never_mixed_and_keep_their_tags() {
    let cube = |p: &str, id: &str| TestFile {
        deleted: 1,
        tags: vec![(ZCUBE_TAG, id.into()), ("ZCUBE_ZORDER_BY", "[\"k\"]".into()), ("lakesmith.target", "5".into())],
        ..file(p, 10)
    };
    let state = state(&[cube("a", "1"), cube("b", "2"), cube("c", "1"), TestFile { deleted: 1, ..file("d", 1) }]);
    let plan = purge(&state, &options(1000), None, &BTreeSet::new()).unwrap();
    let groups: Vec<_> = plan.groups.iter().map(|g| (g.files.clone(), g.marks.tags.len())).collect();
    assert_eq!(groups, vec![(vec![FileId(3)], 0), (vec![FileId(0), FileId(2)], 2), (vec![FileId(1)], 2)]);
}
