//! Clustering with and without a budget, and what is reported of the files' overlap.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use lakesmith::Session;
use lakesmith::layout::Curve;
use lakesmith::op::{ClusterBy, HealthOptions, Operation, OptimizeOptions, OptimizeReport, OrderBy, Report};
use lakesmith_testkit::{BuiltTable, TableBuilder};

use crate::tables::{files, ids, optimize, run, session};

const LOADS: i64 = 20;
const ROWS: i64 = 500;

/// Twenty loads of one file each, every one over the whole range of `id`.
fn overlapping_loads(folder: &Path) -> BuiltTable {
    let load = |number: i64| {
        let ids: Vec<i64> = (0..ROWS).map(|row| row * LOADS + number).collect();
        // The log says as much of longer texts that agree up to there.
        let names = ids.iter().map(|_| "x".repeat(32));
        let columns: [(&str, ArrayRef); 2] =
            [("id", Arc::new(Int64Array::from(ids.clone()))), ("name", Arc::new(StringArray::from_iter_values(names)))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    };
    (0..LOADS).fold(TableBuilder::new(folder), |table, number| table.append_batch(&[], load(number))).build().unwrap()
}

fn cluster_by_id(session: &Session, table: &BuiltTable) {
    let by = ClusterBy { columns: vec![vec!["id".into()]], ..Default::default() };
    session.run(&table.folder.to_string_lossy(), Operation::ClusterBy(by)).unwrap();
}

fn ordered(session: &Session, table: &BuiltTable, change: impl FnOnce(&mut OptimizeOptions)) -> OptimizeReport {
    let mut options = session.optimize_options().unwrap();
    change(&mut options);
    run(session, table, Operation::Optimize(options)).unwrap()
}

fn cubes(table: &BuiltTable) -> BTreeSet<String> {
    files(table).iter().filter_map(|file| file.tags.get("ZCUBE_ID").cloned().flatten()).collect()
}

fn mean(depth: Option<lakesmith::layout::depth::Depth>) -> f64 {
    depth.and_then(|depth| depth.mean).unwrap()
}

#[test]
fn runs_within_a_budget_lower_the_depth_in_one_cube_until_nothing_is_left_to_gain() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let before = ids(&table);
    let session = session();
    cluster_by_id(&session, &table);
    let load_bytes = files(&table).iter().map(|file| file.size).max().unwrap();
    let budget = 6 * load_bytes;
    let mut depths: Vec<f64> = Vec::new();
    loop {
        let report = ordered(&session, &table, |options| options.budget_bytes = Some(budget));
        let key = &report.layout[0];
        assert_eq!(key.column, "id");
        assert!(
            depths.last().is_none_or(|last| (mean(Some(key.depth_before)) - last).abs() < 1e-9),
            "{key:?} {depths:?}"
        );
        if !report.committed {
            assert_eq!(key.depth_after, Some(key.depth_before));
            break;
        }
        let read = report.metrics.files_removed.total_size;
        assert!(read > 0 && read <= budget, "{read} of {budget}");
        assert!(mean(key.depth_after) < mean(Some(key.depth_before)), "{key:?}");
        assert_eq!(cubes(&table).len(), 1, "outputs join the cube that is there");
        assert_eq!(ids(&table), before);
        depths.push(mean(key.depth_after));
        assert!(depths.len() < 40, "{depths:?}");
    }
    assert!(depths.len() > 3 && depths[depths.len() - 1] < 6.0, "{depths:?}");
}

#[test]
fn a_budget_below_two_files_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let session = session();
    cluster_by_id(&session, &table);
    let least = files(&table).iter().map(|file| file.size).min().unwrap();
    assert!(!ordered(&session, &table, |options| options.budget_bytes = Some(2 * least - 1)).committed);
}

#[test]
fn an_order_tells_the_depth_before_and_after_and_a_dry_run_only_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let session = session();
    let size = files(&table).iter().map(|file| file.size).sum::<u64>();
    let by_id = |options: &mut OptimizeOptions| {
        options.order_by = Some(OrderBy { curve: Curve::Zorder, columns: vec![vec!["ID".into()]] });
        options.sizes.target_bytes = size / 10;
    };
    let planned = ordered(&session, &table, |options| {
        by_id(options);
        options.limits.dry_run = true;
    });
    let key = &planned.layout[0];
    assert_eq!((key.column.as_str(), key.files, key.depth_after), ("id", LOADS as u64, None));
    assert!(
        key.depth_before.worst == Some(LOADS as u64) && mean(Some(key.depth_before)) > LOADS as f64 / 2.0,
        "{key:?}"
    );
    assert!(key.advice.is_empty(), "{key:?}");
    let done = ordered(&session, &table, by_id);
    assert_eq!(done.layout[0].depth_before, key.depth_before);
    let after = done.layout[0].depth_after.unwrap();
    assert_eq!((after.mean, after.worst, after.unknown_files), (Some(1.0), Some(1), 0));
    let again = ordered(&session, &table, by_id);
    assert_eq!((again.committed, again.layout[0].depth_before), (false, after), "as the log has it now");
}

#[test]
fn texts_that_statistics_cannot_tell_apart_have_no_depth() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let session = session();
    let report = ordered(&session, &table, |options| {
        options.order_by = Some(OrderBy { curve: Curve::Sort, columns: vec![vec!["name".into()]] });
        options.limits.dry_run = true;
    });
    let key = &report.layout[0];
    assert!(key.depth_before.mean.is_none() && key.advice.len() == 1, "{key:?}");
    assert!(key.advice[0].contains("32 characters"), "{key:?}");
}

#[test]
fn packing_says_nothing_of_an_order() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let session = session();
    assert!(run(&session, &table, optimize(&session)).unwrap().layout.is_empty());
}

#[test]
fn health_tells_the_depth_of_a_clustered_table_and_the_cure_that_works() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping_loads(dir.path());
    let session = session();
    let health = || match session.run(&table.folder.to_string_lossy(), Operation::Health(HealthOptions::default())) {
        Ok(Report::Health(report)) => *report,
        other => panic!("{other:?}"),
    };
    assert!(health().layout.is_empty());
    cluster_by_id(&session, &table);
    let before = health();
    assert_eq!((before.layout[0].column.as_str(), before.layout[0].depth.worst), ("id", Some(LOADS as u64)));
    let bad = before.findings.iter().find(|finding| finding.id == "badly-ordered").unwrap();
    assert!(bad.command.as_deref().unwrap().contains("lakesmith optimize"), "{bad:?}");
    assert!(ordered(&session, &table, |options| options.sizes.target_bytes = 4000).committed);
    let after = health();
    assert_eq!(after.layout[0].depth.worst, Some(1));
    assert!(after.layout[0].files > 1 && after.findings.iter().all(|finding| finding.id != "badly-ordered"));
}
