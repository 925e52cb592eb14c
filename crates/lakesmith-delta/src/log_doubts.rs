//! Signs that the log in front of us is not all of the table's log. Whoever deletes what the log doesn't name must not
//! trust such a log: what a lost commit added would be taken for superfluous.

use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};

use crate::last_checkpoint;
use crate::log_files::{LOG_FOLDER, LogFiles};
use crate::log_state::DeltaTable;

/// Refuses a log that contradicts what is written beside it: a hint to a checkpoint of a version that is not there yet, or
/// a checksum of the loaded version that counts other files.
///
/// # Errors
/// `Corrupt` with the version and what contradicts it; `Unavailable` from the storage.
pub async fn check_undoubted(store: &Store, root: &Location, table: &DeltaTable) -> Result<()> {
    let version = table.state.version;
    let doubt = |what: String| {
        Err(Error::corrupt(format!(
            "{what}: commits of the table seem to be lost, and nothing is deleted by such a log; see `lakesmith fsck`, \
             and restore the log from a copy"
        ))
        .with("path", root)
        .with("version", version))
    };
    if let Some(hinted) = last_checkpoint::published(store, root).await?
        && hinted > version
    {
        return doubt(format!("_last_checkpoint points to version {hinted}, but the log ends at version {version}"));
    }
    let checksum = root.join(&format!("{LOG_FOLDER}/{version:020}.crc"));
    let bytes = match store.get(&checksum).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let counted = serde_json::from_slice::<serde_json::Value>(&bytes).ok().and_then(|c| c["numFiles"].as_u64());
    let files = table.state.files.len() as u64;
    match counted {
        Some(counted) if counted != files => {
            doubt(format!("the checksum of the version counts {counted} files, but the log names {files}"))
        }
        _ => Ok(()),
    }
}

/// Refuses to replace a hint by one to `version` if it names a version that the log does not reach: nothing else may tell
/// that commits were lost.
///
/// # Errors
/// `Corrupt` with the hint and both versions; `Unavailable` from the storage.
pub async fn check_hint_replaceable(store: &Store, root: &Location, version: u64) -> Result<()> {
    let Some(hinted) = last_checkpoint::published(store, root).await?.filter(|hinted| *hinted > version) else {
        return Ok(());
    };
    // Another writer's hint comes after its checkpoint, so a listing that begins now shows that.
    let latest = LogFiles::list(store, root).await?.latest();
    if hinted <= latest {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "_last_checkpoint points to version {hinted}, but the log ends at version {latest}: commits of the table seem to \
         be lost, and no checkpoint is written, because that would remove this sign of it, and a VACUUM then the files \
         that the commits added; restore the log from a copy, or delete _last_checkpoint if the log is known to be whole"
    ))
    .with("path", last_checkpoint::location(root))
    .with("version", latest))
}
