//! CREATE TABLE from column definitions and ALTER TABLE … CLUSTER BY.

use std::collections::BTreeMap;

use crate::table::Schema;

/// ALTER TABLE … CLUSTER BY.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterBy {
    /// Logical column paths, in any case; empty: CLUSTER BY NONE.
    pub columns: Vec<Vec<String>>,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
}

/// CREATE TABLE from column definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateTable {
    /// The columns; physical names equal the logical ones, and no field has an id.
    pub schema: Schema,
    /// IF NOT EXISTS: a table that is there already is no error, whatever its columns.
    pub if_not_exists: bool,
    /// Partition columns, in any case.
    pub partition_by: Vec<String>,
    /// Clustering columns, in any case; empty: none.
    pub cluster_by: Vec<Vec<String>>,
    /// COMMENT
    pub comment: Option<String>,
    /// TBLPROPERTIES
    pub properties: BTreeMap<String, String>,
    /// LOCATION; it must be that of the table.
    pub location: Option<String>,
    /// Allow `delta.*` keys that are not known (`spark.databricks.delta.allowArbitraryProperties.enabled`).
    pub allow_arbitrary: bool,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
}
