//! Names that a sweep leaves alone, as Spark's VACUUM does.
//!
//! # Source
//! Delta Spark `DeltaTableUtils.isHiddenDirectory`.

/// Folders that are swept although their names begin with an underscore.
const SWEPT: [&str; 2] = ["_delta_index", "_change_data"];
/// Folder in which Iceberg keeps its metadata.
pub const ICEBERG_FOLDER: &str = "metadata";

/// Which names below the root are none of a sweep's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameRule {
    /// `name=` of the partition columns that begin with `_` or `.`.
    partition_prefixes: Vec<String>,
    keeps_iceberg_folders: bool,
}

impl NameRule {
    /// The rule for a table: `partition_columns` by their logical names, and whether it is written as Iceberg, too.
    pub fn new(partition_columns: &[String], is_iceberg_too: bool) -> Self {
        let hidden = partition_columns.iter().filter(|c| c.starts_with(['_', '.']));
        Self { partition_prefixes: hidden.map(|c| format!("{c}=")).collect(), keeps_iceberg_folders: is_iceberg_too }
    }

    /// True if the path or a folder above it is hidden.
    pub fn hides(&self, path: &str) -> bool {
        path.split('/').any(|name| self.hides_name(name))
    }

    /// True if a file or folder of this name is hidden, with everything in it.
    pub fn hides_name(&self, name: &str) -> bool {
        if self.keeps_iceberg_folders && name == ICEBERG_FOLDER {
            return true;
        }
        name.starts_with(['_', '.'])
            && !SWEPT.iter().any(|swept| name.starts_with(swept))
            && !self.partition_prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}
