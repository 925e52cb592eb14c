//! Types of predicates and Spark's implicit casts between them (ANSI mode).
//!
//! # Source
//! Spark `AnsiTypeCoercion`, `TypeCoercionHelper.findWiderTypeForString`.

use crate::table::DataType;

/// Types that partition columns and expressions over them have. The width of integers and floats is not kept: it decides
/// about overflow only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Decimal,
    Double,
    String,
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
}

impl Type {
    /// `None` for types that a partition column cannot have.
    pub(super) fn of(data_type: &DataType) -> Option<Type> {
        Some(match data_type {
            DataType::Null => Type::Null,
            DataType::Boolean => Type::Boolean,
            DataType::Byte | DataType::Short | DataType::Integer => Type::Int,
            DataType::Long => Type::Long,
            DataType::Float | DataType::Double => Type::Double,
            DataType::Decimal { .. } => Type::Decimal,
            DataType::String => Type::String,
            DataType::Binary => Type::Binary,
            DataType::Date => Type::Date,
            DataType::Timestamp => Type::Timestamp,
            DataType::TimestampNtz => Type::TimestampNtz,
            DataType::Variant | DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => return None,
        })
    }

    /// Spark's name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Null => "VOID",
            Type::Boolean => "BOOLEAN",
            Type::Int => "INT",
            Type::Long => "BIGINT",
            Type::Decimal => "DECIMAL",
            Type::Double => "DOUBLE",
            Type::String => "STRING",
            Type::Binary => "BINARY",
            Type::Date => "DATE",
            Type::Timestamp => "TIMESTAMP",
            Type::TimestampNtz => "TIMESTAMP_NTZ",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Long | Type::Decimal | Type::Double)
    }

    fn is_instant(self) -> bool {
        matches!(self, Type::Date | Type::Timestamp | Type::TimestampNtz)
    }

    /// The type in which values of both are compared, or `None` if they cannot be.
    pub(super) fn common(self, other: Type) -> Option<Type> {
        use Type::*;
        Some(match (self, other) {
            (a, b) if a == b => a,
            (Null, t) | (t, Null) => t,
            (String, Int | Long) | (Int | Long, String) => Long,
            (String, Decimal | Double) | (Decimal | Double, String) => Double,
            (String, t) | (t, String) => t,
            (Timestamp, t) | (t, Timestamp) if t.is_instant() => Timestamp,
            (TimestampNtz, Date) | (Date, TimestampNtz) => TimestampNtz,
            (Double, t) | (t, Double) if t.is_number() => Double,
            (Decimal, t) | (t, Decimal) if t.is_number() => Decimal,
            (Long, Int) | (Int, Long) => Long,
            _ => return None,
        })
    }

    /// Whether CAST may be written between the types.
    pub(super) fn can_cast(self, to: Type) -> bool {
        let number_or_boolean = |t: Type| t.is_number() || t == Type::Boolean;
        self == to
            || self == Type::Null
            || matches!(self, Type::String)
            || to == Type::String
            || (number_or_boolean(self) && number_or_boolean(to))
            || (self.is_instant() && to.is_instant())
            || (self.is_number() && to == Type::Timestamp)
            || (self == Type::Timestamp && to.is_number())
    }
}
