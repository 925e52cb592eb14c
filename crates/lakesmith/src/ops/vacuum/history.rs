//! What the table's history tells of a vacuum: VACUUM START and VACUUM END.
//!
//! # Source
//! Delta Spark `VacuumCommandImpl.logVacuumStart`, `logVacuumEnd`, `shouldLogVacuum`.

use std::collections::BTreeMap;

use lakesmith_core::op::VacuumOptions;
use lakesmith_core::table::{OperationInfo, VersionEdit};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{CommitResult, DeltaTable};
use lakesmith_storage::{Location, Store, Survey};

use super::Done;
use crate::Session;
use crate::ops::json_text;

/// Storage on which Spark does not log vacuums: its commits there are not safe between clusters.
const SILENT_SCHEME: &str = "s3";

pub(super) struct History<'a> {
    pub session: &'a Session,
    pub store: &'a Store,
    pub root: &'a Location,
    pub options: &'a VacuumOptions,
    pub specified_ms: Option<i64>,
    pub table_ms: i64,
}

impl History<'_> {
    /// True if the retention asked for is longer than the time for which checkpoints remember removed files.
    pub(super) fn reaches_beyond_checkpoints(&self) -> bool {
        self.specified_ms.is_some_and(|specified_ms| specified_ms > self.table_ms)
    }

    fn logs(&self) -> bool {
        self.options.logging.unwrap_or(self.root.scheme() != SILENT_SCHEME)
    }

    /// Commits VACUUM START; its version.
    pub(super) fn start(&self, table: &DeltaTable, found: &Survey) -> Result<Option<u64>> {
        let mut parameters = vec![
            ("retentionCheckEnabled".to_owned(), self.options.retention_check.to_string()),
            ("defaultRetentionMillis".to_owned(), self.table_ms.to_string()),
        ];
        if let Some(ms) = self.specified_ms {
            parameters.push(("specifiedRetentionMillis".to_owned(), ms.to_string()));
        }
        let metrics = [("numFilesToDelete", found.candidates.len()), ("sizeOfDataToDelete", found.bytes)];
        self.commit(table, "VACUUM START", parameters, &metrics)
    }

    /// Commits VACUUM END; its version.
    pub(super) fn end(&self, newest: &DeltaTable, done: &Done, found: &Survey) -> Result<Option<u64>> {
        let status = if done.failed.is_empty() { "COMPLETED" } else { "FAILED" };
        let parameters = vec![("status".to_owned(), json_text(status))];
        let metrics = [("numDeletedFiles", done.files.len()), ("numVacuumedDirectories", found.folders + 1)];
        self.commit(newest, "VACUUM END", parameters, &metrics).map_err(|e| e.with("deleted", done.files.len()))
    }

    fn commit(
        &self,
        table: &DeltaTable,
        name: &str,
        parameters: Vec<(String, String)>,
        metrics: &[(&str, u64)],
    ) -> Result<Option<u64>> {
        if !self.logs() {
            return Ok(None);
        }
        let context = self.session.commit_context(Some(self.options.commit_timeout_ms))?;
        let metrics: BTreeMap<String, String> = metrics.iter().map(|(k, v)| ((*k).to_owned(), v.to_string())).collect();
        let edit = VersionEdit {
            operation: OperationInfo {
                name: name.to_owned(),
                parameters,
                user_metadata: self.options.user_metadata.clone(),
            },
            history_only: Some(metrics),
            ..VersionEdit::default()
        };
        let commit = lakesmith_delta::commit(self.store, self.root, table, &edit, None, &context);
        match self.session.runtime.block_on(commit) {
            CommitResult::Committed(committed) => Ok(Some(committed.version)),
            CommitResult::NothingLeft { .. } => Err(Error::internal("a commit for the history was dropped")),
            CommitResult::Failed { error, .. } => Err(error),
        }
    }
}
