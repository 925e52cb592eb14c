//! A survey of a table for its health check: which files are live, how large, where, with which vectors, straight from
//! the columns of the checkpoint and the commits after it, in few requests and little memory.
//!
//! ```text
//! listing ─> Segment { checkpoint, commits }
//!              commits, newest first ─┐
//!              checkpoint's columns ──┴─> Replay ─> DeltaTable (without files) + HealthFacts
//! ```
//!
//! It judges nothing that needs the files one by one, and plans nothing: commits and rewrites go by [`crate::load()`]. Whatever
//! looks odd sends the survey there, too.

mod checkpoint;
mod columns;
mod commits;
mod identity;
mod log_facts;
mod maintenance;
mod partitions;
mod replay;
mod row_counts;
mod segment;
mod statistics;
mod storage;
mod window;

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::health::{FileTally, HealthFacts, StatisticsFacts, TalliedFile, TalliedFiles};
use lakesmith_core::layout::tag::packed_for;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::op::health::HealthOptions;
use lakesmith_core::plan::ZCUBE_TAG;
use lakesmith_core::table::FileTable;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use serde_json::{Map, Value};

use self::checkpoint::{CheckpointReader, Part};
use self::log_facts::LogReading;
use self::maintenance::Search;
use self::replay::{Replay, Vector};
pub use self::row_counts::{PartitionRows, row_counts};
use self::segment::{LogListing, Segment};
use self::statistics::{Judge, Sample};
use self::storage::LiveFiles;
use crate::commit_info::read_commit_info;
use crate::log_files::{CommitFile, LOG_FOLDER, not_a_table};
use crate::log_state::DeltaTable;
use crate::log_view::LogView;
use crate::retention::{FILE_RETENTION, LOG_RETENTION};
use crate::version_file::VersionFile;
use crate::version_state::VersionState;
use crate::{Needs, check_writable, engine, features, file_rows, load, references};

/// Files whose statistics are looked at.
const SAMPLE: usize = 1_000;
/// The same of a deep survey; those of a checkpoint are not kept and not counted here.
const SAMPLE_DEEP: usize = 200_000;
/// Commits read at once.
const COMMITS_AT_ONCE: usize = 32;
const COMMIT_BYTES_AT_ONCE: u64 = 8 << 20;

/// What a survey found.
#[derive(Debug)]
pub struct Survey {
    /// The table; its files may not have been loaded: `facts` has what is known of them.
    pub table: DeltaTable,
    /// The facts for [`lakesmith_core::health::diagnose`].
    pub facts: HealthFacts,
}

/// Something that this reader does not understand, or that failed.
#[derive(Debug)]
pub(crate) struct Odd {
    reason: String,
    error: Option<Error>,
}

pub(crate) fn odd(reason: impl Into<String>) -> Odd {
    Odd { reason: reason.into(), error: None }
}

impl From<Error> for Odd {
    fn from(error: Error) -> Self {
        Self { reason: error.message().to_owned(), error: Some(error) }
    }
}

/// Surveys the table at `root`.
///
/// # Errors
/// As [`crate::load()`].
pub async fn survey(store: &Store, root: &Location, options: &HealthOptions, now_ms: i64) -> Result<Survey> {
    survey_by(store, root, options, now_ms, true).await
}

/// The same through the kernel alone, to compare with.
///
/// # Errors
/// As [`crate::load()`].
pub async fn survey_by_kernel(store: &Store, root: &Location, options: &HealthOptions, now_ms: i64) -> Result<Survey> {
    survey_by(store, root, options, now_ms, false).await
}

async fn survey_by(
    store: &Store,
    root: &Location,
    options: &HealthOptions,
    now_ms: i64,
    direct: bool,
) -> Result<Survey> {
    let listing = LogListing::new(root, store.list_from(&root.join(LOG_FOLDER), "").await?);
    if listing.files.commits.is_empty() && listing.files.checkpoints.is_empty() {
        return Err(not_a_table(root));
    }
    let version = match &options.at {
        TimeTravel::Latest => listing.files.latest(),
        TimeTravel::Version(version) => {
            listing.files.check_version(*version, root)?;
            *version
        }
        TimeTravel::Timestamp(timestamp_ms) => load::version_at(store, root, *timestamp_ms).await?,
        TimeTravel::Reference(name) => return Err(load::no_references(root, name)),
    };
    let reading =
        if direct { read_directly(store, root, &listing, version, options).await } else { Err(odd("not wanted")) };
    let reading = match reading {
        Ok(reading) => reading,
        Err(Odd { error: Some(error), .. })
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled) =>
        {
            return Err(error);
        }
        Err(odd) => {
            tracing::debug!(reason = odd.reason, "the log is read by the kernel");
            let at = if options.at == TimeTravel::Latest { TimeTravel::Latest } else { TimeTravel::Version(version) };
            read_by_kernel(store, root, at, options).await?
        }
    };
    finish(store, root, listing, options, now_ms, reading).await
}

/// What was read of one version, by either reader.
struct Reading {
    table: DeltaTable,
    files: TalliedFiles,
    statistics: StatisticsFacts,
    /// The state of the direct reader, for tombstones.
    replay: Option<Replay>,
    live: Option<LiveFiles>,
    /// Commits whose `commitInfo` is known already, newest first.
    commits: Vec<(CommitFile, Option<Map<String, Value>>)>,
    source: &'static str,
}

async fn finish(
    store: &Store,
    root: &Location,
    listing: LogListing,
    options: &HealthOptions,
    now_ms: i64,
    reading: Reading,
) -> Result<Survey> {
    let state = Arc::clone(&reading.table.state);
    let latest = options.at == TimeTravel::Latest;
    let vacuumed_ms = listing.named("_last_vacuum_info").filter(|_| latest).map(|info| info.modified_ms);
    let mut search = Search::new(now_ms, options.history_commits, vacuumed_ms);
    for (commit, info) in reading.commits.iter().take(usize::try_from(options.history_commits).unwrap_or(usize::MAX)) {
        search.take(commit, info.as_ref());
    }
    let oldest_read = reading.commits.last().map_or(state.version + 1, |(commit, _)| commit.version);
    let older = listing.files.commits.iter().rev().filter(|c| c.version < oldest_read).cloned().collect();
    let maintenance = search.finish(store, older).await;

    let retention_ms = FILE_RETENTION.value_or_default(state.property(FILE_RETENTION.key));
    let cutoff_ms = now_ms.saturating_sub(retention_ms);
    let vacuumed_before_ms = maintenance.last_vacuum.map(|run| run.time_ms.saturating_sub(retention_ms));
    let tombstones = reading.replay.as_ref().map(|r| r.tombstones(cutoff_ms, vacuumed_before_ms, retention_ms));
    let storage = match reading.live {
        Some(live) => {
            let mut found = live.inspect(store, &references::names(&reading.table)).await?;
            found.reclaimable = storage::reclaimable(store, root, now_ms).await?;
            Some(found)
        }
        None => None,
    };
    let log = LogReading {
        store,
        root,
        listing: &listing,
        table: &reading.table,
        retention_ms: LOG_RETENTION.value_or_default(state.property(LOG_RETENTION.key)),
        now_ms,
    };
    let log = log.facts().await;
    let blocked = check_writable(&reading.table).err().map(|error| {
        let features = error.context_value("features").map(|f| f.split(", ").map(str::to_owned).collect());
        (error.message().to_owned(), features.unwrap_or_default())
    });
    let facts = HealthFacts {
        files: reading.files,
        log,
        tombstones,
        statistics: reading.statistics,
        layout: Vec::new(),
        storage,
        maintenance,
        blocked,
        source: reading.source,
        snapshots: None,
        read_only: false,
    };
    Ok(Survey { table: reading.table, facts })
}

async fn read_directly(
    store: &Store,
    root: &Location,
    listing: &LogListing,
    version: u64,
    options: &HealthOptions,
) -> std::result::Result<Reading, Odd> {
    let segment = listing.segment(version)?;
    let runtime = tokio::runtime::Handle::current();
    let reader = DirectReader { store: store.clone(), root: root.clone(), runtime, options: options.clone() };
    engine::blocking(move || Ok(reader.read(&segment))).await?
}

struct DirectReader {
    store: Store,
    root: Location,
    runtime: tokio::runtime::Handle,
    options: HealthOptions,
}

impl DirectReader {
    fn read(&self, segment: &Segment) -> std::result::Result<Reading, Odd> {
        let deep = self.options.deep;
        let mut replay =
            Replay::new(&self.root, self.options.sizes.target_bytes, deep.then(|| LiveFiles::new(&self.root)));
        let mut sample = Sample::new(if deep { SAMPLE_DEEP } else { SAMPLE });
        let mut commits = Vec::new();
        for group in groups(&segment.commits) {
            for (commit, bytes) in group.iter().zip(fetch(&self.store, &self.runtime, group)?) {
                let number = commits.len() as u32;
                let info = commits::take_commit(&mut replay, &mut sample, &bytes, number)?;
                commits.push((commit.clone(), info));
            }
        }
        let parts = match &segment.checkpoint {
            Some((_, files)) => {
                let reader = CheckpointReader {
                    store: &self.store,
                    root: &self.root,
                    runtime: self.runtime.clone(),
                    remember: if deep { usize::MAX } else { SAMPLE },
                };
                reader.take(files, &mut replay, &mut sample)?
            }
            None => Vec::new(),
        };
        let table = self.table(&mut replay, segment, &commits)?;
        let statistics = self.statistics(&table, &mut replay, sample, &parts)?;
        let partitions = std::mem::take(&mut replay.partitions);
        let (partitions, places) = partitions.resolve(&table.state.schema, &table.state.partition_columns)?;
        let files = std::mem::take(&mut replay.tally).finish(partitions, &places);
        let live = replay.live.take();
        Ok(Reading { table, files, statistics, replay: Some(replay), live, commits, source: "checkpoint" })
    }

    fn statistics(
        &self,
        table: &DeltaTable,
        replay: &mut Replay,
        sample: Sample,
        parts: &[Part],
    ) -> std::result::Result<StatisticsFacts, Odd> {
        let mut judge = Judge::new(table);
        let mut room = if self.options.deep { usize::MAX } else { sample.room() };
        for text in sample.into_texts() {
            judge.take(text.as_deref());
        }
        let tally = &mut replay.tally;
        for part in parts {
            let mut sampled = 0;
            part.statistics(room, &mut |place, text, in_sample| {
                if let Some(rows) = text.and_then(file_rows::num_records) {
                    tally.set_rows(place, rows);
                }
                if in_sample {
                    sampled += 1;
                    judge.take(text);
                }
            })?;
            room = room.saturating_sub(sampled);
        }
        Ok(judge.finish(tally.len() as u64))
    }

    /// The timestamp that the version's commit carries.
    fn own_timestamp(
        &self,
        segment: &Segment,
        commits: &[(CommitFile, Option<Map<String, Value>>)],
    ) -> std::result::Result<i64, Odd> {
        let own = segment.own.as_ref().ok_or_else(|| odd("the version's commit is gone, and its timestamp with it"))?;
        let read;
        let info = match commits.first().filter(|(commit, _)| commit.version == own.version) {
            Some((_, info)) => info.as_ref(),
            None => {
                read = self.runtime.block_on(read_commit_info(&self.store, own))?;
                read.as_ref()
            }
        };
        let timestamp_ms = info.and_then(|info| info.get("inCommitTimestamp")?.as_i64());
        timestamp_ms.ok_or_else(|| odd("the commit has no timestamp of its own"))
    }

    fn table(
        &self,
        replay: &mut Replay,
        segment: &Segment,
        commits: &[(CommitFile, Option<Map<String, Value>>)],
    ) -> std::result::Result<DeltaTable, Odd> {
        let protocol = replay.protocol.take().ok_or_else(|| odd("the log holds no protocol"))?;
        let metadata = replay.metadata.take().ok_or_else(|| odd("the log holds no metadata"))?;
        if !features::can_be_surveyed(&protocol) {
            return Err(odd("the protocol asks for more than this reader knows"));
        }
        let domains = std::mem::take(&mut replay.domains)
            .into_iter()
            .filter_map(|(name, configuration)| Some((name, configuration?)))
            .collect();
        let own_clock = features::expand(&protocol).iter().any(|f| f == "inCommitTimestamp")
            && metadata
                .configuration
                .get("delta.enableInCommitTimestamps")
                .is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let commit_timestamp_ms = if own_clock {
            self.own_timestamp(segment, commits)?
        } else {
            let checkpoint = segment.checkpoint.as_ref().and_then(|(_, files)| files.files().first());
            segment.own.as_ref().map(|c| &c.info).or(checkpoint).map_or(0, |info| info.modified_ms)
        };
        let state = VersionState {
            version: segment.version,
            protocol,
            metadata,
            domains,
            commit_timestamp_ms,
            in_commit_timestamps: own_clock,
            checkpoint_version: segment.checkpoint.as_ref().map(|(version, _)| *version),
            // Such a log goes to the kernel.
            empty_commit: None,
            file: segment.file().map(VersionFile::of),
            view: LogView::default(),
        };
        let schema = state.schema()?;
        Ok(state.into_table(&self.root, schema, FileTable::default())?)
    }
}

fn fetch(store: &Store, runtime: &tokio::runtime::Handle, commits: &[CommitFile]) -> Result<Vec<bytes::Bytes>> {
    let fetched = futures::stream::iter(commits.iter().map(|c| store.get(&c.info.location)));
    runtime.block_on(fetched.buffered(COMMITS_AT_ONCE).try_collect())
}

/// Commits to fetch together: a few, and not too many bytes.
fn groups(commits: &[CommitFile]) -> Vec<&[CommitFile]> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, commit) in commits.iter().enumerate() {
        if place > start && (place - start == COMMITS_AT_ONCE || bytes + commit.info.size > COMMIT_BYTES_AT_ONCE) {
            groups.push(&commits[start..place]);
            (start, bytes) = (place, 0);
        }
        bytes += commit.info.size;
    }
    if start < commits.len() {
        groups.push(&commits[start..]);
    }
    groups
}

async fn read_by_kernel(store: &Store, root: &Location, at: TimeTravel, options: &HealthOptions) -> Result<Reading> {
    let table = load::load(store, root, at, Needs { files: true, stats: options.deep }).await?;
    let mut tally = FileTally::new(options.sizes.target_bytes);
    let mut judge = Judge::new(&table);
    let mut live = options.deep.then(|| LiveFiles::new(root));
    for file in table.state.files.iter() {
        let deletes = file.deletes;
        tally.push(TalliedFile {
            partition: file.partition_index,
            size: file.size,
            modified_ms: file.modified_ms,
            rows: file.rows,
            deleted: deletes.map(|d| d.cardinality),
            target: packed_for(file.marks),
            in_cube: file.marks.tag(ZCUBE_TAG).is_some(),
        });
        if options.deep {
            judge.take(file.stats_json);
        }
        if let Some(live) = &mut live {
            let vector = deletes.map(|d| Vector {
                storage_type: &d.storage_type,
                path_or_inline: &d.path_or_inline,
                offset: d.offset,
                cardinality: i64::try_from(d.cardinality).unwrap_or(i64::MAX),
            });
            live.insert(file.path, file.size, vector).map_err(|odd| Error::corrupt(odd.reason).with("path", root))?;
        }
    }
    let partitions = table.state.files.partitions().to_vec();
    let places: Vec<u32> = (0..partitions.len() as u32).collect();
    let files = tally.finish(partitions, &places);
    let statistics = judge.finish(files.len() as u64);
    Ok(Reading { table, files, statistics, replay: None, live, commits: Vec::new(), source: "kernel" })
}
