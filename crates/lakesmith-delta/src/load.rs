//! Loads one version of a table: the kernel replays the log, batch by batch, into the file table.

use std::collections::BTreeMap;

use delta_kernel::Engine;
use delta_kernel::scan::{ScanMetadata, StatsOptions};
use delta_kernel::snapshot::{Snapshot, SnapshotRef};
use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{FileTable, Schema};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use serde::de::DeserializeOwned;

use crate::commit_info::CommitClock;
use crate::engine::{self, KERNEL_ROOT, translate};
use crate::file_rows::FileRows;
use crate::log_files::{LogFiles, find_corrupt_commit};
use crate::log_state::{DeltaTable, LogState};
use crate::log_view::LogView;
use crate::version_file::VersionFile;
use crate::version_state::VersionState;

/// Which parts of a table are to be loaded.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The live files.
    pub files: bool,
    /// The files' statistics as JSON text. Row counts come with the files in any case.
    pub stats: bool,
}

/// Loads the table at `root`.
///
/// # Errors
/// `NotFound`: no table there, or no such version or time. `Unsupported`: a feature that we can't read. `Corrupt`: a
/// log that contradicts itself, with path and version. `Unavailable`: the storage.
pub async fn load(store: &Store, root: &Location, at: TimeTravel, needs: Needs) -> Result<DeltaTable> {
    let version = match at {
        TimeTravel::Latest => None,
        TimeTravel::Version(version) => {
            LogFiles::list(store, root).await?.check_version(version, root)?;
            Some(version)
        }
        TimeTravel::Timestamp(timestamp_ms) => Some(version_at(store, root, timestamp_ms).await?),
        TimeTravel::Reference(name) => return Err(no_references(root, &name)),
    };
    load_version(store, root, version, needs).await
}

/// Versions of a Delta table have numbers only.
pub(crate) fn no_references(root: &Location, name: &str) -> Error {
    Error::usage(format!(
        "a Delta table has no branches and tags, so '{name}' names no version of it; name it by its number"
    ))
    .class("INVALID_TIME_TRAVEL_SPEC")
    .with("path", root)
}

pub(crate) async fn version_at(store: &Store, root: &Location, timestamp_ms: i64) -> Result<u64> {
    let latest = load_version(store, root, None, Needs::default()).await?;
    let files = LogFiles::list(store, root).await?;
    CommitClock::of(&latest).version_at(store, root, &files, timestamp_ms).await
}

async fn load_version(store: &Store, root: &Location, version: Option<u64>, needs: Needs) -> Result<DeltaTable> {
    let error = match load_view(store, root, version, needs, LogView::default()).await {
        Err(error) if may_be_a_checkpoint(&error) => error,
        // A storage that fails for a moment breaks no checkpoint, but it may be that there is no table to read.
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            let missing = LogFiles::list(store, root).await.err().filter(|e| e.kind() == ErrorKind::NotFound);
            return Err(missing.unwrap_or(error));
        }
        other => return other,
    };
    match explain(store, root, version).await {
        Some(clearer) => Err(clearer),
        None => without_checkpoints(store, root, version, needs, error).await,
    }
}

/// Loads what `view` shows. A table in which one file's path is spelled in two ways is seen as Spark sees it.
pub(crate) async fn load_view(
    store: &Store,
    root: &Location,
    version: Option<u64>,
    needs: Needs,
    view: LogView,
) -> Result<DeltaTable> {
    let engine = view.open(store, root)?;
    let (location, at_root) = (root.clone(), view.clone());
    let (table, unusual, two_spellings) = engine::blocking(move || {
        let snapshot = build(&engine, version).map_err(|e| translate(e, &location))?;
        let table = Loader { engine: &engine, root: &location, snapshot: &snapshot, view: &at_root }.load(needs)?;
        Ok((table, engine.watch().saw_unusual(), engine.watch().two_spellings()))
    })
    .await?;
    if unusual {
        let settled = LogView { settled: true, ..view };
        let again = Box::pin(load_view(store, root, Some(table.state.version), needs, settled)).await?;
        return Ok(if again.log.two_spellings.is_some() { again } else { table });
    }
    Ok(DeltaTable { log: LogState { two_spellings, ..table.log }, state: table.state })
}

/// Checkpoints passed over before a load is given up.
const CHECKPOINTS_PASSED_OVER_MAX: usize = 8;

fn may_be_a_checkpoint(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Internal)
}

/// Loads around a hint that misleads and around checkpoints that can't be read, as long as older checkpoints and
/// commits give the same version.
///
/// # Source
/// Delta Spark `SnapshotManagement.createSnapshotFromGivenOrEquivalentLogSegment`.
async fn without_checkpoints(
    store: &Store,
    root: &Location,
    version: Option<u64>,
    needs: Needs,
    error: Error,
) -> Result<DeltaTable> {
    let Ok(LogFiles { named_checkpoints: named, .. }) = LogFiles::list(store, root).await else { return Err(error) };
    let newest = version.unwrap_or(u64::MAX);
    let mut view = LogView { without_hint: true, ..LogView::default() };
    let mut broken = named.range(..=newest).rev().take(CHECKPOINTS_PASSED_OVER_MAX);
    loop {
        match load_view(store, root, version, needs, view.clone()).await {
            // A version that only the broken checkpoint could give must not be taken for one that does not exist.
            Ok(table) if version.is_some() || named.last().is_none_or(|last| table.state.version >= *last) => {
                let passed_over: Vec<u64> = view.without_checkpoints.iter().copied().collect();
                tracing::warn!(
                    path = %root,
                    version = table.state.version,
                    checkpoints = ?passed_over,
                    %error,
                    "_last_checkpoint or a checkpoint is broken; the table was read from what else the log holds, and \
                     writing a new checkpoint cures it"
                );
                return Ok(table);
            }
            Err(again) if !may_be_a_checkpoint(&again) => return Err(error),
            _ => {}
        }
        match broken.next() {
            Some(checkpoint) => view.without_checkpoints.insert(*checkpoint),
            None => return Err(error),
        };
    }
}

/// A clearer error than the kernel's where a look at the log gives one.
async fn explain(store: &Store, root: &Location, version: Option<u64>) -> Option<Error> {
    let at = version.map_or(TimeTravel::Latest, TimeTravel::Version);
    match find_corrupt_commit(store, root, &at).await {
        Ok(clearer) => clearer,
        // No log, or a storage that does not say what is in it: neither is a broken log.
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable).then_some(error),
    }
}

/// The version, or the newest one.
pub(crate) fn build(engine: &dyn Engine, version: Option<u64>) -> delta_kernel::KernelResult<SnapshotRef> {
    let builder = Snapshot::builder_for(KERNEL_ROOT);
    match version {
        Some(version) => builder.at_version(version).build(engine),
        None => builder.build(engine),
    }
}

struct Loader<'a> {
    engine: &'a dyn Engine,
    root: &'a Location,
    snapshot: &'a SnapshotRef,
    view: &'a LogView,
}

impl Loader<'_> {
    fn load(&self, needs: Needs) -> Result<DeltaTable> {
        self.check_start()?;
        let configuration = self.snapshot.table_configuration();
        let (commit_timestamp_ms, in_commit_timestamps) = self.commit_timestamp()?;
        let state = VersionState {
            version: self.snapshot.version(),
            protocol: convert(configuration.protocol())?,
            metadata: convert(configuration.metadata())?,
            domains: self.domains()?,
            commit_timestamp_ms,
            in_commit_timestamps,
            checkpoint_version: self.snapshot.log_segment().checkpoint_version,
            empty_commit: self.empty_commit(),
            file: self.version_file(),
            view: self.view.clone(),
        };
        let schema = state.schema().map_err(|e| e.with("path", self.root))?;
        let columns = &state.metadata.partition_columns;
        let files = if needs.files { self.files(&schema, columns, needs)? } else { FileTable::default() };
        state.into_table(self.root, schema, files)
    }

    /// Without a checkpoint only the very first commit may be the start: what comes before is lost otherwise.
    fn check_start(&self) -> Result<()> {
        let segment = self.snapshot.log_segment();
        let first = segment.listed.ascending_commit_files.first().map(|f| f.version);
        if segment.checkpoint_version.is_some() || first == Some(0) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the log begins at version {} and no complete checkpoint stands for what came before; restore the missing \
             files of _delta_log from a copy",
            first.map_or_else(|| "none".to_owned(), |v| v.to_string())
        ))
        .class("DELTA_TRUNCATED_TRANSACTION_LOG")
        .with("path", self.root)
        .with("version", self.snapshot.version()))
    }

    fn empty_commit(&self) -> Option<u64> {
        let listed = &self.snapshot.log_segment().listed;
        let mut commits = listed.ascending_commit_files.iter().chain(&listed.latest_commit_file);
        commits.find(|commit| commit.location.size == 0).map(|commit| commit.version)
    }

    fn version_file(&self) -> Option<VersionFile> {
        let (version, listed) = (self.snapshot.version(), &self.snapshot.log_segment().listed);
        let mut files = listed.latest_commit_file.iter().chain(&listed.checkpoint_parts);
        files.find(|file| file.version == version).map(|file| VersionFile {
            name: file.filename.clone(),
            size: file.location.size,
            modified_ms: file.location.last_modified,
        })
    }

    fn domains(&self) -> Result<BTreeMap<String, String>> {
        let domains =
            self.snapshot.get_domain_metadatas_internal(self.engine, None).map_err(|e| translate(e, self.root))?;
        Ok(domains.into_iter().map(|(name, domain)| (name, domain.configuration().to_owned())).collect())
    }

    fn commit_timestamp(&self) -> Result<(i64, bool)> {
        let in_commit = self.snapshot.get_in_commit_timestamp(self.engine).map_err(|e| {
            translate(e, self.root).class("DELTA_MISSING_COMMIT_TIMESTAMP").with("version", self.snapshot.version())
        })?;
        if let Some(timestamp_ms) = in_commit {
            return Ok((timestamp_ms, true));
        }
        // A log that was cleaned up to a checkpoint may lack the commit itself.
        let listed = &self.snapshot.log_segment().listed;
        let file = listed.latest_commit_file.as_ref().or(listed.checkpoint_parts.first());
        Ok((file.map_or(0, |f| f.location.last_modified), false))
    }

    /// Statistics come as JSON, which is cheap where the log holds JSON. A checkpoint may hold them as columns only; then
    /// rows would be unknown, and the kernel has to turn the columns into JSON.
    fn files(&self, schema: &Schema, partition_columns: &[String], needs: Needs) -> Result<FileTable> {
        let from_columns = self.snapshot.log_segment().checkpoint_version.is_some();
        let enough = |rows: &FileRows<'_>| !(from_columns && rows.lacks_counts());
        if let Some(files) = self.scan(schema, partition_columns, needs, StatsOptions::json_only(), enough)? {
            return Ok(files);
        }
        let files = self.scan(schema, partition_columns, needs, StatsOptions::all(), |_| true)?;
        files.ok_or_else(|| Error::internal("reading the files was given up without a reason"))
    }

    /// The live files; `None` once `enough` says that these statistics won't do, so that two tables are never held.
    fn scan(
        &self,
        schema: &Schema,
        partition_columns: &[String],
        needs: Needs,
        stats: StatsOptions,
        enough: impl Fn(&FileRows<'_>) -> bool,
    ) -> Result<Option<FileTable>> {
        let mut rows = FileRows::new(self.root, schema, partition_columns, needs.stats)?;
        let whole = scan(self.engine, self.root, self.snapshot, stats, &mut |batch| {
            rows.push(batch).map_err(|e| e.with("table", self.root))?;
            Ok(enough(&rows))
        })?;
        if !whole {
            return Ok(None);
        }
        Ok(Some(rows.finish()))
    }
}

/// Hands the live files over, batch by batch, until `each` says that it is enough; true if that were all.
pub(crate) fn scan(
    engine: &dyn Engine,
    root: &Location,
    snapshot: &SnapshotRef,
    stats: StatsOptions,
    each: &mut dyn FnMut(ScanMetadata) -> Result<bool>,
) -> Result<bool> {
    let failed = |e| translate(e, root).with("version", snapshot.version());
    let scan = snapshot.clone().scan_builder().with_stats(stats).without_row_transforms().build().map_err(failed)?;
    for batch in scan.scan_metadata(engine).map_err(failed)? {
        if !each(batch.map_err(failed)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The kernel's action as ours: both have the log's own JSON form.
fn convert<T: DeserializeOwned>(action: &impl serde::Serialize) -> Result<T> {
    serde_json::to_value(action)
        .and_then(serde_json::from_value)
        .map_err(|e| Error::internal("the kernel's view of the log could not be taken over").caused_by(e))
}
