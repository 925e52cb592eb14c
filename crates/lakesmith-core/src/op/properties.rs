//! SHOW TBLPROPERTIES and ALTER TABLE … SET | UNSET TBLPROPERTIES.

use std::collections::BTreeMap;

/// ALTER TABLE … SET | UNSET TBLPROPERTIES.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlterProperties {
    /// Keys and values to set.
    pub set: BTreeMap<String, String>,
    /// Keys to unset.
    pub unset: Vec<String>,
    /// UNSET … IF EXISTS: a missing key is no error.
    pub if_exists: bool,
    /// Allow `delta.*` keys that are not known (`spark.databricks.delta.allowArbitraryProperties.enabled`).
    pub allow_arbitrary: bool,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
    /// Stop after validating.
    pub dry_run: bool,
}

/// SHOW TBLPROPERTIES.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct PropertiesReport(pub BTreeMap<String, String>);
