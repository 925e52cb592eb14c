//! Tables that contradict themselves, or need what we don't have: one clear error, never a panic.

use lakesmith_core::table::FileId;
use lakesmith_core::{ErrorKind, Result};
use lakesmith_iceberg::{At, input_files, read_spec, read_vector};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixtures::{ALL, Fixture};

async fn error_after(name: &str, change: impl FnOnce(&mut Value)) -> lakesmith_core::Error {
    let fixture = Fixture::open(name).await;
    fixture.change_metadata(change).await;
    fixture.load(At::Latest).await.unwrap_err()
}

#[tokio::test]
async fn a_newer_format_is_refused_by_its_number() {
    let error = error_after("v3_dv", |metadata| metadata["format-version"] = json!(4)).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 4"), "{error}");
    assert!(error.context_value("path").unwrap().ends_with("v7.metadata.json"));
}

#[tokio::test]
async fn metadata_that_contradicts_itself_is_corrupt() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 6] = [
        ("no current schema", |metadata| metadata["current-schema-id"] = json!(9)),
        ("no default spec", |metadata| metadata["default-spec-id"] = json!(9)),
        ("no current snapshot", |metadata| metadata["current-snapshot-id"] = json!(9)),
        ("no schema", |metadata| metadata["schemas"] = json!([])),
        ("a spec that manifests have", |metadata| {
            metadata["partition-specs"] = json!([{"spec-id": 5, "fields": []}]);
            metadata["default-spec-id"] = json!(5);
        }),
        ("no format version", |metadata| metadata["format-version"] = Value::Null),
    ];
    for (what, change) in changes {
        let error = error_after("part_more", change).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(error.context_value("path").is_some(), "{what}: {error}");
    }
}

#[tokio::test]
async fn files_that_are_gone_are_named() {
    let fixture = Fixture::open("many_manifests").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let below = |path: &str| path.rsplit_once("/metadata/").unwrap().1.to_owned();
    let manifest = below(&table.log.manifests[3].path);
    fixture.delete(&format!("metadata/{manifest}")).await;
    let error = fixture.load(At::Latest).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.context_value("path").unwrap().ends_with(&manifest), "{error}");
    let list = below(table.snapshot().unwrap().manifest_list.as_deref().unwrap());
    fixture.delete(&format!("metadata/{list}")).await;
    let error = fixture.load(At::Latest).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.context_value("path").unwrap().ends_with(&list), "{error}");
}

#[tokio::test]
async fn columns_whose_values_are_not_understood_are_named_only_when_rows_are_read() {
    for kind in ["time", "timestamp_ns", "geography", "a_type_of_tomorrow"] {
        let fixture = Fixture::open("part_more").await;
        fixture
            .change_metadata(|metadata| {
                let fields = metadata["schemas"][0]["fields"].as_array_mut().unwrap();
                let inner = json!({"id": 91, "name": "inner", "required": false, "type": kind});
                let outer = json!({"type": "struct", "fields": [inner]});
                fields.push(json!({"id": 90, "name": "outer", "required": false, "type": outer}));
            })
            .await;
        let table = fixture.load(At::Latest).await.unwrap();
        assert_eq!(table.state.files.len(), 20);
        let error = read_spec(&table).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.context_value("column"), Some("outer.inner"));
        assert_eq!(error.context_value("type"), Some(kind));
    }
}

#[tokio::test]
async fn types_that_spark_shows_in_its_own_way_keep_their_name() {
    let fixture = Fixture::open("part_more").await;
    fixture
        .change_metadata(|metadata| {
            let fields = metadata["schemas"][0]["fields"].as_array_mut().unwrap();
            for (id, kind) in [(90, "uuid"), (91, "fixed[16]"), (92, "variant"), (93, "unknown")] {
                fields.push(json!({"id": id, "name": format!("c{id}"), "required": false, "type": kind}));
            }
        })
        .await;
    let table = fixture.load(At::Latest).await.unwrap();
    let schema = read_spec(&table).unwrap().schema;
    let shown: Vec<(String, Option<&String>)> = schema.fields[schema.fields.len() - 4..]
        .iter()
        .map(|f| (f.data_type.simple_string(), f.metadata.get("iceberg-type")))
        .collect();
    let (uuid, fixed) = ("\"uuid\"".to_owned(), "\"fixed[16]\"".to_owned());
    let expected = [("string", Some(&uuid)), ("binary", Some(&fixed)), ("variant", None), ("void", None)];
    assert_eq!(shown, expected.map(|(name, metadata)| (name.to_owned(), metadata)));
}

#[tokio::test]
async fn a_snapshot_that_lists_its_manifests_itself_is_read() {
    let fixture = Fixture::open("v1_table").await;
    let whole = fixture.load(At::Latest).await.unwrap();
    let manifests: Vec<&str> = whole.log.manifests.iter().map(|m| m.path.as_str()).collect();
    fixture
        .change_metadata(|metadata| {
            let snapshot = metadata["snapshots"][0].as_object_mut().unwrap();
            snapshot.remove("manifest-list");
            snapshot.insert("manifests".into(), json!(manifests));
            // As old writers have it.
            for key in ["schemas", "current-schema-id", "partition-specs", "default-spec-id", "sort-orders", "refs"] {
                metadata.as_object_mut().unwrap().remove(key);
            }
        })
        .await;
    let inline = fixture.load(At::Latest).await.unwrap();
    let paths = |table: &lakesmith_iceberg::IcebergTable| -> Vec<String> {
        table.state.files.iter().map(|f| f.path.to_owned()).collect()
    };
    assert_eq!(paths(&inline), paths(&whole));
    assert_eq!(inline.state.schema, whole.state.schema);
    assert_eq!(inline.log.metadata.refs.len(), 1);
}

/// Loads and reads all that the metadata gives; what comes of it is no matter here.
async fn read_all(fixture: &Fixture) -> Result<()> {
    let table = fixture.load(At::Latest).await?;
    let ids: Vec<FileId> = table.state.files.iter().map(|f| f.id).collect();
    for input in input_files(&table, &ids)? {
        if let Some(deletes) = &input.deletes {
            read_vector(&fixture.store, deletes).await?;
        }
    }
    crate::tables::read_every_table(fixture, &table).await?;
    crate::statistics::read_all_bounds(fixture, &table).await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn broken_bytes_never_panic(
        name in prop::sample::select(&ALL[..]), file in any::<prop::sample::Index>(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::open(name).await;
            let listed = fixture.store.list(&fixture.root).await.unwrap();
            let read = |name: &str| !name.ends_with(".parquet") && !name.ends_with(".text");
            let names: Vec<&str> =
                listed.iter().map(|o| o.location.relative_to(&fixture.root).unwrap()).filter(|name| read(name)).collect();
            let name = names[file.index(names.len())];
            let mut bytes = fixture.get(name).await;
            for (place, byte) in places {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            fixture.put(name, bytes).await;
            if let Err(error) = read_all(&fixture).await {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
            }
        });
    }
}
