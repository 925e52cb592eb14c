use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema};
use lakesmith_core::ErrorKind;
use lakesmith_core::table::{DataType, DeleteFile, Field, FileFormat, FileId, Schema};
use lakesmith_storage::{Location, StoreOptions};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::*;

/// A folder with data files and delete files.
struct Folder {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Folder {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { folder: tempfile::tempdir().unwrap(), runtime }
    }

    fn root(&self) -> Location {
        Location::from_local_path(self.folder.path()).unwrap()
    }

    fn deletes(&self, memory_bytes: u64) -> Deletes {
        let store = Store::open(&self.root(), &StoreOptions::default()).unwrap();
        Deletes::new(store, self.runtime.handle().clone(), Cancel::default(), memory_bytes)
    }

    fn write(&self, name: &str, batch: &RecordBatch) -> (String, u64) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100_000)).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        (self.root().join(name).to_string(), std::fs::metadata(&path).unwrap().len())
    }

    fn delete_file(&self, name: &str, batch: &RecordBatch, content: DeleteContent) -> Arc<DeleteFile> {
        let (path, size) = self.write(name, batch);
        let (rows, format) = (batch.num_rows() as u64, FileFormat::Parquet);
        Arc::new(DeleteFile { path, size, rows, format, content })
    }

    fn data(&self, name: &str, batch: &RecordBatch, delete_files: Vec<Arc<DeleteFile>>) -> InputFile {
        let (location, size) = self.write(name, batch);
        InputFile {
            id: FileId(0),
            location,
            size,
            rows: Some(batch.num_rows() as u64),
            deletes: None,
            delete_files,
            base_row_id: None,
            row_commit_version: None,
        }
    }
}

fn field(name: &str, id: i32, data_type: DataType) -> Field {
    let (name, physical) = (name.to_owned(), name.to_owned());
    Field { name, physical, id: Some(id), data_type, nullable: true, metadata: Default::default() }
}

fn arrow_field(name: &str, id: Option<i32>, data_type: &ArrowType) -> ArrowField {
    let id = id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()));
    ArrowField::new(name, data_type.clone(), true).with_metadata(id.into_iter().collect())
}

fn batch(columns: &[(&str, Option<i32>, ArrayRef)]) -> RecordBatch {
    let fields: Vec<ArrowField> = columns.iter().map(|(n, id, array)| arrow_field(n, *id, array.data_type())).collect();
    let arrays = columns.iter().map(|(_, _, array)| Arc::clone(array)).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap()
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn naming(rows: &[(String, i64)], ids: bool) -> RecordBatch {
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(path, _)| path)));
    let id = |id: i32| ids.then_some(id);
    let row: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|_| "unused")));
    batch(&[
        ("row", id(2_147_483_544), row),
        (if ids { "p" } else { "pos" }, id(2_147_483_545), longs(rows.iter().map(|(_, position)| *position))),
        (if ids { "f" } else { "file_path" }, id(2_147_483_546), paths),
    ])
}

fn by_id(fields: Vec<Field>) -> ReadSpec {
    ReadSpec { schema: Schema { fields }, match_by_id: true }
}

fn positions(deletes: &Deletes, file: &InputFile, read: &ReadSpec) -> Vec<u64> {
    deletes.positions(file, read).unwrap().iter().collect()
}

#[test]
fn position_deletes_are_found_by_any_spelling_of_the_path() {
    let folder = Folder::new();
    let key = folder.root().key().to_owned();
    let rows = [
        (format!("file:/{key}/d/a.parquet"), 7),
        (format!("file:///{key}/d/b%20c.parquet"), 1),
        (format!("/{key}/d/a.parquet"), 2),
        (format!("file:///{key}//d/a.parquet"), 7),
        (format!("file:/{key}/d/b c.parquet"), 3),
        ("hdfs://elsewhere/d/a.parquet".to_owned(), 4),
    ];
    let plain = batch(&[("v", None, longs(0..10))]);
    for (ids, memory) in [(true, 64 << 20), (false, 64 << 20), (true, 0)] {
        let files = vec![
            folder.delete_file("1.parquet", &naming(&rows, ids), DeleteContent::Positions),
            folder.delete_file("2.parquet", &naming(&[(rows[0].0.clone(), 9)], ids), DeleteContent::Positions),
        ];
        let deletes = folder.deletes(memory);
        let cases = [("d/a.parquet", vec![2, 7, 9]), ("d/b%20c.parquet", vec![1]), ("d/b c.parquet", vec![3])];
        for (name, expected) in cases {
            let file = folder.data(name, &plain, files.clone());
            assert_eq!(positions(&deletes, &file, &ReadSpec::default()), expected, "{name}");
        }
        assert_eq!(deletes.held_bytes() > 0, memory > 0);
    }
}

#[test]
fn a_path_that_does_not_tell_its_storage_is_not_passed_over() {
    let folder = Folder::new();
    let naming = naming(&[("d/a.parquet".to_owned(), 5)], true);
    let delete = folder.delete_file("1.parquet", &naming, DeleteContent::Positions);
    let file = folder.data("d/a.parquet", &batch(&[("v", None, longs(0..10))]), vec![delete]);
    let error = folder.deletes(64 << 20).positions(&file, &ReadSpec::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.context_value("data file"), Some("d/a.parquet"));
}

#[test]
fn position_deletes_that_are_read_once_are_not_missed_when_their_file_is_gone() {
    let folder = Folder::new();
    let plain = batch(&[("v", None, longs(0..10))]);
    let mut file = folder.data("a.parquet", &plain, vec![]);
    let rows = naming(&[(file.location.clone(), 3)], true);
    file.delete_files = vec![folder.delete_file("1.parquet", &rows, DeleteContent::Positions)];
    let deletes = folder.deletes(1 << 20);
    assert_eq!(positions(&deletes, &file, &ReadSpec::default()), [3]);
    std::fs::remove_file(folder.folder.path().join("1.parquet")).unwrap();
    assert_eq!(positions(&deletes, &file, &ReadSpec::default()), [3]);
    let error = folder.deletes(1 << 20).positions(&file, &ReadSpec::default()).unwrap_err();
    assert_eq!((error.kind(), error.context_value("path")), (ErrorKind::NotFound, Some(&*file.delete_files[0].path)));
}

#[test]
fn rows_without_a_key_column_have_its_initial_default() {
    let folder = Folder::new();
    let old = batch(&[("v", Some(1), longs(0..3))]);
    let deleting = |value: Option<i64>, name: &str, field: &Field| {
        let keys = batch(&[("n", Some(2), Arc::new(Int64Array::from(vec![value])))]);
        folder.delete_file(name, &keys, DeleteContent::Equality(vec![field.clone()]))
    };
    let plain = field("n", 2, DataType::Long);
    let mut defaulted = plain.clone();
    defaulted.metadata.insert("initial-default".into(), "5".into());
    let cases = [(None, &plain, 3), (Some(5), &plain, 0), (Some(5), &defaulted, 3), (None, &defaulted, 0)];
    for (value, field, expected) in cases {
        let file = folder.data("old.parquet", &old, vec![deleting(value, "1.parquet", field)]);
        let found = positions(&folder.deletes(1 << 20), &file, &by_id(vec![]));
        assert_eq!(found.len(), expected, "{value:?} {:?}", field.metadata);
    }
}

#[test]
fn keys_are_compared_by_the_columns_type() {
    let folder = Folder::new();
    let columns = vec![field("n", 1, DataType::Long), field("x", 2, DataType::Double)];
    let wide =
        batch(&[("x", Some(2), Arc::new(Float64Array::from(vec![1.5, f64::NAN]))), ("n", Some(1), longs([7, 8]))]);
    let quiet = f32::from_bits(f32::NAN.to_bits() | 1);
    let narrow = batch(&[
        ("old name", Some(1), Arc::new(Int32Array::from(vec![7, 7, 8, 8]))),
        ("x", Some(2), Arc::new(arrow::array::Float32Array::from(vec![1.5, 1.0, quiet, 1.5]))),
    ]);
    let delete = folder.delete_file("1.parquet", &wide, DeleteContent::Equality(columns.clone()));
    let file = folder.data("narrow.parquet", &narrow, vec![delete]);
    assert_eq!(positions(&folder.deletes(1 << 20), &file, &by_id(columns)), [0, 2]);
}

#[test]
fn older_types_of_a_column_are_widened_on_both_sides() {
    let folder = Folder::new();
    let decimal = |precision: u8, values: Vec<i128>| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, 2).unwrap())
    };
    let days = |values: Vec<i32>| -> ArrayRef { Arc::new(Date32Array::from(values)) };
    let micros = |values: Vec<i64>| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(values)) };
    let text = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let bytes = |values: Vec<&[u8]>| -> ArrayRef { Arc::new(BinaryArray::from_vec(values)) };
    let cases = [
        (DataType::Decimal { precision: 20, scale: 2 }, decimal(20, vec![150, -7]), decimal(9, vec![-7, 15, 150])),
        (DataType::Decimal { precision: 20, scale: 2 }, decimal(9, vec![150, -7]), decimal(20, vec![-7, 15, 150])),
        (DataType::TimestampNtz, micros(vec![-86_400_000_000, 0]), days(vec![-1, 1, 0])),
        (DataType::TimestampNtz, days(vec![-1, 0]), micros(vec![-86_400_000_000, 1, 0])),
        (DataType::String, text(vec!["ü", ""]), bytes(vec!["ü".as_bytes(), &[0xff], b""])),
        (DataType::Binary, bytes(vec!["ü".as_bytes(), &[]]), text(vec!["ü", "u", ""])),
    ];
    for (data_type, keys, rows) in cases {
        let column = vec![field("c", 1, data_type.clone())];
        let content = DeleteContent::Equality(column.clone());
        let delete = folder.delete_file("1.parquet", &batch(&[("c", Some(1), keys)]), content);
        let file = folder.data("d.parquet", &batch(&[("c", Some(1), rows)]), vec![delete]);
        assert_eq!(positions(&folder.deletes(1 << 20), &file, &by_id(column)), [0, 2], "{data_type:?}");
    }
}

#[test]
fn a_key_column_may_be_inside_of_structs() {
    let folder = Folder::new();
    let inner = |values: Vec<Option<i64>>, nulls: Vec<bool>, id: Option<i32>, name: &str| -> ArrayRef {
        let child = arrow_field(name, id, &ArrowType::Int64);
        let other = arrow_field("z", id.map(|id| id + 100), &ArrowType::Int64);
        let arrays: Vec<ArrayRef> = vec![longs(values.iter().map(|_| 3)), Arc::new(Int64Array::from(values))];
        Arc::new(StructArray::new(vec![other, child].into(), arrays, Some(nulls.into())))
    };
    let leaf = field("a", 5, DataType::Long);
    let read = by_id(vec![field("s", 4, DataType::Struct(vec![field("a", 5, DataType::Long)]))]);
    let keys = batch(&[("s", Some(4), inner(vec![Some(3), None], vec![true, true], Some(5), "a"))]);
    let delete = folder.delete_file("1.parquet", &keys, DeleteContent::Equality(vec![leaf]));
    for id in [Some(5), None] {
        let name = if id.is_some() { "renamed" } else { "a" };
        let rows = inner(vec![Some(1), Some(3), None, Some(3)], vec![true, true, true, false], id, name);
        let file = folder.data("d.parquet", &batch(&[("s", id.map(|_| 4), rows)]), vec![delete.clone()]);
        assert_eq!(positions(&folder.deletes(1 << 20), &file, &read), [1, 2, 3], "{id:?}");
    }
}

#[test]
fn a_column_that_left_the_schema_is_found_by_its_id_alone() {
    let folder = Folder::new();
    let column = vec![field("n", 1, DataType::Long)];
    let keys =
        folder.delete_file("1.parquet", &batch(&[("n", Some(1), longs([4]))]), DeleteContent::Equality(column.clone()));
    let with_ids =
        folder.data("a.parquet", &batch(&[("n", Some(2), longs([4])), ("m", Some(1), longs([4]))]), vec![keys.clone()]);
    assert_eq!(positions(&folder.deletes(1 << 20), &with_ids, &by_id(vec![])), [0]);
    let without = folder.data("b.parquet", &batch(&[("n", None, longs([4]))]), vec![keys]);
    assert_eq!(positions(&folder.deletes(1 << 20), &without, &by_id(column)), [0]);
    let error = folder.deletes(1 << 20).positions(&without, &by_id(vec![])).unwrap_err();
    assert_eq!((error.kind(), error.context_value("path")), (ErrorKind::Unsupported, Some(without.location.as_str())));
}

#[test]
fn threads_share_what_one_of_them_has_read() {
    let folder = Folder::new();
    let column = vec![field("n", 1, DataType::Long)];
    let mut files = Vec::new();
    for i in 0..40 {
        let keys = batch(&[("n", Some(1), longs([i, 7, i + 1_000]))]);
        files.push(folder.delete_file(&format!("{i}.parquet"), &keys, DeleteContent::Equality(column.clone())));
    }
    let data = |i: usize| {
        let rows = batch(&[("n", Some(1), longs(0..2_000))]);
        folder.data(&format!("d{i}.parquet"), &rows, files[..=i].to_vec())
    };
    let inputs: Vec<InputFile> = (0..files.len()).map(data).collect();
    let deletes = folder.deletes(64 << 20);
    let read = by_id(column);
    std::thread::scope(|scope| {
        for start in 0..4 {
            let (deletes, inputs, read) = (&deletes, &inputs, &read);
            scope.spawn(move || {
                for i in (0..inputs.len()).rev().skip(start).step_by(4) {
                    let last = i as u64;
                    let expected: std::collections::BTreeSet<u64> =
                        (0..=last).chain([7]).chain((0..=last).map(|i| i + 1_000)).collect();
                    assert_eq!(positions(deletes, &inputs[i], read), Vec::from_iter(expected));
                }
            });
        }
    });
    for file in &files {
        std::fs::remove_file(Location::from_canonical(&file.path).unwrap().local_path().unwrap()).unwrap();
    }
    assert_eq!(positions(&deletes, &inputs[0], &read), [0, 7, 1_000]);
}

#[test]
fn what_cannot_be_told_is_an_error_that_names_the_file() {
    let folder = Folder::new();
    let plain = batch(&[("n", Some(1), longs(0..10))]);
    let column = || DeleteContent::Equality(vec![field("n", 1, DataType::Long)]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let data = folder.data("a.parquet", &plain, vec![]);
    let at = |position: i64| naming(&[(data.location.clone(), position)], true);
    let null_path =
        batch(&[("file_path", None, Arc::new(StringArray::from(vec![None::<&str>]))), ("pos", None, longs([1]))]);
    let good = folder.delete_file("good.parquet", &at(1), DeleteContent::Positions);
    let other = |change: &dyn Fn(&mut DeleteFile)| {
        let mut file = DeleteFile::clone(&good);
        change(&mut file);
        Arc::new(file)
    };
    std::fs::write(folder.folder.path().join("text.parquet"), "this is not Parquet at all").unwrap();
    let text_file = folder.root().join("text.parquet").to_string();
    let gone = folder.root().join("gone.parquet").to_string();
    let make = |name: &str, batch: &RecordBatch, content| folder.delete_file(name, batch, content);
    let cases = [
        (other(&|f| f.path.clone_from(&gone)), ErrorKind::NotFound, "is gone"),
        (other(&|f| (f.path, f.size) = (text_file.clone(), 26)), ErrorKind::Corrupt, "cannot be read"),
        (other(&|f| f.format = FileFormat::Orc), ErrorKind::Unsupported, "good.parquet is written in ORC"),
        (other(&|f| f.format = FileFormat::Avro), ErrorKind::Unsupported, "Avro"),
        (make("1.parquet", &at(-1), DeleteContent::Positions), ErrorKind::Corrupt, "position -1"),
        (make("2.parquet", &null_path, DeleteContent::Positions), ErrorKind::Corrupt, "NULL"),
        (make("3.parquet", &plain, DeleteContent::Positions), ErrorKind::Corrupt, "lacks a column"),
        (make("4.parquet", &at(1), column()), ErrorKind::Corrupt, "lacks a column"),
        (make("5.parquet", &batch(&[("n", Some(1), text)]), column()), ErrorKind::Unsupported, "widening"),
        (make("6.parquet", &plain, DeleteContent::Equality(vec![])), ErrorKind::Corrupt, "names no column"),
    ];
    for (delete, kind, what) in cases {
        for memory in [64 << 20, 0] {
            let file = InputFile { delete_files: vec![delete.clone()], ..data.clone() };
            let error = folder.deletes(memory).positions(&file, &by_id(vec![])).unwrap_err();
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.message().contains(what), "{what}: {error}");
            assert_eq!(error.context_value("path"), Some(delete.path.as_str()), "{error}");
        }
    }
    let beyond = make("7.parquet", &at(10), DeleteContent::Positions);
    let file = InputFile { delete_files: vec![beyond], ..data };
    let error = folder.deletes(1 << 20).positions(&file, &by_id(vec![])).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("row 10"), "{error}");
}

#[test]
fn a_million_keys_stay_within_a_limit_of_four_mebibytes() {
    let folder = Folder::new();
    let column = vec![field("n", 1, DataType::Long)];
    // Neither order nor distance of the keys helps.
    let key = |i: i64| i.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(20);
    let keys = batch(&[("n", Some(1), longs((0..1_000_000).map(key)))]);
    let small = batch(&[("n", Some(1), longs([key(1_500_001), key(3)]))]);
    let rows = batch(&[("n", Some(1), longs((999_000..1_000_000).chain(1_500_000..1_501_000).map(key)))]);
    let files = vec![
        folder.delete_file("small.parquet", &small, DeleteContent::Equality(column.clone())),
        folder.delete_file("large.parquet", &keys, DeleteContent::Equality(column.clone())),
    ];
    let file = folder.data("d.parquet", &rows, files);
    let expected: Vec<u64> = (0..1_000).chain([1_001]).collect();
    let read = by_id(column);
    let ample = folder.deletes(512 << 20);
    assert_eq!(positions(&ample, &file, &read), expected);
    assert!(ample.held_bytes() > 16 << 20, "{}", ample.held_bytes());
    let short = folder.deletes(4 << 20);
    assert_eq!(positions(&short, &file, &read), expected);
    assert!(short.budget.most() <= 4 << 20, "{}", short.budget.most());
    assert!(short.held_bytes() < 1 << 20, "{}", short.held_bytes());
}

/// A row of the model: a number, a double by its bits, a string and a decimal.
type Row = (Option<i64>, Option<u64>, Option<String>, Option<i128>);

fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let doubles = [0.0, -0.0, 1.5, f64::NAN, -f64::NAN, f64::from_bits(f64::NAN.to_bits() | 9), f64::INFINITY];
    let row = (
        prop::option::of(0i64..4),
        prop::option::of(prop::sample::select(doubles.map(f64::to_bits).to_vec())),
        prop::option::of(prop::sample::select(vec!["", "a", "ab", "b", "ü"]).prop_map(str::to_owned)),
        prop::option::of(-2i128..3),
    );
    prop::collection::vec(row, 0..most)
}

fn table(rows: &[Row]) -> [(&'static str, ArrayRef); 4] {
    let doubles = rows.iter().map(|r| r.1.map(f64::from_bits));
    let decimals = Decimal128Array::from_iter(rows.iter().map(|r| r.3)).with_precision_and_scale(20, 2).unwrap();
    [
        ("n", Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.0)))),
        ("x", Arc::new(Float64Array::from_iter(doubles))),
        ("s", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.2.clone())))),
        ("d", Arc::new(decimals)),
    ]
}

/// One value as Java compares it.
fn value(row: &Row, column: usize) -> String {
    let double = |bits: u64| if f64::from_bits(bits).is_nan() { "NaN".to_owned() } else { bits.to_string() };
    match column {
        0 => format!("{:?}", row.0),
        1 => format!("{:?}", row.1.map(double)),
        2 => format!("{:?}", row.2),
        _ => format!("{:?}", row.3),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn rows_are_deleted_as_by_comparing_each_with_each(
        data in prop::collection::vec(rows(60), 1..3),
        equality in prop::collection::vec((rows(12), prop::collection::btree_set(0usize..4, 1..3), any::<bool>()), 0..6),
        named in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
        memory in prop::sample::select(vec![0u64, 2_000, 1 << 20]),
    ) {
        let folder = Folder::new();
        let types =
            [DataType::Long, DataType::Double, DataType::String, DataType::Decimal { precision: 20, scale: 2 }];
        let fields: Vec<Field> =
            (0..4).map(|i| field(["n", "x", "s", "d"][i], i as i32 + 1, types[i].clone())).collect();
        let columns = |rows: &[Row], wanted: &[usize]| {
            let table = table(rows);
            let columns: Vec<_> = wanted.iter().map(|i| (table[*i].0, Some(*i as i32 + 1), table[*i].1.clone())).collect();
            batch(&columns)
        };
        let mut files: Vec<Arc<DeleteFile>> = Vec::new();
        for (i, (keys, compared, reversed)) in equality.iter().enumerate() {
            let mut compared: Vec<usize> = compared.iter().copied().collect();
            if *reversed {
                compared.reverse();
            }
            let content = DeleteContent::Equality(compared.iter().map(|c| fields[*c].clone()).collect());
            files.push(folder.delete_file(&format!("e{i}.parquet"), &columns(keys, &compared), content));
        }
        let mut inputs: Vec<InputFile> = Vec::new();
        for (i, rows) in data.iter().enumerate() {
            inputs.push(folder.data(&format!("d{i}.parquet"), &columns(rows, &[3, 1, 0, 2]), files.clone()));
        }
        let mut by_file: HashMap<usize, Vec<u64>> = HashMap::new();
        let mut rows_named = Vec::new();
        for (file, row) in &named {
            let file = file.index(data.len());
            if !data[file].is_empty() {
                let row = row.index(data[file].len()) as u64;
                by_file.entry(file).or_default().push(row);
                rows_named.push((inputs[file].location.clone(), row as i64));
            }
        }
        let naming = folder.delete_file("p.parquet", &naming(&rows_named, true), DeleteContent::Positions);
        let deletes = folder.deletes(memory);
        // A delete file holds for the data files that have it, and for no others.
        for (i, rows) in data.iter().enumerate() {
            let applies = |file: usize| i == 0 || file.is_multiple_of(2);
            inputs[i].delete_files = (0..files.len()).filter(|f| applies(*f)).map(|f| files[f].clone()).collect();
            inputs[i].delete_files.push(naming.clone());
            let is_deleted = |at: usize| {
                let equal = |(f, (keys, compared, _)): (usize, &(Vec<Row>, std::collections::BTreeSet<usize>, bool))| {
                    let same = |key: &Row| compared.iter().all(|c| value(key, *c) == value(&rows[at], *c));
                    applies(f) && keys.iter().any(same)
                };
                by_file.get(&i).is_some_and(|rows| rows.contains(&(at as u64))) || equality.iter().enumerate().any(equal)
            };
            let expected: Vec<u64> = (0..rows.len()).filter(|at| is_deleted(*at)).map(|at| at as u64).collect();
            prop_assert_eq!(positions(&deletes, &inputs[i], &by_id(fields.clone())), expected);
        }
    }
}
