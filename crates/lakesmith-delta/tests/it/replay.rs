//! The loaded files against a replay of the JSON commits that shares no code with it, and checkpoints of every shape.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::op::TimeTravel;
use lakesmith_delta::engine;
use serde_json::Value;

use crate::tables::{PROTOCOL, TestTable, add, golden_folder, metadata};

/// One live file: path, vector, size, rows, partition values, tags, row id.
type Row =
    (String, String, u64, Option<u64>, BTreeMap<String, Option<String>>, BTreeMap<String, Option<String>>, Option<i64>);

fn vector_id(action: &Value) -> String {
    let dv = &action["deletionVector"];
    if dv.is_null() {
        return String::new();
    }
    let name = format!("{}{}", dv["storageType"].as_str().unwrap(), dv["pathOrInlineDv"].as_str().unwrap());
    dv["offset"].as_i64().map_or(name.clone(), |offset| format!("{name}@{offset}"))
}

fn map(value: &Value) -> BTreeMap<String, Option<String>> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(k, v)| (k.clone(), v.as_str().filter(|t| !t.is_empty()).map(str::to_owned))).collect()
}

/// Live files after the commits up to `version`.
fn replay(table: &TestTable, version: u64) -> BTreeSet<Row> {
    let mut live: BTreeMap<(String, String), Value> = BTreeMap::new();
    for v in 0..=version {
        let text = std::fs::read_to_string(table.commit_path(v)).unwrap();
        let actions: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let key = |a: &Value| (a["path"].as_str().unwrap().to_owned(), vector_id(a));
        for action in &actions {
            if let Some(remove) = action.get("remove") {
                live.remove(&key(remove));
            }
        }
        for action in actions {
            if let Some(add) = action.get("add") {
                live.insert(key(add), add.clone());
            }
        }
    }
    live.into_iter()
        .map(|((path, vector), add)| {
            let stats: Option<Value> = add["stats"].as_str().map(|s| serde_json::from_str(s).unwrap());
            let rows = stats.and_then(|s| s["numRecords"].as_u64());
            let size = add["size"].as_u64().unwrap();
            (path, vector, size, rows, map(&add["partitionValues"]), map(&add["tags"]), add["baseRowId"].as_i64())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_every_golden_table_equals_a_replay_of_its_commits() {
    let mut versions = 0;
    for entry in std::fs::read_dir(golden_folder()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.file_type().unwrap().is_dir() || name == "unknown_reader_feature" {
            continue;
        }
        let table = TestTable::golden(&name);
        let mut version = 0;
        while table.commit_path(version).exists() {
            let loaded = table.try_load(TimeTravel::Version(version)).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
            let schema = &loaded.state.schema;
            let physical = |c: &String| schema.field(c).unwrap().physical.clone();
            let keys: Vec<String> = loaded.state.partition_columns.iter().map(physical).collect();
            let found: BTreeSet<Row> = loaded
                .state
                .files
                .iter()
                .map(|f| {
                    let values = keys.iter().cloned().zip(f.partition.raw.iter().cloned()).collect();
                    let vector = f.deletes.map_or(String::new(), |d| d.unique_id.clone());
                    (f.path.to_owned(), vector, f.size, f.rows, values, f.marks.tags.clone(), f.base_row_id)
                })
                .collect();
            assert_eq!(found, replay(&table, version), "{name} at version {version}");
            versions += 1;
            version += 1;
        }
    }
    assert!(versions > 80, "only {versions} versions were compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_with_statistics_as_columns_only_keeps_the_row_counts() {
    let properties = r#"{"delta.checkpoint.writeStatsAsJson":"false","delta.checkpoint.writeStatsAsStruct":"true"}"#;
    let first = format!("{PROTOCOL}\n{}\n{}", metadata("string", false, properties), add("a", None, 7));
    let table = TestTable::with_commits(&[&first, &add("b", None, 9)]);
    let engine = engine::open(&table.store(), &table.root()).unwrap();
    engine::blocking(move || {
        let snapshot = delta_kernel::Snapshot::builder_for(engine::KERNEL_ROOT).build(engine.as_ref()).unwrap();
        snapshot.checkpoint(engine.as_ref(), None).unwrap();
        Ok(())
    })
    .await
    .unwrap();
    std::fs::remove_file(table.commit_path(0)).unwrap();
    let loaded = table.load().await;
    assert_eq!(loaded.log.checkpoint_version, Some(1));
    let rows: BTreeMap<&str, Option<u64>> = loaded.state.files.iter().map(|f| (f.path, f.rows)).collect();
    assert_eq!(rows, BTreeMap::from([("a", Some(7)), ("b", Some(9))]));
}
