//! What the data room needs to write this table's files: which columns, which statistics, and where.
//!
//! # Source
//! Delta PROTOCOL.md, "Writer Requirements" of each feature; Delta Spark `StatisticsCollection`, `DelayedCommitProtocol`.

use std::collections::BTreeMap;

use lakesmith_core::table::{DataType, Field, PartitionTuple, RowTrackingColumns, TableState, WriteSpec};
use lakesmith_core::units::MIB;
use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;

use crate::DeltaTable;
use crate::property_rules::{check, known};
use crate::read::{data_fields, partition_fields};
use crate::schema::{ColumnMapping, parse_column_list};

pub(crate) const ROW_ID_COLUMN: &str = "delta.rowTracking.materializedRowIdColumnName";
pub(crate) const COMMIT_VERSION_COLUMN: &str = "delta.rowTracking.materializedRowCommitVersionColumnName";

/// Field ids that Iceberg reserves for `_row_id` and `_last_updated_sequence_number`.
const ICEBERG_LINEAGE_IDS: (i32, i32) = (2_147_483_540, 2_147_483_539);
const CODEC_PROPERTY: &str = "delta.parquet.compression.codec";
const DEFAULT_INDEXED_COLUMNS: i64 = 32;
const ROW_GROUP_BYTES: u64 = 128 * MIB;
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// How the table's data files are to be written.
///
/// # Errors
/// [`Error::corrupt`] if row tracking is on but its columns have no names, `Unsupported` for an unknown mapping mode.
pub fn write_spec(
    table: &DeltaTable,
    max_rows: Option<u64>,
    compression: Option<String>,
    row_group_rows: u64,
) -> Result<WriteSpec> {
    let state = &table.state;
    let all_partitions = partition_fields(&state.schema, &state.partition_columns)?;
    let materialize = state.has_feature("materializePartitionColumns") || iceberg_compat(table).is_some();
    let partition_fields: Vec<Field> = if materialize { all_partitions.into_iter().cloned().collect() } else { vec![] };
    let compression = compression.or_else(|| codec_of(state));
    Ok(WriteSpec {
        partition_indexes: (0..partition_fields.len()).collect(),
        partition_fields,
        row_tracking: row_tracking(table)?,
        stats_leaves: stats_leaves(table),
        max_rows_per_file: max_rows,
        compression,
        row_group_rows,
        row_group_bytes: ROW_GROUP_BYTES,
    })
}

/// The table's codec. A word that is none is passed over: writers such as Spark don't look at the property at all.
fn codec_of(state: &TableState) -> Option<String> {
    let value = state.property(CODEC_PROPERTY)?;
    let valid = known(CODEC_PROPERTY).is_some_and(|(key, rule)| check(&key, value, rule).is_ok());
    if !valid {
        tracing::warn!(
            property = CODEC_PROPERTY,
            value,
            path = state.location,
            "the table's codec is not known, so the files keep the codec that they have; set the property to snappy, \
             zstd, gzip, lz4_raw or uncompressed, or unset it, or name a codec with --compression"
        );
    }
    valid.then(|| value.to_lowercase())
}

/// Version of Iceberg compatibility in force, the highest one.
fn iceberg_compat(table: &DeltaTable) -> Option<u8> {
    (1..=3).rev().find(|v| table.state.property_is_true(&format!("delta.enableIcebergCompatV{v}")))
}

/// Tags that every new file of the table must carry.
pub fn required_tags(table: &DeltaTable) -> BTreeMap<String, Option<String>> {
    iceberg_compat(table)
        .filter(|v| *v >= 2)
        .map(|v| ("ICEBERG_COMPAT_VERSION".to_string(), Some(v.to_string())))
        .into_iter()
        .collect()
}

/// The hidden columns that keep row ids stable, where row tracking is enabled.
///
/// # Errors
/// [`Error::corrupt`] if they have no names.
pub fn row_tracking(table: &DeltaTable) -> Result<Option<RowTrackingColumns>> {
    let state = &table.state;
    if !state.property_is_true("delta.enableRowTracking") || state.property_is_true("delta.rowTrackingSuspended") {
        return Ok(None);
    }
    let name = |key: &str| {
        state.property(key).map(str::to_owned).ok_or_else(|| {
            Error::corrupt("row tracking is enabled but the name of its column is missing")
                .with("property", key)
                .with("path", &state.location)
        })
    };
    Ok(Some(RowTrackingColumns {
        row_id: name(ROW_ID_COLUMN)?,
        commit_version: name(COMMIT_VERSION_COLUMN)?,
        field_ids: (iceberg_compat(table) == Some(3)).then_some(ICEBERG_LINEAGE_IDS),
    }))
}

/// Physical paths of the leaves that get statistics, in schema order: those that the property names, else the first
/// leaves of the data columns.
pub fn stats_leaves(table: &DeltaTable) -> Vec<Vec<String>> {
    let mut leaves = Vec::new();
    for field in data_fields(table) {
        collect_leaves(field, &mut Vec::new(), &mut Vec::new(), &mut leaves);
    }
    // A list that does not parse was set by a lenient writer; Spark could not have written with it either.
    let named = table.state.property("delta.dataSkippingStatsColumns").and_then(|list| parse_column_list(list).ok());
    let kept: Vec<Leaf> = match named {
        Some(columns) => leaves.into_iter().filter(|leaf| columns.iter().any(|c| leaf.is_in(c))).collect(),
        None => {
            let count = table
                .state
                .property("delta.dataSkippingNumIndexedCols")
                .and_then(|v| v.trim().parse().ok())
                .unwrap_or(DEFAULT_INDEXED_COLUMNS);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            leaves.into_iter().take(count).collect()
        }
    };
    // A column of nulls without a type is not stored in files.
    kept.into_iter().filter(|leaf| !leaf.void).map(|leaf| leaf.physical).collect()
}

struct Leaf {
    logical: Vec<String>,
    physical: Vec<String>,
    void: bool,
}

impl Leaf {
    fn is_in(&self, column: &[String]) -> bool {
        column.len() <= self.logical.len()
            && column.iter().zip(&self.logical).all(|(a, b)| a.to_lowercase() == b.to_lowercase())
    }
}

fn collect_leaves(field: &Field, logical: &mut Vec<String>, physical: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
    logical.push(field.name.clone());
    physical.push(field.physical.clone());
    match &field.data_type {
        DataType::Struct(inner) => {
            for field in inner {
                collect_leaves(field, logical, physical, leaves);
            }
        }
        other => {
            leaves.push(Leaf { logical: logical.clone(), physical: physical.clone(), void: *other == DataType::Null })
        }
    }
    logical.pop();
    physical.pop();
}

/// Folder of a new data file below the table's root, with a trailing slash, empty for the root itself. Not URL-encoded.
///
/// `random2`: two random characters, used where the table asks for prefixes that spread load or hide values.
pub fn output_directory(table: &DeltaTable, partition: &PartitionTuple, random2: &str) -> String {
    let state = &table.state;
    let mapped = ColumnMapping::of(&state.properties).is_ok_and(|m| m != ColumnMapping::None);
    if mapped || state.property_is_true("delta.randomizeFilePrefixes") {
        return format!("{random2}/");
    }
    let values = partition.raw.iter().map(|v| match v.as_deref() {
        None | Some("") => NULL_FOLDER.to_string(),
        Some(value) => Location::hive_escape(value),
    });
    let names = state.partition_columns.iter().map(|name| Location::hive_escape(name));
    names.zip(values).map(|(name, value)| format!("{name}={value}/")).collect()
}
