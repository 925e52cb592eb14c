//! The partition column of metadata tables: the fields of all specs together.
//!
//! # Source
//! Apache Iceberg, `Partitioning.partitionType`.

use std::collections::BTreeMap;

use lakesmith_core::table::Scalar;

use crate::metadata::{PartitionField, PartitionSpec, TableMetadata};
use crate::transform::Transform;
use crate::types::Primitive;

/// A field of the partition column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionColumn {
    /// The partition field.
    pub field_id: i32,
    /// Its name in the newest spec that has it.
    pub name: String,
    /// How it is made.
    pub transform: Transform,
    /// Type of its values; `None` if it can't be told.
    pub primitive: Option<Primitive>,
}

/// The fields of all specs of a table, by ascending id; empty for a table that was never partitioned.
pub fn partition_columns(metadata: &TableMetadata) -> Vec<PartitionColumn> {
    let mut specs: Vec<&PartitionSpec> = metadata.partition_specs.iter().collect();
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id));
    let mut fields: BTreeMap<i32, &PartitionField> = BTreeMap::new();
    for field in specs.iter().flat_map(|spec| &spec.fields) {
        let known = fields.entry(field.field_id).or_insert(field);
        // A field that was dropped in version 1 is still there, with nothing in it.
        if known.transform == Transform::Void {
            *known = field;
        }
    }
    let column = |field: &PartitionField| PartitionColumn {
        field_id: field.field_id,
        name: field.name.clone(),
        transform: field.transform.clone(),
        primitive: field.transform.result_type(metadata.primitive(field.source_id)),
    };
    fields.into_values().map(column).collect()
}

/// The values of a file's partition, one for each of `columns`; NULL for a field that its spec lacks.
pub(crate) fn in_columns(
    columns: &[PartitionColumn],
    metadata: &TableMetadata,
    spec_id: i32,
    values: &[Scalar],
) -> Vec<Scalar> {
    let Some(spec) = metadata.spec(spec_id) else { return vec![Scalar::Null; columns.len()] };
    let value = |column: &PartitionColumn| {
        let place = spec.fields.iter().position(|field| field.field_id == column.field_id);
        place.and_then(|place| values.get(place)).cloned().unwrap_or(Scalar::Null)
    };
    columns.iter().map(value).collect()
}
