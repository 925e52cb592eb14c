//! Checkpoints: the whole state of one version in one Parquet file, so that readers need not replay the log.
//!
//! The kernel reconciles the log (newest action of each file, unexpired tombstones) and decides on the columns; it
//! refuses tables with features that only bind writers of rows, so it is shown a protocol without those. The actions
//! that it copies, the protocol among them, are the log's own.
//!
//! # Source
//! Delta PROTOCOL.md, "Checkpoints"; Delta Spark `Checkpoints.scala`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use delta_kernel::actions::{Metadata as KernelMetadata, Protocol as KernelProtocol};
use delta_kernel::engine::arrow_data::EngineDataArrowExt as _;
use delta_kernel::snapshot::{Snapshot, SnapshotRef};
use delta_kernel::table_configuration::TableConfiguration;
use delta_kernel::{ActionReconciliationIterator, FilteredEngineData, KernelResult};
use lakesmith_core::op::TimeTravel;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store, Upload};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::Map;

use crate::actions::{Metadata, SetTransaction};
use crate::engine::{self, KERNEL_ROOT, translate};
use crate::features::check_features;
use crate::last_checkpoint::{Hint, names_checkpoint, publish};
use crate::load::{Needs, load};
use crate::log_doubts::check_hint_replaceable;
use crate::log_files::LOG_FOLDER;
use crate::log_state::DeltaTable;
use crate::log_view::ViewEngine;
use crate::{features, log_cleanup, tip};

const INTERVAL_DEFAULT: u64 = 10;
/// Encoded bytes kept in memory before a row group is closed and sent.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Features that change what a checkpoint holds or how its columns are typed.
const SHAPING_FEATURES: [&str; 9] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
];
/// Beginnings of the properties that do.
const SHAPING_PROPERTIES: [&str; 5] = [
    "delta.columnMapping.",
    "delta.checkpoint.",
    "delta.dataSkipping",
    "delta.deletedFileRetentionDuration",
    "delta.setTransactionRetentionDuration",
];
const STATS_AS_JSON: &str = "delta.checkpoint.writeStatsAsJson";
const STATS_AS_STRUCT: &str = "delta.checkpoint.writeStatsAsStruct";

/// A checkpoint of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The version.
    pub version: u64,
    /// What was written; `None` if a complete checkpoint of the version was there already and `_last_checkpoint` knew.
    pub written: Option<WrittenCheckpoint>,
}

/// What a written checkpoint holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenCheckpoint {
    /// Rows.
    pub actions: u64,
    /// Live files.
    pub add_files: u64,
    /// Bytes.
    pub size_bytes: u64,
}

/// True if the table's interval asks for a checkpoint of `version`.
pub(crate) fn is_due(metadata: &Metadata, version: u64) -> bool {
    version != 0 && version.is_multiple_of(interval(metadata))
}

/// The number of versions from one checkpoint to the next.
pub(crate) fn interval(metadata: &Metadata) -> u64 {
    let interval = tip::property(metadata, "delta.checkpointInterval").and_then(|v| v.trim().parse().ok());
    interval.filter(|i| *i > 0).unwrap_or(INTERVAL_DEFAULT)
}

/// Writes a checkpoint of `version` and points `_last_checkpoint` to it unless that names a later one that
/// is there.
///
/// # Errors
/// `NotFound` if there is no such version, `Unsupported` for a table whose protocol we don't fully support, `Corrupt`
/// for a log that can't be replayed or that ends before the version of the present hint, `Unavailable` from the storage.
pub async fn write_checkpoint(store: &Store, root: &Location, version: u64) -> Result<CheckpointInfo> {
    let mut table = load(store, root, TimeTravel::Version(version), Needs::default()).await?;
    check_features(&table)?;
    check_hint_replaceable(store, root, version).await?;
    // A writer that stopped between the checkpoint and the hint is made up for by writing both again.
    if table.log.checkpoint_version == Some(version) && names_checkpoint(store, root, version).await? {
        // A broken one would be left to readers for ever; only reading it tells.
        table = load(store, root, TimeTravel::Version(version), Needs { files: true, stats: false }).await?;
        if table.log.checkpoint_version == Some(version) {
            return Ok(CheckpointInfo { version, written: None });
        }
    }
    let written = match write(store, root, &table, true).await {
        Ok(Some(written)) => written,
        Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
        Ok(None) | Err(_) => {
            // Only a look at all files tells whether a path is spelled in two ways or an older checkpoint is broken.
            table = load(store, root, TimeTravel::Version(version), Needs { files: true, stats: false }).await?;
            let written = write(store, root, &table, false).await?;
            written.ok_or_else(|| Error::internal("a checkpoint was given up without a reason"))?
        }
    };
    let hint =
        Hint { version, size: written.actions, size_in_bytes: written.size_bytes, num_of_add_files: written.add_files };
    publish(store, root, &hint).await?;
    tracing::info!(version, actions = written.actions, bytes = written.size_bytes, "checkpoint written");
    Ok(CheckpointInfo { version, written: Some(written) })
}

/// Writes the checkpoint of a table's version; `None` if it is to stop at an unusual path and there was one.
async fn write(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    stop_at_unusual: bool,
) -> Result<Option<WrittenCheckpoint>> {
    let version = table.state.version;
    let engine = table.log.view.open(store, root)?;
    let location = root.join(&format!("{LOG_FOLDER}/{version:020}.checkpoint.parquet"));
    let sink = Sink { upload: Some(store.upload(&location).await?), runtime: tokio::runtime::Handle::current() };
    let (root, table) = (root.clone(), table.clone());
    let write = move || Replay { engine: &engine, root: &root, table: &table, stop_at_unusual }.write(sink, version);
    engine::blocking(write).await
}

/// How far applications have written at the table's version, by application.
///
/// # Errors
/// `Corrupt` for a log that can't be replayed, `Unavailable` from the storage.
pub(crate) async fn transactions(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
) -> Result<BTreeMap<String, SetTransaction>> {
    let engine = table.log.view.open(store, root)?;
    let (root, table) = (root.clone(), table.clone());
    let read = move || {
        let replay = Replay { engine: &engine, root: &root, table: &table, stop_at_unusual: false };
        let mut found = BTreeMap::new();
        for batch in replay.rows(table.state.version)? {
            let batch = batch?;
            let Some(transactions) = batch.column_by_name("txn").and_then(|c| c.as_struct_opt()) else { continue };
            let column = |name: &str| {
                transactions.column_by_name(name).ok_or_else(|| {
                    Error::internal("a field of transactions is missing from the log's columns").with("field", name)
                })
            };
            let (apps, versions) = (column("appId")?, column("version")?);
            let (Some(apps), Some(versions)) = (apps.as_string_opt::<i32>(), versions.as_primitive_opt::<Int64Type>())
            else {
                return Err(Error::internal("the transactions of the log have unexpected types"));
            };
            let updated = column("lastUpdated")?.as_primitive_opt::<Int64Type>();
            for row in (0..transactions.len()).filter(|row| transactions.is_valid(*row) && apps.is_valid(*row)) {
                let last_updated = updated.filter(|u| u.is_valid(row)).map(|u| u.value(row));
                let app_id = apps.value(row).to_owned();
                let transaction = SetTransaction {
                    app_id: app_id.clone(),
                    version: versions.value(row),
                    last_updated,
                    unknown: Map::new(),
                };
                found.insert(app_id, transaction);
            }
        }
        Ok(found)
    };
    engine::blocking(read).await
}

/// What follows a commit of `version` whose interval asks for a checkpoint: the checkpoint, and cleaning up the log that
/// it replaces. Failures are logged: the commit stands.
pub(crate) async fn after_commit(store: &Store, root: &Location, version: u64, now_ms: i64) {
    if let Err(error) = write_checkpoint(store, root, version).await {
        tracing::warn!(version, %error, "the commit stands, but its checkpoint could not be written");
        return;
    }
    let cleaned = async {
        // The newest version says how long the log is kept, whoever made it.
        let table = load(store, root, TimeTravel::Latest, Needs::default()).await?;
        log_cleanup::after_checkpoint(store, root, &table, now_ms).await
    };
    if let Err(error) = cleaned.await {
        tracing::warn!(version, %error, "the commit and its checkpoint stand, but older log files could not be removed");
    }
}

struct Replay<'a> {
    engine: &'a ViewEngine,
    stop_at_unusual: bool,
    root: &'a Location,
    table: &'a DeltaTable,
}

impl Replay<'_> {
    fn write(&self, mut sink: Sink, version: u64) -> Result<Option<WrittenCheckpoint>> {
        let written = self.write_rows(&mut sink, version);
        match written {
            Ok(_) if self.stop_at_unusual && self.engine.watch().saw_unusual() => {
                sink.abort();
                Ok(None)
            }
            Ok(written) => sink.finish().map(|()| Some(written)),
            Err(error) => {
                sink.abort();
                Err(error)
            }
        }
    }

    fn write_rows(&self, sink: &mut Sink, version: u64) -> Result<WrittenCheckpoint> {
        let mut counts = Counts::default();
        let mut parquet: Option<ArrowWriter<Vec<u8>>> = None;
        let mut size_bytes = 0;
        for batch in self.rows(version)? {
            let batch = settled(&batch?)?;
            counts.add(&batch)?;
            let parquet = match &mut parquet {
                Some(parquet) => parquet,
                none => none.insert(open(&batch)?),
            };
            parquet.write(&batch).map_err(encoding)?;
            if parquet.in_progress_size() > ROW_GROUP_BYTES {
                parquet.flush().map_err(encoding)?;
                size_bytes += sink.send(std::mem::take(parquet.inner_mut()))?;
            }
        }
        counts.check(version)?;
        let parquet = parquet.ok_or_else(|| Error::corrupt("the log holds no action").with("version", version))?;
        size_bytes += sink.send(parquet.into_inner().map_err(encoding)?)?;
        Ok(WrittenCheckpoint { actions: counts.actions, add_files: counts.adds, size_bytes })
    }

    /// The actions that are in force at a version, batch by batch.
    fn rows(&self, version: u64) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let failed = move |e| translate(e, self.root).with("version", version);
        let snapshot = Snapshot::builder_for(KERNEL_ROOT).at_version(version).build(self.engine).map_err(failed)?;
        let writer = self.shaped(&snapshot)?.create_checkpoint_writer(self.engine).map_err(failed)?;
        let rows: ActionReconciliationIterator = writer.checkpoint_data(self.engine).map_err(failed)?;
        let whole = move |batch: KernelResult<FilteredEngineData>| {
            batch.and_then(|b| b.apply_selection_vector()).and_then(|b| b.try_into_record_batch()).map_err(failed)
        };
        Ok(rows.map(whole))
    }

    /// The snapshot with only those features and properties that shape a checkpoint.
    fn shaped(&self, snapshot: &SnapshotRef) -> Result<SnapshotRef> {
        let failed = |e| translate(e, self.root);
        let configuration = snapshot.table_configuration();
        let in_force = features::expand(&self.table.log.protocol);
        let shaping: Vec<String> = in_force.into_iter().filter(|f| SHAPING_FEATURES.contains(&f.as_str())).collect();
        let protocol = KernelProtocol::try_new(3, 7, Some(shaping.clone()), Some(shaping)).map_err(failed)?;
        let metadata = configuration.metadata();
        let metadata: KernelMetadata = serde_json::to_value(metadata)
            .and_then(|mut json| {
                json["configuration"] = serde_json::to_value(properties(&self.table.state.properties))?;
                serde_json::from_value(json)
            })
            .map_err(|e| Error::internal("the kernel's view of the metadata could not be changed").caused_by(e))?;
        let root = configuration.table_root().clone();
        let shaped = TableConfiguration::try_new(metadata, protocol, root, snapshot.version()).map_err(failed)?;
        Snapshot::new(snapshot.log_segment().clone(), shaped).map(Arc::new).map_err(failed)
    }
}

/// The properties that shape a checkpoint. Statistics as JSON serve every reader; the struct comes instead of them, and
/// by default then, as in Spark.
fn properties(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shapes = |key: &str| {
        SHAPING_PROPERTIES.iter().any(|p| key.get(..p.len()).is_some_and(|head| head.eq_ignore_ascii_case(p)))
    };
    let mut shaping: BTreeMap<String, String> =
        all.iter().filter(|(key, _)| shapes(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    let value = |name: &str| {
        all.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim().eq_ignore_ascii_case("true"))
    };
    let json = value(STATS_AS_JSON).unwrap_or(true);
    let as_struct = !json && value(STATS_AS_STRUCT).unwrap_or(true);
    shaping.insert(STATS_AS_JSON.into(), json.to_string());
    shaping.insert(STATS_AS_STRUCT.into(), as_struct.to_string());
    shaping
}

/// The same rows with `dataChange` false: in a checkpoint nothing changes any more.
fn settled(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for name in ["add", "remove"] {
        let Ok(index) = batch.schema_ref().index_of(name) else { continue };
        let Some(files) = columns[index].as_struct_opt() else { continue };
        let Some((place, _)) = files.fields().find("dataChange") else { continue };
        let mut children = files.columns().to_vec();
        children[place] = Arc::new(BooleanArray::new(
            arrow::buffer::BooleanBuffer::new_unset(files.len()),
            children[place].nulls().cloned(),
        ));
        let rebuilt = StructArray::try_new(files.fields().clone(), children, files.nulls().cloned());
        columns[index] = Arc::new(rebuilt.map_err(encoding)?);
    }
    RecordBatch::try_new(batch.schema(), columns).map_err(encoding)
}

fn open(first: &RecordBatch) -> Result<ArrowWriter<Vec<u8>>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    ArrowWriter::try_new(Vec::new(), first.schema(), Some(properties)).map_err(encoding)
}

fn encoding(error: impl Into<lakesmith_core::error::Cause>) -> Error {
    Error::internal("the checkpoint could not be encoded").caused_by(error)
}

/// What went into the checkpoint, counted from the rows themselves.
#[derive(Debug, Default)]
struct Counts {
    actions: u64,
    adds: u64,
    protocols: u64,
    metadata: u64,
}

impl Counts {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let valid = |name: &str| {
            let column = batch.column_by_name(name);
            column.map(|c| (c.len() - c.null_count()) as u64).ok_or_else(|| {
                Error::internal("a kind of action is missing from the checkpoint's columns").with("column", name)
            })
        };
        self.actions += batch.num_rows() as u64;
        self.adds += valid("add")?;
        self.protocols += valid("protocol")?;
        self.metadata += valid("metaData")?;
        Ok(())
    }

    /// A reader that starts from a checkpoint without these has no table.
    fn check(&self, version: u64) -> Result<()> {
        if (self.protocols, self.metadata) == (1, 1) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the log gives {} protocols and {} metadata instead of one each; no checkpoint was written",
            self.protocols, self.metadata
        ))
        .with("version", version))
    }
}

/// The upload, driven from a blocking thread.
struct Sink {
    upload: Option<Upload>,
    runtime: tokio::runtime::Handle,
}

impl Sink {
    /// Sends bytes and returns their number.
    fn send(&mut self, bytes: Vec<u8>) -> Result<u64> {
        let length = bytes.len() as u64;
        if let Some(upload) = &mut self.upload {
            self.runtime.block_on(upload.write(Bytes::from(bytes)))?;
        }
        Ok(length)
    }

    fn finish(mut self) -> Result<()> {
        self.upload.take().map_or(Ok(()), |upload| self.runtime.block_on(upload.finish()))
    }

    fn abort(mut self) {
        if let Some(upload) = self.upload.take()
            && let Err(error) = self.runtime.block_on(upload.abort())
        {
            tracing::warn!(%error, "parts of an unfinished checkpoint stay until the storage cleans them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn statistics_are_written_once_and_never_lost_by_default() {
        let stats = |pairs: &[(&str, &str)]| {
            let shaping = properties(&map(pairs));
            (shaping[STATS_AS_JSON].clone(), shaping[STATS_AS_STRUCT].clone())
        };
        let both = |json: &str, as_struct: &str| (json.to_string(), as_struct.to_string());
        assert_eq!(stats(&[]), both("true", "false"));
        assert_eq!(stats(&[(STATS_AS_STRUCT, "true")]), both("true", "false"));
        assert_eq!(stats(&[(STATS_AS_JSON, "false")]), both("false", "true"));
        assert_eq!(stats(&[(STATS_AS_JSON, "false"), (STATS_AS_STRUCT, "false")]), both("false", "false"));
    }

    #[test]
    fn properties_that_bind_writers_of_rows_are_hidden_from_the_kernel() {
        let shaping = properties(&map(&[
            ("delta.constraints.positive", "a > 0"),
            ("delta.columnMapping.mode", "name"),
            ("delta.deletedFileRetentionDuration", "interval 1 day"),
        ]));
        assert!(!shaping.contains_key("delta.constraints.positive"));
        assert!(shaping.contains_key("delta.columnMapping.mode"));
        assert!(shaping.contains_key("delta.deletedFileRetentionDuration"));
    }
}
