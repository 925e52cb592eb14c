//! FSCK: the log against itself, the storage, the vectors, the statistics and the paths. It changes nothing.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::op::{FsckFinding, FsckOptions, FsckReport, Report, StatisticsCheck, TimeTravel};
use lakesmith_core::table::{DataFile, DataType, FileId, FileTable};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{DeltaTable, Held, Needs};
use lakesmith_exec::{Depth, Inspection, RewriteControl};
use lakesmith_storage::presence::{Presence, presence};
use lakesmith_storage::{Location, Store};

use crate::Session;

/// Vectors read at once.
const VECTORS_AT_ONCE: usize = 16;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &FsckOptions) -> Result<Report> {
    let log = session.runtime.block_on(lakesmith_delta::check_log(store, root, &session.options.cancel))?;
    let mut report = FsckReport { table: root.to_string(), checkpoints: log.checkpoints, ..FsckReport::default() };
    for finding in log.findings {
        report.found(finding, options.findings_max);
    }
    let needs = Needs { files: true, stats: options.statistics != StatisticsCheck::Off };
    match session.runtime.block_on(lakesmith_delta::load(store, root, TimeTravel::Latest, needs)) {
        Ok(table) => Check { session, store, root, table: &table, options, report: &mut report }.run()?,
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            report.found(unreadable(root, &error), options.findings_max)
        }
        Err(error) => return Err(error),
    }
    report.clean = report.counts.is_empty();
    report.findings.sort();
    report.notes.sort();
    Ok(Report::Fsck(Box::new(report)))
}

fn unreadable(root: &Location, error: &Error) -> FsckFinding {
    FsckFinding {
        kind: "unreadable".into(),
        path: root.to_string(),
        version: error.context_value("version").and_then(|v| v.parse().ok()).unwrap_or(0),
        message: format!("the newest version can't be read, so its files were not looked at: {error}"),
        cure: "cure what else was found, or restore the log from a backup".into(),
    }
}

struct Check<'a> {
    session: &'a Session,
    store: &'a Store,
    root: &'a Location,
    table: &'a DeltaTable,
    options: &'a FsckOptions,
    report: &'a mut FsckReport,
}

impl Check<'_> {
    fn run(&mut self) -> Result<()> {
        self.report.version = self.table.state.version;
        self.report.files = self.files().len() as u64;
        let checksum = lakesmith_delta::check_checksum(self.store, self.root, self.table);
        for finding in self.session.runtime.block_on(checksum)? {
            self.report.found(finding, self.options.findings_max);
        }
        self.spellings()?;
        let whole = self.storage()?;
        self.vectors()?;
        self.partitions();
        self.statistics(&whole)
    }

    fn files(&self) -> &FileTable {
        &self.table.state.files
    }

    fn file(&self, id: u32) -> DataFile<'_> {
        self.files().get(FileId(id))
    }

    fn finding(&self, kind: &str, path: &str, message: String, cure: &str) -> FsckFinding {
        let version = self.table.state.version;
        FsckFinding { kind: kind.into(), path: path.into(), version, message, cure: cure.into() }
    }

    fn found(&mut self, kind: &str, path: &str, message: String, cure: &str) {
        let finding = self.finding(kind, path, message, cure);
        self.report.found(finding, self.options.findings_max);
    }

    /// One data file, live more than once.
    fn spellings(&mut self) -> Result<()> {
        if let Some((path, log_file)) = self.table.log.two_spellings() {
            let message = format!("{log_file} spells the path of a file in another way than a commit before it");
            let cure = "rewrite the table with the engine that wrote it: readers differ about which rows are live";
            self.found("duplicate-path", &path, message, cure);
        }
        let mut places: Vec<(u64, u32)> = Vec::with_capacity(self.files().len());
        for file in self.files().iter() {
            let mut hasher = DefaultHasher::new();
            self.root.resolve(file.path)?.hash(&mut hasher);
            places.push((hasher.finish(), file.id.0));
        }
        places.sort_unstable();
        let twice: Vec<(u32, u32)> =
            places.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| (pair[0].1, pair[1].1)).collect();
        for (one, other) in twice {
            let (one, other) = (self.file(one), self.file(other));
            if self.root.resolve(one.path)? != self.root.resolve(other.path)? {
                continue;
            }
            let path = one.path.to_owned();
            let vector = |f: &DataFile<'_>| f.deletes.map_or("none".to_owned(), |d| d.unique_id.clone());
            let (kind, message) = if one.path == other.path {
                let (a, b) = (vector(&one), vector(&other));
                (
                    "two-vectors",
                    format!("the file is live twice, with the vectors {a} and {b}, so its rows are read twice"),
                )
            } else {
                ("duplicate-path", format!("the file is live twice; its other spelling is {}", other.path))
            };
            let cure =
                "restore the last version in which it was live once; a rewrite would make the doubled rows permanent";
            self.found(kind, &path, message, cure);
        }
        Ok(())
    }

    /// Existence and size of every data file; gives the files that are as the log says.
    fn storage(&mut self) -> Result<Vec<u32>> {
        let locate = |index: usize| self.root.resolve(self.file(index as u32).path);
        let looked = presence(self.store, self.root, self.files().len(), &locate, &self.session.options.cancel);
        let found = self.session.runtime.block_on(looked)?;
        let mut whole = Vec::new();
        for (id, presence) in (0u32..).zip(found) {
            let (path, size) = {
                let file = self.file(id);
                (file.path.to_owned(), file.size)
            };
            match presence {
                Presence::Found(bytes) if bytes == size => whole.push(id),
                Presence::Found(bytes) => {
                    let message = format!("the file has {bytes} bytes, the log says {size}");
                    let cure = "restore the file from a backup; if it was replaced on purpose, load its rows anew";
                    self.found("wrong-size", &path, message, cure);
                }
                Presence::Missing => {
                    let cure = "restore the file from a backup, or restore a version that is readable (lakesmith history \
                                --readable)";
                    self.found("missing-file", &path, "a live file does not exist".into(), cure);
                }
                Presence::Elsewhere => {
                    let note = self.finding(
                        "not-checked",
                        &path,
                        "the file lies on another storage, which was not asked".into(),
                        "check it with the tools of that storage",
                    );
                    self.report.noted(note, self.options.findings_max);
                }
            }
        }
        Ok(whole)
    }

    /// Every vector is read: its file, checksum, cardinality and the rows that it marks.
    fn vectors(&mut self) -> Result<()> {
        let marked: Vec<u32> = self.files().iter().filter(|f| f.deletes.is_some()).map(|f| f.id.0).collect();
        self.report.vectors = marked.len() as u64;
        let (table, store, cancel) = (self.table, self.store, &self.session.options.cancel);
        let look = |id: u32| async move {
            cancel.check()?;
            let file = table.state.files.get(FileId(id));
            let Some(info) = file.deletes else { return Ok(None) };
            match lakesmith_delta::read_vector(store, info).await {
                Ok(vector) => match (vector.max(), file.rows) {
                    (Some(max), Some(rows)) if max >= rows => {
                        let message = format!("the vector marks row {max}, the file has {rows} rows");
                        Ok(Some((id, "corrupt-vector", message)))
                    }
                    _ => Ok(None),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Ok(Some((id, "missing-vector", format!("its deletion vector can't be found: {error}"))))
                }
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled) => Err(error),
                Err(error) => Ok(Some((id, "corrupt-vector", error.to_string()))),
            }
        };
        let all = futures::stream::iter(marked).map(look).buffer_unordered(VECTORS_AT_ONCE);
        let wrong: Vec<_> = self
            .session
            .runtime
            .block_on(all.try_filter_map(|found| async move { Ok::<_, Error>(found) }).try_collect())?;
        for (id, kind, message) in wrong {
            let path = self.file(id).path.to_owned();
            let cure = "restore the vector's file from a backup, or restore a version before the rows were deleted";
            self.found(kind, &path, message, cure);
        }
        Ok(())
    }

    /// A path means nothing, but one that says another partition than the log deserves a look.
    fn partitions(&mut self) {
        let columns = &self.table.state.partition_columns;
        let types: Vec<Option<&DataType>> =
            columns.iter().map(|c| self.table.state.schema.field(c).map(|f| &f.data_type)).collect();
        let mut notes = Vec::new();
        for file in self.files().iter() {
            let Ok(location) = self.root.resolve(file.path) else { continue };
            for ((column, data_type), raw) in columns.iter().zip(&types).zip(&file.partition.raw) {
                // Times are spelled in several ways.
                if matches!(data_type, Some(DataType::Timestamp | DataType::TimestampNtz)) {
                    continue;
                }
                let start = format!("{}=", Location::hive_escape(column));
                let folder = location.key().split('/').find_map(|segment| segment.strip_prefix(&start));
                let expected = raw.as_deref().map_or("__HIVE_DEFAULT_PARTITION__".into(), Location::hive_escape);
                if let Some(folder) = folder.filter(|folder| *folder != expected) {
                    let message =
                        format!("the folder says {column}={folder}, the log {column}={expected}; the log counts");
                    notes.push(self.finding("partition-path", file.path, message, "nothing, if the rows are right"));
                }
            }
        }
        for note in notes {
            self.report.noted(note, self.options.findings_max);
        }
    }

    fn statistics(&mut self, whole: &[u32]) -> Result<()> {
        let depth = match self.options.statistics {
            StatisticsCheck::Off => return Ok(()),
            StatisticsCheck::Footers => Depth::Footers,
            StatisticsCheck::Data => Depth::Rows,
        };
        let with_stats: Vec<u32> = whole.iter().copied().filter(|id| self.file(*id).stats_json.is_some()).collect();
        let read = lakesmith_delta::read_spec(self.table)?;
        let leaves: BTreeSet<Vec<String>> = lakesmith_delta::stats_leaves(self.table).into_iter().collect();
        let inspection = Inspection { read: Arc::new(read), leaves: leaves.into_iter().collect(), depth };
        let threads = match self.options.threads {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            n => n,
        };
        let options = &self.session.options;
        let control = RewriteControl {
            memory_bytes: self.options.memory_bytes,
            threads,
            spill_folder: std::env::temp_dir(),
            cancel: options.cancel.clone(),
            progress: options.progress.clone(),
            now_ms: options.world.clone(),
            runtime: self.session.runtime.handle().clone(),
        };
        let found: Mutex<Vec<FsckFinding>> = Mutex::default();
        let input = |index: usize| {
            let mut inputs = lakesmith_delta::input_files(self.table, self.root, &[FileId(with_stats[index])])?;
            inputs.pop().ok_or_else(|| Error::internal("a live file has no input"))
        };
        let each = |index: usize, result: Result<lakesmith_exec::Inspected>| {
            let file = self.file(with_stats[index]);
            let wrong: Vec<FsckFinding> = match result {
                Ok(held) => {
                    let held = Held {
                        rows: held.rows,
                        live_rows: held.live_rows,
                        leaves: &held.leaves,
                        has_vector: file.deletes.is_some(),
                    };
                    let cure =
                        "rewrite the file (lakesmith optimize --force) so that readers don't skip its rows wrongly";
                    let texts = lakesmith_delta::contradictions(self.table, file.stats_json.unwrap_or_default(), held);
                    texts.into_iter().map(|text| self.finding("wrong-statistics", file.path, text, cure)).collect()
                }
                Err(error) => {
                    let cure = "restore the file from a backup";
                    vec![self.finding("corrupt-file", file.path, error.to_string(), cure)]
                }
            };
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(wrong);
        };
        options.progress.begin("reading data files", with_stats.iter().map(|id| self.file(*id).size).sum());
        let looked = lakesmith_exec::inspect_files(self.store, &inspection, with_stats.len(), &input, &control, &each);
        options.progress.end();
        looked?;
        self.report.statistics = with_stats.len() as u64;
        for finding in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.report.found(finding, self.options.findings_max);
        }
        Ok(())
    }
}
