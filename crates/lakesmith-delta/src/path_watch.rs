//! Looks at the paths of all file actions that the kernel reads, and settles their spelling where that is needed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StructArray};
use delta_kernel::engine::arrow_data::{ArrowEngineData, EngineDataArrowExt as _};
use delta_kernel::{EngineData, FileDataReadResultIterator, FileMeta, KernelError, KernelResult};
use lakesmith_storage::Location;
use md5::{Digest as _, Md5};

use crate::spelling::{identity, is_plain, settled};

/// A file whose path the log spells in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TwoSpellings {
    /// The spelling that was read last.
    pub path: String,
    /// Name of the log's file that holds it.
    pub log_file: String,
}

/// What is done with paths.
#[derive(Debug)]
pub(crate) enum PathWatch {
    /// Paths pass as they are; it is noted whether one of them is not [plain](is_plain).
    Notice(Notice),
    /// Every path is given the spelling by which Spark compares, and files with two spellings are noted.
    Settle(Settle),
}

#[derive(Debug)]
pub(crate) struct Notice {
    root: Location,
    unusual: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Settle {
    root: Location,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Spelling by object; both as digests, since a table may have millions of files.
    spellings: HashMap<u128, u128>,
    first: Option<TwoSpellings>,
}

impl PathWatch {
    pub(crate) fn new(root: &Location, settle: bool) -> Self {
        let root = root.clone();
        if settle {
            Self::Settle(Settle { root, seen: Mutex::default() })
        } else {
            Self::Notice(Notice { root, unusual: AtomicBool::new(false) })
        }
    }

    /// True once a path went by that another spelling could stand for.
    pub(crate) fn saw_unusual(&self) -> bool {
        matches!(self, Self::Notice(notice) if notice.unusual.load(Ordering::Relaxed))
    }

    /// The first file seen in two spellings.
    pub(crate) fn two_spellings(&self) -> Option<TwoSpellings> {
        match self {
            Self::Notice(_) => None,
            Self::Settle(settle) => settle.seen.lock().unwrap_or_else(PoisonError::into_inner).first.clone(),
        }
    }

    /// Reads `files` by `read` and watches what comes.
    pub(crate) fn over(
        self: &Arc<Self>,
        files: &[FileMeta],
        read: impl Fn(&[FileMeta]) -> KernelResult<FileDataReadResultIterator> + Send + 'static,
    ) -> KernelResult<FileDataReadResultIterator> {
        let watch = Arc::clone(self);
        match self.as_ref() {
            Self::Notice(_) => Ok(Box::new(read(files)?.map(move |data| data.inspect(|d| watch.notice(d.as_ref()))))),
            // File by file, so that the file is known.
            Self::Settle(_) => Ok(Box::new(Vec::from(files).into_iter().flat_map(move |file| {
                let watch = Arc::clone(&watch);
                let name = file.location.path().rsplit('/').next().unwrap_or_default().to_owned();
                let data: FileDataReadResultIterator = match read(&[file]) {
                    Ok(data) => Box::new(data.map(move |d| watch.settle(d?, &name))),
                    Err(error) => Box::new(std::iter::once(Err(error))),
                };
                data
            }))),
        }
    }

    fn notice(&self, data: &dyn EngineData) {
        let Self::Notice(notice) = self else { return };
        let Some(data) = data.any_ref().downcast_ref::<ArrowEngineData>() else { return };
        for (_, files) in file_actions(data.record_batch()) {
            let Some(paths) = paths(files) else { continue };
            if !notice.unusual.load(Ordering::Relaxed)
                && paths.iter().flatten().any(|path| !is_plain(path, &notice.root))
            {
                notice.unusual.store(true, Ordering::Relaxed);
            }
        }
    }

    fn settle(&self, data: Box<dyn EngineData>, log_file: &str) -> KernelResult<Box<dyn EngineData>> {
        let Self::Settle(settle) = self else { return Ok(data) };
        let batch = data.try_into_record_batch()?;
        let mut columns = batch.columns().to_vec();
        for (index, files) in file_actions(&batch) {
            let Some(paths) = paths(files) else { continue };
            settle.note(paths, log_file);
            let plain: StringArray = paths.iter().map(|p| p.map(|p| settled(p, &settle.root))).collect();
            columns[index] = with_paths(files, plain)?;
        }
        let settled = RecordBatch::try_new(batch.schema(), columns).map_err(KernelError::generic_err)?;
        Ok(Box::new(ArrowEngineData::new(settled)))
    }
}

impl Settle {
    fn note(&self, paths: &StringArray, log_file: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for path in paths.iter().flatten() {
            let spelling = digest(path);
            let known = *seen.spellings.entry(digest(&identity(path, &self.root))).or_insert(spelling);
            if known != spelling && seen.first.is_none() {
                seen.first = Some(TwoSpellings { path: path.to_owned(), log_file: log_file.to_owned() });
            }
        }
    }
}

fn digest(text: &str) -> u128 {
    u128::from_le_bytes(Md5::digest(text).into())
}

fn file_actions(batch: &RecordBatch) -> impl Iterator<Item = (usize, &StructArray)> {
    let column = |name| {
        let index = batch.schema_ref().index_of(name).ok()?;
        Some((index, batch.column(index).as_struct_opt()?))
    };
    ["add", "remove"].into_iter().filter_map(column)
}

fn paths(files: &StructArray) -> Option<&StringArray> {
    files.column_by_name("path")?.as_string_opt::<i32>()
}

fn with_paths(files: &StructArray, paths: StringArray) -> KernelResult<ArrayRef> {
    let mut children = files.columns().to_vec();
    if let Some((place, _)) = files.fields().find("path") {
        children[place] = Arc::new(paths);
    }
    let rebuilt = StructArray::try_new(files.fields().clone(), children, files.nulls().cloned());
    Ok(Arc::new(rebuilt.map_err(KernelError::generic_err)?))
}
