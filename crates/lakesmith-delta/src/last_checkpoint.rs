//! `_last_checkpoint`: where readers start without listing the whole log.
//!
//! # Source
//! Delta PROTOCOL.md, "Last Checkpoint File".

use bytes::Bytes;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use md5::{Digest, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log_files::{LOG_FOLDER, LogFiles};
use crate::log_state::DeltaTable;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What the hint says, besides its checksum. The schema that it may hold is left out: readers find it in the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hint {
    pub version: u64,
    /// Actions.
    pub size: u64,
    pub size_in_bytes: u64,
    pub num_of_add_files: u64,
}

/// Writes the hint unless the present one names a later version that has a checkpoint.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn publish(store: &Store, root: &Location, hint: &Hint) -> Result<()> {
    if names_checkpoint(store, root, hint.version + 1).await? {
        return Ok(());
    }
    let failed = |e| Error::internal("the hint to the checkpoint could not be written as JSON").caused_by(e);
    let mut value = serde_json::to_value(hint).map_err(failed)?;
    value["checksum"] = checksum(&value).into();
    let text = serde_json::to_vec(&value).map_err(failed)?;
    store.put(&location(root), Bytes::from(text)).await
}

/// Digest of a table's protocol and metadata: another one means that what was planned may no longer hold.
///
/// # Errors
/// `Internal` if they can't be written as JSON.
pub fn configuration_digest(table: &DeltaTable) -> Result<String> {
    serde_json::to_value((&table.log.protocol, &table.log.metadata))
        .map(|value| checksum(&value))
        .map_err(|e| Error::internal("the table's metadata could not be written as JSON").caused_by(e))
}

/// Where the hint is.
pub(crate) fn location(root: &Location) -> Location {
    root.join(&format!("{LOG_FOLDER}/_last_checkpoint"))
}

/// MD5 over the leaves of a JSON document in the order of their paths, its own checksum left out.
///
/// # Source
/// Delta PROTOCOL.md, "JSON checksum".
fn checksum(value: &Value) -> String {
    let mut leaves = Vec::new();
    collect(value, "", &mut leaves);
    leaves.retain(|(path, _)| path != "\"checksum\"");
    leaves.sort();
    let text: Vec<String> = leaves.into_iter().map(|(path, value)| format!("{path}={value}")).collect();
    Md5::digest(text.join(",")).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn collect(value: &Value, path: &str, leaves: &mut Vec<(String, String)>) {
    let below = |name: String| if path.is_empty() { name } else { format!("{path}+{name}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| collect(value, &below(quoted(key)), leaves)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| collect(value, &below(i.to_string()), leaves));
        }
        Value::String(text) => leaves.push((path.to_owned(), quoted(text))),
        other => leaves.push((path.to_owned(), other.to_string())),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", utf8_percent_encode(text, ENCODED))
}

/// The version that the present hint names; a damaged one counts for none and is replaced.
///
/// # Errors
/// `Unavailable` from the storage.
pub(crate) async fn published(store: &Store, root: &Location) -> Result<Option<u64>> {
    match store.get(&location(root)).await {
        Ok(bytes) => Ok(version_in(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version that a hint names; `None` if it is damaged.
pub(crate) fn version_in(hint: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    serde_json::from_slice::<Version>(hint).ok().map(|v| v.version)
}

/// True if the present hint names `version` or a later one, and that has a complete checkpoint.
///
/// # Errors
/// As [`published`].
pub(crate) async fn names_checkpoint(store: &Store, root: &Location, version: u64) -> Result<bool> {
    let Some(named) = published(store, root).await?.filter(|named| *named >= version) else { return Ok(false) };
    // A hint is written after its checkpoint, so a listing that begins now shows it.
    Ok(LogFiles::list(store, root).await?.checkpoints.contains(&named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_the_protocols_example_and_of_sparks_hint() {
        let example = r#"{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2],
            {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"#;
        assert_eq!(checksum(&serde_json::from_str(example).unwrap()), "6a92d155a59bf2eecbd4b4ec7fd1f875");
        let spark = include_str!("../../../fixtures/delta/plain_24_appends/_delta_log/_last_checkpoint");
        let spark: Value = serde_json::from_str(spark).unwrap();
        assert_eq!(Some(checksum(&spark).as_str()), spark["checksum"].as_str());
    }
}
