//! Listing a wide tree with several requests at once.

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;
use object_store::path::Path;

use crate::failure::storage_error;
use crate::location::Location;
use crate::store::{ObjectInfo, Store};

/// Folder levels that are looked at to find enough prefixes; partition folders seldom nest deeper.
const LEVELS_MAX: usize = 3;

impl Store {
    /// Everything below `prefix`, in no order, with at most `requests_max` listings at once.
    ///
    /// The upper folder levels are listed one by one until there are enough prefixes to share out; the queue between
    /// the listings and the reader is bounded.
    ///
    /// # Errors
    /// `Unavailable`, as an item of the stream.
    pub fn list_parallel(&self, prefix: &Location, requests_max: usize) -> BoxStream<'static, Result<ObjectInfo>> {
        let (store, prefix) = (self.clone(), prefix.clone());
        let requests_max = requests_max.max(1);
        futures::stream::once(async move {
            let (objects, prefixes, _) = store.split(&prefix, requests_max, &|_| true).await?;
            let listings = prefixes.into_iter().map(move |path| {
                let below = store.root().with_key(path.as_ref());
                store.list_stream(&below)
            });
            let deeper = futures::stream::iter(listings).flatten_unordered(requests_max);
            Ok(futures::stream::iter(objects.into_iter().map(Ok)).chain(deeper))
        })
        .try_flatten()
        .boxed()
    }

    /// Lists folder levels until at least `wanted` prefixes are left to list: the objects on the way, those prefixes, and
    /// the ones that `enter` turned down by their names.
    pub(crate) async fn split(
        &self,
        prefix: &Location,
        wanted: usize,
        enter: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(Vec<ObjectInfo>, Vec<Path>, Vec<Path>)> {
        let mut objects = Vec::new();
        let mut closed = Vec::new();
        let mut prefixes = vec![self.path(prefix)?];
        for _ in 0..LEVELS_MAX {
            if prefixes.len() >= wanted {
                break;
            }
            let inner = self.object_store();
            let level: Vec<_> = futures::stream::iter(std::mem::take(&mut prefixes))
                .map(|path| {
                    let inner = &inner;
                    async move { inner.list_with_delimiter(Some(&path)).await }
                })
                .buffered(wanted)
                .try_collect()
                .await
                .map_err(|e| storage_error(e, "list", prefix))?;
            for found in level {
                objects.extend(found.objects.into_iter().map(|meta| self.info(meta)));
                let (open, shut): (Vec<Path>, Vec<Path>) =
                    found.common_prefixes.into_iter().partition(|path| enter(path.filename().unwrap_or_default()));
                prefixes.extend(open);
                closed.extend(shut);
            }
            if prefixes.is_empty() {
                break;
            }
        }
        Ok((objects, prefixes, closed))
    }
}
