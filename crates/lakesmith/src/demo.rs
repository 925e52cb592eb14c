//! A table with a small-files problem, made, diagnosed, compacted, purged, vacuumed and measured: the first thing a newcomer
//! runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use lakesmith_core::op::{HealthReport, Operation, Report, TimeTravel, VacuumOptions, VacuumReport};
use lakesmith_core::table::DeletionVector;
use lakesmith_core::units::{MIB, format_bytes};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, PutOutcome, Store};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::Session;

const FILES: u64 = 200;
const COMMITS: u64 = 20;

/// Options of [`demo`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// Empty or missing folder for the table; `None`: a new temporary folder, removed at the end.
    pub dir: Option<PathBuf>,
    /// Rows in the table.
    pub rows: u64,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self { dir: None, rows: 1_000_000 }
    }
}

/// Files and bytes at one point of the demo.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DemoState {
    /// Live files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows that a reader sees.
    pub rows: u64,
    /// Rows marked deleted but still in the files.
    pub deleted_rows: u64,
}

/// What the demo measured.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DemoReport {
    /// The table's folder.
    pub path: String,
    /// After the small appends and the delete.
    pub before: DemoState,
    /// After OPTIMIZE.
    pub optimized: DemoState,
    /// After REORG … APPLY (PURGE).
    pub purged: DemoState,
    /// Health score after the small appends.
    pub health_before: u32,
    /// Health score at the end.
    pub health_after: u32,
    /// Files that the final VACUUM deleted.
    pub vacuumed_files: u64,
    /// Their bytes.
    pub vacuumed_bytes: u64,
    /// Seconds to make the table.
    pub make_seconds: f64,
    /// Seconds of OPTIMIZE.
    pub optimize_seconds: f64,
    /// Seconds of REORG.
    pub purge_seconds: f64,
}

/// Runs the demo and tells each step through `say`.
///
/// # Errors
/// Usage if the folder is not empty or there are fewer rows than files; otherwise as the operations.
pub fn demo(session: &Session, options: DemoOptions, say: &mut dyn FnMut(&str)) -> Result<DemoReport> {
    if options.rows < FILES {
        return Err(Error::usage(format!("the demo needs at least {FILES} rows, one for each of its small files")));
    }
    let (dir, temporary) = match options.dir {
        Some(dir) => (dir, false),
        None => {
            let name = format!("lakesmith-demo-{}", session.options.world.new_uuid().simple());
            (std::env::temp_dir().join(name), true)
        }
    };
    let cannot_use = |e| Error::unavailable("cannot use the demo's folder").with("path", dir.display()).caused_by(e);
    if dir.exists() && std::fs::read_dir(&dir).map_err(cannot_use)?.next().is_some() {
        return Err(Error::usage("the demo needs an empty folder; name another with --dir").with("path", dir.display()));
    }
    std::fs::create_dir_all(&dir).map_err(cannot_use)?;
    let root = Location::parse(&dir.to_string_lossy())?;
    let result = play(session, &root, options.rows, say);
    if temporary {
        // The folder is this run's own: made above under a fresh name.
        let removed = std::fs::remove_dir_all(&dir);
        if removed.is_err() {
            say(&format!("the demo's table stays in {}", dir.display()));
        }
    }
    result
}

fn play(session: &Session, root: &Location, rows: u64, say: &mut dyn FnMut(&str)) -> Result<DemoReport> {
    let path = root.local_path().map_or_else(|| root.to_string(), |p| p.display().to_string());
    let store = session.open(root)?;
    let started = Instant::now();
    say(&format!("making {path}: {rows} rows in {FILES} small files, {COMMITS} appends"));
    session.runtime.block_on(make(session, &store, root, rows))?;
    let make_seconds = started.elapsed().as_secs_f64();
    let before = state(session, &path)?;
    say(&describe("before", &before));
    let ill = health(session, &path)?;
    say(&ill.summary());

    let started = Instant::now();
    let mut optimize = session.optimize_options()?;
    optimize.sizes.target_bytes = optimize.sizes.target_bytes.min(64 * MIB);
    session.run(&path, Operation::Optimize(optimize))?;
    let optimize_seconds = started.elapsed().as_secs_f64();
    let optimized = state(session, &path)?;
    say(&describe(&format!("optimize ({optimize_seconds:.2} s)"), &optimized));

    say("deleting 2 % of the rows by deletion vectors: no file is rewritten");
    session.runtime.block_on(delete_two_percent(session, &store, root))?;
    let deleted = state(session, &path)?;
    say(&describe("deleted", &deleted));
    say(&health(session, &path)?.summary());

    let started = Instant::now();
    session.run(&path, Operation::Reorg(session.reorg_options()?))?;
    let purge_seconds = started.elapsed().as_secs_f64();
    let purged = state(session, &path)?;
    say(&describe(&format!("reorg --purge ({purge_seconds:.2} s)"), &purged));
    if purged.rows != deleted.rows || optimized.rows != before.rows {
        return Err(Error::internal("the demo's row counts changed").with("path", path));
    }
    let vacuumed = clean(session, &path, say)?;
    let well = health(session, &path)?;
    say(&well.summary());
    if state(session, &path)? != purged {
        return Err(Error::internal("the demo's vacuum changed the table").with("path", path));
    }
    Ok(DemoReport {
        path,
        before,
        optimized,
        purged,
        health_before: ill.score,
        health_after: well.score,
        vacuumed_files: vacuumed.files.len() as u64,
        vacuumed_bytes: vacuumed.bytes,
        make_seconds,
        optimize_seconds,
        purge_seconds,
    })
}

/// The old files stay for the retention, a week; only then may they go. The demo cannot wait for it, and need not: nobody
/// else knows its table.
fn clean(session: &Session, path: &str, say: &mut dyn FnMut(&str)) -> Result<VacuumReport> {
    let careful = VacuumOptions { dry_run: true, ..session.vacuum_options()? };
    let planned = vacuum(session, path, careful)?;
    say(&format!(
        "vacuum --dry-run: {} files would go; what left the table within its retention of 7 days stays for readers and \
         time travel",
        planned.files.len()
    ));
    say(
        "nobody else uses this table, so here its history may go at once; never shorten the retention of a table in use",
    );
    let at_once = VacuumOptions {
        retain_ms: Some(0),
        retention_check: false,
        no_writers: true,
        dry_run: false,
        ..session.vacuum_options()?
    };
    let started = Instant::now();
    let done = vacuum(session, path, at_once)?;
    say(&format!(
        "vacuum --retain 0h --no-retention-check --no-writers ({:.2} s): {} files, {} deleted",
        started.elapsed().as_secs_f64(),
        done.files.len(),
        format_bytes(done.bytes)
    ));
    Ok(done)
}

fn vacuum(session: &Session, path: &str, options: VacuumOptions) -> Result<VacuumReport> {
    match session.run(path, Operation::Vacuum(options))? {
        Report::Vacuum(report) => Ok(*report),
        _ => Err(Error::internal("the vacuum came back as another report")),
    }
}

fn health(session: &Session, path: &str) -> Result<HealthReport> {
    match session.run(path, Operation::Health(session.health_options()?))? {
        Report::Health(report) => Ok(*report),
        _ => Err(Error::internal("the health check came back as another report")),
    }
}

fn describe(step: &str, state: &DemoState) -> String {
    format!(
        "{step}: {} files, {}, {} rows visible, {} deleted rows still stored",
        state.files,
        format_bytes(state.bytes),
        state.rows,
        state.deleted_rows
    )
}

fn state(session: &Session, path: &str) -> Result<DemoState> {
    let Report::Files(files) = session.run(path, Operation::Files(TimeTravel::Latest))? else {
        return Err(Error::internal("the list of files came back as another report"));
    };
    let deleted_rows = files.iter().map(|f| f.deleted_rows).sum();
    let stored: u64 = files.iter().filter_map(|f| f.num_records).sum();
    Ok(DemoState { files: files.len() as u64, bytes: files.total_bytes(), rows: stored - deleted_rows, deleted_rows })
}

const SCHEMA: &str = r#"{"type":"struct","fields":[{"name":"event_id","type":"long","nullable":true,"metadata":{}},{"name":"customer_id","type":"long","nullable":true,"metadata":{}},{"name":"event_date","type":"date","nullable":true,"metadata":{}},{"name":"country","type":"string","nullable":true,"metadata":{}},{"name":"amount","type":"double","nullable":true,"metadata":{}}]}"#;

async fn make(session: &Session, store: &Store, root: &Location, rows: u64) -> Result<()> {
    let now = session.options.world.now_ms();
    let id = session.options.world.new_uuid();
    let create = [
        json!({"commitInfo": {"timestamp": now, "operation": "CREATE TABLE", "operationParameters": {},
            "isBlindAppend": true, "engineInfo": crate::drive::ENGINE_INFO}}),
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "appendOnly", "invariants"]}}),
        json!({"metaData": {"id": id.to_string(), "format": {"provider": "parquet", "options": {}},
            "schemaString": SCHEMA, "partitionColumns": [],
            "configuration": {"delta.enableDeletionVectors": "true"}, "createdTime": now}}),
    ];
    commit(store, root, 0, &create).await?;
    let per_commit = FILES / COMMITS;
    for number in 0..COMMITS {
        let mut actions = vec![
            json!({"commitInfo": {"timestamp": session.options.world.now_ms(), "operation": "WRITE",
            "operationParameters": {"mode": "Append"}, "isBlindAppend": true, "engineInfo": crate::drive::ENGINE_INFO}}),
        ];
        for file in number * per_commit..(number + 1) * per_commit {
            actions.push(small_file(session, store, root, file * rows / FILES, (file + 1) * rows / FILES).await?);
        }
        commit(store, root, number + 1, &actions).await?;
    }
    Ok(())
}

async fn commit(store: &Store, root: &Location, version: u64, actions: &[Value]) -> Result<()> {
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    let at = root.join(&format!("_delta_log/{version:020}.json"));
    match store.put_if_absent(&at, Bytes::from(lines.join("\n") + "\n")).await? {
        PutOutcome::Created => Ok(()),
        PutOutcome::AlreadyExists => Err(Error::internal("another writer is in the demo's folder").with("path", at)),
    }
}

async fn small_file(session: &Session, store: &Store, root: &Location, from: u64, to: u64) -> Result<Value> {
    let cannot = |e: &dyn std::fmt::Display| Error::internal(format!("cannot encode a demo file: {e}"));
    let ids = || from as i64..to as i64;
    // A hash spreads customers over every file: the shape of a table that nobody looks after.
    let mixed = |i: i64| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    const COUNTRIES: [&str; 8] = ["US", "GB", "DE", "FR", "IN", "BR", "JP", "CA"];
    let columns: Vec<(&str, DataType, ArrayRef)> = vec![
        ("event_id", DataType::Int64, Arc::new(Int64Array::from_iter_values(ids()))),
        (
            "customer_id",
            DataType::Int64,
            Arc::new(Int64Array::from_iter_values(ids().map(|i| (mixed(i) % 50_000) as i64))),
        ),
        (
            "event_date",
            DataType::Date32,
            Arc::new(Date32Array::from_iter_values(ids().map(|i| 20_700 + (i % 30) as i32))),
        ),
        (
            "country",
            DataType::Utf8,
            Arc::new(StringArray::from_iter_values(ids().map(|i| COUNTRIES[(mixed(i) % 8) as usize]))),
        ),
        (
            "amount",
            DataType::Float64,
            Arc::new(Float64Array::from_iter_values(ids().map(|i| (mixed(i * 7) % 10_000) as f64 / 100.0))),
        ),
    ];
    let schema =
        Arc::new(Schema::new(columns.iter().map(|(n, t, _)| Field::new(*n, t.clone(), true)).collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, _, a)| a).collect())
        .map_err(|e| cannot(&e))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(|e| cannot(&e))?;
    writer.write(&batch).and_then(|()| writer.close()).map_err(|e| cannot(&e))?;
    let path = format!("part-00000-{}.c000.snappy.parquet", session.options.world.new_uuid());
    let size = bytes.len();
    store.put(&root.join(&path), Bytes::from(bytes)).await?;
    Ok(json!({"add": {"path": path, "partitionValues": {}, "size": size,
        "modificationTime": session.options.world.now_ms(), "dataChange": true,
        "stats": json!({"numRecords": to - from, "minValues": {"event_id": from}, "maxValues": {"event_id": to - 1},
            "nullCount": {"event_id": 0}, "tightBounds": true}).to_string()}}))
}

/// Marks every 50th row of each file, as DELETE does on a table with deletion vectors.
async fn delete_two_percent(session: &Session, store: &Store, root: &Location) -> Result<()> {
    let needs = lakesmith_delta::Needs { files: true, stats: true };
    let table = lakesmith_delta::load(store, root, TimeTravel::Latest, needs).await?;
    let files: Vec<_> = table.state.files.iter().collect();
    let vectors: Vec<DeletionVector> =
        files.iter().map(|f| DeletionVector::from_rows((0..f.rows.unwrap_or(0)).step_by(50))).collect();
    let descriptors = lakesmith_delta::write_vectors(store, root, &vectors).await?;
    let now = session.options.world.now_ms();
    let mut actions = vec![json!({"commitInfo": {"timestamp": now, "operation": "DELETE",
        "operationParameters": {"predicate": "[\"(event_id % 50 = 0)\"]"}, "readVersion": table.state.version,
        "isBlindAppend": false, "engineInfo": crate::drive::ENGINE_INFO}})];
    for (file, descriptor) in files.iter().zip(descriptors) {
        // Bounds stay true but no longer tight once rows are gone.
        let mut stats: Value = serde_json::from_str(file.stats_json.unwrap_or("{}"))
            .map_err(|e| Error::corrupt("statistics are not JSON").with("path", file.path).caused_by(e))?;
        stats["tightBounds"] = false.into();
        let tags = if file.marks.tags.is_empty() { Value::Null } else { json!(file.marks.tags) };
        actions.push(json!({"add": {"path": file.path, "partitionValues": {}, "size": file.size,
            "modificationTime": file.modified_ms, "dataChange": true, "stats": stats.to_string(), "tags": tags,
            "deletionVector": descriptor}}));
        actions.push(json!({"remove": {"path": file.path, "deletionTimestamp": now, "dataChange": true,
            "extendedFileMetadata": true, "partitionValues": {}, "size": file.size}}));
    }
    commit(store, root, table.state.version + 1, &actions).await
}
