//! The health check: what ails a table, how much, and the command that cures it.

use serde_json::{Map, Value};

use super::{FileSizes, TimeTravel};
use crate::error::{Error, Result};
pub use crate::health::{
    CheckpointHint, Checksum, CountAndBytes, KeyOverlap, LogFacts, SnapshotFacts, StatisticsFacts, StorageFacts,
    TombstoneFacts,
};

/// Options of the health check.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthOptions {
    /// Which version to look at.
    pub at: TimeTravel,
    /// List the storage too, and look at every file's statistics.
    pub deep: bool,
    /// The sizes that OPTIMIZE would be run with.
    pub sizes: FileSizes,
    /// Newest commits to look through for the last OPTIMIZE and VACUUM.
    pub history_commits: u64,
    /// Files of a clustered table up to which their overlap is judged without the deep look, too: it takes a second look at
    /// the log.
    pub overlap_files_max: u64,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self {
            at: TimeTravel::Latest,
            deep: false,
            sizes: FileSizes::default(),
            history_commits: 1_000,
            overlap_files_max: 100_000,
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs time or money on every read or write.
    Warning,
    /// Data is at risk, or the table is about to become unusable.
    Critical,
}

impl Severity {
    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }

    /// Reads a name in any case.
    ///
    /// # Errors
    /// Usage for another word.
    pub fn parse(text: &str) -> Result<Self> {
        [Self::Info, Self::Warning, Self::Critical]
            .into_iter()
            .find(|s| text.trim().eq_ignore_ascii_case(s.as_str()))
            .ok_or_else(|| Error::usage(format!("'{text}' is not a severity; write info, warning or critical")))
    }
}

/// Something that ails a table.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Finding {
    /// Stable name, such as `small-files`.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence for people.
    pub message: String,
    /// The numbers behind it.
    pub evidence: Map<String, Value>,
    /// The command that cures it, ready for a shell; null if no command does.
    pub command: Option<String>,
    /// What it takes off the score.
    pub points: u32,
}

/// Files whose size is at most `upto` and above the bin before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HistogramBin {
    /// Upper bound in bytes, inclusive; null for the last bin, which has none.
    pub upto: Option<u64>,
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Sizes over the whole table.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct SizeSummary {
    /// Target of OPTIMIZE, bytes.
    pub target_bytes: u64,
    /// Below this many bytes a file is small.
    pub small_below_bytes: u64,
    /// Small files.
    pub small_files: u64,
    /// Their bytes.
    pub small_bytes: u64,
    /// Share of small files, 0 to 1.
    pub small_ratio: f64,
    /// Above this many bytes a file is oversize.
    pub oversize_above_bytes: u64,
    /// Oversize files.
    pub oversize_files: u64,
    /// Share of oversize files, 0 to 1.
    pub oversize_ratio: f64,
    /// Smallest file, bytes.
    pub min_bytes: u64,
    /// Median, bytes.
    pub median_bytes: u64,
    /// Largest file, bytes.
    pub max_bytes: u64,
    /// Files that OPTIMIZE would replace.
    pub optimize_inputs: u64,
    /// Their bytes.
    pub optimize_input_bytes: u64,
    /// Files in the table after OPTIMIZE.
    pub files_after_optimize: u64,
    /// Files that only OPTIMIZE --force would replace: an earlier run packed them for the same target.
    pub settled_files: u64,
}

/// One partition among the worst.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PartitionHealth {
    /// Values by column name, in the order of the partition columns; null is NULL.
    pub values: Map<String, Value>,
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
    /// Share of small files, 0 to 1.
    pub small_ratio: f64,
    /// Share of oversize files, 0 to 1.
    pub oversize_ratio: f64,
    /// Files after OPTIMIZE.
    pub files_after_optimize: u64,
}

/// Rows that are deleted but still stored.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct DeleteSummary {
    /// Files with a deletion vector.
    pub files: u64,
    /// Deleted rows in them.
    pub rows: u64,
    /// Rows of those files, deleted ones included; null if the log does not say.
    pub rows_of_files: Option<u64>,
    /// Files whose share of deleted rows is above the ratio at which OPTIMIZE rewrites them, or not known.
    pub files_above_ratio: u64,
    /// That ratio.
    pub max_ratio: f64,
    /// Estimate of the bytes that the deleted rows take.
    pub bytes_estimate: u64,
}

/// A maintenance run of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PastRun {
    /// Version that it committed; null if only its time is known.
    pub version: Option<u64>,
    /// When, milliseconds since the epoch.
    pub time_ms: i64,
    /// How long ago, milliseconds.
    pub age_ms: i64,
}

/// When the table was last looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct MaintenanceSummary {
    /// The last OPTIMIZE or REORG.
    pub last_optimize: Option<PastRun>,
    /// The last VACUUM that was completed.
    pub last_vacuum: Option<PastRun>,
    /// Commits looked through.
    pub commits_read: u64,
    /// Oldest of them; what is not found is older. Null if none was read.
    pub oldest_version_read: Option<u64>,
}

/// The report of a health check.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HealthReport {
    /// Canonical location.
    pub table: String,
    /// The version looked at.
    pub version: u64,
    /// When it was committed, milliseconds since the epoch.
    pub committed_ms: i64,
    /// Live files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean, rounded down; 0 without files.
    pub avg_file_bytes: u64,
    /// Rows that a reader sees; null if the log does not say.
    pub rows: Option<u64>,
    /// Distinct partitions; 0 if the table has no partition columns.
    pub partitions: u64,
    /// 0 worst to 100: what the findings' points leave.
    pub score: u32,
    /// Files by size.
    pub histogram: Vec<HistogramBin>,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// Names of the partition columns.
    pub partition_columns: Vec<String>,
    /// Names of the clustering columns.
    pub clustering_columns: Vec<String>,
    /// Sizes.
    pub sizes: SizeSummary,
    /// The partitions that OPTIMIZE would relieve most.
    pub worst_partitions: Vec<PartitionHealth>,
    /// Deleted rows.
    pub deletes: DeleteSummary,
    /// The log and its checkpoint.
    pub log: LogFacts,
    /// Snapshots, manifests and delete files, of a table that keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotFacts>,
    /// Files that left the table and that the log still names; null if they could not be read.
    pub tombstones: Option<TombstoneFacts>,
    /// Statistics for skipping files.
    pub statistics: StatisticsFacts,
    /// The overlap of files in each clustering key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<KeyOverlap>,
    /// What the storage holds; null without the deep look.
    pub storage: Option<StorageFacts>,
    /// Last runs.
    pub maintenance: MaintenanceSummary,
    /// Table features in force.
    pub features: Vec<String>,
    /// How the files were read: `checkpoint` by the direct reader, `kernel` by the general one, `manifests`.
    pub source: &'static str,
}

impl HealthReport {
    /// The score and the findings in one line.
    pub fn summary(&self) -> String {
        let names: Vec<String> = self.findings.iter().map(|f| format!("{} ({})", f.id, f.severity.as_str())).collect();
        let findings = if names.is_empty() { "nothing to complain about".to_owned() } else { names.join(", ") };
        format!("health {} of 100: {findings}", self.score)
    }

    /// The worst severity found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }
}
