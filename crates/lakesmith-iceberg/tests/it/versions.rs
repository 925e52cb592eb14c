//! Time travel, by every name that a snapshot has.

use lakesmith_core::ErrorKind;
use lakesmith_iceberg::At;
use serde_json::json;

use crate::fixtures::Fixture;

fn rows(table: &lakesmith_iceberg::IcebergTable) -> u64 {
    table.state.files.iter().map(|f| f.rows.unwrap()).sum()
}

#[tokio::test]
async fn branches_tags_ids_and_times_lead_to_their_snapshots() {
    let fixture = Fixture::open("branch_tag").await;
    for name in ["main", "dev", "t1"] {
        let table = fixture.load(At::Reference(name.into())).await.unwrap();
        assert_eq!(json!(rows(&table)), fixture.expected["ref_rows"][name], "{name}");
        let id = fixture.expected["refs"][name]["snapshot-id"].as_i64().unwrap();
        assert_eq!(table.state.version, id as u64);
        let by_id = fixture.load(At::Snapshot(id)).await.unwrap();
        assert_eq!(rows(&by_id), rows(&table), "{name}");
    }
    let latest = fixture.load(At::Latest).await.unwrap();
    for entry in &latest.log.metadata.snapshot_log {
        for (after_ms, at) in [(0, entry.timestamp_ms), (1, entry.timestamp_ms + 1)] {
            let table = fixture.load(At::Timestamp(at)).await.unwrap();
            assert_eq!(table.log.snapshot_id, Some(entry.snapshot_id), "{after_ms} ms after");
        }
    }
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let fixture = Fixture::open("branch_tag").await;
    let first = fixture.load(At::Latest).await.unwrap().log.metadata.snapshot_log[0].timestamp_ms;
    for (at, text) in [
        (At::Snapshot(7), "cannot find snapshot with ID 7"),
        (At::Timestamp(first - 1), "cannot find a snapshot older than 20"),
        (At::Reference("nope".into()), "cannot find matching snapshot ID or reference name for version nope"),
    ] {
        let error = fixture.load(at).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().starts_with(text), "{error}");
        assert_eq!(error.context_value("path"), Some(fixture.root.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_snapshot_has_the_schema_of_its_time_and_a_branch_that_of_today() {
    let fixture = Fixture::open("branch_tag").await;
    fixture
        .change_metadata(|metadata| {
            let mut schema = metadata["schemas"][0].clone();
            schema["schema-id"] = json!(1);
            schema["fields"].as_array_mut().unwrap().push(json!({
                "id": 99, "name": "added", "required": false, "type": "int", "doc": "new",
                "initial-default": 7, "write-default": 8,
            }));
            metadata["schemas"].as_array_mut().unwrap().push(schema);
            metadata["current-schema-id"] = json!(1);
        })
        .await;
    let id = fixture.expected["refs"]["dev"]["snapshot-id"].as_i64().unwrap();
    for (at, has) in [
        (At::Latest, true),
        (At::Reference("dev".into()), true),
        (At::Reference("t1".into()), false),
        (At::Snapshot(id), false),
        (At::Timestamp(i64::MAX), false),
    ] {
        let table = fixture.load(at.clone()).await.unwrap();
        assert_eq!(table.state.schema.field("added").is_some(), has, "{at:?}");
    }
    let table = fixture.load(At::Latest).await.unwrap();
    let added = &table.state.schema.field("added").unwrap().metadata;
    let text = |key: &str| added.get(key).map(String::as_str);
    assert_eq!(
        (text("initial-default"), text("write-default"), text("comment")),
        (Some("7"), Some("8"), Some("\"new\""))
    );
}
