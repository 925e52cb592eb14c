//! `_last_checkpoint`: where readers start without listing the whole log.
//!
//! # Source
//! Delta PROTOCOL.md, "Last Checkpoint File".

use bytes::Bytes;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use serde::{Deserialize, Serialize};

use crate::log_files::LOG_FOLDER;

/// What the hint says. No checksum: readers take a hint without one as it is, and one that names a missing checkpoint
/// only sends them to the listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hint {
    pub version: u64,
    /// Actions.
    pub size: u64,
    pub size_in_bytes: u64,
    pub num_of_add_files: u64,
}

/// Writes the hint unless the present one names a later version.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn publish(store: &Store, root: &Location, hint: &Hint) -> Result<()> {
    if published(store, root).await?.is_some_and(|present| present > hint.version) {
        return Ok(());
    }
    let text = serde_json::to_vec(hint)
        .map_err(|e| Error::internal("the hint to the checkpoint could not be written as JSON").caused_by(e))?;
    store.put(&location(root), Bytes::from(text)).await
}

fn location(root: &Location) -> Location {
    root.join(&format!("{LOG_FOLDER}/_last_checkpoint"))
}

/// The version that the present hint names; a damaged one counts for none and is replaced.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn published(store: &Store, root: &Location) -> Result<Option<u64>> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    match store.get(&location(root)).await {
        Ok(bytes) => Ok(serde_json::from_slice::<Version>(&bytes).ok().map(|v| v.version)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
