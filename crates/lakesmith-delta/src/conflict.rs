//! Delta's own conflict rules: which changes of protocol, metadata and domains by a winner a commit may ride over.
//!
//! # Source
//! Delta Spark `ConflictChecker.scala` (`checkProtocolCompatibility`, `checkNoMetadataUpdates`,
//! `tryResolveMetadataUpdateConflict`, `checkForUpdatedDomainMetadata`).

use std::collections::BTreeMap;

use lakesmith_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::actions::{Metadata, Protocol};
use crate::clustering::CLUSTERING_DOMAIN;
use crate::features;
use crate::properties::FileUse;
use crate::winners::Winner;

/// What our own commit changes beside files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnChanges {
    pub metadata: bool,
    pub protocol: bool,
    /// Domains.
    pub domains: Vec<String>,
    /// Not even files: the commit is for the history alone.
    pub nothing: bool,
    /// What of the files they rest on.
    pub files: FileUse,
}

/// Properties that a winner may set to exactly this value.
const ALLOWED_VALUES: [(&str, &str); 5] = [
    ("delta.enableDeletionVectors", "true"),
    ("delta.enableInCommitTimestamps", "true"),
    ("delta.enableRowTracking", "true"),
    ("delta.columnMapping.mode", "name"),
    ("delta.checkpointPolicy", "v2"),
];

/// Properties that come with those.
const ALLOWED_KEYS: [&str; 7] = [
    "delta.columnMapping.maxColumnId",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "io.unitycatalog.tableId",
    "ucTableId",
];

/// Field metadata that comes with column mapping.
const MAPPING_ID: &str = "delta.columnMapping.id";
const MAPPING_NAME: &str = "delta.columnMapping.physicalName";

/// A commit changed of the metadata only the high-water mark of identity columns.
pub(crate) const IDENTITY_TAG: &str = "delta.identity.schemaUpdate";

/// Checks that our commit may follow `winner`.
///
/// # Errors
/// `Conflict` with `DELTA_PROTOCOL_CHANGED`, `DELTA_METADATA_CHANGED` or `DELTA_CONCURRENT_TRANSACTION`.
pub(crate) fn check(protocol: &Protocol, metadata: &Metadata, winner: &Winner, own: &OwnChanges) -> Result<()> {
    if own.nothing {
        return Ok(());
    }
    if let Some(theirs) = &winner.protocol {
        check_protocol(protocol, theirs, winner, own)?;
    }
    if let Some(theirs) = &winner.metadata {
        check_metadata(metadata, theirs, winner, own)?;
    }
    check_files(winner, own)?;
    // Keys are named in the domain and columns in the metadata: both by one commit, or they may not fit.
    if own.metadata && winner.summary.domains_changed.iter().any(|domain| domain == CLUSTERING_DOMAIN) {
        return Err(metadata_changed(winner, "it changed the clustering keys"));
    }
    match winner.summary.domains_changed.iter().find(|domain| own.domains.contains(domain)) {
        None => Ok(()),
        Some(domain) => Err(with_winner(
            Error::new(
                ErrorKind::Conflict,
                format!("another writer changed the metadata domain {domain} meanwhile; load the table and run again"),
            )
            .class("DELTA_CONCURRENT_TRANSACTION"),
            winner,
        )),
    }
}

/// A change that rests on the files rides over no commit that brings others.
fn check_files(winner: &Winner, own: &OwnChanges) -> Result<()> {
    let others = match own.files {
        FileUse::Untouched => false,
        FileUse::Read => !winner.summary.added.is_empty(),
        FileUse::Removed => !winner.summary.added.is_empty() || !winner.summary.removed.is_empty(),
    };
    if !others {
        return Ok(());
    }
    let message = "another writer changed the table's files meanwhile, which this statement has not seen; run it again";
    Err(with_winner(Error::new(ErrorKind::Conflict, message).class("DELTA_CONCURRENT_APPEND"), winner))
}

fn check_protocol(ours: &Protocol, theirs: &Protocol, winner: &Winner, own: &OwnChanges) -> Result<()> {
    if own.protocol {
        return Err(protocol_changed(winner, "both commits change the table's protocol"));
    }
    let kept = features::expand(theirs);
    if let Some(dropped) = features::expand(ours).iter().find(|f| !kept.contains(f)) {
        return Err(protocol_changed(winner, &format!("it dropped the feature {dropped}")));
    }
    Ok(())
}

fn check_metadata(ours: &Metadata, theirs: &Metadata, winner: &Winner, own: &OwnChanges) -> Result<()> {
    if own.metadata {
        return Err(metadata_changed(winner, "both commits change the table's metadata"));
    }
    if winner.tag_is_true(IDENTITY_TAG) {
        return Ok(());
    }
    match what_changed(ours, theirs) {
        None => Ok(()),
        Some(what) => Err(metadata_changed(winner, &what)),
    }
}

/// The first difference that a rewrite cannot ride over.
fn what_changed(ours: &Metadata, theirs: &Metadata) -> Option<String> {
    if ours.id != theirs.id {
        return Some("the table was replaced by another one".into());
    }
    if ours.partition_columns != theirs.partition_columns {
        return Some("the partition columns changed".into());
    }
    if ours.name != theirs.name || ours.description != theirs.description {
        return Some("the name or the description changed".into());
    }
    if ours.format != theirs.format || ours.unknown != theirs.unknown {
        return Some("the format of the data files changed".into());
    }
    changed_property(&ours.configuration, &theirs.configuration)
        .map(|key| format!("the property {key} changed"))
        .or_else(|| {
            let same = schema_is_compatible(&ours.schema_string, &theirs.schema_string, enables_mapping(ours, theirs));
            (!same).then(|| "the schema changed".to_string())
        })
}

fn enables_mapping(ours: &Metadata, theirs: &Metadata) -> bool {
    let mode = |m: &Metadata| m.configuration.get("delta.columnMapping.mode").cloned().unwrap_or_default();
    matches!(mode(ours).as_str(), "" | "none") && mode(theirs) == "name"
}

fn changed_property<'a>(ours: &'a BTreeMap<String, String>, theirs: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let same = |key: &str| ours.get(key) == theirs.get(key);
    let allowed = |key: &str| {
        let mapping_from_other_mode =
            key == "delta.columnMapping.mode" && ours.get(key).is_some_and(|mode| mode != "none");
        let new_or_absent = !ours.contains_key(key) && theirs.contains_key(key);
        let to_allowed_value = ALLOWED_VALUES.iter().any(|(k, v)| *k == key && theirs.get(key).is_some_and(|t| t == v));
        (to_allowed_value && !mapping_from_other_mode) || (ALLOWED_KEYS.contains(&key) && new_or_absent)
    };
    ours.keys().chain(theirs.keys()).map(String::as_str).find(|key| !same(key) && !allowed(key))
}

/// True if two schemas are equal but for the ids and names that enabling column mapping gives to each field, the names
/// being those that the files have already.
fn schema_is_compatible(ours: &str, theirs: &str, mapping_enabled: bool) -> bool {
    if ours == theirs {
        return true;
    }
    let (Ok(ours), Ok(mut theirs)) = (serde_json::from_str::<Value>(ours), serde_json::from_str::<Value>(theirs))
    else {
        return false;
    };
    (!mapping_enabled || strip_mapping(&mut theirs)) && ours == theirs
}

/// Takes the mapping's metadata out; false if a field's files would be read under another name.
fn strip_mapping(node: &mut Value) -> bool {
    match node {
        Value::Array(items) => items.iter_mut().all(strip_mapping),
        Value::Object(object) => {
            let name = object.get("name").cloned();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                let physical = metadata.shift_remove(MAPPING_NAME);
                metadata.shift_remove(MAPPING_ID);
                if physical.is_some() && physical != name {
                    return false;
                }
            }
            object.iter_mut().filter(|(key, _)| *key != "metadata").all(|(_, value)| strip_mapping(value))
        }
        _ => true,
    }
}

fn protocol_changed(winner: &Winner, why: &str) -> Error {
    let message = format!("another writer changed the table's protocol meanwhile: {why}; load the table and run again");
    with_winner(Error::new(ErrorKind::Conflict, message).class("DELTA_PROTOCOL_CHANGED"), winner)
}

fn metadata_changed(winner: &Winner, why: &str) -> Error {
    let message = format!("another writer changed the table's metadata meanwhile: {why}; load the table and run again");
    with_winner(Error::new(ErrorKind::Conflict, message).class("DELTA_METADATA_CHANGED"), winner)
}

/// The error, saying who won.
pub(crate) fn with_winner(error: Error, winner: &Winner) -> Error {
    error
        .with("version", winner.summary.version)
        .with("operation", winner.summary.operation.as_deref().unwrap_or("unknown"))
}

#[cfg(test)]
#[path = "conflict_tests.rs"]
mod tests;
