//! What the log tells a vacuum that lists nothing: which files its commits removed, and how far the last vacuum came.
//!
//! # Source
//! Delta Spark `VacuumCommand.getFilesFromDeltaLog`, `LastVacuumInfo`.

use std::ops::RangeInclusive;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};
use serde::{Deserialize, Serialize};

use crate::actions::DeletionVectorDescriptor;
use crate::commit_info::{CommitClock, read_commit};
use crate::log_files::{CommitFile, LOG_FOLDER, LogFiles};
use crate::log_state::DeltaTable;
use crate::vector::checked_path;

const INFO_FILE: &str = "_last_vacuum_info";
/// Commits read at once.
const READ_AHEAD: usize = 16;

/// A file that a commit removed, or one of changed rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedFile {
    /// On-disk path below the root.
    pub path: String,
    /// Bytes; 0 if the log does not say.
    pub size: u64,
    /// When it left the table, milliseconds since the epoch; `None` if the log does not say.
    pub removed_ms: Option<i64>,
}

/// The newest version committed at or before `cutoff_ms`, of those that the log still holds. A vacuum that finds
/// everything removed before the cutoff covers it.
///
/// # Errors
/// `Unavailable` and `Corrupt` from the log.
pub async fn covered_version(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    cutoff_ms: i64,
) -> Result<Option<u64>> {
    let files = LogFiles::list(store, root).await?;
    match CommitClock::of(table).version_at(store, root, &files, cutoff_ms).await {
        Ok(version) => Ok(Some(version.min(table.state.version))),
        Err(error) if error.class_name() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT" => Ok(Some(table.state.version)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Hands to `each` what the commits after the last vacuum and up to `covered` removed before `cutoff_ms`. A path may come
/// more than once. Paths that are absolute or leave the root are left out.
///
/// # Errors
/// `Retention` with `DELTA_CANNOT_VACUUM_LITE` if the log no longer holds every commit since the last vacuum.
pub async fn removed_files(
    store: &Store,
    root: &Location,
    covered: u64,
    cutoff_ms: i64,
    cancel: &Cancel,
    each: &mut (dyn FnMut(RemovedFile) -> Result<()> + Send),
) -> Result<()> {
    let files = LogFiles::list(store, root).await?;
    let first = match read_info(store, root).await? {
        Some(last) => last.saturating_add(1),
        None => 0,
    };
    let wanted: Vec<_> = files.commits.iter().filter(|c| (first..=covered).contains(&c.version)).cloned().collect();
    let whole = covered.checked_sub(first).is_none_or(|length| wanted.len() as u64 == length + 1);
    if !whole {
        return Err(Error::new(
            ErrorKind::Retention,
            "VACUUM LITE cannot delete all eligible files: some of the commits since the last vacuum are no longer in \
             the log; run a full VACUUM once",
        )
        .class("DELTA_CANNOT_VACUUM_LITE")
        .with("path", root)
        .with("first_version", first));
    }
    each_line(store, wanted, &mut |line| {
        cancel.check()?;
        if let Some(remove) = line.remove {
            removed(root, &remove, cutoff_ms, each)?;
        }
        if let Some(changes) = line.cdc
            && let Some(path) = below(root, &changes.path)?
        {
            each(RemovedFile { path, size: size(changes.size), removed_ms: None })?;
        }
        Ok(())
    })
    .await
}

/// Hands to `each` what those of the `versions` removed that the log still holds, whatever time they say.
///
/// # Errors
/// `Corrupt` with version and line, `Unavailable` from the storage.
pub(crate) async fn removes_since(
    store: &Store,
    root: &Location,
    versions: RangeInclusive<u64>,
    each: &mut (dyn FnMut(&Removed) -> Result<()> + Send),
) -> Result<()> {
    let files = LogFiles::list(store, root).await?;
    let wanted = files.commits.into_iter().filter(|commit| versions.contains(&commit.version)).collect();
    each_line(store, wanted, &mut |line| line.remove.iter().try_for_each(&mut *each)).await
}

async fn each_line(
    store: &Store,
    commits: Vec<CommitFile>,
    each: &mut (dyn FnMut(Line) -> Result<()> + Send),
) -> Result<()> {
    let mut commits = futures::stream::iter(commits)
        .map(|commit| async move { Ok::<_, Error>((read_commit(store, &commit).await?, commit)) })
        .buffered(READ_AHEAD);
    while let Some((bytes, commit)) = commits.try_next().await? {
        let context = |e: Error| e.with("version", commit.version);
        for (number, line) in bytes.split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.trim_ascii().is_empty()) {
            let line: Line = serde_json::from_slice(line).map_err(|e| {
                let error = Error::corrupt("a line of the log is not a valid action").caused_by(e);
                context(error.with("path", &commit.info.location).with("line", number + 1))
            })?;
            each(line).map_err(context)?;
        }
    }
    Ok(())
}

/// The little of a commit's line that matters here.
#[derive(Deserialize)]
struct Line {
    remove: Option<Removed>,
    cdc: Option<Removed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Removed {
    pub path: String,
    deletion_timestamp: Option<i64>,
    size: Option<i64>,
    pub deletion_vector: Option<DeletionVectorDescriptor>,
}

fn size(logged: Option<i64>) -> u64 {
    logged.and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
}

fn removed(
    root: &Location,
    remove: &Removed,
    cutoff_ms: i64,
    each: &mut (dyn FnMut(RemovedFile) -> Result<()> + Send),
) -> Result<()> {
    let removed_ms = remove.deletion_timestamp.unwrap_or(0);
    if removed_ms >= cutoff_ms {
        return Ok(());
    }
    let removed_ms = Some(removed_ms).filter(|ms| *ms > 0);
    if let Some(path) = below(root, &remove.path)? {
        each(RemovedFile { path, size: size(remove.size), removed_ms })?;
    }
    match &remove.deletion_vector {
        Some(vector) if vector.storage_type == "u" => {
            each(RemovedFile { path: checked_path(&vector.path_or_inline_dv)?, size: 0, removed_ms })
        }
        _ => Ok(()),
    }
}

/// The on-disk path of a relative path of the log, if it stays below the root.
fn below(root: &Location, stored: &str) -> Result<Option<String>> {
    if Location::is_absolute(stored) {
        return Ok(None);
    }
    let location = root.resolve(stored)?;
    Ok(location.relative_to(root).filter(|path| !path.is_empty()).map(str::to_owned))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastVacuumInfo {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_commit_version_outside_of_retention_window: Option<u64>,
}

/// How far the last vacuum came. A damaged note counts for none: then more of the log is read.
async fn read_info(store: &Store, root: &Location) -> Result<Option<u64>> {
    match store.get(&info_location(root)).await {
        Ok(bytes) => {
            let info = serde_json::from_slice::<LastVacuumInfo>(&bytes).ok();
            Ok(info.and_then(|i| i.latest_commit_version_outside_of_retention_window))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Notes that everything removed up to the version `covered` is gone. What an earlier vacuum noted stays if it came
/// further.
///
/// # Errors
/// `Unavailable` from the storage.
pub async fn note_vacuum(store: &Store, root: &Location, covered: Option<u64>) -> Result<()> {
    let covered = read_info(store, root).await?.max(covered);
    let info = LastVacuumInfo { latest_commit_version_outside_of_retention_window: covered };
    let text = serde_json::to_vec(&info)
        .map_err(|e| Error::internal("the note of the vacuum could not be written as JSON").caused_by(e))?;
    store.put(&info_location(root), Bytes::from(text)).await
}

fn info_location(root: &Location) -> Location {
    root.join(&format!("{LOG_FOLDER}/{INFO_FILE}"))
}
