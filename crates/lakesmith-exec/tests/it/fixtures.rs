//! Files that Spark wrote.

use std::path::{Path, PathBuf};

use arrow::array::AsArray;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{DataType, DeleteInfo, Field};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::bench_table::{Bench, field, plain_write, spec};

fn data_files(table: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta").join(table);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .collect();
    files.sort();
    files
}

fn copy_of(table: &str) -> Bench {
    let mut bench = Bench::new();
    for file in data_files(table) {
        bench.add_bytes(&std::fs::read(file).unwrap());
    }
    bench
}

fn schema_text(path: &Path) -> String {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, reader.metadata().file_metadata().schema());
    String::from_utf8(text).unwrap()
}

#[test]
fn variants_are_copied_byte_for_byte_with_their_annotation() {
    let bench = copy_of("variant");
    let outcome =
        bench.run(spec(vec![field("id", DataType::Long), field("j", DataType::Variant)]), plain_write()).unwrap();
    let (before, after) = (bench.rows("in-0.parquet"), bench.rows(&outcome.outputs[0].path));
    for part in ["value", "metadata"] {
        let bytes = |batch: &arrow::array::RecordBatch| {
            batch.column(1).as_struct().column_by_name(part).unwrap().as_binary::<i32>().clone()
        };
        assert_eq!(bytes(&before), bytes(&after));
    }
    let variant = |path: PathBuf| schema_text(&path).split("group j").nth(1).unwrap().to_owned();
    assert_eq!(variant(bench.path(&outcome.outputs[0].path)), variant(bench.path("in-0.parquet")));
}

#[test]
fn nested_columns_of_spark_survive() {
    let bench = copy_of("nested");
    let list = |element: Field| DataType::List(Box::new(Field { name: "element".into(), ..element }));
    let before = bench.rows("in-0.parquet");
    let fields: Vec<Field> =
        before.schema_ref().fields().iter().map(|f| field(f.name(), core_type(f.data_type(), &list))).collect();
    let outcome = bench.run(spec(fields), plain_write()).unwrap();
    let after = bench.rows(&outcome.outputs[0].path);
    assert_eq!(before.num_rows(), after.num_rows());
    let text = |batch: &arrow::array::RecordBatch| {
        let value = |column, row| arrow::util::display::array_value_to_string(column, row).unwrap();
        let row = |i| batch.columns().iter().map(|c| value(c, i)).collect::<Vec<_>>();
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    assert_eq!(text(&before), text(&after));
}

#[test]
fn a_vector_file_of_spark_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta/dv_file");
    let data = folder.join("part-00000-2e75ce6d-8852-4091-aa7e-532093555e23-c000.snappy.parquet");
    // The log's fourth version: `(id % 100) < 3` deleted, vector at offset 1 with 47 bytes.
    let vector = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| std::fs::read(e.unwrap().path()).unwrap_or_default())
        .find(|bytes| bytes.len() == 166 && bytes[1..5] == [0, 0, 0, 47])
        .unwrap();
    let mut bench = Bench::new();
    std::fs::write(bench.path("vector.bin"), vector).unwrap();
    let location = bench.root().join("vector.bin").to_string();
    bench.add_bytes(&std::fs::read(data).unwrap()).deletes = Some(DeleteInfo {
        unique_id: "u@1".into(),
        storage_type: "u".into(),
        path_or_inline: String::new(),
        offset: Some(1),
        size_in_bytes: 47,
        cardinality: 15,
        at: VectorLocation::File { location, offset: 1 },
    });
    let outcome = bench.run(spec(vec![field("id", DataType::Long)]), plain_write()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    let ids = rows.column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec();
    assert_eq!(ids, (0..500).filter(|id| id % 100 >= 3).collect::<Vec<i64>>());
}

fn core_type(from: &arrow::datatypes::DataType, list: &dyn Fn(Field) -> DataType) -> DataType {
    use arrow::datatypes::DataType as A;
    let sub = |f: &arrow::datatypes::Field| field(f.name(), core_type(f.data_type(), list));
    match from {
        A::Int32 => DataType::Integer,
        A::Int64 => DataType::Long,
        A::Float64 => DataType::Double,
        A::Utf8 => DataType::String,
        A::Struct(fields) => DataType::Struct(fields.iter().map(|f| sub(f)).collect()),
        A::List(f) => list(sub(f)),
        A::Map(entries, _) => {
            let A::Struct(parts) = entries.data_type() else { unreachable!() };
            DataType::Map(Box::new(sub(&parts[0])), Box::new(sub(&parts[1])))
        }
        other => unreachable!("{other}"),
    }
}
