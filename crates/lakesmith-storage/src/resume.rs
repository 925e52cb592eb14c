//! Reads and listings that go on after a broken connection.
//!
//! The clients send a failed request again, but not one whose answer broke off on the way: among the thousand pages of a
//! large listing one is enough to end a run. Writes are not sent again here: theirs may have landed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::client::HttpError;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Broken answers in a row before a request gives up.
const BREAKS_MAX: u32 = 6;
/// Wait after the first broken answer; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A store whose reads are repeated and whose listings resume where their answer broke off.
#[derive(Debug)]
pub(crate) struct Resuming {
    inner: Arc<dyn ObjectStore>,
    patience: Duration,
}

impl Resuming {
    /// A failure that already took `patience` is final: the client has been trying all that time.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, patience: Duration) -> Self {
        Self { inner, patience }
    }

    fn resumed(&self, prefix: Option<&Path>, offset: Option<Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let listing = Listing {
            inner: Arc::clone(&self.inner),
            prefix: prefix.cloned(),
            breaks: Breaks::new(self.patience),
            page: start(&self.inner, prefix, offset.as_ref()),
            last: offset,
            ascending: true,
        };
        futures::stream::unfold(Some(listing), |listing| async move {
            let mut listing = listing?;
            match listing.next().await? {
                Ok(meta) => Some((Ok(meta), Some(listing))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

fn start(
    inner: &Arc<dyn ObjectStore>,
    prefix: Option<&Path>,
    offset: Option<&Path>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    match offset {
        Some(offset) => inner.list_with_offset(prefix, offset),
        None => inner.list(prefix),
    }
}

struct Listing {
    inner: Arc<dyn ObjectStore>,
    prefix: Option<Path>,
    page: BoxStream<'static, Result<ObjectMeta>>,
    /// Where to go on.
    last: Option<Path>,
    /// Names came in order so far; otherwise going on could leave some out.
    ascending: bool,
    breaks: Breaks,
}

impl Listing {
    async fn next(&mut self) -> Option<Result<ObjectMeta>> {
        loop {
            match self.page.next().await? {
                Ok(meta) => {
                    self.ascending &= self.last.as_ref().is_none_or(|last| *last < meta.location);
                    self.last = Some(meta.location.clone());
                    self.breaks.progressed();
                    return Some(Ok(meta));
                }
                Err(error) if self.ascending && self.breaks.go_on(&error).await => {
                    self.page = start(&self.inner, self.prefix.as_ref(), self.last.as_ref());
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Decides whether a failed read or listing is worth another try.
pub(crate) struct Breaks {
    patience: Duration,
    since: Instant,
    count: u32,
}

impl Breaks {
    /// A failure that already took `patience` is final.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, since: Instant::now(), count: 0 }
    }

    fn progressed(&mut self) {
        self.since = Instant::now();
        self.count = 0;
    }

    /// Waits and says yes if the answer broke off on its way.
    pub(crate) async fn go_on(&mut self, error: &Error) -> bool {
        if self.count >= BREAKS_MAX || self.since.elapsed() >= self.patience || !broke_off(error) {
            return false;
        }
        tracing::debug!(%error, "an answer broke off and is asked for again");
        tokio::time::sleep(FIRST_WAIT * 2u32.pow(self.count)).await;
        self.count += 1;
        true
    }
}

fn broke_off(error: &Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<HttpError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl fmt::Display for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Resuming {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut breaks = Breaks::new(self.patience);
        loop {
            match self.inner.get_opts(location, options.clone()).await {
                Err(error) if breaks.go_on(&error).await => {}
                result => return result,
            }
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.resumed(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.resumed(prefix, Some(offset.clone()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut breaks = Breaks::new(self.patience);
        loop {
            match self.inner.list_with_delimiter(prefix).await {
                Err(error) if breaks.go_on(&error).await => {}
                result => return result,
            }
        }
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::TryStreamExt as _;
    use object_store::ObjectStoreExt as _;
    use object_store::client::HttpErrorKind;
    use object_store::memory::InMemory;

    use super::*;

    /// Each answer breaks off after two entries.
    #[derive(Debug)]
    struct Breaking(InMemory, AtomicUsize);

    impl fmt::Display for Breaking {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Breaking")
        }
    }

    fn broken() -> Error {
        let source = HttpError::new(HttpErrorKind::Decode, std::io::Error::other("connection reset"));
        Error::Generic { store: "test", source: Box::new(source) }
    }

    #[async_trait]
    impl ObjectStore for Breaking {
        async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.0.put_opts(location, payload, options).await
        }

        async fn put_multipart_opts(&self, to: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
            self.0.put_multipart_opts(to, o).await
        }

        async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
            self.0.get_opts(location, options).await
        }

        fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            self.0.delete_stream(locations)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.list(prefix).take(2).chain(futures::stream::iter([Err(broken())])).boxed()
        }

        fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let rest: Vec<_> =
                futures::executor::block_on(self.0.list_with_offset(prefix, offset).try_collect()).unwrap();
            let whole = rest.len() <= 2;
            let page = futures::stream::iter(rest.into_iter().take(2).map(Ok));
            if whole { page.boxed() } else { page.chain(futures::stream::iter([Err(broken())])).boxed() }
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            match self.1.fetch_add(1, Ordering::Relaxed) {
                0 => Err(broken()),
                _ => self.0.list_with_delimiter(prefix).await,
            }
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.0.copy_opts(from, to, options).await
        }
    }

    async fn store(names: &[&str]) -> Arc<Breaking> {
        let inner = InMemory::new();
        for name in names {
            inner.put(&Path::from(*name), "x".into()).await.unwrap();
        }
        Arc::new(Breaking(inner, AtomicUsize::new(0)))
    }

    #[tokio::test]
    async fn every_object_is_listed_once_though_each_answer_breaks_off() {
        let names = ["t/a", "t/b", "t/c", "t/d", "t/e"];
        let breaking = store(&names).await;
        let resuming = Resuming::new(Arc::clone(&breaking) as Arc<dyn ObjectStore>, Duration::from_secs(60));
        let listed: Vec<ObjectMeta> = resuming.list(Some(&Path::from("t"))).try_collect().await.unwrap();
        assert_eq!(listed.iter().map(|m| m.location.as_ref()).collect::<Vec<_>>(), names);
        assert_eq!(breaking.1.load(Ordering::Relaxed), 3);
        assert_eq!(resuming.list_with_delimiter(Some(&Path::from("t"))).await.unwrap().objects.len(), 5);
    }

    #[tokio::test]
    async fn a_client_that_has_tried_long_enough_is_believed() {
        let resuming = Resuming::new(store(&["t/a", "t/b", "t/c"]).await, Duration::ZERO);
        let listed: Result<Vec<ObjectMeta>> = resuming.list(Some(&Path::from("t"))).try_collect().await;
        assert!(listed.is_err());
    }
}
