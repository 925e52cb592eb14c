//! Rows that describe a table: what metadata tables give, free of any format and of Arrow.

use super::{Scalar, Schema};
use crate::Result;

/// A value of any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A value without parts; [`Scalar::Null`] is NULL of any type.
    Scalar(Scalar),
    /// A struct's fields, in the order of its type.
    Struct(Vec<Value>),
    /// An array's elements.
    List(Vec<Value>),
    /// A map's entries, in their order.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// NULL.
    pub const NULL: Value = Value::Scalar(Scalar::Null);

    /// NULL for nothing.
    pub fn of<T: Into<Value>>(value: Option<T>) -> Value {
        value.map_or(Self::NULL, Into::into)
    }

    /// True for NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(Scalar::Null))
    }
}

impl From<Scalar> for Value {
    fn from(value: Scalar) -> Self {
        Self::Scalar(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Scalar(Scalar::Long(value))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Scalar(Scalar::Long(value.into()))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Scalar(Scalar::Boolean(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Scalar(Scalar::String(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Scalar(Scalar::String(value))
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Scalar(Scalar::Binary(value))
    }
}

/// Rows in the order of the columns of [`MetadataTable::schema`].
pub type Rows = Vec<Vec<Value>>;

/// A table that describes another one.
pub struct MetadataTable {
    /// Its columns.
    pub schema: Schema,
    /// Its rows, some at a time, so that they need not be held all at once.
    pub rows: Box<dyn Iterator<Item = Result<Rows>> + Send>,
}

impl std::fmt::Debug for MetadataTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataTable").field("schema", &self.schema).finish_non_exhaustive()
    }
}
