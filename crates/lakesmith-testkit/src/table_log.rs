//! The JSON of a Delta log, written by hand.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use lakesmith_core::{Error, Result};
use serde_json::{Value, json};

/// Features that readers have to know as well as writers.
const READER_FEATURES: [&str; 9] = [
    "catalogManaged",
    "catalogOwned-preview",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
];

pub(crate) fn protocol(features: &BTreeSet<String>) -> Value {
    if features.is_empty() {
        return json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    }
    let readers: Vec<&String> = features.iter().filter(|f| READER_FEATURES.contains(&f.as_str())).collect();
    if readers.is_empty() {
        return json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}});
    }
    json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": features,
    }})
}

pub(crate) fn metadata(
    id: uuid::Uuid,
    schema: &Schema,
    partition_columns: &[String],
    properties: &BTreeMap<String, String>,
    created_ms: i64,
) -> Result<Value> {
    let schema = json!({"type": "struct", "fields": fields(schema.fields())?});
    Ok(json!({"metaData": {
        "id": id.to_string(),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(),
        "partitionColumns": partition_columns,
        "configuration": properties,
        "createdTime": created_ms,
    }}))
}

fn fields(fields: &[std::sync::Arc<Field>]) -> Result<Vec<Value>> {
    let field = |f: &std::sync::Arc<Field>| {
        Ok(json!({
            "name": f.name(), "type": data_type(f.data_type())?, "nullable": f.is_nullable(), "metadata": {},
        }))
    };
    fields.iter().map(field).collect()
}

fn data_type(data_type: &DataType) -> Result<Value> {
    Ok(match data_type {
        DataType::Int64 => json!("long"),
        DataType::Int32 => json!("integer"),
        DataType::Int16 => json!("short"),
        DataType::Int8 => json!("byte"),
        DataType::Float64 => json!("double"),
        DataType::Float32 => json!("float"),
        DataType::Boolean => json!("boolean"),
        DataType::Utf8 => json!("string"),
        DataType::Binary => json!("binary"),
        DataType::Date32 => json!("date"),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => json!("timestamp"),
        DataType::Timestamp(TimeUnit::Microsecond, None) => json!("timestamp_ntz"),
        DataType::Decimal128(precision, scale) => json!(format!("decimal({precision},{scale})")),
        DataType::Struct(inner) => json!({"type": "struct", "fields": fields(inner)?}),
        DataType::List(element) => json!({
            "type": "array",
            "elementType": self::data_type(element.data_type())?,
            "containsNull": element.is_nullable(),
        }),
        other => return Err(Error::usage(format!("the test tables have no columns of type {other}"))),
    })
}
