//! Columns that were added, dropped, renamed or widened after the files were written.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Float32Array, Int8Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Field as ArrowField, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use lakesmith_core::table::{DataType, Field};
use parquet::file::properties::WriterProperties;

use crate::bench_table::{Bench, field, plain_write, spec};

fn decimal(precision: u8, scale: i8) -> DataType {
    DataType::Decimal { precision, scale }
}

#[test]
fn narrow_types_are_widened_at_the_top_and_inside() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let inner = StructArray::from(vec![(
        Arc::new(ArrowField::new("f", ArrowType::Float32, true)),
        Arc::new(Float32Array::from(vec![1.5, -0.0])) as ArrayRef,
    )]);
    let batch = RecordBatch::try_from_iter([
        ("i", Arc::new(Int32Array::from(vec![Some(i32::MIN), None])) as ArrayRef),
        ("b", Arc::new(Int8Array::from(vec![-128, 127]))),
        ("di", Arc::new(Int32Array::from(vec![7, -7]))),
        ("dt", Arc::new(Date32Array::from(vec![-719_162, 2_932_896]))),
        ("dec", Arc::new(Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(5, 2).unwrap())),
        ("l", Arc::new(list)),
        ("s", Arc::new(inner)),
    ])
    .unwrap();
    let mut bench = Bench::new();
    bench.add(&batch, WriterProperties::default());
    let read = spec(vec![
        field("i", DataType::Long),
        field("b", DataType::Double),
        field("di", decimal(12, 2)),
        field("dt", DataType::TimestampNtz),
        field("dec", decimal(22, 4)),
        field("l", DataType::List(Box::new(field("element", DataType::Long)))),
        field("s", DataType::Struct(vec![field("f", DataType::Double), field("new", DataType::String)])),
    ]);
    let outcome = bench.run(read, plain_write()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    let longs = |a: &dyn Array| a.as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(longs(rows.column(0)), [Some(i64::from(i32::MIN)), None]);
    assert_eq!(rows.column(1).as_primitive::<Float64Type>().values().to_vec(), [-128.0, 127.0]);
    assert_eq!(rows.column(2).as_primitive::<Decimal128Type>().values().to_vec(), [700, -700]);
    assert_eq!(
        rows.column(3).as_primitive::<TimestampMicrosecondType>().values().to_vec(),
        [-62_135_596_800_000_000, 253_402_214_400_000_000]
    );
    assert_eq!(rows.column(3).data_type(), &ArrowType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None));
    assert_eq!(rows.column(4).as_primitive::<Decimal128Type>().values().to_vec(), [1_234_500, -100]);
    assert_eq!(longs(&rows.column(5).as_list::<i32>().value(0)), [Some(1), None]);
    let inner = rows.column(6).as_struct();
    let floats = inner.column(0).as_primitive::<Float64Type>();
    assert_eq!((floats.value(0), floats.value(1).to_bits()), (1.5, (-0.0f64).to_bits()));
    assert_eq!(inner.column(1).null_count(), 2);
}

#[test]
fn a_file_that_would_be_narrowed_is_left_out_by_name() {
    let mut bench = Bench::new();
    let batch = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    bench.add(&batch, WriterProperties::default());
    let outcome = bench.run(spec(vec![field("x", DataType::Integer)]), plain_write()).unwrap();
    let left: Vec<_> = outcome.left_out.iter().map(|l| (l.input.0, l.column.as_deref())).collect();
    assert_eq!((left, outcome.rows_in, outcome.outputs.len()), (vec![(0, Some("x"))], 0, 0));
    assert_eq!(bench.other_names(), Vec::<String>::new());
}

#[test]
fn missing_columns_are_null_dropped_ones_go_and_void_is_in_no_file() {
    let batch = RecordBatch::try_from_iter([
        ("gone", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("KEPT", Arc::new(Int64Array::from(vec![3, 4]))),
    ])
    .unwrap();
    let mut bench = Bench::new();
    bench.add(&batch, WriterProperties::default());
    let read =
        spec(vec![field("added", DataType::String), field("nothing", DataType::Null), field("kept", DataType::Long)]);
    let mut write = plain_write();
    write.stats_leaves = vec![vec!["added".into()], vec!["nothing".into()], vec!["kept".into()]];
    let outcome = bench.run(read.clone(), write).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    let names: Vec<&str> = rows.schema_ref().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["added", "kept"]);
    assert_eq!(rows.column(0).null_count(), 2);
    assert_eq!(rows.column(1).as_primitive::<Int64Type>().values().to_vec(), [3, 4]);
    assert_eq!(outcome.outputs[0].stats.leaves.len(), 2);

    let mut bench = Bench::new();
    let other = RecordBatch::try_from_iter([("other", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    bench.add(&other, WriterProperties::default()).deletes = Some(crate::bench_table::inline([1]));
    assert_eq!(bench.run(read, plain_write()).unwrap().rows_out, 2);
}

#[test]
fn columns_match_by_id_and_ids_are_written() {
    let with_id = |name: &str, id: &str| {
        ArrowField::new(name, ArrowType::Utf8, true)
            .with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_owned())]))
    };
    let schema = arrow::datatypes::Schema::new(vec![with_id("b", "1"), with_id("a", "2")]);
    let column = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let batch = RecordBatch::try_new(Arc::new(schema), vec![column("one"), column("two")]).unwrap();
    let mut bench = Bench::new();
    bench.add(&batch, WriterProperties::default());
    let plain = RecordBatch::try_from_iter([("a", column("three")), ("b", column("four"))]).unwrap();
    bench.add(&plain, WriterProperties::default());
    let named = |name: &str, id| Field { id: Some(id), ..field(name, DataType::String) };
    let mut read = spec(vec![named("a", 1), named("b", 2)]);
    read.match_by_id = true;
    let outcome = bench.run(read, plain_write()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    let texts = |i: usize| rows.column(i).as_string::<i32>().iter().flatten().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((texts(0), texts(1)), (vec!["one".into(), "three".into()], vec!["two".into(), "four".into()]));
    let ids: Vec<&str> = rows.schema_ref().fields().iter().map(|f| f.metadata()["PARQUET:field_id"].as_str()).collect();
    assert_eq!(ids, ["1", "2"]);
}
