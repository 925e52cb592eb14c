//! What queries may ask of the file that a row is in: the column `_metadata`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::ScalarValue;
use lakesmith::Location;
use lakesmith::table::{DataFile, InputFile};

/// A fact of a file: its name below `_metadata`, and the scan's column that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// `file_path`
    Path,
    /// `file_name`
    Name,
    /// `file_size`
    Size,
    /// `file_block_start`
    BlockStart,
    /// `file_block_length`
    BlockLength,
    /// `file_modification_time`
    Modified,
    /// `base_row_id`
    BaseRowId,
    /// `default_row_commit_version`
    RowVersion,
}

/// Every fact, in the order of the scan's columns.
pub(crate) const FACTS: [Fact; 8] = [
    Fact::Path,
    Fact::Name,
    Fact::Size,
    Fact::BlockStart,
    Fact::BlockLength,
    Fact::Modified,
    Fact::BaseRowId,
    Fact::RowVersion,
];

impl Fact {
    /// Its name below `_metadata`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fact::Path => "file_path",
            Fact::Name => "file_name",
            Fact::Size => "file_size",
            Fact::BlockStart => "file_block_start",
            Fact::BlockLength => "file_block_length",
            Fact::Modified => "file_modification_time",
            Fact::BaseRowId => "base_row_id",
            Fact::RowVersion => "default_row_commit_version",
        }
    }

    /// The scan's column.
    pub(crate) fn column(self) -> String {
        format!("__lakesmith_{}", self.name())
    }

    fn data_type(self) -> DataType {
        match self {
            Fact::Path | Fact::Name => DataType::Utf8,
            Fact::Modified => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ => DataType::Int64,
        }
    }
}

/// The scan's field of a fact.
pub(crate) fn field(fact: &Fact) -> FieldRef {
    Arc::new(Field::new(fact.column(), fact.data_type(), true))
}

/// A file's facts, in the order of [`FACTS`].
pub(crate) fn values(location: &Location, file: &DataFile<'_>, input: &InputFile) -> Vec<ScalarValue> {
    let size = i64::try_from(input.size).ok();
    let one = |fact: &Fact| match fact {
        Fact::Path => ScalarValue::Utf8(Some(location.to_url().to_string())),
        Fact::Name => ScalarValue::Utf8(Some(location.file_name().to_owned())),
        Fact::BlockStart => ScalarValue::Int64(Some(0)),
        Fact::Size | Fact::BlockLength => ScalarValue::Int64(size),
        Fact::Modified => ScalarValue::TimestampMicrosecond(file.modified_ms.checked_mul(1000), Some("UTC".into())),
        Fact::BaseRowId => ScalarValue::Int64(file.base_row_id),
        Fact::RowVersion => ScalarValue::Int64(file.row_commit_version),
    };
    FACTS.iter().map(one).collect()
}
