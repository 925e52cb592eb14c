//! Values survive, files are cut and encoded as asked, statistics are exact.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int64Array,
    Int64Builder, MapBuilder, RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField};
use lakesmith_core::table::{DataType, PartitionTuple, Scalar};
use lakesmith_exec::rewrite;
use parquet::basic::{Compression, CompressionCodec, Encoding, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::bench_table::{Bench, field, plain_write, spec};

fn footer(bench: &Bench, relative: &str) -> ParquetMetaData {
    SerializedFileReader::new(std::fs::File::open(bench.path(relative)).unwrap()).unwrap().metadata().clone()
}

fn everything() -> RecordBatch {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    let validity = arrow::buffer::NullBuffer::from(vec![true, false, true]);
    let inner = StructArray::new(
        vec![ArrowField::new("x", ArrowType::Int64, true)].into(),
        vec![Arc::new(Int64Array::from(vec![Some(5), Some(99), None])) as ArrayRef],
        Some(validity),
    );
    let decimal =
        |p, s| Arc::new(Decimal128Array::from(vec![Some(123), None, Some(-5)]).with_precision_and_scale(p, s).unwrap());
    RecordBatch::try_from_iter_with_nullable([
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])) as ArrayRef, true),
        ("f", Arc::new(Float32Array::from(vec![f32::NAN, -0.0, 1.0])), true),
        ("d", Arc::new(Float64Array::from(vec![Some(0.0), Some(-0.0), None])), true),
        ("d9", decimal(9, 2), true),
        ("d18", decimal(18, 2), true),
        ("d38", decimal(38, 2), true),
        ("text", Arc::new(StringArray::from(vec![Some("ü"), Some(""), None])), true),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&[0u8, 255][..]), None, Some(&[])])), true),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(7)]).with_timezone("UTC")), true),
        ("m", Arc::new(map.finish()), true),
        ("s", Arc::new(inner), true),
    ])
    .unwrap()
}

#[test]
fn every_type_survives_with_exact_statistics_and_sparks_physical_types() {
    let batch = everything();
    let mut bench = Bench::new();
    bench.add(&batch, WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build());
    let decimal = |precision| DataType::Decimal { precision, scale: 2 };
    let read = spec(vec![
        field("flag", DataType::Boolean),
        field("f", DataType::Float),
        field("d", DataType::Double),
        field("d9", decimal(9)),
        field("d18", decimal(18)),
        field("d38", decimal(38)),
        field("text", DataType::String),
        field("bin", DataType::Binary),
        field("ts", DataType::Timestamp),
        field("m", DataType::Map(Box::new(field("key", DataType::String)), Box::new(field("value", DataType::Long)))),
        field("s", DataType::Struct(vec![field("x", DataType::Long)])),
    ]);
    let mut write = plain_write();
    write.stats_leaves =
        ["flag", "f", "d", "d9", "text", "bin", "ts", "m"].iter().map(|n| vec![(*n).to_owned()]).collect();
    write.stats_leaves.push(vec!["s".into(), "x".into()]);
    let outcome = bench.run(read, write).unwrap();
    let output = &outcome.outputs[0];
    assert_eq!(output.path, "part-00000-x.c000.zstd.parquet");
    let rows = bench.rows(&output.path);
    for i in 0..9 {
        // Array data compares floats by their bits.
        assert_eq!(rows.column(i).to_data(), batch.column(i).to_data(), "column {i}");
    }
    assert_eq!(rows.column(9).as_map().value_offsets(), [0, 1, 1, 1]);
    assert!(rows.column(9).is_null(1) && rows.column(10).is_null(1));
    let stats: Vec<_> = output.stats.leaves.iter().map(|l| (l.null_count, l.min.clone(), l.max.clone())).collect();
    let (nan, text) = (Scalar::Double(f64::NAN), |t: &str| Some(Scalar::String(t.into())));
    assert_eq!(stats[0], (1, None, None));
    assert_eq!(stats[1], (0, Some(Scalar::Double(0.0)), Some(nan)));
    assert_eq!(stats[2], (1, Some(Scalar::Double(0.0)), Some(Scalar::Double(0.0))));
    assert!(matches!(stats[2].1, Some(Scalar::Double(v)) if v.is_sign_negative()));
    assert_eq!(stats[3], (1, Some(Scalar::Decimal(-5, 2)), Some(Scalar::Decimal(123, 2))));
    assert_eq!(stats[4], (1, text(""), text("ü")));
    assert_eq!(stats[5], (1, None, None));
    assert_eq!(stats[6], (1, Some(Scalar::Timestamp(-1)), Some(Scalar::Timestamp(7))));
    assert_eq!(stats[7], (1, None, None));
    assert_eq!(stats[8], (2, Some(Scalar::Long(5)), Some(Scalar::Long(5))));

    let metadata = footer(&bench, &output.path);
    let physical = |i: usize| metadata.file_metadata().schema_descr().column(i).physical_type();
    assert_eq!([physical(3), physical(4), physical(5)], [Type::INT32, Type::INT64, Type::FIXED_LEN_BYTE_ARRAY]);
    assert_eq!(metadata.row_group(0).column(0).compression_codec(), CompressionCodec::ZSTD);
    assert!(metadata.row_group(0).column(0).offset_index_offset().is_some());
}

#[test]
fn row_groups_follow_the_spec_and_unique_values_get_no_dictionary() {
    let unique = Arc::new(Int64Array::from_iter_values((0..100_000).map(|v| v * 7_919 % 1_000_003)));
    let few = Arc::new(Int64Array::from_iter_values((0..100_000).map(|v| v % 3)));
    let batch = RecordBatch::try_from_iter([("unique", unique as ArrayRef), ("few", few)]).unwrap();
    // Pages of the second codec cannot be merged.
    for codec in [Compression::SNAPPY, Compression::GZIP(Default::default())] {
        let mut bench = Bench::new();
        for _ in 0..3 {
            bench.add(&batch, WriterProperties::builder().set_compression(codec).build());
        }
        let mut write = plain_write();
        write.row_group_rows = 140_000;
        let columns = vec![field("unique", DataType::Long), field("few", DataType::Long)];
        let outcome = bench.run(spec(columns), write).unwrap();
        let metadata = footer(&bench, &outcome.outputs[0].path);
        let sizes: Vec<i64> = metadata.row_groups().iter().map(|g| g.num_rows()).collect();
        assert_eq!(sizes, [140_000, 140_000, 20_000]);
        let has = |i: usize| metadata.row_group(0).column(i).encodings().any(|e| e == Encoding::RLE_DICTIONARY);
        assert!(!has(0) && has(1));
        assert!(metadata.file_metadata().created_by().is_some_and(|c| c.starts_with("lakesmith version")));
    }
}

#[test]
fn huge_strings_fit_a_small_memory_limit() {
    let mut bench = Bench::new();
    bench.memory_bytes = 64 << 20;
    for n in 0..6 {
        let texts: Vec<String> = (0..2).map(|k| format!("{n}{k}").repeat(8 << 20)).collect();
        let batch = RecordBatch::try_from_iter([("t", Arc::new(StringArray::from(texts)) as ArrayRef)]).unwrap();
        bench.add(&batch, WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    }
    let mut write = plain_write();
    write.stats_leaves = vec![vec!["t".into()]];
    let outcome = bench.run(spec(vec![field("t", DataType::String)]), write).unwrap();
    assert_eq!(outcome.rows_out, 12);
    let max = outcome.outputs[0].stats.leaves[0].max.clone();
    assert!(matches!(max, Some(Scalar::String(t)) if t.len() == 16 << 20 && t.starts_with("5151")));
    assert!(footer(&bench, &outcome.outputs[0].path).num_row_groups() > 1);
}

#[test]
fn partition_values_are_written_as_constants() {
    let mut bench = Bench::new();
    let batch = RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
    bench.add(&batch, WriterProperties::default());
    let mut write = plain_write();
    write.partition_fields = vec![field("p", DataType::String), field("d", DataType::Date)];
    write.partition_indexes = vec![1, 0];
    write.compression = Some("uncompressed".into());
    let mut task = bench.task(spec(vec![field("v", DataType::Long)]), write);
    task.partition = PartitionTuple { raw: vec![], values: vec![Scalar::Date(3), Scalar::String("x".into())] };
    let outcome = rewrite(&task, &bench.context()).unwrap();
    assert_eq!(outcome.outputs[0].path, "part-00000-x.c000.parquet");
    let rows = bench.rows(&outcome.outputs[0].path);
    assert_eq!(rows.column(1).as_string::<i32>().value(1), "x");
    assert_eq!(rows.column(2).as_primitive::<arrow::datatypes::Date32Type>().values().to_vec(), [3, 3]);
}
