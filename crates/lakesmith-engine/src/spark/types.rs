//! Types by their SQL names.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{DataType as Sql, ExactNumberInfo, TimezoneInfo};

/// Spark's types where DataFusion has others, or none, under the same name.
#[derive(Debug)]
pub(crate) struct SparkTypes;

impl TypePlanner for SparkTypes {
    fn plan_type_field(&self, sql: &Sql) -> Result<Option<FieldRef>> {
        Ok(data_type(sql).map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

fn data_type(sql: &Sql) -> Option<DataType> {
    let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let wall_clock = || DataType::Timestamp(TimeUnit::Microsecond, None);
    Some(match sql {
        Sql::Timestamp(_, TimezoneInfo::WithoutTimeZone) | Sql::TimestampNtz(_) => wall_clock(),
        Sql::Timestamp(..) => instant(),
        Sql::Decimal(ExactNumberInfo::None) | Sql::Dec(ExactNumberInfo::None) | Sql::Numeric(ExactNumberInfo::None) => {
            DataType::Decimal128(10, 0)
        }
        Sql::Float(_) | Sql::Real => DataType::Float32,
        Sql::Double(_) => DataType::Float64,
        Sql::String(_) => DataType::Utf8,
        Sql::Binary(_) => DataType::Binary,
        Sql::Custom(name, _) => match name.to_string().to_lowercase().as_str() {
            "byte" => DataType::Int8,
            "short" => DataType::Int16,
            "long" => DataType::Int64,
            "timestamp_ltz" => instant(),
            "timestamp_ntz" => wall_clock(),
            "void" => DataType::Null,
            _ => return None,
        },
        _ => return None,
    })
}
