//! Bloom filters that inputs have are there in the outputs, and know every value.

use arrow::array::{Int64Builder, StringArray};
use parquet::bloom_filter::Sbbf;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{AsBytes, DataType as Stored};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::schema::types::ColumnPath;

use super::*;

impl Table {
    fn with_filters(&self, path: &str) -> SerializedFileReader<std::fs::File> {
        let file = std::fs::File::open(self.folder.path().join(path)).unwrap();
        let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
        SerializedFileReader::new_with_options(file, options).unwrap()
    }

    fn bloom_filters(&self, path: &str, leaf: usize) -> Vec<Option<Sbbf>> {
        let reader = self.with_filters(path);
        let filter = |group| reader.get_row_group(group).unwrap().get_column_bloom_filter(leaf).cloned();
        (0..reader.num_row_groups()).map(filter).collect()
    }
}

/// Values of a chunk, and how many of them its filter does not know.
fn unknown(reader: ColumnReader, filter: &Sbbf) -> (usize, usize) {
    fn of<T: Stored>(mut reader: ColumnReaderImpl<T>, filter: &Sbbf) -> (usize, usize) {
        let (mut levels, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
        while reader.read_records(1 << 20, Some(&mut levels), Some(&mut repeated), &mut values).unwrap().0 > 0 {}
        (values.len(), values.iter().filter(|value| !filter.check(*value)).count())
    }
    match reader {
        ColumnReader::Int32ColumnReader(reader) => of(reader, filter),
        ColumnReader::Int64ColumnReader(reader) => of(reader, filter),
        ColumnReader::FloatColumnReader(reader) => of(reader, filter),
        ColumnReader::DoubleColumnReader(reader) => of(reader, filter),
        ColumnReader::ByteArrayColumnReader(reader) => of(reader, filter),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => of(reader, filter),
        ColumnReader::Int96ColumnReader(_) | ColumnReader::BoolColumnReader(_) => panic!("a filter of such a column"),
    }
}

fn lists(dice: &mut Dice, rows: usize) -> ArrayRef {
    let element = ArrowField::new("element", ArrowType::Int64, true);
    let mut lists = ListBuilder::new(Int64Builder::new()).with_field(element);
    for _ in 0..rows {
        for _ in 0..dice.below(4) {
            lists.values().append_option((dice.below(5) > 0).then_some(dice.below(300) as i64));
        }
        lists.append(dice.below(5) > 0);
    }
    Arc::new(lists.finish())
}

fn listed() -> Vec<Field> {
    let element = DataType::List(Box::new(field("element", DataType::Long)));
    [fields(), vec![field("list", element)]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filters_know_every_value(seed: u64) {
        let mut dice = Dice(seed);
        let habits: Vec<Habit> = (0..HABITS).map(|_| Habit::of(&mut dice)).collect();
        let mut table = Table::new();
        // Filters may have to do with less room than they would like.
        table.memory_bytes = [13 << 20, 256 << 20][dice.below(2) as usize];
        let mut wanted = std::collections::BTreeSet::new();
        for _ in 0..1 + dice.below(5) {
            let rows = [1, 900, 5_000][dice.below(3) as usize];
            let mut arrays = columns(&mut dice, rows, &habits);
            arrays.push(("list", lists(&mut dice, rows)));
            let batch = RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(|(n, a)| (n, a, true)));
            let mut properties = properties(&mut dice, Compression::SNAPPY).into_builder();
            for path in filterable() {
                if dice.below(4) == 0 {
                    properties = properties.set_column_bloom_filter_enabled(path.clone(), true);
                    wanted.insert(path.string());
                }
            }
            table.add(batch.unwrap(), properties.build());
        }
        let mut write = write_spec(vec![]);
        write.row_group_rows = [700, 6_000, 1 << 20][dice.below(3) as usize];
        for merges in [true, false] {
            let outcome = table.run(listed(), true, write.clone(), &mut watched(merges)).unwrap();
            let reader = table.with_filters(&outcome.outputs[0].path);
            for group in 0..reader.num_row_groups() {
                let group = reader.get_row_group(group).unwrap();
                for leaf in 0..group.num_columns() {
                    let path = group.metadata().column(leaf).column_path().string();
                    let filter = group.get_column_bloom_filter(leaf);
                    prop_assert_eq!(filter.is_some(), wanted.contains(&path), "{}, merges {}", path, merges);
                    if let Some(filter) = filter {
                        let (values, unknown) = unknown(group.get_column_reader(leaf).unwrap(), filter);
                        prop_assert_eq!(unknown, 0, "{} of {}, merges {}", path, values, merges);
                    }
                }
            }
        }
    }
}

fn filterable() -> Vec<ColumnPath> {
    let plain = leaves(&fields()).into_iter().filter(|path| path[0] != "flag");
    let list = ["list", "list", "element"].map(str::to_owned).to_vec();
    plain.chain([list]).map(ColumnPath::new).collect()
}

fn filtering(name: &str) -> WriterPropertiesBuilder {
    WriterProperties::builder().set_column_bloom_filter_enabled(ColumnPath::from(name), true)
}

#[test]
fn a_filter_is_kept_whichever_input_has_it_and_whatever_its_column_was_called() {
    let mut table = Table::new();
    for i in 0..40 {
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(1_000 * i..1_000 * i + 50));
        let id = [("PARQUET:field_id".to_owned(), "7".to_owned())].into();
        let old = ArrowField::new("old", ArrowType::Int64, true).with_metadata(id);
        let schema = Arc::new(arrow::datatypes::Schema::new(vec![old]));
        let batch = RecordBatch::try_new(schema, vec![array]).unwrap();
        // Of so many inputs, the footer of this one is not looked at beforehand.
        let properties = if i == 7 { filtering("old").build() } else { WriterProperties::default() };
        table.add(batch, properties);
    }
    let renamed = Field { id: Some(7), ..field("new", DataType::Long) };
    table.match_by_id = true;
    for merges in [true, false] {
        let outcome = table.run(vec![renamed.clone()], true, write_spec(vec![]), &mut watched(merges)).unwrap();
        assert_eq!(outcome.rows_out, 2_000);
        let path = &outcome.outputs[0].path;
        let filters = table.bloom_filters(path, 0);
        let rows: Vec<i64> = table.footer(path).row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [7 * 50, 33 * 50], "merges {merges}");
        assert!(filters[0].is_none(), "merges {merges}");
        let filter = filters[1].as_ref().unwrap();
        let missed: Vec<i64> = (7..40).flat_map(|i| 1_000 * i..1_000 * i + 50).filter(|v| !filter.check(v)).collect();
        assert_eq!(missed, [0; 0], "merges {merges}");
    }
}

fn found<T: AsBytes>(filters: &[Option<Sbbf>], value: T) -> bool {
    filters.iter().any(|filter| filter.as_ref().unwrap().check(&value))
}

#[test]
fn bloom_filters_are_made_anew() {
    let mut table = Table::new();
    let filtered = |name: &str| ColumnPath::from(name);
    for (i, rows) in [4_000, 4_500, 10, 5_000].into_iter().enumerate() {
        let from = 10_000 * i as i64;
        let doubles = (from..from + rows).map(|v| if v % 1_000 == 0 { f64::NAN } else { -(v % 3) as f64 });
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("v", Arc::new(Int64Array::from_iter_values(from..from + rows)) as ArrayRef, true),
            ("t", Arc::new(StringArray::from_iter_values((from..from + rows).map(|v| format!("k{}", v / 10)))), true),
            ("d", Arc::new(Float64Array::from_iter_values(doubles)), true),
            ("other", Arc::new(Int64Array::from_iter_values(from..from + rows)), true),
        ]);
        let mut properties = snappy();
        if i == 1 {
            for name in ["v", "t", "d"] {
                properties = properties.set_column_bloom_filter_enabled(filtered(name), true);
            }
        }
        if i == 3 {
            properties = properties.set_dictionary_enabled(false);
        }
        table.add(batch.unwrap(), properties.build());
    }
    table.inputs[1].deletes = without(5..4_500);
    let fields = vec![
        field("v", DataType::Long),
        field("t", DataType::String),
        field("d", DataType::Double),
        field("other", DataType::Long),
    ];
    for merges in [true, false] {
        let mut write = write_spec(vec![]);
        write.row_group_rows = 7_000;
        let outcome = table.run(fields.clone(), true, write, &mut watched(merges)).unwrap();
        let path = &outcome.outputs[0].path;
        let of = |leaf| table.bloom_filters(path, leaf);
        assert!(of(3).iter().all(Option::is_none));
        let (numbers, texts, doubles) = (of(0), of(1), of(2));
        for v in [0i64, 3_999, 10_000, 10_004, 20_009, 30_000, 34_999] {
            assert!(found(&numbers, v), "{v}, merges {merges}");
            assert!(found(&texts, format!("k{}", v / 10).as_str()), "{v}, merges {merges}");
        }
        // Deleted rows are gone, and few others are found.
        let wrong = (10_005..14_500i64).chain(50_000..60_000).filter(|v| found(&numbers, *v)).count();
        assert!(wrong < 600, "{wrong} of 14,495, merges {merges}");
        let wrong = (5_000..15_000).filter(|v| found(&texts, format!("k{v}").as_str())).count();
        assert!(wrong < 400, "{wrong} of 10,000, merges {merges}");
        for value in [0.0, -0.0, -1.0, -2.0, f64::NAN] {
            assert!(found(&doubles, value), "{value}, merges {merges}");
        }
        assert!(!found(&doubles, 12.5) || !found(&doubles, 13.5) || !found(&doubles, 14.5));
        // As large as the values need, not as large as a row group may get.
        assert!(doubles.iter().flatten().all(|filter| filter.num_blocks() <= 2));
        assert!(numbers.iter().flatten().all(|filter| filter.num_blocks() <= 512));
    }
}

#[test]
fn no_zero_is_looked_for_in_a_dictionary_alone() {
    let mut table = Table::new();
    for (dictionary, zero, rows) in [(true, -0.0, 3_000), (true, f64::NAN, 3_000), (false, -0.0, 30)] {
        let doubles = (0..rows).map(|v| if v % 3 == 0 { zero } else { f64::from(v % 3) });
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("zero", Arc::new(Float64Array::from_iter_values(doubles)) as ArrayRef, true),
            ("other", Arc::new(Float64Array::from_iter_values((0..rows).map(|v| f64::from(v % 3 + 1)))), true),
        ]);
        table.add(batch.unwrap(), snappy().set_dictionary_enabled(dictionary).build());
    }
    let fields = vec![field("zero", DataType::Double), field("other", DataType::Double)];
    for merges in [true, false] {
        let outcome = table.run(fields.clone(), true, write_spec(vec![]), &mut watched(merges)).unwrap();
        let footer = table.footer(&outcome.outputs[0].path);
        let [zero, other] = footer.row_group(0).columns() else { panic!("two columns") };
        assert!(zero.dictionary_page_offset().is_some() && other.dictionary_page_offset().is_some(), "merges {merges}");
        assert!(zero.page_encoding_stats_mask().is_none(), "merges {merges}");
        assert!(other.page_encoding_stats_mask().is_some(), "merges {merges}");
    }
}
