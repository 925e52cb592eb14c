//! Loads one snapshot of a table: metadata, manifest list, manifests, file table.

use std::sync::Arc;

use lakesmith_core::table::TableState;
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

use crate::assemble::{self, SnapshotFiles};
use crate::manifest_list;
use crate::metadata::{RefKind, Snapshot, TableMetadata};
use crate::metadata_file::{self, MetadataFile};
use crate::path::{Paths, absolute};
use crate::snapshot_files::ManifestReader;
use crate::table::{IcebergTable, LogState};

/// Which snapshot of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum At {
    /// The newest of the branch `main`.
    #[default]
    Latest,
    /// That snapshot.
    Snapshot(i64),
    /// The one that was current at this time, milliseconds since the epoch.
    Timestamp(i64),
    /// The one that a branch or tag names.
    Reference(String),
}

/// Which parts of a table are to be loaded.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The live files and what deletes rows of them.
    pub files: bool,
}

/// Loads the table at `root` that no catalog names.
///
/// # Errors
/// `NotFound`: no table there, no such snapshot, or a file of it is gone. `Unsupported`: a newer format, or an encrypted
/// table. `Corrupt`: metadata that contradicts itself, with the path. `Unavailable`: the storage.
pub async fn load(store: &Store, root: &Location, at: At, needs: Needs) -> Result<IcebergTable> {
    let file = metadata_file::newest(store, root).await?;
    load_file(store, root.clone(), file, at, needs).await
}

/// Loads the table whose metadata file a catalog names.
///
/// # Errors
/// As [`load`].
pub async fn load_metadata_at(
    store: &Store,
    metadata_location: &Location,
    at: At,
    needs: Needs,
) -> Result<IcebergTable> {
    let file = metadata_file::read(store, metadata_location.clone()).await?;
    let stated = &file.metadata.location;
    let root = if Location::is_absolute(stated) {
        absolute(metadata_location, stated).map_err(|e| e.with("path", metadata_location))?
    } else {
        let folder = metadata_location.parent().and_then(|metadata| metadata.parent());
        folder.ok_or_else(|| {
            Error::corrupt("the metadata file is in no table's folder").with("path", metadata_location)
        })?
    };
    load_file(store, root, file, at, needs).await
}

async fn load_file(store: &Store, root: Location, file: MetadataFile, at: At, needs: Needs) -> Result<IcebergTable> {
    let MetadataFile { location, metadata } = file;
    let metadata = Arc::new(metadata);
    let chosen = choose(&metadata, &at).map_err(|e| e.with("path", &root))?;
    let paths = Paths::new(&root, &metadata.location);
    let (manifests, files) = match chosen.snapshot {
        Some(snapshot) if needs.files => {
            let manifests = manifest_list::manifests(store, &paths, snapshot).await?;
            let reader = ManifestReader { store: store.clone(), paths, metadata: Arc::clone(&metadata) };
            let files = assemble::read(&reader, &manifests).await;
            let files = files.map_err(|e| e.with("snapshot", snapshot.snapshot_id))?;
            (manifests, files)
        }
        _ => Default::default(),
    };
    Ok(into_table(root, location, &metadata, &chosen, Arc::new(manifests), files))
}

/// A snapshot, and the schema that goes with it.
struct Chosen<'a> {
    snapshot: Option<&'a Snapshot>,
    schema_id: i32,
}

/// # Errors
/// `NotFound` in the words of Iceberg.
fn choose<'a>(metadata: &'a TableMetadata, at: &At) -> Result<Chosen<'a>> {
    let unknown = |id: i64| Error::not_found(format!("cannot find snapshot with ID {id}")).with("snapshot", id);
    let by_id = |id: i64| metadata.snapshot(id).ok_or_else(|| unknown(id));
    let current = metadata.current_schema_id;
    // A snapshot is seen as it was, a branch as it is.
    let as_it_was = |snapshot: &'a Snapshot| {
        let known = snapshot.schema_id.filter(|id| metadata.schema(*id).is_some());
        Chosen { snapshot: Some(snapshot), schema_id: known.unwrap_or(current) }
    };
    match at {
        At::Latest => {
            let snapshot = metadata.current_snapshot_id.map(by_id).transpose()?;
            Ok(Chosen { snapshot, schema_id: current })
        }
        At::Snapshot(id) => by_id(*id).map(as_it_was),
        At::Timestamp(timestamp_ms) => {
            let log = metadata.snapshot_log.iter().filter(|entry| entry.timestamp_ms <= *timestamp_ms);
            // Several entries of one millisecond: the last one was current at its end.
            let entry = log.max_by_key(|entry| entry.timestamp_ms).ok_or_else(|| {
                let time = crate::value_text::instant_text(*timestamp_ms);
                Error::not_found(format!("cannot find a snapshot older than {time}")).with("timestamp", timestamp_ms)
            })?;
            by_id(entry.snapshot_id).map(as_it_was)
        }
        At::Reference(name) => {
            let reference = metadata.refs.get(name).ok_or_else(|| {
                let known: Vec<&str> = metadata.refs.keys().map(String::as_str).collect();
                Error::not_found(format!("cannot find matching snapshot ID or reference name for version {name}"))
                    .with("reference", name)
                    .with("known", known.join(", "))
            })?;
            let snapshot = by_id(reference.snapshot_id)?;
            match reference.kind {
                RefKind::Branch => Ok(Chosen { snapshot: Some(snapshot), schema_id: current }),
                RefKind::Tag => Ok(as_it_was(snapshot)),
            }
        }
    }
}

fn into_table(
    root: Location,
    metadata_location: Location,
    metadata: &Arc<TableMetadata>,
    chosen: &Chosen<'_>,
    manifests: Arc<Vec<crate::ManifestFile>>,
    files: SnapshotFiles,
) -> IcebergTable {
    let version = u32::from(metadata.format_version);
    let schema = metadata.schema(chosen.schema_id).unwrap_or_else(|| metadata.current_schema());
    let state = TableState {
        location: root.to_string(),
        version: chosen.snapshot.map_or(0, |snapshot| snapshot.snapshot_id as u64),
        timestamp_ms: chosen.snapshot.map_or(metadata.last_updated_ms, |snapshot| snapshot.timestamp_ms),
        id: metadata.table_uuid.clone().unwrap_or_default(),
        name: None,
        description: metadata.properties.get("comment").cloned(),
        created_ms: None,
        schema: schema.schema(),
        partition_columns: Vec::new(),
        clustering_columns: None,
        properties: metadata.properties.clone(),
        features: vec![format!("iceberg-v{version}")],
        min_reader_version: version,
        min_writer_version: version,
        files: files.files,
    };
    IcebergTable {
        state: Arc::new(state),
        log: LogState {
            metadata: Arc::clone(metadata),
            metadata_location,
            root,
            snapshot_id: chosen.snapshot.map(|snapshot| snapshot.snapshot_id),
            schema_id: chosen.schema_id,
            manifests,
            facts: Arc::new(files.facts),
            encrypted_deletes: Arc::new(files.encrypted_deletes),
            encrypted_vectors: Arc::new(files.encrypted_vectors),
        },
    }
}
