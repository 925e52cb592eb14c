//! Merged pages against encoded rows, over random tables.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int32Array, Int64Array, ListBuilder, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Int64Type};
use bytes::Bytes;
use lakesmith_core::ErrorKind;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{DataType, DeleteInfo, Field, FileId, PartitionTuple, ReadSpec, Scalar, Schema, WriteSpec};
use lakesmith_storage::{NoProgress, StoreOptions, SystemWorld};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use proptest::prelude::*;

use super::*;

/// Counts batches; they may be all rows or what is left beside merged columns.
struct Watched {
    merges: bool,
    batches: usize,
    swap: Option<Bytes>,
}

impl Between for Watched {
    fn batch(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        self.batches += 1;
        Some(batch)
    }

    fn merges(&self) -> bool {
        self.merges
    }

    fn chunks(&mut self, chunks: &mut [InputChunk]) {
        if let Some(other) = &mut self.swap {
            std::mem::swap(other, &mut chunks[0].bytes);
        }
    }
}

fn watched(merges: bool) -> Watched {
    Watched { merges, batches: 0, swap: None }
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}

/// One column's habits: how many values it has, how often it is null.
#[derive(Clone, Copy)]
struct Habit {
    distinct: u64,
    null_percent: u64,
}

impl Habit {
    fn of(dice: &mut Dice) -> Habit {
        let distinct = [1, 3, 200, 20_000, u64::MAX][dice.below(5) as usize];
        Habit { distinct, null_percent: [0, 0, 7, 50, 100][dice.below(5) as usize] }
    }

    fn values<T>(self, dice: &mut Dice, rows: usize, make: impl Fn(u64) -> T) -> Vec<Option<T>> {
        (0..rows)
            .map(|_| {
                let value = dice.roll() % self.distinct;
                (dice.below(100) >= self.null_percent).then(|| make(value))
            })
            .collect()
    }
}

fn text(value: u64) -> String {
    match value % 5 {
        0 => String::new(),
        1 => format!("{value}é"),
        2 => format!("{value:090}"),
        _ => value.to_string(),
    }
}

fn float(value: u64) -> f64 {
    match value % 50 {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::NEG_INFINITY,
        _ => (value as i64 >> 20) as f64,
    }
}

fn columns(dice: &mut Dice, rows: usize, habits: &[Habit]) -> Vec<(&'static str, ArrayRef)> {
    let decimal = |values: Vec<Option<i128>>, precision| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, 2).unwrap())
    };
    let mut h = habits.iter().copied();
    let mut next = || h.next().unwrap();
    let inner = StructArray::new(
        vec![ArrowField::new("d", ArrowType::Float64, true), ArrowField::new("t", ArrowType::Utf8, true)].into(),
        vec![
            Arc::new(Float64Array::from(next().values(dice, rows, float))) as ArrayRef,
            Arc::new(StringArray::from(next().values(dice, rows, text))),
        ],
        Some(NullBuffer::from(next().values(dice, rows, |_| ()).iter().map(Option::is_some).collect::<Vec<_>>())),
    );
    let outer = StructArray::new(
        vec![ArrowField::new("x", ArrowType::Int64, true), ArrowField::new("i", inner.data_type().clone(), true)]
            .into(),
        vec![Arc::new(Int64Array::from(next().values(dice, rows, |v| v as i64))) as ArrayRef, Arc::new(inner)],
        Some(NullBuffer::from(next().values(dice, rows, |_| ()).iter().map(Option::is_some).collect::<Vec<_>>())),
    );
    vec![
        ("flag", Arc::new(BooleanArray::from(next().values(dice, rows, |v| v % 2 == 0)))),
        ("i32", Arc::new(Int32Array::from(next().values(dice, rows, |v| v as i32)))),
        ("i64", Arc::new(Int64Array::from(next().values(dice, rows, |v| v as i64)))),
        ("f", Arc::new(Float32Array::from(next().values(dice, rows, |v| float(v) as f32)))),
        ("d", Arc::new(Float64Array::from(next().values(dice, rows, float)))),
        ("d9", decimal(next().values(dice, rows, |v| i128::from(v as i32 >> 3)), 9)),
        ("d18", decimal(next().values(dice, rows, |v| i128::from(v as i64 >> 8)), 18)),
        ("d38", decimal(next().values(dice, rows, |v| i128::from(v as i64) << 40), 38)),
        ("date", Arc::new(Date32Array::from(next().values(dice, rows, |v| (v % 100_000) as i32)))),
        (
            "ts",
            Arc::new(
                TimestampMicrosecondArray::from(next().values(dice, rows, |v| v as i64 >> 8)).with_timezone("UTC"),
            ),
        ),
        ("text", Arc::new(StringArray::from(next().values(dice, rows, text)))),
        (
            "bin",
            Arc::new(
                next().values(dice, rows, |v| v.to_le_bytes()).iter().map(|v| v.as_ref()).collect::<BinaryArray>(),
            ),
        ),
        ("s", Arc::new(outer)),
    ]
}

const HABITS: usize = 17;

fn field(name: &str, data_type: DataType) -> Field {
    Field {
        name: name.into(),
        physical: name.into(),
        id: None,
        data_type,
        nullable: true,
        metadata: Default::default(),
    }
}

fn fields() -> Vec<Field> {
    let decimal = |precision| DataType::Decimal { precision, scale: 2 };
    let inner = DataType::Struct(vec![field("d", DataType::Double), field("t", DataType::String)]);
    vec![
        field("flag", DataType::Boolean),
        field("i32", DataType::Integer),
        field("i64", DataType::Long),
        field("f", DataType::Float),
        field("d", DataType::Double),
        field("d9", decimal(9)),
        field("d18", decimal(18)),
        field("d38", decimal(38)),
        field("date", DataType::Date),
        field("ts", DataType::Timestamp),
        field("text", DataType::String),
        field("bin", DataType::Binary),
        field("s", DataType::Struct(vec![field("x", DataType::Long), field("i", inner)])),
    ]
}

fn leaves(fields: &[Field]) -> Vec<Vec<String>> {
    let of = |f: &Field| match &f.data_type {
        DataType::Struct(children) => leaves(children),
        _ => vec![vec![]],
    };
    let named = |f: &Field| of(f).into_iter().map(|rest| [vec![f.physical.clone()], rest].concat()).collect::<Vec<_>>();
    fields.iter().flat_map(named).collect()
}

struct Table {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    inputs: Vec<InputFile>,
    batches: Vec<RecordBatch>,
    memory_bytes: u64,
    match_by_id: bool,
}

impl Table {
    fn new() -> Table {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        Table { folder, runtime, inputs: vec![], batches: vec![], memory_bytes: 256 << 20, match_by_id: false }
    }

    fn root(&self) -> Location {
        Location::from_local_path(self.folder.path()).unwrap()
    }

    fn add(&mut self, batch: RecordBatch, properties: WriterProperties) {
        let name = format!("in-{}.parquet", self.inputs.len());
        let file = std::fs::File::create(self.folder.path().join(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        self.inputs.push(InputFile {
            id: FileId(self.inputs.len() as u32),
            location: self.root().join(&name).to_string(),
            size: std::fs::metadata(self.folder.path().join(&name)).unwrap().len(),
            rows: Some(batch.num_rows() as u64),
            deletes: None,
            delete_files: Vec::new(),
            base_row_id: None,
            row_commit_version: None,
        });
        self.batches.push(batch);
    }

    fn run(&self, fields: Vec<Field>, verify: bool, write: WriteSpec, between: &mut Watched) -> Result<RewriteOutcome> {
        let task = RewriteTask {
            id: 0,
            inputs: self.inputs.clone(),
            partition: PartitionTuple::default(),
            read: Arc::new(ReadSpec { schema: Schema { fields }, match_by_id: self.match_by_id }),
            write: Arc::new(write),
            root: self.root().to_string(),
            output_stem: format!("out-{}-{verify}", between.merges),
            verify,
            order: None,
        };
        let control = RewriteControl {
            memory_bytes: self.memory_bytes,
            threads: 1,
            spill_folder: std::env::temp_dir(),
            cancel: Cancel::default(),
            progress: Arc::new(NoProgress),
            now_ms: Arc::new(SystemWorld),
            runtime: self.runtime.handle().clone(),
        };
        let store = Store::open(&self.root(), &StoreOptions::default()).unwrap();
        run(&task, &TaskContext::new(store, control), between)
    }

    fn read(&self, path: &str, selection: Option<RowSelection>) -> RecordBatch {
        let file = std::fs::File::open(self.folder.path().join(path)).unwrap();
        let policy = if selection.is_some() { PageIndexPolicy::Required } else { PageIndexPolicy::Skip };
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        let mut reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
        if let Some(selection) = selection {
            reader = reader.with_row_selection(selection);
        }
        let schema = Arc::clone(reader.schema());
        let batches = reader.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        concat_batches(&schema, &batches).unwrap()
    }

    fn footer(&self, path: &str) -> ParquetMetaData {
        let file = std::fs::File::open(self.folder.path().join(path)).unwrap();
        ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional).parse_and_finish(&file).unwrap()
    }

    fn expected(&self) -> RecordBatch {
        let nullable = |f: &Arc<ArrowField>| ArrowField::clone(f).with_nullable(true);
        let fields: Vec<ArrowField> = self.batches[0].schema_ref().fields().iter().map(nullable).collect();
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let of = |b: &RecordBatch| RecordBatch::try_new(Arc::clone(&schema), b.columns().to_vec()).unwrap();
        let batches: Vec<RecordBatch> = self.batches.iter().map(of).collect();
        concat_batches(&schema, &batches).unwrap()
    }
}

fn write_spec(stats_leaves: Vec<Vec<String>>) -> WriteSpec {
    WriteSpec {
        partition_fields: vec![],
        partition_indexes: vec![],
        row_tracking: None,
        stats_leaves,
        max_rows_per_file: None,
        compression: None,
        row_group_rows: 1 << 20,
        row_group_bytes: 128 << 20,
    }
}

fn snappy() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::SNAPPY)
}

fn without(rows: impl IntoIterator<Item = u64>) -> Option<DeleteInfo> {
    let vector = DeletionVector::from_rows(rows);
    let bytes = vector.encode();
    Some(DeleteInfo {
        unique_id: "i-test".into(),
        storage_type: "i".into(),
        path_or_inline: String::new(),
        offset: None,
        size_in_bytes: bytes.len() as i32,
        cardinality: vector.cardinality(),
        at: VectorLocation::Inline(bytes),
    })
}

fn properties(dice: &mut Dice, codec: Compression) -> WriterProperties {
    let statistics = [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
    WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version([WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][dice.below(2) as usize])
        // The second version's own fallback is a delta encoding, which is not merged.
        .set_encoding(Encoding::PLAIN)
        .set_dictionary_enabled(dice.below(3) > 0)
        .set_dictionary_page_size_limit([200, 100_000, 1 << 20][dice.below(3) as usize])
        .set_data_page_row_count_limit([1, 100, 5_000, 20_000][dice.below(4) as usize])
        .set_write_batch_size([1, 64, 1_024][dice.below(3) as usize])
        .set_data_page_size_limit([100, 10_000, 1 << 20][dice.below(3) as usize])
        .set_statistics_enabled(statistics[dice.below(3) as usize])
        .set_max_row_group_row_count(Some([500, 6_000, 1 << 20][dice.below(3) as usize]))
        .build()
}

/// Null counts and bounds of every page hold for the page's rows.
fn check_page_index(metadata: &ParquetMetaData, column: usize, values: &dyn Array) {
    let stored = metadata.file_metadata().schema_descr();
    let leaf = (0..stored.num_columns()).find(|leaf| stored.get_column_root_idx(*leaf) == column).unwrap();
    let mut before = 0;
    for group in 0..metadata.num_row_groups() {
        let rows = metadata.row_group(group).num_rows() as usize;
        let pages = metadata.offset_index().unwrap()[group][leaf].page_locations();
        let index = &metadata.column_index().unwrap()[group][leaf];
        for (i, page) in pages.iter().enumerate() {
            let from = page.first_row_index as usize;
            let to = pages.get(i + 1).map_or(rows, |next| next.first_row_index as usize);
            let part = values.slice(before + from, to - from);
            match index {
                ColumnIndexMetaData::INT64(index) => {
                    let part = part.as_primitive::<Int64Type>();
                    assert_eq!(index.null_count(i), Some(part.null_count() as i64));
                    assert_eq!(index.min_value(i).copied(), arrow::compute::min(part));
                    assert_eq!(index.max_value(i).copied(), arrow::compute::max(part));
                }
                ColumnIndexMetaData::BYTE_ARRAY(index) => {
                    let part = part.as_string::<i32>();
                    assert_eq!(index.null_count(i), Some(part.null_count() as i64));
                    let (low, high) = (index.min_value(i), index.max_value(i));
                    assert_eq!(low.is_none(), part.null_count() == part.len());
                    for value in part.iter().flatten().map(str::as_bytes) {
                        assert!(low.is_some_and(|l| l <= value) && high.is_some_and(|h| value <= h));
                    }
                }
                other => panic!("no column index: {other:?}"),
            }
        }
        before += rows;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_pages_hold_the_same_rows_and_statistics(seed: u64) {
        let mut dice = Dice(seed);
        let codecs = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())];
        let habits: Vec<Habit> = (0..HABITS).map(|_| Habit::of(&mut dice)).collect();
        let mut table = Table::new();
        let same_codec = dice.below(2) == 0;
        for _ in 0..1 + dice.below(6) {
            let rows = [1, 7, 900, 2_501, 5_000][dice.below(5) as usize];
            let batch = RecordBatch::try_from_iter_with_nullable(
                columns(&mut dice, rows, &habits).into_iter().map(|(name, array)| {
                    let required = array.null_count() == 0 && rows % 2 == 1;
                    (name, array, !required)
                }),
            ).unwrap();
            let codec = codecs[if same_codec { seed % 3 } else { dice.below(3) } as usize];
            let properties = properties(&mut dice, codec);
            table.add(batch, properties);
        }
        let mut write = write_spec(leaves(&fields()));
        write.row_group_rows = [13_000, 40_000, 1 << 20][dice.below(3) as usize];
        let mut merging = watched(true);
        let merged = table.run(fields(), false, write.clone(), &mut merging).unwrap();
        // Only rows where a row group of the output ends are encoded.
        let total: usize = table.batches.iter().map(RecordBatch::num_rows).sum();
        prop_assert!(merging.batches == 0 || total as u64 > write.row_group_rows, "columns were left over");
        let encoded = table.run(fields(), false, write.clone(), &mut watched(false)).unwrap();
        let verified = table.run(fields(), true, write, &mut watched(true)).unwrap();
        prop_assert!(verified.content_hash.is_some());
        prop_assert_eq!(&merged.outputs[0].stats, &encoded.outputs[0].stats);

        let expected = table.expected();
        let path = &merged.outputs[0].path;
        let rows = table.read(path, None);
        for (i, column) in rows.columns().iter().enumerate() {
            prop_assert!(column.to_data() == expected.column(i).to_data(), "column {}", i);
        }
        let (mut selectors, mut picked, mut at) = (Vec::new(), Vec::new(), 0);
        while at < expected.num_rows() {
            let (skip, take) = (dice.below(3_000) as usize, 1 + dice.below(50) as usize);
            let (from, to) = ((at + skip).min(expected.num_rows()), (at + skip + take).min(expected.num_rows()));
            selectors.extend([RowSelector::skip(from - at), RowSelector::select(to - from)]);
            picked.extend(from as u64..to as u64);
            at = to;
        }
        let selected = table.read(path, Some(RowSelection::from(selectors)));
        let picked = arrow::array::UInt64Array::from(picked);
        for (i, column) in selected.columns().iter().enumerate() {
            let expected = take(expected.column(i), &picked, None).unwrap();
            prop_assert!(column.to_data() == expected.to_data(), "selected rows of column {}", i);
        }
        let metadata = table.footer(path);
        for column in [2, 10] {
            check_page_index(&metadata, column, expected.column(column).as_ref());
        }
        let encoded = table.footer(&encoded.outputs[0].path);
        if metadata.num_row_groups() == 1 && encoded.num_row_groups() == 1 {
            for (ours, theirs) in metadata.row_group(0).columns().iter().zip(encoded.row_group(0).columns()) {
                prop_assert_eq!(ours.statistics(), theirs.statistics(), "{}", ours.column_path());
                prop_assert_eq!(
                    ours.unencoded_byte_array_data_bytes(),
                    theirs.unencoded_byte_array_data_bytes(),
                    "{}",
                    ours.column_path()
                );
            }
        }
    }
}

fn numbers(from: i64, rows: i64) -> RecordBatch {
    let list = {
        let mut builder = ListBuilder::new(arrow::array::Int64Builder::new());
        for i in from..from + rows {
            builder.values().append_value(i);
            builder.append(i % 3 != 0);
        }
        builder.finish()
    };
    let few = (from..from + rows).map(|v| format!("kind {}", v % 7));
    RecordBatch::try_from_iter_with_nullable([
        ("v", Arc::new(Int64Array::from_iter_values(from..from + rows)) as ArrayRef, true),
        ("few", Arc::new(StringArray::from_iter_values(few)), true),
        ("narrow", Arc::new(Int8Array::from_iter_values((from..from + rows).map(|v| v as i8))), true),
        ("list", Arc::new(list), true),
    ])
    .unwrap()
}

fn number_fields() -> Vec<Field> {
    vec![
        field("v", DataType::Long),
        field("few", DataType::String),
        field("narrow", DataType::Long),
        field("list", DataType::List(Box::new(field("element", DataType::Long)))),
        field("absent", DataType::Double),
    ]
}

/// Files with and without what can be merged, large and small, in turn.
fn mixed_table() -> Table {
    let mut table = Table::new();
    let snappy = || WriterProperties::builder().set_compression(Compression::SNAPPY);
    let mut from = 0;
    for (i, rows) in [5_000, 10, 6_000, 3, 40_000, 7_000, 1, 5_000].into_iter().enumerate() {
        let properties = match i % 4 {
            1 => WriterProperties::builder().set_compression(Compression::GZIP(Default::default())).build(),
            2 => snappy()
                .set_column_encoding("v".into(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_enabled("v".into(), false)
                .build(),
            _ => snappy().build(),
        };
        table.add(numbers(from, rows), properties);
        from += rows;
    }
    table
}

#[test]
fn columns_and_files_that_cannot_be_merged_stand_beside_those_that_can() {
    let table = mixed_table();
    let write = write_spec(vec![vec!["v".into()], vec!["few".into()], vec!["list".into()], vec!["absent".into()]]);
    let mut between = watched(true);
    let merged = table.run(number_fields(), true, write.clone(), &mut between).unwrap();
    let encoded = table.run(number_fields(), true, write, &mut watched(false)).unwrap();
    assert_eq!(merged.outputs[0].stats, encoded.outputs[0].stats);
    assert_eq!(merged.content_hash, encoded.content_hash);
    assert_eq!(merged.row_map, encoded.row_map);
    let (ours, theirs) = (table.read(&merged.outputs[0].path, None), table.read(&encoded.outputs[0].path, None));
    assert_eq!(ours, theirs);
    assert_eq!(ours.column(0).as_primitive::<Int64Type>().values()[..], (0..63_014).collect::<Vec<i64>>()[..]);
}

#[test]
fn caps_on_rows_hold() {
    let table = mixed_table();
    let mut write = write_spec(vec![vec!["v".into()]]);
    write.max_rows_per_file = Some(9_000);
    write.row_group_rows = 5_500;
    let outcome = table.run(number_fields(), true, write, &mut watched(true)).unwrap();
    let rows: Vec<u64> = outcome.outputs.iter().map(|o| o.rows).collect();
    assert_eq!(rows, [9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 14]);
    let mut next = 0;
    for output in &outcome.outputs {
        let batch = table.read(&output.path, None);
        let values = batch.column(0).as_primitive::<Int64Type>();
        assert!(values.values().iter().copied().eq(next..next + values.len() as i64));
        assert_eq!(output.stats.leaves[0].min, Some(Scalar::Long(next)));
        next += values.len() as i64;
        assert!(table.footer(&output.path).row_groups().iter().all(|g| g.num_rows() <= 5_500));
    }
}

#[test]
fn a_chunk_of_another_file_fails_verification() {
    let mut table = Table::new();
    let flat = |from| numbers(from, 2_000).project(&[0]).unwrap();
    for from in [0, 2_000] {
        table.add(flat(from), WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    }
    let first = std::fs::read(table.folder.path().join("in-0.parquet")).unwrap();
    let (start, length) = table.footer("in-0.parquet").row_group(0).column(0).byte_range();
    let chunk = Bytes::from(first[start as usize..(start + length) as usize].to_vec());
    let mut between = Watched { swap: Some(chunk), ..watched(true) };
    // The first chunk is swapped for itself, the second for the first.
    let error = table.run(vec![field("v", DataType::Long)], true, write_spec(vec![]), &mut between).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("other values"), "{error}");
}

#[test]
fn a_small_limit_leaves_large_chunks_to_the_decoder() {
    let mut table = Table::new();
    table.memory_bytes = 16 << 20;
    let texts: Vec<String> = (0..4).map(|k| k.to_string().repeat(3 << 20)).collect();
    for _ in 0..3 {
        let batch = RecordBatch::try_from_iter_with_nullable([(
            "t",
            Arc::new(StringArray::from(texts.clone())) as ArrayRef,
            true,
        )]);
        table.add(batch.unwrap(), WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    }
    let mut between = watched(true);
    let outcome = table.run(vec![field("t", DataType::String)], true, write_spec(vec![]), &mut between).unwrap();
    assert_eq!(outcome.rows_out, 12);
    assert!(between.batches > 0);
    assert_eq!(table.read(&outcome.outputs[0].path, None).column(0), table.expected().column(0));
}

#[test]
fn an_input_that_fails_beside_merged_columns_is_left_out_whole() {
    let mut table = Table::new();
    for nanos in [1_000, 1_001, 2_000] {
        let times = arrow::array::TimestampNanosecondArray::from_value(nanos, 300).with_timezone("UTC");
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("v", Arc::new(Int64Array::from_value(nanos, 300)) as ArrayRef, true),
            ("t", Arc::new(times), true),
        ]);
        table.add(batch.unwrap(), WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    }
    let fields = vec![field("v", DataType::Long), field("t", DataType::Timestamp)];
    let outcome = table.run(fields, true, write_spec(vec![vec!["v".into()]]), &mut watched(true)).unwrap();
    assert_eq!(outcome.left_out.iter().map(|l| l.input).collect::<Vec<_>>(), [FileId(1)]);
    assert_eq!((outcome.rows_in, outcome.rows_out), (600, 600));
    let rows = table.read(&outcome.outputs[0].path, None);
    let expected: Vec<i64> = [[1_000; 300], [2_000; 300]].concat();
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().values()[..], expected[..]);
    let outputs = std::fs::read_dir(table.folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("out-"));
    assert_eq!(outputs.count(), 1);
}

#[path = "rewrite_odd_pages_tests.rs"]
mod odd_pages;

#[path = "rewrite_filter_tests.rs"]
mod filters;

#[path = "rewrite_size_tests.rs"]
mod sizes;
