//! Golden tables in memory, at the place for which they were written: their metadata holds absolute paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lakesmith_core::Result;
use lakesmith_iceberg::{At, IcebergTable, Needs};
use lakesmith_storage::{Location, Store};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::Value;

const WRITTEN_AT: &str = "/tmp/lakesmith-fixtures/iceberg";

pub(crate) const ALL: [&str; 13] = [
    "branch_tag",
    "eq_deletes",
    "expired",
    "many_manifests",
    "nested",
    "part_more",
    "part_transforms",
    "pos_deletes",
    "sort_order",
    "unpart_40files",
    "v1_table",
    "v3_dv",
    "with_orphans",
];

/// A copy of a golden table that tests may change.
pub(crate) struct Fixture {
    pub(crate) root: Location,
    pub(crate) store: Store,
    pub(crate) objects: Arc<InMemory>,
    pub(crate) expected: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iceberg")
}

impl Fixture {
    pub(crate) async fn open(name: &str) -> Self {
        let root = Location::parse(&format!("{WRITTEN_AT}/{name}")).unwrap();
        let objects = Arc::new(InMemory::new());
        copy(&folder().join(name), root.key(), &objects).await;
        let expected = std::fs::read(folder().join(format!("{name}.expected.json"))).unwrap();
        let expected = serde_json::from_slice(&expected).unwrap();
        let store = Store::from_object_store(Arc::clone(&objects) as Arc<dyn ObjectStore>, &root);
        Self { root, store, objects, expected }
    }

    pub(crate) async fn load(&self, at: At) -> Result<IcebergTable> {
        lakesmith_iceberg::load(&self.store, &self.root, at, Needs { files: true }).await
    }

    pub(crate) async fn put(&self, name: &str, bytes: impl Into<bytes::Bytes>) {
        let key = Key::parse(self.root.join(name).key()).unwrap();
        self.objects.put(&key, bytes.into().into()).await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Vec<u8> {
        self.store.get(&self.root.join(name)).await.unwrap().to_vec()
    }

    pub(crate) async fn delete(&self, name: &str) {
        let key = Key::parse(self.root.join(name).key()).unwrap();
        self.objects.delete(&key).await.unwrap();
    }

    /// Writes the newest metadata again, changed, as the version after it.
    pub(crate) async fn change_metadata(&self, change: impl FnOnce(&mut Value)) {
        let name = self.expected["current_metadata"].as_str().unwrap();
        let mut metadata: Value = serde_json::from_slice(&self.get(&format!("metadata/{name}")).await).unwrap();
        change(&mut metadata);
        self.put(&format!("metadata/{name}"), metadata.to_string()).await;
    }
}

async fn copy(from: &Path, to: &str, objects: &InMemory) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let key = format!("{to}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            Box::pin(copy(&path, &key, objects)).await;
        } else {
            let bytes = std::fs::read(&path).unwrap();
            objects.put(&Key::parse(&key).unwrap(), bytes.into()).await.unwrap();
        }
    }
}
