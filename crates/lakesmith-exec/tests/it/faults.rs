//! Bad input and interruptions: one clear error, nothing half-written.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use lakesmith_core::ErrorKind;
use lakesmith_core::table::DataType;
use lakesmith_exec::{LocalExecutor, dropped_column_in_footer, files_with_dropped_columns};
use lakesmith_storage::{Cancel, Location, NoProgress};
use parquet::file::properties::WriterProperties;

use crate::bench_table::{Bench, field, plain_write, spec};

fn numbers(rows: i64) -> RecordBatch {
    RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap()
}

#[test]
fn damaged_files_are_named() {
    let mut whole = Bench::new();
    let location = whole.add(&numbers(1_000), WriterProperties::default()).location.clone();
    let bytes = std::fs::read(whole.path("in-0.parquet")).unwrap();
    assert!(location.ends_with("in-0.parquet"));
    let mut flipped = bytes.clone();
    for byte in &mut flipped[4..1_000] {
        *byte = !*byte;
    }
    for damaged in [&bytes[..bytes.len() - 10], &bytes[..3], &bytes[100..], &[0; 64][..], &flipped] {
        let mut bench = Bench::new();
        bench.add_bytes(damaged);
        let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("in-0.parquet"), "{error}");
        assert_eq!(bench.other_names(), Vec::<String>::new());
    }
}

#[test]
fn a_missing_file_has_sparks_class() {
    let mut bench = Bench::new();
    bench.add(&numbers(10), WriterProperties::default());
    std::fs::remove_file(bench.path("in-0.parquet")).unwrap();
    let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::NotFound, "FAILED_READ_FILE.FILE_NOT_EXIST"));
}

#[test]
fn a_row_count_that_contradicts_the_log_is_refused() {
    let mut bench = Bench::new();
    bench.add(&numbers(10), WriterProperties::default()).rows = Some(11);
    let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("in-0.parquet"), "{error}");
}

#[test]
fn the_first_error_stops_the_run_and_lists_what_is_visible() {
    let mut bench = Bench::new();
    bench.add(&numbers(100), WriterProperties::default());
    bench.add_bytes(b"PAR1 this is no Parquet file");
    let mut write = plain_write();
    write.max_rows_per_file = Some(40);
    let mut task = bench.task(spec(vec![field("v", DataType::Long)]), write);
    let mut good = task.clone();
    good.inputs.truncate(1);
    good.output_stem = "part-good".into();
    task.id = 1;
    // One sampled footer would already fail; put the bad file behind more inputs than are sampled at once.
    let first = task.inputs[0].clone();
    let bad = task.inputs.pop().unwrap();
    task.inputs = vec![first; 40];
    task.inputs[33] = bad;
    let mut control = bench.context().control;
    // One after the other: side by side, the bad task may stop the good one before it has written anything.
    control.threads = 1;
    let mut outcomes = Vec::new();
    let failure = LocalExecutor::new(bench.store(), control.clone())
        .run(vec![good.clone(), task], &mut |o| {
            outcomes.push(o);
            Ok(())
        })
        .unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::Corrupt, "{}", failure.error);
    let mut known: Vec<String> = failure.leftovers.iter().map(|l| l.file_name().to_owned()).collect();
    known.extend(outcomes.iter().flat_map(|o| o.outputs.iter().map(|f| f.path.clone())));
    known.sort();
    assert_eq!(bench.other_names(), known);
    assert!(!known.is_empty());

    control.cancel.cancel();
    good.output_stem = "part-late".into();
    let failure = LocalExecutor::new(bench.store(), control).run(vec![good], &mut |_| Ok(())).unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::Cancelled);
    assert_eq!(bench.other_names(), known);
}

#[test]
fn a_file_of_another_size_than_the_log_says_is_named_with_both() {
    let mut bench = Bench::new();
    let batch = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(0..1000)) as _)]).unwrap();
    let input = bench.add(&batch, WriterProperties::default()).clone();
    let whole = std::fs::read(bench.path("in-0.parquet")).unwrap();
    let longer = [&whole[..whole.len() - 8], &[0; 5], &whole[whole.len() - 8..]].concat();
    for stored in [&[][..], &whole[..1], &whole[..whole.len() - 1], &whole[..20], &longer] {
        std::fs::write(bench.path("in-0.parquet"), stored).unwrap();
        let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{} {error}", stored.len());
        assert_eq!(error.context_value("path"), Some(input.location.as_str()));
        let text = error.to_string();
        for size in [whole.len(), stored.len()] {
            assert!(text.contains(&format!("{size} bytes")) || text.contains(&format!("has {size}")), "{text}");
        }
    }
}

#[test]
fn a_vector_file_that_is_too_short_is_corrupt_with_its_path() {
    use lakesmith_core::table::vector::VectorLocation;
    for stored in [0, 1, 10] {
        let mut bench = Bench::new();
        let batch = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from(vec![1, 2])) as _)]).unwrap();
        let mut deletes = crate::bench_table::inline([1]);
        let vector = bench.path("vector.bin");
        std::fs::write(&vector, vec![1; stored]).unwrap();
        let location = bench.root().join("vector.bin").to_string();
        deletes.at = VectorLocation::File { location: location.clone(), offset: 1 };
        bench.add(&batch, WriterProperties::default()).deletes = Some(deletes);
        let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
        assert_eq!((error.kind(), error.class_name()), (ErrorKind::Corrupt, "DELTA_DELETION_VECTOR_SIZE_MISMATCH"));
        assert_eq!(error.context_value("path"), Some(location.as_str()), "{error}");
        assert!(error.message().contains(&format!("{stored} ")), "{error}");
    }
}

#[test]
fn dropped_columns_are_seen_at_any_depth_without_regard_to_case() {
    let mut bench = Bench::new();
    let inner = arrow::array::StructArray::from(vec![(
        Arc::new(arrow::datatypes::Field::new("X", arrow::datatypes::DataType::Int64, true)),
        Arc::new(Int64Array::from(vec![1])) as _,
    )]);
    let batch = RecordBatch::try_from_iter([
        ("V", Arc::new(Int64Array::from(vec![1])) as _),
        ("s", Arc::new(inner) as _),
        ("_rid", Arc::new(Int64Array::from(vec![1])) as _),
    ])
    .unwrap();
    let input = bench.add(&batch, WriterProperties::default()).clone();
    let location = Location::from_canonical(&input.location).unwrap();
    let nested = |name: &str| field("s", DataType::Struct(vec![field(name, DataType::Long)]));
    let hidden = ["_rid".to_owned()];
    for (fields, hidden, expected) in [
        (vec![field("v", DataType::Long), nested("x")], &hidden[..], false),
        (vec![field("v", DataType::Long), nested("x")], &[], true),
        (vec![field("v", DataType::Long), nested("y")], &hidden, true),
        (vec![nested("x")], &hidden, true),
    ] {
        let store = bench.store();
        let read = spec(fields);
        let look = dropped_column_in_footer(&store, &location, input.size, &read, hidden);
        assert_eq!(bench.runtime.block_on(look).ok(), Some(expected));
        let inputs = [input.clone()];
        let handle = bench.runtime.handle();
        let found = files_with_dropped_columns(&store, &inputs, &read, hidden, &Cancel::default(), &NoProgress, handle)
            .unwrap();
        assert_eq!(found.len(), usize::from(expected));
    }
}
