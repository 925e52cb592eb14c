//! Clustering keys: the domain, the protocol and the conflicts of a change; and bounds of keys by file.

use std::collections::BTreeMap;

use lakesmith_core::ErrorKind;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::op::CreateTable;
use lakesmith_core::table::{DataType, Field, OperationInfo, Scalar, Schema};
use lakesmith_delta::{
    CommitContext, FirstRows, NewConfiguration, check_room, create, files_without_statistics, key_bounds, new_table,
    set_clustering,
};
use lakesmith_storage::{Location, Store};
use object_store::memory::InMemory;
use serde_json::{Value, json};

use crate::commit_bench::{Bench, add, metadata, protocol, with};
use crate::tables::{TestTable, golden_folder};

fn paths(columns: &[&[&str]]) -> Vec<Vec<String>> {
    columns.iter().map(|path| path.iter().map(ToString::to_string).collect()).collect()
}

fn of_kind<'a>(actions: &'a [Value], kind: &str) -> Vec<&'a Value> {
    actions.iter().filter_map(|action| action.get(kind)).collect()
}

const NO_ROWS: FirstRows<'static> = FirstRows { files: &[], metrics: &BTreeMap::new() };

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_table_gets_keys_with_features_and_metadata_and_a_clustered_one_the_domain_alone() {
    let bench = Bench::plain().await;
    let new = set_clustering(&bench.load().await, &paths(&[&["P"], &["id"]])).unwrap().unwrap();
    assert_eq!(bench.configure(&bench.load().await, new).await.unwrap().version, 1);
    let actions = bench.actions(1).await.unwrap();
    let protocol = of_kind(&actions, "protocol")[0];
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&json!(1), &json!(7)));
    let mut features: Vec<&str> =
        protocol["writerFeatures"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    features.sort_unstable();
    assert_eq!(features, ["appendOnly", "clustering", "domainMetadata", "invariants"]);
    assert_eq!(of_kind(&actions, "metaData").len(), 1);
    let text = r#"{"clusteringColumns":[["p"],["id"]],"domainName":"delta.clustering"}"#;
    let domain = json!({"domain": "delta.clustering", "configuration": text, "removed": false});
    assert_eq!(of_kind(&actions, "domainMetadata"), [&domain]);

    let table = bench.load().await;
    assert_eq!(table.state.clustering_columns, Some(paths(&[&["p"], &["id"]])));
    let none = set_clustering(&table, &[]).unwrap().unwrap();
    bench.configure(&table, none).await.unwrap();
    let actions = bench.actions(2).await.unwrap();
    let kinds: Vec<&String> = actions.iter().flat_map(|a| a.as_object().unwrap().keys()).collect();
    assert_eq!(kinds, ["commitInfo", "domainMetadata"]);
    assert_eq!(bench.load().await.state.clustering_columns, Some(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_keys_for_a_table_that_never_had_any_change_nothing() {
    let bench = Bench::plain().await;
    assert!(set_clustering(&bench.load().await, &[]).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_keys_rides_over_appends_and_falls_to_another_change() {
    let domain = |columns: &str| json!({"domainMetadata": {"domain": "delta.clustering", "configuration": columns, "removed": false}});
    let features = ["appendOnly", "invariants", "clustering", "domainMetadata"];
    let first = [protocol(&features), metadata(&[]), domain(r#"{"clusteringColumns":[["id"]]}"#), add("a", 1)];
    let other = json!({"domainMetadata": {"domain": "app", "configuration": "x", "removed": false}});
    for (winner, class) in [
        (add("b", 1), None),
        (other, None),
        (domain(r#"{"clusteringColumns":[]}"#), Some("DELTA_CONCURRENT_TRANSACTION")),
        (metadata(&[("delta.dataSkippingNumIndexedCols", "0")]), Some("DELTA_METADATA_CHANGED")),
    ] {
        let bench = Bench::new(&first).await;
        let base = bench.load().await;
        let new = set_clustering(&base, &paths(&[&["p"]])).unwrap().unwrap();
        bench.put(1, std::slice::from_ref(&winner)).await;
        match (bench.configure(&base, new).await, class) {
            (Ok(committed), None) => assert_eq!(committed.version, 2),
            (Err(error), Some(class)) => {
                assert_eq!((error.kind(), error.class_name()), (ErrorKind::Conflict, class));
                assert!(bench.actions(2).await.is_none());
            }
            (found, _) => panic!("{winner}: {found:?}"),
        }
    }
}

fn column(name: &str, data_type: DataType) -> Field {
    Field { name: name.into(), physical: name.into(), id: None, data_type, nullable: true, metadata: BTreeMap::new() }
}

fn two_columns() -> CreateTable {
    let fields = vec![column("a", DataType::Long), column("b", DataType::TimestampNtz)];
    CreateTable { schema: Schema { fields }, cluster_by: paths(&[&["A"]]), ..CreateTable::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_version_is_made_once() {
    let bench = Bench::plain().await;
    let root = Location::parse("memory:///new").unwrap();
    let store = Store::from_object_store(std::sync::Arc::new(InMemory::new()), &root);
    let new = new_table(&root, &two_columns(), &bench.world).unwrap();
    let operation = OperationInfo { name: "CREATE TABLE".into(), ..OperationInfo::default() };
    let context = CommitContext {
        world: &bench.world,
        cancel: &bench.cancel,
        engine_info: "Lakesmith/test".into(),
        timeout_ms: 20_000,
    };
    check_room(&store, &root).await.unwrap();
    assert!(create(&store, &root, &new, &NO_ROWS, &operation, &context).await.unwrap());
    assert!(!create(&store, &root, &new, &NO_ROWS, &operation, &context).await.unwrap());
    let checksum: Value =
        serde_json::from_slice(&store.get(&root.join("_delta_log/00000000000000000000.crc")).await.unwrap()).unwrap();
    let bins = std::fs::read(golden_folder().join("append_only/_delta_log/00000000000000000000.crc")).unwrap();
    let bins: Value = serde_json::from_slice(&bins).unwrap();
    assert_eq!(checksum["fileSizeHistogram"], bins["fileSizeHistogram"]);
    assert_eq!((&checksum["numFiles"], &checksum["tableSizeBytes"]), (&json!(0), &json!(0)));
    assert_eq!(checksum["metadata"], serde_json::to_value(new.metadata.as_ref().unwrap()).unwrap());
    assert_eq!(checksum["protocol"], serde_json::to_value(new.protocol.as_ref().unwrap()).unwrap());
    assert_eq!(checksum["domainMetadata"][0]["configuration"], json!(new.domains["delta.clustering"]));
    assert!(checksum.get("numDeletionVectorsOpt").is_none());
    let table = lakesmith_delta::load(&store, &root, Default::default(), crate::tables::ALL).await.unwrap();
    assert_eq!((table.state.version, table.state.files.len()), (0, 0));
    assert_eq!(table.state.clustering_columns, Some(paths(&[&["a"]])));
    assert_eq!((table.state.min_reader_version, table.state.min_writer_version), (3, 7));
    let features = ["appendOnly", "clustering", "domainMetadata", "invariants", "timestampNtz"];
    assert_eq!(table.state.features, features);
    check_room(&store, &root).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_made_only_where_nothing_lies() {
    const COMMIT: &str = "_delta_log/00000000000000000000.json";
    for (left, stands_in_the_way) in [
        ("stray.parquet", true),
        (".hidden", true),
        ("_delta_log/00000000000000000000.crc", true),
        ("_delta_log/.00000000000000000000.json.crc", true),
        ("_delta_log/00000000000000000007.json", true),
        ("_delta_log/_sidecars/x.parquet", true),
        // Writes of others that have begun, ours and Spark's.
        ("_delta_log/.0123456789abcdef0123456789abcdef.lakesmith-tmp", false),
        ("_delta_log/.00000000000000000000.json.6b3c.tmp", false),
        ("_delta_log/..00000000000000000000.json.6b3c.tmp.crc", false),
    ] {
        let root = Location::parse("memory:///new").unwrap();
        let store = Store::from_object_store(std::sync::Arc::new(InMemory::new()), &root);
        check_room(&store, &root).await.unwrap();
        store.put(&root.join(left), "x".into()).await.unwrap();
        let class = check_room(&store, &root).await.map_err(|e| e.class_name().to_owned());
        let expected =
            if stands_in_the_way { Err("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION".into()) } else { Ok(()) };
        assert_eq!(class, expected, "{left}");
        // Once there is a version, the put finds out who made it.
        store.put(&root.join(COMMIT), "x".into()).await.unwrap();
        check_room(&store, &root).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_begin_with_what_they_need() {
    let bench = Bench::plain().await;
    let new = |properties: &[(&str, &str)]| -> lakesmith_core::Result<NewConfiguration> {
        let properties = properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        new_table(&bench.root, &CreateTable { properties, ..two_columns() }, &bench.world)
    };
    let mapped = new(&[("delta.columnMapping.mode", "name")]).unwrap();
    let (metadata, domain) = (mapped.metadata.unwrap(), &mapped.domains["delta.clustering"]);
    let schema: Value = serde_json::from_str(&metadata.schema_string).unwrap();
    let physical = schema["fields"][0]["metadata"]["delta.columnMapping.physicalName"].as_str().unwrap();
    assert!(physical.starts_with("col-") && domain.contains(physical), "{domain}");
    assert_eq!(metadata.configuration["delta.columnMapping.maxColumnId"], "2");
    let tracked = new(&[("delta.enableRowTracking", "true")]).unwrap();
    let configuration = tracked.metadata.unwrap().configuration;
    assert!(configuration["delta.rowTracking.materializedRowIdColumnName"].starts_with("_row-id-col-"));
    assert!(tracked.protocol.unwrap().writer_features.unwrap().contains(&"rowTracking".to_owned()));
    for (key, value) in [
        ("delta.enableIcebergCompatV2", "true"),
        ("delta.universalFormat.enabledFormats", "iceberg"),
        ("delta.rowTracking.materializedRowIdColumnName", "x"),
        ("delta.feature.nope", "supported"),
    ] {
        assert_eq!(new(&[(key, value)]).unwrap_err().kind(), ErrorKind::Unsupported, "{key}");
    }
    let error = new(&[("delta.feature.clustering", "supported")]).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED");
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_come_with_their_files() {
    let stats = |low: Value, high: Value| {
        let text = json!({"numRecords": 1, "minValues": {"id": low, "p": "a"}, "maxValues": {"id": high}}).to_string();
        with(add("x", 1), "add", &[("stats", text.into())])
    };
    let named = |path: &str, action: Value| with(action, "add", &[("path", path.into())]);
    let bench = Bench::new(&[
        protocol(&[]),
        metadata(&[]),
        named("a", stats(json!(1), json!(9))),
        named("b", stats(Value::Null, Value::Null)),
        add("c", 1),
    ])
    .await;
    bench.put(1, &[named("d", stats(json!(-5), json!(7))), crate::commit_bench::remove("a")]).await;
    let table = bench.load().await;
    let key = |name: &str, data_type| OrderKey { path: vec![name.into()], name: vec![name.into()], data_type };
    let keys = [key("id", DataType::Long), key("p", DataType::String)];
    let bounds = key_bounds(&bench.store, &bench.root, &table, &keys).await.unwrap();
    let of = |path: &str| {
        let row = table.state.files.iter().position(|f| f.path == path).unwrap();
        (bounds[0][row].clone(), bounds[1][row].clone())
    };
    assert_eq!(table.state.files.len(), 3);
    assert_eq!(of("b"), (None, None));
    assert_eq!(of("c"), (None, None));
    assert_eq!(of("d"), (Some((Scalar::Long(-5), Scalar::Long(7))), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_say_nothing_of_a_column_are_counted() {
    let with_stats = |path: &str, stats: Value| with(add(path, 1), "add", &[("stats", stats.to_string().into())]);
    let bench = Bench::new(&[
        protocol(&[]),
        metadata(&[]),
        with_stats(
            "both",
            json!({"numRecords": 1, "minValues": {"id": 1, "p": "a"}, "maxValues": {"id": 1, "p": "a"}}),
        ),
        with_stats("nulls", json!({"numRecords": 1, "minValues": {"p": "a"}, "maxValues": {}, "nullCount": {"id": 1}})),
        with_stats("counted", json!({"numRecords": 1})),
        with_stats("null-bounds", json!({"numRecords": 1, "minValues": {"id": null}, "nullCount": {"p": 1}})),
        with(add("silent", 1), "add", &[("stats", Value::Null)]),
        with(add("broken", 1), "add", &[("stats", "{".into())]),
    ])
    .await;
    let count = async |columns: &[&[&str]]| {
        let table = bench.load().await;
        files_without_statistics(&bench.store, &bench.root, &table, &paths(columns)).await.unwrap()
    };
    assert_eq!(count(&[&["ID"], &["p"]]).await, [4, 3]);
    assert_eq!(count(&[]).await, [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_found_in_every_kind_of_checkpoint() {
    for name in ["multipart_checkpoint", "v2_checkpoint_parquet", "liquid_after", "log_cleaned"] {
        let golden = TestTable::golden(name);
        let table = golden.load().await;
        let field = table.state.schema.field("id").unwrap();
        let key = OrderKey {
            path: vec![field.physical.clone()],
            name: vec![field.name.clone()],
            data_type: field.data_type.clone(),
        };
        let bounds = key_bounds(&golden.store(), &golden.root(), &table, &[key]).await.unwrap();
        assert_eq!(bounds[0].len(), table.state.files.len(), "{name}");
        for (row, file) in table.state.files.iter().enumerate() {
            let stats: Value = serde_json::from_str(file.stats_json.unwrap()).unwrap();
            let long = |part: &str| Scalar::Long(stats[part][&field.physical].as_i64().unwrap());
            assert_eq!(bounds[0][row], Some((long("minValues"), long("maxValues"))), "{name} {}", file.path);
        }
        let column = paths(&[&["id"]]);
        let without = files_without_statistics(&golden.store(), &golden.root(), &table, &column).await.unwrap();
        assert_eq!(without, [0], "{name}");
    }
}
