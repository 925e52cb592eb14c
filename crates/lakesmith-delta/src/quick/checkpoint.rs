//! A checkpoint's needed columns, read without the statistics that make up most of it.
//!
//! # Source
//! Delta PROTOCOL.md, "Checkpoints" (classic, multi-part, V2 with sidecars) and "Checkpoint Schema".

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use arrow::array::{Array, AsArray, ListArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema};
use lakesmith_storage::{Location, ObjectInfo, Store};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use serde_json::Map;

use super::columns::{StringMaps, Vectors, int, lists, long, longs, needed, strings, structs, text, top};
use super::replay::{AddedFile, RemovedFile, Replay, marks};
use super::segment::CheckpointFiles;
use super::window::WindowedFile;
use super::{Odd, commits, odd};
use crate::actions::{DomainMetadata, Format, Metadata, Protocol, Sidecar};
use crate::log_files::LOG_FOLDER;
use crate::quick::columns::ints;
use crate::quick::statistics::Sample;

const BATCH_ROWS: usize = 8192;
/// Batches that are decoded while one is counted.
const BATCHES_AHEAD: usize = 4;
pub(super) const ROWS_COLUMN: &str = "add.stats_parsed.numRecords";
pub(super) const STATS_COLUMN: &str = "add.stats";
/// What a survey needs of live files; columns that a checkpoint lacks are left out.
const ADD_COLUMNS: [&str; 10] = [
    "add.path",
    "add.size",
    "add.modificationTime",
    "add.partitionValues",
    "add.deletionVector.storageType",
    "add.deletionVector.pathOrInlineDv",
    "add.deletionVector.offset",
    "add.deletionVector.cardinality",
    "add.tags",
    ROWS_COLUMN,
];
/// One column of each other kind of action: it tells which rows hold one, and those are few.
const SCOUTS: [(&str, &str); 5] = [
    ("protocol", "minReaderVersion"),
    ("metaData", "id"),
    ("domainMetadata", "domain"),
    ("sidecar", "path"),
    ("remove", "path"),
];
/// What a survey needs of the other kinds.
const OTHER_COLUMNS: [&str; 8] = [
    "protocol",
    "metaData",
    "domainMetadata",
    "sidecar",
    "remove.path",
    "remove.size",
    "remove.deletionTimestamp",
    "remove.deletionVector",
];

/// A Parquet file of a checkpoint whose file actions were taken in, for a second look at its statistics.
pub(crate) struct Part {
    source: Source,
    /// Rows of live files, ascending: number of the row, place of the file in the tally.
    live: Vec<(u64, u32)>,
    /// Live files with a vector whose rows are not known yet: number of the row, place.
    uncounted: Vec<(u64, u32)>,
}

/// A Parquet file and its footer.
#[derive(Clone)]
pub(super) struct Source {
    file: WindowedFile,
    metadata: ArrowReaderMetadata,
}

/// A batch, and the number of its row group.
type Decoded = Result<(usize, RecordBatch), Odd>;

/// Reads the checkpoints of one table. To be used on blocking threads only.
pub(crate) struct CheckpointReader<'a> {
    pub store: &'a Store,
    pub root: &'a Location,
    pub runtime: tokio::runtime::Handle,
    /// Live rows that a part remembers.
    pub remember: usize,
}

impl CheckpointReader<'_> {
    /// Takes in the whole checkpoint and returns its Parquet parts.
    ///
    /// # Errors
    /// A checkpoint that this reader does not understand, or that the storage does not give.
    pub(crate) fn take(
        &self,
        files: &CheckpointFiles,
        replay: &mut Replay,
        sample: &mut Sample,
    ) -> Result<Vec<Part>, Odd> {
        let mut parts = Vec::new();
        let mut sidecars = Vec::new();
        for info in files.files() {
            if info.location.to_string().ends_with(".json") {
                let bytes = self.runtime.block_on(self.store.get(&info.location))?;
                sidecars.extend(commits::take_head(replay, sample, &bytes)?);
            } else {
                parts.push(self.take_parquet(info, replay, &mut sidecars)?);
            }
        }
        for info in sidecar_files(self.root, &sidecars)? {
            let mut nested = Vec::new();
            parts.push(self.take_parquet(&info, replay, &mut nested)?);
            if !nested.is_empty() {
                return Err(odd("a sidecar names sidecars"));
            }
        }
        Ok(parts)
    }

    fn take_parquet(&self, info: &ObjectInfo, replay: &mut Replay, sidecars: &mut Vec<Sidecar>) -> Result<Part, Odd> {
        let source = Source::open(self.store, info, self.runtime.clone())?;
        let mut part = Part { source: source.clone(), live: Vec::new(), uncounted: Vec::new() };
        let mut others: Vec<Vec<Range<usize>>> = vec![Vec::new(); source.groups()];
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            scope.spawn(|| source.send_adds(sender));
            let (mut current, mut first_row, mut row) = (0, 0, 0);
            for decoded in batches {
                let (group, batch) = decoded?;
                while current < group {
                    first_row += source.rows(current)? as u64;
                    (current, row) = (current + 1, 0);
                }
                self.take_adds(&batch, first_row + row as u64, replay, &mut part)?;
                rows_of_others(&batch, row, &mut others[group])?;
                row += batch.num_rows();
            }
            Ok::<(), Odd>(())
        })?;
        for (group, others) in others.into_iter().enumerate().filter(|(_, others)| !others.is_empty()) {
            let selection = RowSelection::from_consecutive_ranges(others.into_iter(), source.rows(group)?);
            for batch in source.read(group, OTHER_COLUMNS, Some(selection))?.into_iter().flatten() {
                let batch = batch.map_err(|e| odd(e.to_string()))?;
                take_removes(&batch, replay)?;
                take_table(&batch, replay)?;
                take_sidecars(&batch, sidecars)?;
            }
        }
        Ok(part)
    }

    fn take_adds(&self, batch: &RecordBatch, first_row: u64, replay: &mut Replay, part: &mut Part) -> Result<(), Odd> {
        let Some(adds) = top(batch, "add")?.filter(|a| a.null_count() < a.len()) else { return Ok(()) };
        let path = needed(strings(adds, "path")?, "add.path")?;
        let size = needed(longs(adds, "size")?, "add.size")?;
        let modified = longs(adds, "modificationTime")?;
        let partition_values = StringMaps::of(adds, "partitionValues")?;
        let vectors = Vectors::of(adds)?;
        let tags = StringMaps::of(adds, "tags")?;
        let rows = structs(adds, "stats_parsed")?.map(|s| longs(s, "numRecords")).transpose()?.flatten();
        for row in (0..adds.len()).filter(|row| adds.is_valid(*row)) {
            if path.is_null(row) || size.is_null(row) {
                return Err(odd("a file of the checkpoint has no path or no size"));
            }
            let partition = match partition_values {
                Some(values) => replay.partitions.number(values.row(row)),
                None => replay.partitions.number(std::iter::empty()),
            };
            let (target, in_cube) = tags.map_or((None, false), |tags| marks(tags.row(row)));
            let add = AddedFile {
                path: path.value(row),
                size: size.value(row),
                modified_ms: long(modified, row).unwrap_or(0),
                rows: long(rows, row).and_then(|n| u64::try_from(n).ok()),
                vector: vectors.as_ref().map(|v| v.row(row)).transpose()?.flatten(),
                partition,
                target,
                in_cube,
            };
            if let Some(place) = replay.add_of_checkpoint(&add)? {
                let number = first_row + row as u64;
                if part.live.len() < self.remember {
                    part.live.push((number, place));
                }
                if add.vector.is_some() && add.rows.is_none() {
                    part.uncounted.push((number, place));
                }
            }
        }
        Ok(())
    }
}

fn with_statistics_as_views(schema: &Schema) -> Schema {
    let stats = |field: &FieldRef| match (field.name().as_str(), field.data_type()) {
        ("stats", DataType::Utf8) => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => Arc::clone(field),
    };
    let fields = schema.fields().iter().map(|field| match (field.name().as_str(), field.data_type()) {
        ("add", DataType::Struct(inner)) => {
            let inner = DataType::Struct(inner.iter().map(stats).collect());
            Arc::new(field.as_ref().clone().with_data_type(inner))
        }
        _ => Arc::clone(field),
    });
    Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone())
}

/// Where sidecars lie.
pub(super) fn sidecar_files(root: &Location, sidecars: &[Sidecar]) -> Result<Vec<ObjectInfo>, Odd> {
    let folder = root.join(LOG_FOLDER).join("_sidecars");
    let file = |sidecar: &Sidecar| {
        let size = u64::try_from(sidecar.size_in_bytes).map_err(|_| odd("a sidecar has a negative size"))?;
        // A plain name is below the folder of sidecars; anything else is a URI.
        let location =
            if sidecar.path.contains('/') { root.resolve(&sidecar.path)? } else { folder.resolve(&sidecar.path)? };
        Ok(ObjectInfo { location, size, modified_ms: sidecar.modification_time })
    };
    sidecars.iter().map(file).collect()
}

impl Source {
    pub(super) fn open(store: &Store, info: &ObjectInfo, runtime: tokio::runtime::Handle) -> Result<Self, Odd> {
        let file = WindowedFile::new(store, &info.location, info.size, runtime);
        // The Arrow schema in the footer is the writer's own choice of types.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        Ok(Self { file, metadata })
    }

    /// The same file, to be read beside this one. Statistics come as views: they are long, and only their beginnings count.
    pub(super) fn apart(&self, store: &Store, info: &ObjectInfo, runtime: tokio::runtime::Handle) -> Result<Self, Odd> {
        let file = WindowedFile::new(store, &info.location, info.size, runtime);
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let options = options.with_schema(Arc::new(with_statistics_as_views(self.metadata.schema())));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)?;
        Ok(Self { file, metadata })
    }

    /// The sidecars that it names.
    pub(super) fn take_sidecars(&self, sidecars: &mut Vec<Sidecar>) -> Result<(), Odd> {
        for group in 0..self.groups() {
            for batch in self.read(group, ["sidecar"], None)?.into_iter().flatten() {
                take_sidecars(&batch.map_err(|e| odd(e.to_string()))?, sidecars)?;
            }
        }
        Ok(())
    }

    pub(super) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Sends what is needed of live files, row group by row group; ends early if nobody listens any more.
    fn send_adds(&self, to: SyncSender<Decoded>) {
        let scouts: Vec<String> = SCOUTS.iter().map(|(kind, column)| format!("{kind}.{column}")).collect();
        for group in 0..self.groups() {
            let columns = ADD_COLUMNS.into_iter().chain(scouts.iter().map(String::as_str));
            let batches = match self.read(group, columns, None) {
                Ok(batches) => batches,
                Err(odd) => {
                    let _nobody_listens = to.send(Err(odd));
                    return;
                }
            };
            for batch in batches.into_iter().flatten() {
                let decoded = batch.map(|batch| (group, batch)).map_err(|e| odd(e.to_string()));
                let failed = decoded.is_err();
                if to.send(decoded).is_err() || failed {
                    return;
                }
            }
        }
    }

    fn rows(&self, group: usize) -> Result<usize, Odd> {
        let rows = self.metadata.metadata().row_group(group).num_rows();
        usize::try_from(rows).map_err(|_| odd("a checkpoint has a negative number of rows"))
    }

    pub(super) fn has_column(&self, name: &str) -> bool {
        let schema = self.metadata.parquet_schema();
        (0..schema.num_columns()).any(|leaf| schema.column(leaf).path().string() == name)
    }

    /// The leaves of these columns that hold anything in a row group, by its statistics. A map is read whole or not at all.
    fn leaves<'a>(&self, group: usize, columns: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
        let schema = self.metadata.parquet_schema();
        let mask = ProjectionMask::columns(schema, columns);
        let row_group = self.metadata.metadata().row_group(group);
        let wanted: Vec<usize> = (0..schema.num_columns()).filter(|leaf| mask.leaf_included(*leaf)).collect();
        let filled = |leaf: &usize| {
            let column = row_group.column(*leaf);
            let nulls = column.statistics().and_then(|s| s.null_count_opt());
            nulls.is_none_or(|nulls| i64::try_from(nulls).ok() != Some(column.num_values()))
        };
        let map_of =
            |leaf: usize| schema.column(leaf).path().string().split_once(".key_value.").map(|(map, _)| map.to_owned());
        let maps: BTreeSet<String> =
            wanted.iter().filter(|leaf| filled(leaf)).filter_map(|leaf| map_of(*leaf)).collect();
        wanted.into_iter().filter(|leaf| filled(leaf) || map_of(*leaf).is_some_and(|map| maps.contains(&map))).collect()
    }

    /// Rows of one row group; `None` if these columns hold nothing there.
    pub(super) fn read<'a>(
        &self,
        group: usize,
        columns: impl IntoIterator<Item = &'a str>,
        selection: Option<RowSelection>,
    ) -> Result<Option<ParquetRecordBatchReader>, Odd> {
        let leaves = self.leaves(group, columns);
        if leaves.is_empty() {
            return Ok(None);
        }
        let row_group = self.metadata.metadata().row_group(group);
        let range = |leaf: &usize| {
            let (start, length) = row_group.column(*leaf).byte_range();
            start..start + length
        };
        self.file.announce(leaves.iter().map(range).collect());
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), leaves);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS);
        let builder = match selection {
            Some(selection) => builder.with_row_selection(selection),
            None => builder,
        };
        Ok(Some(builder.build()?))
    }
}

impl Part {
    /// Looks at the statistics of up to `limit` live files and of those whose rows are still wanted.
    ///
    /// `each` gets the place of the file and its statistics, and whether it is one of the former.
    pub(crate) fn statistics(&self, limit: usize, each: &mut dyn FnMut(u32, Option<&str>, bool)) -> Result<(), Odd> {
        let sampled = &self.live[..limit.min(self.live.len())];
        let last_sampled = sampled.last().map(|(row, _)| *row);
        let more = self.uncounted.iter().filter(|(row, _)| last_sampled.is_none_or(|last| *row > last));
        let wanted: Vec<(u64, u32)> = sampled.iter().chain(more).copied().collect();
        if !self.source.has_column(STATS_COLUMN) {
            if !self.source.has_column(ROWS_COLUMN) {
                sampled.iter().for_each(|(_, place)| each(*place, None, true));
            }
            return Ok(());
        }
        let (mut first_row, mut done) = (0, 0);
        for group in 0..self.source.groups() {
            let rows = self.source.rows(group)?;
            let end = wanted.partition_point(|(row, _)| *row < first_row + rows as u64);
            let here = &wanted[done..end];
            let ranges = here.iter().map(|(row, _)| (*row - first_row) as usize).map(|row| row..row + 1);
            let selection = RowSelection::from_consecutive_ranges(ranges, rows);
            let mut read = 0;
            if !here.is_empty() {
                match self.source.read(group, [STATS_COLUMN], Some(selection))? {
                    Some(batches) => {
                        for batch in batches {
                            let batch = batch.map_err(|e| odd(e.to_string()))?;
                            let adds = needed(top(&batch, "add")?, "add")?;
                            let stats = needed(strings(adds, "stats")?, STATS_COLUMN)?;
                            for row in 0..batch.num_rows() {
                                let (_, place) = here.get(read).ok_or_else(|| odd("more rows than were asked for"))?;
                                each(*place, text(Some(stats), row), done + read < sampled.len());
                                read += 1;
                            }
                        }
                    }
                    None => {
                        for (_, place) in here {
                            each(*place, None, done + read < sampled.len());
                            read += 1;
                        }
                    }
                }
            }
            if read != here.len() {
                return Err(odd("fewer rows than were asked for"));
            }
            (first_row, done) = (first_row + rows as u64, end);
        }
        Ok(())
    }
}

/// The rows of a batch that hold something else than a live file, in ranges; `first` is the batch's first row.
fn rows_of_others(batch: &RecordBatch, first: usize, others: &mut Vec<Range<usize>>) -> Result<(), Odd> {
    for (kind, _) in SCOUTS {
        let Some(all) = top(batch, kind)?.filter(|all| all.null_count() < all.len()) else { continue };
        others.extend((0..all.len()).filter(|row| all.is_valid(*row)).map(|row| first + row..first + row + 1));
    }
    // An action is of one kind, but nothing stops a writer from putting two into a row.
    others.sort_by_key(|range| range.start);
    others.dedup();
    Ok(())
}

fn take_removes(batch: &RecordBatch, replay: &mut Replay) -> Result<(), Odd> {
    let Some(removes) = top(batch, "remove")?.filter(|r| r.null_count() < r.len()) else { return Ok(()) };
    let path = needed(strings(removes, "path")?, "remove.path")?;
    let (size, deleted) = (longs(removes, "size")?, longs(removes, "deletionTimestamp")?);
    let vectors = Vectors::of(removes)?;
    for row in (0..removes.len()).filter(|row| removes.is_valid(*row)) {
        replay.remove_of_checkpoint(&RemovedFile {
            path: text(Some(path), row).ok_or_else(|| odd("a removed file of the checkpoint has no path"))?,
            size: long(size, row),
            deleted_ms: long(deleted, row).unwrap_or(0),
            vector: vectors.as_ref().map(|v| v.row(row)).transpose()?.flatten(),
        })?;
    }
    Ok(())
}

/// Protocol, metadata and domains.
fn take_table(batch: &RecordBatch, replay: &mut Replay) -> Result<(), Odd> {
    if let (None, Some(all)) = (&replay.protocol, top(batch, "protocol")?)
        && let Some(row) = first(all)
    {
        replay.protocol = Some(protocol(all, row)?);
    }
    if let (None, Some(all)) = (&replay.metadata, top(batch, "metaData")?)
        && let Some(row) = first(all)
    {
        replay.metadata = Some(metadata(all, row)?);
    }
    if let Some(all) = top(batch, "domainMetadata")? {
        let (domain, configuration) = (strings(all, "domain")?, strings(all, "configuration")?);
        let removed = all.column_by_name("removed").and_then(|c| c.as_boolean_opt());
        for row in (0..all.len()).filter(|row| all.is_valid(*row)) {
            replay.domain(DomainMetadata {
                domain: text(domain, row).ok_or_else(|| odd("a domain has no name"))?.to_owned(),
                configuration: text(configuration, row).unwrap_or_default().to_owned(),
                removed: removed.is_some_and(|r| r.is_valid(row) && r.value(row)),
                unknown: Map::new(),
            });
        }
    }
    Ok(())
}

fn first(all: &StructArray) -> Option<usize> {
    (all.null_count() < all.len()).then(|| (0..all.len()).find(|row| all.is_valid(*row))).flatten()
}

fn protocol(all: &StructArray, row: usize) -> Result<Protocol, Odd> {
    let version = |name: &str| -> Result<u32, Odd> {
        let found = int(ints(all, name)?, row).and_then(|v| u32::try_from(v).ok());
        found.ok_or_else(|| odd("the protocol lacks a version"))
    };
    Ok(Protocol {
        min_reader_version: version("minReaderVersion")?,
        min_writer_version: version("minWriterVersion")?,
        reader_features: list(lists(all, "readerFeatures")?, row)?,
        writer_features: list(lists(all, "writerFeatures")?, row)?,
        unknown: Map::new(),
    })
}

fn metadata(all: &StructArray, row: usize) -> Result<Metadata, Odd> {
    let string = |name: &str| -> Result<Option<String>, Odd> { Ok(text(strings(all, name)?, row).map(str::to_owned)) };
    let map = |parent: Option<&StructArray>, name: &str| -> Result<_, Odd> {
        let maps = parent.map(|p| StringMaps::of(p, name)).transpose()?.flatten();
        let entries = maps.into_iter().flat_map(|m| m.row(row).collect::<Vec<_>>());
        Ok(entries.filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect())
    };
    let format = structs(all, "format")?;
    let provider = format.map(|f| strings(f, "provider")).transpose()?.flatten();
    Ok(Metadata {
        id: string("id")?.ok_or_else(|| odd("the metadata has no id"))?,
        name: string("name")?,
        description: string("description")?,
        format: Format {
            provider: text(provider, row).unwrap_or("parquet").to_owned(),
            options: map(format, "options")?,
            unknown: Map::new(),
        },
        schema_string: string("schemaString")?.ok_or_else(|| odd("the metadata has no schema"))?,
        partition_columns: list(lists(all, "partitionColumns")?, row)?.unwrap_or_default(),
        configuration: map(Some(all), "configuration")?,
        created_time: long(longs(all, "createdTime")?, row),
        unknown: Map::new(),
    })
}

fn list(lists: Option<&ListArray>, row: usize) -> Result<Option<Vec<String>>, Odd> {
    let Some(lists) = lists.filter(|l| l.is_valid(row)) else { return Ok(None) };
    let values = lists.value(row);
    let values = values.as_string_opt::<i32>().ok_or_else(|| odd("a list of the checkpoint holds no text"))?;
    Ok(Some(values.iter().flatten().map(str::to_owned).collect()))
}

fn take_sidecars(batch: &RecordBatch, sidecars: &mut Vec<Sidecar>) -> Result<(), Odd> {
    let Some(all) = top(batch, "sidecar")? else { return Ok(()) };
    let (path, size) = (strings(all, "path")?, longs(all, "sizeInBytes")?);
    let modified = longs(all, "modificationTime")?;
    for row in (0..all.len()).filter(|row| all.is_valid(*row)) {
        sidecars.push(Sidecar {
            path: text(path, row).ok_or_else(|| odd("a sidecar has no path"))?.to_owned(),
            size_in_bytes: long(size, row).ok_or_else(|| odd("a sidecar has no size"))?,
            modification_time: long(modified, row).unwrap_or(0),
            tags: None,
            unknown: Map::new(),
        });
    }
    Ok(())
}

impl From<parquet::errors::ParquetError> for Odd {
    fn from(error: parquet::errors::ParquetError) -> Self {
        odd(error.to_string())
    }
}
