//! `readable_metrics`: the statistics of a file by column name, with typed bounds.
//!
//! # Source
//! Apache Iceberg, `MetricsUtil.readableMetricsStruct`.

use lakesmith_core::table::Scalar;

use super::files::FileRow;
use crate::manifest::of_column;
use crate::single_value::readable;
use crate::types::{IcebergField, IcebergType, Primitive, SchemaVersion};

/// The statistics of one column without parts.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Iceberg's own and documented there")]
pub struct ReadableMetrics {
    /// Names from the column down, joined by points.
    pub column: String,
    /// Type of the bounds.
    pub primitive: Primitive,
    pub column_size: Option<i64>,
    pub value_count: Option<i64>,
    pub null_value_count: Option<i64>,
    pub nan_value_count: Option<i64>,
    pub lower_bound: Option<Scalar>,
    pub upper_bound: Option<Scalar>,
}

/// The statistics of every column of `schema` that has no parts, by name.
pub fn readable_metrics(schema: &SchemaVersion, file: &FileRow) -> Vec<ReadableMetrics> {
    let mut metrics = Vec::new();
    for field in &schema.fields {
        add(field, "", file, &mut metrics);
    }
    metrics.sort_by(|a, b| a.column.cmp(&b.column));
    metrics
}

/// The columns that have such statistics, in the same order, with the types of their bounds.
pub fn metric_columns(schema: &SchemaVersion) -> Vec<(String, Primitive)> {
    fn walk(field: &IcebergField, above: &str, found: &mut Vec<(String, Primitive)>) {
        let column = if above.is_empty() { field.name.clone() } else { format!("{above}.{}", field.name) };
        match &field.field_type {
            IcebergType::Primitive(primitive) => found.push((column, primitive.clone())),
            parted => parted.parts().into_iter().for_each(|part| walk(part, &column, found)),
        }
    }
    let mut found = Vec::new();
    schema.fields.iter().for_each(|field| walk(field, "", &mut found));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn add(field: &IcebergField, above: &str, file: &FileRow, metrics: &mut Vec<ReadableMetrics>) {
    let column = if above.is_empty() { field.name.clone() } else { format!("{above}.{}", field.name) };
    let IcebergType::Primitive(primitive) = &field.field_type else {
        for part in field.field_type.parts() {
            add(part, &column, file, metrics);
        }
        return;
    };
    let count = |counts: &Option<Vec<(i32, i64)>>| of_column(counts.as_ref(), field.id).copied();
    let bound = |bounds: &Option<Vec<(i32, Vec<u8>)>>| readable(primitive, of_column(bounds.as_ref(), field.id)?);
    metrics.push(ReadableMetrics {
        column,
        primitive: primitive.clone(),
        column_size: count(&file.column_sizes),
        value_count: count(&file.value_counts),
        null_value_count: count(&file.null_value_counts),
        nan_value_count: count(&file.nan_value_counts),
        lower_bound: bound(&file.lower_bounds),
        upper_bound: bound(&file.upper_bounds),
    });
}
