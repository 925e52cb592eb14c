//! Old timestamp layouts, old calendars and old list layouts.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Date32Array, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use lakesmith_core::table::DataType;
use parquet::data_type::{Int64Type as ParquetInt64, Int96, Int96Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::bench_table::{Bench, field, plain_write, spec};

/// Julian day numbers of 0001-01-01, 1969-12-31, 2026-01-01 and 9999-12-31, and the start of each in microseconds.
const DAYS: [(u32, i64); 4] = [
    (1_721_426, -62_135_596_800_000_000),
    (2_440_587, -86_400_000_000),
    (2_461_042, 1_767_225_600_000_000),
    (5_373_484, 253_402_214_400_000_000),
];

fn int96_file(metadata: Option<Vec<KeyValue>>) -> Vec<u8> {
    let schema = parse_message_type(
        "message m { optional int96 t; optional group s { optional int96 u; } optional int64 n (TIMESTAMP_MICROS); }",
    )
    .unwrap();
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let values: Vec<Int96> = DAYS
        .iter()
        .map(|(day, _)| {
            let nanos: u64 = 1_234_567_000;
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, *day);
            value
        })
        .collect();
    for level in [1i16, 2] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int96Type>().write_batch(&values, Some(&[level; 4]), None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let micros: Vec<i64> = DAYS.iter().map(|(_, micros)| *micros).collect();
    column.typed::<ParquetInt64>().write_batch(&micros, Some(&[1; 4]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

fn read() -> lakesmith_core::table::ReadSpec {
    spec(vec![
        field("t", DataType::Timestamp),
        field("s", DataType::Struct(vec![field("u", DataType::Timestamp)])),
        field("n", DataType::Timestamp),
    ])
}

#[test]
fn int96_of_any_year_keeps_its_instant() {
    let mut bench = Bench::new();
    bench.add_bytes(&int96_file(None));
    let outcome = bench.run(read(), plain_write()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    let expected: Vec<i64> = DAYS.iter().map(|(_, micros)| micros + 1_234_567).collect();
    assert_eq!(rows.column(0).as_primitive::<TimestampMicrosecondType>().values().to_vec(), expected);
    let nested = rows.column(1).as_struct().column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(nested.values().to_vec(), expected);
    assert_eq!(nested.timezone(), Some("UTC"));
}

#[test]
fn early_dates_of_the_legacy_calendar_are_left_out_and_later_ones_kept() {
    let legacy = || Some(vec![KeyValue::new("org.apache.spark.legacyINT96".to_owned(), String::new())]);
    let mut bench = Bench::new();
    bench.add_bytes(&int96_file(legacy()));
    let outcome = bench.run(read(), plain_write()).unwrap();
    assert_eq!((outcome.rows_in, outcome.left_out[0].column.as_deref()), (0, Some("t")));
    assert!(outcome.left_out[0].reason.contains("rewrite it with Spark"), "{:?}", outcome.left_out);

    let mut bench = Bench::new();
    let dates =
        RecordBatch::try_from_iter([("d", Arc::new(Date32Array::from(vec![-25_567, 0, 20_000])) as _)]).unwrap();
    let pairs = vec![KeyValue::new("org.apache.spark.legacyDateTime".to_owned(), String::new())];
    bench.add(&dates, WriterProperties::builder().set_key_value_metadata(Some(pairs)).build());
    assert_eq!(bench.run(spec(vec![field("d", DataType::Date)]), plain_write()).unwrap().rows_out, 3);
}

#[test]
fn old_list_layouts_are_read_and_written_in_three_levels() {
    let schema = parse_message_type(
        "message m {
            optional group a (LIST) { repeated int64 array; }
            optional group b (LIST) { repeated group bag { optional int64 array_element; } }
        }",
    )
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    // Rows: [1, 2], NULL, [].
    column.typed::<ParquetInt64>().write_batch(&[1, 2], Some(&[2, 2, 0, 1]), Some(&[0, 1, 0, 0])).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    // Rows: [3, NULL], NULL, [].
    column.typed::<ParquetInt64>().write_batch(&[3], Some(&[3, 2, 0, 1]), Some(&[0, 1, 0, 0])).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let mut bench = Bench::new();
    bench.add_bytes(&bytes);
    let list = |name: &str| field(name, DataType::List(Box::new(field("element", DataType::Long))));
    let outcome = bench.run(spec(vec![list("a"), list("b")]), plain_write()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    for (column, expected) in [(0, [Some(1), Some(2)]), (1, [Some(3), None])] {
        let lists = rows.column(column).as_list::<i32>();
        assert_eq!(lists.value(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
        assert!(lists.is_null(1) && lists.is_valid(2) && lists.value(2).is_empty());
    }
    let file = std::fs::File::open(bench.path(&outcome.outputs[0].path)).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let metadata = parquet::file::reader::FileReader::metadata(&reader);
    let paths: Vec<String> =
        metadata.file_metadata().schema_descr().columns().iter().map(|c| c.path().string()).collect();
    assert_eq!(paths, ["a.list.element", "b.list.element"]);
}
