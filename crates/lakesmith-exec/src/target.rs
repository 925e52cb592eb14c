//! The Arrow schema of the rows that go into the output files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{
    DataType as ArrowType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit,
};
use lakesmith_core::table::{DataType, Field, ReadSpec, RowTrackingColumns, WriteSpec};
use lakesmith_core::{Error, Result};
use parquet::arrow::{ArrowSchemaConverter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type as ParquetType, TypePtr};

/// Arrow metadata key and value that make the Parquet writer annotate a group as VARIANT.
const EXTENSION_NAME: (&str, &str) = ("ARROW:extension:name", "arrow.parquet.variant");
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// How strings are handled between reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// As text: each is checked to be UTF-8.
    Text,
    /// As the bytes that they are: Spark stores whatever was cast to a string.
    Bytes,
}

/// Columns of the output files: data columns, then partition columns, then the hidden row-tracking columns.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// All columns as they are held in memory.
    pub schema: SchemaRef,
    /// All columns as the files declare them.
    pub declared: SchemaRef,
    /// The data columns that files hold (VOID columns are in no file), in order.
    pub data: Vec<Field>,
}

impl Target {
    /// No column at all: rows are only counted.
    pub(crate) fn empty() -> Target {
        let schema: SchemaRef = Arc::new(ArrowSchema::empty());
        Target { schema: Arc::clone(&schema), declared: schema, data: Vec::new() }
    }

    /// The target of a task; `annotate_variant` keeps the VARIANT annotation of its inputs.
    pub(crate) fn new(read: &ReadSpec, write: &WriteSpec, annotate_variant: bool, strings: Strings) -> Result<Target> {
        let mut fields = Vec::new();
        let mut data = Vec::new();
        for field in &read.schema.fields {
            if let Some(arrow) = arrow_field(field, annotate_variant)? {
                fields.push(arrow);
                data.push(field.clone());
            }
        }
        for field in &write.partition_fields {
            fields.extend(arrow_field(field, annotate_variant)?);
        }
        if let Some(columns) = &write.row_tracking {
            fields.extend(tracking_fields(columns));
        }
        if fields.is_empty() {
            return Err(Error::unsupported("the table has no column that a data file can hold; add a column first"));
        }
        let declared: SchemaRef = Arc::new(ArrowSchema::new(fields));
        let schema = match strings {
            Strings::Text => Arc::clone(&declared),
            Strings::Bytes => {
                // Partition columns hold values of the log, which is text.
                let held = declared.fields().iter().enumerate();
                let held = held.map(|(i, f)| if i < data.len() { with_bytes(f) } else { Arc::clone(f) });
                Arc::new(ArrowSchema::new(held.collect::<Fields>()))
            }
        };
        Ok(Target { schema, declared, data })
    }
}

/// The field with bytes in the place of strings.
fn with_bytes(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        ArrowType::Utf8 => ArrowType::Binary,
        ArrowType::Struct(children) => ArrowType::Struct(children.iter().map(with_bytes).collect()),
        ArrowType::List(inner) => ArrowType::List(with_bytes(inner)),
        ArrowType::Map(entries, sorted) => ArrowType::Map(with_bytes(entries), *sorted),
        other => other.clone(),
    };
    Arc::new(ArrowField::clone(field).with_data_type(data_type))
}

/// The Parquet schema of `schema`, with variants annotated as Spark does: version 1 of their specification.
///
/// # Errors
/// Internal if Arrow cannot map a type.
pub(crate) fn parquet_schema(schema: &ArrowSchema) -> Result<SchemaDescriptor> {
    let failed = |e| Error::internal("the table's schema has no Parquet form").caused_by(e);
    let converted = ArrowSchemaConverter::new().schema_root("schema").convert(schema).map_err(failed)?;
    let root = with_variant_version(converted.root_schema_ptr()).map_err(failed)?;
    Ok(SchemaDescriptor::new(root))
}

fn with_variant_version(stored: TypePtr) -> Result<TypePtr, ParquetError> {
    if stored.is_primitive() {
        return Ok(stored);
    }
    let info = stored.get_basic_info();
    let logical = match info.logical_type_ref() {
        Some(LogicalType::Variant(_)) => Some(LogicalType::variant(Some(1))),
        other => other.cloned(),
    };
    let fields = stored.get_fields().iter().cloned().map(with_variant_version).collect::<Result<_, _>>()?;
    let mut builder = ParquetType::group_type_builder(stored.name())
        .with_converted_type(info.converted_type())
        .with_logical_type(logical)
        .with_fields(fields)
        .with_id(info.has_id().then(|| info.id()));
    if info.has_repetition() {
        builder = builder.with_repetition(info.repetition());
    }
    Ok(Arc::new(builder.build()?))
}

fn tracking_fields(columns: &RowTrackingColumns) -> [ArrowField; 2] {
    let make = |name: &str, id: Option<i32>| with_id(ArrowField::new(name, ArrowType::Int64, true), id);
    [
        make(&columns.row_id, columns.field_ids.map(|ids| ids.0)),
        make(&columns.commit_version, columns.field_ids.map(|ids| ids.1)),
    ]
}

fn with_id(field: ArrowField, id: Option<i32>) -> ArrowField {
    match id {
        Some(id) => {
            let mut metadata = field.metadata().clone();
            metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
            field.with_metadata(metadata)
        }
        None => field,
    }
}

/// The Arrow field of a column, named physically; `None` for VOID, which no file holds.
pub(crate) fn arrow_field(field: &Field, annotate_variant: bool) -> Result<Option<ArrowField>> {
    let Some(data_type) = arrow_type(&field.data_type, annotate_variant, &field.name)? else { return Ok(None) };
    let mut arrow = ArrowField::new(&field.physical, data_type, true);
    if matches!(field.data_type, DataType::Variant) && annotate_variant {
        arrow = arrow.with_metadata(HashMap::from([
            (EXTENSION_NAME.0.to_owned(), EXTENSION_NAME.1.to_owned()),
            (EXTENSION_METADATA.to_owned(), String::new()),
        ]));
    }
    Ok(Some(with_id(arrow, field.id)))
}

fn arrow_type(data_type: &DataType, annotate: bool, column: &str) -> Result<Option<ArrowType>> {
    let refuse = |what: &str| {
        Error::unsupported(format!("{what} cannot be written to Parquet; drop the column or give it a type"))
            .with("column", column)
    };
    if let Some(primitive) = primitive_type(data_type) {
        return Ok(Some(primitive));
    }
    Ok(Some(match data_type {
        DataType::Variant => ArrowType::Struct(variant_fields()),
        DataType::Struct(children) => {
            let mut fields = Vec::new();
            for child in children {
                fields.extend(arrow_field(child, annotate)?);
            }
            if fields.is_empty() {
                return Err(refuse("a struct without fields"));
            }
            ArrowType::Struct(fields.into())
        }
        DataType::List(element) => {
            let inner = arrow_field(element, annotate)?.ok_or_else(|| refuse("an array of VOID"))?;
            ArrowType::List(Arc::new(inner.with_name("element")))
        }
        DataType::Map(key, value) => {
            let key = arrow_field(key, annotate)?.ok_or_else(|| refuse("a map with VOID keys"))?;
            let value = arrow_field(value, annotate)?.ok_or_else(|| refuse("a map with VOID values"))?;
            let entries = Fields::from(vec![key.with_name("key").with_nullable(false), value.with_name("value")]);
            ArrowType::Map(Arc::new(ArrowField::new("key_value", ArrowType::Struct(entries), false)), false)
        }
        // VOID is in no file.
        _ => return Ok(None),
    }))
}

/// The Arrow type of values that hold no others, as they are in memory; `None` for types that do, and for VOID.
pub fn primitive_type(data_type: &DataType) -> Option<ArrowType> {
    Some(match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::Byte => ArrowType::Int8,
        DataType::Short => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::Long => ArrowType::Int64,
        DataType::Float => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(*precision, *scale),
        DataType::String => ArrowType::Utf8,
        DataType::Binary => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Null | DataType::Variant | DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => {
            return None;
        }
    })
}

/// The parts of a variant. Spark reads one only if both are required.
pub fn variant_fields() -> Fields {
    Fields::from(vec![
        ArrowField::new("value", ArrowType::Binary, false),
        ArrowField::new("metadata", ArrowType::Binary, false),
    ])
}
