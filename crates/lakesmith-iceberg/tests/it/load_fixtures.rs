//! Every golden table holds what Spark said of it.

use lakesmith_core::table::{DataType, DeleteContent, FileId};
use lakesmith_iceberg::{At, input_files, read_spec, read_vector, row_tracking};
use serde_json::{Value, json};

use crate::fixtures::{ALL, Fixture};

#[tokio::test]
async fn every_table_has_the_files_rows_and_deletes_that_spark_counted() {
    for name in ALL {
        let fixture = Fixture::open(name).await;
        let expected = &fixture.expected;
        let table = fixture.load(At::Latest).await.unwrap();
        let (files, metadata) = (&table.state.files, &table.log.metadata);
        assert_eq!(json!(files.len()), expected["data_files"], "{name}");
        assert_eq!(json!(metadata.format_version), expected["format_version"], "{name}");
        assert_eq!(json!(table.log.snapshot_id), expected["current_snapshot_id"], "{name}");
        assert_eq!(json!(metadata.snapshots.len()), expected["snapshots"], "{name}");
        assert_eq!(json!(table.log.metadata_location.file_name()), expected["current_metadata"], "{name}");
        assert_eq!(json!(metadata.next_row_id), expected["next_row_id"], "{name}");

        let vectors: Vec<u64> = files.iter().filter_map(|f| f.deletes.map(|d| d.cardinality)).collect();
        let of_content = |positions: bool| {
            let wanted =
                files.delete_files().iter().filter(move |f| (f.content == DeleteContent::Positions) == positions);
            (wanted.clone().count() as u64, wanted.map(|f| f.rows).sum::<u64>())
        };
        let (position_files, position_rows) = of_content(true);
        let positions = [position_files + vectors.len() as u64, position_rows + vectors.iter().sum::<u64>()];
        assert_eq!(json!(positions), expected["pos_delete_files"], "{name}");
        let (equality_files, equality_rows) = of_content(false);
        assert_eq!(json!([equality_files, equality_rows]), expected["eq_delete_files"], "{name}");

        // Position deletes never name a row twice here; those of values can't be told without reading.
        if equality_files == 0 {
            let physical: u64 = files.iter().map(|f| f.rows.unwrap()).sum();
            assert_eq!(json!(physical - positions[1]), expected["rows"], "{name}");
        }
        for file in files.iter() {
            let size = fixture.store.head(&table.log.root.resolve(file.path).unwrap()).await.unwrap().size;
            assert_eq!(size, file.size, "{}", file.path);
        }
        let refs: Vec<&String> = metadata.refs.keys().collect();
        let expected_refs: Vec<&String> = expected["refs"].as_object().unwrap().keys().collect();
        assert_eq!(refs.len(), expected_refs.len(), "{name}");
        for (name, reference) in &metadata.refs {
            assert_eq!(json!(reference.snapshot_id), expected["refs"][name]["snapshot-id"]);
        }
        let specs: Vec<(i64, usize)> =
            metadata.partition_specs.iter().map(|s| (s.spec_id.into(), s.fields.len())).collect();
        let told = |spec: &Value| (spec["spec-id"].as_i64().unwrap(), spec["fields"].as_array().unwrap().len());
        let expected_specs: Vec<(i64, usize)> = expected["specs"].as_array().unwrap().iter().map(told).collect();
        assert_eq!(specs, expected_specs, "{name}");
        assert_eq!(metadata.sort_orders.len(), expected["sort_orders"].as_array().unwrap().len(), "{name}");
    }
}

#[tokio::test]
async fn schemas_are_those_that_spark_shows_and_every_field_has_its_id() {
    fn spark_type(data_type: &DataType) -> Value {
        match data_type {
            DataType::Struct(fields) => {
                let fields: Vec<Value> = fields.iter().map(|f| json!([f.name, spark_type(&f.data_type)])).collect();
                json!({ "fields": fields })
            }
            DataType::List(element) => json!({ "elementType": spark_type(&element.data_type) }),
            DataType::Map(key, value) => {
                json!({ "keyType": spark_type(&key.data_type), "valueType": spark_type(&value.data_type) })
            }
            other => match other.simple_string().as_str() {
                "bigint" => json!("long"),
                "int" => json!("integer"),
                other => json!(other),
            },
        }
    }
    fn told(json: &Value) -> Value {
        match json {
            Value::Object(object) if object.contains_key("fields") => {
                let fields = object["fields"].as_array().unwrap();
                let fields: Vec<Value> = fields.iter().map(|f| json!([f["name"], told(&f["type"])])).collect();
                json!({ "fields": fields })
            }
            Value::Object(object) if object.contains_key("elementType") => {
                json!({ "elementType": told(&object["elementType"]) })
            }
            Value::Object(object) => {
                json!({ "keyType": told(&object["keyType"]), "valueType": told(&object["valueType"]) })
            }
            other => other.clone(),
        }
    }
    fn all_have_ids(data_type: &DataType) -> bool {
        match data_type {
            DataType::Struct(fields) => fields.iter().all(|f| f.id.is_some() && all_have_ids(&f.data_type)),
            DataType::List(element) => element.id.is_some() && all_have_ids(&element.data_type),
            DataType::Map(key, value) => [key, value].iter().all(|f| f.id.is_some() && all_have_ids(&f.data_type)),
            _ => true,
        }
    }
    for name in ALL {
        let fixture = Fixture::open(name).await;
        let table = fixture.load(At::Latest).await.unwrap();
        let spec = read_spec(&table).unwrap();
        let whole = DataType::Struct(spec.schema.fields.clone());
        assert_eq!(spark_type(&whole), told(&fixture.expected["schema"]), "{name}");
        assert!(spec.match_by_id && all_have_ids(&whole), "{name}");
    }
}

#[tokio::test]
async fn a_vector_belongs_to_its_data_file_and_rows_have_ids() {
    let fixture = Fixture::open("v3_dv").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let ids: Vec<FileId> = table.state.files.iter().map(|f| f.id).collect();
    let inputs = input_files(&table, &ids).unwrap();
    let mut deleted = 0;
    for input in inputs.iter().filter(|input| input.deletes.is_some()) {
        let vector = read_vector(&fixture.store, input.deletes.as_ref().unwrap()).await.unwrap();
        assert!(vector.max().unwrap() < input.rows.unwrap(), "{}", input.location);
        deleted += vector.cardinality();
    }
    assert_eq!(deleted, 33);
    // Three appends of 100 rows, and the rows that an update wrote anew.
    let mut ranges: Vec<(i64, u64)> = inputs.iter().map(|f| (f.base_row_id.unwrap(), f.rows.unwrap())).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(0, 100), (100, 100), (200, 100), (300, 2)]);
    let mut versions: Vec<i64> = inputs.iter().map(|f| f.row_commit_version.unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions.len(), 4);
    assert!(versions[0] >= 1 && versions[3] <= 6, "{versions:?}");
    assert_eq!(row_tracking(&table).unwrap().field_ids, Some((2_147_483_540, 2_147_483_539)));
}

#[tokio::test]
async fn deletes_by_value_spare_what_came_after_them() {
    let fixture = Fixture::open("eq_deletes").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let files = &table.state.files;
    let DeleteContent::Equality(fields) = &files.delete_files()[0].content else { panic!("a delete by value") };
    assert_eq!(fields.iter().map(|f| (f.name.as_str(), f.id)).collect::<Vec<_>>(), [("id", Some(1))]);
    let spared: Vec<u64> = files.iter().filter(|f| f.delete_files.is_empty()).map(|f| f.rows.unwrap()).collect();
    // Only the file with the row that was put in again.
    assert_eq!(spared, [1]);
    assert_eq!(files.iter().filter(|f| f.delete_files.len() == 1).count(), 3);
    assert_eq!(row_tracking(&table), None);
    let inputs = input_files(&table, &[FileId(0), FileId(1), FileId(2), FileId(3)]).unwrap();
    let shared: Vec<_> = inputs.iter().flat_map(|input| &input.delete_files).collect();
    assert!(shared[0].path.starts_with("file:///tmp/lakesmith-fixtures/iceberg/eq_deletes/"), "{}", shared[0].path);
    assert!(std::sync::Arc::ptr_eq(shared[0], shared[1]));
}

#[tokio::test]
async fn deletes_by_position_that_name_one_file_apply_to_it_alone() {
    let fixture = Fixture::open("pos_deletes").await;
    let table = fixture.load(At::Latest).await.unwrap();
    // Spark writes a delete file for each data file, so none may be asked to look at another's.
    let most = table.state.files.iter().map(|f| f.delete_files.len()).max();
    let applied: usize = table.state.files.iter().map(|f| f.delete_files.len()).sum();
    assert_eq!((most, applied), (Some(1), 3));
}

#[tokio::test]
async fn partitions_have_typed_values_and_the_columns_they_stand_for() {
    let fixture = Fixture::open("part_more").await;
    let table = fixture.load(At::Latest).await.unwrap();
    for file in table.state.files.iter() {
        let values = table.partition_values(file.id);
        assert_eq!(values.len(), 2);
        assert_eq!(table.constants(file.id), [(2, values[1].clone())]);
        let month = if file.path.contains("d_month=2026-01") { 672 } else { 673 };
        match file.partition.raw[1].as_deref() {
            None => assert!(file.path.contains("d_month=null"), "{}", file.path),
            Some(text) => assert_eq!(text, month.to_string(), "{}", file.path),
        }
    }
}
