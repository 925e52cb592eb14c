//! The numbers that a diagnosis needs beyond the files themselves.

use std::collections::BTreeMap;

use super::TalliedFiles;
use crate::layout::depth::Depth;
use crate::op::health::MaintenanceSummary;

/// A number of files and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CountAndBytes {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CountAndBytes {
    /// Counts a file.
    pub fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What the hint to the last checkpoint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointHint {
    /// There is none.
    #[default]
    Missing,
    /// It cannot be read.
    Damaged,
    /// It names a checkpoint that is not there.
    NamesMissing,
    /// It names a version that the log does not reach.
    BeyondLog,
    /// It names an older checkpoint than the newest.
    Older,
    /// It names the newest checkpoint.
    Current,
}

/// The version checksum beside a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Checksum {
    /// Files that it claims.
    pub files: u64,
    /// Bytes that it claims.
    pub bytes: u64,
}

/// The state of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct LogFacts {
    /// Files directly in the log's folder.
    pub files: CountAndBytes,
    /// Commits among them.
    pub commits: u64,
    /// Oldest commit that is still there.
    pub oldest_commit: Option<u64>,
    /// Newest complete checkpoint at or before the version.
    pub checkpoint_version: Option<u64>,
    /// Its bytes in the log's folder, sidecars not counted.
    pub checkpoint_bytes: u64,
    /// Commits after it.
    pub commits_since_checkpoint: u64,
    /// Their bytes.
    pub bytes_since_checkpoint: u64,
    /// Commits from one checkpoint to the next, as the table wants it.
    pub checkpoint_interval: u64,
    /// The hint; it is about the newest version whatever version is looked at.
    pub last_checkpoint_hint: CheckpointHint,
    /// Log files beyond the log's retention, no longer needed.
    pub expired: CountAndBytes,
    /// Retention of the log, milliseconds.
    pub retention_ms: i64,
    /// Checksum of the version, if one is there.
    pub checksum: Option<Checksum>,
    /// Newest version whose checkpoint is there, but is empty or could not be read.
    pub broken_checkpoint: Option<u64>,
    /// A commit without a byte.
    pub empty_commit: Option<u64>,
    /// Version of a checksum that is newer than everything else in the log.
    pub checksum_beyond: Option<u64>,
    /// The newest version in the log.
    pub latest: u64,
}

/// Files that left the table and that the log still names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct TombstoneFacts {
    /// All of them.
    pub all: CountAndBytes,
    /// Those beyond the retention of deleted files: a VACUUM may delete what is still stored of them.
    pub expired: CountAndBytes,
    /// Tombstones that do not say their size.
    pub without_size: u64,
    /// Retention of deleted files, milliseconds.
    pub retention_ms: i64,
}

/// Statistics by which readers skip files.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct StatisticsFacts {
    /// Files whose statistics were looked at.
    pub files_read: u64,
    /// True if that is every live file.
    pub complete: bool,
    /// Files among them without any statistics.
    pub files_without: u64,
    /// Files among them without a number of rows.
    pub files_without_rows: u64,
    /// Columns that should have statistics and lack them in some of these files: dotted logical name, files.
    pub columns_lacking: BTreeMap<String, u64>,
    /// Columns that could have bounds but get none, because they come after the indexed ones: dotted logical names.
    pub columns_not_indexed: Vec<String>,
    /// Columns that get statistics.
    pub columns_indexed: u64,
    /// Clustering columns that get no statistics.
    pub clustering_not_indexed: Vec<String>,
}

/// What a listing of the storage found.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct StorageFacts {
    /// Files below the table's root, without the log, hidden folders and tables of others.
    pub stored: CountAndBytes,
    /// Files that no version in the log refers to, live or removed.
    pub orphans: CountAndBytes,
    /// Files that a VACUUM may delete: not live, beyond the retention.
    pub reclaimable: CountAndBytes,
    /// Live data or vector files that are not there.
    pub missing_files: u64,
    /// Live data files whose size is not the log's.
    pub wrong_size_files: u64,
    /// Some of the paths of those.
    pub examples: Vec<String>,
    /// Live files outside the table's root, which were not looked for.
    pub outside_files: u64,
}

/// Snapshots, manifests and delete files of a table that keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct SnapshotFacts {
    /// Snapshots that can be read.
    pub snapshots: u64,
    /// Those among them that no branch and no tag keeps: too old, and more than must stay.
    pub expirable: u64,
    /// When the oldest was committed, milliseconds since the epoch.
    pub oldest_ms: Option<i64>,
    /// Branches and tags.
    pub references: u64,
    /// Manifests of the snapshot that was looked at, and their bytes.
    pub manifests: CountAndBytes,
    /// Size that writers merge manifests to, bytes.
    pub manifest_target_bytes: u64,
    /// Metadata files that the newest one names, itself counted.
    pub metadata_files: u64,
    /// True if writers delete old metadata files.
    pub metadata_files_are_deleted: bool,
    /// Delete files that name positions, and their bytes.
    pub position_delete_files: CountAndBytes,
    /// Delete files that name values, and their bytes.
    pub equality_delete_files: CountAndBytes,
    /// Rows in both.
    pub delete_records: u64,
    /// Data files that a delete file applies to.
    pub files_with_deletes: u64,
    /// Most delete files that apply to one data file.
    pub most_deletes_of_a_file: u64,
    /// Delete files that apply to no data file.
    pub dangling_delete_files: u64,
}

/// How much files overlap in a key that the table is clustered by.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KeyOverlap {
    /// The key, in the schema's spelling.
    pub column: String,
    /// Files looked at, all of the table.
    pub files: u64,
    /// Files to open for one value of the key.
    pub depth: Depth,
    /// What speaks against the key.
    pub advice: Vec<String>,
}

/// Everything that [`super::diagnose`] looks at beyond the table's metadata.
#[derive(Debug, Clone, Default)]
pub struct HealthFacts {
    /// The live files.
    pub files: TalliedFiles,
    /// The log.
    pub log: LogFacts,
    /// Tombstones.
    pub tombstones: Option<TombstoneFacts>,
    /// Statistics.
    pub statistics: StatisticsFacts,
    /// The overlap in each clustering key; empty if the table has none, or it was not looked at.
    pub layout: Vec<KeyOverlap>,
    /// The storage.
    pub storage: Option<StorageFacts>,
    /// Snapshots; `None` for a table that has a log instead.
    pub snapshots: Option<SnapshotFacts>,
    /// Last runs.
    pub maintenance: MaintenanceSummary,
    /// True if no command of ours changes a table of this format.
    pub read_only: bool,
    /// Why the table cannot be maintained: the reason, and the features that are at fault.
    pub blocked: Option<(String, Vec<String>)>,
    /// How the files were read.
    pub source: &'static str,
}
