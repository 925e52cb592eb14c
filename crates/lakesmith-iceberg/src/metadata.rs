//! The table metadata file: what it says, in every version of the format.
//!
//! # Source
//! Iceberg spec, "Table Metadata" and appendix C, "Table Metadata and Snapshots".

use std::collections::BTreeMap;

use lakesmith_core::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::transform::Transform;
use crate::types::{Primitive, SchemaVersion};

/// The newest version of the format that is known.
const FORMAT_VERSION_MAX: u8 = 3;
/// The first id of partition fields, which old files do not tell.
const PARTITION_FIELD_ID_FIRST: i32 = 1000;
/// The branch that everybody reads.
pub const MAIN: &str = "main";

/// What a table metadata file says.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMetadata {
    /// 1, 2 or 3.
    pub format_version: u8,
    /// Identity of the table; old tables may have none.
    pub table_uuid: Option<String>,
    /// Where the table is, as it stands there.
    pub location: String,
    /// Number of the newest change; 0 in version 1.
    pub last_sequence_number: i64,
    /// When the file was written, milliseconds since the epoch.
    pub last_updated_ms: i64,
    /// The highest id of a column so far.
    pub last_column_id: i32,
    /// Versions of the schema.
    pub schemas: Vec<SchemaVersion>,
    /// Which of them is in force.
    pub current_schema_id: i32,
    /// Partition specs.
    pub partition_specs: Vec<PartitionSpec>,
    /// Which of them new files get.
    pub default_spec_id: i32,
    /// The highest id of a partition field so far, where it is told.
    pub last_partition_id: Option<i32>,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// The snapshot of `main`.
    pub current_snapshot_id: Option<i64>,
    /// Snapshots, in the order of the file.
    pub snapshots: Vec<Snapshot>,
    /// Which snapshot was current from when on.
    pub snapshot_log: Vec<SnapshotLogEntry>,
    /// Metadata files before this one.
    pub metadata_log: Vec<MetadataLogEntry>,
    /// Sort orders.
    pub sort_orders: Vec<SortOrder>,
    /// Which of them new files get.
    pub default_sort_order_id: i32,
    /// Branches and tags by name, `main` among them once there is a snapshot.
    pub refs: BTreeMap<String, SnapshotRef>,
    /// The next row id (version 3).
    pub next_row_id: Option<i64>,
    /// Statistics files, as they stand there.
    pub statistics: Vec<StatisticsFile>,
    /// Partition statistics files.
    pub partition_statistics: Vec<StatisticsFile>,
}

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    /// Its id.
    pub spec_id: i32,
    /// Its fields.
    pub fields: Vec<PartitionField>,
}

/// A field of a partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The column that it is made of; the first one, should there be several.
    pub source_id: i32,
    /// Its own id.
    pub field_id: i32,
    /// Its name.
    pub name: String,
    /// How it is made.
    pub transform: Transform,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// Its id.
    pub snapshot_id: i64,
    /// The snapshot that it was made from.
    pub parent_snapshot_id: Option<i64>,
    /// Number of the change that made it; 0 in version 1.
    #[serde(default)]
    pub sequence_number: i64,
    /// When it was made, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The file that lists its manifests.
    pub manifest_list: Option<String>,
    /// Its manifests themselves (version 1 only).
    pub manifests: Option<Vec<String>>,
    /// `operation` and counters.
    #[serde(default, deserialize_with = "or_default")]
    pub summary: BTreeMap<String, String>,
    /// The schema that was in force.
    pub schema_id: Option<i32>,
    /// The first row id given to its new rows (version 3).
    pub first_row_id: Option<i64>,
    /// How many row ids it used (version 3).
    pub added_rows: Option<i64>,
    /// The key with which its manifest list is encrypted (version 3).
    pub key_id: Option<String>,
}

impl Snapshot {
    /// `append`, `replace`, `overwrite` or `delete`, if it says.
    pub fn operation(&self) -> Option<&str> {
        self.summary.get("operation").map(String::as_str)
    }
}

/// A change of the current snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SnapshotLogEntry {
    /// When, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The snapshot that was current from then on.
    pub snapshot_id: i64,
}

/// An earlier metadata file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetadataLogEntry {
    /// When it was written, milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Where it is.
    pub metadata_file: String,
}

/// A file of statistics about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatisticsFile {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Where it is.
    pub statistics_path: String,
    /// Bytes.
    pub file_size_in_bytes: i64,
}

/// A sort order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SortOrder {
    /// Its id; 0 is no order.
    pub order_id: i32,
    /// Its fields.
    pub fields: Vec<SortField>,
}

/// A field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SortField {
    /// What is done to the column before.
    pub transform: String,
    /// The column.
    #[serde(default)]
    pub source_id: i32,
    /// `asc` or `desc`.
    pub direction: String,
    /// `nulls-first` or `nulls-last`.
    pub null_order: String,
}

/// A branch or a tag.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SnapshotRef {
    /// The snapshot that it names.
    pub snapshot_id: i64,
    /// `branch` or `tag`.
    #[serde(rename = "type")]
    pub kind: RefKind,
    /// Age from which the name may go.
    pub max_ref_age_ms: Option<i64>,
    /// Age from which snapshots of a branch may go.
    pub max_snapshot_age_ms: Option<i64>,
    /// Snapshots of a branch that stay.
    pub min_snapshots_to_keep: Option<i32>,
}

/// What a name of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RefKind {
    /// It moves with each commit.
    #[serde(alias = "BRANCH")]
    Branch,
    /// It stays.
    #[serde(alias = "TAG")]
    Tag,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Stored {
    table_uuid: Option<String>,
    location: String,
    #[serde(default)]
    last_sequence_number: i64,
    last_updated_ms: i64,
    #[serde(default)]
    last_column_id: i32,
    schema: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    schemas: Vec<Value>,
    current_schema_id: Option<i32>,
    partition_spec: Option<Vec<StoredField>>,
    #[serde(default, deserialize_with = "or_default")]
    partition_specs: Vec<StoredSpec>,
    default_spec_id: Option<i32>,
    last_partition_id: Option<i32>,
    #[serde(default, deserialize_with = "or_default")]
    properties: BTreeMap<String, String>,
    current_snapshot_id: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "or_default")]
    snapshot_log: Vec<SnapshotLogEntry>,
    #[serde(default, deserialize_with = "or_default")]
    metadata_log: Vec<MetadataLogEntry>,
    #[serde(default, deserialize_with = "or_default")]
    sort_orders: Vec<SortOrder>,
    #[serde(default)]
    default_sort_order_id: i32,
    #[serde(default, deserialize_with = "or_default")]
    refs: BTreeMap<String, SnapshotRef>,
    next_row_id: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    statistics: Vec<StatisticsFile>,
    #[serde(default, deserialize_with = "or_default")]
    partition_statistics: Vec<StatisticsFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredSpec {
    spec_id: i32,
    fields: Vec<StoredField>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredField {
    source_id: Option<i32>,
    #[serde(default)]
    source_ids: Vec<i32>,
    field_id: Option<i32>,
    name: String,
    transform: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Version {
    format_version: i64,
}

/// Null stands for nothing.
fn or_default<'de, D, T>(deserializer: D) -> std::result::Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl TableMetadata {
    /// Reads the text of a metadata file.
    ///
    /// # Errors
    /// `Corrupt` if it is none, `Unsupported` for a newer version of the format.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let unreadable = |e: serde_json::Error| Error::corrupt("the table metadata cannot be read").caused_by(e);
        let version: Version = serde_json::from_slice(text).map_err(unreadable)?;
        let format_version = match u8::try_from(version.format_version) {
            Ok(version @ 1..=FORMAT_VERSION_MAX) => version,
            _ => {
                return Err(Error::unsupported(format!(
                    "the table has version {} of the Iceberg format; versions 1 to {FORMAT_VERSION_MAX} are known",
                    version.format_version
                )));
            }
        };
        let stored: Stored = serde_json::from_slice(text).map_err(unreadable)?;
        stored.into_metadata(format_version)
    }

    /// A schema by its id.
    pub fn schema(&self, schema_id: i32) -> Option<&SchemaVersion> {
        self.schemas.iter().find(|schema| schema.schema_id == schema_id)
    }

    /// The schema in force.
    pub fn current_schema(&self) -> &SchemaVersion {
        // Parsing made sure that there is one.
        self.schema(self.current_schema_id).unwrap_or(&self.schemas[0])
    }

    /// A partition spec by its id.
    pub fn spec(&self, spec_id: i32) -> Option<&PartitionSpec> {
        self.partition_specs.iter().find(|spec| spec.spec_id == spec_id)
    }

    /// A snapshot by its id.
    pub fn snapshot(&self, snapshot_id: i64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == snapshot_id)
    }

    /// Schemas, the one in force first, then the newer before the older ones.
    pub(crate) fn schemas_newest_first(&self) -> Vec<&SchemaVersion> {
        let mut schemas: Vec<&SchemaVersion> = self.schemas.iter().collect();
        schemas.sort_by_key(|schema| (schema.schema_id != self.current_schema_id, std::cmp::Reverse(schema.schema_id)));
        schemas
    }

    /// The type of a column, as the newest schema has it that has the column.
    pub(crate) fn primitive(&self, field_id: i32) -> Option<&Primitive> {
        self.schemas_newest_first().into_iter().find_map(|schema| schema.primitive(field_id))
    }

    /// The types of the values of a partition spec; `None` for one that can't be told.
    pub fn partition_types(&self, spec: &PartitionSpec) -> Vec<Option<Primitive>> {
        let result = |field: &PartitionField| field.transform.result_type(self.primitive(field.source_id));
        spec.fields.iter().map(result).collect()
    }
}

impl PartitionSpec {
    /// True if all files are in one partition.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|field| field.transform == Transform::Void)
    }
}

impl StoredSpec {
    fn into_spec(self) -> Result<PartitionSpec> {
        let field = |(place, stored): (usize, StoredField)| {
            let first = stored.source_id.or_else(|| stored.source_ids.first().copied());
            let one = stored.source_ids.len() < 2;
            let transform = Transform::parse(&stored.transform);
            Ok(PartitionField {
                source_id: first
                    .ok_or_else(|| Error::corrupt("a partition field has no source").with("field", &stored.name))?,
                field_id: stored.field_id.unwrap_or(PARTITION_FIELD_ID_FIRST + place as i32),
                // Values of several columns say nothing that we know of any one of them.
                transform: if one { transform } else { Transform::Unknown(stored.transform) },
                name: stored.name,
            })
        };
        let fields = self.fields.into_iter().enumerate().map(field).collect::<Result<_>>()?;
        Ok(PartitionSpec { spec_id: self.spec_id, fields })
    }
}

impl Stored {
    fn into_metadata(mut self, format_version: u8) -> Result<TableMetadata> {
        // Both forms may be there: then the newer one counts.
        if self.schemas.is_empty() {
            self.schemas.extend(self.schema.take());
        }
        let schemas: Vec<SchemaVersion> = self.schemas.iter().map(SchemaVersion::parse).collect::<Result<_>>()?;
        let only = schemas.first().map(|schema| schema.schema_id);
        let current_schema_id = self.current_schema_id.or(only).unwrap_or_default();
        if !schemas.iter().any(|schema| schema.schema_id == current_schema_id) {
            return Err(Error::corrupt(format!("the table metadata has no schema {current_schema_id}")));
        }
        if self.partition_specs.is_empty() {
            let fields = self.partition_spec.take().unwrap_or_default();
            self.partition_specs.push(StoredSpec { spec_id: 0, fields });
        }
        let partition_specs =
            self.partition_specs.into_iter().map(StoredSpec::into_spec).collect::<Result<Vec<_>>>()?;
        let only = partition_specs.first().map_or(0, |spec| spec.spec_id);
        let default_spec_id = self.default_spec_id.unwrap_or(only);
        if !partition_specs.iter().any(|spec| spec.spec_id == default_spec_id) {
            return Err(Error::corrupt(format!("the table metadata has no partition spec {default_spec_id}")));
        }
        // Java writes -1 where there is none.
        let current_snapshot_id = self.current_snapshot_id.filter(|id| *id != -1);
        if let Some(id) = current_snapshot_id
            && !self.snapshots.iter().any(|snapshot| snapshot.snapshot_id == id)
        {
            return Err(Error::corrupt(format!(
                "the table metadata has no snapshot {id}, which should be the current one"
            )));
        }
        let mut refs = self.refs;
        if let Some(snapshot_id) = current_snapshot_id {
            let main = refs.entry(MAIN.to_owned()).or_insert(SnapshotRef {
                snapshot_id,
                kind: RefKind::Branch,
                max_ref_age_ms: None,
                max_snapshot_age_ms: None,
                min_snapshots_to_keep: None,
            });
            if main.snapshot_id != snapshot_id {
                return Err(Error::corrupt(format!(
                    "the table metadata has two current snapshots: {snapshot_id} and, on the branch main, {}",
                    main.snapshot_id
                )));
            }
        }
        Ok(TableMetadata {
            format_version,
            table_uuid: self.table_uuid,
            location: self.location.trim_end_matches('/').to_owned(),
            last_sequence_number: self.last_sequence_number,
            last_updated_ms: self.last_updated_ms,
            last_column_id: self.last_column_id,
            schemas,
            current_schema_id,
            partition_specs,
            default_spec_id,
            last_partition_id: self.last_partition_id,
            properties: self.properties,
            current_snapshot_id,
            snapshots: self.snapshots,
            snapshot_log: self.snapshot_log,
            metadata_log: self.metadata_log,
            sort_orders: self.sort_orders,
            default_sort_order_id: self.default_sort_order_id,
            refs,
            next_row_id: self.next_row_id,
            statistics: self.statistics,
            partition_statistics: self.partition_statistics,
        })
    }
}
