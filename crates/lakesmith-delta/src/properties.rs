//! ALTER TABLE … SET | UNSET TBLPROPERTIES: the new metadata and protocol, checked as Delta checks them.
//!
//! # Source
//! Delta Spark `AlterTableSetPropertiesDeltaCommand`, `AlterTableUnsetPropertiesDeltaCommand`, `DeltaConfigs`.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::op::AlterProperties;
use lakesmith_core::table::{DataType, TableState};
use lakesmith_core::{Error, Result};

use crate::features::{READER_VERSION_FEATURES, WRITER_VERSION_FEATURES};
use crate::log_state::DeltaTable;
use crate::mapping_upgrade::with_mapping;
use crate::property_rules::{Rule, check, known, strip_delta};
use crate::retention::{FILE_RETENTION, LOG_RETENTION, RetentionProperty};
use crate::schema::{find_column, parse_column_list};
use crate::schema_text::tree;
use crate::tip::IN_COMMIT_TIMESTAMPS;
use crate::{actions, features};

pub(crate) const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";
const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";

/// What a change of a table's configuration has to do with its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileUse {
    /// Nothing: it stands, whatever files come and go meanwhile.
    #[default]
    Untouched,
    /// It was decided by the files that there are, so that none may come meanwhile.
    Read,
    /// It takes all of them away.
    Removed,
}

/// What a commit of another kind than a rewrite makes of a table.
#[derive(Debug, Clone, Default)]
pub struct NewConfiguration {
    /// The metadata, if it changes.
    pub metadata: Option<actions::Metadata>,
    /// The protocol, if the table lacks a feature.
    pub protocol: Option<actions::Protocol>,
    /// Domains that change, and their new configuration.
    pub domains: BTreeMap<String, String>,
    /// Its part in the files.
    pub files: FileUse,
}

/// Checks a change of properties and applies it.
///
/// # Errors
/// `Usage` for an unknown property or a value that it does not take; `Unsupported` for a property whose change needs
/// more than new metadata.
pub fn validate_properties(table: &DeltaTable, options: &AlterProperties) -> Result<NewConfiguration> {
    let state = &table.state;
    let mut change = Change::new(state, false);
    for (key, value) in &options.set {
        change.set(key, value, options.allow_arbitrary).map_err(|e| e.with("path", &state.location))?;
    }
    for key in &options.unset {
        change.unset(key, options.if_exists).map_err(|e| e.with("path", &state.location))?;
    }
    change.check_retention()?;
    let additions: Vec<&str> = change.features.iter().map(String::as_str).collect();
    let protocol = features::with_features(&table.log.protocol, &additions);
    let mut metadata = table.log.metadata.clone();
    metadata.configuration = change.properties.into_iter().collect();
    if change.maps_columns {
        let given = metadata.configuration.get(MAX_COLUMN_ID).and_then(|v| v.trim().parse().ok()).unwrap_or(0);
        let (schema, max_id) = with_mapping(&metadata.schema_string, given, &mut str::to_owned)
            .map_err(|e| e.with("path", &state.location))?;
        metadata.schema_string = schema;
        metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), max_id.to_string());
    }
    metadata.description = change.description;
    Ok(NewConfiguration {
        metadata: Some(metadata),
        protocol: (protocol != table.log.protocol).then_some(protocol),
        ..NewConfiguration::default()
    })
}

pub(crate) struct Change<'a> {
    state: &'a TableState,
    /// The table is new, so no file stands in the way.
    creates: bool,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) description: Option<String>,
    pub(crate) features: BTreeSet<String>,
    /// Column mapping is being enabled.
    pub(crate) maps_columns: bool,
    /// Reader and writer version that a new table is to have at least.
    pub(crate) versions: (u32, u32),
}

impl<'a> Change<'a> {
    pub(crate) fn new(state: &'a TableState, creates: bool) -> Self {
        Self {
            state,
            creates,
            properties: state.properties.clone(),
            description: state.description.clone(),
            features: BTreeSet::new(),
            maps_columns: false,
            versions: (1, 2),
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: &str, allow_arbitrary: bool) -> Result<()> {
        match key.to_ascii_lowercase().as_str() {
            "location" => return Err(Error::usage("the location of a table can't be changed by a property")),
            "provider" => return Err(Error::usage("the provider of a table can't be changed by a property")),
            // The description of the table, which is no property of it.
            "comment" => {
                self.description = Some(value.to_owned());
                return Ok(());
            }
            _ => {}
        }
        let Some(name) = strip_delta(key) else {
            self.properties.insert(key.to_owned(), value.to_owned());
            return Ok(());
        };
        if let Some(feature) = strip(name, "feature.") {
            return self.add_feature(feature, value);
        }
        if strip(name, "constraints.").is_some() {
            return Err(Error::usage("use ALTER TABLE ADD CONSTRAINT to add CHECK constraints")
                .class("DELTA_ADD_CONSTRAINTS")
                .with("property", key));
        }
        match known(key) {
            Some((key, rule)) => self.set_known(&key, value, rule),
            None if allow_arbitrary => {
                self.properties.insert(key.to_owned(), value.to_owned());
                Ok(())
            }
            None => Err(Error::usage(format!(
                "Unknown configuration was specified: {key}\nTo disable this check, set \
                 spark.databricks.delta.allowArbitraryProperties.enabled=true in the Spark session configuration."
            ))
            .class("DELTA_UNKNOWN_CONFIGURATION")
            .with("property", key)),
        }
    }

    fn set_known(&mut self, key: &str, value: &str, rule: Rule) -> Result<()> {
        check(key, value, rule)?;
        let current = self.properties.get(key).cloned();
        if current.as_deref() == Some(value) {
            return Ok(());
        }
        if rule == Rule::Engine {
            return Err(fixed(key));
        }
        let on = value.eq_ignore_ascii_case("true");
        let current = current.as_deref();
        let was_on = current.is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let feature = match key {
            "delta.minReaderVersion" if self.creates => return asked_version(key, value, &mut self.versions.0),
            "delta.minWriterVersion" if self.creates => return asked_version(key, value, &mut self.versions.1),
            "delta.minReaderVersion" => return at_most(key, value, self.state.min_reader_version),
            "delta.minWriterVersion" => return at_most(key, value, self.state.min_writer_version),
            "delta.columnMapping.mode" if mode(value) == mode(current.unwrap_or("none")) => None,
            "delta.columnMapping.mode" => {
                self.map_columns(value, current.unwrap_or("none"))?;
                Some("columnMapping")
            }
            // What the enabling commit must record with it is known only when it is made.
            "delta.enableInCommitTimestamps" if on => Some("inCommitTimestamp"),
            "delta.enableInCommitTimestamps" if was_on => {
                return Err(clock_goes_on());
            }
            "delta.enableRowTracking" if on && self.creates => {
                self.features.insert("domainMetadata".to_owned());
                Some("rowTracking")
            }
            "delta.enableRowTracking" if on && !was_on => {
                return Err(needs_engine(key, "every existing file needs row ids first"));
            }
            "delta.enableIcebergCompatV1" | "delta.enableIcebergCompatV2" | "delta.enableIcebergCompatV3"
                if on != was_on =>
            {
                return Err(needs_engine(key, "existing files have to be converted with it"));
            }
            "delta.universalFormat.enabledFormats" => {
                return Err(needs_engine(key, "the other format's metadata has to be written with each commit"));
            }
            "delta.enableVariantShredding" if on => {
                return Err(needs_engine(key, "the reader feature that it needs is still being settled"));
            }
            STATS_COLUMNS => {
                check_stats_columns(self.state, value)?;
                None
            }
            "delta.appendOnly" if on => Some("appendOnly"),
            "delta.enableDeletionVectors" if on => Some("deletionVectors"),
            "delta.enableChangeDataFeed" if on => Some("changeDataFeed"),
            "delta.enableTypeWidening" if on => Some("typeWidening"),
            "delta.checkpointPolicy" if value.eq_ignore_ascii_case("v2") => Some("v2Checkpoint"),
            _ => None,
        };
        // The preview of a feature serves its property as well.
        let in_force = |f: &str| self.state.has_feature(f) || self.state.has_feature(&format!("{f}-preview"));
        self.features.extend(feature.filter(|f| !in_force(f)).map(str::to_owned));
        self.properties.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Prepares the only change of mode that leaves the files alone.
    fn map_columns(&mut self, to: &str, from: &str) -> Result<()> {
        let possible = self.creates || (mode(from).as_str(), mode(to).as_str()) == ("none", "name");
        if !possible {
            return Err(Error::unsupported(format!(
                "Changing column mapping mode from '{from}' to '{to}' is not supported."
            ))
            .class("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE")
            .with("property", "delta.columnMapping.mode"));
        }
        if (1..=3).any(|v| self.state.property_is_true(&format!("delta.enableIcebergCompatV{v}"))) {
            return Err(needs_engine("delta.columnMapping.mode", "the table keeps itself readable as Iceberg"));
        }
        self.maps_columns = true;
        Ok(())
    }

    /// `delta.feature.NAME = supported` changes the protocol and is not kept as a property.
    fn add_feature(&mut self, feature: &str, value: &str) -> Result<()> {
        const ADDABLE: [&str; 15] = [
            "allowColumnDefaults",
            "appendOnly",
            "changeDataFeed",
            "checkConstraints",
            "deletionVectors",
            "domainMetadata",
            "generatedColumns",
            "identityColumns",
            "invariants",
            "timestampNtz",
            "typeWidening",
            "v2Checkpoint",
            "vacuumProtocolCheck",
            "variantType",
            "checkpointProtection",
        ];
        let key = format!("delta.feature.{feature}");
        if !["supported", "enabled"].iter().any(|v| v.eq_ignore_ascii_case(value)) {
            return Err(Error::usage(format!("{key} can only be set to 'supported', not to '{value}'"))
                .class("DELTA_UNSUPPORTED_FEATURE_STATUS"));
        }
        if self.state.features.iter().any(|f| f.eq_ignore_ascii_case(feature)) {
            return Ok(());
        }
        if feature.eq_ignore_ascii_case("clustering") {
            return Err(Error::usage(
                "the feature 'clustering' can't be set as a property; use CLUSTER BY in CREATE TABLE or ALTER TABLE",
            )
            .class(if self.creates {
                "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
            } else {
                "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
            }));
        }
        match ADDABLE.iter().find(|f| f.eq_ignore_ascii_case(feature)) {
            Some(feature) => {
                self.features.insert((*feature).to_string());
                Ok(())
            }
            None => Err(Error::unsupported(format!(
                "the feature '{feature}' can't be added by this version of Lakesmith; nothing was changed"
            ))
            .class("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG")
            .with("property", key)),
        }
    }

    fn unset(&mut self, key: &str, if_exists: bool) -> Result<()> {
        let canonical = known(key);
        let (key, rule) = canonical.map_or((key.to_owned(), None), |(key, rule)| (key, Some(rule)));
        if key.eq_ignore_ascii_case("comment") {
            self.description = None;
        }
        let Some(value) = self.properties.get(&key) else {
            if if_exists || key.eq_ignore_ascii_case("comment") {
                return Ok(());
            }
            return Err(Error::usage(format!(
                "Attempted to unset non-existent property '{key}' in table {}",
                self.state.location
            ))
            .class("DELTA_UNSET_NON_EXISTENT_PROPERTY")
            .with("property", &key));
        };
        let on = value.eq_ignore_ascii_case("true");
        let fixed_while_on = matches!(
            key.as_str(),
            "delta.enableInCommitTimestamps"
                | "delta.enableIcebergCompatV1"
                | "delta.enableIcebergCompatV2"
                | "delta.enableIcebergCompatV3"
        );
        let mapped = key == "delta.columnMapping.mode" && mode(value) != "none";
        let constraint = strip_delta(&key).and_then(|n| strip(n, "constraints.")).is_some();
        if rule == Some(Rule::Engine) || mapped || constraint || (fixed_while_on && on) {
            return Err(fixed(&key));
        }
        self.properties.remove(&key);
        Ok(())
    }

    /// A log that is cleaned up before the files it removed would leave files that nobody can name.
    pub(crate) fn check_retention(&self) -> Result<()> {
        let (log, files) = (LOG_RETENTION.key, FILE_RETENTION.key);
        let changed = |key: &str| self.properties.get(key) != self.state.properties.get(key);
        let of = |retention: &RetentionProperty| {
            retention.value_or_default(self.properties.get(retention.key).map(String::as_str))
        };
        if (changed(log) || changed(files)) && of(&LOG_RETENTION) < of(&FILE_RETENTION) {
            return Err(Error::usage(format!("{log} needs to be greater than or equal to {files}."))
                .with("path", &self.state.location));
        }
        Ok(())
    }
}

fn strip<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn mode(value: &str) -> String {
    value.to_ascii_lowercase()
}

fn fixed(key: &str) -> Error {
    Error::unsupported(format!("{key} is maintained by the engines that write the table and can't be changed by hand"))
        .class("DELTA_CANNOT_MODIFY_TABLE_PROPERTY")
        .with("property", key)
}

/// A table that has its own clock keeps it.
pub(crate) fn clock_goes_on() -> Error {
    needs_engine(IN_COMMIT_TIMESTAMPS, "the times of later commits would fall back to those of the files")
}

fn needs_engine(key: &str, why: &str) -> Error {
    Error::unsupported(format!("changing {key} is not supported yet: {why}; use Spark for this change"))
        .with("property", key)
}

/// The version that a statement asks for.
fn asked_version(key: &str, value: &str, version: &mut u32) -> Result<()> {
    let most = if key == "delta.minReaderVersion" { READER_VERSION_FEATURES } else { WRITER_VERSION_FEATURES };
    let wanted: u32 = value.trim().parse().unwrap_or(u32::MAX);
    if wanted > most {
        return Err(Error::unsupported(format!("{key} = {wanted} is not known; the highest is {most}"))
            .class("DELTA_INVALID_PROTOCOL_VERSION")
            .with("property", key));
    }
    *version = wanted;
    Ok(())
}

/// Versions are no properties: they stay out of the configuration, and an upgrade goes by feature.
fn at_most(key: &str, value: &str, current: u32) -> Result<()> {
    let wanted: u32 = value.trim().parse().unwrap_or(u32::MAX);
    match wanted.cmp(&current) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(Error::usage(format!(
            "the protocol can't be downgraded: {key} is {current} and {wanted} was asked for"
        ))
        .class("DELTA_INVALID_PROTOCOL_DOWNGRADE")),
        std::cmp::Ordering::Greater => Err(Error::unsupported(format!(
            "{key} can't be raised by itself; name the features instead, as in delta.feature.deletionVectors = supported"
        ))
        .with("property", key)),
    }
}

fn check_stats_columns(state: &TableState, list: &str) -> Result<()> {
    let mut seen = BTreeSet::new();
    for path in parse_column_list(list).map_err(|e| e.with("property", STATS_COLUMNS))? {
        let shown = path.join(".");
        let found = find_column(&state.schema, &path).ok_or_else(|| {
            Error::usage(format!("Couldn't find column {shown} in:\n{}", tree(&state.schema.fields)))
                .class("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
                .with("column", &shown)
        })?;
        let Some(field) = found.last() else { continue };
        if path.len() == 1 && state.partition_columns.iter().any(|p| p.eq_ignore_ascii_case(&field.name)) {
            return Err(Error::usage(format!("Data skipping is not supported for partition column '{shown}'."))
                .class("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN")
                .with("column", &shown));
        }
        let skippable = crate::stats::has_bounds(&field.data_type) || matches!(field.data_type, DataType::Struct(_));
        if !skippable {
            return Err(Error::usage(format!(
                "Data skipping is not supported for column '{shown}' of type {}.",
                field.data_type.simple_string()
            ))
            .class("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE")
            .with("column", &shown));
        }
        if !seen.insert(shown.to_lowercase()) {
            return Err(Error::usage(format!("Duplicated data skipping columns found: {shown}."))
                .class("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS")
                .with("column", &shown));
        }
    }
    Ok(())
}
