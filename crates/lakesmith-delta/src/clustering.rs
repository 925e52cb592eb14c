//! Clustering columns: which may be keys, and the domain that keeps them.
//!
//! # Source
//! Delta PROTOCOL.md, "Clustered Table"; Delta Spark `ClusteringMetadataDomain`, `ClusteredTableUtils`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lakesmith_core::plan::keys::{attribute_name, reference_name};
use lakesmith_core::table::{DataType, Field, FileTable, Schema, TableState};
use lakesmith_core::{Error, Result};
use serde_json::json;

use crate::features::with_features;
use crate::log_state::DeltaTable;
use crate::properties::NewConfiguration;
use crate::read::data_fields;
use crate::schema::{find_column, logical_path};
use crate::schema_text::{sql_type, tree, type_class};
use crate::stats::has_bounds;
use crate::write_spec::stats_leaves;

pub(crate) const CLUSTERING_DOMAIN: &str = "delta.clustering";
/// Features that a clustered table needs.
pub(crate) const CLUSTERING_FEATURES: [&str; 2] = ["domainMetadata", "clustering"];
const KEYS_MAX: usize = 4;

/// New keys of a table, none for CLUSTER BY NONE; `None` if that leaves everything as it is.
///
/// # Errors
/// Usage, with Spark's classes, for columns that can't be keys and for a partitioned table.
pub fn set_clustering(table: &DeltaTable, columns: &[Vec<String>]) -> Result<Option<NewConfiguration>> {
    let state = &table.state;
    if !state.partition_columns.is_empty() {
        return Err(Error::usage("ALTER TABLE CLUSTER BY cannot be applied to a partitioned table.")
            .class("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED")
            .with("path", &state.location));
    }
    let was_clustered = state.clustering_columns.is_some();
    if columns.is_empty() && !was_clustered {
        return Ok(None);
    }
    let keys = keys(table, columns).map_err(|e| e.with("path", &state.location))?;
    let protocol = with_features(&table.log.protocol, &CLUSTERING_FEATURES);
    Ok(Some(NewConfiguration {
        metadata: (!was_clustered).then(|| table.log.metadata.clone()),
        protocol: (protocol != table.log.protocol).then_some(protocol),
        domains: domain(&keys),
        ..NewConfiguration::default()
    }))
}

/// The columns as the schema spells them; those that it lacks stay as they are.
pub fn schema_spelling(schema: &Schema, columns: &[Vec<String>]) -> Vec<Vec<String>> {
    let spelled = |path: &Vec<String>| match find_column(schema, path) {
        Some(found) => found.iter().map(|field| field.name.clone()).collect(),
        None => path.clone(),
    };
    columns.iter().map(spelled).collect()
}

/// The clustering domain with these keys, each from the top-level column down.
pub(crate) fn domain(keys: &[Vec<&Field>]) -> BTreeMap<String, String> {
    let physical = |path: &Vec<&Field>| path.iter().map(|f| f.physical.clone()).collect::<Vec<_>>();
    let columns: Vec<Vec<String>> = keys.iter().map(physical).collect();
    let text = json!({"clusteringColumns": columns, "domainName": CLUSTERING_DOMAIN}).to_string();
    BTreeMap::from([(CLUSTERING_DOMAIN.to_owned(), text)])
}

/// Finds the columns and checks that all of them can be keys.
///
/// # Errors
/// As [`set_clustering`].
pub(crate) fn keys<'a>(table: &'a DeltaTable, columns: &[Vec<String>]) -> Result<Vec<Vec<&'a Field>>> {
    if columns.len() > KEYS_MAX {
        return Err(Error::usage(format!(
            "CLUSTER BY supports up to {KEYS_MAX} clustering columns, but the table has {} clustering columns. Please \
             remove the extra clustering columns.",
            columns.len()
        ))
        .class("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"));
    }
    let schema = &table.state.schema;
    let find = |path: &Vec<String>| find_column(schema, path).ok_or_else(|| not_found(schema, path));
    let found: Vec<Vec<&Field>> = columns.iter().map(find).collect::<Result<_>>()?;
    check_duplicates(&found)?;
    check_types(&found)?;
    check_statistics(table, &found)?;
    Ok(found)
}

fn not_found(schema: &Schema, path: &[String]) -> Error {
    let name = attribute_name(path);
    let mut parents = (1..path.len()).filter_map(|end| Some((end, find_column(schema, &path[..end])?.pop()?)));
    let flat = parents
        .next_back()
        .filter(|(_, field)| !matches!(field.data_type, DataType::Struct(_) | DataType::List(_) | DataType::Map(..)));
    match flat {
        Some((end, field)) => Error::usage(format!(
            "Expected {} to be a nested data type, but found {}. Was looking for the\nindex of {} in a nested \
             field.\nSchema:\n{}",
            path[end],
            type_class(&field.data_type),
            reference_name(&path[..end]),
            tree(&schema.fields)
        ))
        .class("DELTA_COLUMN_PATH_NOT_NESTED"),
        None => Error::usage(format!("Couldn't find column {name} in:\n{}", tree(&schema.fields)))
            .class("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    }
    .with("column", name)
}

fn logical(path: &[&Field]) -> String {
    reference_name(&path.iter().map(|f| f.name.clone()).collect::<Vec<_>>())
}

fn check_duplicates(keys: &[Vec<&Field>]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let again: BTreeSet<String> =
        keys.iter().map(|key| logical(key).to_lowercase()).filter(|name| !seen.insert(name.clone())).collect();
    if again.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = again.iter().map(|name| format!("`{name}`")).collect();
    Err(Error::usage(format!(
        "Found duplicate column(s): {}. The duplicate was found in CLUSTER BY.",
        names.join(", ")
    ))
    .class("DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY")
    .with("column", names.join(", ")))
}

fn check_types(keys: &[Vec<&Field>]) -> Result<()> {
    let wrong: Vec<String> = keys
        .iter()
        .filter_map(|key| {
            let leaf = key.last()?;
            let name = || format!("{} : {}", logical(key), sql_type(&leaf.data_type));
            (!has_bounds(&leaf.data_type)).then(name)
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "CLUSTER BY is not supported because the following column(s): {} don't support data skipping.",
        wrong.join(", ")
    ))
    .class("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED")
    .with("columns", wrong.join(", ")))
}

/// Checks that the table's keys would have statistics with these columns and properties.
///
/// # Errors
/// Usage (`DELTA_CLUSTERING_COLUMN_MISSING_STATS`).
pub(crate) fn check_keys_have_statistics(
    table: &DeltaTable,
    fields: &[Field],
    properties: &BTreeMap<String, String>,
) -> Result<()> {
    let state = &table.state;
    // Keys are known by their names of before.
    let path =
        |key: &Vec<String>| find_column(&state.schema, key).map(|k| k.iter().map(|f| f.physical.clone()).collect());
    let keys: Vec<Vec<String>> = state.clustering_columns.iter().flatten().filter_map(path).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let changed = TableState {
        schema: Schema { fields: fields.to_vec() },
        properties: properties.clone(),
        files: FileTable::default(),
        ..TableState::clone(state)
    };
    let changed = DeltaTable { state: Arc::new(changed), log: table.log.clone() };
    let logical: Vec<Vec<String>> = keys.iter().filter_map(|key| logical_path(&changed.state.schema, key)).collect();
    let found: Vec<Vec<&Field>> = logical.iter().filter_map(|key| find_column(&changed.state.schema, key)).collect();
    check_statistics(&changed, &found)
}

fn check_statistics(table: &DeltaTable, keys: &[Vec<&Field>]) -> Result<()> {
    let leaves: BTreeSet<Vec<String>> = stats_leaves(table).into_iter().collect();
    let physical = |key: &[&Field]| key.iter().map(|f| f.physical.clone()).collect::<Vec<_>>();
    let missing: Vec<String> =
        keys.iter().filter(|key| !leaves.contains(&physical(key))).map(|key| logical(key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let kept: Vec<Field> = data_fields(table).filter_map(|f| with_statistics(f, &mut Vec::new(), &leaves)).collect();
    Err(Error::usage(format!(
        "Clustering requires clustering columns to have stats. Couldn't find clustering column(s) '{}' in stats \
         schema:\n{}",
        missing.join(", "),
        tree(&kept)
    ))
    .class("DELTA_CLUSTERING_COLUMN_MISSING_STATS")
    .with("columns", missing.join(", ")))
}

/// What of a column gets statistics.
fn with_statistics(field: &Field, path: &mut Vec<String>, leaves: &BTreeSet<Vec<String>>) -> Option<Field> {
    path.push(field.physical.clone());
    let kept = match &field.data_type {
        DataType::Struct(inner) => {
            let inner: Vec<Field> = inner.iter().filter_map(|f| with_statistics(f, path, leaves)).collect();
            (!inner.is_empty()).then(|| Field { data_type: DataType::Struct(inner), ..field.clone() })
        }
        _ => leaves.contains(path).then(|| field.clone()),
    };
    path.pop();
    kept
}
