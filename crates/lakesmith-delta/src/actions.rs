//! Actions of the log, typed, with every field that we don't know kept as it was.
//!
//! One line of a commit is one object with one key, the kind of action. Fields keep the order of Spark's writer.
//!
//! # Source
//! Delta PROTOCOL.md, "Actions".

use std::collections::BTreeMap;
use std::fmt;

use lakesmith_core::table::FileKey;
use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Strings by name, values possibly null: partition values and tags.
pub type StringMap = BTreeMap<String, Option<String>>;

/// One line of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `commitInfo`
    CommitInfo(CommitInfo),
    /// `protocol`
    Protocol(Protocol),
    /// `metaData`
    Metadata(Metadata),
    /// `domainMetadata`
    DomainMetadata(DomainMetadata),
    /// `txn`
    Transaction(SetTransaction),
    /// `add`
    Add(Box<Add>),
    /// `remove`
    Remove(Box<Remove>),
    /// `cdc`
    Cdc(AddCdcFile),
    /// `checkpointMetadata`
    CheckpointMetadata(CheckpointMetadata),
    /// `sidecar`
    Sidecar(Sidecar),
    /// A kind that we don't know: its key and value as stored.
    Unknown(String, Value),
}

/// Where and in which version of the log's format a file of the table stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// URL-encoded relative path, or an absolute URI.
    pub path: String,
    /// Values by physical column name; null is NULL.
    pub partition_values: StringMap,
    /// Bytes.
    pub size: i64,
    /// Milliseconds since the epoch.
    pub modification_time: i64,
    /// False if the rows were in the table already.
    pub data_change: bool,
    /// Statistics as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// Rows that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// Row tracking: id of the first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// Row tracking: version of rows that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// Which implementation clustered the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A file that left the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// As in the add that put it into the table.
    pub path: String,
    /// Milliseconds since the epoch; missing counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// False if the rows are still in the table. Missing counts as true.
    #[serde(default = "yes")]
    pub data_change: bool,
    /// True if partition values, size and tags are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// As in the add; NULLs may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<StringMap>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// The vector of the file that left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// Row tracking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// Row tracking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// Statistics as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Which rows of a file are deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorDescriptor {
    /// `u`, `p` or `i`.
    pub storage_type: String,
    /// Name of the file, or the bitmap itself.
    pub path_or_inline_dv: String,
    /// Where the vector starts in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Bytes of the bitmap.
    pub size_in_bytes: i32,
    /// Deleted rows.
    pub cardinality: i64,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What a table is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Identity of the table.
    pub id: String,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Format of the data files.
    pub format: Format,
    /// Schema as JSON text.
    pub schema_string: String,
    /// Logical names.
    #[serde(default)]
    pub partition_columns: Vec<String>,
    /// Table properties.
    #[serde(default)]
    pub configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Format of data files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Format {
    /// Always `parquet`.
    pub provider: String,
    /// Options.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What readers and writers must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Version for readers.
    pub min_reader_version: u32,
    /// Version for writers.
    pub min_writer_version: u32,
    /// Features for readers, from reader version 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Features for writers, from writer version 7 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A named piece of metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainMetadata {
    /// Name.
    pub domain: String,
    /// Text that the owner of the domain understands.
    pub configuration: String,
    /// True for a tombstone.
    pub removed: bool,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// How far an application has written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTransaction {
    /// The application.
    pub app_id: String,
    /// Its own version.
    pub version: i64,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A file of changed rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddCdcFile {
    /// URL-encoded relative path.
    pub path: String,
    /// Values by physical column name.
    pub partition_values: StringMap,
    /// Bytes.
    pub size: i64,
    /// Always false.
    pub data_change: bool,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Head of a V2 checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointMetadata {
    /// Version of the checkpoint.
    pub version: i64,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// A file of a V2 checkpoint that holds adds and removes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// Name below `_delta_log/_sidecars`, or an absolute URI.
    pub path: String,
    /// Bytes.
    pub size_in_bytes: i64,
    /// Milliseconds since the epoch.
    pub modification_time: i64,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<StringMap>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Who did what.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitInfo {
    /// When the commit was made by the table's own clock; increases from version to version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    /// The writer's clock, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// Name of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<Map<String, Value>>,
    /// Version that the writer had read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    /// `Serializable`, `WriteSerializable` or `SnapshotIsolation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation_level: Option<String>,
    /// True if the writer looked at no row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_blind_append: Option<bool>,
    /// Counters, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_metrics: Option<Map<String, Value>>,
    /// The user's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    /// Tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Map<String, Value>>,
    /// Name and version of the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_info: Option<String>,
    /// Identity of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txn_id: Option<String>,
    /// Fields that we don't know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

fn yes() -> bool {
    true
}

impl DeletionVectorDescriptor {
    /// Identity within the log.
    pub fn unique_id(&self) -> String {
        crate::vector::unique_id(&self.storage_type, &self.path_or_inline_dv, self.offset)
    }
}

impl Add {
    /// Identity of the file within the log.
    pub fn key(&self) -> FileKey {
        FileKey { path: self.path.clone(), vector_id: self.deletion_vector.as_ref().map(|d| d.unique_id()) }
    }
}

impl Remove {
    /// Identity of the file within the log.
    pub fn key(&self) -> FileKey {
        FileKey { path: self.path.clone(), vector_id: self.deletion_vector.as_ref().map(|d| d.unique_id()) }
    }
}

impl Action {
    /// The JSON text of a line, without its line break.
    ///
    /// # Errors
    /// `Internal` if the action cannot be written as JSON.
    pub fn to_line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::internal("an action could not be written as JSON").caused_by(e))
    }
}

/// The actions of a commit, in their order. Empty lines count for nothing.
///
/// # Errors
/// `Corrupt` with path and line.
pub fn parse_commit(bytes: &[u8], path: &Location) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let action: Action = serde_json::from_slice(line).map_err(|e| {
            Error::corrupt(
                "a line of the log is not a valid action; the commit was damaged or written by a faulty client",
            )
            .with("path", path)
            .with("line", number + 1)
            .caused_by(e)
        })?;
        actions.push(action);
    }
    Ok(actions)
}

/// The protocol lets writers put any JSON there, so a field of another type than ours is kept and counts as unknown.
fn commit_info(mut fields: Map<String, Value>) -> CommitInfo {
    if let Ok(info) = serde_json::from_value(Value::Object(fields.clone())) {
        return info;
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let mut info = CommitInfo {
        in_commit_timestamp: fields.get("inCommitTimestamp").and_then(Value::as_i64),
        operation: text(fields.get("operation")),
        tags: fields.get("tags").and_then(Value::as_object).cloned(),
        txn_id: text(fields.get("txnId")),
        ..CommitInfo::default()
    };
    let taken = [
        ("inCommitTimestamp", info.in_commit_timestamp.is_some()),
        ("operation", info.operation.is_some()),
        ("tags", info.tags.is_some()),
        ("txnId", info.txn_id.is_some()),
    ];
    for (key, _) in taken.iter().filter(|(_, taken)| *taken) {
        fields.shift_remove(*key);
    }
    info.unknown = fields;
    info
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Action::CommitInfo(a) => map.serialize_entry("commitInfo", a)?,
            Action::Protocol(a) => map.serialize_entry("protocol", a)?,
            Action::Metadata(a) => map.serialize_entry("metaData", a)?,
            Action::DomainMetadata(a) => map.serialize_entry("domainMetadata", a)?,
            Action::Transaction(a) => map.serialize_entry("txn", a)?,
            Action::Add(a) => map.serialize_entry("add", a)?,
            Action::Remove(a) => map.serialize_entry("remove", a)?,
            Action::Cdc(a) => map.serialize_entry("cdc", a)?,
            Action::CheckpointMetadata(a) => map.serialize_entry("checkpointMetadata", a)?,
            Action::Sidecar(a) => map.serialize_entry("sidecar", a)?,
            Action::Unknown(kind, a) => map.serialize_entry(kind, a)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(ActionVisitor)
    }
}

struct ActionVisitor;

impl<'de> Visitor<'de> for ActionVisitor {
    type Value = Action;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one action")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Action, A::Error> {
        let mut found = None;
        while let Some(kind) = map.next_key::<String>()? {
            // Writers that go through a table of actions spell out the empty columns.
            let action = match kind.as_str() {
                "commitInfo" => {
                    map.next_value::<Option<Map<_, _>>>()?.map(|info| Action::CommitInfo(commit_info(info)))
                }
                "protocol" => map.next_value::<Option<_>>()?.map(Action::Protocol),
                "metaData" => map.next_value::<Option<_>>()?.map(Action::Metadata),
                "domainMetadata" => map.next_value::<Option<_>>()?.map(Action::DomainMetadata),
                "txn" => map.next_value::<Option<_>>()?.map(Action::Transaction),
                "add" => map.next_value::<Option<_>>()?.map(Action::Add),
                "remove" => map.next_value::<Option<_>>()?.map(Action::Remove),
                "cdc" => map.next_value::<Option<_>>()?.map(Action::Cdc),
                "checkpointMetadata" => map.next_value::<Option<_>>()?.map(Action::CheckpointMetadata),
                "sidecar" => map.next_value::<Option<_>>()?.map(Action::Sidecar),
                _ => map.next_value::<Option<Value>>()?.map(|value| Action::Unknown(kind, value)),
            };
            if action.is_some() && found.replace(action).is_some() {
                return Err(de::Error::custom("more than one action on the line"));
            }
        }
        found.flatten().ok_or_else(|| de::Error::custom("no action on the line"))
    }
}

#[cfg(test)]
#[path = "actions_tests.rs"]
mod tests;
