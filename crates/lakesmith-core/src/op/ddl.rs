//! CREATE TABLE from column definitions and ALTER TABLE … CLUSTER BY.

use std::collections::BTreeMap;

use super::alter::ColumnDefault;
use crate::table::Schema;

/// ALTER TABLE … CLUSTER BY.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterBy {
    /// Logical column paths, in any case; empty: CLUSTER BY NONE.
    pub columns: Vec<Vec<String>>,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
}

/// What CREATE TABLE may do with a table that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replacing {
    /// CREATE TABLE
    #[default]
    Never,
    /// CREATE OR REPLACE TABLE
    IfThere,
    /// REPLACE TABLE: there must be one.
    Only,
}

/// CREATE TABLE from column definitions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CreateTable {
    /// The columns; physical names equal the logical ones, and no field has an id. None: those of the table that lies at the
    /// location already.
    pub schema: Schema,
    /// Default values by top-level column.
    pub defaults: Vec<(String, ColumnDefault)>,
    /// IF NOT EXISTS: a table that is there already is no error, whatever its columns.
    pub if_not_exists: bool,
    /// OR REPLACE
    pub replacing: Replacing,
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
