//! Outputs of small inputs are as small as if all rows were encoded at once.

use arrow::array::TimestampMicrosecondArray as Times;

use super::*;

/// How the writer of the inputs encodes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habits {
    /// Dictionaries, whatever they cost.
    Dictionaries,
    Plain,
    /// What is smaller, chunk by chunk.
    Smaller,
    /// Plain at first, dictionaries in all inputs but the first.
    PlainFirst,
}

type Columns = Vec<(&'static str, DataType, ArrayRef)>;

/// Values that repeat within an input, those that repeat over many only, and those that never do.
fn values(dice: &mut Dice, from: usize, rows: usize) -> Columns {
    let mut of = |distinct: u64| -> Vec<i64> { (0..rows).map(|_| dice.below(distinct) as i64).collect() };
    let decimal = |values: Vec<i64>, precision: u8| -> ArrayRef {
        let values = values.into_iter().map(|v| i128::from(v) * 37);
        Arc::new(Decimal128Array::from_iter_values(values).with_precision_and_scale(precision, 2).unwrap())
    };
    let ids = from as i64..(from + rows) as i64;
    let wide = |v: i64| format!("{:016x}-{v}", (v as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let precise = |precision| DataType::Decimal { precision, scale: 2 };
    let half = of(9_000).into_iter().zip(of(2)).map(|(v, there)| (there == 1).then_some(v));
    let skewed = of(8_000).into_iter().zip(of(10)).map(|(v, dice)| if dice == 0 { v } else { 7 });
    let mut columns: Columns = vec![
        ("id", DataType::Long, Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("half", DataType::Long, Arc::new(half.collect::<Int64Array>())),
        ("skewed", DataType::Long, Arc::new(Int64Array::from_iter_values(skewed))),
    ];
    columns.extend([
        (
            "customer",
            DataType::Integer,
            Arc::new(Int32Array::from_iter_values(of(2_000).iter().map(|v| *v as i32))) as _,
        ),
        (
            "amount",
            DataType::Double,
            Arc::new(Float64Array::from_iter_values(of(10_000).iter().map(|v| *v as f64 / 100.0))) as _,
        ),
        (
            "score",
            DataType::Double,
            Arc::new(Float64Array::from_iter_values(of(u64::MAX >> 1).iter().map(|v| *v as f64))) as _,
        ),
        (
            "rate",
            DataType::Float,
            Arc::new(Float32Array::from_iter_values(of(700).iter().map(|v| *v as f32 / 7.0))) as _,
        ),
        ("d9", precise(9), decimal(of(3_000), 9)),
        ("d18", precise(18), decimal(of(50), 18)),
        ("d38", precise(38), decimal(of(6_000), 38)),
        ("date", DataType::Date, Arc::new(Date32Array::from_iter_values(of(30).iter().map(|v| *v as i32))) as _),
        ("few", DataType::String, Arc::new(StringArray::from_iter_values(of(12).into_iter().map(wide))) as _),
        ("word", DataType::String, Arc::new(StringArray::from_iter_values(of(4_000).into_iter().map(wide))) as _),
        ("token", DataType::String, Arc::new(StringArray::from_iter_values(ids.clone().map(wide))) as _),
        (
            "bin",
            DataType::Binary,
            Arc::new(BinaryArray::from_iter_values(of(5_000).iter().map(|v| v.to_le_bytes()))) as _,
        ),
        ("flag", DataType::Boolean, Arc::new(BooleanArray::from_iter(of(2).iter().map(|v| Some(*v == 1)))) as _),
        (
            "ts",
            DataType::Timestamp,
            Arc::new(Times::from_iter_values(ids.map(|v| v * 1_000_003)).with_timezone("UTC")) as _,
        ),
    ]);
    columns
}

/// Bytes of each leaf.
fn sizes(metadata: &ParquetMetaData) -> Vec<i64> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let of = |leaf: usize| metadata.row_groups().iter().map(|group| group.column(leaf).compressed_size()).sum();
    (0..columns).map(of).collect()
}

fn encoded(batch: &RecordBatch, codec: Compression, dictionary: bool) -> Vec<i64> {
    let properties = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(dictionary).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    let bytes = Bytes::from(writer.into_inner().unwrap());
    sizes(&ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap())
}

/// No leaf of the output is noticeably larger than the smaller of all rows with dictionaries and all rows without.
fn check(habits: Habits, files: usize, rows: usize, codec: Compression) {
    let mut dice = Dice(files as u64);
    check_files((0..files).map(|file| values(&mut dice, file * rows, rows)), habits, rows, codec);
}

fn check_files(files: impl Iterator<Item = Columns>, habits: Habits, rows: usize, codec: Compression) {
    let mut table = Table::new();
    let mut fields = Vec::new();
    for (file, columns) in files.enumerate() {
        fields = columns.iter().map(|(name, data_type, _)| field(name, data_type.clone())).collect();
        let batch = columns.into_iter().map(|(name, _, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(batch).unwrap();
        let dictionary = habits == Habits::Dictionaries || habits == Habits::PlainFirst && file > 0;
        let mut properties = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(dictionary);
        if habits == Habits::Smaller {
            let (with, without) = (encoded(&batch, codec, true), encoded(&batch, codec, false));
            for ((field, with), without) in batch.schema().fields().iter().zip(with).zip(without) {
                let path = parquet::schema::types::ColumnPath::from(field.name().as_str());
                properties = properties.set_column_dictionary_enabled(path, with < without);
            }
        }
        table.add(batch, properties.build());
    }
    let expected = table.expected();
    let best = encoded(&expected, codec, true).into_iter().zip(encoded(&expected, codec, false));
    let best: Vec<i64> = best.map(|(with, without)| with.min(without)).collect();
    // Encoders go by what dictionaries save in the inputs, if these are not small, and before compression, although
    // Zstandard may find the same by itself.
    let encodes = rows < 4_000 && !matches!(codec, Compression::ZSTD(_));
    for merges in [true, false].into_iter().filter(|merges| *merges || encodes) {
        let mut between = watched(merges);
        let outcome = table.run(fields.clone(), false, write_spec(leaves(&fields)), &mut between).unwrap();
        assert_eq!(between.batches == 0, merges, "{habits:?}, files of {rows}");
        let path = &outcome.outputs[0].path;
        assert_eq!(table.read(path, None).columns(), expected.columns());
        for ((field, size), best) in fields.iter().zip(sizes(&table.footer(path))).zip(&best) {
            assert!(
                size <= best + best / 20 + 100,
                "{} takes {size} bytes, {best} would do; {habits:?}, merges {merges}, files of {rows}",
                field.name
            );
        }
    }
}

#[test]
fn files_of_a_few_thousand_rows() {
    for habits in [Habits::Dictionaries, Habits::Plain, Habits::Smaller, Habits::PlainFirst] {
        check(habits, 20, 2_500, Compression::SNAPPY);
    }
}

#[test]
fn files_of_a_few_hundred_rows() {
    for habits in [Habits::Dictionaries, Habits::Smaller] {
        check(habits, 70, 300, Compression::SNAPPY);
        check(habits, 40, 900, Compression::ZSTD(Default::default()));
    }
}

#[test]
fn a_plain_file_before_another() {
    for codec in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
        check(Habits::PlainFirst, 2, 800, codec);
        check(Habits::PlainFirst, 3, 3_000, codec);
    }
}

#[test]
fn larger_files_whose_values_repeat_all_the_more() {
    check(Habits::Smaller, 12, 7_000, Compression::SNAPPY);
}

#[test]
fn values_that_take_long_to_tell() {
    let mut dice = Dice(5);
    let file = |_| -> Columns {
        let mut of = |distinct: u64| -> Vec<i64> { (0..2_500).map(|_| dice.below(distinct) as i64).collect() };
        vec![
            ("l", DataType::Long, Arc::new(Int64Array::from(of(60_000)))),
            (
                "i",
                DataType::Integer,
                Arc::new(Int32Array::from_iter_values(of(40_000).iter().map(|v| *v as i32 * 50_021))),
            ),
            (
                "d",
                DataType::Double,
                Arc::new(Float64Array::from_iter_values(of(400_000).iter().map(|v| *v as f64 / 3.0))),
            ),
        ]
    };
    check_files((0..90).map(file), Habits::Plain, 2_500, Compression::SNAPPY);
}

#[test]
fn small_and_large_inputs_share_an_output() {
    let mut table = Table::new();
    let mut dice = Dice(11);
    let mut fields = Vec::new();
    let mut from = 0;
    for (rows, dictionary) in [(900, false), (900, true), (25_000, true), (40, false), (25_000, false), (900, true)] {
        let columns = values(&mut dice, from, rows);
        from += rows;
        fields = columns.iter().map(|(name, data_type, _)| field(name, data_type.clone())).collect();
        let batch = columns.into_iter().map(|(name, _, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(batch).unwrap();
        table.add(batch, snappy().set_dictionary_enabled(dictionary).build());
    }
    let expected = table.expected();
    for rows in [1_000, 30_000, 1 << 20] {
        let mut write = write_spec(leaves(&fields));
        write.row_group_rows = rows;
        let outcomes =
            [true, false].map(|merges| table.run(fields.clone(), false, write.clone(), &mut watched(merges)).unwrap());
        assert_eq!(outcomes[0].outputs[0].stats, outcomes[1].outputs[0].stats);
        for outcome in outcomes {
            let path = &outcome.outputs[0].path;
            assert_eq!(table.read(path, None).columns(), expected.columns());
            let metadata = table.footer(path);
            for (column, (field, values)) in fields.iter().zip(expected.columns()).enumerate() {
                if matches!(field.data_type, DataType::Long | DataType::String) {
                    check_page_index(&metadata, column, values);
                }
            }
        }
    }
    // Ids came first, then values.
    let outcome = table.run(fields.clone(), false, write_spec(vec![]), &mut watched(true)).unwrap();
    let chunks = table.footer(&outcome.outputs[0].path).row_group(0).columns().to_vec();
    let mixed = chunks.iter().filter(|chunk| {
        let counts = chunk.page_encoding_stats_mask().map(|mask| mask.encodings().collect::<Vec<_>>());
        counts.is_some_and(|encodings| {
            encodings.contains(&Encoding::PLAIN) && encodings.contains(&Encoding::RLE_DICTIONARY)
        })
    });
    let mixed: Vec<String> = mixed.map(|chunk| chunk.column_path().string()).collect();
    assert!(mixed.len() >= 3, "{mixed:?}");
}
