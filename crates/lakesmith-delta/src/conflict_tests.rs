use super::*;
use crate::actions::{CommitInfo, Format};

const SCHEMA: &str = r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"k":"v"}},{"name":"s","type":{"type":"struct","fields":[{"name":"b","type":"string","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}"#;
const MAPPED: &str = r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"k":"v","delta.columnMapping.id":1,"delta.columnMapping.physicalName":"a"}},{"name":"s","type":{"type":"struct","fields":[{"name":"b","type":"string","nullable":true,"metadata":{"delta.columnMapping.id":3,"delta.columnMapping.physicalName":"b"}}]},"nullable":true,"metadata":{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"s"}}]}"#;

fn metadata(properties: &[(&str, &str)]) -> Metadata {
    Metadata {
        id: "id".into(),
        name: None,
        description: None,
        format: Format { provider: "parquet".into(), options: BTreeMap::new(), unknown: Default::default() },
        schema_string: SCHEMA.into(),
        partition_columns: vec![],
        configuration: properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        created_time: Some(1),
        unknown: Default::default(),
    }
}

fn protocol(features: &[&str]) -> Protocol {
    Protocol {
        min_reader_version: 1,
        min_writer_version: 7,
        reader_features: None,
        writer_features: Some(features.iter().map(|f| f.to_string()).collect()),
        unknown: Default::default(),
    }
}

fn class(result: Result<()>) -> Option<String> {
    result.err().map(|e| {
        assert_eq!(e.kind(), ErrorKind::Conflict);
        e.class_name().to_string()
    })
}

#[test]
fn a_winners_metadata_is_ridden_over_only_if_rows_and_rules_stay() {
    let base = [("user", "x"), ("delta.checkpointInterval", "5")];
    let with = |more: &[(&str, &str)]| metadata(&[&base[..], more].concat());
    let mapped = |m: Metadata| Metadata { schema_string: MAPPED.into(), ..m };
    let mapping = [("delta.columnMapping.mode", "name"), ("delta.columnMapping.maxColumnId", "3")];
    let renamed = MAPPED.replace(r#"physicalName":"a""#, r#"physicalName":"col-1""#);
    let cases: Vec<(&str, Metadata, bool)> = vec![
        ("nothing", with(&[]), true),
        ("vectors enabled", with(&[("delta.enableDeletionVectors", "true")]), true),
        ("vectors disabled", with(&[("delta.enableDeletionVectors", "false")]), false),
        (
            "row tracking enabled",
            with(&[
                ("delta.enableRowTracking", "true"),
                ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-x"),
                ("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-commit-version-col-x"),
            ]),
            true,
        ),
        (
            "in-commit timestamps enabled",
            with(&[
                ("delta.enableInCommitTimestamps", "true"),
                ("delta.inCommitTimestampEnablementVersion", "3"),
                ("delta.inCommitTimestampEnablementTimestamp", "4"),
            ]),
            true,
        ),
        ("column mapping enabled", mapped(with(&mapping)), true),
        ("mapping without its property", mapped(with(&[])), false),
        ("mapping to other names", Metadata { schema_string: renamed, ..with(&mapping) }, false),
        ("mapping by id", mapped(with(&[("delta.columnMapping.mode", "id")])), false),
        ("checkpoint policy", with(&[("delta.checkpointPolicy", "v2")]), true),
        ("checkpoint policy back", with(&[("delta.checkpointPolicy", "classic")]), false),
        ("a user's property", with(&[("user2", "y")]), false),
        ("a property unset", metadata(&base[..1]), false),
        ("another schema", Metadata { schema_string: SCHEMA.replace("long", "int"), ..with(&[]) }, false),
        ("another partitioning", Metadata { partition_columns: vec!["a".into()], ..with(&[]) }, false),
        ("another table", Metadata { id: "other".into(), ..with(&[]) }, false),
        ("a description", Metadata { description: Some("d".into()), ..with(&[]) }, false),
    ];
    for (name, theirs, rides) in cases {
        let winner = Winner { metadata: Some(theirs), ..Winner::default() };
        let found = class(check(&protocol(&[]), &with(&[]), &winner, &OwnChanges::default()));
        assert_eq!(found, (!rides).then(|| "DELTA_METADATA_CHANGED".to_string()), "{name}");
        let own = OwnChanges { metadata: true, ..OwnChanges::default() };
        let found = class(check(&protocol(&[]), &with(&[]), &winner, &own));
        assert_eq!(found.as_deref(), Some("DELTA_METADATA_CHANGED"), "{name} against a change of our own");
    }
}

#[test]
fn identity_columns_that_moved_on_change_no_row() {
    let mut winner = Winner {
        metadata: Some(Metadata { schema_string: SCHEMA.replace(r#""k":"v""#, r#""k":"w""#), ..metadata(&[]) }),
        ..Winner::default()
    };
    let run = |winner: &Winner| class(check(&protocol(&[]), &metadata(&[]), winner, &OwnChanges::default()));
    assert_eq!(run(&winner).as_deref(), Some("DELTA_METADATA_CHANGED"));
    let tags = serde_json::from_str(r#"{"delta.identity.schemaUpdate":"true"}"#).unwrap();
    winner.info = CommitInfo { tags: Some(tags), ..CommitInfo::default() };
    assert_eq!(run(&winner), None);
}

#[test]
fn a_winners_protocol_may_grow_but_not_shrink() {
    let grew = Winner { protocol: Some(protocol(&["appendOnly", "deletionVectors"])), ..Winner::default() };
    let shrank = Winner { protocol: Some(protocol(&[])), ..Winner::default() };
    let run = |winner: &Winner, own| class(check(&protocol(&["appendOnly"]), &metadata(&[]), winner, &own));
    assert_eq!(run(&grew, OwnChanges::default()), None);
    assert_eq!(run(&shrank, OwnChanges::default()).as_deref(), Some("DELTA_PROTOCOL_CHANGED"));
    let own = OwnChanges { protocol: true, ..OwnChanges::default() };
    assert_eq!(run(&grew, own).as_deref(), Some("DELTA_PROTOCOL_CHANGED"));
}

#[test]
fn a_conflict_names_the_winner() {
    let mut winner = Winner { protocol: Some(protocol(&[])), ..Winner::default() };
    winner.summary.version = 7;
    winner.summary.operation = Some("UPGRADE PROTOCOL".into());
    let error = check(&protocol(&["appendOnly"]), &metadata(&[]), &winner, &OwnChanges::default()).unwrap_err();
    assert_eq!(error.context_value("version"), Some("7"));
    assert_eq!(error.context_value("operation"), Some("UPGRADE PROTOCOL"));
    assert!(error.message().contains("dropped the feature appendOnly"));
}

#[test]
fn two_changes_of_one_domain_are_a_conflict() {
    let mut winner = Winner::default();
    winner.summary.domains_changed = ["delta.clustering", "delta.rowTracking"].map(str::to_owned).into();
    let run = |domains: &[&str]| {
        let own = OwnChanges { domains: domains.iter().map(ToString::to_string).collect(), ..OwnChanges::default() };
        class(check(&protocol(&[]), &metadata(&[]), &winner, &own))
    };
    assert_eq!(run(&["delta.clustering"]).as_deref(), Some("DELTA_CONCURRENT_TRANSACTION"));
    assert_eq!((run(&["other"]), run(&[])), (None, None));
}

#[test]
fn a_change_of_the_metadata_rides_over_no_new_clustering_keys() {
    let mut winner = Winner::default();
    winner.summary.domains_changed = ["delta.clustering".to_owned()].into();
    let run = |winner: &Winner, own: OwnChanges| class(check(&protocol(&[]), &metadata(&[]), winner, &own));
    let own = || OwnChanges { metadata: true, ..OwnChanges::default() };
    assert_eq!(run(&winner, own()).as_deref(), Some("DELTA_METADATA_CHANGED"));
    let replacing = OwnChanges { files: FileUse::Removed, domains: vec!["delta.clustering".into()], ..own() };
    assert_eq!(run(&winner, replacing).as_deref(), Some("DELTA_METADATA_CHANGED"));
    assert_eq!(run(&winner, OwnChanges::default()), None);
    winner.summary.domains_changed = ["delta.rowTracking".to_owned()].into();
    assert_eq!(run(&winner, own()), None);
}
