//! How many rows a version has, partition by partition: what the log says of its files is added up, and no file is kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use lakesmith_core::table::PartitionTuple;
use lakesmith_core::{ErrorKind, Result};
use lakesmith_storage::{Location, ObjectInfo, Store};

use super::checkpoint::{ROWS_COLUMN, STATS_COLUMN, Source, sidecar_files};
use super::columns::{StringMaps, Vectors, long, longs, needed, strings, structs, top};
use super::identity::{self, Seen};
use super::partitions::RawPartitions;
use super::replay::{Replay, check_spelling};
use super::segment::{LogListing, Segment};
use super::statistics::Sample;
use super::{Odd, commits, groups, odd};
use crate::log_files::LOG_FOLDER;
use crate::log_state::DeltaTable;
use crate::{engine, features, file_rows};

/// What is needed of live files, besides their rows.
const COLUMNS: [&str; 7] = [
    "add.path",
    "add.size",
    "add.partitionValues",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "add.deletionVector.offset",
    "add.deletionVector.cardinality",
];

/// The files of one partition, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRows {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows, deleted ones left out; `None` if the log does not tell of each file.
    pub rows: Option<u64>,
}

impl Default for PartitionRows {
    fn default() -> Self {
        Self { files: 0, bytes: 0, rows: Some(0) }
    }
}

impl PartitionRows {
    fn add(&mut self, other: PartitionRows) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.rows = self.rows.zip(other.rows).and_then(|(a, b)| a.checked_add(b));
    }
}

/// Sums by the number of the partition's raw values.
#[derive(Debug, Default)]
pub(super) struct Sums(Vec<PartitionRows>);

impl Sums {
    /// Adds a file with so many physical rows, and so many of them deleted.
    pub(super) fn add(&mut self, partition: u32, size: u64, rows: Option<u64>, deleted: u64) {
        let rows = rows.and_then(|rows| rows.checked_sub(deleted));
        self.add_all(partition, PartitionRows { files: 1, bytes: size, rows });
    }

    fn add_all(&mut self, partition: u32, files: PartitionRows) {
        let place = partition as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, PartitionRows::default());
        }
        self.0[place].add(files);
    }
}

/// The rows of `table`'s version by partition, in no order; its own files need not be loaded. `None`: the log is not one
/// that this reader understands.
///
/// # Errors
/// Unavailable, Cancelled.
pub async fn row_counts(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
) -> Result<Option<Vec<(PartitionTuple, PartitionRows)>>> {
    match read(store, root, table).await {
        Ok(found) => Ok(Some(found)),
        Err(Odd { error: Some(error), .. })
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled) =>
        {
            Err(error)
        }
        Err(odd) => {
            tracing::debug!(reason = odd.reason, "rows are counted by the kernel");
            Ok(None)
        }
    }
}

async fn read(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
) -> std::result::Result<Vec<(PartitionTuple, PartitionRows)>, Odd> {
    if !features::can_be_surveyed(&table.log.protocol) {
        return Err(odd("the protocol asks for more than this reader knows"));
    }
    let listing = LogListing::new(root, store.list_from(&root.join(LOG_FOLDER), "").await?);
    let segment = listing.segment(table.state.version)?;
    let reader = Reader { store: store.clone(), root: root.clone(), runtime: tokio::runtime::Handle::current() };
    let state = std::sync::Arc::clone(&table.state);
    engine::blocking(move || {
        Ok(reader.read(&segment).and_then(|replay| {
            let (tuples, places) = replay.partitions.resolve(&state.schema, &state.partition_columns)?;
            let mut found: Vec<_> = tuples.into_iter().map(|tuple| (tuple, PartitionRows::default())).collect();
            for (sum, place) in replay.sums.0.iter().zip(&places) {
                found[*place as usize].1.add(*sum);
            }
            found.retain(|(_, rows)| rows.files > 0);
            Ok(found)
        }))
    })
    .await?
}

struct Reader {
    store: Store,
    root: Location,
    runtime: tokio::runtime::Handle,
}

impl Reader {
    fn read(&self, segment: &Segment) -> std::result::Result<Replay, Odd> {
        let mut replay = Replay::new(&self.root, 0, None);
        let mut sample = Sample::new(0);
        let mut number = 0;
        for group in groups(&segment.commits) {
            for bytes in super::fetch(&self.store, &self.runtime, group)? {
                commits::take_commit(&mut replay, &mut sample, &bytes, number)?;
                number += 1;
            }
        }
        let Some((_, files)) = &segment.checkpoint else { return Ok(replay) };
        let mut sidecars = Vec::new();
        let mut parts = Vec::new();
        for info in files.files() {
            if info.location.to_string().ends_with(".json") {
                let bytes = self.runtime.block_on(self.store.get(&info.location))?;
                sidecars.extend(commits::take_head(&mut replay, &mut sample, &bytes)?);
            } else {
                let source = self.open(info)?;
                source.take_sidecars(&mut sidecars)?;
                parts.push((info.clone(), source));
            }
        }
        for info in sidecar_files(&self.root, &sidecars)? {
            let (source, mut nested) = (self.open(&info)?, Vec::new());
            source.take_sidecars(&mut nested)?;
            if !nested.is_empty() {
                return Err(odd("a sidecar names sidecars"));
            }
            parts.push((info, source));
        }
        self.count(&parts, &mut replay)?;
        Ok(replay)
    }

    fn open(&self, info: &ObjectInfo) -> std::result::Result<Source, Odd> {
        Source::open(&self.store, info, self.runtime.clone())
    }

    /// Adds up the row groups of the checkpoint's files, some at once.
    fn count(&self, parts: &[(ObjectInfo, Source)], replay: &mut Replay) -> std::result::Result<(), Odd> {
        let jobs: Vec<(&(ObjectInfo, Source), usize)> =
            parts.iter().flat_map(|part| (0..part.1.groups()).map(move |group| (part, group))).collect();
        let next = AtomicUsize::new(0);
        let seen = &replay.seen;
        let work = || {
            let mut counted = Counted::default();
            while let Some((part, group)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let source = part.1.apart(&self.store, &part.0, self.runtime.clone())?;
                counted.take_group(&source, *group, &self.root, seen)?;
            }
            Ok::<_, Odd>(counted)
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(jobs.len());
        let all: Vec<std::result::Result<Counted, Odd>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let failed = |_| Err(odd("a thread that counts rows has failed"));
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(failed)).collect()
        });
        for counted in all {
            let counted = counted?;
            for (values, sum) in counted.partitions.values().zip(counted.sums.0) {
                let values = values.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
                let partition = replay.partitions.number(values);
                replay.sums.add_all(partition, sum);
            }
        }
        Ok(())
    }
}

/// What one thread has added up.
#[derive(Default)]
struct Counted {
    partitions: RawPartitions,
    sums: Sums,
}

impl Counted {
    fn take_group(
        &mut self,
        source: &Source,
        group: usize,
        root: &Location,
        seen: &Seen,
    ) -> std::result::Result<(), Odd> {
        let rows = if source.has_column(ROWS_COLUMN) { ROWS_COLUMN } else { STATS_COLUMN };
        let columns = COLUMNS.into_iter().chain(std::iter::once(rows));
        for batch in source.read(group, columns, None)?.into_iter().flatten() {
            self.take(&batch.map_err(|e| odd(e.to_string()))?, root, seen)?;
        }
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch, root: &Location, seen: &Seen) -> std::result::Result<(), Odd> {
        let Some(adds) = top(batch, "add")?.filter(|a| a.null_count() < a.len()) else { return Ok(()) };
        let path = needed(strings(adds, "path")?, "add.path")?;
        let size = needed(longs(adds, "size")?, "add.size")?;
        let partition_values = StringMaps::of(adds, "partitionValues")?;
        let vectors = Vectors::of(adds)?;
        let counts = structs(adds, "stats_parsed")?.map(|s| longs(s, "numRecords")).transpose()?.flatten();
        let stats = adds.column_by_name("stats");
        let stats = stats.map(|column| column.as_string_view_opt().ok_or_else(|| odd("statistics are no text")));
        let stats = stats.transpose()?;
        for row in (0..adds.len()).filter(|row| adds.is_valid(*row)) {
            if path.is_null(row) || size.is_null(row) {
                return Err(odd("a file of the checkpoint has no path or no size"));
            }
            let vector = vectors.as_ref().map(|v| v.row(row)).transpose()?.flatten();
            if !seen.is_empty() {
                let vector_id = vector.map(|v| v.id());
                if seen.contains(identity::of_file(path.value(row), vector_id.as_deref())) {
                    continue;
                }
            }
            check_spelling(path.value(row), root)?;
            let partition = match partition_values {
                Some(values) => self.partitions.number(values.row(row)),
                None => self.partitions.number(std::iter::empty()),
            };
            let size = u64::try_from(size.value(row)).map_err(|_| odd("a file has a negative size"))?;
            let deleted = vector.map_or(Ok(0), |v| u64::try_from(v.cardinality));
            let deleted = deleted.map_err(|_| odd("a vector has a negative cardinality"))?;
            let rows = match counts {
                Some(_) => long(counts, row).and_then(|n| u64::try_from(n).ok()),
                None => {
                    let text = stats.filter(|stats| stats.is_valid(row)).map(|stats| stats.value(row));
                    text.and_then(file_rows::num_records)
                }
            };
            self.sums.add(partition, size, rows, deleted);
        }
        Ok(())
    }
}
