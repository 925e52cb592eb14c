//! Reads the manifests of a snapshot, several at once, and hands their entries out in the order of the list.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::Store;

use crate::manifest::{self, Entry, Metrics};
use crate::manifest_list::ManifestFile;
use crate::metadata::TableMetadata;
use crate::path::Paths;

/// Manifests that are being read or wait to be looked at: writers make them about 8 MiB large.
const READ_AHEAD: usize = 8;

/// The entries of a manifest.
#[derive(Debug)]
pub(crate) struct ReadManifest {
    pub(crate) listed: ManifestFile,
    pub(crate) entries: Vec<Entry>,
}

/// What is needed to read manifests.
#[derive(Debug, Clone)]
pub(crate) struct ManifestReader {
    pub(crate) store: Store,
    pub(crate) paths: Paths,
    pub(crate) metadata: Arc<TableMetadata>,
}

impl ManifestReader {
    /// The entries of `manifests`, manifest by manifest.
    pub(crate) fn read(
        &self,
        manifests: Vec<ManifestFile>,
        wanted: Metrics,
    ) -> BoxStream<'static, Result<ReadManifest>> {
        let (reader, wanted) = (self.clone(), Arc::new(wanted));
        futures::stream::iter(manifests)
            .map(move |listed| {
                let (reader, wanted) = (reader.clone(), Arc::clone(&wanted));
                async move { reader.one(listed, wanted).await }
            })
            .buffered(READ_AHEAD)
            .boxed()
    }

    async fn one(self, listed: ManifestFile, wanted: Arc<Metrics>) -> Result<ReadManifest> {
        let location = listed.location(&self.store, &self.paths)?;
        let bytes = match self.store.get(&location).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let error = Error::not_found("a manifest of the snapshot does not exist").with("path", &location);
                return Err(self.paths.missing(error));
            }
            other => other?,
        };
        let metadata = self.metadata;
        blocking(move || {
            let entries =
                manifest::parse(&bytes, &listed, &metadata, &wanted).map_err(|e| e.with("path", &location))?;
            Ok(ReadManifest { listed, entries })
        })
        .await
    }
}

/// Runs what keeps a processor busy where it does not stop others.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) if e.is_cancelled() => Err(Error::new(ErrorKind::Cancelled, "the run was stopped")),
        Err(e) => Err(Error::internal("reading a manifest failed unexpectedly").caused_by(e)),
    }
}
