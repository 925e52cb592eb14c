//! `commitInfo` of single commits, and when each version was committed.
//!
//! # Source
//! Delta PROTOCOL.md, "Commit Provenance Information" and "In-Commit Timestamps"; Delta Spark `DeltaHistoryManager`.

use bytes::Bytes;
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use serde_json::{Map, Value};

use crate::log_files::{CommitFile, LogFiles, version_at};
use crate::log_state::DeltaTable;

/// Commits up to this size are read at once; of larger ones the first bytes usually hold the `commitInfo`.
const HEAD_BYTES: u64 = 1 << 18;

/// The `commitInfo` of a commit, with its fields as stored; `None` if the commit has none.
///
/// # Errors
/// `Corrupt` if the commit is not JSON, `NotFound` and `Unavailable` from the storage.
pub(crate) async fn read_commit_info(store: &Store, commit: &CommitFile) -> Result<Option<Map<String, Value>>> {
    let CommitFile { info, version, .. } = commit;
    let context = |e: Error| e.with("path", &info.location).with("version", version);
    if info.size > 2 * HEAD_BYTES {
        let head = store.get_range(&info.location, 0..HEAD_BYTES).await.map_err(context)?;
        if let Some(end) = head.iter().rposition(|b| *b == b'\n')
            && let Some(found) = find(&head[..end]).map_err(context)?
        {
            return Ok(Some(found));
        }
    }
    let bytes = read_commit(store, commit).await?;
    find(&bytes).map_err(context)
}

/// A whole commit.
///
/// # Errors
/// As [`read_commit_info`].
pub(crate) async fn read_commit(store: &Store, commit: &CommitFile) -> Result<Bytes> {
    store.get(&commit.info.location).await.map_err(|e| e.with("version", commit.version))
}

/// The `commitInfo` among a commit's lines.
pub(crate) fn find(bytes: &[u8]) -> Result<Option<Map<String, Value>>> {
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(rename = "commitInfo")]
        commit_info: Option<Map<String, Value>>,
    }
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || !contains(line, b"\"commitInfo\"") {
            continue;
        }
        let parsed: Line = serde_json::from_slice(line).map_err(|e| {
            Error::corrupt("a commit in the log is not valid JSON").with("line", number + 1).caused_by(e)
        })?;
        if let Some(found) = parsed.commit_info {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub(crate) fn contains(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|w| w == needle)
}

/// Which clock the versions of a table go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitClock {
    /// The times of the commit files.
    Files,
    /// The commits' own timestamps from a version on, enabled at a time; file times before.
    InCommit { since_version: u64, since_ms: i64 },
}

impl CommitClock {
    /// The clock that the newest version of a table says.
    pub(crate) fn of(latest: &DeltaTable) -> Self {
        if !latest.log.in_commit_timestamps {
            return Self::Files;
        }
        let number = |key: &str| latest.state.property(key).and_then(|v| v.trim().parse::<i64>().ok());
        Self::InCommit {
            since_version: number("delta.inCommitTimestampEnablementVersion")
                .and_then(|v| u64::try_from(v).ok())
                .unwrap_or(0),
            since_ms: number("delta.inCommitTimestampEnablementTimestamp").unwrap_or(i64::MIN),
        }
    }

    /// True if `version` carries its own timestamp.
    pub(crate) fn is_in_commit(self, version: u64) -> bool {
        matches!(self, Self::InCommit { since_version, .. } if version >= since_version)
    }

    /// The newest version committed at or before a time; `None` if every commit that the log holds is younger.
    ///
    /// # Errors
    /// `Corrupt` if a commit lacks the timestamp that it must have, `Unavailable` from the storage.
    pub(crate) async fn newest_at(self, store: &Store, files: &LogFiles, timestamp_ms: i64) -> Result<Option<u64>> {
        let own: Vec<&CommitFile> = files.commits.iter().filter(|c| self.is_in_commit(c.version)).collect();
        match count_until(store, &own, timestamp_ms).await? {
            0 => {
                let by_file = files.commits.iter().filter(|c| !self.is_in_commit(c.version));
                Ok(by_file.take_while(|c| c.time_ms <= timestamp_ms).last().map(|c| c.version))
            }
            count => Ok(Some(own[count - 1].version)),
        }
    }

    /// The last version committed at or before a time.
    ///
    /// # Errors
    /// `NotFound` outside the log's times, `Corrupt` if a commit lacks the timestamp that it must have.
    pub(crate) async fn version_at(
        self,
        store: &Store,
        root: &Location,
        files: &LogFiles,
        timestamp_ms: i64,
    ) -> Result<u64> {
        let earliest = files.earliest();
        let available = || files.commits.iter().filter(|c| c.version >= earliest);
        let by_file: Vec<(u64, i64)> =
            available().filter(|c| !self.is_in_commit(c.version)).map(|c| (c.version, c.time_ms)).collect();
        let Self::InCommit { since_ms, .. } = self else { return version_at(&by_file, timestamp_ms, root) };
        if timestamp_ms < since_ms && !by_file.is_empty() {
            // After the last commit by file time and before the change of clocks, that last commit was current.
            let until = by_file.last().map_or(timestamp_ms, |(_, last)| timestamp_ms.min(*last));
            return version_at(&by_file, until, root);
        }
        let own: Vec<&CommitFile> = available().filter(|c| self.is_in_commit(c.version)).collect();
        let low = count_until(store, &own, timestamp_ms).await?;
        let mut around = Vec::new();
        for commit in own.iter().skip(low.saturating_sub(1)).take(2) {
            around.push((commit.version, in_commit_timestamp(store, commit).await?));
        }
        version_at(&around, timestamp_ms, root)
    }
}

/// How many of these commits, ascending, carry a timestamp at or before a time. In-commit timestamps increase, so a
/// binary search reads few commits.
async fn count_until(store: &Store, own: &[&CommitFile], timestamp_ms: i64) -> Result<usize> {
    let (mut low, mut high) = (0, own.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if in_commit_timestamp(store, own[middle]).await? <= timestamp_ms { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

async fn in_commit_timestamp(store: &Store, commit: &CommitFile) -> Result<i64> {
    let info = read_commit_info(store, commit).await?;
    info.and_then(|i| i.get("inCommitTimestamp").and_then(Value::as_i64)).ok_or_else(|| {
        Error::corrupt("the commit lacks the timestamp that the table's in-commit timestamps demand")
            .class("DELTA_MISSING_COMMIT_TIMESTAMP")
            .with("path", &commit.info.location)
            .with("version", commit.version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_info_is_found_on_any_line() {
        let bytes = b"{\"add\":{\"path\":\"\\\"commitInfo\\\"\"}}\n\n{\"commitInfo\":{\"operation\":\"WRITE\"}}\n";
        assert_eq!(find(bytes).unwrap().unwrap().get("operation"), Some(&"WRITE".into()));
        assert_eq!(find(b"{\"add\":{}}").unwrap(), None);
        assert_eq!(find(b"{}\n{\"commitInfo\":").unwrap_err().context_value("line"), Some("2"));
    }
}
