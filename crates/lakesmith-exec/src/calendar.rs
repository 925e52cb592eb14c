//! Files written with the old hybrid calendar: their early dates mean other days than they seem to.
//!
//! # Source
//! Spark `DataSourceUtils.datetimeRebaseSpec` and `RebaseDateTime`: both calendars agree from 1900 on in every zone.

use arrow::array::{Array, AsArray};
use arrow::compute::min;
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use lakesmith_core::{Error, Result};
use parquet::file::metadata::FileMetaData;

/// 1900-01-01 in days and in microseconds since the epoch.
const FIRST_SAFE_DAY: i32 = -25_567;
const FIRST_SAFE_MICROS: i64 = -2_208_988_800_000_000;

/// True if the file says that its dates or timestamps follow the hybrid Julian calendar.
pub(crate) fn is_legacy(metadata: &FileMetaData) -> bool {
    metadata.key_value_metadata().is_some_and(|pairs| {
        pairs.iter().any(|pair| {
            matches!(pair.key.as_str(), "org.apache.spark.legacyDateTime" | "org.apache.spark.legacyINT96")
                || pair.key == "org.apache.spark.version"
                    && pair.value.as_deref().is_some_and(|v| v.starts_with("2.") || v.starts_with("3.0."))
        })
    })
}

/// Refuses values of a legacy file that the two calendars read differently.
///
/// # Errors
/// Unsupported, naming the column and the file.
pub(crate) fn check(array: &dyn Array, column: &str, path: &dyn std::fmt::Display) -> Result<()> {
    let early = match array.data_type() {
        DataType::Date32 => min(array.as_primitive::<Date32Type>()).is_some_and(|v| v < FIRST_SAFE_DAY),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            min(array.as_primitive::<TimestampMicrosecondType>()).is_some_and(|v| v < FIRST_SAFE_MICROS)
        }
        DataType::Struct(_) => {
            return array.as_struct().columns().iter().try_for_each(|c| check(c.as_ref(), column, path));
        }
        DataType::List(_) => return check(array.as_list::<i32>().values().as_ref(), column, path),
        DataType::Map(..) => return check(array.as_map().entries(), column, path),
        _ => false,
    };
    if early {
        return Err(Error::unsupported(
            "the file was written in the legacy hybrid calendar (org.apache.spark.legacyDateTime) and holds dates \
             before 1900, which would change; rewrite it with Spark first",
        )
        .with("column", column)
        .with("path", path));
    }
    Ok(())
}
