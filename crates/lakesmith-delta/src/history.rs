//! DESCRIBE HISTORY, from the commits that the log still holds.
//!
//! # Source
//! Delta Spark `DescribeDeltaHistoryCommand`, `DeltaHistoryManager.getHistory`.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::op::{HistoryEntry, HistoryOptions, HistoryReport, TimeTravel};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};
use serde_json::{Map, Value};

use crate::commit_info::{CommitClock, contains, find, read_commit, read_commit_info};
use crate::load::{Needs, load};
use crate::log_files::{CommitFile, LogFiles, iso};
use crate::readable::readable;

/// Commits read at once.
const READ_AHEAD: usize = 16;

/// The table's history, newest first.
///
/// # Errors
/// `NotFound` with `DELTA_TABLE_ONLY_OPERATION` if there is no table; otherwise as [`load`].
pub async fn history(
    store: &Store,
    root: &Location,
    options: HistoryOptions,
    cancel: &Cancel,
) -> Result<HistoryReport> {
    let latest = load(store, root, TimeTravel::Latest, Needs::default()).await.map_err(|e| not_a_table(e, root))?;
    let clock = CommitClock::of(&latest);
    let files = LogFiles::list(store, root).await?;
    let limit = options.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    // Commits that land after the load are left out: the clock is that of the version loaded.
    let newest_first = files.commits.iter().rev().filter(|c| c.version <= latest.state.version).cloned();
    let mut entries: Vec<HistoryEntry> = futures::stream::iter(newest_first)
        .map(|commit| entry(store, commit, clock, options.data_changes))
        .buffered(READ_AHEAD)
        .try_filter_map(|entry| std::future::ready(Ok(entry)))
        .take(limit)
        .try_collect()
        .await?;
    if let (true, Some(oldest)) = (options.readable, entries.last()) {
        let whole = readable(store, root, &files, oldest.version, latest.state.version, cancel).await?;
        for entry in &mut entries {
            entry.missing_files = whole.missing_files(entry.version);
            entry.readable = Some(entry.missing_files == Some(0));
        }
    }
    Ok(HistoryReport(entries))
}

fn not_a_table(error: Error, root: &Location) -> Error {
    if error.class_name() != "DELTA_MISSING_DELTA_TABLE" {
        return error;
    }
    Error::new(
        ErrorKind::NotFound,
        format!("`{root}` is not a Delta table. DESCRIBE HISTORY is only supported for Delta tables."),
    )
    .class("DELTA_TABLE_ONLY_OPERATION")
    .with("path", root)
}

async fn entry(
    store: &Store,
    commit: CommitFile,
    clock: CommitClock,
    data_changes: bool,
) -> Result<Option<HistoryEntry>> {
    let info = if data_changes {
        let bytes = read_commit(store, &commit).await?;
        if !changes_data(&bytes) {
            return Ok(None);
        }
        find(&bytes).map_err(|e| e.with("path", &commit.info.location).with("version", commit.version))?
    } else {
        read_commit_info(store, &commit).await?
    };
    Ok(Some(to_entry(&commit, clock, info.unwrap_or_default())))
}

/// True if a file entered or left with its rows.
fn changes_data(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Action {
        data_change: Option<bool>,
    }
    #[derive(serde::Deserialize)]
    struct Line {
        add: Option<Action>,
        remove: Option<Action>,
    }
    bytes.split(|b| *b == b'\n').filter(|line| contains(line, b"\"dataChange\"")).any(|line| {
        serde_json::from_slice::<Line>(line)
            .is_ok_and(|l| l.add.or(l.remove).is_some_and(|action| action.data_change == Some(true)))
    })
}

fn to_entry(commit: &CommitFile, clock: CommitClock, info: Map<String, Value>) -> HistoryEntry {
    let own = info.get("inCommitTimestamp").and_then(Value::as_i64).filter(|_| clock.is_in_commit(commit.version));
    let timestamp_ms = own.unwrap_or(commit.time_ms);
    let string = |key: &str| info.get(key).and_then(text);
    let object = |key: &str| info.get(key).filter(|v| !v.is_null()).cloned();
    HistoryEntry {
        version: commit.version,
        timestamp: iso(timestamp_ms).unwrap_or_else(|| timestamp_ms.to_string()),
        user_id: string("userId"),
        user_name: string("userName"),
        operation: string("operation"),
        operation_parameters: map(&info, "operationParameters"),
        job: object("job"),
        notebook: object("notebook"),
        cluster_id: string("clusterId"),
        read_version: info.get("readVersion").and_then(Value::as_u64),
        isolation_level: string("isolationLevel"),
        is_blind_append: info.get("isBlindAppend").and_then(Value::as_bool),
        operation_metrics: map(&info, "operationMetrics")
            .map(|m| m.into_iter().filter_map(|(k, v)| v.map(|v| (k, v))).collect()),
        user_metadata: string("userMetadata"),
        engine_info: string("engineInfo"),
        readable: None,
        missing_files: None,
    }
}

fn map(info: &Map<String, Value>, key: &str) -> Option<BTreeMap<String, Option<String>>> {
    Some(info.get(key)?.as_object()?.iter().map(|(k, v)| (k.clone(), text(v))).collect())
}

/// Strings as they are, anything else as its JSON text, as Spark's maps of strings show it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_enter_or_leave_change_data() {
        assert!(changes_data(b"{\"commitInfo\":{}}\n{\"add\":{\"path\":\"a\",\"dataChange\":true}}"));
        assert!(changes_data(b"{\"remove\":{\"path\":\"a\",\"dataChange\":true}}"));
        assert!(!changes_data(b"{\"add\":{\"path\":\"a\",\"dataChange\":false}}\n{\"remove\":{\"dataChange\":false}}"));
        assert!(!changes_data(b"{\"metaData\":{\"name\":\"\\\"dataChange\\\":true\"}}"));
    }
}
