//! The files of `_delta_log` and what their names say: which versions exist, since when, and which can be rebuilt.
//!
//! # Source
//! Delta PROTOCOL.md, "Delta Log Entries" and "Checkpoints".

use std::collections::BTreeSet;

use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{LogFile, LogRole, complete_checkpoints};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, ObjectInfo, Store};
use serde_json::Value;

pub(crate) const LOG_FOLDER: &str = "_delta_log";
/// Below the log: files of checkpoints that are kept apart from their heads.
const SIDECAR_FOLDER: &str = "_sidecars";
/// Below the log: commits that a catalog has yet to publish.
const STAGED_FOLDER: &str = "_staged_commits";

/// A commit file.
#[derive(Debug, Clone)]
pub(crate) struct CommitFile {
    pub version: u64,
    pub info: ObjectInfo,
    /// The file's time, made strictly increasing over the versions.
    pub time_ms: i64,
}

/// The commits and complete checkpoints of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFiles {
    /// By version, ascending.
    pub commits: Vec<CommitFile>,
    /// Versions that have a complete checkpoint.
    pub checkpoints: BTreeSet<u64>,
    /// Versions that have a checkpoint by name, complete or not.
    pub named_checkpoints: BTreeSet<u64>,
    /// Newest version that has a checksum.
    pub newest_checksum: Option<u64>,
}

impl LogFiles {
    /// Lists the log of the table at `root`.
    ///
    /// # Errors
    /// `NotFound` with `DELTA_MISSING_DELTA_TABLE` if there is none, `Unavailable` from the storage.
    pub(crate) async fn list(store: &Store, root: &Location) -> Result<Self> {
        let folder = root.join(LOG_FOLDER);
        let files = Self::from_listing(&folder, store.list_from(&folder, "").await?);
        if files.commits.is_empty() && files.checkpoints.is_empty() { Err(not_a_table(root)) } else { Ok(files) }
    }

    pub(crate) fn from_listing(folder: &Location, listing: Vec<ObjectInfo>) -> Self {
        let mut files = LogFiles::default();
        let mut named = Vec::with_capacity(listing.len());
        for info in listing {
            let Some(file) = log_file(folder, &info) else { continue };
            files.named_checkpoints.extend(checkpoint_version(&file.name));
            if file.role == LogRole::Checksum {
                files.newest_checksum = files.newest_checksum.max(Some(file.version));
            }
            if file.role == LogRole::Commit {
                files.commits.push(CommitFile { version: file.version, time_ms: info.modified_ms, info });
            }
            named.push(file);
        }
        files.checkpoints = complete_checkpoints(&named);
        files.commits.sort_by_key(|c| c.version);
        let mut previous = i64::MIN;
        for commit in &mut files.commits {
            commit.time_ms = commit.time_ms.max(previous.saturating_add(1));
            previous = commit.time_ms;
        }
        files
    }

    /// The version of a checksum that is newer than everything else in the log.
    pub(crate) fn checksum_beyond(&self) -> Option<u64> {
        self.newest_checksum.filter(|version| *version > self.latest())
    }

    /// The newest version.
    pub(crate) fn latest(&self) -> u64 {
        let commit = self.commits.last().map_or(0, |c| c.version);
        commit.max(self.checkpoints.last().copied().unwrap_or(0))
    }

    /// The oldest version that can be rebuilt: all later ones can be, too.
    pub(crate) fn earliest(&self) -> u64 {
        let mut first = match self.commits.last() {
            Some(last) => last.version,
            None => return self.checkpoints.last().copied().unwrap_or(0),
        };
        for commit in self.commits.iter().rev().skip(1) {
            if commit.version + 1 != first {
                break;
            }
            first = commit.version;
        }
        if first == 0 { 0 } else { self.checkpoints.range(first - 1..).next().copied().unwrap_or(first) }
    }

    /// # Errors
    /// `NotFound` with `DELTA_VERSION_NOT_FOUND` if `version` can't be rebuilt.
    pub(crate) fn check_version(&self, version: u64, root: &Location) -> Result<()> {
        let (earliest, latest) = (self.earliest(), self.latest());
        if (earliest..=latest).contains(&version) {
            return Ok(());
        }
        Err(Error::not_found(format!(
            "Cannot time travel Delta table to version {version}. Available versions: [{earliest}, {latest}]."
        ))
        .class("DELTA_VERSION_NOT_FOUND")
        .with("path", root)
        .with("version", version))
    }
}

/// True if the log holds a commit after `version`.
///
/// # Errors
/// `Unavailable` from the storage.
pub async fn has_commits_after(store: &Store, root: &Location, version: u64) -> Result<bool> {
    let newest = format!("{version:020}.json");
    let listed = store.list_from(&root.join(LOG_FOLDER), &newest).await?;
    Ok(listed.iter().any(|info| matches!(parse_name(info.location.file_name()), (LogRole::Commit, _))))
}

/// An object below the log's folder as a file of the log; `None` if it lies elsewhere.
pub(crate) fn log_file(folder: &Location, info: &ObjectInfo) -> Option<LogFile> {
    let name = info.location.relative_to(folder).filter(|name| !name.is_empty())?;
    let (role, version) = parse_name(name);
    Some(LogFile { name: name.to_owned(), role, version, size: info.size, modified_ms: info.modified_ms })
}

fn parse_name(name: &str) -> (LogRole, u64) {
    match name.split_once('/') {
        None => parse_direct(name),
        Some((SIDECAR_FOLDER, sidecar)) if !sidecar.contains('/') && sidecar.ends_with(".parquet") => {
            (LogRole::Sidecar, 0)
        }
        Some((STAGED_FOLDER, staged)) => staged_version(staged).map_or((LogRole::Unknown, 0), |v| (LogRole::Staged, v)),
        Some(_) => (LogRole::Unknown, 0),
    }
}

/// The version whose checkpoint, or a part of it, a file of the log is.
pub(crate) fn checkpoint_version(name: &str) -> Option<u64> {
    match parse_name(name) {
        (LogRole::Checkpoint | LogRole::CheckpointPart { .. }, version) => Some(version),
        _ => None,
    }
}

fn parse_direct(name: &str) -> (LogRole, u64) {
    // Hadoop's local file system keeps a checksum beside each file.
    if let Some(inner) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".crc")) {
        return match parse_visible(inner) {
            Some((LogRole::Checkpoint | LogRole::CheckpointPart { .. }, version)) => {
                (LogRole::HiddenCheckpointChecksum, version)
            }
            Some((LogRole::Commit | LogRole::Checksum, version)) => (LogRole::HiddenChecksum, version),
            _ => (LogRole::Unknown, 0),
        };
    }
    parse_visible(name).unwrap_or((LogRole::Unknown, 0))
}

fn parse_visible(name: &str) -> Option<(LogRole, u64)> {
    let (version, rest) = name.split_once('.')?;
    let version = number(version, 20)?;
    let pieces: Vec<&str> = rest.split('.').collect();
    let role = match pieces.as_slice() {
        ["json"] => LogRole::Commit,
        ["crc"] => LogRole::Checksum,
        [last, "compacted", "json"] => LogRole::Compaction { last: number(last, 20)? },
        ["checkpoint", "parquet"] => LogRole::Checkpoint,
        ["checkpoint", id, "json" | "parquet"] if uuid::Uuid::parse_str(id).is_ok() => LogRole::Checkpoint,
        ["checkpoint", part, of, "parquet"] => LogRole::CheckpointPart { part: number(part, 10)?, of: number(of, 10)? },
        _ => return None,
    };
    Some((role, version))
}

fn staged_version(name: &str) -> Option<u64> {
    let (version, rest) = name.split_once('.')?;
    let id = rest.strip_suffix(".json")?;
    uuid::Uuid::parse_str(id).ok()?;
    number(version, 20)
}

fn number(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

pub(crate) fn not_a_table(root: &Location) -> Error {
    Error::not_found(format!("`{root}` is not a Delta table: it holds no log; check the path"))
        .class("DELTA_MISSING_DELTA_TABLE")
        .with("path", root)
}

/// The version meant by a time: the last one committed at or before it. `commits` is ascending in both.
///
/// # Errors
/// `NotFound` with Spark's class if the time is before the first or after the last commit.
pub(crate) fn version_at(commits: &[(u64, i64)], timestamp_ms: i64, root: &Location) -> Result<u64> {
    let shown = |ms: i64| iso(ms).unwrap_or_else(|| ms.to_string());
    let (Some(first), Some(last)) = (commits.first(), commits.last()) else {
        return Err(Error::not_found("the log holds no commit whose time is known").with("path", root));
    };
    if timestamp_ms < first.1 {
        return Err(Error::not_found(format!(
            "The provided timestamp ({}) is before the earliest version available to this table ({}). Please use a \
             timestamp after {}.",
            shown(timestamp_ms),
            shown(first.1),
            shown(first.1)
        ))
        .class("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION")
        .with("path", root));
    }
    if timestamp_ms > last.1 {
        return Err(Error::not_found(format!(
            "The provided timestamp ({}) is after the latest version available to this table ({}). Please use a \
             timestamp before or at {}.",
            shown(timestamp_ms),
            shown(last.1),
            shown(last.1)
        ))
        .class("DELTA_TIMESTAMP_GREATER_THAN_COMMIT")
        .with("path", root));
    }
    let after = commits.partition_point(|(_, time)| *time <= timestamp_ms);
    Ok(commits[after - 1].0)
}

/// ISO text of a time in milliseconds, with offset; `None` outside the calendar.
pub(crate) fn iso(ms: i64) -> Option<String> {
    let timestamp = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string())
}

/// True if a Delta table lies at `root`.
///
/// # Errors
/// `Unavailable` from the storage.
pub async fn is_table(store: &Store, root: &Location) -> Result<bool> {
    let is_version = |path: &str| {
        let digits = path.bytes().take_while(u8::is_ascii_digit).count();
        digits == 20 && (path[digits..] == *".json" || path[digits..].starts_with(".checkpoint."))
    };
    store.holds_any(&root.join(LOG_FOLDER), is_version).await
}

/// A commit that is no longer readable as JSON, or a checksum of a commit that is gone, for the message of a load that
/// failed.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn find_corrupt_commit(store: &Store, root: &Location, at: &TimeTravel) -> Result<Option<Error>> {
    let files = LogFiles::list(store, root).await?;
    let last = match at {
        TimeTravel::Version(version) => *version,
        _ => files.latest(),
    };
    if let Some(version) = files.checksum_beyond().filter(|_| last == files.latest()) {
        let latest = files.latest();
        return Ok(Some(
            Error::corrupt(format!(
                "there is a checksum of version {version}, but the log ends at version {latest}: the commits after it \
                 seem to be lost; restore them from a copy, or delete the checksum if the log is known to be whole"
            ))
            .with("path", root.join(&format!("{LOG_FOLDER}/{version:020}.crc")))
            .with("version", latest),
        ));
    }
    let base = files.checkpoints.range(..=last).next_back().copied();
    for commit in files.commits.iter().filter(|c| c.version <= last && base.is_none_or(|b| c.version > b)) {
        let bytes = store.get(&commit.info.location).await?;
        if let Err(error) = check_lines(&bytes) {
            return Ok(Some(error.with("path", &commit.info.location).with("version", commit.version)));
        }
    }
    Ok(None)
}

pub(crate) fn check_lines(bytes: &[u8]) -> Result<()> {
    let mut found = false;
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        found = true;
        let action: Value = serde_json::from_slice(line).map_err(|e| {
            Error::new(ErrorKind::Corrupt, "a commit in the log is not valid JSON; restore the file from a backup")
                .with("line", number + 1)
                .caused_by(e)
        })?;
        check_numbers(&action).map_err(|e| e.with("line", number + 1))?;
    }
    if found { Ok(()) } else { Err(Error::corrupt("a commit in the log is empty; restore the file from a backup")) }
}

/// Whole numbers of file actions, with whether each kind must have them.
const NUMBERS: [(&str, &str, bool); 9] = [
    ("add", "size", true),
    ("add", "modificationTime", true),
    ("add", "baseRowId", false),
    ("add", "defaultRowCommitVersion", false),
    ("remove", "size", false),
    ("remove", "deletionTimestamp", false),
    ("remove", "baseRowId", false),
    ("remove", "defaultRowCommitVersion", false),
    ("cdc", "size", true),
];

/// Finds the number that no reader of the format can hold.
fn check_numbers(action: &Value) -> Result<()> {
    for (kind, field, required) in NUMBERS {
        let Some(file) = action.get(kind).filter(|f| f.get("path").is_some()) else { continue };
        let bad = match file.get(field) {
            None | Some(Value::Null) => required.then(|| "is missing".to_owned()),
            Some(Value::Number(n)) if n.as_i64().is_none() && !n.as_f64().is_some_and(|f| f.abs() < 1e15) => {
                Some(format!("is out of range: {n}"))
            }
            Some(_) => None,
        };
        if let Some(why) = bad {
            return Err(Error::corrupt(format!(
                "the field {field} of a file in the log {why}; restore the commit from a backup"
            ))
            .with("field", format!("{kind}.{field}"))
            .with("file", file.get("path").and_then(Value::as_str).unwrap_or_default()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[(&str, i64)]) -> LogFiles {
        let folder = Location::parse("/t/_delta_log").unwrap();
        let infos =
            names.iter().map(|(n, t)| ObjectInfo { location: folder.join(n), size: 1, modified_ms: *t }).collect();
        LogFiles::from_listing(&folder, infos)
    }

    fn commit(version: u64) -> String {
        format!("{version:020}.json")
    }

    #[test]
    fn times_are_made_increasing_and_foreign_names_are_left_out() {
        let (c0, c1, c2) = (commit(0), commit(1), commit(2));
        let files = listing(&[
            (&c0, 50),
            (&c1, 50),
            (&c2, 10),
            ("00000000000000000002.crc", 99),
            ("1.json", 0),
            ("_last_checkpoint", 0),
            ("00000000000000000000.00000000000000000001.compacted.json", 0),
            ("00000000000000000009.backup.json", 0),
        ]);
        assert_eq!(
            files.commits.iter().map(|c| (c.version, c.time_ms)).collect::<Vec<_>>(),
            [(0, 50), (1, 51), (2, 52)]
        );
        assert_eq!((files.earliest(), files.latest()), (0, 2));
    }

    #[test]
    fn every_kind_of_name_is_told_apart() {
        let id = "80a083e8-7026-4e79-81be-64bd76c43a11";
        let v = format!("{:020}", 7);
        for (name, expected) in [
            (format!("{v}.json"), (LogRole::Commit, 7)),
            (format!("{v}.crc"), (LogRole::Checksum, 7)),
            (format!(".{v}.json.crc"), (LogRole::HiddenChecksum, 7)),
            (format!(".{v}.crc.crc"), (LogRole::HiddenChecksum, 7)),
            (format!(".{v}.checkpoint.parquet.crc"), (LogRole::HiddenCheckpointChecksum, 7)),
            (format!("{v}.{:020}.compacted.json", 9), (LogRole::Compaction { last: 9 }, 7)),
            (format!("{v}.checkpoint.parquet"), (LogRole::Checkpoint, 7)),
            (format!("{v}.checkpoint.{id}.json"), (LogRole::Checkpoint, 7)),
            (format!("{v}.checkpoint.{:010}.{:010}.parquet", 1, 2), (LogRole::CheckpointPart { part: 1, of: 2 }, 7)),
            (format!("_staged_commits/{v}.{id}.json"), (LogRole::Staged, 7)),
            ("_sidecars/anything.parquet".to_owned(), (LogRole::Sidecar, 0)),
            ("_sidecars/deeper/anything.parquet".to_owned(), (LogRole::Unknown, 0)),
            (format!("_commits/{v}.{id}.json"), (LogRole::Unknown, 0)),
            (format!("backup/{v}.json"), (LogRole::Unknown, 0)),
            ("_last_checkpoint".to_owned(), (LogRole::Unknown, 0)),
            ("._last_checkpoint.crc".to_owned(), (LogRole::Unknown, 0)),
            (format!("{v}.checkpoint.copy.parquet"), (LogRole::Unknown, 0)),
            (format!("{v}.json.bak"), (LogRole::Unknown, 0)),
            ("7.json".to_owned(), (LogRole::Unknown, 0)),
        ] {
            assert_eq!(parse_name(&name), expected, "{name}");
        }
    }

    #[test]
    fn a_cleaned_log_starts_at_its_first_complete_checkpoint() {
        let (c5, c6, c7) = (commit(5), commit(6), commit(7));
        let part = |v: u64, n: u64| format!("{v:020}.checkpoint.{n:010}.{:010}.parquet", 2);
        let (p51, p61, p62) = (part(5, 1), part(6, 1), part(6, 2));
        let files = listing(&[(&c5, 1), (&c6, 2), (&c7, 3), (&p51, 1), (&p61, 1), (&p62, 1)]);
        assert_eq!(files.checkpoints, BTreeSet::from([6]));
        assert_eq!((files.earliest(), files.latest()), (6, 7));
        let root = Location::parse("/t").unwrap();
        let error = files.check_version(5, &root).unwrap_err();
        assert_eq!(error.class_name(), "DELTA_VERSION_NOT_FOUND");
        assert!(error.message().ends_with("Available versions: [6, 7]."));
        assert!(files.check_version(7, &root).is_ok());
    }

    #[test]
    fn a_time_means_the_last_commit_at_or_before_it() {
        let root = Location::parse("/t").unwrap();
        let commits = [(3, 100), (4, 200), (5, 300)];
        for (time, version) in [(100, 3), (199, 3), (200, 4), (300, 5)] {
            assert_eq!(version_at(&commits, time, &root).unwrap(), version);
        }
        let class = |time| version_at(&commits, time, &root).unwrap_err().class_name().to_string();
        assert_eq!(class(99), "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION");
        assert_eq!(class(301), "DELTA_TIMESTAMP_GREATER_THAN_COMMIT");
    }

    #[test]
    fn broken_lines_are_named() {
        assert!(check_lines(b"{\"add\":{}}\n\n{}\n").is_ok());
        assert_eq!(check_lines(b"{}\n{\"add\":").unwrap_err().context_value("line"), Some("2"));
        assert!(check_lines(b"\n").is_err());
    }
}
