//! How rows are laid out over files: orders, curves, and how much files overlap.

pub mod advice;
pub mod curve;
pub mod depth;
pub mod encode;
pub mod rank;
pub mod tag;

use crate::table::DataType;

/// The order of rows over the files of a group and inside each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// By the first key, within equal values by the second, and so on.
    Sort,
    /// Z-order: the bits of the keys' ranks take turns.
    Zorder,
    /// Hilbert's curve over the keys' ranks; neighbours on it differ by one in one key.
    Hilbert,
}

/// A column that rows are ordered by.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OrderKey {
    /// Physical names from the top-level column down to the leaf.
    pub path: Vec<String>,
    /// Logical names from the top-level column down, in the schema's spelling.
    pub name: Vec<String>,
    /// Type of the leaf; one that has an order.
    pub data_type: DataType,
}

/// A wanted order of the rows of a group.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RowOrder {
    /// The curve; with one key all of them are the order of its values.
    pub curve: Curve,
    /// One key or more, the most significant first.
    pub keys: Vec<OrderKey>,
    /// Files to cut the ordered rows into, of about equally many rows; at least 1. Fewer if there are fewer rows, more
    /// where a limit on the rows of a file demands it.
    pub files: u64,
}
