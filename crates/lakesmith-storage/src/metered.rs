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

/// Requests sent since the store was opened; a listing counts once, whatever its pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RequestCounts {
    /// Reads of an object or of a range.
    pub get: u64,
    /// Writes, a part of a multipart upload counting as one.
    pub put: u64,
    /// Listings.
    pub list: u64,
    /// Look-ups of size and time.
    pub head: u64,
    /// Objects asked to be deleted.
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
}

impl Metered {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, counters: Arc<Counters>, ranges_are_cheap: bool) -> Self {
        Self { inner, counters, ranges_are_cheap }
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
        self.inner.delete_stream(
            locations
                .inspect(move |location| {
                    if location.is_ok() {
                        Counters::add(&counters.delete, 1);
                    }
                })
                .boxed(),
        )
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        Counters::add(&self.counters.list, 1);
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        Counters::add(&self.counters.list, 1);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Counters::add(&self.counters.list, 1);
        self.inner.list_with_delimiter(prefix).await
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
