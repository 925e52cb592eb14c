//! Streams the listing of a table's folder through a sweep's rule; memory grows with the number of folders, not of files.

use std::collections::{BTreeSet, HashSet};

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::op::{EntryList, KeptEntry, SweptEntry};
use lakesmith_core::plan::sweep::{
    Found, FoundKind, Guards, ICEBERG_FOLDER, NameRule, PathHash, PathSet, SweepReason, SweepRule, TABLE_MARKS, Verdict,
};
use lakesmith_core::{ErrorKind, Result};
use object_store::ObjectMeta;
use tokio::runtime::Handle;

use crate::control::Cancel;
use crate::failure::storage_error;
use crate::local::{self, Walked};
use crate::location::{Location, Scheme};
use crate::spill::SpillWriter;
use crate::store::Store;

/// Listings at once on an object store.
const LISTINGS_IN_FLIGHT: usize = 16;
/// Objects handled between two looks at a request to stop.
const BATCH: usize = 512;

/// What a listing held, judged.
#[derive(Debug)]
pub struct Survey {
    /// What the rule lets go.
    pub candidates: EntryList<SweptEntry>,
    /// Bytes of the candidates.
    pub bytes: u64,
    /// What looks superfluous and stays.
    pub kept: EntryList<KeptEntry>,
    /// Other tables below the root.
    pub guards: Guards,
    /// Folders, hidden ones and the root left out.
    pub folders: u64,
    /// Files looked at, hidden ones included.
    pub files: u64,
}

/// Lists everything below `root` and judges it.
///
/// # Errors
/// `Unavailable` from the storage or the temporary folder, `Cancelled`.
pub async fn survey(store: &Store, root: &Location, rule: &SweepRule, cancel: &Cancel) -> Result<Survey> {
    let mut surveyor = Surveyor::new(root, rule);
    if root.kind() == Scheme::File {
        surveyor.local(store, cancel).await?;
    } else {
        surveyor.remote(store, cancel).await?;
    }
    surveyor.finish()
}

/// Which of `paths` below `root` the storage still lists: an answer that says "deleted" is a promise only.
///
/// # Errors
/// `Unavailable` from the storage, `Cancelled`.
pub async fn still_listed(store: &Store, root: &Location, paths: &PathSet, cancel: &Cancel) -> Result<PathSet> {
    let mut listed = store.list_parallel(root, LISTINGS_IN_FLIGHT).try_ready_chunks(BATCH);
    let mut found = Vec::new();
    while let Some(batch) = listed.next().await {
        cancel.check()?;
        let batch = batch.map_err(|e| e.1)?;
        let below = batch.iter().filter_map(|info| info.location.relative_to(root));
        found.extend(below.filter(|path| paths.contains(path)).map(PathHash::of));
    }
    Ok(found.into_iter().collect())
}

/// A listing entry that was made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// On-disk path below the root.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: Option<i64>,
    /// True for a folder.
    pub is_folder: bool,
}

/// Judges entries one by one.
pub struct Surveyor<'a> {
    root: &'a Location,
    rule: &'a SweepRule,
    guards: Guards,
    candidates: SpillWriter<SweptEntry>,
    kept: SpillWriter<KeptEntry>,
    folders: u64,
    files: u64,
    /// Folders seen in names of objects, for storages that have none of their own.
    seen_folders: HashSet<PathHash>,
    last_folder: String,
}

impl<'a> Surveyor<'a> {
    /// Nothing seen so far.
    pub fn new(root: &'a Location, rule: &'a SweepRule) -> Self {
        Self {
            root,
            rule,
            guards: Guards::default(),
            candidates: SpillWriter::new(),
            kept: SpillWriter::new(),
            folders: 0,
            files: 0,
            seen_folders: HashSet::new(),
            last_folder: String::new(),
        }
    }

    async fn local(&mut self, store: &Store, cancel: &Cancel) -> Result<()> {
        let mut walk = local_walk(store, self.root, self.rule.names())?;
        while let Some(batch) = walk.next().await {
            cancel.check()?;
            for walked in batch.map_err(|e| storage_error(e, "list", self.root))? {
                self.walked(store, walked)?;
            }
        }
        Ok(())
    }

    fn walked(&mut self, store: &Store, walked: Walked) -> Result<()> {
        match walked {
            Walked::File(meta) => self.object(store, meta),
            Walked::Folder { path, empty } => {
                let location = self.root.with_key(path.as_ref());
                let Some(path) = location.relative_to(self.root) else { return Ok(()) };
                self.folders += 1;
                let found = Found { path, kind: FoundKind::Folder { empty } };
                self.judge(&found, 0, None)
            }
            Walked::Link { path, target } => {
                let location = self.root.with_key(path.as_ref());
                if let Some(path) = location.relative_to(self.root) {
                    self.guards.note(path);
                }
                if let Some(below) = target.as_deref().and_then(|target| below(target, self.root)) {
                    self.guards.note_link(&below);
                }
                Ok(())
            }
            Walked::Closed(path) => {
                let location = self.root.with_key(path.as_ref());
                if let Some(path) = location.relative_to(self.root) {
                    self.guards.note(path);
                }
                Ok(())
            }
        }
    }

    async fn remote(&mut self, store: &Store, cancel: &Cancel) -> Result<()> {
        let names = self.rule.names().clone();
        let mut parts = store.list_parts(self.root, LISTINGS_IN_FLIGHT, move |name| !names.hides_name(name));
        while let Some(part) = parts.next().await {
            cancel.check()?;
            let part = part?;
            for path in part.closed {
                self.walked(store, Walked::Closed(path))?;
            }
            for info in part.objects {
                let Some(path) = info.location.relative_to(self.root).map(str::to_owned) else { continue };
                if is_folder_mark(&path, info.size) {
                    continue;
                }
                self.count_folders(&path);
                self.file(&path, info.size, Some(info.modified_ms))?;
            }
        }
        Ok(())
    }

    fn object(&mut self, store: &Store, meta: ObjectMeta) -> Result<()> {
        let info = store.info(meta);
        let Some(path) = info.location.relative_to(self.root) else { return Ok(()) };
        self.file(path, info.size, Some(info.modified_ms))
    }

    /// Judges an entry of somebody else's listing.
    ///
    /// # Errors
    /// `Unavailable` from the temporary folder.
    pub fn entry(&mut self, entry: &ListedEntry) -> Result<()> {
        if !entry.is_folder {
            return self.file(&entry.path, entry.size, entry.modified_ms);
        }
        self.folders += u64::from(!self.rule.names().hides(&entry.path));
        self.guards.note(&entry.path);
        // Such a listing may be old: whether a folder is empty now can't be told.
        Ok(())
    }

    /// Judges a file of which the log says that it left the table before the retention.
    ///
    /// # Errors
    /// `Unavailable` from the temporary folder.
    pub fn removed(&mut self, path: &str, size: u64, removed_ms: Option<i64>) -> Result<()> {
        self.files += 1;
        self.judge(&Found { path, kind: FoundKind::Removed }, size, removed_ms)
    }

    fn file(&mut self, path: &str, size: u64, modified_ms: Option<i64>) -> Result<()> {
        self.files += 1;
        self.guards.note(path);
        self.judge(&Found { path, kind: FoundKind::File { modified_ms } }, size, modified_ms)
    }

    fn judge(&mut self, found: &Found<'_>, size: u64, modified_ms: Option<i64>) -> Result<()> {
        match self.rule.judge(found, &self.guards) {
            Verdict::Delete(reason) => {
                let age_ms = modified_ms.map(|ms| self.rule.retention().now_ms().saturating_sub(ms));
                self.candidates.push(&SweptEntry { path: found.path.to_owned(), size, age_ms, reason })
            }
            // Guarded folders are told once, not file by file.
            Verdict::Keep(reason) if self.guards.covers(found.path).is_none() => {
                self.kept.push(&KeptEntry { path: found.path.to_owned(), reason })
            }
            Verdict::Keep(_) | Verdict::Ignore => Ok(()),
        }
    }

    fn count_folders(&mut self, path: &str) {
        let Some((folder, _)) = path.rsplit_once('/') else { return };
        if folder == self.last_folder || self.rule.names().hides(folder) {
            return;
        }
        self.last_folder.clear();
        self.last_folder.push_str(folder);
        let mut above = Some(folder);
        while let Some(folder) = above {
            if !self.seen_folders.insert(PathHash::of(folder)) {
                return;
            }
            self.folders += 1;
            above = folder.rsplit_once('/').map(|(parent, _)| parent);
        }
    }

    /// All entries were seen, but not by a listing of the storage: other tables are looked for in the folders of the
    /// candidates and above them, and files that the log doesn't know are judged by the time that the storage tells.
    /// `runtime` waits for the storage; the calling thread must not be one of its own.
    ///
    /// # Errors
    /// `Unavailable` from the storage or the temporary folder, `Cancelled`.
    pub fn finish_unlisted(mut self, store: &Store, runtime: &Handle, cancel: &Cancel) -> Result<Survey> {
        let found = std::mem::take(&mut self.candidates).finish()?;
        let mut folders = BTreeSet::new();
        found.for_each(|entry| {
            let mut above = entry.path.rsplit_once('/').map(|(folder, _)| folder);
            while let Some(folder) = above.filter(|folder| !folders.contains(*folder)) {
                folders.insert(folder.to_owned());
                above = folder.rsplit_once('/').map(|(folder, _)| folder);
            }
            Ok(())
        })?;
        for mark in runtime.block_on(table_marks(store, self.root, folders, cancel))? {
            self.guards.note(&mark);
        }
        let mut asked = Vec::new();
        found.for_each(|entry| {
            // Of these the log knows when they left the table, whatever their own time is.
            if entry.reason == SweepReason::Removed {
                return self.candidates.push(&entry);
            }
            asked.push(entry);
            if asked.len() < BATCH { Ok(()) } else { self.ask(store, runtime, cancel, std::mem::take(&mut asked)) }
        })?;
        self.ask(store, runtime, cancel, asked)?;
        self.finish()
    }

    /// Judges candidates again by what the storage says of them; what is not there is none.
    fn ask(&mut self, store: &Store, runtime: &Handle, cancel: &Cancel, entries: Vec<SweptEntry>) -> Result<()> {
        cancel.check()?;
        let root = self.root;
        let answers = futures::stream::iter(entries)
            .map(|entry| async move { (store.head(&root.join(&entry.path)).await, entry) })
            .buffered(LISTINGS_IN_FLIGHT)
            .collect::<Vec<_>>();
        for (answer, entry) in runtime.block_on(answers) {
            match answer {
                Ok(info) => {
                    let kind = FoundKind::File { modified_ms: Some(info.modified_ms) };
                    self.judge(&Found { path: &entry.path, kind }, info.size, Some(info.modified_ms))?;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The whole listing was seen.
    ///
    /// # Errors
    /// `Unavailable` from the temporary folder.
    pub fn finish(self) -> Result<Survey> {
        let guards = self.guards;
        let (mut candidates, mut kept) = (self.candidates.finish()?, self.kept.finish()?);
        if !guards.is_empty() {
            // A mark may have come after the files beside it.
            candidates = without(&candidates, |entry: &SweptEntry| guards.covers(&entry.path).is_some())?;
            let mut told = SpillWriter::new();
            for (path, reason) in guards.iter() {
                told.push(&KeptEntry { path: path.to_owned(), reason })?;
            }
            kept.for_each(|entry| if guards.covers(&entry.path).is_some() { Ok(()) } else { told.push(&entry) })?;
            kept = told.finish()?;
        }
        let mut bytes = 0u64;
        candidates.for_each(|entry| {
            bytes = bytes.saturating_add(entry.size);
            Ok(())
        })?;
        Ok(Survey { candidates, bytes, kept, guards, folders: self.folders, files: self.files })
    }
}

/// One path for each of the folders that holds another table: the mark by which it is known.
async fn table_marks(
    store: &Store,
    root: &Location,
    folders: BTreeSet<String>,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let mark = |folder: String| async move {
        cancel.check()?;
        for below in TABLE_MARKS.into_iter().chain([ICEBERG_FOLDER]) {
            let mut listing = store.list_stream(&root.join(&format!("{folder}/{below}")));
            while let Some(info) = listing.try_next().await? {
                let path = info.location.relative_to(root).unwrap_or_default().to_owned();
                let mut guards = Guards::default();
                guards.note(&path);
                if !guards.is_empty() {
                    return Ok(Some(path));
                }
            }
        }
        Ok(None)
    };
    let marks = futures::stream::iter(folders).map(mark).buffer_unordered(LISTINGS_IN_FLIGHT);
    marks.try_filter_map(|mark| std::future::ready(Ok(mark))).try_collect().await
}

/// The list without the entries that `drop` names.
fn without<T>(list: &EntryList<T>, drop: impl Fn(&T) -> bool) -> Result<EntryList<T>>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let mut left = SpillWriter::new();
    list.for_each(|entry| if drop(&entry) { Ok(()) } else { left.push(&entry) })?;
    left.finish()
}

/// The on-disk path below the root of a place told by its real path.
fn below(target: &std::path::Path, root: &Location) -> Option<String> {
    let root = std::fs::canonicalize(root.local_path()?).ok()?;
    let below = target.strip_prefix(root).ok()?.to_str()?;
    (!below.is_empty()).then(|| below.to_owned())
}

fn local_walk(
    store: &Store,
    root: &Location,
    names: &NameRule,
) -> Result<BoxStream<'static, object_store::Result<Vec<Walked>>>> {
    let names = names.clone();
    Ok(local::survey(store.path(root)?, Box::new(move |name| !names.hides_name(name))))
}

/// True for the empty objects by which Hadoop's clients remember folders: they are no files, and come again.
fn is_folder_mark(path: &str, size: u64) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    size == 0 && (name.ends_with("_$folder$") || !name.contains('.'))
}
