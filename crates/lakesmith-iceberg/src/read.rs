//! What the data room needs to read this table's files: the schema inside the files and the files themselves.

use std::collections::HashMap;
use std::sync::Arc;

use lakesmith_core::table::{DeleteFile, DeleteFileId, FileId, InputFile, ReadSpec, RowTrackingColumns};
use lakesmith_core::{Error, Result};

use crate::manifest::StoredFormat;
use crate::table::IcebergTable;

const ROW_ID: (&str, i32) = ("_row_id", 2_147_483_540);
const LAST_UPDATED: (&str, i32) = ("_last_updated_sequence_number", 2_147_483_539);
/// The first version of the format whose rows have ids.
const ROW_LINEAGE_VERSION: u8 = 3;

/// How the table's data files are to be read: columns by their ids, which every nested field has too.
///
/// # Errors
/// `Unsupported` with the column for a type whose values are not understood.
pub fn read_spec(table: &IcebergTable) -> Result<ReadSpec> {
    table.schema().check_readable().map_err(|e| e.with("table", &table.state.location))?;
    Ok(ReadSpec { schema: table.state.schema.clone(), match_by_id: true })
}

/// The columns that keep row ids across rewrites, if the table's rows have ids.
///
/// # Source
/// Iceberg spec, "Row Lineage" and "Reserved Field IDs".
pub fn row_tracking(table: &IcebergTable) -> Option<RowTrackingColumns> {
    (table.log.metadata.format_version >= ROW_LINEAGE_VERSION).then(|| RowTrackingColumns {
        row_id: ROW_ID.0.to_owned(),
        commit_version: LAST_UPDATED.0.to_owned(),
        field_ids: Some((ROW_ID.1, LAST_UPDATED.1)),
    })
}

/// The files `ids` and what deletes rows of them, with their canonical locations, in the order given.
///
/// # Errors
/// `Unsupported` for a file that is encrypted, or not Parquet, and for a path on a storage that is not known; `Corrupt` for
/// a path that names no place.
pub fn input_files(table: &IcebergTable, ids: &[FileId]) -> Result<Vec<InputFile>> {
    let mut deletes = DeleteFiles { table, known: HashMap::new() };
    ids.iter()
        .map(|id| {
            let file = table.state.files.get(*id);
            let facts = table.facts(*id);
            if facts.format != StoredFormat::Parquet {
                let name = facts.format.name();
                return Err(Error::unsupported(format!(
                    "data files of the format {name} cannot be read, only Parquet"
                ))
                .with("path", file.path));
            }
            if facts.encrypted {
                return Err(Error::unsupported("the data file is encrypted").with("path", file.path));
            }
            if let Some(vector) = file.deletes.filter(|v| table.log.encrypted_vectors.contains(&v.unique_id)) {
                let error = Error::unsupported("the deletion vector of the data file is encrypted");
                return Err(error.with("path", file.path).with("vector", &vector.unique_id));
            }
            Ok(InputFile {
                id: *id,
                location: table.paths().resolve(file.path)?.to_string(),
                size: file.size,
                rows: file.rows,
                deletes: file.deletes.cloned(),
                delete_files: file.delete_files.iter().map(|id| deletes.get(*id)).collect::<Result<_>>()?,
                base_row_id: file.base_row_id,
                row_commit_version: file.row_commit_version,
            })
        })
        .collect()
}

/// Delete files with their canonical locations, each made once.
struct DeleteFiles<'a> {
    table: &'a IcebergTable,
    known: HashMap<DeleteFileId, Arc<DeleteFile>>,
}

impl DeleteFiles<'_> {
    fn get(&mut self, id: DeleteFileId) -> Result<Arc<DeleteFile>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Arc::clone(known));
        }
        let file = self.table.state.files.delete_file(id);
        if self.table.log.encrypted_deletes.contains(&id) {
            return Err(Error::unsupported("the delete file is encrypted").with("path", &file.path));
        }
        let path = self.table.paths().resolve(&file.path)?.to_string();
        let file = Arc::new(DeleteFile { path, ..file.clone() });
        self.known.insert(id, Arc::clone(&file));
        Ok(file)
    }
}
