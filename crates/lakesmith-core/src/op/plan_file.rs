//! Plans in files: what was planned is read by people, and carried out later as far as it still holds.
//!
//! One JSON object a line: `{"plan": …}`, then `{"file": …}` for each file, then `{"end": …}`, without which the file is torn.

use super::{Compat, CubeSizes, OrderBy, Report, VacuumMode};

/// Version of the format.
pub const PLAN_FORMAT: u32 = 1;

/// A line.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanLine {
    /// What the plan is about; the first line.
    Plan(PlanHeader),
    /// A file that is rewritten or deleted.
    File(PlanEntry),
    /// The last line.
    End {
        /// Number of files.
        files: u64,
    },
}

/// What a plan is about.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanHeader {
    /// Version of the format.
    pub format: u32,
    /// Canonical location of the table.
    pub table: String,
    /// Its identity.
    pub table_id: String,
    /// The version that was planned on.
    pub version: u64,
    /// Digest of its protocol and metadata.
    pub configuration: String,
    /// The operation with the options that decide about the plan.
    pub operation: PlannedOperation,
}

/// An operation that can be planned, with the options that decide about the plan.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PlannedOperation {
    /// OPTIMIZE
    Optimize {
        /// `--where`
        predicate: Option<String>,
        /// Bytes of the files to make.
        target_bytes: u64,
        /// Files below this many bytes are candidates.
        min_file_bytes: u64,
        /// Share of deleted rows from which on files are candidates.
        max_deleted_rows_ratio: f64,
        /// Whose habits.
        compat: Compat,
        /// Rewrite also what carries this run's target tag.
        force: bool,
        /// `--full`
        #[serde(default, skip_serializing_if = "is_false")]
        full: bool,
        /// The order that rows get, if one was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order_by: Option<OrderBy>,
        /// Sizes of cubes, on clustered tables.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cubes: Option<CubeSizes>,
        /// `--max-bytes`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_bytes: Option<u64>,
    },
    /// REORG … APPLY (PURGE)
    Reorg {
        /// `--where`
        predicate: Option<String>,
        /// Bytes of the files to make.
        target_bytes: u64,
    },
    /// VACUUM
    Vacuum {
        /// How candidates are found.
        mode: VacuumMode,
        /// `--retain`, milliseconds.
        retain_ms: Option<i64>,
        /// False: the table's own retention may be undercut.
        retention_check: bool,
        /// Nobody is writing.
        no_writers: bool,
        /// Whose habits.
        compat: Compat,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

impl PlannedOperation {
    /// The verb.
    pub fn name(&self) -> &'static str {
        match self {
            PlannedOperation::Optimize { .. } => "optimize",
            PlannedOperation::Reorg { .. } => "reorg",
            PlannedOperation::Vacuum { .. } => "vacuum",
        }
    }
}

/// A file of a plan.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// As in the log for a rewrite; on disk below the table for a deletion.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Unique id of the deletion vector of a file that is rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<String>,
    /// For a rewrite, the number of the group; a hint for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u64>,
}

/// Options of carrying out a plan from a file. What switches off a guard is not taken from the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// Stop after planning.
    pub dry_run: bool,
    /// The table that the plan must be about; `None`: the one that the file names.
    pub table: Option<String>,
    /// The plan may undercut the table's retention.
    pub no_retention_check: bool,
    /// Nobody is writing.
    pub no_writers: bool,
}

/// An entry of the file that is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NotApplied {
    /// As the file says it.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Report of carrying out a plan from a file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ApplyReport {
    /// The operation.
    pub operation: String,
    /// The version that the plan was made on.
    pub planned_version: u64,
    /// Files in the plan.
    pub planned_files: u64,
    /// Files in the plan that are not carried out.
    pub left_out: u64,
    /// The first of them.
    pub not_applied: Vec<NotApplied>,
    /// What was done.
    pub report: Box<Report>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_an_earlier_version_is_read() {
        let text = r#"{"optimize":{"predicate":null,"target_bytes":1,"min_file_bytes":2,"max_deleted_rows_ratio":0.05,"compat":"spark","force":false}}"#;
        let read: PlannedOperation = serde_json::from_str(text).unwrap();
        let PlannedOperation::Optimize { full: false, order_by: None, cubes: None, budget_bytes: None, .. } = &read
        else {
            panic!("{read:?}")
        };
        // What it says is written as it was, so that earlier versions read what they can carry out.
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
