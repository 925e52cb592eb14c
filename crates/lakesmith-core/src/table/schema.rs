//! Field paths and types as planners and rewriters need them.

use std::collections::BTreeMap;

/// A column type. Names are Spark's.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum DataType {
    /// BOOLEAN
    Boolean,
    /// TINYINT
    Byte,
    /// SMALLINT
    Short,
    /// INT
    Integer,
    /// BIGINT
    Long,
    /// FLOAT
    Float,
    /// DOUBLE
    Double,
    /// DECIMAL(precision, scale)
    Decimal {
        /// Number of digits, 1 to 38.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// STRING
    String,
    /// BINARY
    Binary,
    /// DATE
    Date,
    /// TIMESTAMP (an instant)
    Timestamp,
    /// TIMESTAMP_NTZ
    TimestampNtz,
    /// VARIANT
    Variant,
    /// VOID
    Null,
    /// STRUCT
    Struct(Vec<Field>),
    /// ARRAY; the field is the element (named `element`).
    List(Box<Field>),
    /// MAP; the fields are key and value (named `key`, `value`).
    Map(Box<Field>, Box<Field>),
}

/// A column or a nested field.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Field {
    /// Logical name.
    pub name: String,
    /// Name inside data files; equals `name` without column mapping.
    pub physical: String,
    /// Parquet field id, where the table maps columns.
    pub id: Option<i32>,
    /// Type.
    pub data_type: DataType,
    /// Whether the table allows nulls.
    pub nullable: bool,
    /// The format's own metadata, values as JSON text.
    pub metadata: BTreeMap<String, String>,
}

/// The columns of a table, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Schema {
    /// Top-level columns.
    pub fields: Vec<Field>,
}

impl Schema {
    /// A top-level column by its logical name, without regard to case.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields
            .iter()
            .find(|f| f.name == name)
            .or_else(|| self.fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)))
    }
}

impl DataType {
    /// Spark's `simpleString`, as in `decimal(10,2)` or `struct<a:int>`.
    pub fn simple_string(&self) -> String {
        match self {
            DataType::Boolean => "boolean".into(),
            DataType::Byte => "tinyint".into(),
            DataType::Short => "smallint".into(),
            DataType::Integer => "int".into(),
            DataType::Long => "bigint".into(),
            DataType::Float => "float".into(),
            DataType::Double => "double".into(),
            DataType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            DataType::String => "string".into(),
            DataType::Binary => "binary".into(),
            DataType::Date => "date".into(),
            DataType::Timestamp => "timestamp".into(),
            DataType::TimestampNtz => "timestamp_ntz".into(),
            DataType::Variant => "variant".into(),
            DataType::Null => "void".into(),
            DataType::Struct(fields) => {
                let inner: Vec<String> =
                    fields.iter().map(|f| format!("{}:{}", f.name, f.data_type.simple_string())).collect();
                format!("struct<{}>", inner.join(","))
            }
            DataType::List(element) => format!("array<{}>", element.data_type.simple_string()),
            DataType::Map(key, value) => {
                format!("map<{},{}>", key.data_type.simple_string(), value.data_type.simple_string())
            }
        }
    }
}
