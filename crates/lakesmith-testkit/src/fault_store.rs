//! An object store that fails at chosen requests.
//!
//! Requests are numbered from 0 in the order in which they arrive, so a test can run an operation once to learn how
//! many it sends, then once more for every number with a fault there.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use lakesmith_storage::{Location, Store, StoreOptions};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// Entries of a page of a folder.
const PAGE: usize = 4;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A 500 before anything happened.
    FailBefore,
    /// The request is carried out; the answer is a 500.
    FailAfterLanding,
    /// A conditional put is carried out, and answered as if the object had existed (the store's client sent it twice).
    /// Other requests pass.
    AlreadyExistsAfterLanding,
    /// The request waits for so many milliseconds first.
    Slow(u64),
    /// A listing leaves out the second half of its entries without saying so. Other requests pass.
    PartialList,
}

/// A fault at one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Number of the request, from 0.
    pub at_request: u64,
    /// What happens there.
    pub kind: FaultKind,
}

/// The failing store. Keep a clone of the `Arc` to ask it what happened.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn ObjectStore>,
    script: Arc<Script>,
}

#[derive(Debug, Default)]
struct Script {
    faults: Vec<Fault>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<String>,
    fired: u64,
}

impl FaultStore {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Vec<Fault>) -> Arc<FaultStore> {
        Arc::new(FaultStore { inner, script: Arc::new(Script { faults, seen: Mutex::default() }) })
    }

    /// Opens the storage of `root` with faults: the handle to ask, and the store to work with.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(root: &Location, faults: Vec<Fault>) -> lakesmith_core::Result<(Arc<FaultStore>, Store)> {
        let inner = Store::open(root, &StoreOptions::default())?.object_store();
        let faulty = FaultStore::new(inner, faults);
        let store = Store::from_object_store(Arc::clone(&faulty) as Arc<dyn ObjectStore>, root);
        let pages = Arc::clone(&faulty) as Arc<dyn PaginatedListStore>;
        Ok((faulty, store.with_pages(pages)))
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.script.seen().requests.len() as u64
    }

    /// The requests so far as text, such as `put_if_absent t/_delta_log/….json`, in order.
    pub fn log(&self) -> Vec<String> {
        self.script.seen().requests.clone()
    }

    /// Faults that made a difference to a request.
    pub fn fired(&self) -> u64 {
        self.script.seen().fired
    }
}

impl Script {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a request and tells what shall happen to it.
    fn arrive(&self, kind: Request, what: &str) -> Option<FaultKind> {
        let mut seen = self.seen();
        let number = seen.requests.len() as u64;
        seen.requests.push(format!("{} {what}", kind.name()));
        let fault = self.faults.iter().find(|f| f.at_request == number).map(|f| f.kind);
        let applies = match fault {
            None => false,
            Some(FaultKind::AlreadyExistsAfterLanding) => kind == Request::PutIfAbsent,
            Some(FaultKind::PartialList) => kind == Request::List,
            Some(FaultKind::FailBefore | FaultKind::FailAfterLanding | FaultKind::Slow(_)) => true,
        };
        seen.fired += u64::from(applies);
        fault.filter(|_| applies)
    }

    /// Carries a request out as the script wants it.
    async fn run<T>(&self, kind: Request, what: &str, request: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = self.arrive(kind, what);
        match fault {
            None | Some(FaultKind::PartialList) => request.await,
            Some(FaultKind::FailBefore) => Err(server_error("before the request")),
            Some(FaultKind::FailAfterLanding) => {
                request.await?;
                Err(server_error("after the request landed"))
            }
            Some(FaultKind::AlreadyExistsAfterLanding) => {
                request.await?;
                Err(Error::AlreadyExists { path: what.to_owned(), source: "injected".into() })
            }
            Some(FaultKind::Slow(ms)) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                request.await
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Put,
    PutIfAbsent,
    Part,
    Complete,
    Abort,
    Get,
    Head,
    List,
    Delete,
    Copy,
}

impl Request {
    fn name(self) -> &'static str {
        match self {
            Request::Put => "put",
            Request::PutIfAbsent => "put_if_absent",
            Request::Part => "put_part",
            Request::Complete => "complete",
            Request::Abort => "abort",
            Request::Get => "get",
            Request::Head => "head",
            Request::List => "list",
            Request::Delete => "delete",
            Request::Copy => "copy",
        }
    }
}

fn server_error(when: &str) -> Error {
    Error::Generic { store: "fault", source: format!("injected 500 Internal Server Error {when}").into() }
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let kind = if options.mode == PutMode::Create { Request::PutIfAbsent } else { Request::Put };
        self.script.run(kind, location.as_ref(), self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.script.run(Request::Put, at.as_ref(), self.inner.put_multipart_opts(at, options)).await?;
        Ok(Box::new(FaultUpload { inner, script: Arc::clone(&self.script), at: at.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let kind = if options.head { Request::Head } else { Request::Get };
        self.script.run(kind, location.as_ref(), self.inner.get_opts(location, options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.script.run(Request::Get, location.as_ref(), self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (script, inner) = (Arc::clone(&self.script), Arc::clone(&self.inner));
        locations
            .then(move |location| {
                let (script, inner) = (Arc::clone(&script), Arc::clone(&inner));
                async move {
                    let location = location?;
                    let what = location.to_string();
                    let delete = async {
                        object_store::ObjectStoreExt::delete(&*inner, &location).await?;
                        Ok(location)
                    };
                    script.run(Request::Delete, &what, delete).await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        faulty_list(&self.script, prefix, self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        faulty_list(&self.script, prefix, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let what = prefix.map(Path::as_ref).unwrap_or_default();
        // The kind of the fault is needed after the answer too, so the request is numbered here.
        let fault = self.script.arrive(Request::List, what);
        match fault {
            Some(FaultKind::FailBefore | FaultKind::FailAfterLanding) => return Err(server_error("in a listing")),
            Some(FaultKind::Slow(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            _ => {}
        }
        let mut listed = self.inner.list_with_delimiter(prefix).await?;
        if fault == Some(FaultKind::PartialList) {
            listed.objects.truncate(listed.objects.len() / 2);
        }
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.script.run(Request::Copy, to.as_ref(), self.inner.copy_opts(from, to, options)).await
    }
}

/// Each page is a request, and can fail as one.
#[async_trait]
impl PaginatedListStore for FaultStore {
    async fn list_paginated(&self, prefix: Option<&str>, options: PaginatedListOptions) -> Result<PaginatedListResult> {
        let folder = Path::parse(prefix.unwrap_or_default())?;
        let ListResult { common_prefixes, objects } = self.list_with_delimiter(Some(&folder)).await?;
        let folders = common_prefixes.into_iter().map(|path| (path, None));
        let mut entries: Vec<(Path, Option<ObjectMeta>)> =
            folders.chain(objects.into_iter().map(|meta| (meta.location.clone(), Some(meta)))).collect();
        entries.retain(|(path, _)| options.page_token.as_deref().is_none_or(|last| path.as_ref() > last));
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let more = entries.len() > PAGE;
        entries.truncate(PAGE);
        let page_token = entries.last().filter(|_| more).map(|(path, _)| path.to_string());
        let (folders, objects): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, meta)| meta.is_none());
        let result = ListResult {
            common_prefixes: folders.into_iter().map(|(path, _)| path).collect(),
            objects: objects.into_iter().filter_map(|(_, meta)| meta).collect(),
        };
        Ok(PaginatedListResult { result, page_token })
    }
}

fn faulty_list(
    script: &Arc<Script>,
    prefix: Option<&Path>,
    listing: BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let what = prefix.map(Path::as_ref).unwrap_or_default();
    let Some(fault) = script.arrive(Request::List, what) else { return listing };
    futures::stream::once(async move {
        match fault {
            FaultKind::FailBefore => futures::stream::iter([Err(server_error("in a listing"))]).boxed(),
            FaultKind::Slow(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                listing
            }
            // Breaking off in the middle, with an error or in silence.
            _ => {
                let mut all: Vec<Result<ObjectMeta>> = listing.collect().await;
                all.truncate(all.len() / 2);
                if fault == FaultKind::FailAfterLanding {
                    all.push(Err(server_error("in the middle of a listing")));
                }
                futures::stream::iter(all).boxed()
            }
        }
    })
    .flatten()
    .boxed()
}

#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    script: Arc<Script>,
    at: Path,
}

#[async_trait]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (script, at, part) = (Arc::clone(&self.script), self.at.clone(), self.inner.put_part(data));
        Box::pin(async move { script.run(Request::Part, at.as_ref(), part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.script.run(Request::Complete, self.at.as_ref(), self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.script.run(Request::Abort, self.at.as_ref(), self.inner.abort()).await
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;
    use lakesmith_core::ErrorKind;
    use lakesmith_storage::PutOutcome;

    use super::*;

    fn open(name: &str, at_request: u64, kind: FaultKind) -> (Arc<FaultStore>, Store, Location) {
        let root = Location::parse(&format!("memory://{name}/t")).unwrap();
        let (faulty, store) = FaultStore::open(&root, vec![Fault { at_request, kind }]).unwrap();
        (faulty, store, root)
    }

    #[tokio::test]
    async fn a_request_fails_before_or_after_it_landed() {
        for (kind, landed) in [(FaultKind::FailBefore, false), (FaultKind::FailAfterLanding, true)] {
            let (faulty, store, root) = open(&format!("{kind:?}"), 0, kind);
            let file = root.join("x");
            let error = store.put_if_absent(&file, Bytes::from_static(b"1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert_eq!(store.exists(&file).await.unwrap(), landed);
            assert_eq!((faulty.requests(), faulty.fired()), (2, 1));
            assert_eq!(faulty.log(), ["put_if_absent t/x", "head t/x"]);
        }
    }

    #[tokio::test]
    async fn a_landed_put_can_be_answered_as_existing() {
        let (faulty, store, root) = open("landed", 0, FaultKind::AlreadyExistsAfterLanding);
        let outcome = store.put_if_absent(&root.join("x"), Bytes::from_static(b"mine")).await.unwrap();
        assert_eq!(outcome, PutOutcome::AlreadyExists);
        assert_eq!(store.get(&root.join("x")).await.unwrap(), "mine");
        assert_eq!(faulty.fired(), 1);
        let (faulty, store, root) = open("plain", 0, FaultKind::AlreadyExistsAfterLanding);
        store.put(&root.join("x"), Bytes::new()).await.unwrap();
        assert_eq!(faulty.fired(), 0, "a plain put passes");
    }

    #[tokio::test]
    async fn a_listing_can_leave_entries_out() {
        let (_, store, root) = open("partial", 4, FaultKind::PartialList);
        for name in ["a", "b", "c", "d"] {
            store.put(&root.join(name), Bytes::new()).await.unwrap();
        }
        assert_eq!(store.list(&root).await.unwrap().len(), 2);
        assert_eq!(store.list(&root).await.unwrap().len(), 4);
    }

    #[tokio::test]
    async fn a_page_of_a_folder_is_a_request_that_can_fail() {
        let names = ["a", "b", "c", "d", "e", "f/g", "h", "i", "j", "k"];
        let put = names.len() as u64;
        let listed = async |name: &str, kind: FaultKind, page: u64| {
            let (faulty, store, root) = open(name, put + page, kind);
            for name in names {
                store.put(&root.join(name), Bytes::new()).await.unwrap();
            }
            let found: lakesmith_core::Result<Vec<_>> = store.list_parallel(&root, 8).try_collect().await;
            let pages = faulty.log()[names.len()..].to_vec();
            (found.map(|found| found.len()).map_err(|e| e.kind()), pages.len())
        };
        // Three pages of the folder and the one of the folder in it.
        assert_eq!(listed("whole", FaultKind::Slow(0), 0).await, (Ok(10), 4));
        assert_eq!(listed("fails", FaultKind::FailBefore, 1).await, (Err(ErrorKind::Unavailable), 2));
        let (partial, _) = listed("half", FaultKind::PartialList, 1).await;
        assert!(partial.is_ok_and(|found| found < 10));
    }

    #[tokio::test]
    async fn deletions_and_uploads_are_requests_too() {
        let (faulty, store, root) = open("upload", 3, FaultKind::FailBefore);
        let mut upload = store.upload(&root.join("big")).await.unwrap();
        upload.write(Bytes::from(vec![0; 20 << 20])).await.unwrap();
        assert_eq!(upload.finish().await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(!store.exists(&root.join("big")).await.unwrap());
        assert_eq!(faulty.fired(), 1);
    }
}
