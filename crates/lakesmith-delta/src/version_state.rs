//! One version of a table, put together from what a reader of the log found.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::table::{FileTable, Schema, TableState};
use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;

use crate::clustering::CLUSTERING_DOMAIN;
use crate::log_state::{DeltaTable, LogState};
use crate::log_view::LogView;
use crate::schema::{ColumnMapping, logical_path, parse_schema};
use crate::tip::ROW_TRACKING_DOMAIN;
use crate::version_file::VersionFile;
use crate::{actions, features};

/// What the log says of one version, its files apart.
#[derive(Debug)]
pub(crate) struct VersionState {
    pub version: u64,
    pub protocol: actions::Protocol,
    pub metadata: actions::Metadata,
    /// Configuration of every domain that is not removed.
    pub domains: BTreeMap<String, String>,
    /// As in [`LogState`].
    pub commit_timestamp_ms: i64,
    pub in_commit_timestamps: bool,
    pub checkpoint_version: Option<u64>,
    pub empty_commit: Option<u64>,
    pub file: Option<VersionFile>,
    pub view: LogView,
}

impl VersionState {
    /// The schema with logical and physical names.
    ///
    /// # Errors
    /// `Corrupt` if the text is no schema, `Unsupported` for a kind of column mapping that we don't know.
    pub(crate) fn schema(&self) -> Result<Schema> {
        parse_schema(&self.metadata.schema_string, ColumnMapping::of(&self.metadata.configuration)?)
    }

    /// The table with these files.
    ///
    /// # Errors
    /// `Corrupt` if a domain that we know is malformed.
    pub(crate) fn into_table(self, root: &Location, schema: Schema, files: FileTable) -> Result<DeltaTable> {
        let features = features::expand(&self.protocol);
        let metadata = &self.metadata;
        let state = TableState {
            location: root.to_string(),
            version: self.version,
            timestamp_ms: self.commit_timestamp_ms,
            id: metadata.id.clone(),
            name: metadata.name.clone(),
            description: metadata.description.clone(),
            created_ms: metadata.created_time,
            clustering_columns: clustering_columns(&schema, &features, &self.domains)?,
            schema,
            partition_columns: metadata.partition_columns.clone(),
            properties: metadata.configuration.clone(),
            min_reader_version: features::reader_version(&self.protocol),
            min_writer_version: features::writer_version(&self.protocol),
            features,
            files,
        };
        let log = LogState {
            row_id_high_water_mark: row_id_high_water_mark(&self.domains)?,
            protocol: self.protocol,
            metadata: self.metadata,
            domains: self.domains,
            commit_timestamp_ms: self.commit_timestamp_ms,
            in_commit_timestamps: self.in_commit_timestamps,
            checkpoint_version: self.checkpoint_version,
            empty_commit: self.empty_commit,
            file: self.file,
            view: self.view,
            two_spellings: None,
        };
        Ok(DeltaTable { state: Arc::new(state), log })
    }
}

fn clustering_columns(
    schema: &Schema,
    features: &[String],
    domains: &BTreeMap<String, String>,
) -> Result<Option<Vec<Vec<String>>>> {
    if !features.iter().any(|f| f == "clustering") {
        return Ok(None);
    }
    let Some(configuration) = domains.get(CLUSTERING_DOMAIN) else { return Ok(Some(Vec::new())) };
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Clustering {
        clustering_columns: Vec<Column>,
    }
    /// Spark writes a list of name parts; some writers a plain name.
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Column {
        Path(Vec<String>),
        Name(String),
    }
    let bad = |why: &str| Error::corrupt(format!("the clustering columns in the log are malformed: {why}"));
    let clustering: Clustering =
        serde_json::from_str(configuration).map_err(|e| bad("the domain is not valid JSON").caused_by(e))?;
    let logical = |column| {
        let physical = match column {
            Column::Path(path) => path,
            Column::Name(name) => vec![name],
        };
        logical_path(schema, &physical)
            .ok_or_else(|| bad("a column is not in the schema").with("column", physical.join(".")))
    };
    clustering.clustering_columns.into_iter().map(logical).collect::<Result<_>>().map(Some)
}

fn row_id_high_water_mark(domains: &BTreeMap<String, String>) -> Result<Option<i64>> {
    let Some(configuration) = domains.get(ROW_TRACKING_DOMAIN) else { return Ok(None) };
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RowTracking {
        row_id_high_water_mark: i64,
    }
    serde_json::from_str::<RowTracking>(configuration)
        .map(|r| Some(r.row_id_high_water_mark))
        .map_err(|e| Error::corrupt("the row id high-water mark in the log is malformed").caused_by(e))
}
