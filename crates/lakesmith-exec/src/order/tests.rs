use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::*;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Int64Type};
use lakesmith_core::ErrorKind;
use lakesmith_core::layout::{Curve, OrderKey};
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{
    DataType, DeleteInfo, DeletionVector, Field, FileId, InputFile, PartitionTuple, ReadSpec, Scalar, Schema, WriteSpec,
};
use lakesmith_storage::{Cancel, FixedWorld, Location, Progress, Store, StoreOptions};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::*;
use crate::RewriteControl;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27) % end
    }
}

#[derive(Default)]
struct Counted(AtomicU64);

impl Progress for Counted {
    fn begin(&self, _phase: &str, _total_bytes: u64) {}
    fn advance(&self, bytes: u64, _rows: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
    fn end(&self) {}
}

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

fn key(path: &[&str], data_type: &DataType) -> OrderKey {
    let path: Vec<String> = path.iter().map(|p| (*p).into()).collect();
    OrderKey { name: path.clone(), path, data_type: data_type.clone() }
}

fn types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::Integer,
        DataType::Long,
        DataType::Double,
        DataType::Decimal { precision: 10, scale: 2 },
        DataType::Decimal { precision: 38, scale: 5 },
        DataType::String,
        DataType::Binary,
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampNtz,
    ]
}

/// A value of a type, often null, often one of few.
fn value(data_type: &DataType, dice: &mut Dice) -> Scalar {
    if dice.below(6) == 0 {
        return Scalar::Null;
    }
    let near = dice.below(9) as i64 - 4;
    let long = match dice.below(12) {
        0 => i64::MIN,
        1 => i64::MIN + 1,
        2 => i64::MAX,
        3..6 => dice.below(u64::MAX) as i64,
        _ => near,
    };
    let text = || "prefix that many have in common ".repeat(4);
    match data_type {
        DataType::Boolean => Scalar::Boolean(near > 0),
        DataType::Integer => Scalar::Long(long.clamp(i32::MIN.into(), i32::MAX.into())),
        DataType::Long => Scalar::Long(long),
        DataType::Double => Scalar::Double(match dice.below(9) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => f64::INFINITY,
            4 => f64::NEG_INFINITY,
            5 => -f64::NAN,
            _ => near as f64 / 3.0,
        }),
        DataType::Decimal { precision, scale } => {
            let most = 10i128.pow(u32::from(*precision)) - 1;
            let value = i128::from(long) * if *precision > 18 { 1_000_000_000 } else { 1 };
            Scalar::Decimal(value.clamp(-most, most), *scale)
        }
        DataType::String => Scalar::String(match dice.below(4) {
            0 => String::new(),
            1 => format!("{}{near}", text()),
            _ => format!("{}{long}", text()),
        }),
        DataType::Binary => Scalar::Binary((0..dice.below(5)).map(|_| [0u8, 1, 255][dice.below(3) as usize]).collect()),
        DataType::Date => Scalar::Date(near as i32 * 100),
        DataType::Timestamp => Scalar::Timestamp(long / 10),
        _ => Scalar::TimestampNtz(long / 10),
    }
}

fn array(data_type: &DataType, values: &[Scalar]) -> ArrayRef {
    macro_rules! of {
        ($array:ident, $($pattern:pat => $value:expr),+) => {
            values.iter().map(|v| match v { $($pattern => Some($value),)+ _ => None }).collect::<$array>()
        };
    }
    match data_type {
        DataType::Boolean => Arc::new(of!(BooleanArray, Scalar::Boolean(v) => *v)),
        DataType::Integer => Arc::new(of!(Int32Array, Scalar::Long(v) => *v as i32)),
        DataType::Long => Arc::new(of!(Int64Array, Scalar::Long(v) => *v)),
        DataType::Double => Arc::new(of!(Float64Array, Scalar::Double(v) => *v)),
        DataType::Decimal { precision, scale } => {
            let plain = of!(Decimal128Array, Scalar::Decimal(v, _) => *v);
            Arc::new(plain.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::String => Arc::new(of!(StringArray, Scalar::String(v) => v.as_str())),
        DataType::Binary => Arc::new(of!(BinaryArray, Scalar::Binary(v) => v.as_slice())),
        DataType::Date => Arc::new(of!(Date32Array, Scalar::Date(v) => *v)),
        DataType::Timestamp => {
            let plain = of!(TimestampMicrosecondArray, Scalar::Timestamp(v) => *v);
            Arc::new(plain.with_timezone("UTC"))
        }
        _ => Arc::new(of!(TimestampMicrosecondArray, Scalar::TimestampNtz(v) => *v)),
    }
}

struct Table {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    task: RewriteTask,
    progress: Arc<Counted>,
    /// Keys `a`, `b` and `n.x` of the live rows, by their ids, which ascend as the rows come in.
    rows: BTreeMap<i64, Vec<Scalar>>,
}

impl Table {
    fn new(fields: Vec<Field>, order: RowOrder) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = WriteSpec {
            partition_fields: vec![],
            partition_indexes: vec![],
            row_tracking: None,
            stats_leaves: vec![vec!["id".into()]],
            max_rows_per_file: None,
            compression: None,
            row_group_rows: 50,
            row_group_bytes: 1 << 20,
        };
        let task = RewriteTask {
            id: 0,
            inputs: vec![],
            partition: PartitionTuple::default(),
            read: Arc::new(ReadSpec { schema: Schema { fields }, match_by_id: false }),
            write: Arc::new(write),
            root: Location::from_local_path(folder.path()).unwrap().to_string(),
            output_stem: "out".into(),
            verify: true,
            order: Some(order),
        };
        Self { folder, runtime, task, progress: Arc::default(), rows: BTreeMap::new() }
    }

    fn add(&mut self, batch: &RecordBatch, deleted: &[u64]) {
        let path = self.folder.path().join(format!("in-{}.parquet", self.task.inputs.len()));
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(40)).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let vector = DeletionVector::from_rows(deleted.iter().copied());
        let bytes = vector.encode();
        let deletes = (!deleted.is_empty()).then(|| DeleteInfo {
            unique_id: "i-test".into(),
            storage_type: "i".into(),
            path_or_inline: String::new(),
            offset: None,
            size_in_bytes: bytes.len() as i32,
            cardinality: vector.cardinality(),
            at: VectorLocation::Inline(bytes),
        });
        self.task.inputs.push(InputFile {
            id: FileId(self.task.inputs.len() as u32),
            location: Location::from_local_path(&path).unwrap().to_string(),
            size: std::fs::metadata(&path).unwrap().len(),
            rows: Some(batch.num_rows() as u64),
            deletes,
            delete_files: Vec::new(),
            base_row_id: None,
            row_commit_version: None,
        });
    }

    fn context(&self) -> TaskContext {
        let control = RewriteControl {
            memory_bytes: 64 << 20,
            threads: 2,
            spill_folder: self.folder.path().to_owned(),
            cancel: Cancel::default(),
            progress: self.progress.clone(),
            now_ms: Arc::new(FixedWorld::new(1_000)),
            runtime: self.runtime.handle().clone(),
        };
        let root = Location::from_canonical(&self.task.root).unwrap();
        TaskContext::new(Store::open(&root, &StoreOptions::default()).unwrap(), control)
    }

    fn run(&self, budget: Budget) -> Result<RewriteOutcome> {
        attempt_within(&self.task, &self.context(), Strings::Text, budget, &Some)
    }

    /// Ids in the outputs, file by file.
    fn ids(&self, outcome: &RewriteOutcome) -> Vec<Vec<i64>> {
        outcome.outputs.iter().map(|output| ids(&self.folder.path().join(&output.path))).collect()
    }
}

fn ids(path: &Path) -> Vec<i64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap().build().unwrap();
    let ids = reader.map(|b| b.unwrap().column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec());
    ids.flatten().collect()
}

fn roomy(threads: usize) -> Budget {
    Budget { threads, ..Budget::new(256 << 20, threads) }
}

/// So little that there are many runs, merged in several steps.
fn tiny(threads: usize) -> Budget {
    Budget {
        threads,
        share_bytes: 4 << 20,
        window_bytes: 64 << 10,
        batch_bytes: 1 << 10,
        buffer_bytes: 3 << 10,
        merge_bytes: 8 << 10,
        block_bytes: 1 << 10,
        writer_bytes: 1 << 20,
        sample_bytes: 1 << 20,
    }
}

/// A table of random types, values, files, deletions and schemas, and an order.
fn random_table(seed: u64) -> Table {
    let dice = &mut Dice(seed);
    let types = types();
    let pick = |dice: &mut Dice| types[dice.below(types.len() as u64) as usize].clone();
    let (a, b) = (pick(dice), pick(dice));
    let nested = DataType::Struct(vec![field("x", b.clone())]);
    let fields = vec![field("id", DataType::Long), field("a", a.clone()), field("b", b.clone()), field("n", nested)];
    let all = [key(&["a"], &a), key(&["b"], &b), key(&["n", "x"], &b)];
    let first = dice.below(3) as usize;
    let keys: Vec<OrderKey> = (0..1 + dice.below(3) as usize).map(|i| all[(first + i) % 3].clone()).collect();
    let curve = [Curve::Sort, Curve::Zorder, Curve::Hilbert][dice.below(3) as usize];
    let order = RowOrder { curve, keys, files: 1 + dice.below(9) };
    let mut table = Table::new(fields, order);
    let constant = dice.below(5) == 0;
    let mut next = 0i64;
    for _ in 0..1 + dice.below(6) {
        let rows = [0, 1, dice.below(200), dice.below(300)][dice.below(4) as usize] as usize;
        let lacks_b = dice.below(4) == 0;
        let mut columns: [Vec<Scalar>; 3] = Default::default();
        let (mut parents, mut deleted) = (Vec::new(), Vec::new());
        let deletes = dice.below(3) == 0;
        for row in 0..rows {
            let mut values = match constant {
                true => [value(&a, &mut Dice(9)), value(&b, &mut Dice(9)), value(&b, &mut Dice(9))],
                false => [value(&a, dice), value(&b, dice), value(&b, dice)],
            };
            let parent = dice.below(4) > 0;
            parents.push(parent);
            columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value.clone()));
            if lacks_b {
                values[1] = Scalar::Null;
            }
            if !parent {
                values[2] = Scalar::Null;
            }
            if deletes && dice.below(3) == 0 {
                deleted.push(row as u64);
            } else {
                table.rows.insert(next + row as i64, values.to_vec());
            }
        }
        let [mut of_a, of_b, of_x] = [array(&a, &columns[0]), array(&b, &columns[1]), array(&b, &columns[2])];
        // An older file may hold a narrower type.
        let narrow = columns[0].iter().all(|v| !matches!(v, Scalar::Long(v) if i32::try_from(*v).is_err()));
        if a == DataType::Long && narrow {
            of_a = cast(&of_a, &ArrowType::Int32).unwrap();
        }
        let inner = Fields::from(vec![ArrowField::new("x", of_x.data_type().clone(), true)]);
        let parent = StructArray::new(inner, vec![of_x], Some(parents.into()));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(next..next + rows as i64));
        let mut named: Vec<(&str, ArrayRef, bool)> = vec![("id", ids, true), ("a", of_a, true)];
        if !lacks_b {
            named.push(("b", of_b, true));
        }
        named.push(("n", Arc::new(parent), true));
        table.add(&RecordBatch::try_from_iter_with_nullable(named).unwrap(), &deleted);
        next += rows as i64;
    }
    table
}

impl Table {
    fn keys_of(&self, id: i64) -> Vec<&Scalar> {
        let order = self.task.order.as_ref().unwrap();
        let place = |key: &OrderKey| ["a", "b", "n"].iter().position(|name| *name == key.path[0]).unwrap();
        order.keys.iter().map(|key| &self.rows[&id][place(key)]).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn rows_are_in_order_and_all_there_whatever_the_memory_and_the_threads(seed in any::<u64>()) {
        let table = random_table(seed);
        let order = table.task.order.clone().unwrap();
        let outcome = table.run(roomy(1)).unwrap();
        let files = table.ids(&outcome);
        prop_assert_eq!(outcome.bytes_spilled, 0);
        prop_assert_eq!(outcome.rows_in, table.rows.len() as u64);
        prop_assert_eq!(files.len() as u64, order.files.min(outcome.rows_in));
        let share = outcome.rows_in as f64 / files.len().max(1) as f64;
        prop_assert!(files.iter().all(|f| !f.is_empty() && (f.len() as f64 - share).abs() <= 0.2 * share + 1.0));
        let bytes: u64 = table.task.inputs.iter().map(|i| i.size).sum();
        prop_assert_eq!(table.progress.0.swap(0, Relaxed), bytes);
        let all = files.concat();
        let mut sorted: Vec<i64> = table.rows.keys().copied().collect();
        if order.curve == Curve::Sort || order.keys.len() == 1 {
            sorted.sort_by(|x, y| table.keys_of(*x).cmp(&table.keys_of(*y)));
            prop_assert_eq!(&all, &sorted);
        } else {
            let mut found = all.clone();
            found.sort_unstable();
            prop_assert_eq!(&found, &sorted);
        }
        for budget in [tiny(1), tiny(2), roomy(2)] {
            let again = table.run(budget).unwrap();
            prop_assert_eq!(&table.ids(&again), &files);
            prop_assert_eq!(again.content_hash, outcome.content_hash);
            prop_assert_eq!(table.progress.0.swap(0, Relaxed), bytes);
        }
    }
}

/// Longs from 0 on, last one first, over several files.
fn longs(rows: i64, inputs: i64, files: u64) -> Table {
    let keys = vec![key(&["a"], &DataType::Long)];
    let order = RowOrder { curve: Curve::Sort, keys, files };
    let mut table = Table::new(vec![field("id", DataType::Long), field("a", DataType::Long)], order);
    for input in 0..inputs {
        let (from, to) = (rows * input / inputs, rows * (input + 1) / inputs);
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((from..to).map(|id| rows - id)));
        table.add(&RecordBatch::try_from_iter([("id", ids), ("a", values)]).unwrap(), &[]);
    }
    table
}

#[test]
fn many_runs_are_spilled_and_merged_in_steps() {
    let table = longs(3_000, 7, 3);
    let outcome = table.run(tiny(2)).unwrap();
    assert!(outcome.bytes_spilled > 0);
    assert_eq!(
        table.ids(&outcome),
        [(2000..3000).rev().collect(), (1000..2000).rev().collect(), (0..1000).rev().collect::<Vec<_>>()]
    );
    assert!(outcome.row_map.is_empty());
    assert!(outcome.outputs.iter().enumerate().all(|(i, o)| o.path.starts_with(&format!("out.c{i:03}."))));
}

#[test]
fn a_cap_on_rows_splits_ranges_evenly() {
    let mut table = longs(1_000, 3, 2);
    let write = WriteSpec { max_rows_per_file: Some(200), ..WriteSpec::clone(&table.task.write) };
    table.task.write = Arc::new(write);
    let files = table.ids(&table.run(tiny(2)).unwrap());
    assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [166, 167, 167, 166, 167, 167]);
    assert_eq!(files.concat(), (0..1_000).rev().collect::<Vec<_>>());
}

#[test]
fn equal_keys_share_a_file_unless_they_fill_more_than_one() {
    let mut table = longs(0, 0, 4);
    // A hundred rows of each of ten values, but four hundred of one.
    let values: Vec<i64> = (0..1_400).map(|i| if i < 400 { 5 } else { i % 10 }).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_400));
    table.add(
        &RecordBatch::try_from_iter([("id", ids), ("a", Arc::new(Int64Array::from(values.clone())) as ArrayRef)])
            .unwrap(),
        &[],
    );
    let files = table.ids(&table.run(roomy(2)).unwrap());
    let ends: Vec<(i64, i64)> =
        files.iter().map(|f| (values[f[0] as usize], values[f[f.len() - 1] as usize])).collect();
    assert_eq!(files.len(), 4);
    // 350 rows a file: the first cut has an edge within a tenth of it nowhere, those inside 5 are by the order of rows.
    assert!(ends.windows(2).all(|w| w[0].1 <= w[1].0), "{ends:?}");
    assert_eq!(files.concat().len(), 1_400);
}

#[test]
fn files_are_cells_of_the_curve_however_few_values_a_key_has() {
    for (curve, different) in [(Curve::Zorder, 64), (Curve::Hilbert, 64), (Curve::Zorder, 4), (Curve::Hilbert, 4)] {
        let keys = ["a", "b"].map(|name| key(&[name], &DataType::Long)).into();
        let fields = ["id", "a", "b"].map(|name| field(name, DataType::Long)).into();
        let mut table = Table::new(fields, RowOrder { curve, keys, files: 16 });
        let column = |of: fn(i64, i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..4096).map(|id| of(id, different))))
        };
        let columns = [("id", column(|id, _| id)), ("a", column(|id, n| id % n)), ("b", column(|id, n| id / n))];
        table.add(&RecordBatch::try_from_iter(columns).unwrap(), &[]);
        let files = table.ids(&table.run(roomy(2)).unwrap());
        assert_eq!(files.len(), 16);
        for file in files {
            let distinct =
                |of: &dyn Fn(i64) -> i64| file.iter().map(|id| of(*id)).collect::<BTreeSet<_>>().len() as i64;
            // A quarter of the values of each key.
            let found = (distinct(&|id| id % different), distinct(&|id| id / different));
            assert_eq!(found, (different / 4, 4096 / different / 4), "{curve:?}");
        }
    }
}

#[test]
fn a_lost_batch_fails_the_task() {
    let table = longs(1_000, 3, 2);
    let seen = AtomicUsize::new(0);
    let lose = |batch: RecordBatch| (seen.fetch_add(1, Relaxed) != 1).then_some(batch);
    let error = attempt_within(&table.task, &table.context(), Strings::Text, roomy(2), &lose).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("1000 rows went in, 960 rows"), "{error}");
}

#[test]
fn a_changed_value_fails_verification() {
    let table = longs(1_000, 3, 2);
    let change = |batch: RecordBatch| {
        let reversed = Int64Array::from_iter_values((0..batch.num_rows() as i64).rev());
        let columns = vec![take(batch.column(0), &reversed, None).unwrap(), Arc::clone(batch.column(1))];
        RecordBatch::try_new(batch.schema(), columns).ok()
    };
    let error = attempt_within(&table.task, &table.context(), Strings::Text, roomy(2), &change).unwrap_err();
    assert!(error.message().contains("other values"), "{error}");
}

#[test]
fn cancelling_stops_all_threads_and_leaves_nothing_half_written() {
    let table = longs(1_000, 3, 2);
    let context = table.context();
    let cancel = context.control.cancel.clone();
    let stop = |batch: RecordBatch| {
        cancel.cancel();
        Some(batch)
    };
    let error = attempt_within(&table.task, &context, Strings::Text, tiny(2), &stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(std::fs::read_dir(table.folder.path()).unwrap().count(), 3);
    assert!(context.visible.lock().unwrap().is_empty());
}

#[test]
fn a_folder_that_takes_no_spill_is_named_with_the_way_out() {
    let table = longs(1_000, 3, 2);
    let mut context = table.context();
    context.control.spill_folder = table.folder.path().join("absent");
    let error = attempt_within(&table.task, &context, Strings::Text, tiny(2), &Some).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.context_value("folder").unwrap().ends_with("absent"), "{error}");
    assert!(error.message().contains("--spill-dir"), "{error}");
    // What fits into the memory needs no folder.
    attempt_within(&table.task, &context, Strings::Text, roomy(2), &Some).unwrap();
}

#[test]
fn long_texts_are_ordered_by_all_of_their_bytes() {
    let keys = vec![key(&["a"], &DataType::String)];
    let order = RowOrder { curve: Curve::Zorder, keys, files: 3 };
    let mut table = Table::new(vec![field("id", DataType::Long), field("a", DataType::String)], order);
    let stem = "long ".repeat(200_000);
    let texts: Vec<String> = (0..12).map(|i| format!("{stem}{}", i * 7 % 12 + 10)).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..12));
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(&texts));
    table.add(&RecordBatch::try_from_iter([("id", ids), ("a", column)]).unwrap(), &[]);
    let files = table.ids(&table.run(tiny(2)).unwrap());
    let mut expected: Vec<i64> = (0..12).collect();
    expected.sort_by_key(|id| &texts[*id as usize]);
    assert_eq!(files.concat(), expected);
}
