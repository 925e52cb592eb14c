//! Listing folders with `std::fs`, in bounded memory.

use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::PathBuf;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, Result};
use tokio::sync::mpsc;

use super::{file_path, io_failure, object_meta};

/// Entries found ahead of the reader.
const QUEUE: usize = 1024;

/// All files below `prefix` whose path is greater than `after`, folder by folder.
///
/// A link to a folder is not entered, because what lies behind it is not below the prefix; a link to a file is a file.
pub(super) fn walk(prefix: Path, after: Option<Path>) -> BoxStream<'static, Result<ObjectMeta>> {
    // Nothing is read before somebody polls: a listing may be built outside a runtime.
    futures::stream::once(async move {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::task::spawn_blocking(move || {
            if let Err(e) = walk_into(prefix, after.as_ref(), &sender) {
                // Nobody listens any more: then nobody needs the error.
                let _ = sender.blocking_send(Err(e));
            }
        });
        futures::stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|item| (item, receiver)) })
    })
    .flatten()
    .boxed()
}

fn walk_into(prefix: Path, after: Option<&Path>, sender: &mpsc::Sender<Result<ObjectMeta>>) -> Result<()> {
    let mut folders = vec![prefix];
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder)? {
            match entry? {
                Entry::Other | Entry::Link(..) => {}
                Entry::Folder(path) => folders.push(path),
                Entry::File(path, entry) => {
                    if after.is_some_and(|after| path <= *after) {
                        continue;
                    }
                    let Some(metadata) = metadata(&entry, &path)? else { continue };
                    if sender.blocking_send(object_meta(&metadata, path)).is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// The files and folders directly in `prefix`.
pub(super) fn folder(prefix: &Path) -> Result<ListResult> {
    let mut found = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
    for entry in entries(prefix)? {
        match entry? {
            Entry::Other | Entry::Link(..) => {}
            Entry::Folder(path) => found.common_prefixes.push(path),
            Entry::File(path, entry) => {
                if let Some(metadata) = metadata(&entry, &path)? {
                    found.objects.push(object_meta(&metadata, path)?);
                }
            }
        }
    }
    found.common_prefixes.sort();
    found.objects.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(found)
}

pub(super) enum Entry {
    Folder(Path),
    File(Path, DirEntry),
    /// A link to a folder, or a broken one, which listings leave out.
    Link(Path, PathBuf),
    /// Nothing that a table can hold: a socket, a name that is no text.
    Other,
}

pub(super) fn entries(folder: &Path) -> Result<impl Iterator<Item = Result<Entry>> + use<>> {
    let read = match std::fs::read_dir(file_path(folder)) {
        Ok(read) => Some(read),
        // A prefix without objects is an empty listing, not an error.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(e) => return Err(io_failure(e, folder)),
    };
    let folder = folder.clone();
    Ok(read.into_iter().flatten().map(move |entry| classify(&folder, entry)))
}

fn classify(folder: &Path, entry: io::Result<DirEntry>) -> Result<Entry> {
    let entry = entry.map_err(|e| io_failure(e, folder))?;
    let name = entry.file_name();
    let parent = folder.as_ref();
    let path = name.to_str().and_then(|name| {
        Path::parse(if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }).ok()
    });
    let Some(path) = path else {
        tracing::warn!(folder = %file_path(folder).display(), ?name, "left a file with an unusable name out of the listing");
        return Ok(Entry::Other);
    };
    let kind = entry.file_type().map_err(|e| io_failure(e, &path))?;
    if kind.is_symlink() {
        let leads_to_file = std::fs::metadata(entry.path()).is_ok_and(|m| m.is_file());
        return Ok(if leads_to_file { Entry::File(path, entry) } else { Entry::Link(path, entry.path()) });
    }
    Ok(if kind.is_dir() {
        Entry::Folder(path)
    } else if kind.is_file() {
        Entry::File(path, entry)
    } else {
        Entry::Other
    })
}

/// `None` when the file was deleted since its folder was read.
pub(super) fn metadata(entry: &DirEntry, path: &Path) -> Result<Option<Metadata>> {
    let path_of_entry: PathBuf = entry.path();
    match std::fs::metadata(path_of_entry) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io_failure(e, path)),
    }
}
