//! Counts every request that goes to a store, whoever sends it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use crate::location::Scheme;

/// Requests sent since the store was opened, but for those that a client repeats by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RequestCounts {
    /// Reads of an object or of a range.
    pub get: u64,
    /// Writes, a part of a multipart upload counting as one.
    pub put: u64,
    /// Pages of listings.
    pub list: u64,
    /// Look-ups of size and time.
    pub head: u64,
    /// Deletions, one in bulk counting as one.
    pub delete: u64,
    /// Bytes asked for by reads.
    pub bytes_read: u64,
    /// Bytes sent by writes.
    pub bytes_written: u64,
}

impl RequestCounts {
    /// Requests of every kind.
    pub fn total(&self) -> u64 {
        self.get + self.put + self.list + self.head + self.delete
    }
}

/// How many objects a request names at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bulk {
    listed: u64,
    deleted: u64,
}

impl Bulk {
    /// What the client for this kind of storage asks for.
    pub(crate) fn of(kind: Scheme) -> Self {
        match kind {
            Scheme::S3 => Self { listed: 1000, deleted: 1000 },
            Scheme::Gcs => Self { listed: 1000, deleted: 1 },
            Scheme::Abfss | Scheme::Azure => Self { listed: 5000, deleted: 256 },
            Scheme::File | Scheme::Memory => Self { listed: u64::MAX, deleted: 1 },
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    get: AtomicU64,
    put: AtomicU64,
    list: AtomicU64,
    head: AtomicU64,
    delete: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> RequestCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestCounts {
            get: load(&self.get),
            put: load(&self.put),
            list: load(&self.list),
            head: load(&self.head),
            delete: load(&self.delete),
            bytes_read: load(&self.bytes_read),
            bytes_written: load(&self.bytes_written),
        }
    }

    /// A deletion that went past [`Metered`].
    pub(crate) fn count_delete(&self) {
        Self::add(&self.delete, 1);
    }

    /// A page of a listing that went past [`Metered`].
    pub(crate) fn count_list(&self) {
        Self::add(&self.list, 1);
    }

    fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

/// An object store that counts.
#[derive(Debug)]
pub(crate) struct Metered {
    inner: Arc<dyn ObjectStore>,
    counters: Arc<Counters>,
    /// The inner store reads many ranges well by itself; else near ranges are joined into one request here.
    ranges_are_cheap: bool,
    bulk: Bulk,
}

impl Metered {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, counters: Arc<Counters>, kind: Scheme) -> Self {
        let ranges_are_cheap = matches!(kind, Scheme::File | Scheme::Memory);
        Self { inner, counters, ranges_are_cheap, bulk: Bulk::of(kind) }
    }

    /// The same objects; each page but the first is counted with its first object.
    fn counting_pages(
        &self,
        objects: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let counters = Arc::clone(&self.counters);
        Counters::add(&counters.list, 1);
        let (page, mut seen) = (self.bulk.listed, 0);
        objects
            .inspect(move |object| {
                if object.is_ok() {
                    if seen > 0 && seen % page == 0 {
                        Counters::add(&counters.list, 1);
                    }
                    seen += 1;
                }
            })
            .boxed()
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metered({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Metered {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        Counters::add(&self.counters.put, 1);
        Counters::add(&self.counters.bytes_written, payload.content_length() as u64);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(MeteredUpload { inner, counters: Arc::clone(&self.counters) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        Counters::add(if head { &self.counters.head } else { &self.counters.get }, 1);
        let result = self.inner.get_opts(location, options).await?;
        if !head {
            Counters::add(&self.counters.bytes_read, result.range.end - result.range.start);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if self.ranges_are_cheap {
            Counters::add(&self.counters.get, ranges.len() as u64);
            let read = self.inner.get_ranges(location, ranges).await?;
            Counters::add(&self.counters.bytes_read, read.iter().map(|b| b.len() as u64).sum());
            return Ok(read);
        }
        object_store::coalesce_ranges(
            ranges,
            |range| self.get_range(location, range),
            object_store::OBJECT_STORE_COALESCE_DEFAULT,
        )
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counters = Arc::clone(&self.counters);
        let (request, mut asked) = (self.bulk.deleted, 0);
        self.inner.delete_stream(
            locations
                .inspect(move |location| {
                    if location.is_ok() {
                        if asked % request == 0 {
                            counters.count_delete();
                        }
                        asked += 1;
                    }
                })
                .boxed(),
        )
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counting_pages(self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counting_pages(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Counters::add(&self.counters.list, 1);
        let listed = self.inner.list_with_delimiter(prefix).await?;
        let entries = (listed.objects.len() + listed.common_prefixes.len()) as u64;
        Counters::add(&self.counters.list, entries.saturating_sub(1) / self.bulk.listed);
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        Counters::add(&self.counters.put, 1);
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct MeteredUpload {
    inner: Box<dyn MultipartUpload>,
    counters: Arc<Counters>,
}

#[async_trait]
impl MultipartUpload for MeteredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        Counters::add(&self.counters.put, 1);
        Counters::add(&self.counters.bytes_written, data.content_length() as u64);
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn pages_and_bulk_deletions_count_as_the_requests_that_they_are() {
        let counters = Arc::new(Counters::default());
        let inner = Arc::new(InMemory::new());
        let bulk = Bulk { listed: 2, deleted: 3 };
        let store = Metered { bulk, ..Metered::new(inner, Arc::clone(&counters), Scheme::Memory) };
        let paths: Vec<Path> = (0..5).map(|i| Path::from(format!("t/{i}"))).collect();
        for path in &paths {
            store.put(path, PutPayload::from_static(b"x")).await.unwrap();
        }
        let folder = Path::from("t");
        let listed: Vec<_> = store.list(Some(&folder)).try_collect().await.unwrap();
        assert_eq!((listed.len(), counters.snapshot().list), (5, 3));
        store.list_with_delimiter(Some(&folder)).await.unwrap();
        assert_eq!(counters.snapshot().list, 6);
        assert_eq!(store.list(Some(&Path::from("none"))).count().await, 0);
        assert_eq!(counters.snapshot().list, 7);
        let gone: Vec<_> =
            store.delete_stream(futures::stream::iter(paths).map(Ok).boxed()).try_collect().await.unwrap();
        assert_eq!((gone.len(), counters.snapshot().delete), (5, 2));
    }
}
