//! What the metadata says of a scan's rows all together: for choices among plans, and as answers where it is exact.
//!
//! # Source
//! Delta PROTOCOL.md, "Per-file Statistics": bounds are those of the file's rows if they are tight; bounds of strings may
//! be cut, those of times are cut to milliseconds.

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics};
use lakesmith::Table;
use lakesmith::layout::OrderKey;
use lakesmith::table::{ColumnBounds, DataFile, FileId};

use super::columns::Columns;
use super::pruning::leaf;
use super::scalars::scalar;
use super::scan::live_count;
use crate::failure::external;

/// Bounds that are read for statistics alone, of all files and columns; reading more would cost more than they are worth.
const BOUNDS_MAX: usize = 1 << 20;

/// The same where rows are filtered: the log was read for the filters already, and what is known guides the plan only.
const BOUNDS_FILTERED_MAX: usize = 1 << 16;

/// Files whose rows a scan gives.
pub(crate) struct Rows<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its columns.
    pub columns: &'a Columns,
    /// The files.
    pub files: &'a [FileId],
    /// True if all their rows are wanted.
    pub whole: bool,
}

impl Rows<'_> {
    /// What is known of the rows, and of the columns that queries see at `wanted`.
    ///
    /// # Errors
    /// Those of reading the metadata.
    pub(crate) async fn statistics(&self, wanted: &[usize]) -> Result<Statistics> {
        let mut statistics = self.counts();
        let bounded: Vec<(usize, OrderKey)> = wanted.iter().filter_map(|index| self.bounded(*index)).collect();
        let limit = if self.whole { BOUNDS_MAX } else { BOUNDS_FILTERED_MAX };
        let read = self.table.state().files.len().saturating_mul(bounded.len()) <= limit;
        if read && !bounded.is_empty() {
            let keys: Vec<OrderKey> = bounded.iter().map(|(_, key)| key.clone()).collect();
            let bounds = self.table.column_bounds(&keys, self.files).await.map_err(external)?;
            for ((index, _), bounds) in bounded.iter().zip(&bounds) {
                let data_type = self.columns.schema.field(*index).data_type();
                statistics.column_statistics[self.columns.place(*index)] =
                    self.column(|place, file| of_bounds(bounds, place, file, data_type));
            }
        }
        for index in wanted.iter().filter(|index| **index < self.columns.schema.fields().len()) {
            let field = self.columns.schema.field(*index);
            let partition = self.columns.partitions.iter().position(|p| p.name() == field.name());
            if let Some(partition) = partition.filter(|_| is_exact(field.data_type())) {
                let found = self.column(|_, file| of_partition(partition, file, field.data_type()));
                statistics.column_statistics[self.columns.place(*index)] = found;
            }
        }
        Ok(if self.whole { statistics } else { statistics.to_inexact() })
    }

    /// Rows and bytes.
    fn counts(&self) -> Statistics {
        let files = self.files.iter().map(|id| self.table.state().files.get(*id));
        let mut statistics = Statistics::new_unknown(self.columns.scan.table_schema());
        if let Some(rows) = live_count(files.clone()) {
            statistics.num_rows = Precision::Exact(rows);
        }
        let bytes: u64 = files.map(|f| f.size).sum();
        statistics.total_byte_size = Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX));
        statistics
    }

    /// The key of a column whose bounds are values of it.
    fn bounded(&self, index: usize) -> Option<(usize, OrderKey)> {
        let field = self.columns.schema.fields().get(index)?;
        let stored = !self.columns.partitions.iter().any(|p| p.name() == field.name());
        let key = leaf(self.columns, field.name()).filter(|_| stored && is_exact(field.data_type()))?;
        Some((index, key))
    }

    fn column(&self, known: impl Fn(usize, &DataFile<'_>) -> Known) -> ColumnStatistics {
        let mut all = Some(Known { exact: true, nulls: Some(0), ..Known::default() });
        for (place, id) in self.files.iter().enumerate() {
            let file = self.table.state().files.get(*id);
            if live_count(std::iter::once(file)) == Some(0) {
                continue;
            }
            all = all.and_then(|all| all.and(known(place, &file)));
        }
        all.map(Known::statistics).unwrap_or_default()
    }
}

/// True for types whose tight bounds in the metadata are values of the column.
fn is_exact(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 | ArrowType::Date32)
}

/// What is known of one column.
#[derive(Debug, Default)]
struct Known {
    /// Smallest and largest value; `None` of rows that are all null.
    ends: Option<(ScalarValue, ScalarValue)>,
    nulls: Option<usize>,
    /// Rows have these ends and this many nulls, and it is not just known that they have none beyond.
    exact: bool,
    /// Nothing is known of the ends.
    open: bool,
}

impl Known {
    /// The same of the rows of both; `None` if values cannot be compared.
    fn and(self, other: Known) -> Option<Known> {
        let ends = match (self.ends, other.ends) {
            (Some((low, high)), Some((other_low, other_high))) => {
                let low = if low.partial_cmp(&other_low)?.is_le() { low } else { other_low };
                let high = if high.partial_cmp(&other_high)?.is_ge() { high } else { other_high };
                Some((low, high))
            }
            (one, None) => one,
            (None, other) => other,
        };
        let nulls = self.nulls.zip(other.nulls).and_then(|(a, b)| a.checked_add(b));
        Some(Known { ends, nulls, exact: self.exact && other.exact, open: self.open || other.open })
    }

    fn statistics(self) -> ColumnStatistics {
        let mut found = ColumnStatistics::new_unknown();
        if let Some((low, high)) = self.ends.filter(|_| !self.open) {
            (found.min_value, found.max_value) = (Precision::Exact(low), Precision::Exact(high));
        }
        if let Some(nulls) = self.nulls {
            found.null_count = Precision::Exact(nulls);
        }
        if self.exact { found } else { found.to_inexact() }
    }
}

fn of_bounds(bounds: &ColumnBounds, place: usize, file: &DataFile<'_>, data_type: &ArrowType) -> Known {
    let end = |ends: &[Option<_>]| ends[place].as_ref().and_then(|value| scalar(value, data_type));
    let ends = end(&bounds.low).zip(end(&bounds.high)).filter(|(low, high)| !low.is_null() && !high.is_null());
    let nulls = bounds.nulls[place];
    let all_null = nulls.is_some() && nulls == file.rows;
    Known {
        open: ends.is_none() && !all_null,
        ends,
        nulls: nulls.and_then(|nulls| usize::try_from(nulls).ok()),
        exact: bounds.tight[place] && !file.has_deletes() && file.rows.is_some(),
    }
}

fn of_partition(partition: usize, file: &DataFile<'_>, data_type: &ArrowType) -> Known {
    let rows = live_count(std::iter::once(*file));
    let value = file.partition.values.get(partition).and_then(|value| scalar(value, data_type));
    match value {
        None => Known { open: true, ..Known::default() },
        Some(value) if value.is_null() => Known { nulls: rows, exact: rows.is_some(), ..Known::default() },
        Some(value) => Known { ends: Some((value.clone(), value)), nulls: Some(0), exact: rows.is_some(), open: false },
    }
}
