//! Tables for the tests: private copies of the golden ones, and logs written by hand.

use std::path::{Path, PathBuf};

use lakesmith_core::op::TimeTravel;
use lakesmith_core::{Error, Result};
use lakesmith_delta::{DeltaTable, Needs, load};
use lakesmith_storage::{Location, Store, StoreOptions};

pub(crate) const ALL: Needs = Needs { files: true, stats: true };

/// A table in a folder of its own that vanishes with it.
pub(crate) struct TestTable {
    folder: tempfile::TempDir,
    name: String,
}

impl TestTable {
    /// A copy of a golden table.
    pub(crate) fn golden(name: &str) -> Self {
        let table = Self { folder: tempfile::tempdir().unwrap(), name: name.to_owned() };
        copy(&golden_folder().join(name), &table.path());
        table
    }

    /// A table whose commits hold these lines.
    pub(crate) fn with_commits(commits: &[&str]) -> Self {
        let table = Self { folder: tempfile::tempdir().unwrap(), name: "t".into() };
        std::fs::create_dir_all(table.path().join("_delta_log")).unwrap();
        for (version, lines) in commits.iter().enumerate() {
            std::fs::write(table.commit_path(version as u64), lines).unwrap();
        }
        table
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(crate) fn commit_path(&self, version: u64) -> PathBuf {
        self.path().join(format!("_delta_log/{version:020}.json"))
    }

    pub(crate) fn root(&self) -> Location {
        Location::from_local_path(&self.path()).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.root(), &StoreOptions::default()).unwrap()
    }

    pub(crate) async fn load(&self) -> DeltaTable {
        load(&self.store(), &self.root(), TimeTravel::Latest, ALL).await.unwrap()
    }

    pub(crate) async fn try_load(&self, at: TimeTravel) -> Result<DeltaTable> {
        load(&self.store(), &self.root(), at, ALL).await
    }

    pub(crate) async fn error(&self) -> Error {
        self.try_load(TimeTravel::Latest).await.unwrap_err()
    }

    /// Sets a commit file's modification time, seconds since the epoch.
    pub(crate) fn touch(&self, version: u64, seconds: u64) {
        let file = std::fs::File::options().append(true).open(self.commit_path(version)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
}

/// Folder of the golden tables; `LAKESMITH_FIXTURES` may name another one.
pub(crate) fn golden_folder() -> PathBuf {
    match std::env::var_os("LAKESMITH_FIXTURES") {
        Some(folder) => PathBuf::from(folder).join("delta"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta"),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            // The bytes alone: a golden table may be read-only, and its copy must not be.
            std::fs::write(&target, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

pub(crate) const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;

/// A `metaData` line for columns `id` and `p` (the type given), with these properties as JSON.
pub(crate) fn metadata(partition_type: &str, partitioned: bool, properties: &str) -> String {
    let schema = format!(
        r#"{{"type":"struct","fields":[{{"name":"id","type":"long","nullable":true,"metadata":{{}}}},{{"name":"p","type":"{partition_type}","nullable":true,"metadata":{{}}}}]}}"#
    );
    serde_json::json!({"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
        "partitionColumns": if partitioned { vec!["p"] } else { vec![] },
        "configuration": serde_json::from_str::<serde_json::Value>(properties).unwrap(), "createdTime": 1}})
    .to_string()
}

/// An `add` line with one partition value.
pub(crate) fn add(path: &str, p: Option<&str>, rows: u64) -> String {
    let partition = p.map_or_else(|| serde_json::json!({}), |p| serde_json::json!({"p": p}));
    serde_json::json!({"add": {"path": path, "partitionValues": partition, "size": 10, "modificationTime": 5,
        "dataChange": true, "stats": format!("{{\"numRecords\":{rows}}}")}})
    .to_string()
}
