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
