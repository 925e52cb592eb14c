//! Inputs that lead page merging astray: neighbours with deleted rows, types that only look alike, odd footers, and bounds.

use arrow::array::{
    Decimal128Array, FixedSizeBinaryArray, Float16Array, StringArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array,
};
use arrow::datatypes::{ArrowPrimitiveType, Float16Type};
use lakesmith_core::table::RowTrackingColumns;
use parquet::basic::PageType;
use parquet::file::metadata::ParquetMetaDataWriter;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::*;

fn one(name: &str, array: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(name, Arc::new(array) as ArrayRef, true)]).unwrap()
}

impl Table {
    /// Whether each data page of a column holds ids, row group by row group.
    fn pages_of_ids(&self, path: &str, leaf: usize) -> Vec<Vec<bool>> {
        let reader = SerializedFileReader::new(std::fs::File::open(self.folder.path().join(path)).unwrap()).unwrap();
        let pages = |group| {
            let pages = reader.get_row_group(group).unwrap().get_column_page_reader(leaf).unwrap();
            let data = pages.map(Result::unwrap).filter(|page| page.page_type() != PageType::DICTIONARY_PAGE);
            data.map(|page| page.encoding() == Encoding::RLE_DICTIONARY).collect()
        };
        (0..reader.num_row_groups()).map(pages).collect()
    }
}

#[test]
fn ids_never_follow_values_in_a_chunk() {
    let mut table = Table::new();
    // Values of 4 MB are more than merging one chunk may expand.
    table.memory_bytes = 16 << 20;
    let plain = (0..6_000).map(|i| format!("{i:040}"));
    table.add(one("t", StringArray::from_iter_values(plain)), snappy().set_dictionary_enabled(false).build());
    let few = (0..20_000).map(|i| format!("{:0300}", i % 7));
    table.add(one("t", StringArray::from_iter_values(few)), snappy().build());
    table.inputs[1].deletes = without([3]);
    // A vote of its own makes the dictionary pay.
    let many = (0..60_000).map(|i| format!("{:020}", i % 9));
    table.add(one("t", StringArray::from_iter_values(many)), snappy().build());
    let mut between = watched(true);
    let outcome = table.run(vec![field("t", DataType::String)], true, write_spec(vec![]), &mut between).unwrap();
    assert_eq!(outcome.rows_out, 85_999);
    let groups = table.pages_of_ids(&outcome.outputs[0].path, 0);
    assert!(groups[0].contains(&false));
    for pages in groups {
        assert!(pages.is_sorted_by(|ids, next| *ids || !*next), "{pages:?}");
    }
}

/// Rows that are encoded between merged chunks may outgrow their own dictionary: few plain values then follow many ids.
#[test]
fn values_behind_ids_that_are_too_many_to_expand_are_kept() {
    let mut table = Table::new();
    table.memory_bytes = 16 << 20;
    let few = |rows: usize| (0..rows).map(|i| format!("{:0300}", i % 7));
    table.add(one("t", StringArray::from_iter_values(few(30_000))), snappy().build());
    // The dictionary ends at a MiB, in the middle of values of a thousand bytes.
    let long = (0..1_100).map(|i| format!("{i:01000}"));
    let short = (0..2_500).map(|i| format!("{i:06}"));
    let mixed = few(30_000).chain(long).chain(short);
    table.add(one("t", StringArray::from_iter_values(mixed)), snappy().build());
    table.inputs[1].deletes = without([3]);
    let fields = vec![field("t", DataType::String)];
    let outcome = table.run(fields, true, write_spec(vec![]), &mut watched(true)).unwrap();
    assert_eq!(outcome.rows_out, 63_599);
    let groups = table.pages_of_ids(&outcome.outputs[0].path, 0);
    assert!(groups.iter().any(|pages| pages.contains(&true) && pages.contains(&false)), "{groups:?}");
    let read = table.read(&outcome.outputs[0].path, None);
    let expected = concat_batches(&table.batches[0].schema(), &table.batches).unwrap();
    let live = Int64Array::from_iter_values((0..63_600).filter(|row| *row != 30_003));
    assert_eq!(read.column(0).as_ref(), take(expected.column(0), &live, None).unwrap().as_ref());
}

#[test]
fn positions_hold_beside_deleted_rows() {
    let grouped = || snappy().set_max_row_group_row_count(Some(1_000)).build();
    let mut table = Table::new();
    for (rows, deleted) in [(2_500, vec![]), (3_000, vec![0, 999, 2_500]), (10, vec![]), (4_000, vec![3_999])] {
        let from = 10_000 * table.inputs.len() as i64;
        table.add(one("v", Int64Array::from_iter_values(from..from + rows)), grouped());
        let input = table.inputs.last_mut().unwrap();
        input.base_row_id = Some(from);
        input.row_commit_version = Some(7);
        if !deleted.is_empty() {
            input.deletes = without(deleted);
        }
    }
    let mut write = write_spec(vec![vec!["v".into()]]);
    write.row_tracking =
        Some(RowTrackingColumns { row_id: "_id".into(), commit_version: "_version".into(), field_ids: None });
    for max_rows in [None, Some(2_200)] {
        write.max_rows_per_file = max_rows;
        let outcome = table.run(vec![field("v", DataType::Long)], true, write.clone(), &mut watched(true)).unwrap();
        let outputs: Vec<RecordBatch> = outcome.outputs.iter().map(|o| table.read(&o.path, None)).collect();
        let mut mapped = 0;
        for segment in &outcome.row_map {
            let index = segment.input.0 as usize;
            let deleted: Vec<i64> = [vec![], vec![0, 999, 2_500], vec![], vec![3_999]][index].clone();
            let from = 10_000 * index as i64;
            let live: Vec<i64> = (0..4_000).filter(|row| !deleted.contains(row)).map(|row| from + row).collect();
            let (first, rows) = (segment.first_live as usize, segment.rows as usize);
            let output = outputs[segment.output as usize].slice(segment.output_start as usize, rows);
            for (column, is_id) in [(0, true), (1, true), (2, false)] {
                let values = output.column(column).as_primitive::<Int64Type>().values();
                if is_id {
                    assert_eq!(values[..], live[first..first + rows])
                } else {
                    assert_eq!(values[..], vec![7; rows])
                }
            }
            mapped += segment.rows;
        }
        assert_eq!(mapped, 2_500 + 2_997 + 10 + 3_999);
        assert_eq!(mapped, outcome.rows_out);
    }
}

#[test]
fn types_that_only_look_alike_are_decoded() {
    let decimal = |precision, scale| -> ArrayRef {
        let values = Decimal128Array::from_iter_values([1, 200, -30]);
        Arc::new(values.with_precision_and_scale(precision, scale).unwrap())
    };
    let wide = |precision, scale| DataType::Decimal { precision, scale };
    let micros = |v: &[i64]| TimestampMicrosecondArray::from(v.to_vec());
    let halves =
        Float16Array::from_iter_values([1.5, f32::NAN].map(<Float16Type as ArrowPrimitiveType>::Native::from_f32));
    let uuids = FixedSizeBinaryArray::try_from_iter([[7u8; 16], [9u8; 16]].into_iter()).unwrap();
    let cases: Vec<(ArrayRef, DataType, bool)> = vec![
        (decimal(9, 2), wide(9, 2), true),
        (decimal(9, 2), wide(9, 3), false),
        (decimal(8, 2), wide(9, 2), false),
        (decimal(9, 2), wide(12, 2), false),
        (decimal(20, 2), wide(21, 2), false),
        (Arc::new(micros(&[1, -1])), DataType::TimestampNtz, true),
        (Arc::new(micros(&[1, -1])), DataType::Timestamp, false),
        (Arc::new(micros(&[1, -1]).with_timezone("UTC")), DataType::Timestamp, true),
        (Arc::new(micros(&[1, -1]).with_timezone("UTC")), DataType::TimestampNtz, false),
        (Arc::new(TimestampMillisecondArray::from(vec![1, -1])), DataType::TimestampNtz, false),
        (Arc::new(TimestampNanosecondArray::from(vec![1_000, -1_000])), DataType::TimestampNtz, false),
        (Arc::new(UInt8Array::from(vec![1, 255])), DataType::Integer, false),
        (Arc::new(UInt32Array::from(vec![1, 1 << 30])), DataType::Integer, false),
        (Arc::new(UInt32Array::from(vec![1, u32::MAX])), DataType::Long, false),
        (Arc::new(Int32Array::from(vec![1, -1])), DataType::Long, false),
        (Arc::new(Int8Array::from(vec![1, -1])), DataType::Integer, false),
        (Arc::new(Date32Array::from(vec![1, -1])), DataType::Date, true),
        (Arc::new(halves), DataType::Float, false),
        (Arc::new(Float32Array::from(vec![1.5, f32::NAN])), DataType::Double, false),
        (Arc::new(uuids), DataType::Binary, false),
        (Arc::new(BinaryArray::from(vec![&b"a"[..], b"bc"])), DataType::String, false),
        (Arc::new(StringArray::from(vec!["a", "bc"])), DataType::Binary, false),
    ];
    for (array, to, merges) in cases {
        let mut table = Table::new();
        let from = array.data_type().clone();
        let batch = RecordBatch::try_from_iter_with_nullable([("v", array, true)]).unwrap();
        for dictionary in [true, false] {
            table.add(batch.clone(), snappy().set_dictionary_enabled(dictionary).build());
        }
        let mut between = watched(true);
        let write = write_spec(vec![vec!["v".into()]]);
        let merged = table.run(vec![field("v", to.clone())], true, write.clone(), &mut between).unwrap();
        let quick = table.run(vec![field("v", to.clone())], false, write.clone(), &mut between).unwrap();
        let encoded = table.run(vec![field("v", to.clone())], true, write, &mut watched(false)).unwrap();
        assert_eq!(merged.content_hash, encoded.content_hash, "{from} to {to:?}");
        assert_eq!(quick.outputs[0].stats, encoded.outputs[0].stats, "{from} to {to:?}");
        let mut unverified = watched(true);
        table.run(vec![field("v", to.clone())], false, write_spec(vec![]), &mut unverified).unwrap();
        assert_eq!(unverified.batches == 0, merges, "{from} to {to:?}");
        let rows = table.read(&quick.outputs[0].path, None);
        assert_eq!(rows.column(0).to_data(), table.read(&encoded.outputs[0].path, None).column(0).to_data());
    }
}

#[test]
fn a_dictionary_at_offset_zero_is_none() {
    let mut table = Table::new();
    let plain = snappy().set_dictionary_enabled(false).build();
    table.add(numbers(0, 300).project(&[0, 1]).unwrap(), plain);
    let path = table.folder.path().join("in-0.parquet");
    let footer = table.footer("in-0.parquet");
    let bytes = std::fs::read(&path).unwrap();
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let group = footer.row_group(0).clone();
    let columns = group
        .columns()
        .iter()
        .map(|column| column.clone().into_builder().set_dictionary_page_offset(Some(0)).build().unwrap());
    let columns = columns.collect();
    let group = group.into_builder().set_column_metadata(columns).build().unwrap();
    let builder = footer.into_builder().set_row_groups(vec![group]).set_column_index(None).set_offset_index(None);
    let mut changed = bytes[..bytes.len() - 8 - length].to_vec();
    ParquetMetaDataWriter::new(&mut changed, &builder.build()).finish().unwrap();
    std::fs::write(&path, &changed).unwrap();
    table.inputs[0].size = changed.len() as u64;
    assert_eq!(table.footer("in-0.parquet").row_group(0).column(0).dictionary_page_offset(), Some(0));
    for merges in [true, false] {
        let mut between = watched(merges);
        let fields = number_fields().into_iter().take(2).collect();
        let outcome = table.run(fields, false, write_spec(vec![]), &mut between).unwrap();
        assert_eq!(between.batches == 0, merges);
        assert_eq!(table.read(&outcome.outputs[0].path, None), table.expected());
    }
}

#[test]
fn no_bounds_hide_nan() {
    let mut table = Table::new();
    for (i, last) in [2.0, f64::NAN].into_iter().enumerate() {
        let doubles: Vec<f64> = (0..300).map(f64::from).chain([last]).collect();
        let floats: Vec<f32> = doubles.iter().map(|v| *v as f32).collect();
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("d", Arc::new(Float64Array::from(doubles)) as ArrayRef, true),
            ("f", Arc::new(Float32Array::from(floats)), true),
            ("n", Arc::new(Int32Array::from(vec![i as i32; 301])), true),
        ]);
        table.add(batch.unwrap(), snappy().build());
    }
    let fields = vec![field("d", DataType::Double), field("f", DataType::Float), field("n", DataType::Integer)];
    for (inputs, bounded) in [(2, false), (1, true)] {
        table.inputs.truncate(inputs);
        for merges in [true, false] {
            let outcome = table.run(fields.clone(), true, write_spec(vec![]), &mut watched(merges)).unwrap();
            let footer = table.footer(&outcome.outputs[0].path);
            for leaf in 0..3 {
                let statistics = footer.row_group(0).column(leaf).statistics().unwrap();
                let expected = bounded || leaf == 2;
                assert_eq!(statistics.min_bytes_opt().is_some(), expected, "column {leaf}, merges {merges}");
                assert_eq!(statistics.max_bytes_opt().is_some(), expected, "column {leaf}, merges {merges}");
                assert_eq!(statistics.null_count_opt(), Some(0));
                let index = &footer.column_index().unwrap()[0][leaf];
                assert_eq!(!matches!(index, ColumnIndexMetaData::NONE), expected, "column {leaf}, merges {merges}");
            }
        }
    }
}
