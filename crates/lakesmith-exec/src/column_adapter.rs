//! Columns of a data file as the table's columns, for readers that scan files themselves.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType as ArrowType, Fields};
use arrow::error::ArrowError;
use lakesmith_core::table::Field;
use lakesmith_core::{Error, Result};
use parquet::file::metadata::FileMetaData;

use crate::adapt::{self, Adapt};
use crate::{calendar, initial};

/// How one column of a file becomes the table's.
#[derive(Debug, Clone)]
pub struct ColumnAdapter {
    adapt: Adapt,
    to: ArrowType,
}

impl ColumnAdapter {
    /// Where the file holds `field` and how it becomes `to`; `None` if the file lacks the column. `to` has the shape of the
    /// field's type: structs in the order of their fields, VOID left out, under any names.
    ///
    /// # Errors
    /// Unsupported where a type cannot be widened, Corrupt where a name is ambiguous; both name the column.
    pub fn plan(field: &Field, to: &ArrowType, file: &Fields, by_id: bool) -> Result<Option<(usize, Self)>> {
        let planned = adapt::plan_column(field, to, file, by_id)?;
        Ok(planned.map(|(source, adapt)| (source, Self { adapt, to: to.clone() })))
    }

    /// The one value of a column that a file lacks, as an array of one row; `None`: NULL.
    ///
    /// # Errors
    /// Corrupt if the table's schema has a value of another type.
    pub fn absent(field: &Field, to: &ArrowType) -> Result<Option<ArrayRef>> {
        initial::of_absent(field, to)
    }

    /// The type that comes out.
    pub fn data_type(&self) -> &ArrowType {
        &self.to
    }

    /// The column's values, as the table has them.
    ///
    /// # Errors
    /// Where a value does not fit.
    pub fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        adapt::apply(&self.adapt, array, &self.to)
    }
}

/// True if the file's early dates may mean other days than they seem to.
pub fn is_legacy_calendar(metadata: &FileMetaData) -> bool {
    calendar::is_legacy(metadata)
}

/// Refuses values of such a file that the two calendars read differently.
///
/// # Errors
/// Unsupported, naming the column and the file.
pub fn check_calendar(array: &ArrayRef, column: &str, path: &str) -> Result<(), Error> {
    calendar::check(array.as_ref(), column, &path)
}
