//! Iceberg's types as the metadata spells them, and the schema that planners see.
//!
//! # Source
//! Iceberg spec, "Schemas and Data Types" and appendix C, "Schemas".

use std::collections::BTreeMap;

use lakesmith_core::table::{DataType, Field, Schema};
use lakesmith_core::{Error, Result};
use serde_json::Value;

/// Key of [`Field::metadata`] that holds the type's own spelling, where ours says less.
pub const ICEBERG_TYPE: &str = "iceberg-type";
/// Key of [`Field::metadata`]: what a column is in files that were written before it was added.
pub const INITIAL_DEFAULT: &str = "initial-default";
/// Key of [`Field::metadata`]: what a column is in rows that are written without it.
pub const WRITE_DEFAULT: &str = "write-default";
/// Key of [`Field::metadata`]: a column's description.
const COMMENT: &str = "comment";

/// Types inside types at most.
const DEPTH_MAX: usize = 64;

/// A type without parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the format's specification")]
pub enum Primitive {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
    Date,
    Time,
    Timestamp,
    TimestampTz,
    TimestampNs,
    TimestampTzNs,
    String,
    Uuid,
    Fixed(u64),
    Binary,
    Variant,
    Unknown,
    /// A type that we have no use for: its spelling.
    Other(String),
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IcebergType {
    /// Without parts.
    Primitive(Primitive),
    /// Fields.
    Struct(Vec<IcebergField>),
    /// The element.
    List(Box<IcebergField>),
    /// Key and value.
    Map(Box<IcebergField>, Box<IcebergField>),
}

/// A column, a field of a struct, or the part of a list or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcebergField {
    /// Its id, which it never loses.
    pub id: i32,
    /// Its name; `element`, `key` and `value` for the parts of lists and maps.
    pub name: String,
    /// Whether NULL is ruled out.
    pub required: bool,
    /// Its type.
    pub field_type: IcebergType,
    /// Its description.
    pub doc: Option<String>,
    /// Default of older files, as JSON text.
    pub initial_default: Option<String>,
    /// Default of new rows, as JSON text.
    pub write_default: Option<String>,
}

/// One version of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Its id.
    pub schema_id: i32,
    /// Columns in order.
    pub fields: Vec<IcebergField>,
    /// Ids of the columns that identify a row.
    pub identifier_field_ids: Vec<i32>,
}

impl Primitive {
    fn parse(text: &str) -> Result<Self> {
        let inside = |kind: &str| text.strip_prefix(kind)?.trim().strip_prefix('[')?.strip_suffix(']').map(str::trim);
        Ok(match text {
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "date" => Self::Date,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "timestamptz" => Self::TimestampTz,
            "timestamp_ns" => Self::TimestampNs,
            "timestamptz_ns" => Self::TimestampTzNs,
            "string" => Self::String,
            "uuid" => Self::Uuid,
            "binary" => Self::Binary,
            "variant" => Self::Variant,
            "unknown" => Self::Unknown,
            _ => {
                if let Some(size) = inside("fixed") {
                    let size = size.parse().map_err(|_| unreadable(text))?;
                    return Ok(Self::Fixed(size));
                }
                let Some(digits) = text.strip_prefix("decimal") else { return Ok(Self::Other(text.to_owned())) };
                let digits = digits.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                let (precision, scale) =
                    digits.and_then(|digits| digits.split_once(',')).ok_or_else(|| unreadable(text))?;
                let precision: u8 = precision.trim().parse().map_err(|_| unreadable(text))?;
                let scale: i8 = scale.trim().parse().map_err(|_| unreadable(text))?;
                if !(1..=38).contains(&precision) || scale < 0 || scale as u8 > precision {
                    return Err(unreadable(text));
                }
                Self::Decimal { precision, scale }
            }
        })
    }

    /// As the metadata spells it.
    pub fn spelling(&self) -> String {
        match self {
            Self::Boolean => "boolean".into(),
            Self::Int => "int".into(),
            Self::Long => "long".into(),
            Self::Float => "float".into(),
            Self::Double => "double".into(),
            Self::Decimal { precision, scale } => format!("decimal({precision}, {scale})"),
            Self::Date => "date".into(),
            Self::Time => "time".into(),
            Self::Timestamp => "timestamp".into(),
            Self::TimestampTz => "timestamptz".into(),
            Self::TimestampNs => "timestamp_ns".into(),
            Self::TimestampTzNs => "timestamptz_ns".into(),
            Self::String => "string".into(),
            Self::Uuid => "uuid".into(),
            Self::Fixed(size) => format!("fixed[{size}]"),
            Self::Binary => "binary".into(),
            Self::Variant => "variant".into(),
            Self::Unknown => "unknown".into(),
            Self::Other(text) => text.clone(),
        }
    }

    /// The type that planners see, and whether it says all that ours can't.
    /// The type as Spark has it.
    pub fn spark_type(&self) -> DataType {
        self.data_type().0
    }

    fn data_type(&self) -> (DataType, bool) {
        match self {
            Self::Boolean => (DataType::Boolean, true),
            Self::Int => (DataType::Integer, true),
            Self::Long => (DataType::Long, true),
            Self::Float => (DataType::Float, true),
            Self::Double => (DataType::Double, true),
            Self::Decimal { precision, scale } => (DataType::Decimal { precision: *precision, scale: *scale }, true),
            Self::Date => (DataType::Date, true),
            Self::Timestamp => (DataType::TimestampNtz, true),
            Self::TimestampTz => (DataType::Timestamp, true),
            Self::String => (DataType::String, true),
            Self::Binary => (DataType::Binary, true),
            Self::Variant => (DataType::Variant, true),
            Self::Unknown => (DataType::Null, true),
            Self::Uuid | Self::Time => (DataType::String, false),
            Self::TimestampNs => (DataType::TimestampNtz, false),
            Self::TimestampTzNs => (DataType::Timestamp, false),
            Self::Fixed(_) | Self::Other(_) => (DataType::Binary, false),
        }
    }

    /// True if rows of the type can be read as the type that planners see.
    fn is_readable(&self) -> bool {
        !matches!(self, Self::Time | Self::TimestampNs | Self::TimestampTzNs | Self::Other(_))
    }
}

impl IcebergType {
    /// # Errors
    /// `Corrupt` if the JSON is no type.
    pub(crate) fn parse(json: &Value, depth: usize) -> Result<Self> {
        let object = match json {
            Value::String(text) => return Primitive::parse(text).map(Self::Primitive),
            Value::Object(object) if depth < DEPTH_MAX => object,
            _ => return Err(unreadable(&json.to_string())),
        };
        let part = |key: &str| object.get(key).ok_or_else(|| unreadable(&json.to_string()));
        let id = |key: &str| part(key)?.as_i64().and_then(|id| i32::try_from(id).ok()).ok_or_else(|| unreadable(key));
        let inner = |name: &str, id: i32, key: &str, required: bool| {
            let field_type = Self::parse(part(key)?, depth + 1)?;
            let (doc, initial_default, write_default) = (None, None, None);
            let name = name.to_owned();
            Ok(Box::new(IcebergField { id, name, required, field_type, doc, initial_default, write_default }))
        };
        let flag = |key: &str| part(key)?.as_bool().ok_or_else(|| unreadable(key));
        match part("type")?.as_str() {
            Some("struct") => {
                let fields = part("fields")?.as_array().ok_or_else(|| unreadable("a struct"))?;
                let fields = fields.iter().map(|field| IcebergField::parse(field, depth + 1));
                Ok(Self::Struct(fields.collect::<Result<_>>()?))
            }
            Some("list") => Ok(Self::List(inner("element", id("element-id")?, "element", flag("element-required")?)?)),
            Some("map") => Ok(Self::Map(
                inner("key", id("key-id")?, "key", true)?,
                inner("value", id("value-id")?, "value", flag("value-required")?)?,
            )),
            _ => Err(unreadable(&json.to_string())),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Primitive(primitive) => primitive.data_type().0,
            Self::Struct(fields) => DataType::Struct(fields.iter().map(IcebergField::field).collect()),
            Self::List(element) => DataType::List(Box::new(element.field())),
            Self::Map(key, value) => DataType::Map(Box::new(key.field()), Box::new(value.field())),
        }
    }

    /// Fields one level below.
    pub(crate) fn parts(&self) -> Vec<&IcebergField> {
        match self {
            Self::Primitive(_) => Vec::new(),
            Self::Struct(fields) => fields.iter().collect(),
            Self::List(element) => vec![element],
            Self::Map(key, value) => vec![key, value],
        }
    }
}

impl IcebergField {
    fn parse(json: &Value, depth: usize) -> Result<Self> {
        let part = |key: &str| json.get(key).ok_or_else(|| unreadable(&json.to_string()));
        let default = |key: &str| json.get(key).filter(|value| !value.is_null()).map(Value::to_string);
        Ok(Self {
            id: part("id")?.as_i64().and_then(|id| i32::try_from(id).ok()).ok_or_else(|| unreadable("an id"))?,
            name: part("name")?.as_str().ok_or_else(|| unreadable("a name"))?.to_owned(),
            required: part("required")?.as_bool().ok_or_else(|| unreadable("required"))?,
            field_type: IcebergType::parse(part("type")?, depth)?,
            doc: json.get("doc").and_then(Value::as_str).map(str::to_owned),
            initial_default: default(INITIAL_DEFAULT),
            write_default: default(WRITE_DEFAULT),
        })
    }

    /// The field as planners see it.
    pub fn field(&self) -> Field {
        let mut metadata = BTreeMap::new();
        if let IcebergType::Primitive(primitive) = &self.field_type
            && !primitive.data_type().1
        {
            metadata.insert(ICEBERG_TYPE.to_owned(), Value::String(primitive.spelling()).to_string());
        }
        let doc = self.doc.as_ref().map(|doc| Value::String(doc.clone()).to_string());
        let more = [(COMMENT, &doc), (INITIAL_DEFAULT, &self.initial_default), (WRITE_DEFAULT, &self.write_default)];
        for (key, value) in more {
            metadata.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        Field {
            name: self.name.clone(),
            physical: self.name.clone(),
            id: Some(self.id),
            data_type: self.field_type.data_type(),
            nullable: !self.required,
            metadata,
        }
    }

    /// Path and type of the first part that rows can't be read of.
    fn unreadable_part(&self, path: &str) -> Option<(String, String)> {
        let path = if path.is_empty() { self.name.clone() } else { format!("{path}.{}", self.name) };
        match &self.field_type {
            IcebergType::Primitive(primitive) => (!primitive.is_readable()).then(|| (path, primitive.spelling())),
            nested => nested.parts().into_iter().find_map(|part| part.unreadable_part(&path)),
        }
    }
}

impl SchemaVersion {
    /// # Errors
    /// `Corrupt` if the JSON is no schema.
    pub(crate) fn parse(json: &Value) -> Result<Self> {
        let fields = json.get("fields").and_then(Value::as_array).ok_or_else(|| unreadable("a schema"))?;
        let schema_id = json.get("schema-id").and_then(Value::as_i64).unwrap_or(0);
        let identifiers = json.get("identifier-field-ids").and_then(Value::as_array);
        Ok(Self {
            schema_id: i32::try_from(schema_id).map_err(|_| unreadable("a schema id"))?,
            fields: fields.iter().map(|field| IcebergField::parse(field, 0)).collect::<Result<_>>()?,
            identifier_field_ids: identifiers
                .into_iter()
                .flatten()
                .filter_map(|id| i32::try_from(id.as_i64()?).ok())
                .collect(),
        })
    }

    /// The schema as planners see it, with the ids of all fields.
    pub fn schema(&self) -> Schema {
        Schema { fields: self.fields.iter().map(IcebergField::field).collect() }
    }

    /// The field with this id, wherever it is nested.
    pub fn field(&self, id: i32) -> Option<&IcebergField> {
        fn find(fields: Vec<&IcebergField>, id: i32) -> Option<&IcebergField> {
            fields.into_iter().find_map(
                |field| {
                    if field.id == id { Some(field) } else { find(field.field_type.parts(), id) }
                },
            )
        }
        find(self.fields.iter().collect(), id)
    }

    /// The type of the field with this id, if it has no parts.
    pub(crate) fn primitive(&self, id: i32) -> Option<&Primitive> {
        match &self.field(id)?.field_type {
            IcebergType::Primitive(primitive) => Some(primitive),
            _ => None,
        }
    }

    /// Names from the column down to the field with this id, joined by points.
    pub fn name_of(&self, id: i32) -> Option<String> {
        fn find(fields: Vec<&IcebergField>, id: i32) -> Option<String> {
            fields.into_iter().find_map(|field| {
                if field.id == id {
                    return Some(field.name.clone());
                }
                find(field.field_type.parts(), id).map(|below| format!("{}.{below}", field.name))
            })
        }
        find(self.fields.iter().collect(), id)
    }

    /// Refuses columns of types whose values are not understood.
    ///
    /// # Errors
    /// `Unsupported` with the column and its type.
    pub(crate) fn check_readable(&self) -> Result<()> {
        match self.fields.iter().find_map(|field| field.unreadable_part("")) {
            None => Ok(()),
            Some((column, spelling)) => {
                Err(Error::unsupported(format!("rows with a column of type {spelling} cannot be read"))
                    .with("column", column)
                    .with("type", spelling))
            }
        }
    }
}

fn unreadable(what: &str) -> Error {
    Error::corrupt("a type in the table's metadata cannot be understood").with("type", what)
}
