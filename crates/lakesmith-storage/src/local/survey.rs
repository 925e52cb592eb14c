//! Walking a folder with everything that a sweep wants to know: also folders, empty ones and those left alone.

use std::path::PathBuf;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{ObjectMeta, Result};
use tokio::sync::mpsc;

use super::list::{Entry, entries, metadata};
use super::object_meta;

/// Entries sent in one go, and how many such batches wait for the reader.
const BATCH: usize = 512;
const QUEUE: usize = 4;

/// An entry of the walk.
#[derive(Debug)]
pub(crate) enum Walked {
    File(ObjectMeta),
    /// A folder, after everything in it.
    Folder {
        path: Path,
        /// No file lies in it at any depth.
        empty: bool,
    },
    /// A folder that was not entered.
    Closed(Path),
    /// A link and where it really leads, if anywhere.
    Link {
        path: Path,
        target: Option<PathBuf>,
    },
}

/// Decides by its name whether a folder is entered.
pub(crate) type Enter = Box<dyn Fn(&str) -> bool + Send>;

/// Walks everything below `root` in batches, entering only folders whose name `enter` allows.
pub(crate) fn survey(root: Path, enter: Enter) -> BoxStream<'static, Result<Vec<Walked>>> {
    futures::stream::once(async move {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::task::spawn_blocking(move || {
            let mut walk = Walk { enter, batch: Vec::with_capacity(BATCH), sender };
            if let Err(e) = walk.run(root).and_then(|()| walk.flush().map(|_| ())) {
                // Nobody listens any more: then nobody needs the error.
                let _ = walk.sender.blocking_send(Err(e));
            }
        });
        futures::stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|item| (item, receiver)) })
    })
    .flatten()
    .boxed()
}

struct Walk {
    enter: Enter,
    batch: Vec<Walked>,
    sender: mpsc::Sender<Result<Vec<Walked>>>,
}

/// A folder on the way down.
struct Open {
    path: Path,
    below: Vec<Path>,
    empty: bool,
}

impl Walk {
    fn run(&mut self, root: Path) -> Result<()> {
        let Some(first) = self.open(root)? else { return Ok(()) };
        let mut way = vec![first];
        while let Some(folder) = way.last_mut() {
            if let Some(next) = folder.below.pop() {
                match self.open(next)? {
                    Some(opened) => way.push(opened),
                    None => return Ok(()),
                }
                continue;
            }
            let Some(done) = way.pop() else { break };
            // The root itself is no entry.
            let Some(above) = way.last_mut() else { break };
            above.empty &= done.empty;
            if !self.send(Walked::Folder { path: done.path, empty: done.empty })? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads one folder; `None` if nobody listens any more.
    fn open(&mut self, path: Path) -> Result<Option<Open>> {
        let mut opened = Open { path, below: Vec::new(), empty: true };
        for entry in entries(&opened.path)? {
            let sent = match entry? {
                Entry::Folder(path) if (self.enter)(path.filename().unwrap_or_default()) => {
                    opened.below.push(path);
                    true
                }
                Entry::Folder(path) => {
                    opened.empty = false;
                    self.send(Walked::Closed(path))?
                }
                Entry::File(path, entry) => {
                    opened.empty = false;
                    if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                        let target = std::fs::canonicalize(entry.path()).ok();
                        self.send(Walked::Link { path: path.clone(), target })?;
                    }
                    match metadata(&entry, &path)? {
                        Some(metadata) => self.send(Walked::File(object_meta(&metadata, path)?))?,
                        None => true,
                    }
                }
                Entry::Link(path, link) => {
                    opened.empty = false;
                    self.send(Walked::Link { path, target: std::fs::canonicalize(link).ok() })?
                }
                Entry::Other => {
                    opened.empty = false;
                    true
                }
            };
            if !sent {
                return Ok(None);
            }
        }
        Ok(Some(opened))
    }

    fn send(&mut self, walked: Walked) -> Result<bool> {
        self.batch.push(walked);
        if self.batch.len() < BATCH { Ok(true) } else { self.flush() }
    }

    /// False if nobody listens any more.
    fn flush(&mut self) -> Result<bool> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        Ok(self.sender.blocking_send(Ok(batch)).is_ok())
    }
}
