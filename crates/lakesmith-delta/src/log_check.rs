//! Is a log whole, and do its checkpoints say what the commits say that they replace?

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::op::{FsckFinding, TimeTravel};
use lakesmith_core::table::{FileKey, LogFile, LogRole, complete_checkpoints};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};

use crate::load::{Needs, load, load_view};
use crate::log_files::{LOG_FOLDER, LogFiles, check_lines, log_file};
use crate::log_state::DeltaTable;
use crate::log_view::LogView;
use crate::{last_checkpoint, version_checksum};

/// Commits read at once.
const READ_AHEAD: usize = 16;
/// Differences of a checkpoint that are listed.
const DIFFERENCES_LISTED: usize = 20;

/// What a look at a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCheck {
    /// Contradictions.
    pub findings: Vec<FsckFinding>,
    /// Checkpoints that were compared with the commits that they replace.
    pub checkpoints: u64,
}

/// Looks at every file of the log of the table at `root`.
///
/// # Errors
/// `NotFound` if there is no log, `Cancelled`, `Unavailable` from the storage.
pub async fn check_log(store: &Store, root: &Location, cancel: &Cancel) -> Result<LogCheck> {
    let files = LogFiles::list(store, root).await?;
    let folder = root.join(LOG_FOLDER);
    let listed: Vec<LogFile> = store.list(&folder).await?.iter().filter_map(|info| log_file(&folder, info)).collect();
    let mut check = LogCheck::default();
    gaps(&files, &mut check);
    incomplete(&listed, &mut check);
    hint(store, root, &files, &mut check).await?;
    commits(store, &files, cancel, &mut check).await?;
    for version in complete_checkpoints(&listed) {
        cancel.check()?;
        compare(store, root, &files, version, &mut check).await?;
    }
    Ok(check)
}

fn finding(kind: &str, path: String, version: u64, message: String, cure: &str) -> FsckFinding {
    FsckFinding { kind: kind.to_owned(), path, version, message, cure: cure.to_owned() }
}

fn commit_path(version: u64) -> String {
    format!("{LOG_FOLDER}/{version:020}.json")
}

fn gaps(files: &LogFiles, check: &mut LogCheck) {
    for pair in files.commits.windows(2) {
        let [before, after] = pair else { continue };
        for missing in before.version + 1..after.version {
            check.findings.push(finding(
                "log-gap",
                commit_path(missing),
                missing,
                format!("the commit of version {missing} is missing between its neighbours"),
                "restore the commit from a backup; versions from the next checkpoint on do not need it",
            ));
        }
    }
    if let Some(version) = files.checksum_beyond() {
        check.findings.push(finding(
            "log-gap",
            format!("{LOG_FOLDER}/{version:020}.crc"),
            version,
            format!("there is a checksum of version {version}, but the log ends at version {}", files.latest()),
            "restore the commits from a backup, or delete the checksum if the log is known to be whole",
        ));
    }
    let newest_commit = files.commits.last().map(|c| c.version);
    for version in files.checkpoints.iter().filter(|v| newest_commit.is_none_or(|newest| **v > newest)) {
        check.findings.push(finding(
            "log-gap",
            commit_path(*version),
            *version,
            format!("there is a checkpoint of version {version}, but not its commit"),
            "restore the commit from a backup, or writers may take the version's number again",
        ));
    }
}

fn incomplete(listed: &[LogFile], check: &mut LogCheck) {
    let complete = complete_checkpoints(listed);
    let mut named = BTreeMap::new();
    for file in listed {
        if matches!(file.role, LogRole::Checkpoint | LogRole::CheckpointPart { .. })
            && !complete.contains(&file.version)
        {
            named.entry(file.version).or_insert_with(|| file.name.clone());
        }
    }
    for (version, name) in named {
        check.findings.push(finding(
            "incomplete-checkpoint",
            format!("{LOG_FOLDER}/{name}"),
            version,
            "a part of the checkpoint is missing or empty; readers pass it over".to_owned(),
            "run lakesmith checkpoint, or remove what is left of this one",
        ));
    }
}

async fn hint(store: &Store, root: &Location, files: &LogFiles, check: &mut LogCheck) -> Result<()> {
    let Some(version) = last_checkpoint::published(store, root).await? else { return Ok(()) };
    if files.checkpoints.contains(&version) {
        return Ok(());
    }
    let path = format!("{LOG_FOLDER}/_last_checkpoint");
    let latest = files.latest();
    check.findings.push(if version > latest {
        let message = format!("it points to a checkpoint of version {version}, but the log ends at version {latest}");
        let cure = "restore the commits from a backup, or delete the hint if the log is known to be whole";
        finding("log-gap", path, version, message, cure)
    } else {
        let message = format!("it points to a checkpoint of version {version}, which is not there");
        finding("misleading-hint", path, version, message, "run lakesmith checkpoint, which writes it anew")
    });
    Ok(())
}

async fn commits(store: &Store, files: &LogFiles, cancel: &Cancel, check: &mut LogCheck) -> Result<()> {
    let mut read = futures::stream::iter(&files.commits)
        .map(|commit| async move {
            cancel.check()?;
            let bytes = store.get(&commit.info.location).await?;
            Ok::<_, Error>((commit.version, check_lines(&bytes).err()))
        })
        .buffered(READ_AHEAD);
    while let Some((version, broken)) = read.try_next().await? {
        if let Some(error) = broken {
            let message = error.to_string();
            let cure = "restore the commit from a backup; if a later checkpoint is whole, only older versions need it";
            check.findings.push(finding("corrupt-commit", commit_path(version), version, message, cure));
        }
    }
    Ok(())
}

/// Compares a version read from its checkpoint with the same version read from what the log holds besides.
async fn compare(store: &Store, root: &Location, files: &LogFiles, version: u64, check: &mut LogCheck) -> Result<()> {
    let path = format!("{LOG_FOLDER}/{version:020}.checkpoint");
    let needs = Needs { files: true, stats: false };
    let with = match load(store, root, TimeTravel::Version(version), needs).await {
        Ok(table) if table.log.checkpoint_version == Some(version) => table,
        Ok(_) => {
            let message = "the checkpoint can't be read; readers pass it over".to_owned();
            let cure = "remove the checkpoint: older ones and the commits give the same version";
            check.findings.push(finding("corrupt-checkpoint", path, version, message, cure));
            return Ok(());
        }
        Err(error) if is_about_the_table(&error) => {
            let message = format!("the version can't be read: {error}");
            let cure = "restore the checkpoint or the commits before it from a backup";
            check.findings.push(finding("corrupt-checkpoint", path, version, message, cure));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if !rebuilds_without(files, version) {
        return Ok(());
    }
    let view = LogView { without_hint: true, without_checkpoints: BTreeSet::from([version]), ..LogView::default() };
    let without = match load_view(store, root, Some(version), needs, view).await {
        Ok(table) => table,
        // What is wrong with the commits has been found already.
        Err(error) if is_about_the_table(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    check.checkpoints += 1;
    for message in differences(&with, &without) {
        let cure = "if the commits are right, remove the checkpoint and write a new one; if it has been there for long, \
                    compare the rows of both first";
        check.findings.push(finding("checkpoint-differs", path.clone(), version, message, cure));
    }
    Ok(())
}

fn is_about_the_table(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled | ErrorKind::Unsupported)
}

/// True if an older checkpoint and the commits after it, or all commits, give the version.
fn rebuilds_without(files: &LogFiles, version: u64) -> bool {
    let commits: BTreeSet<u64> = files.commits.iter().map(|c| c.version).collect();
    let first = files.checkpoints.range(..version).next_back().map_or(0, |older| older + 1);
    (first..=version).all(|v| commits.contains(&v))
}

fn differences(with: &DeltaTable, without: &DeltaTable) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, same: bool| {
        if !same {
            found.push(format!("its {what} differs from that of the commits"));
        }
    };
    differ("protocol", with.state.features == without.state.features);
    differ("metadata", with.log.metadata == without.log.metadata);
    differ("domain metadata", with.log.domains == without.log.domains);
    let files = |table: &DeltaTable| -> BTreeSet<(FileKey, u64)> {
        let key = |f: lakesmith_core::table::DataFile<'_>| {
            let vector_id = f.deletes.map(|d| d.unique_id.clone());
            (FileKey { path: f.path.to_owned(), vector_id }, f.size)
        };
        table.state.files.iter().map(key).collect()
    };
    let (ours, theirs) = (files(with), files(without));
    let only_checkpoint = ours.difference(&theirs).map(|(key, _)| ("only the checkpoint", key));
    let only_commits = theirs.difference(&ours).map(|(key, _)| ("only the commits", key));
    let listed = only_checkpoint.chain(only_commits).take(DIFFERENCES_LISTED);
    found.extend(listed.map(|(who, key)| format!("{who} hold the live file {}", shown(key))));
    found
}

fn shown(key: &FileKey) -> String {
    match &key.vector_id {
        Some(vector) => format!("{} with the vector {vector}", key.path),
        None => key.path.clone(),
    }
}

/// What the checksum of the table's version says that the table does not.
///
/// # Errors
/// `Unavailable` from the storage.
pub async fn check_checksum(store: &Store, root: &Location, table: &DeltaTable) -> Result<Vec<FsckFinding>> {
    let version = table.state.version;
    let path = format!("{LOG_FOLDER}/{version:020}.crc");
    let bytes = match store.get(&root.join(&path)).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let cure = "remove the checksum file: readers do without it, and trust a wrong one";
    let wrong = |message: String| finding("checksum-differs", path.clone(), version, message, cure);
    let Some(totals) = version_checksum::totals(&bytes) else {
        return Ok(vec![wrong("the checksum of the version is no JSON object".to_owned())]);
    };
    let files = &table.state.files;
    let known = [("numFiles", totals.files, files.len() as u64), ("tableSizeBytes", totals.bytes, files.total_bytes())];
    let differs = |(key, said, known): (&str, Option<u64>, u64)| {
        let said = said.filter(|said| *said != known)?;
        Some(wrong(format!("{key} is {said}, the table has {known}")))
    };
    Ok(known.into_iter().filter_map(differs).collect())
}
