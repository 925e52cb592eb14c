//! One snapshot of a table, as it was loaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use lakesmith_core::table::{DeleteFileId, FileId, Scalar, TableState};
use lakesmith_storage::Location;

use crate::manifest::StoredFormat;
use crate::manifest_list::ManifestFile;
use crate::metadata::{Snapshot, TableMetadata};
use crate::path::Paths;
use crate::transform::Transform;
use crate::types::SchemaVersion;

/// One snapshot of an Iceberg table.
#[derive(Debug, Clone)]
pub struct IcebergTable {
    /// What planners see.
    pub state: Arc<TableState>,
    /// What the format alone knows.
    pub log: LogState,
}

/// The format's own facts at one snapshot.
#[derive(Debug, Clone)]
pub struct LogState {
    /// The metadata file that was read.
    pub metadata: Arc<TableMetadata>,
    /// Where that is.
    pub metadata_location: Location,
    /// The table's folder.
    pub root: Location,
    /// The snapshot; `None` for a table without one.
    pub snapshot_id: Option<i64>,
    /// The schema of [`TableState::schema`].
    pub schema_id: i32,
    /// Manifests of the snapshot in their order, if files were asked for.
    pub manifests: Arc<Vec<ManifestFile>>,
    /// By row of the file table.
    pub(crate) facts: Arc<Vec<FileFacts>>,
    /// Delete files that are encrypted.
    pub(crate) encrypted_deletes: Arc<BTreeSet<DeleteFileId>>,
    /// Deletion vectors that are encrypted, by their unique ids.
    pub(crate) encrypted_vectors: Arc<BTreeSet<String>>,
}

/// What the manifests say of a data file beside what planners see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Which deletes apply.
    pub sequence_number: i64,
    /// The snapshot that added it.
    pub snapshot_id: Option<i64>,
    /// Its partition spec.
    pub spec_id: i32,
    /// Order of its rows.
    pub sort_order_id: Option<i32>,
    /// How it is encoded.
    pub format: StoredFormat,
    /// True if it is encrypted.
    pub encrypted: bool,
}

impl IcebergTable {
    /// The snapshot; `None` for a table without one.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.log.metadata.snapshot(self.log.snapshot_id?)
    }

    /// The schema of the state.
    pub fn schema(&self) -> &SchemaVersion {
        self.log.metadata.schema(self.log.schema_id).unwrap_or_else(|| self.log.metadata.current_schema())
    }

    /// What the manifests say of a data file beside what planners see.
    ///
    /// # Panics
    /// If the id is not of this table.
    pub fn facts(&self, file: FileId) -> &FileFacts {
        &self.log.facts[file.0 as usize]
    }

    /// Values of the partition fields of a data file, in the order of its spec.
    ///
    /// # Panics
    /// If the id is not of this table.
    pub fn partition_values(&self, file: FileId) -> &[Scalar] {
        // The first value tells the spec.
        self.state.files.get(file).partition.values.get(1..).unwrap_or_default()
    }

    /// Columns that have one value in all rows of a data file, by id: those that the file is partitioned by. A file that
    /// lacks such a column, as files do that were taken over from Hive, has this value in it.
    ///
    /// # Panics
    /// If the id is not of this table.
    /// # Source
    /// Iceberg spec, "Column Projection".
    pub fn constants(&self, file: FileId) -> Vec<(i32, Scalar)> {
        let Some(spec) = self.log.metadata.spec(self.facts(file).spec_id) else { return Vec::new() };
        let fields = spec.fields.iter().zip(self.partition_values(file));
        let identity = fields.filter(|(field, _)| field.transform == Transform::Identity);
        identity.map(|(field, value)| (field.source_id, value.clone())).collect()
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::new(&self.log.root, &self.log.metadata.location)
    }
}
