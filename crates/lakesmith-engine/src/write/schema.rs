//! The columns of a query as those of a table that is made from it.
//!
//! # Source
//! Delta Spark `CreateDeltaTableCommand`: every column of a table made from a query may be null.

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField};
use lakesmith::table::{DataType, Field, Schema};
use lakesmith::{Error, Result};

use crate::read::VARIANT;

/// The table's columns: `names` as they are spelled, types as the plan has them. `spelling` is that of fields inside of them.
///
/// # Errors
/// Unsupported for a type that no table holds.
pub(super) fn schema<'a>(
    names: &[String],
    fields: impl Iterator<Item = &'a ArrowField>,
    spelling: &dyn Fn(&str) -> String,
) -> Result<Schema> {
    let fields = names.iter().zip(fields).map(|(name, arrow)| {
        let data_type = data_type(arrow, spelling).map_err(|e| e.with("column", name))?;
        Ok(field(name.clone(), data_type, true))
    });
    Ok(Schema { fields: fields.collect::<Result<_>>()? })
}

fn field(name: String, data_type: DataType, nullable: bool) -> Field {
    Field { physical: name.clone(), name, id: None, data_type, nullable, metadata: Default::default() }
}

fn data_type(arrow: &ArrowField, spelling: &dyn Fn(&str) -> String) -> Result<DataType> {
    let inner = |arrow: &ArrowField, name: &str, nullable| {
        Ok::<_, Error>(field(name.to_owned(), data_type(arrow, spelling)?, nullable))
    };
    Ok(match arrow.data_type() {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Byte,
        ArrowType::Int16 | ArrowType::UInt8 => DataType::Short,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Integer,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::Long,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale) => DataType::Decimal { precision: *precision, scale: *scale },
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Timestamp(_, Some(_)) => DataType::Timestamp,
        ArrowType::Timestamp(_, None) => DataType::TimestampNtz,
        ArrowType::Null => DataType::Null,
        ArrowType::Dictionary(_, value) => {
            data_type(&ArrowField::new(arrow.name(), (**value).clone(), true), spelling)?
        }
        ArrowType::Struct(_) if arrow.metadata().contains_key(VARIANT.0) => DataType::Variant,
        ArrowType::Struct(children) => DataType::Struct(
            children.iter().map(|child| inner(child, &spelling(child.name()), true)).collect::<Result<_>>()?,
        ),
        ArrowType::List(element) | ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _) => {
            DataType::List(Box::new(inner(element, "element", true)?))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(parts) if parts.len() == 2 => {
                DataType::Map(Box::new(inner(&parts[0], "key", false)?), Box::new(inner(&parts[1], "value", true)?))
            }
            other => return Err(Error::internal(format!("a map's entries are {other}"))),
        },
        other => {
            return Err(Error::unsupported(format!(
                "no table holds values of the type {other}; cast them to another one"
            ))
            .class("UNSUPPORTED_DATATYPE"));
        }
    })
}
