//! When a table was last optimised and vacuumed, from the newest commits.

use futures::StreamExt as _;
use lakesmith_core::op::health::{MaintenanceSummary, PastRun};
use lakesmith_storage::Store;
use serde_json::{Map, Value};

use crate::commit_info::read_commit_info;
use crate::log_files::CommitFile;

/// Commits read at once.
const READ_AHEAD: usize = 32;

/// Looks through commits, newest first.
#[derive(Debug)]
pub(crate) struct Search {
    now_ms: i64,
    limit: u64,
    found: MaintenanceSummary,
}

impl Search {
    /// `vacuumed_ms`: when the newest vacuum left its note beside the log, if it did.
    pub(crate) fn new(now_ms: i64, limit: u64, vacuumed_ms: Option<i64>) -> Self {
        let last_vacuum =
            vacuumed_ms.map(|time_ms| PastRun { version: None, time_ms, age_ms: now_ms.saturating_sub(time_ms) });
        Self { now_ms, limit, found: MaintenanceSummary { last_vacuum, ..MaintenanceSummary::default() } }
    }

    /// Looks at the next older commit.
    pub(crate) fn take(&mut self, commit: &CommitFile, info: Option<&Map<String, Value>>) {
        self.found.commits_read += 1;
        self.found.oldest_version_read = Some(commit.version);
        let text = |key: &str| info.and_then(|i| i.get(key)).and_then(Value::as_str);
        let own = info.and_then(|i| i.get("inCommitTimestamp")).and_then(Value::as_i64);
        let time_ms = own.unwrap_or(commit.time_ms);
        let run = PastRun { version: Some(commit.version), time_ms, age_ms: self.now_ms.saturating_sub(time_ms) };
        match text("operation") {
            Some("OPTIMIZE" | "REORG") if self.found.last_optimize.is_none() => self.found.last_optimize = Some(run),
            Some("VACUUM END") => {
                let status = info.and_then(|i| i.get("operationParameters")?.get("status")?.as_str());
                // The note beside the log is as new as the run, but does not say its version.
                if status.is_none_or(|s| s == "COMPLETED") && self.found.last_vacuum.is_none_or(|r| r.version.is_none())
                {
                    self.found.last_vacuum = Some(run);
                }
            }
            _ => {}
        }
    }

    fn wants_more(&self) -> bool {
        let known = self.found.last_optimize.is_some() && self.found.last_vacuum.is_some();
        !known && self.found.commits_read < self.limit
    }

    /// Reads older commits until both runs are found or the limit is reached. A commit that cannot be read ends it:
    /// whoever cleans the log may be at work.
    pub(crate) async fn finish(mut self, store: &Store, older_newest_first: Vec<CommitFile>) -> MaintenanceSummary {
        let mut infos = futures::stream::iter(older_newest_first)
            .map(|commit| async move { (read_commit_info(store, &commit).await, commit) })
            .buffered(READ_AHEAD);
        while self.wants_more() {
            match infos.next().await {
                Some((Ok(info), commit)) => self.take(&commit, info.as_ref()),
                Some((Err(_), _)) | None => break,
            }
        }
        self.found
    }
}
