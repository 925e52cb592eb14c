//! Columns that must not be null.
//!
//! # Source
//! Delta Spark `Constraints.getAll`, `DeltaInvariantCheckerExec`: NOT NULL of columns and of fields inside of structs.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};

/// Checks the columns of new rows, which are those of the table in its order.
///
/// # Errors
/// Usage (`DELTA_NOT_NULL_CONSTRAINT_VIOLATED`) with the column.
pub(super) fn check(fields: &[Field], batch: &RecordBatch) -> Result<()> {
    if fields.len() != batch.num_columns() {
        return Err(Error::internal("rows have another number of columns than the table"));
    }
    let mut path = Vec::new();
    fields.iter().zip(batch.columns()).try_for_each(|(field, column)| check_field(field, column, None, &mut path))
}

fn check_field<'a>(
    field: &'a Field,
    column: &ArrayRef,
    absent: Option<&NullBuffer>,
    path: &mut Vec<&'a str>,
) -> Result<()> {
    path.push(&field.name);
    // A struct that is null lacks its fields: Spark looks them up in it and finds none.
    let nulls = NullBuffer::union(absent, column.logical_nulls().as_ref());
    if !field.nullable && nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) {
        return Err(Error::usage(format!("NOT NULL constraint violated for column: {}.", path.join(".")))
            .class("DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
            .with("column", path.join(".")));
    }
    if let (DataType::Struct(children), Some(held)) = (&field.data_type, column.as_struct_opt()) {
        for (child, values) in children.iter().zip(held.columns()) {
            check_field(child, values, nulls.as_ref(), path)?;
        }
    }
    path.pop();
    Ok(())
}
