//! The metadata tables of an Iceberg table as Spark shows them.
//!
//! # Source
//! Iceberg `MetadataTableType` and the tables of its names; columns as `SparkTable` gives them.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use lakesmith_core::Result;
use lakesmith_core::table::{DataType, Field, MetadataTable, Rows, Scalar, Schema, Value};
use lakesmith_iceberg::IcebergTable;
use lakesmith_iceberg::metadata_tables::{
    self as tables, EntryRow, FileKinds, FileRow, ManifestRow, PartitionColumn, PartitionRow, PartitionSummary, Reach,
    ReadableMetrics,
};
use lakesmith_storage::Store;
use tokio::runtime::Handle;

const NAMES: [&str; 15] = [
    "snapshots",
    "history",
    "refs",
    "metadata_log_entries",
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "entries",
    "all_entries",
    "manifests",
    "all_manifests",
    "partitions",
];

/// True for a name that [`table`] knows.
pub(crate) fn is_known(kind: &str) -> bool {
    NAMES.iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// The metadata table of this name, which is in lower case; `None` for a name that means none.
///
/// # Errors
/// Those of reading manifests.
pub(crate) async fn table(
    store: &Store,
    table: &IcebergTable,
    kind: &str,
    runtime: &Handle,
) -> Result<Option<MetadataTable>> {
    let files = async |kinds, reach| {
        let rows = tables::files(store, table, kinds, reach).await?;
        let shape = FileShape::of(table);
        let fields = shape.fields();
        Ok(streamed(fields, rows, runtime, move |row| shape.values(row)))
    };
    let entries = async |reach| {
        let rows = tables::entries(store, table, reach).await?;
        let shape = FileShape::of(table);
        let fields = shape.entry_fields();
        Ok(streamed(fields, rows, runtime, move |row| shape.entry_values(row)))
    };
    let found = match kind {
        "files" => files(FileKinds::Both, Reach::Snapshot).await,
        "data_files" => files(FileKinds::Data, Reach::Snapshot).await,
        "delete_files" => files(FileKinds::Deletes, Reach::Snapshot).await,
        "all_files" => files(FileKinds::Both, Reach::All).await,
        "all_data_files" => files(FileKinds::Data, Reach::All).await,
        "all_delete_files" => files(FileKinds::Deletes, Reach::All).await,
        "entries" => entries(Reach::Snapshot).await,
        "all_entries" => entries(Reach::All).await,
        "manifests" => Ok(held(manifest_fields(false), tables::manifests(store, table).await?, manifest_values)),
        "all_manifests" => {
            let of_snapshots = |mut row: ManifestRow| {
                let further = [Value::of(row.reference_snapshot_id), Value::of(row.key_metadata.take())];
                let mut values = manifest_values(row);
                values.extend(further);
                values
            };
            Ok(held(manifest_fields(true), tables::all_manifests(store, table).await?, of_snapshots))
        }
        "partitions" => {
            let columns = tables::partition_columns(&table.log.metadata);
            let partitioned = !columns.is_empty();
            let rows = tables::partitions(store, table).await?;
            Ok(held(partition_fields(&columns), rows, move |row| partition_values(row, partitioned)))
        }
        "snapshots" => Ok(snapshots(table)),
        "history" => Ok(history(table)),
        "refs" => Ok(refs(table)),
        "metadata_log_entries" => Ok(metadata_log(table)),
        _ => return Ok(None),
    };
    found.map(Some)
}

type Column = (&'static str, DataType);

fn held<T>(columns: Vec<Field>, rows: Vec<T>, values: impl Fn(T) -> Vec<Value>) -> MetadataTable {
    let rows: Rows = rows.into_iter().map(values).collect();
    MetadataTable { schema: Schema { fields: columns }, rows: Box::new(std::iter::once(Ok(rows))) }
}

/// Rows that are read while they are taken.
fn streamed<T: 'static>(
    columns: Vec<Field>,
    mut rows: BoxStream<'static, Result<Vec<T>>>,
    runtime: &Handle,
    values: impl Fn(T) -> Vec<Value> + Send + 'static,
) -> MetadataTable {
    let runtime = runtime.clone();
    let rows = std::iter::from_fn(move || {
        let next = runtime.block_on(rows.next())?;
        Some(next.map(|rows| rows.into_iter().map(&values).collect::<Rows>()))
    });
    MetadataTable { schema: Schema { fields: columns }, rows: Box::new(rows) }
}

fn field(name: &str, data_type: DataType) -> Field {
    Field {
        name: name.to_owned(),
        physical: name.to_owned(),
        id: None,
        data_type,
        nullable: true,
        metadata: BTreeMap::new(),
    }
}

fn fields(columns: Vec<Column>) -> Vec<Field> {
    columns.into_iter().map(|(name, data_type)| field(name, data_type)).collect()
}

fn map(key: DataType, value: DataType) -> DataType {
    DataType::Map(Box::new(field("key", key)), Box::new(field("value", value)))
}

fn list(element: DataType) -> DataType {
    DataType::List(Box::new(field("element", element)))
}

fn instant(ms: i64) -> Value {
    Value::Scalar(ms.checked_mul(1000).map_or(Scalar::Null, Scalar::Timestamp))
}

fn count(number: u64) -> Value {
    Value::of(i64::try_from(number).ok())
}

/// The struct of partition values.
pub(super) fn partition_type(columns: &[PartitionColumn]) -> Vec<Field> {
    let kind = |column: &PartitionColumn| column.primitive.as_ref().map_or(DataType::Null, |kind| kind.spark_type());
    columns.iter().map(|column| field(&column.name, kind(column))).collect()
}

fn partition_value(values: Vec<Scalar>) -> Value {
    Value::Struct(values.into_iter().map(Value::Scalar).collect())
}

/// How files are shown.
struct FileShape {
    partition: Vec<Field>,
    schema: lakesmith_iceberg::types::SchemaVersion,
    metrics: Vec<(String, DataType)>,
}

impl FileShape {
    fn of(table: &IcebergTable) -> Self {
        let metadata = &table.log.metadata;
        let schema = metadata.current_schema().clone();
        let metrics = tables::metric_columns(&schema);
        let metrics = metrics.into_iter().map(|(column, primitive)| (column, primitive.spark_type())).collect();
        Self { partition: partition_type(&tables::partition_columns(metadata)), schema, metrics }
    }

    fn file_fields(&self) -> Vec<Field> {
        use DataType as D;
        let mut columns = vec![
            ("content", D::Integer),
            ("file_path", D::String),
            ("file_format", D::String),
            ("spec_id", D::Integer),
        ];
        if !self.partition.is_empty() {
            columns.push(("partition", D::Struct(self.partition.clone())));
        }
        columns.extend([
            ("record_count", D::Long),
            ("file_size_in_bytes", D::Long),
            ("column_sizes", map(D::Integer, D::Long)),
            ("value_counts", map(D::Integer, D::Long)),
            ("null_value_counts", map(D::Integer, D::Long)),
            ("nan_value_counts", map(D::Integer, D::Long)),
            ("lower_bounds", map(D::Integer, D::Binary)),
            ("upper_bounds", map(D::Integer, D::Binary)),
            ("key_metadata", D::Binary),
            ("split_offsets", list(D::Long)),
            ("equality_ids", list(D::Integer)),
            ("sort_order_id", D::Integer),
            ("first_row_id", D::Long),
            ("referenced_data_file", D::String),
            ("content_offset", D::Long),
            ("content_size_in_bytes", D::Long),
        ]);
        fields(columns)
    }

    fn metrics_field(&self) -> Field {
        use DataType as D;
        let of_column = |(name, bound): &(String, DataType)| {
            let facts = fields(vec![
                ("column_size", D::Long),
                ("value_count", D::Long),
                ("null_value_count", D::Long),
                ("nan_value_count", D::Long),
                ("lower_bound", bound.clone()),
                ("upper_bound", bound.clone()),
            ]);
            field(name, D::Struct(facts))
        };
        field("readable_metrics", D::Struct(self.metrics.iter().map(of_column).collect()))
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.file_fields();
        fields.push(self.metrics_field());
        fields
    }

    fn entry_fields(&self) -> Vec<Field> {
        let mut all = fields(vec![
            ("status", DataType::Integer),
            ("snapshot_id", DataType::Long),
            ("sequence_number", DataType::Long),
            ("file_sequence_number", DataType::Long),
            ("data_file", DataType::Struct(self.file_fields())),
        ]);
        all.push(self.metrics_field());
        all
    }

    fn metrics(&self, file: &FileRow) -> Value {
        let of_column = |metrics: ReadableMetrics| {
            let bound = |bound: Option<Scalar>| Value::Scalar(bound.unwrap_or(Scalar::Null));
            Value::Struct(vec![
                Value::of(metrics.column_size),
                Value::of(metrics.value_count),
                Value::of(metrics.null_value_count),
                Value::of(metrics.nan_value_count),
                bound(metrics.lower_bound),
                bound(metrics.upper_bound),
            ])
        };
        Value::Struct(tables::readable_metrics(&self.schema, file).into_iter().map(of_column).collect())
    }

    fn file_values(&self, file: FileRow) -> Vec<Value> {
        let numbers = |counts: Option<Vec<(i32, i64)>>| {
            counts.map_or(Value::NULL, |counts| {
                Value::Map(counts.into_iter().map(|(id, number)| (id.into(), number.into())).collect())
            })
        };
        let bytes = |bounds: Option<Vec<(i32, Vec<u8>)>>| {
            bounds.map_or(Value::NULL, |bounds| {
                Value::Map(bounds.into_iter().map(|(id, bytes)| (id.into(), bytes.into())).collect())
            })
        };
        let mut values = vec![file.content.into(), file.file_path.into(), file.file_format.into(), file.spec_id.into()];
        if !self.partition.is_empty() {
            values.push(partition_value(file.partition));
        }
        let ids = |ids: Vec<i32>| Value::List(ids.into_iter().map(Value::from).collect());
        values.extend([
            count(file.record_count),
            count(file.file_size_in_bytes),
            numbers(file.column_sizes),
            numbers(file.value_counts),
            numbers(file.null_value_counts),
            numbers(file.nan_value_counts),
            bytes(file.lower_bounds),
            bytes(file.upper_bounds),
            Value::of(file.key_metadata),
            file.split_offsets.map_or(Value::NULL, |at| Value::List(at.into_iter().map(Value::from).collect())),
            file.equality_ids.map_or(Value::NULL, ids),
            Value::of(file.sort_order_id),
            Value::of(file.first_row_id),
            Value::of(file.referenced_data_file),
            Value::of(file.content_offset),
            Value::of(file.content_size_in_bytes),
        ]);
        values
    }

    fn values(&self, file: FileRow) -> Vec<Value> {
        let metrics = self.metrics(&file);
        let mut values = self.file_values(file);
        values.push(metrics);
        values
    }

    fn entry_values(&self, entry: EntryRow) -> Vec<Value> {
        let metrics = self.metrics(&entry.data_file);
        vec![
            entry.status.into(),
            Value::of(entry.snapshot_id),
            Value::of(entry.sequence_number),
            Value::of(entry.file_sequence_number),
            Value::Struct(self.file_values(entry.data_file)),
            metrics,
        ]
    }
}

fn manifest_fields(of_snapshots: bool) -> Vec<Field> {
    use DataType as D;
    let summary = fields(vec![
        ("contains_null", D::Boolean),
        ("contains_nan", D::Boolean),
        ("lower_bound", D::String),
        ("upper_bound", D::String),
    ]);
    let mut columns = vec![
        ("content", D::Integer),
        ("path", D::String),
        ("length", D::Long),
        ("partition_spec_id", D::Integer),
        ("added_snapshot_id", D::Long),
        ("added_data_files_count", D::Integer),
        ("existing_data_files_count", D::Integer),
        ("deleted_data_files_count", D::Integer),
        ("added_delete_files_count", D::Integer),
        ("existing_delete_files_count", D::Integer),
        ("deleted_delete_files_count", D::Integer),
        ("partition_summaries", list(D::Struct(summary))),
    ];
    if of_snapshots {
        columns.extend([("reference_snapshot_id", D::Long), ("key_metadata", D::Binary)]);
    }
    fields(columns)
}

fn manifest_values(row: ManifestRow) -> Vec<Value> {
    let summary = |s: PartitionSummary| {
        Value::Struct(vec![
            s.contains_null.into(),
            Value::of(s.contains_nan),
            Value::of(s.lower_bound),
            Value::of(s.upper_bound),
        ])
    };
    vec![
        row.content.into(),
        row.path.into(),
        count(row.length),
        Value::of(row.partition_spec_id),
        Value::of(row.added_snapshot_id),
        row.added_data_files_count.into(),
        row.existing_data_files_count.into(),
        row.deleted_data_files_count.into(),
        row.added_delete_files_count.into(),
        row.existing_delete_files_count.into(),
        row.deleted_delete_files_count.into(),
        Value::List(row.partition_summaries.into_iter().map(summary).collect()),
    ]
}

fn partition_fields(columns: &[PartitionColumn]) -> Vec<Field> {
    use DataType as D;
    let mut found = Vec::new();
    if !columns.is_empty() {
        found.push(field("partition", D::Struct(partition_type(columns))));
        found.push(field("spec_id", D::Integer));
    }
    found.extend(fields(vec![
        ("record_count", D::Long),
        ("file_count", D::Integer),
        ("total_data_file_size_in_bytes", D::Long),
        ("position_delete_record_count", D::Long),
        ("position_delete_file_count", D::Integer),
        ("equality_delete_record_count", D::Long),
        ("equality_delete_file_count", D::Integer),
        ("last_updated_at", D::Timestamp),
        ("last_updated_snapshot_id", D::Long),
    ]));
    found
}

fn partition_values(row: PartitionRow, partitioned: bool) -> Vec<Value> {
    let mut values = Vec::new();
    if partitioned {
        values.push(partition_value(row.partition));
        values.push(row.spec_id.into());
    }
    values.extend([
        count(row.record_count),
        i64::from(row.file_count).into(),
        count(row.total_data_file_size_in_bytes),
        count(row.position_delete_record_count),
        i64::from(row.position_delete_file_count).into(),
        count(row.equality_delete_record_count),
        i64::from(row.equality_delete_file_count).into(),
        row.last_updated_at.map_or(Value::NULL, instant),
        Value::of(row.last_updated_snapshot_id),
    ]);
    values
}

fn snapshots(table: &IcebergTable) -> MetadataTable {
    use DataType as D;
    let columns = fields(vec![
        ("committed_at", D::Timestamp),
        ("snapshot_id", D::Long),
        ("parent_id", D::Long),
        ("operation", D::String),
        ("manifest_list", D::String),
        ("summary", map(D::String, D::String)),
    ]);
    held(columns, tables::snapshots(table), |row| {
        vec![
            instant(row.committed_at),
            row.snapshot_id.into(),
            Value::of(row.parent_id),
            Value::of(row.operation),
            Value::of(row.manifest_list),
            Value::Map(row.summary.into_iter().map(|(key, value)| (key.into(), value.into())).collect()),
        ]
    })
}

fn history(table: &IcebergTable) -> MetadataTable {
    use DataType as D;
    let columns = fields(vec![
        ("made_current_at", D::Timestamp),
        ("snapshot_id", D::Long),
        ("parent_id", D::Long),
        ("is_current_ancestor", D::Boolean),
    ]);
    held(columns, tables::history(table), |row| {
        let made = instant(row.made_current_at);
        vec![made, row.snapshot_id.into(), Value::of(row.parent_id), row.is_current_ancestor.into()]
    })
}

fn refs(table: &IcebergTable) -> MetadataTable {
    use DataType as D;
    let columns = fields(vec![
        ("name", D::String),
        ("type", D::String),
        ("snapshot_id", D::Long),
        ("max_reference_age_in_ms", D::Long),
        ("min_snapshots_to_keep", D::Integer),
        ("max_snapshot_age_in_ms", D::Long),
    ]);
    held(columns, tables::refs(table), |row| {
        vec![
            row.name.into(),
            row.kind.into(),
            row.snapshot_id.into(),
            Value::of(row.max_reference_age_in_ms),
            Value::of(row.min_snapshots_to_keep),
            Value::of(row.max_snapshot_age_in_ms),
        ]
    })
}

fn metadata_log(table: &IcebergTable) -> MetadataTable {
    use DataType as D;
    let columns = fields(vec![
        ("timestamp", D::Timestamp),
        ("file", D::String),
        ("latest_snapshot_id", D::Long),
        ("latest_schema_id", D::Integer),
        ("latest_sequence_number", D::Long),
    ]);
    held(columns, tables::metadata_log(table), |row| {
        vec![
            instant(row.timestamp),
            row.file.into(),
            Value::of(row.latest_snapshot_id),
            Value::of(row.latest_schema_id),
            Value::of(row.latest_sequence_number),
        ]
    })
}
