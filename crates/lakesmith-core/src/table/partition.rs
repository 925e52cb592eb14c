//! The partition of a file: raw strings as the log has them, typed values to group by.

use super::Scalar;

/// Values of the partition columns of one file, in the order of the table's partition columns.
///
/// Two spellings of one value (`2026-01-01 00:00:00` and `2026-01-01T00:00:00.000000Z`) are one partition: equality,
/// order and hash look at the typed values only.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct PartitionTuple {
    /// As stored; `None` is NULL (and so is the empty string in Delta).
    pub raw: Vec<Option<String>>,
    /// Typed.
    pub values: Vec<Scalar>,
}

impl PartialEq for PartitionTuple {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for PartitionTuple {}

impl PartialOrd for PartitionTuple {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PartitionTuple {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.values.cmp(&other.values)
    }
}
