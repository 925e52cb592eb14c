//! What the data room needs to read this table's files: the schema inside the files and the files themselves.

use lakesmith_core::Result;
use lakesmith_core::table::{Field, FileId, InputFile, ReadSpec, Schema};
use lakesmith_storage::Location;

use crate::DeltaTable;
use crate::schema::ColumnMapping;

/// How the table's data files are to be read.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Unsupported`] for an unknown column mapping mode.
pub fn read_spec(table: &DeltaTable) -> Result<ReadSpec> {
    let mapping = ColumnMapping::of(&table.state.properties)?;
    let schema = Schema { fields: data_fields(table).cloned().collect() };
    Ok(ReadSpec { schema, match_by_id: mapping == ColumnMapping::Id })
}

/// The columns that are stored in data files: all but the partition columns.
pub(crate) fn data_fields(table: &DeltaTable) -> impl Iterator<Item = &Field> {
    let partitions = &table.state.partition_columns;
    table.state.schema.fields.iter().filter(|f| !partitions.iter().any(|p| p.eq_ignore_ascii_case(&f.name)))
}

/// The partition columns, in the order of the partition tuples.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Corrupt`] if a partition column is not in the schema.
pub(crate) fn partition_fields<'a>(schema: &'a Schema, columns: &[String]) -> Result<Vec<&'a Field>> {
    let missing = |name: &String| {
        lakesmith_core::Error::corrupt("a partition column is not in the table's schema").with("column", name)
    };
    columns.iter().map(|name| schema.field(name).ok_or_else(|| missing(name))).collect()
}

/// Physical names of columns that may be in data files although the read schema lacks them: a file that holds one has
/// no dropped column for that.
pub fn hidden_columns(table: &DeltaTable) -> Vec<String> {
    let properties = &table.state.properties;
    let tracking = [super::write_spec::ROW_ID_COLUMN, super::write_spec::COMMIT_VERSION_COLUMN];
    let partitions = table.state.partition_columns.iter().filter_map(|c| table.state.schema.field(c));
    tracking
        .iter()
        .filter_map(|key| properties.get(*key).cloned())
        .chain(partitions.map(|f| f.physical.clone()))
        .collect()
}

/// The files `ids`, with their canonical locations, in the order given.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Corrupt`] or `Unsupported` for a path in the log that names no place we know.
pub fn input_files(table: &DeltaTable, root: &Location, ids: &[FileId]) -> Result<Vec<InputFile>> {
    ids.iter()
        .map(|id| {
            let file = table.state.files.get(*id);
            Ok(InputFile {
                id: *id,
                location: root.resolve(file.path)?.to_string(),
                size: file.size,
                rows: file.rows,
                deletes: file.deletes.cloned(),
                delete_files: Vec::new(),
                base_row_id: file.base_row_id,
                row_commit_version: file.row_commit_version,
            })
        })
        .collect()
}
