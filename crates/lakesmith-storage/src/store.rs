//! A metered store for one scheme and authority, speaking [`Location`] and the workspace's errors.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::{Error, ErrorKind, Result};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ListResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};

use crate::failure::storage_error;
use crate::location::Location;
use crate::metered::{Counters, Metered, RequestCounts};
use crate::open::{self, StoreOptions};
use crate::pages::Pages;
use crate::resume::Breaks;
use crate::single_delete::SingleDelete;
use crate::upload::Upload;

/// The longest time over which one deletion is sent again.
const DELETE_PATIENCE: Duration = Duration::from_secs(60);

/// An object of the storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectInfo {
    /// Where it is.
    pub location: Location,
    /// Bytes.
    pub size: u64,
    /// Last modification, milliseconds since the epoch.
    pub modified_ms: i64,
}

/// What a conditional put found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object did not exist and holds the bytes now.
    Created,
    /// The object exists; after a lost answer it may be our own, so read it before calling this a conflict.
    AlreadyExists,
}

/// A metered store. Cloning shares the connection and the counters.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    counters: Arc<Counters>,
    root: Location,
    pages: Option<Pages>,
    single: Option<Arc<SingleDelete>>,
}

impl Store {
    /// Opens the storage that holds `root`.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other; no request is sent yet.
    pub fn open(root: &Location, options: &StoreOptions) -> Result<Store> {
        let opened = open::open(root, options)?;
        let single = opened.signer.map(SingleDelete::new).transpose();
        let single = single.map_err(|e| storage_error(e, "open", root))?;
        Ok(Store { single: single.map(Arc::new), pages: opened.pages, ..Self::from_object_store(opened.store, root) })
    }

    /// Wraps a store whose paths are the keys of `root`'s storage.
    pub fn from_object_store(inner: Arc<dyn ObjectStore>, root: &Location) -> Store {
        let counters = Arc::new(Counters::default());
        let inner = Arc::new(Metered::new(inner, Arc::clone(&counters), root.kind()));
        Store { inner, counters, root: root.clone(), pages: None, single: None }
    }

    /// The same store, with something to ask for single pages of a listing: wide folders are then not held whole.
    #[must_use]
    pub fn with_pages(self, pages: Arc<dyn PaginatedListStore>) -> Store {
        Store { pages: Some(Pages::new(pages, Duration::ZERO)), ..self }
    }

    /// The direct children of a folder, page by page where the storage offers that.
    pub(crate) fn list_level(&self, folder: Path) -> BoxStream<'static, object_store::Result<ListResult>> {
        if let Some(pages) = self.pages.clone() {
            return pages.level(&folder, Arc::clone(&self.counters));
        }
        let inner = self.object_store();
        futures::stream::once(async move { inner.list_with_delimiter(Some(&folder)).await }).boxed()
    }

    /// The metered store as other libraries expect it. Its paths are [`Location::key`]s.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.inner)
    }

    /// Deletes one object, by a request of its own where bulk requests may not be understood. What breaks off on its way
    /// is sent again: the object can't be more than gone.
    pub(crate) async fn delete_single(&self, path: &Path) -> object_store::Result<()> {
        match &self.single {
            Some(single) => {
                self.counters.count_delete();
                single.delete(path).await
            }
            None => {
                let mut breaks = Breaks::new(DELETE_PATIENCE);
                loop {
                    match self.inner.delete(path).await {
                        Err(error) if breaks.go_on(&error).await => {}
                        result => return result,
                    }
                }
            }
        }
    }

    /// True if the storage is known to refuse bulk deletion.
    pub(crate) fn refuses_bulk(&self) -> bool {
        self.single.as_ref().is_some_and(|single| single.bulk_is_refused())
    }

    /// The storage refused in bulk what it then took one by one.
    pub(crate) fn note_bulk_refusal(&self) {
        if let Some(single) = &self.single {
            single.note_refusal();
        }
    }

    /// The location that the store was opened for.
    pub fn root(&self) -> &Location {
        &self.root
    }

    /// True when `location` is on this storage.
    pub fn holds(&self, location: &Location) -> bool {
        location.kind() == self.root.kind() && location.authority() == self.root.authority()
    }

    /// The path of `location` inside [`Store::object_store`].
    ///
    /// # Errors
    /// `Internal` for another storage's location, `Unsupported` for a name with control characters.
    pub fn path(&self, location: &Location) -> Result<Path> {
        if !self.holds(location) {
            return Err(Error::internal("the object lies on another storage than the opened one")
                .with("path", location)
                .with("storage", &self.root));
        }
        Path::parse(location.key()).map_err(|e| {
            Error::unsupported("the name holds control characters, which object stores do not accept")
                .with("path", location)
                .caused_by(e)
        })
    }

    fn location_of(&self, path: &Path) -> Location {
        self.root.with_key(path.as_ref())
    }

    pub(crate) fn info(&self, meta: ObjectMeta) -> ObjectInfo {
        ObjectInfo {
            location: self.location_of(&meta.location),
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
        }
    }

    /// Reads a whole object.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`.
    pub async fn get(&self, location: &Location) -> Result<Bytes> {
        let path = self.path(location)?;
        let read = async { self.inner.get(&path).await?.bytes().await };
        read.await.map_err(|e| storage_error(e, "read", location))
    }

    /// Reads a range of bytes.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`; `Corrupt` when the object is shorter than the range.
    pub async fn get_range(&self, location: &Location, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let path = self.path(location)?;
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let read = async { self.inner.get_opts(&path, options).await?.bytes().await };
        let bytes = match read.await {
            Ok(bytes) => bytes,
            Err(e) => return Err(self.too_short(location, range.end, storage_error(e, "read", location)).await),
        };
        check_length(&bytes, &range, location)?;
        Ok(bytes)
    }

    /// Reads several ranges, in their order; near ones may share a request.
    ///
    /// # Errors
    /// As [`Store::get_range`].
    pub async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.path(location)?;
        let read = match self.inner.get_ranges(&path, ranges).await {
            Ok(read) => read,
            Err(e) => {
                let end = ranges.iter().map(|r| r.end).max().unwrap_or(0);
                return Err(self.too_short(location, end, storage_error(e, "read", location)).await);
            }
        };
        for (bytes, range) in read.iter().zip(ranges) {
            check_length(bytes, range, location)?;
        }
        Ok(read)
    }

    /// The reason why a range up to `end` could not be read, if it is that the object ends before it: stores answer that
    /// in many ways, and none of them is worth another try.
    async fn too_short(&self, location: &Location, end: u64, error: Error) -> Error {
        if error.kind() != ErrorKind::Unavailable {
            return error;
        }
        match self.head(location).await {
            Ok(object) if object.size < end => ends_early(object.size, end, location),
            _ => error,
        }
    }

    /// Size and time of an object.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`.
    pub async fn head(&self, location: &Location) -> Result<ObjectInfo> {
        let path = self.path(location)?;
        let meta = self.inner.head(&path).await.map_err(|e| storage_error(e, "look up", location))?;
        Ok(self.info(meta))
    }

    /// True when the object exists.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn exists(&self, location: &Location) -> Result<bool> {
        match self.head(location).await {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == lakesmith_core::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Writes an object, replacing what was there, at once or not at all.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn put(&self, location: &Location, bytes: Bytes) -> Result<()> {
        let path = self.path(location)?;
        let put = self.inner.put(&path, PutPayload::from_bytes(bytes)).await;
        put.map(|_| ()).map_err(|e| storage_error(e, "write", location))
    }

    /// Writes an object unless one exists, at once or not at all: never a torn one, never two winners.
    ///
    /// # Errors
    /// `Unavailable`; the object may have landed all the same.
    pub async fn put_if_absent(&self, location: &Location, bytes: Bytes) -> Result<PutOutcome> {
        let path = self.path(location)?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.inner.put_opts(&path, PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(PutOutcome::Created),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(PutOutcome::AlreadyExists)
            }
            Err(e) => Err(storage_error(e, "write", location)),
        }
    }

    /// Starts writing an object piece by piece; nothing is visible before [`Upload::finish`].
    ///
    /// # Errors
    /// `Unsupported` for a name the storage does not accept.
    pub async fn upload(&self, location: &Location) -> Result<Upload> {
        self.upload_within(location, u64::MAX).await
    }

    /// As [`Store::upload`], with parts on their way that hold about `memory_bytes` together; one part in any case.
    ///
    /// # Errors
    /// As [`Store::upload`].
    pub async fn upload_within(&self, location: &Location, memory_bytes: u64) -> Result<Upload> {
        Ok(Upload::new(Arc::clone(&self.inner), self.path(location)?, location.clone(), memory_bytes))
    }

    /// Everything below `prefix`, sorted by name. A folder that does not exist is empty.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn list(&self, prefix: &Location) -> Result<Vec<ObjectInfo>> {
        let mut found: Vec<ObjectInfo> = self.list_stream(prefix).try_collect().await?;
        found.sort();
        Ok(found)
    }

    /// Everything below `prefix`, in the storage's order, page by page.
    pub fn list_stream(&self, prefix: &Location) -> BoxStream<'static, Result<ObjectInfo>> {
        let path = match self.path(prefix) {
            Ok(path) => path,
            Err(e) => return futures::stream::once(async { Err(e) }).boxed(),
        };
        self.translate(self.inner.list(Some(&path)), prefix)
    }

    /// The direct children of `prefix` whose names are greater than `start_after_name`, sorted by name.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn list_from(&self, prefix: &Location, start_after_name: &str) -> Result<Vec<ObjectInfo>> {
        let path = self.path(prefix)?;
        let listed = if start_after_name.is_empty() {
            self.inner.list(Some(&path))
        } else {
            self.inner.list_with_offset(Some(&path), &self.path(&prefix.join(start_after_name))?)
        };
        let direct = |info: &ObjectInfo| {
            info.location.relative_to(prefix).is_some_and(|name| !name.contains('/') && name > start_after_name)
        };
        let mut found: Vec<ObjectInfo> =
            self.translate(listed, prefix).try_filter(|info| std::future::ready(direct(info))).try_collect().await?;
        found.sort();
        Ok(found)
    }

    pub(crate) fn translate(
        &self,
        listed: BoxStream<'static, object_store::Result<ObjectMeta>>,
        prefix: &Location,
    ) -> BoxStream<'static, Result<ObjectInfo>> {
        let (store, prefix) = (self.clone(), prefix.clone());
        listed.map(move |meta| meta.map(|m| store.info(m)).map_err(|e| storage_error(e, "list", &prefix))).boxed()
    }

    /// Requests sent through this store and its clones, and through [`Store::object_store`].
    pub fn requests(&self) -> RequestCounts {
        self.counters.snapshot()
    }
}

fn ends_early(size: u64, wanted: u64, location: &Location) -> Error {
    Error::corrupt(format!("the object has {size} bytes and should have {wanted} at least")).with("path", location)
}

fn check_length(bytes: &Bytes, range: &Range<u64>, location: &Location) -> Result<()> {
    let wanted = range.end - range.start;
    if bytes.len() as u64 == wanted {
        return Ok(());
    }
    Err(ends_early(range.start + bytes.len() as u64, range.end, location))
}
