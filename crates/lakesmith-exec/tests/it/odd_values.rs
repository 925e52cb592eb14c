//! Values that other writers left behind: strings that are not UTF-8, and types that no reader of the table can read.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField};
use lakesmith_core::table::{DataType, RewriteOutcome, Scalar};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{LogicalType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use crate::bench_table::{Bench, field, inline, plain_write, spec};

const NOT_TEXT: [&[u8]; 4] = [b"\xff\xfe", b"ab\xc3", b"\xed\xa0\x80", b"\x00\x80"];

/// A file that declares strings and holds bytes.
fn declared_as_strings(message: &str, batch: &RecordBatch, dictionary: bool) -> Vec<u8> {
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
    let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(schema);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn flat(values: &[Option<&[u8]>], dictionary: bool) -> Vec<u8> {
    let array: ArrayRef = Arc::new(BinaryArray::from(values.to_vec()));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let batch = RecordBatch::try_from_iter_with_nullable([("s", array, true), ("id", ids, true)]).unwrap();
    declared_as_strings("message m { optional binary s (STRING); optional int64 id; }", &batch, dictionary)
}

/// The bytes of a leaf column, and whether it is declared as a string.
fn stored(bench: &Bench, outcome: &RewriteOutcome, leaf: usize) -> (Vec<Vec<u8>>, bool) {
    let mut all = Vec::new();
    let mut text = true;
    for output in &outcome.outputs {
        let reader = SerializedFileReader::new(std::fs::File::open(bench.path(&output.path)).unwrap()).unwrap();
        let column = reader.metadata().file_metadata().schema_descr().column(leaf);
        text &= column.logical_type_ref() == Some(&LogicalType::String) && column.physical_type() == Type::BYTE_ARRAY;
        for group in 0..reader.num_row_groups() {
            let ColumnReader::ByteArrayColumnReader(mut values) =
                reader.get_row_group(group).unwrap().get_column_reader(leaf).unwrap()
            else {
                unreachable!()
            };
            let (mut buffer, mut definitions, mut repetitions) = (Vec::<ByteArray>::new(), Vec::new(), Vec::new());
            values.read_records(1_000_000, Some(&mut definitions), Some(&mut repetitions), &mut buffer).unwrap();
            all.extend(buffer.iter().map(|b| b.data().to_vec()));
        }
    }
    (all, text)
}

#[test]
fn strings_that_are_not_text_keep_their_bytes_and_their_type() {
    for dictionary in [false, true] {
        let mut bench = Bench::new();
        let batch = RecordBatch::try_from_iter([
            ("s", Arc::new(StringArray::from(vec!["b", "a"])) as ArrayRef),
            ("id", Arc::new(Int64Array::from(vec![100, 101]))),
        ])
        .unwrap();
        bench.add(&batch, WriterProperties::default());
        let values: Vec<Option<&[u8]>> = NOT_TEXT.into_iter().map(Some).chain([None, Some(&b"zz"[..])]).collect();
        bench.add_bytes(&flat(&values, dictionary)).deletes = Some(inline([1]));
        bench.add(&batch, WriterProperties::default());
        let mut write = plain_write();
        write.stats_leaves = vec![vec!["s".into()], vec!["id".into()]];
        let read = spec(vec![field("s", DataType::String), field("id", DataType::Long)]);
        let outcome = bench.run(read, write).unwrap();
        let mut expected: Vec<Vec<u8>> = vec![b"b".to_vec(), b"a".to_vec()];
        expected.extend([NOT_TEXT[0], NOT_TEXT[2], NOT_TEXT[3], b"zz", b"b", b"a"].map(<[u8]>::to_vec));
        assert_eq!(stored(&bench, &outcome, 0), (expected, true), "dictionary: {dictionary}");
        assert_eq!((outcome.rows_in, outcome.rows_out, outcome.left_out.len()), (9, 9, 0));
        let leaves = &outcome.outputs[0].stats.leaves;
        assert_eq!((leaves[0].null_count, &leaves[0].min, &leaves[0].max), (1, &None, &None));
        assert_eq!(leaves[1].max, Some(Scalar::Long(101)));
    }
}

#[test]
fn bounds_that_are_text_stand_although_other_values_are_not() {
    let mut bench = Bench::new();
    let values: [Option<&[u8]>; 3] = [Some(b"a"), Some(b"b\xff"), Some("é".as_bytes())];
    bench.add_bytes(&flat(&values, true));
    let mut write = plain_write();
    write.stats_leaves = vec![vec!["s".into()]];
    let outcome = bench.run(spec(vec![field("s", DataType::String)]), write).unwrap();
    let leaf = &outcome.outputs[0].stats.leaves[0];
    assert_eq!(leaf.min, Some(Scalar::String("a".into())));
    assert_eq!(leaf.max, Some(Scalar::String("é".into())));
}

#[test]
fn nested_strings_that_are_not_text_keep_their_bytes() {
    let inner: ArrayRef = Arc::new(BinaryArray::from(NOT_TEXT.to_vec()));
    let structs = StructArray::from(vec![(Arc::new(ArrowField::new("v", ArrowType::Binary, true)), inner.clone())]);
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([1usize, 3]);
    let element = Arc::new(ArrowField::new("element", ArrowType::Binary, true));
    let list = arrow::array::ListArray::new(element, offsets.clone(), inner.clone(), None);
    let entries = StructArray::from(vec![
        (Arc::new(ArrowField::new("key", ArrowType::Binary, false)), inner.clone()),
        (Arc::new(ArrowField::new("value", ArrowType::Binary, true)), inner.clone()),
    ]);
    let entry = Arc::new(ArrowField::new("key_value", entries.data_type().clone(), false));
    let map = arrow::array::MapArray::new(entry, offsets, entries, None, false);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("st", Arc::new(structs.slice(0, 2)) as ArrayRef, true),
        ("l", Arc::new(list), true),
        ("m", Arc::new(map), true),
    ])
    .unwrap();
    let bytes = declared_as_strings(
        "message m {
            optional group st { optional binary v (STRING); }
            optional group l (LIST) { repeated group list { optional binary element (STRING); } }
            optional group m (MAP) { repeated group key_value { required binary key (STRING); optional binary value (STRING); } }
        }",
        &batch,
        true,
    );
    let mut bench = Bench::new();
    bench.add_bytes(&bytes);
    let string = || Box::new(field("element", DataType::String));
    let outcome = bench
        .run(
            spec(vec![
                field("st", DataType::Struct(vec![field("v", DataType::String)])),
                field("l", DataType::List(string())),
                field(
                    "m",
                    DataType::Map(Box::new(field("key", DataType::String)), Box::new(field("value", DataType::String))),
                ),
            ]),
            plain_write(),
        )
        .unwrap();
    let all: Vec<Vec<u8>> = NOT_TEXT.iter().map(|v| v.to_vec()).collect();
    assert_eq!(stored(&bench, &outcome, 0), (all[..2].to_vec(), true));
    for leaf in 1..4 {
        assert_eq!(stored(&bench, &outcome, leaf), (all.clone(), true), "{leaf}");
    }
}

#[test]
fn bytes_without_a_string_type_become_strings_unchanged() {
    let mut bench = Bench::new();
    let array: ArrayRef = Arc::new(BinaryArray::from(NOT_TEXT.to_vec()));
    bench.add(&RecordBatch::try_from_iter([("s", array)]).unwrap(), WriterProperties::default());
    let outcome = bench.run(spec(vec![field("s", DataType::String)]), plain_write()).unwrap();
    assert_eq!(stored(&bench, &outcome, 0), (NOT_TEXT.iter().map(|v| v.to_vec()).collect(), true));
}

#[test]
fn a_file_that_cannot_be_rewritten_is_left_out_wherever_it_shows() {
    let longs = |from: i64| {
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from_iter_values(from..from + 10)) as ArrayRef)])
            .unwrap()
    };
    // Many rows before the one that does not fit: some of them are written when it is met.
    let mut big: Vec<u64> = (0..200_000).collect();
    big.push(u64::MAX);
    let odd: [(&str, ArrayRef); 3] = [
        ("a value at the end", Arc::new(UInt64Array::from(big))),
        ("a value at once", Arc::new(UInt64Array::from(vec![u64::MAX]))),
        ("a type", Arc::new(StringArray::from(vec!["x"]))),
    ];
    for (what, array) in odd {
        for place in 0..3 {
            let mut bench = Bench::new();
            for i in 0..3 {
                let batch = if i == place {
                    RecordBatch::try_from_iter([("x", array.clone())]).unwrap()
                } else {
                    longs(i64::from(i) * 10)
                };
                bench.add(&batch, WriterProperties::default());
            }
            let outcome = bench.run(spec(vec![field("x", DataType::Long)]), plain_write()).unwrap();
            let left: Vec<_> = outcome.left_out.iter().map(|l| (l.input.0, l.column.as_deref())).collect();
            assert_eq!(left, [(place as u32, Some("x"))], "{what}");
            assert_eq!((outcome.rows_in, outcome.rows_out, outcome.outputs.len()), (20, 20, 1), "{what}");
            assert!(outcome.row_map.iter().all(|s| s.input.0 != place as u32), "{what}");
            assert_eq!(bench.rows(&outcome.outputs[0].path).num_rows(), 20, "{what}");
            assert_eq!(bench.other_names().len(), 1, "{what}");
            let (told, stored) = bench.told_and_stored();
            assert_eq!(told, stored, "{what} in file {place}: progress is told of every byte once");
        }
    }
}

#[test]
fn nanoseconds_go_where_they_are_whole_microseconds_and_are_left_out_elsewhere() {
    let nanos = |values: Vec<i64>| {
        let array: ArrayRef = Arc::new(TimestampNanosecondArray::from(values).with_timezone("UTC"));
        RecordBatch::try_from_iter([("t", array)]).unwrap()
    };
    let mut bench = Bench::new();
    bench.add(&nanos(vec![1_000, -2_000]), WriterProperties::default());
    bench.add(&nanos(vec![1_000, 1_001]), WriterProperties::default());
    let outcome = bench.run(spec(vec![field("t", DataType::Timestamp)]), plain_write()).unwrap();
    assert_eq!((outcome.rows_out, outcome.left_out.len(), outcome.left_out[0].input.0), (2, 1, 1));
    assert!(outcome.left_out[0].reason.contains("nanoseconds"), "{:?}", outcome.left_out);
}

#[test]
fn shredded_variants_and_encrypted_footers_are_left_out_by_name() {
    let binary = |values: [&[u8]; 2]| -> ArrayRef { Arc::new(BinaryArray::from(values.to_vec())) };
    let part = |name: &str, array: ArrayRef| (Arc::new(ArrowField::new(name, array.data_type().clone(), true)), array);
    let variant = |shredded: bool| {
        let mut parts =
            vec![part("value", binary([b"\x0c\x01", b"\x0c\x02"])), part("metadata", binary([b"\x01\0\0"; 2]))];
        if shredded {
            parts.push(part("typed_value", Arc::new(Int64Array::from(vec![1, 2]))));
        }
        let array: ArrayRef = Arc::new(StructArray::from(parts));
        RecordBatch::try_from_iter([("j", array)]).unwrap()
    };
    let mut bench = Bench::new();
    bench.add(&variant(false), WriterProperties::default());
    bench.add(&variant(true), WriterProperties::default());
    bench.add(&variant(false), WriterProperties::default());
    let mut encrypted = std::fs::read(bench.path("in-0.parquet")).unwrap();
    let end = encrypted.len() - 4;
    encrypted[end..].copy_from_slice(b"PARE");
    bench.add_bytes(&encrypted);
    let outcome = bench.run(spec(vec![field("j", DataType::Variant)]), plain_write()).unwrap();
    let mut left: Vec<_> = outcome.left_out.iter().map(|l| (l.input.0, l.column.as_deref())).collect();
    left.sort();
    assert_eq!(left, [(1, Some("j")), (3, None)]);
    let reasons: Vec<&str> = outcome.left_out.iter().map(|l| l.reason.as_str()).collect();
    assert!(reasons.iter().any(|r| r.contains("rewrite it with Spark")), "{reasons:?}");
    assert_eq!((outcome.rows_in, outcome.rows_out, outcome.outputs.len()), (4, 4, 1));
}
