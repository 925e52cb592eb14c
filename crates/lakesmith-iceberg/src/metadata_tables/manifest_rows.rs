//! `manifests` and `all_manifests`.

use lakesmith_core::Result;
use lakesmith_core::table::Scalar;
use lakesmith_storage::Store;

use super::files::manifests_of;
use crate::manifest_list::{self, FieldSummary, ManifestContent, ManifestFile};
use crate::metadata::{PartitionField, TableMetadata};
use crate::single_value::readable;
use crate::table::IcebergTable;
use crate::transform::Transform;
use crate::value_text::value_text;

/// A row of `manifests`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct ManifestRow {
    pub content: i32,
    pub path: String,
    pub length: u64,
    pub partition_spec_id: Option<i32>,
    pub added_snapshot_id: Option<i64>,
    pub added_data_files_count: i32,
    pub existing_data_files_count: i32,
    pub deleted_data_files_count: i32,
    pub added_delete_files_count: i32,
    pub existing_delete_files_count: i32,
    pub deleted_delete_files_count: i32,
    pub partition_summaries: Vec<PartitionSummary>,
    pub key_metadata: Option<Vec<u8>>,
    /// In `all_manifests` only: the snapshot that has it.
    pub reference_snapshot_id: Option<i64>,
}

/// An item of `partition_summaries`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct PartitionSummary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    pub lower_bound: Option<String>,
    pub upper_bound: Option<String>,
}

/// The manifests of the snapshot that was loaded, in the order of its list.
///
/// # Errors
/// As [`crate::load`].
pub async fn manifests(store: &Store, table: &IcebergTable) -> Result<Vec<ManifestRow>> {
    let manifests = manifests_of(store, table).await?;
    Ok(manifests.into_iter().map(|manifest| row(&table.log.metadata, manifest, None)).collect())
}

/// The manifests of all snapshots, snapshot by snapshot.
///
/// # Errors
/// As [`crate::load`].
pub async fn all_manifests(store: &Store, table: &IcebergTable) -> Result<Vec<ManifestRow>> {
    let mut rows = Vec::new();
    for snapshot in &table.log.metadata.snapshots {
        let listed = manifest_list::manifests(store, &table.paths(), snapshot).await?;
        let of_snapshot = |manifest| row(&table.log.metadata, manifest, Some(snapshot.snapshot_id));
        rows.extend(listed.into_iter().map(of_snapshot));
    }
    Ok(rows)
}

fn row(metadata: &TableMetadata, manifest: ManifestFile, reference_snapshot_id: Option<i64>) -> ManifestRow {
    let is_data = manifest.content == ManifestContent::Data;
    let count = |count: Option<i32>, of_data: bool| if is_data == of_data { count.unwrap_or(0) } else { 0 };
    let spec = manifest.partition_spec_id.and_then(|id| metadata.spec(id));
    let summaries = manifest.partitions.as_deref().unwrap_or_default();
    let fields = spec.map_or(&[][..], |spec| spec.fields.as_slice());
    ManifestRow {
        content: i32::from(!is_data),
        length: manifest.length,
        partition_spec_id: manifest.partition_spec_id,
        added_snapshot_id: manifest.added_snapshot_id,
        added_data_files_count: count(manifest.added_files, true),
        existing_data_files_count: count(manifest.existing_files, true),
        deleted_data_files_count: count(manifest.deleted_files, true),
        added_delete_files_count: count(manifest.added_files, false),
        existing_delete_files_count: count(manifest.existing_files, false),
        deleted_delete_files_count: count(manifest.deleted_files, false),
        partition_summaries: summaries.iter().zip(fields).map(|(s, field)| summary(metadata, s, field)).collect(),
        key_metadata: manifest.key_metadata,
        path: manifest.path,
        reference_snapshot_id,
    }
}

fn summary(metadata: &TableMetadata, summary: &FieldSummary, field: &PartitionField) -> PartitionSummary {
    let primitive = field.transform.result_type(metadata.primitive(field.source_id));
    let text = |bound: &Option<Vec<u8>>| human_text(&field.transform, &readable(primitive.as_ref()?, bound.as_ref()?)?);
    PartitionSummary {
        contains_null: summary.contains_null,
        contains_nan: summary.contains_nan,
        lower_bound: text(&summary.lower_bound),
        upper_bound: text(&summary.upper_bound),
    }
}

/// A partition value as Iceberg writes it into paths and summaries.
///
/// # Source
/// Apache Iceberg, `TransformUtil`.
fn human_text(transform: &Transform, value: &Scalar) -> Option<String> {
    const MONTHS: i64 = 12;
    match (transform, value) {
        (Transform::Year, Scalar::Long(year)) => Some(format!("{:04}", year.checked_add(1970)?)),
        (Transform::Month, Scalar::Long(month)) => {
            let year = month.div_euclid(MONTHS).checked_add(1970)?;
            Some(format!("{year:04}-{:02}", month.rem_euclid(MONTHS) + 1))
        }
        (Transform::Hour, Scalar::Long(hour)) => {
            let day = i32::try_from(hour.div_euclid(24)).ok()?;
            Some(format!("{}-{:02}", value_text(&Scalar::Date(day))?, hour.rem_euclid(24)))
        }
        (_, value) => value_text(value),
    }
}
