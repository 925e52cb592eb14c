//! A table in memory whose log is written by hand, and the means to commit to it and to see what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{
    FileId, FileMarks, FileStats, GroupEdit, NewFile, OperationInfo, PartitionTuple, VersionEdit,
};
use lakesmith_delta::{CommitContext, CommitResult, Committed, DeltaTable, NewConfiguration, load};
use lakesmith_storage::{Cancel, FixedWorld, Location, PutOutcome, Store};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde_json::{Value, json};

use crate::tables::ALL;

pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// The table.
pub(crate) struct Bench {
    pub root: Location,
    pub objects: Arc<dyn ObjectStore>,
    pub store: Store,
    pub world: FixedWorld,
    pub cancel: Cancel,
}

impl Bench {
    /// A table whose first commit holds these actions.
    pub(crate) async fn new(actions: &[Value]) -> Self {
        let bench = Self::over(InMemory::new());
        bench.put(0, actions).await;
        bench
    }

    /// A table over objects that are there.
    pub(crate) fn over(objects: InMemory) -> Self {
        let root = Location::parse("memory:///t").unwrap();
        let objects: Arc<dyn ObjectStore> = Arc::new(objects);
        let store = Store::from_object_store(Arc::clone(&objects), &root);
        Self { root, objects, store, world: FixedWorld::new(NOW_MS), cancel: Cancel::default() }
    }

    /// A plain table of `a` to `f`, 10 rows each.
    pub(crate) async fn plain() -> Self {
        Self::plain_over(InMemory::new()).await
    }

    /// The same over these objects.
    pub(crate) async fn plain_over(objects: InMemory) -> Self {
        let mut actions = vec![protocol(&[]), metadata(&[])];
        actions.extend(["a", "b", "c", "d", "e", "f"].map(|path| add(path, 10)));
        let bench = Self::over(objects);
        bench.put(0, &actions).await;
        bench
    }

    pub(crate) fn commit_location(&self, version: u64) -> Location {
        self.root.join(&format!("_delta_log/{version:020}.json"))
    }

    /// Another writer's commit.
    pub(crate) async fn put(&self, version: u64, actions: &[Value]) {
        let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
        let put = self.store.put_if_absent(&self.commit_location(version), lines.join("\n").into()).await;
        assert_eq!(put.unwrap(), PutOutcome::Created);
    }

    pub(crate) async fn load(&self) -> DeltaTable {
        load(&self.store, &self.root, TimeTravel::Latest, ALL).await.unwrap()
    }

    pub(crate) async fn commit(&self, base: &DeltaTable, edit: &VersionEdit) -> CommitResult {
        commit(&self.store, &self.root, base, edit, None, &self.world, &self.cancel).await
    }

    /// A commit that must stand.
    pub(crate) async fn committed(&self, base: &DeltaTable, edit: &VersionEdit) -> Committed {
        match self.commit(base, edit).await {
            CommitResult::Committed(committed) => committed,
            other => panic!("{other:?}"),
        }
    }

    /// Commits new properties.
    pub(crate) async fn configure(
        &self,
        base: &DeltaTable,
        new: NewConfiguration,
    ) -> lakesmith_core::Result<Committed> {
        let edit = VersionEdit {
            operation: OperationInfo { name: "SET TBLPROPERTIES".into(), parameters: Vec::new(), user_metadata: None },
            ..VersionEdit::default()
        };
        match commit(&self.store, &self.root, base, &edit, Some(new), &self.world, &self.cancel).await {
            CommitResult::Committed(committed) => Ok(committed),
            CommitResult::Failed { error, .. } => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// The actions of a commit; `None` if there is none.
    pub(crate) async fn actions(&self, version: u64) -> Option<Vec<Value>> {
        let bytes = self.store.get(&self.commit_location(version)).await.ok()?;
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Live files by path, from the JSON commits alone. Every remove must hit a live file.
    pub(crate) async fn live(&self) -> BTreeMap<String, Value> {
        let mut live: BTreeMap<String, Value> = BTreeMap::new();
        let mut version = 0;
        while let Some(actions) = self.actions(version).await {
            for remove in actions.iter().filter_map(|a| a.get("remove")) {
                let path = remove["path"].as_str().unwrap();
                let gone = live.remove(path).unwrap_or_else(|| panic!("version {version} removes {path} again"));
                assert_eq!(gone["deletionVector"], remove["deletionVector"], "{path} at version {version}");
            }
            for add in actions.iter().filter_map(|a| a.get("add")) {
                assert!(
                    live.insert(add["path"].as_str().unwrap().into(), add.clone()).is_none(),
                    "{add} is there twice"
                );
            }
            version += 1;
        }
        live
    }

    pub(crate) async fn paths(&self) -> Vec<String> {
        self.live().await.into_keys().collect()
    }
}

pub(crate) async fn commit(
    store: &Store,
    root: &Location,
    base: &DeltaTable,
    edit: &VersionEdit,
    configuration: Option<NewConfiguration>,
    world: &FixedWorld,
    cancel: &Cancel,
) -> CommitResult {
    let context = CommitContext { world, cancel, engine_info: "Lakesmith/test".into(), timeout_ms: 20_000 };
    lakesmith_delta::commit(store, root, base, edit, configuration, &context).await
}

/// One group a pair: inputs by path, and the output's path with 10 rows for each input.
pub(crate) fn edit(table: &DeltaTable, groups: &[(&[&str], &str)]) -> VersionEdit {
    let id = |path: &&str| -> FileId { table.state.files.iter().find(|f| f.path == *path).unwrap().id };
    let group = |(inputs, output): &(&[&str], &str)| GroupEdit {
        removed: inputs.iter().map(id).collect(),
        added: vec![new_file(output, 10 * inputs.len() as u64)],
        row_map: vec![],
    };
    VersionEdit { groups: groups.iter().map(group).collect(), operation: optimize(), ..VersionEdit::default() }
}

pub(crate) fn new_file(path: &str, rows: u64) -> NewFile {
    NewFile {
        path: path.into(),
        size: rows * 7,
        modified_ms: 1,
        partition: PartitionTuple::default(),
        stats: FileStats { rows, leaves: vec![] },
        marks: FileMarks::default(),
    }
}

pub(crate) fn optimize() -> OperationInfo {
    OperationInfo {
        name: "OPTIMIZE".into(),
        parameters: vec![("predicate".into(), r#""[]""#.into()), ("auto".into(), "false".into())],
        user_metadata: None,
    }
}

pub(crate) fn protocol(writer_features: &[&str]) -> Value {
    if writer_features.is_empty() {
        return json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    }
    let readers = ["columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "variantType"];
    let reader_features: Vec<&str> = writer_features.iter().copied().filter(|f| readers.contains(f)).collect();
    if reader_features.is_empty() {
        return json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": writer_features}});
    }
    json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader_features,
        "writerFeatures": writer_features}})
}

pub(crate) fn metadata(properties: &[(&str, &str)]) -> Value {
    let line =
        crate::tables::metadata("string", false, &json!(BTreeMap::from_iter(properties.iter().copied())).to_string());
    serde_json::from_str(&line).unwrap()
}

pub(crate) fn add(path: &str, rows: u64) -> Value {
    serde_json::from_str(&crate::tables::add(path, None, rows)).unwrap()
}

pub(crate) fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": true}})
}

/// A deletion vector as it stands in the log.
pub(crate) fn vector(offset: i32, cardinality: u64) -> Value {
    json!({"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": offset, "sizeInBytes": 40, "cardinality": cardinality})
}

pub(crate) fn with(mut action: Value, kind: &str, fields: &[(&str, Value)]) -> Value {
    for (key, value) in fields {
        action[kind][*key] = value.clone();
    }
    action
}
