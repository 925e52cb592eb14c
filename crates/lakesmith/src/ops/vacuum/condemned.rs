//! Deleting in two steps: files are put on a list first, and go when they have been on one long enough and are still
//! superfluous.
//!
//! A list is `_lakesmith/condemned/RUN.jsonl` in the table's folder: a line that says what it is, then a line a file.

use std::collections::BTreeMap;

use bytes::Bytes;
use lakesmith_core::op::{CondemnedRun, EntryList, KeptEntry, SweptEntry};
use lakesmith_core::plan::sweep::{KeepReason, PathHash, PathSet};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, NOTES_FOLDER, SpillWriter, Store, Survey, SweepPlan, Upload, sweep};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::ops::iso;

const FORMAT_VERSION: u32 = 1;
const EXTENSION: &str = ".jsonl";
/// Bytes of a list read at once.
const PIECE: u64 = 4 << 20;

/// The first line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    /// Version of the form.
    #[serde(rename = "lakesmith.condemned")]
    version: u32,
    /// Identity of the table.
    table: String,
    run: String,
    condemned_ms: i64,
    due_ms: i64,
}

pub(super) struct Condemned<'a> {
    pub session: &'a Session,
    pub store: &'a Store,
    pub root: &'a Location,
    /// Identity of the table.
    pub table: &'a str,
    pub now_ms: i64,
}

/// What a run with lists does.
pub(super) struct Split {
    /// Candidates that have been condemned long enough.
    pub due: Survey,
    /// Candidates that are on no list.
    pub fresh: EntryList<SweptEntry>,
    /// Lists that are due.
    pub lists: Vec<Location>,
}

impl Condemned<'_> {
    fn folder(&self) -> Location {
        self.root.join(&format!("{NOTES_FOLDER}/condemned"))
    }

    fn location(&self, run: &str) -> Location {
        self.folder().join(&format!("{run}{EXTENSION}"))
    }

    /// Splits candidates by the lists that earlier runs wrote.
    pub(super) fn split(&self, found: Survey) -> Result<Split> {
        let (mut due, mut waiting, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = SpillWriter::new();
        found.kept.for_each(|entry| kept.push(&entry))?;
        for (list, header) in self.lists()? {
            let Some(header) = header else {
                tracing::warn!(path = %list, "left a list of condemned files alone that is not understood");
                let path = list.relative_to(self.root).unwrap_or_default().to_owned();
                kept.push(&KeptEntry { path, reason: KeepReason::UnknownList })?;
                continue;
            };
            let is_due = header.due_ms <= self.now_ms;
            let paths = if is_due { &mut due } else { &mut waiting };
            self.read(&list, &mut |path| paths.push(PathHash::of(path)))?;
            if is_due {
                lists.push(list);
            }
        }
        let due: PathSet = due.into_iter().collect();
        let waiting: PathSet = waiting.into_iter().collect();
        let (mut now, mut fresh, mut bytes) = (SpillWriter::new(), SpillWriter::new(), 0u64);
        found.candidates.for_each(|entry| {
            if due.contains(&entry.path) {
                bytes = bytes.saturating_add(entry.size);
                now.push(&entry)
            } else if waiting.contains(&entry.path) {
                kept.push(&KeptEntry { path: entry.path, reason: KeepReason::Condemned })
            } else {
                kept.push(&KeptEntry { path: entry.path.clone(), reason: KeepReason::Condemned })?;
                fresh.push(&entry)
            }
        })?;
        let due = Survey { candidates: now.finish()?, kept: kept.finish()?, bytes, ..found };
        Ok(Split { due, fresh: fresh.finish()?, lists })
    }

    /// Writes a list; `None` if there is nothing to put on it.
    pub(super) fn write(&self, fresh: &EntryList<SweptEntry>, days_ms: u64) -> Result<Option<CondemnedRun>> {
        if fresh.is_empty() {
            return Ok(None);
        }
        let run = run_name(self.now_ms, self.session.options.world.new_uuid());
        let due_ms = self.now_ms.saturating_add(i64::try_from(days_ms).unwrap_or(i64::MAX));
        let header = Header {
            version: FORMAT_VERSION,
            table: self.table.to_owned(),
            run: run.clone(),
            condemned_ms: self.now_ms,
            due_ms,
        };
        let runtime = &self.session.runtime;
        let mut upload = runtime.block_on(self.store.upload(&self.location(&run)))?;
        let mut piece = line(&header)?;
        let written = fresh
            .for_each(|entry| {
                piece.extend(line(&entry)?);
                if piece.len() as u64 >= PIECE {
                    runtime.block_on(upload.write(Bytes::from(std::mem::take(&mut piece))))?;
                }
                Ok(())
            })
            .and_then(|()| runtime.block_on(finish(upload, Bytes::from(piece))));
        written.map_err(|e| e.with("run", &run))?;
        Ok(Some(CondemnedRun { run, files: fresh.len(), due: iso(due_ms) }))
    }

    /// Drops lists: files on them start anew.
    pub(super) fn drop_lists(&self, lists: Vec<Location>) -> Result<()> {
        if lists.is_empty() {
            return Ok(());
        }
        let plan = SweepPlan::own_notes(self.root, lists)?;
        let report = self.session.runtime.block_on(sweep(self.store, plan))?;
        match report.failed.into_iter().next() {
            None => Ok(()),
            Some((list, reason)) => {
                Err(Error::unavailable(format!("a list of condemned files could not be deleted: {reason}"))
                    .with("path", list))
            }
        }
    }

    /// Drops the list of one run; a dry run only looks for it.
    pub(super) fn pardon(&self, run: &str, dry_run: bool) -> Result<()> {
        let list = self.location(run);
        let known = self.lists()?.into_iter().find(|(location, _)| *location == list);
        match known {
            None => Err(Error::not_found("there is no list of condemned files of this run").with("run", run)),
            Some((_, None)) => Err(Error::unsupported(
                "the list of condemned files is in a form that this version does not know, or of another table",
            )
            .with("run", run)
            .with("path", list)),
            Some((_, Some(_))) if dry_run => Ok(()),
            Some((_, Some(_))) => self.drop_lists(vec![list]),
        }
    }

    /// Every list that is understood.
    pub(super) fn known_lists(&self) -> Result<Vec<Location>> {
        Ok(self.lists()?.into_iter().filter(|(_, header)| header.is_some()).map(|(list, _)| list).collect())
    }

    /// The lists by location, with what they say; `None` for those not understood.
    fn lists(&self) -> Result<BTreeMap<Location, Option<Header>>> {
        let runtime = &self.session.runtime;
        let mut lists = BTreeMap::new();
        for info in runtime.block_on(self.store.list(&self.folder()))? {
            let mut header = None;
            if info.location.file_name().ends_with(EXTENSION) && info.size > 0 {
                let head = runtime.block_on(self.store.get_range(&info.location, 0..info.size.min(PIECE)))?;
                let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
                header = serde_json::from_slice::<Header>(first).ok();
            }
            let known = header.filter(|h| h.version == FORMAT_VERSION && h.table == self.table);
            lists.insert(info.location, known);
        }
        Ok(lists)
    }

    /// The paths on a list, read piece by piece.
    fn read(&self, list: &Location, each: &mut dyn FnMut(&str)) -> Result<()> {
        let runtime = &self.session.runtime;
        let size = runtime.block_on(self.store.head(list))?.size;
        let mut rest: Vec<u8> = Vec::new();
        let mut is_header = true;
        let mut offset = 0;
        while offset < size {
            let end = size.min(offset + PIECE);
            rest.extend_from_slice(&runtime.block_on(self.store.get_range(list, offset..end))?);
            offset = end;
            let whole = rest.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            for text in rest[..whole].split(|b| *b == b'\n').filter(|text| !text.is_empty()) {
                if !std::mem::take(&mut is_header) {
                    let entry: SweptEntry = serde_json::from_slice(text).map_err(|e| {
                        Error::corrupt("a list of condemned files is damaged; drop it with --pardon")
                            .with("path", list)
                            .caused_by(e)
                    })?;
                    each(&entry.path);
                }
            }
            rest.drain(..whole);
        }
        Ok(())
    }
}

async fn finish(mut upload: Upload, last: Bytes) -> Result<()> {
    upload.write(last).await?;
    upload.finish().await.map(|_| ())
}

fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)
        .map_err(|e| Error::new(ErrorKind::Internal, "a list could not be written as JSON").caused_by(e))?;
    text.push(b'\n');
    Ok(text)
}

/// Sorts by time and is unique: `20260131T120000Z-1a2b3c4d`.
fn run_name(now_ms: i64, id: uuid::Uuid) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms)
        .map_or_else(|_| now_ms.to_string(), |t| t.strftime("%Y%m%dT%H%M%SZ").to_string());
    format!("{time}-{}", &id.simple().to_string()[24..])
}
