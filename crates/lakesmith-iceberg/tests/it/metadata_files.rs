//! Which metadata file is the newest, with hints that help, mislead or are not there.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use lakesmith_core::ErrorKind;
use lakesmith_iceberg::{At, Needs, is_metadata_file, is_table, load, load_metadata_at};
use lakesmith_storage::Location;
use serde_json::Value;

use crate::fixtures::Fixture;

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_hint_that_is_old_wrong_or_gone_leads_to_the_newest_version() {
    let fixture = Fixture::open("branch_tag").await;
    let newest = fixture.expected["current_metadata"].as_str().unwrap().to_owned();
    for hint in [Some("7"), Some("5\n"), Some("1"), Some("99"), Some("nonsense"), Some(""), None] {
        match hint {
            Some(hint) => fixture.put("metadata/version-hint.text", hint.to_owned()).await,
            None => fixture.delete("metadata/version-hint.text").await,
        }
        let table = fixture.load(At::Latest).await.unwrap();
        assert_eq!(table.log.metadata_location.file_name(), newest, "{hint:?}");
    }
}

#[tokio::test]
async fn packed_metadata_is_read_under_both_of_its_names() {
    for name in ["v8.gz.metadata.json", "v8.metadata.json.gz"] {
        let fixture = Fixture::open("branch_tag").await;
        let mut metadata: Value = serde_json::from_slice(&fixture.get("metadata/v7.metadata.json").await).unwrap();
        metadata["properties"]["packed"] = "yes".into();
        fixture.put(&format!("metadata/{name}"), packed(metadata.to_string().as_bytes())).await;
        let table = fixture.load(At::Latest).await.unwrap();
        assert_eq!(table.log.metadata_location.file_name(), name);
        assert_eq!(table.state.property("packed"), Some("yes"));
        let broken = packed(b"{}")[..12].to_vec();
        fixture.put(&format!("metadata/{name}"), broken).await;
        let error = fixture.load(At::Latest).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.context_value("path").unwrap().ends_with(name));
    }
}

#[tokio::test]
async fn files_with_random_names_are_ordered_by_their_numbers() {
    let fixture = Fixture::open("v1_table").await;
    let text = fixture.get("metadata/v2.metadata.json").await;
    let old = fixture.get("metadata/v1.metadata.json").await;
    for name in ["version-hint.text", "v1.metadata.json", "v2.metadata.json"] {
        fixture.delete(&format!("metadata/{name}")).await;
    }
    assert!(!is_table(&fixture.store, &fixture.root).await.unwrap());
    fixture.put("metadata/00009-f0000000-0000-0000-0000-000000000000.metadata.json", old).await;
    fixture.put("metadata/00010-00000000-0000-0000-0000-000000000000.gz.metadata.json", packed(&text)).await;
    assert!(is_table(&fixture.store, &fixture.root).await.unwrap());
    let table = fixture.load(At::Latest).await.unwrap();
    assert!(table.log.metadata_location.file_name().starts_with("00010-"));
    assert_eq!(table.state.files.len(), 2);
}

#[tokio::test]
async fn a_catalog_may_name_any_metadata_file() {
    let fixture = Fixture::open("branch_tag").await;
    let location = fixture.root.join("metadata/v2.metadata.json");
    let needs = Needs { files: true };
    let table = load_metadata_at(&fixture.store, &location, At::Latest, needs).await.unwrap();
    assert_eq!(table.state.location, fixture.root.to_string());
    assert!(table.state.files.len() < 3);
    let nowhere = fixture.root.join("metadata/v77.metadata.json");
    let error = load_metadata_at(&fixture.store, &nowhere, At::Latest, needs).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.context_value("path"), Some(nowhere.to_string().as_str()));
}

#[tokio::test]
async fn where_there_is_no_table_none_is_found() {
    let fixture = Fixture::open("branch_tag").await;
    let nowhere = Location::parse("/tmp/lakesmith-fixtures/iceberg/nowhere").unwrap();
    assert!(!is_table(&fixture.store, &nowhere).await.unwrap());
    let error = load(&fixture.store, &nowhere, At::Latest, Needs { files: true }).await.unwrap_err();
    assert_eq!((error.kind(), error.class_name()), (ErrorKind::NotFound, "TABLE_OR_VIEW_NOT_FOUND"));
    assert!(is_table(&fixture.store, &fixture.root).await.unwrap());
    for (name, is_one) in
        [("v1.metadata.json", true), ("x.gz.metadata.json", true), (".metadata.json", false), ("v1.json", false)]
    {
        assert_eq!(is_metadata_file(name), is_one, "{name}");
    }
}

#[tokio::test]
async fn a_table_without_a_snapshot_is_empty() {
    let fixture = Fixture::open("v1_table").await;
    let location = fixture.root.join("metadata/v1.metadata.json");
    let table = load_metadata_at(&fixture.store, &location, At::Latest, Needs { files: true }).await.unwrap();
    assert_eq!((table.state.version, table.state.files.len(), table.snapshot().is_none()), (0, 0, true));
}
