//! Deleting against a store that refuses bulk requests or some objects.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use lakesmith_core::plan::sweep::{PathHash, PathSet};
use lakesmith_storage::{Cancel, Location, Store, SweepPlan, sweep};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Accepts a deletion only alone, and never of a name that ends in `locked`. The first answers for names that end in
/// `reset` get lost before the deletion, after it, and before it again.
#[derive(Debug)]
struct NoBulk(Arc<InMemory>, Arc<AtomicUsize>);

impl fmt::Display for NoBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoBulk")
    }
}

fn refused(why: &str) -> Error {
    Error::Generic { store: "test", source: why.into() }
}

#[async_trait::async_trait]
impl ObjectStore for NoBulk {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, resets) = (Arc::clone(&self.0), Arc::clone(&self.1));
        futures::stream::once(async move {
            let all: Vec<Result<Path>> = locations.collect().await;
            if all.len() > 1 {
                return futures::stream::iter(vec![Err(refused("bulk is not offered"))]).boxed();
            }
            if all.iter().flatten().any(|path| path.as_ref().ends_with("locked")) {
                return futures::stream::iter(vec![Err(refused("locked"))]).boxed();
            }
            if all.iter().flatten().any(|path| path.as_ref().ends_with("reset")) {
                let before = resets.fetch_add(1, Ordering::Relaxed);
                if before == 1 {
                    for path in all.iter().flatten() {
                        object_store::ObjectStoreExt::delete(&*inner, path).await.unwrap();
                    }
                }
                if before < 3 {
                    let source = HttpError::new(HttpErrorKind::Interrupted, std::io::Error::other("connection reset"));
                    let error = Error::Generic { store: "test", source: Box::new(source) };
                    return futures::stream::iter(vec![Err(error)]).boxed();
                }
            }
            inner.delete_stream(futures::stream::iter(all).boxed())
        })
        .flatten()
        .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn objects_that_bulk_deletion_leaves_are_deleted_one_by_one() {
    let root = Location::parse("memory://sweep/t").unwrap();
    let store = Store::from_object_store(Arc::new(NoBulk(Arc::default(), Arc::default())), &root);
    let mut outputs: Vec<Location> = (0..1500).map(|i| root.join(&format!("f{i:04}"))).collect();
    outputs.extend([root.join("locked"), root.join("reset")]);
    for output in &outputs {
        store.put(output, Bytes::from_static(b"x")).await.unwrap();
    }
    let report = sweep(&store, SweepPlan::abandoned(outputs).unwrap()).await.unwrap();
    assert_eq!(report.deleted.len(), 1501);
    assert_eq!(report.failed.len(), 1);
    assert_eq!(report.failed[0].0, root.join("locked"));
    assert!(report.failed[0].1.contains("locked"));
    let left: Vec<Location> = store.list(&root).await.unwrap().into_iter().map(|info| info.location).collect();
    assert_eq!(left, [root.join("locked")]);
}

#[tokio::test]
async fn what_is_still_listed_is_not_gone() {
    let root = Location::parse("memory://still/t").unwrap();
    let store = Store::open(&root, &lakesmith_storage::StoreOptions::default()).unwrap();
    for name in ["a b/x%", "y", "z"] {
        store.put(&root.join(name), Bytes::from_static(b"x")).await.unwrap();
    }
    let asked: PathSet = ["a b/x%", "y", "gone"].into_iter().map(PathHash::of).collect();
    let still = lakesmith_storage::still_listed(&store, &root, &asked, &Cancel::default()).await.unwrap();
    assert_eq!(still, ["a b/x%", "y"].into_iter().map(PathHash::of).collect());
}
