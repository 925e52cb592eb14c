//! Rows that delete files delete stay away from what is written and from what is counted.

use std::sync::{Arc, Mutex};

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use lakesmith_core::layout::{Curve, OrderKey, RowOrder};
use lakesmith_core::table::{DataType, DeleteContent, DeleteFile, FileFormat, InputFile, WriteSpec};
use lakesmith_core::{ErrorKind, Result};
use lakesmith_exec::{Depth, Inspected, Inspection, LocalExecutor, inspect_files, rewrite};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::bench_table::{Bench, field, inline, plain_write, spec};

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(range)) as _)]).unwrap()
}

fn values(bench: &Bench, path: &str) -> Vec<i64> {
    bench.rows(path).column_by_name("v").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

fn delete_file(bench: &Bench, name: &str, batch: &RecordBatch, content: DeleteContent) -> Arc<DeleteFile> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    std::fs::write(bench.path(name), &bytes).unwrap();
    let (path, size, rows) = (bench.root().join(name).to_string(), bytes.len() as u64, batch.num_rows() as u64);
    Arc::new(DeleteFile { path, size, rows, format: FileFormat::Parquet, content })
}

/// Two files of 100 numbers: rows 0 and 50 of the first and row 99 of the second are deleted by position, 10, 110 and 120
/// by value, 10 and 20 by a vector.
fn bench() -> Bench {
    let mut bench = Bench::new();
    let [first, second] = [0, 1].map(|i| bench.root().join(&format!("in-{i}.parquet")).to_string());
    let named = RecordBatch::try_from_iter([
        ("file_path", Arc::new(StringArray::from(vec![first.clone(), first, second])) as _),
        ("pos", Arc::new(Int64Array::from(vec![0, 50, 99])) as _),
    ])
    .unwrap();
    let keys = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from(vec![10, 110, 120, 500])) as _)]).unwrap();
    let equality = DeleteContent::Equality(vec![field("v", DataType::Long)]);
    let files = vec![
        delete_file(&bench, "positions", &named, DeleteContent::Positions),
        delete_file(&bench, "keys", &keys, equality),
    ];
    let properties = || WriterProperties::builder().set_max_row_group_row_count(Some(30)).build();
    let input = bench.add(&numbers(0..100), properties());
    input.deletes = Some(inline([10, 20]));
    input.delete_files = files.clone();
    bench.add(&numbers(100..200), properties()).delete_files = files;
    bench
}

fn live() -> Vec<i64> {
    (0..200).filter(|v| ![0, 50, 199, 10, 110, 120, 20].contains(v)).collect()
}

#[test]
fn a_rewrite_leaves_out_what_delete_files_delete() {
    let bench = bench();
    let outcome = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap();
    assert_eq!((outcome.rows_in, outcome.rows_out), (193, 193));
    assert_eq!(values(&bench, &outcome.outputs[0].path), live());
    let mapped: Vec<u64> = outcome.row_map.iter().map(|s| s.rows).collect();
    assert_eq!(mapped, [96, 97]);
}

#[test]
fn an_ordered_rewrite_leaves_them_out_too_and_threads_share_what_was_read() {
    let bench = bench();
    let mut task =
        bench.task(spec(vec![field("v", DataType::Long)]), WriteSpec { max_rows_per_file: Some(150), ..plain_write() });
    let key = OrderKey { path: vec!["v".into()], name: vec!["v".into()], data_type: DataType::Long };
    task.order = Some(RowOrder { keys: vec![key], curve: Curve::Sort, files: 1 });
    let control = bench.context().control;
    let mut outcomes = Vec::new();
    let executor = LocalExecutor::new(bench.store(), control);
    executor
        .run(vec![task], &mut |outcome| {
            outcomes.push(outcome);
            Ok(())
        })
        .unwrap();
    let outcome = &outcomes[0];
    assert_eq!((outcome.rows_in, outcome.rows_out), (193, 193));
    let rows: Vec<i64> = outcome.outputs.iter().flat_map(|o| values(&bench, &o.path)).collect();
    assert_eq!(rows, live());
}

#[test]
fn a_rewrite_does_not_begin_without_its_delete_files() {
    let bench = bench();
    std::fs::remove_file(bench.path("keys")).unwrap();
    let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.context_value("path").unwrap().ends_with("/keys"), "{error}");
    assert_eq!(bench.other_names(), ["positions"]);
}

#[test]
fn a_data_file_stays_as_it_is_if_its_delete_file_is_of_another_format() {
    let bench = bench();
    let mut task = bench.task(spec(vec![field("v", DataType::Long)]), plain_write());
    let mut other = DeleteFile::clone(&task.inputs[0].delete_files[1]);
    other.format = FileFormat::Orc;
    task.inputs[0].delete_files.push(Arc::new(other));
    let outcome = rewrite(&task, &bench.context()).unwrap();
    let second: Vec<i64> = live().into_iter().filter(|v| *v >= 100).collect();
    assert_eq!(values(&bench, &outcome.outputs[0].path), second);
    assert_eq!(outcome.left_out.len(), 1);
    assert!(outcome.left_out[0].reason.contains("/keys is written in ORC"), "{}", outcome.left_out[0].reason);
}

#[test]
fn live_rows_are_counted_without_them() {
    let bench = bench();
    let read = spec(vec![field("v", DataType::Long)]);
    let inputs = bench.task(read.clone(), plain_write()).inputs;
    let inspection = Inspection { read: Arc::new(read), leaves: vec![vec!["v".into()]], depth: Depth::Rows };
    let found: Mutex<Vec<(usize, Inspected)>> = Mutex::default();
    let input = |i: usize| -> Result<InputFile> { Ok(inputs[i].clone()) };
    let each = |i: usize, inspected: Result<Inspected>| found.lock().unwrap().push((i, inspected.unwrap()));
    inspect_files(&bench.store(), &inspection, 2, &input, &bench.context().control, &each).unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(i, _)| *i);
    let counted: Vec<_> = found.iter().map(|(_, f)| (f.rows, f.live_rows)).collect();
    assert_eq!(counted, [(100, Some(96)), (100, Some(97))]);
}
