//! Typed statistics of a data file, per leaf column.

use super::Scalar;

/// Statistics that a writer computed over the rows it wrote.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FileStats {
    /// Rows in the file.
    pub rows: u64,
    /// Leaves in schema order, only those that were asked for.
    pub leaves: Vec<LeafStats>,
}

/// Statistics of one leaf.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LeafStats {
    /// Physical names from the top-level column down.
    pub path: Vec<String>,
    /// Rows in which the leaf is null, null parents included.
    pub null_count: u64,
    /// Smallest value, exact, whole; `None` if all rows are null or the type has no bounds. NaN is the largest double.
    pub min: Option<Scalar>,
    /// Largest value, exact, whole.
    pub max: Option<Scalar>,
}

/// What the table's metadata says of one column, file by file, in the table's order; `None` where it says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnBounds {
    /// No value of the file is smaller. Strings are as cut as the metadata has them.
    pub low: Vec<Option<Scalar>>,
    /// No value of the file is greater, but for floats: whether NaN counts as a value is each writer's own choice.
    pub high: Vec<Option<Scalar>>,
    /// Physical rows in which the column is null, deleted rows included.
    pub nulls: Vec<Option<u64>>,
    /// True where bounds and nulls are those of all physical rows, and not of more.
    pub tight: Vec<bool>,
}

impl ColumnBounds {
    /// Nothing is known of any of `files`.
    pub fn unknown(files: usize) -> Self {
        Self { low: vec![None; files], high: vec![None; files], nulls: vec![None; files], tight: vec![false; files] }
    }
}
