use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

use super::*;

fn path() -> Location {
    Location::parse("/t/_delta_log/00000000000000000007.json").unwrap()
}

fn unknown() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        Just(Value::Null),
        Just(serde_json::from_str::<Value>("1234567890.12345678901234567890123456789").unwrap()),
        Just(serde_json::json!({"a": [1, 2.5, null, {"b": 18446744073709551615u64}]})),
    ];
    vec(("x[a-z]{1,5}", value), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn strings() -> impl Strategy<Value = StringMap> {
    btree_map(".{0,5}", of(".*"), 0..3)
}

fn vector() -> impl Strategy<Value = DeletionVectorDescriptor> {
    ("[uip]", ".{0,9}", of(any::<i32>()), any::<i32>(), any::<i64>(), unknown()).prop_map(
        |(storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality, unknown)| DeletionVectorDescriptor {
            storage_type,
            path_or_inline_dv,
            offset,
            size_in_bytes,
            cardinality,
            unknown,
        },
    )
}

fn add() -> impl Strategy<Value = Add> {
    let fields = (any::<i64>(), any::<bool>(), of(".*"), of(strings()), of(vector()), of(any::<i64>()), of("[a-z]+"));
    (".*", strings(), any::<i64>(), fields, unknown()).prop_map(|(path, partition_values, size, f, unknown)| Add {
        path,
        partition_values,
        size,
        modification_time: f.0,
        data_change: f.1,
        stats: f.2,
        tags: f.3,
        deletion_vector: f.4,
        base_row_id: f.5,
        default_row_commit_version: f.5,
        clustering_provider: f.6,
        unknown,
    })
}

fn remove() -> impl Strategy<Value = Remove> {
    (add(), of(any::<i64>()), of(any::<bool>()), any::<bool>()).prop_map(|(add, deletion_timestamp, extended, some)| {
        Remove {
            path: add.path,
            deletion_timestamp,
            data_change: add.data_change,
            extended_file_metadata: extended,
            partition_values: some.then_some(add.partition_values),
            size: some.then_some(add.size),
            tags: add.tags,
            deletion_vector: add.deletion_vector,
            base_row_id: add.base_row_id,
            default_row_commit_version: add.default_row_commit_version,
            stats: add.stats,
            unknown: add.unknown,
        }
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        add().prop_map(|a| Action::Add(Box::new(a))),
        remove().prop_map(|a| Action::Remove(Box::new(a))),
        (".*", ".*", any::<bool>(), unknown()).prop_map(|(domain, configuration, removed, unknown)| {
            Action::DomainMetadata(DomainMetadata { domain, configuration, removed, unknown })
        }),
        (".*", any::<i64>(), of(any::<i64>()), unknown()).prop_map(|(app_id, version, last_updated, unknown)| {
            Action::Transaction(SetTransaction { app_id, version, last_updated, unknown })
        }),
        (any::<u32>(), of(vec("[a-z]+", 0..3)), unknown()).prop_map(|(version, features, unknown)| {
            Action::Protocol(Protocol {
                min_reader_version: version,
                min_writer_version: version,
                reader_features: features.clone(),
                writer_features: features,
                unknown,
            })
        }),
        (of(any::<i64>()), of(".*"), of(unknown()), unknown()).prop_map(|(number, text, map, unknown)| {
            Action::CommitInfo(CommitInfo {
                in_commit_timestamp: number,
                timestamp: number,
                operation: text.clone(),
                operation_parameters: map.clone(),
                read_version: number,
                user_metadata: text,
                operation_metrics: map,
                unknown,
                ..CommitInfo::default()
            })
        }),
        (".*", btree_map(".{0,3}", ".*", 0..3), of(".*"), unknown()).prop_map(|(id, configuration, name, unknown)| {
            Action::Metadata(Metadata {
                id: id.clone(),
                name,
                description: None,
                format: Format { provider: "parquet".into(), options: configuration.clone(), unknown: unknown.clone() },
                schema_string: id,
                partition_columns: configuration.keys().cloned().collect(),
                configuration,
                created_time: Some(-1),
                unknown,
            })
        }),
        ("z[a-z]+", unknown()).prop_map(|(kind, value)| Action::Unknown(kind, Value::Object(value))),
    ]
}

proptest! {
    #[test]
    fn actions_survive_a_round_trip(actions in vec(action(), 0..5)) {
        let lines: Vec<String> = actions.iter().map(|a| a.to_line().unwrap()).collect();
        prop_assert!(lines.iter().all(|l| !l.contains('\n')));
        let read = parse_commit(lines.join("\n").as_bytes(), &path()).unwrap();
        prop_assert_eq!(read, actions);
    }
}

#[test]
fn fields_keep_their_order_and_unknown_numbers_their_digits() {
    for line in [
        r#"{"add":{"path":"a","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true,"stats":"{}","baseRowId":3,"later":123456789012345678901234567890.10,"deep":{"n":1.50}}}"#,
        r#"{"remove":{"path":"a","deletionTimestamp":1,"dataChange":false,"extendedFileMetadata":true,"partitionValues":{},"size":1}}"#,
        r#"{"commitInfo":{"timestamp":1,"operation":"OPTIMIZE","operationParameters":{"predicate":"[]","auto":false},"readVersion":0,"isolationLevel":"SnapshotIsolation","isBlindAppend":false,"engineInfo":"x","txnId":"y"}}"#,
        r#"{"newKind":{"a":1.0}}"#,
    ] {
        let read = parse_commit(line.as_bytes(), &path()).unwrap();
        assert_eq!(read[0].to_line().unwrap(), line);
    }
}

#[test]
fn empty_columns_and_empty_lines_are_no_actions() {
    let bytes = b"\n{\"txn\":null,\"add\":null,\"remove\":{\"path\":\"a\"},\"other\":null}\r\n\n";
    let read = parse_commit(bytes, &path()).unwrap();
    let [Action::Remove(remove)] = read.as_slice() else { panic!("{read:?}") };
    assert!(remove.data_change && remove.deletion_timestamp.is_none());
}

#[test]
fn a_damaged_line_is_named() {
    for bad in [r#"{"add":{"path":1}}"#, r#"{"add":"#, "[]", "{}", r#"{"txn":null}"#] {
        let text = format!("{{\"unknown\":1}}\n{bad}");
        let error = parse_commit(text.as_bytes(), &path()).unwrap_err();
        assert_eq!(error.kind(), lakesmith_core::ErrorKind::Corrupt, "{bad}");
        assert_eq!(error.context_value("line"), Some("2"), "{bad}");
        assert!(error.context_value("path").unwrap().ends_with("007.json"));
    }
    let two = br#"{"remove":{"path":"a"},"txn":{"appId":"a","version":1}}"#;
    assert!(parse_commit(two, &path()).unwrap_err().to_string().contains("more than one action"));
}

#[test]
fn provenance_of_any_shape_is_read_and_kept() {
    let line = r#"{"commitInfo":{"operation":"WRITE","txnId":"t","operationParameters":"mode=append","timestamp":"today","readVersion":1.5}}"#;
    let read = parse_commit(line.as_bytes(), &path()).unwrap();
    let [Action::CommitInfo(info)] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!((info.operation.as_deref(), info.txn_id.as_deref()), (Some("WRITE"), Some("t")));
    let (kept, original): (Value, Value) =
        (serde_json::from_str(&read[0].to_line().unwrap()).unwrap(), serde_json::from_str(line).unwrap());
    assert_eq!(kept, original);
}
