//! Row ids and commit versions that survive the rewrite.
//!
//! # Source
//! Delta PROTOCOL.md, "Row Tracking": a materialised value wins, else base row id plus physical position, deleted rows counted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_null_array};
use arrow::datatypes::{DataType, Fields, Int64Type};
use lakesmith_core::table::{InputFile, RowTrackingColumns};
use lakesmith_core::{Error, Result};

use crate::adapt::find_by_name;

/// Where a file's ids and versions come from.
#[derive(Debug, Clone)]
pub(crate) struct TrackingPlan {
    /// Root index of the materialised row ids in the file.
    pub row_id: Option<usize>,
    /// Root index of the materialised commit versions in the file.
    pub commit_version: Option<usize>,
    base_row_id: Option<i64>,
    row_commit_version: Option<i64>,
    location: String,
}

impl TrackingPlan {
    /// Looks the hidden columns up in a file.
    pub(crate) fn new(columns: &RowTrackingColumns, file: &Fields, input: &InputFile) -> Result<TrackingPlan> {
        let hidden = |name: &str| -> Result<Option<usize>> {
            let Some(index) = find_by_name(name, file)? else { return Ok(None) };
            match file[index].data_type() {
                DataType::Int64 => Ok(Some(index)),
                other => Err(Error::corrupt(format!("the hidden row-tracking column holds {other} instead of bigint"))
                    .with("column", name)
                    .with("path", &input.location)),
            }
        };
        Ok(TrackingPlan {
            row_id: hidden(&columns.row_id)?,
            commit_version: hidden(&columns.commit_version)?,
            base_row_id: input.base_row_id,
            row_commit_version: input.row_commit_version,
            location: input.location.clone(),
        })
    }

    /// The two columns for live rows at the given physical positions.
    ///
    /// # Errors
    /// Corrupt if the log gives no base for a row without a materialised value.
    pub(crate) fn columns(
        &self,
        materialised: [Option<&ArrayRef>; 2],
        positions: Positions<'_>,
        rows: usize,
    ) -> Result<[ArrayRef; 2]> {
        let ids =
            self.resolve(materialised[0], rows, self.base_row_id, "baseRowId", |base, i| base + positions.get(i))?;
        let versions =
            self.resolve(materialised[1], rows, self.row_commit_version, "defaultRowCommitVersion", |version, _| {
                version
            })?;
        Ok([ids, versions])
    }

    fn resolve(
        &self,
        values: Option<&ArrayRef>,
        rows: usize,
        base: Option<i64>,
        what: &str,
        derive: impl Fn(i64, usize) -> i64,
    ) -> Result<ArrayRef> {
        let none;
        let values = match values {
            Some(values) if values.null_count() == 0 => return Ok(Arc::clone(values)),
            Some(values) => values,
            None => {
                none = new_null_array(&DataType::Int64, rows);
                &none
            }
        };
        let base = base.ok_or_else(|| {
            Error::corrupt(format!(
                "the file has no {what} although row tracking is enabled; its row ids cannot be kept, so it is not rewritten"
            ))
            .class("DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS")
            .with("path", &self.location)
        })?;
        let resolved: Int64Array = crate::cast::coalesce(values.as_primitive::<Int64Type>(), |i| derive(base, i));
        Ok(Arc::new(resolved))
    }
}

/// Physical positions of a batch's rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Positions<'a> {
    /// All rows from here on.
    From(u64),
    /// These rows.
    Listed(&'a [u64]),
}

impl Positions<'_> {
    fn get(&self, i: usize) -> i64 {
        // Row counts come from footers, where they are signed 64-bit.
        match self {
            Positions::From(start) => (*start + i as u64) as i64,
            Positions::Listed(list) => list[i] as i64,
        }
    }
}
