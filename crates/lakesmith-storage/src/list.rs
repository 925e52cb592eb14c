//! Listing a wide tree with several requests at once.

use std::collections::BTreeSet;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;
use object_store::path::Path;

use crate::failure::storage_error;
use crate::location::Location;
use crate::store::{ObjectInfo, Store};

/// Folder levels that are looked at to find enough folders; partition folders seldom nest deeper.
const LEVELS_MAX: usize = 3;
/// Objects of a folder that is listed to its ground that are handed on together.
const BATCH: usize = 512;

/// A part of a listing.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Objects, each in one part only.
    pub(crate) objects: Vec<ObjectInfo>,
    /// Folders that were not entered.
    pub(crate) closed: Vec<Path>,
}

impl Store {
    /// Everything below `prefix`, in no order, with at most `requests_max` listings at once.
    ///
    /// The upper folder levels are listed one by one until there are enough folders to share out. A level is handed on
    /// page by page where the storage has pages; only the names of its folders are kept.
    ///
    /// # Errors
    /// `Unavailable`, as an item of the stream.
    pub fn list_parallel(&self, prefix: &Location, requests_max: usize) -> BoxStream<'static, Result<ObjectInfo>> {
        let parts = self.list_parts(prefix, requests_max, |_| true);
        parts.map_ok(|part| futures::stream::iter(part.objects.into_iter().map(Ok))).try_flatten().boxed()
    }

    /// As [`Store::list_parallel`]; folders of the upper levels that `enter` turns down by their names are not listed.
    pub(crate) fn list_parts(
        &self,
        prefix: &Location,
        requests_max: usize,
        enter: impl Fn(&str) -> bool + Send + 'static,
    ) -> BoxStream<'static, Result<Part>> {
        let path = match self.path(prefix) {
            Ok(path) => path,
            Err(e) => return futures::stream::once(async { Err(e) }).boxed(),
        };
        let listing = Listing {
            store: self.clone(),
            requests_max: requests_max.max(1),
            enter,
            current: futures::stream::empty().boxed(),
            levels: 0,
            folders: BTreeSet::from([path]),
        };
        let next = |mut listing: Listing<_>| async move { Ok(listing.next().await?.map(|part| (part, listing))) };
        futures::stream::try_unfold(listing, next).boxed()
    }

    /// The direct children of a folder.
    fn level(&self, folder: Path) -> BoxStream<'static, Result<Found>> {
        let store = self.clone();
        let prefix = self.root().with_key(folder.as_ref());
        self.list_level(folder)
            .map_ok(move |page| {
                let objects = page.objects.into_iter().map(|meta| store.info(meta)).collect();
                Found { objects, folders: page.common_prefixes }
            })
            .map_err(move |e| storage_error(e, "list", &prefix))
            .boxed()
    }

    /// Everything below a folder.
    fn ground(&self, folder: &Path) -> BoxStream<'static, Result<Found>> {
        let objects = self.list_stream(&self.root().with_key(folder.as_ref())).try_ready_chunks(BATCH);
        objects.map_ok(|objects| Found { objects, folders: Vec::new() }).map_err(|e| e.1).boxed()
    }
}

/// What an answer holds.
struct Found {
    objects: Vec<ObjectInfo>,
    folders: Vec<Path>,
}

struct Listing<F> {
    store: Store,
    requests_max: usize,
    enter: F,
    /// One level, or all that is left.
    current: BoxStream<'static, Result<Found>>,
    /// Levels looked at.
    levels: usize,
    /// Folders that `current` found. A set, because a storage may name one on several pages.
    folders: BTreeSet<Path>,
}

impl<F: Fn(&str) -> bool> Listing<F> {
    async fn next(&mut self) -> Result<Option<Part>> {
        loop {
            if let Some(found) = self.current.try_next().await? {
                let enter = |path: &Path| (self.enter)(path.filename().unwrap_or_default());
                let (open, closed): (Vec<Path>, Vec<Path>) = found.folders.into_iter().partition(enter);
                self.folders.extend(open);
                return Ok(Some(Part { objects: found.objects, closed }));
            }
            if self.folders.is_empty() {
                return Ok(None);
            }
            self.current = self.deeper();
        }
    }

    fn deeper(&mut self) -> BoxStream<'static, Result<Found>> {
        let folders = std::mem::take(&mut self.folders);
        let one_level = self.levels < LEVELS_MAX && folders.len() < self.requests_max;
        self.levels += 1;
        let store = self.store.clone();
        futures::stream::iter(folders)
            .map(move |folder| if one_level { store.level(folder) } else { store.ground(&folder) })
            .flatten_unordered(self.requests_max)
            .boxed()
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
