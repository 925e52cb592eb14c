//! What shells are told of an Iceberg table.
//!
//! # Source
//! Iceberg `SparkTable.properties`, `Spark3Util.describe`.

use std::collections::BTreeMap;

use lakesmith_core::Result;
use lakesmith_core::op::{HistoryEntry, HistoryOptions, HistoryReport, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::{Field, FileId, Scalar, Value};
use lakesmith_iceberg::metadata::SortField;
use lakesmith_iceberg::metadata_tables::partition_columns;
use lakesmith_iceberg::{At, IcebergTable, Needs, PartitionField, Snapshot, Transform};
use lakesmith_storage::Store;

use crate::catalog::Target;
use crate::ops::iso;

/// The snapshot that is meant; snapshot ids are positive, so that a version is one of them.
pub(super) fn at(at: TimeTravel) -> At {
    match at {
        TimeTravel::Latest => At::Latest,
        TimeTravel::Version(version) => At::Snapshot(version as i64),
        TimeTravel::Timestamp(ms) => At::Timestamp(ms),
        TimeTravel::Reference(name) => At::Reference(name),
    }
}

/// The properties as Spark shows them.
pub(super) fn shown_properties(table: &IcebergTable) -> BTreeMap<String, String> {
    let metadata = &table.log.metadata;
    let mut shown = metadata.properties.clone();
    let format = metadata.properties.get("write.format.default").map_or("parquet", String::as_str);
    shown.insert("format".into(), format!("iceberg/{format}"));
    shown.insert("format-version".into(), metadata.format_version.to_string());
    let snapshot = metadata.current_snapshot_id.map_or("none".to_owned(), |id| id.to_string());
    shown.insert("current-snapshot-id".into(), snapshot);
    let order = metadata.sort_orders.iter().find(|order| order.order_id == metadata.default_sort_order_id);
    let sorted: Vec<String> = order.iter().flat_map(|order| &order.fields).map(|f| sort_field(table, f)).collect();
    if !sorted.is_empty() {
        shown.insert("sort-order".into(), sorted.join(", "));
    }
    let names = metadata.current_schema().identifier_field_ids.iter().map(|id| name(table, *id));
    let identifier: Vec<String> = names.collect();
    if !identifier.is_empty() {
        shown.insert("identifier-fields".into(), format!("[{}]", identifier.join(",")));
    }
    shown
}

/// The partition fields of the table's spec as SQL writes them.
pub(super) fn partitioning(table: &IcebergTable) -> Vec<String> {
    let metadata = &table.log.metadata;
    let fields = metadata.spec(metadata.default_spec_id).map(|spec| spec.fields.as_slice()).unwrap_or_default();
    fields.iter().filter(|field| field.transform != Transform::Void).map(|field| part(table, field)).collect()
}

fn part(table: &IcebergTable, field: &PartitionField) -> String {
    transformed(&field.transform, &name(table, field.source_id))
}

fn transformed(transform: &Transform, column: &str) -> String {
    let column = column.split('.').map(|part| reference_name(&[part.to_owned()])).collect::<Vec<_>>().join(".");
    match transform {
        Transform::Identity => column,
        Transform::Bucket(buckets) => format!("bucket({buckets}, {column})"),
        Transform::Truncate(width) => format!("truncate({width}, {column})"),
        Transform::Year => format!("years({column})"),
        Transform::Month => format!("months({column})"),
        Transform::Day => format!("days({column})"),
        Transform::Hour => format!("hours({column})"),
        Transform::Void | Transform::Unknown(_) => format!("{}({column})", transform.spelling()),
    }
}

fn sort_field(table: &IcebergTable, field: &SortField) -> String {
    let key = transformed(&Transform::parse(&field.transform), &name(table, field.source_id));
    let nulls = field.null_order.replace('-', " ").to_uppercase();
    format!("{key} {} {nulls}", field.direction.to_uppercase())
}

/// A column by its id; the id itself for one that is gone.
fn name(table: &IcebergTable, id: i32) -> String {
    table.log.metadata.current_schema().name_of(id).unwrap_or_else(|| id.to_string())
}

/// The type of the struct that holds a file's partition values, whatever its spec.
pub(crate) fn partition_type(table: &IcebergTable) -> Vec<Field> {
    super::iceberg_tables::partition_type(&partition_columns(&table.log.metadata))
}

/// A file's partition values as that struct.
pub(crate) fn partition_struct(table: &IcebergTable, file: FileId) -> Value {
    let spec = table.log.metadata.spec(table.facts(file).spec_id);
    let fields = spec.map(|spec| spec.fields.as_slice()).unwrap_or_default();
    let values: BTreeMap<i32, &Scalar> =
        fields.iter().map(|field| field.field_id).zip(table.partition_values(file)).collect();
    let of = |id: i32| values.get(&id).map_or(Value::NULL, |value| Value::Scalar((*value).clone()));
    Value::Struct(partition_columns(&table.log.metadata).into_iter().map(|column| of(column.field_id)).collect())
}

/// The snapshots, newest first, as entries of a history.
pub(super) async fn history(store: &Store, target: &Target, options: HistoryOptions) -> Result<HistoryReport> {
    let needs = Needs { files: false };
    let table = match &target.metadata {
        Some(metadata) => lakesmith_iceberg::load_metadata_at(store, metadata, At::Latest, needs).await?,
        None => lakesmith_iceberg::load(store, &target.root, At::Latest, needs).await?,
    };
    let mut snapshots: Vec<&Snapshot> = table.log.metadata.snapshots.iter().collect();
    snapshots.sort_by_key(|s| std::cmp::Reverse((s.sequence_number, s.timestamp_ms, s.snapshot_id)));
    let wanted = snapshots.into_iter().filter(|s| !options.data_changes || s.operation() != Some("replace"));
    let limit = options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(HistoryReport(wanted.take(limit).map(entry).collect()))
}

fn entry(snapshot: &Snapshot) -> HistoryEntry {
    let summary = &snapshot.summary;
    let said = |key: &str| summary.get(key).cloned();
    let engine = said("engine-name").map(|name| match said("engine-version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    });
    let counters = summary.iter().filter(|(_, value)| value.parse::<i64>().is_ok());
    HistoryEntry {
        version: snapshot.snapshot_id as u64,
        timestamp: iso(snapshot.timestamp_ms),
        user_id: None,
        user_name: None,
        operation: snapshot.operation().map(str::to_owned),
        operation_parameters: None,
        job: None,
        notebook: None,
        cluster_id: None,
        read_version: snapshot.parent_snapshot_id.map(|id| id as u64),
        isolation_level: None,
        is_blind_append: None,
        operation_metrics: Some(counters.map(|(key, value)| (key.clone(), value.clone())).collect()),
        user_metadata: None,
        engine_info: engine,
        readable: None,
        missing_files: None,
    }
}
