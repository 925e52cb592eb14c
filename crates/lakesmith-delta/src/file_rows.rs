//! The kernel's batches of live files, as rows of the file table.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, AsArray, Int64Array, MapArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{Int32Type, Int64Type};
use delta_kernel::engine::arrow_data::EngineDataArrowExt as _;
use delta_kernel::scan::ScanMetadata;
use lakesmith_core::table::{
    DeleteInfo, Field, FileMarks, FileTable, FileTableBuilder, NewRow, PartitionTuple, Schema,
};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::Location;

use crate::partition_value;
use crate::read::partition_fields;
use crate::vector::{Descriptor, delete_info};

/// Collects batches. Its memory is that of the file table plus one batch.
pub(crate) struct FileRows<'a> {
    root: &'a Location,
    columns: Vec<&'a Field>,
    builder: FileTableBuilder,
    keep_stats: bool,
    count: u32,
    /// Partitions by the spelling of their values.
    partitions: HashMap<Vec<u8>, u32>,
    no_marks: u32,
    lacks_counts: bool,
}

impl<'a> FileRows<'a> {
    pub(crate) fn new(
        root: &'a Location,
        schema: &'a Schema,
        partition_columns: &[String],
        keep_stats: bool,
    ) -> Result<Self> {
        let mut builder = FileTableBuilder::new(keep_stats);
        let no_marks = builder.marks(FileMarks::default());
        Ok(Self {
            root,
            columns: partition_fields(schema, partition_columns)?,
            builder,
            keep_stats,
            count: 0,
            partitions: HashMap::new(),
            no_marks,
            lacks_counts: false,
        })
    }

    /// Appends the selected rows of a batch.
    pub(crate) fn push(&mut self, batch: ScanMetadata) -> Result<()> {
        let (batch, selected) = parts(batch)?;
        let columns = Columns::of(&batch)?;
        selected.rows(&batch).try_for_each(|row| self.push_row(&columns, row))
    }

    fn push_row(&mut self, columns: &Columns<'_>, row: usize) -> Result<()> {
        self.count = self.count.checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::Limit, "the table has more files than can be handled, about four thousand million")
        })?;
        let path = columns.path.value(row);
        let at_path = |e: Error| e.with("file", path);
        if columns.path.is_null(row) || columns.size.is_null(row) {
            return Err(at_path(Error::corrupt("a file in the log has no path or no size")));
        }
        let size = columns.size.value(row);
        let size = u64::try_from(size)
            .map_err(|_| at_path(Error::corrupt(format!("the size of a file in the log is negative: {size}"))))?;
        let deletes = columns.deletes(self.root, row).map_err(at_path)?;
        let stats = (!columns.stats.is_null(row)).then(|| columns.stats.value(row));
        let partition_index = self.partition(columns.partition_values, row).map_err(at_path)?;
        let marks_index = self.marks(columns, row);
        let rows = stats.and_then(num_records);
        self.lacks_counts |= rows.is_none();
        let new_row = NewRow {
            path,
            size,
            rows,
            modified_ms: if columns.modified.is_null(row) { 0 } else { columns.modified.value(row) },
            partition_index,
            marks_index,
            base_row_id: optional(columns.base_row_id, row),
            row_commit_version: optional(columns.row_commit_version, row),
            stats_json: stats.filter(|_| self.keep_stats),
        };
        self.builder.push(new_row, deletes);
        Ok(())
    }

    fn partition(&mut self, map: &MapArray, row: usize) -> Result<u32> {
        let entries = MapRow::of(map, row);
        let raw: Vec<Option<&str>> = self.columns.iter().map(|c| entries.get(&c.physical).flatten()).collect();
        let mut spelling = Vec::new();
        for value in &raw {
            // The length keeps ("a", "bc") and ("ab", "c") apart; zero is NULL, as the empty string is.
            let value = value.unwrap_or_default();
            spelling.extend((value.len() as u64).to_le_bytes());
            spelling.extend(value.as_bytes());
        }
        if let Some(index) = self.partitions.get(&spelling) {
            return Ok(*index);
        }
        self.check_keys(&entries)?;
        let values =
            self.columns.iter().zip(&raw).map(|(c, v)| partition_value::parse(c, *v)).collect::<Result<_>>()?;
        let raw = raw.iter().map(|v| v.filter(|t| !t.is_empty()).map(str::to_owned)).collect();
        let index = self.builder.partition(PartitionTuple { raw, values });
        self.partitions.insert(spelling, index);
        Ok(index)
    }

    /// A missing key is NULL, as Spark reads it, unless the file names a column that is none of the table's.
    fn check_keys(&self, entries: &MapRow<'_>) -> Result<()> {
        if self.columns.iter().all(|c| entries.get(&c.physical).is_some()) {
            return Ok(());
        }
        match entries.iter().find(|(key, _)| !self.columns.iter().any(|c| c.physical == *key)) {
            None => Ok(()),
            Some((key, _)) => {
                Err(Error::corrupt("the partition values of a file don't fit the partition columns")
                    .with("column", key))
            }
        }
    }

    fn marks(&mut self, columns: &Columns<'_>, row: usize) -> u32 {
        let provider = (!columns.provider.is_null(row)).then(|| columns.provider.value(row).to_owned());
        let tags: BTreeMap<String, Option<String>> = MapRow::of(columns.tags, row)
            .iter()
            .map(|(key, value)| (key.to_owned(), value.map(str::to_owned)))
            .collect();
        if tags.is_empty() && provider.is_none() {
            return self.no_marks;
        }
        self.builder.marks(FileMarks { tags, clustering_provider: provider })
    }

    /// True if the number of rows of some file is not known.
    pub(crate) fn lacks_counts(&self) -> bool {
        self.lacks_counts
    }

    pub(crate) fn finish(self) -> FileTable {
        self.builder.finish()
    }
}

/// Hands over path and statistics of every live file of a batch.
pub(crate) fn each_statistics(
    batch: ScanMetadata,
    each: &mut dyn FnMut(&str, Option<&str>) -> Result<()>,
) -> Result<()> {
    let (batch, selected) = parts(batch)?;
    let paths = strings(batch.column_by_name("path"), "path")?;
    let stats = strings(batch.column_by_name("stats"), "stats")?;
    selected.rows(&batch).try_for_each(|row| each(paths.value(row), (!stats.is_null(row)).then(|| stats.value(row))))
}

fn parts(batch: ScanMetadata) -> Result<(RecordBatch, Selected)> {
    let (data, selected) = batch.scan_files.into_parts();
    let batch = data
        .try_into_record_batch()
        .map_err(|e| Error::internal("the kernel's rows are not an Arrow batch").caused_by(e))?;
    Ok((batch, Selected(selected)))
}

/// Which rows of a batch count.
struct Selected(Vec<bool>);

impl Selected {
    fn rows(&self, batch: &RecordBatch) -> impl Iterator<Item = usize> {
        // A selection shorter than the batch selects the rest.
        (0..batch.num_rows()).filter(|row| self.0.get(*row).copied().unwrap_or(true))
    }
}

fn optional(array: &Int64Array, row: usize) -> Option<i64> {
    (!array.is_null(row)).then(|| array.value(row))
}

/// The columns of a batch.
struct Columns<'a> {
    path: &'a StringArray,
    size: &'a Int64Array,
    modified: &'a Int64Array,
    stats: &'a StringArray,
    vectors: &'a StructArray,
    partition_values: &'a MapArray,
    tags: &'a MapArray,
    provider: &'a StringArray,
    base_row_id: &'a Int64Array,
    row_commit_version: &'a Int64Array,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        let constants = batch.column_by_name("fileConstantValues").and_then(|c| c.as_struct_opt());
        let constants = constants.ok_or_else(|| missing("fileConstantValues"))?;
        Ok(Self {
            path: strings(batch.column_by_name("path"), "path")?,
            size: longs(batch.column_by_name("size"), "size")?,
            modified: longs(batch.column_by_name("modificationTime"), "modificationTime")?,
            stats: strings(batch.column_by_name("stats"), "stats")?,
            vectors: batch
                .column_by_name("deletionVector")
                .and_then(|c| c.as_struct_opt())
                .ok_or_else(|| missing("deletionVector"))?,
            partition_values: maps(constants, "partitionValues")?,
            tags: maps(constants, "tags")?,
            provider: strings(constants.column_by_name("clusteringProvider"), "clusteringProvider")?,
            base_row_id: longs(constants.column_by_name("baseRowId"), "baseRowId")?,
            row_commit_version: longs(constants.column_by_name("defaultRowCommitVersion"), "defaultRowCommitVersion")?,
        })
    }

    fn deletes(&self, root: &Location, row: usize) -> Result<Option<DeleteInfo>> {
        if self.vectors.is_null(row) {
            return Ok(None);
        }
        let text = |name: &'static str| strings(self.vectors.column_by_name(name), name);
        let storage_type = text("storageType")?;
        if storage_type.is_null(row) {
            return Ok(None);
        }
        let number = |name: &'static str| {
            self.vectors
                .column_by_name(name)
                .and_then(|c| c.as_primitive_opt::<Int32Type>())
                .ok_or_else(|| missing(name))
        };
        let offset = number("offset")?;
        let size = number("sizeInBytes")?;
        let cardinality = longs(self.vectors.column_by_name("cardinality"), "cardinality")?;
        let path = text("pathOrInlineDv")?;
        if size.is_null(row) || cardinality.is_null(row) || path.is_null(row) {
            return Err(Error::corrupt("a deletion vector in the log lacks its size, cardinality or path"));
        }
        delete_info(
            root,
            Descriptor {
                storage_type: storage_type.value(row),
                path_or_inline: path.value(row),
                offset: (!offset.is_null(row)).then(|| offset.value(row)),
                size_in_bytes: size.value(row),
                cardinality: cardinality.value(row),
            },
        )
        .map(Some)
    }
}

fn missing(name: &str) -> Error {
    Error::internal("the kernel's rows lack a column").with("column", name)
}

fn strings<'a>(column: Option<&'a arrow::array::ArrayRef>, name: &str) -> Result<&'a StringArray> {
    column.and_then(|c| c.as_string_opt::<i32>()).ok_or_else(|| missing(name))
}

fn longs<'a>(column: Option<&'a arrow::array::ArrayRef>, name: &str) -> Result<&'a Int64Array> {
    column.and_then(|c| c.as_primitive_opt::<Int64Type>()).ok_or_else(|| missing(name))
}

fn maps<'a>(parent: &'a StructArray, name: &str) -> Result<&'a MapArray> {
    let map = parent.column_by_name(name).and_then(|c| c.as_map_opt()).ok_or_else(|| missing(name))?;
    let text = |c: &'a arrow::array::ArrayRef| c.as_string_opt::<i32>().is_some();
    if text(map.keys()) && text(map.values()) { Ok(map) } else { Err(missing(name)) }
}

/// One row of a map of strings.
struct MapRow<'a> {
    keys: &'a StringArray,
    values: &'a StringArray,
    range: std::ops::Range<usize>,
}

impl<'a> MapRow<'a> {
    fn of(map: &'a MapArray, row: usize) -> Self {
        let range = if map.is_null(row) {
            0..0
        } else {
            map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize
        };
        Self { keys: map.keys().as_string(), values: map.values().as_string(), range }
    }

    fn iter(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + '_ {
        self.range.clone().map(|i| (self.keys.value(i), (!self.values.is_null(i)).then(|| self.values.value(i))))
    }

    fn get(&self, key: &str) -> Option<Option<&'a str>> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }
}

/// Rows of a file from its statistics, without parsing the rest of them where the count comes first, as it does in
/// what the known writers write.
pub(crate) fn num_records(stats: &str) -> Option<u64> {
    if let Some(rest) = stats.strip_prefix("{\"numRecords\":") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && matches!(rest.as_bytes().get(digits), Some(b',' | b'}')) {
            return rest[..digits].parse().ok();
        }
    }
    #[derive(serde::Deserialize)]
    struct Count {
        #[serde(rename = "numRecords")]
        num_records: Option<u64>,
    }
    serde_json::from_str::<Count>(stats).ok()?.num_records
}

#[cfg(test)]
mod tests {
    use super::num_records;

    #[test]
    fn row_counts_are_read_wherever_they_stand() {
        for (stats, expected) in [
            (r#"{"numRecords":7,"minValues":{}}"#, Some(7)),
            (r#"{"numRecords":7}"#, Some(7)),
            (r#"{ "numRecords": 7 }"#, Some(7)),
            (r#"{"minValues":{"numRecords":3},"numRecords":9}"#, Some(9)),
            (r#"{"minValues":{"numRecords":3}}"#, None),
            (r#"{"numRecords":7.5}"#, None),
            (r#"{"numRecords":-1}"#, None),
            (r#"{"numRecords":null}"#, None),
            ("", None),
        ] {
            assert_eq!(num_records(stats), expected, "{stats}");
        }
    }
}
