//! Table features: which are in force, and whether we may write a table that has them.
//!
//! # Source
//! Delta PROTOCOL.md, "Table Features" and "Valid Feature Names in Table Features".

use lakesmith_core::table::TableState;
use lakesmith_core::{Error, Result};

use crate::DeltaTable;
use crate::actions::Protocol;

/// Highest reader version that exists.
pub const READER_VERSION_FEATURES: u32 = 3;
/// Highest writer version that exists; protocols of this version list their writer features.
pub const WRITER_VERSION_FEATURES: u32 = 7;

/// Features that older protocol versions imply: name, reader version, writer version.
const LEGACY: [(&str, u32, u32); 7] = [
    ("appendOnly", 1, 2),
    ("invariants", 1, 2),
    ("checkConstraints", 1, 3),
    ("changeDataFeed", 1, 4),
    ("generatedColumns", 1, 4),
    ("columnMapping", 2, 5),
    ("identityColumns", 1, 6),
];

/// Features whose rules a rewrite that moves rows unchanged keeps.
const WRITABLE: [&str; 27] = [
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// Features under which a catalog, not the file system, arbitrates commits.
const CATALOG_MANAGED: [&str; 4] =
    ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommits-preview"];

/// Features that readers must know too.
const READER_WRITER: [&str; 14] = [
    "catalogManaged",
    "catalogOwned-preview",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
    "redirectReaderWriter-preview",
];

/// True if the log of a table with this protocol means what the direct reader takes it to mean.
pub(crate) fn can_be_surveyed(protocol: &Protocol) -> bool {
    reader_version(protocol) <= READER_VERSION_FEATURES
        && protocol.reader_features.iter().flatten().map(ToString::to_string).all(|feature| {
            // Of those that readers must know, what we may write the direct reader knows, too.
            READER_WRITER.contains(&feature.as_str()) && WRITABLE.contains(&feature.as_str())
        })
}

/// Every feature in force, sorted; the ones that an old protocol version implies are spelled out.
pub fn expand(protocol: &Protocol) -> Vec<String> {
    let (reader, writer) = (reader_version(protocol), writer_version(protocol));
    let mut features: Vec<String> =
        protocol.reader_features.iter().chain(&protocol.writer_features).flatten().map(ToString::to_string).collect();
    if writer < WRITER_VERSION_FEATURES {
        let implied = LEGACY.iter().filter(|(_, r, w)| *r <= reader && *w <= writer);
        features.extend(implied.map(|(name, _, _)| (*name).to_string()));
    }
    features.sort();
    features.dedup();
    features
}

/// Reader version of a protocol.
pub(crate) fn reader_version(protocol: &Protocol) -> u32 {
    version(protocol.min_reader_version)
}

/// Writer version of a protocol.
pub(crate) fn writer_version(protocol: &Protocol) -> u32 {
    version(protocol.min_writer_version)
}

fn version(version: impl TryInto<u32>) -> u32 {
    version.try_into().unwrap_or(u32::MAX)
}

/// Checks that rows of this table may be rearranged by us.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Unsupported`]: a feature that we don't know, by name
/// (`DELTA_UNSUPPORTED_FEATURES_FOR_WRITE`), or a table whose commits a catalog arbitrates
/// (`DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION`). [`lakesmith_core::ErrorKind::Corrupt`]: a log by which
/// readers don't agree on the live files.
pub fn check_writable(table: &DeltaTable) -> Result<()> {
    check_features(table)?;
    if let Some(version) = table.log.empty_commit {
        return Err(Error::corrupt(
            "a commit of the log is empty, so what it did to the table is not known; nothing was changed. Run again when \
             its writer has filled it, or restore it from a copy",
        )
        .with("path", &table.state.location)
        .with("version", version));
    }
    match &table.log.two_spellings {
        None => Ok(()),
        Some(two) => Err(Error::corrupt(format!(
            "the log spells the path of one file in two ways, and readers don't agree on whether they are the same: {} \
             is spelled differently elsewhere; nothing was changed. Run `lakesmith checkpoint` on the table, which writes \
             one spelling as Spark understands it, and then run again",
            two.path
        ))
        .with("path", &table.state.location)
        .with("file", &two.path)
        .with("log_file", &two.log_file)
        .with("version", table.state.version)),
    }
}

/// Checks that we know every feature of this table.
///
/// # Errors
/// `Unsupported` as [`check_writable`].
pub fn check_features(table: &DeltaTable) -> Result<()> {
    check(&table.state)
}

fn check(state: &TableState) -> Result<()> {
    if let Some(feature) = state.features.iter().find(|f| is_catalog_managed(f)) {
        return Err(catalog_managed(feature).with("path", &state.location));
    }
    let unknown: Vec<&str> = state.features.iter().map(String::as_str).filter(|f| !WRITABLE.contains(f)).collect();
    if !unknown.is_empty() {
        return Err(Error::unsupported(format!(
            "the table requires features that this version of Lakesmith can't write: {}; nothing was changed",
            unknown.join(", ")
        ))
        .class("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")
        .with("path", &state.location)
        .with("features", unknown.join(", ")));
    }
    if state.min_writer_version > WRITER_VERSION_FEATURES || state.min_reader_version > READER_VERSION_FEATURES {
        return Err(Error::unsupported(format!(
            "the table's protocol (reader {}, writer {}) is newer than this version of Lakesmith can write",
            state.min_reader_version, state.min_writer_version
        ))
        .class("DELTA_INVALID_PROTOCOL_VERSION")
        .with("path", &state.location));
    }
    Ok(())
}

/// True for the features under which a catalog arbitrates commits.
pub(crate) fn is_catalog_managed(feature: &str) -> bool {
    CATALOG_MANAGED.contains(&feature)
}

/// The refusal of a table whose newest commits only its catalog knows.
pub(crate) fn catalog_managed(feature: &str) -> Error {
    Error::unsupported(format!(
        "the table's commits are managed by a catalog (feature '{feature}'), so its files alone must not be worked on; \
         use the engine of that catalog"
    ))
    .class("DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION")
    .with("features", feature)
}

/// The protocol with `additions` supported too, versions raised as far as they need and no further.
///
/// # Source
/// Delta Spark `TableFeatureSupport.withFeature`, `Protocol.normalized`.
pub fn with_features(protocol: &Protocol, additions: &[&str]) -> Protocol {
    let in_force = expand(protocol);
    let missing: Vec<&str> = additions.iter().copied().filter(|f| !in_force.iter().any(|x| x == f)).collect();
    if missing.is_empty() {
        return protocol.clone();
    }
    let mut upgraded = protocol.clone();
    let all: Vec<String> = in_force.iter().cloned().chain(missing.iter().map(|f| (*f).to_string())).collect();
    let reader = |f: &str| READER_WRITER.contains(&f);
    upgraded.min_writer_version = WRITER_VERSION_FEATURES;
    // Column mapping alone is satisfied by reader version 2; any other reader feature needs the lists.
    let needs_reader_list =
        reader_version(protocol) >= READER_VERSION_FEATURES || all.iter().any(|f| reader(f) && f != "columnMapping");
    if needs_reader_list {
        upgraded.min_reader_version = READER_VERSION_FEATURES;
        upgraded.reader_features = Some(all.iter().filter(|f| reader(f)).map(|f| f.as_str().into()).collect());
    } else if all.iter().any(|f| f == "columnMapping") {
        upgraded.min_reader_version = 2;
    }
    upgraded.writer_features = Some(all.iter().map(|f| f.as_str().into()).collect());
    upgraded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(reader: u32, writer: u32, readers: Option<&[&str]>, writers: Option<&[&str]>) -> Protocol {
        let json = serde_json::json!({"minReaderVersion": reader, "minWriterVersion": writer,
            "readerFeatures": readers, "writerFeatures": writers});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn old_protocols_imply_features() {
        assert_eq!(expand(&protocol(1, 2, None, None)), ["appendOnly", "invariants"]);
        assert_eq!(
            expand(&protocol(2, 5, None, None)),
            ["appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "generatedColumns", "invariants"]
        );
        assert_eq!(expand(&protocol(1, 1, None, None)), Vec::<String>::new());
        assert_eq!(expand(&protocol(2, 7, None, Some(&["columnMapping"]))), ["columnMapping"]);
        let both: &[&str] = &["deletionVectors"];
        assert_eq!(expand(&protocol(3, 7, Some(both), Some(&["deletionVectors", "x"]))), ["deletionVectors", "x"]);
    }

    #[test]
    fn upgrades_keep_what_was_implied() {
        let upgraded = with_features(&protocol(1, 2, None, None), &["changeDataFeed"]);
        assert_eq!((reader_version(&upgraded), writer_version(&upgraded)), (1, 7));
        assert_eq!(upgraded.reader_features, None);
        assert_eq!(expand(&upgraded), ["appendOnly", "changeDataFeed", "invariants"]);
        let upgraded = with_features(&upgraded, &["deletionVectors"]);
        assert_eq!((reader_version(&upgraded), writer_version(&upgraded)), (3, 7));
        assert_eq!(upgraded.reader_features.as_ref().map(Vec::len), Some(1));
        // A legacy reader feature moves into the list once there is one.
        let upgraded = with_features(&protocol(2, 5, None, None), &["deletionVectors"]);
        assert_eq!(upgraded.reader_features.as_ref().map(Vec::len), Some(2));
        let same = protocol(1, 2, None, None);
        assert_eq!(with_features(&same, &["appendOnly"]), same);
    }
}
