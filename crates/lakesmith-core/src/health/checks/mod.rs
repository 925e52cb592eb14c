//! The checks: each looks at one topic and says what it found, with numbers and the command that cures it.

mod deletes;
mod log;
mod partitions;
mod protocol;
mod sizes;
mod snapshots;
mod statistics;
mod storage;

use serde_json::{Map, Value, json};

use super::command::Cure;
use super::diagnose::PartitionSizes;
use super::facts::HealthFacts;
use crate::op::health::{DeleteSummary, Finding, Severity, SizeSummary};
use crate::table::TableState;
use crate::units::{format_bytes, format_count as counted};

/// What the checks look at.
pub(super) struct Subject<'a> {
    pub state: &'a TableState,
    pub facts: &'a HealthFacts,
    pub sizes: &'a SizeSummary,
    pub deletes: &'a DeleteSummary,
    pub partitions: &'a [PartitionSizes],
    pub cure: Cure,
    pub now_ms: i64,
}

impl Subject<'_> {
    fn files(&self) -> u64 {
        self.facts.files.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.facts.files.bytes()
    }

    fn is_partitioned(&self) -> bool {
        !self.state.partition_columns.is_empty()
    }
}

/// Every finding, in no order.
pub(super) fn all(subject: &Subject<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for check in [
        sizes::small_files,
        sizes::settled_small_files,
        sizes::oversize_files,
        partitions::over_partitioned,
        partitions::skewed,
        deletes::stored_deletes,
        log::broken_checkpoint,
        log::empty_commit,
        log::checksum_beyond,
        log::checkpoint,
        log::checkpoint_hint,
        log::expired_log_files,
        log::large_log,
        log::checksum,
        snapshots::expirable,
        snapshots::manifests,
        snapshots::delete_files,
        snapshots::dangling_delete_files,
        snapshots::metadata_files,
        storage::missing_files,
        storage::wrong_sizes,
        storage::reclaimable,
        storage::maintenance_overdue,
        statistics::missing_statistics,
        statistics::columns_without_statistics,
        statistics::unclustered,
        statistics::badly_ordered,
        protocol::blocked,
        protocol::schema_debt,
        protocol::short_retention,
    ] {
        found.extend(check(subject));
    }
    found
}

/// A finding without a command.
fn finding(id: &'static str, severity: Severity, points: f64, message: String, evidence: Value) -> Finding {
    let evidence = match evidence {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Finding { id, severity, message, evidence, command: None, points: points.clamp(0.0, 100.0).round() as u32 }
}

/// `1 file`, `2 files`.
fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", counted(number), if number == 1 { "" } else { "s" })
}

/// A limit that is a round number of decimal megabytes, as one; else in binary units.
fn threshold(bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    if bytes > 0 && bytes.is_multiple_of(MB) { format!("{} MB", counted(bytes / MB)) } else { format_bytes(bytes) }
}

/// A share as people write it.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A duration in its largest whole unit of days or hours.
fn days(ms: i64) -> String {
    const HOUR_MS: i64 = 3_600_000;
    match ms {
        ms if ms >= 48 * HOUR_MS => plural((ms / (24 * HOUR_MS)) as u64, "day"),
        ms => plural((ms / HOUR_MS).max(0) as u64, "hour"),
    }
}

fn null_or<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(json!(null), Into::into)
}
