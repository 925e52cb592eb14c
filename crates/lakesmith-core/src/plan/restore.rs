//! RESTORE: which files leave and which come back.
//!
//! # Source
//! Delta Spark `RestoreTableCommand`.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::op::RestoreMetrics;
use crate::table::{DataFile, FileId, FileTable};

/// The difference between two versions of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestorePlan {
    /// Files of the earlier version that are to come back, by path.
    pub restored: Vec<FileId>,
    /// Files of the current version that are to leave, by path.
    pub removed: Vec<FileId>,
    /// Counters.
    pub metrics: RestoreMetrics,
}

/// Compares files by `identity` of their path and by their vector: a file that is in both versions stays as it is.
pub fn restore<'a>(
    current: &'a FileTable,
    target: &'a FileTable,
    identity: &dyn Fn(&'a str) -> Cow<'a, str>,
) -> RestorePlan {
    let restored = missing_in(target, current, identity);
    let removed = missing_in(current, target, identity);
    let bytes = |files: &FileTable, ids: &[FileId]| ids.iter().map(|id| files.get(*id).size).sum();
    let metrics = RestoreMetrics {
        table_size_after_restore: target.total_bytes(),
        num_of_files_after_restore: target.len() as u64,
        num_removed_files: removed.len() as u64,
        num_restored_files: restored.len() as u64,
        removed_files_size: bytes(current, &removed),
        restored_files_size: bytes(target, &restored),
    };
    RestorePlan { restored, removed, metrics }
}

fn missing_in<'a>(of: &'a FileTable, other: &'a FileTable, identity: &dyn Fn(&'a str) -> Cow<'a, str>) -> Vec<FileId> {
    let key = |file: DataFile<'a>| (identity(file.path), file.deletes.map(|d| d.unique_id.as_str()));
    let held: HashSet<_> = other.iter().map(key).collect();
    let mut missing: Vec<FileId> = of.iter().filter(|file| !held.contains(&key(*file))).map(|file| file.id).collect();
    missing.sort_by_key(|id| (of.get(*id).path, of.get(*id).deletes.map(|d| &d.unique_id)));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::vector::VectorLocation;
    use crate::table::{DeleteInfo, FileMarks, FileTableBuilder, NewRow, PartitionTuple};

    fn table(files: &[(&str, u64, Option<&str>)]) -> FileTable {
        let mut builder = FileTableBuilder::new(false);
        let marks_index = builder.marks(FileMarks::default());
        let partition_index = builder.partition(PartitionTuple { raw: vec![], values: vec![] });
        for (path, size, vector) in files {
            let row = NewRow {
                path,
                size: *size,
                rows: Some(1),
                modified_ms: 0,
                partition_index,
                marks_index,
                base_row_id: None,
                row_commit_version: None,
                stats_json: None,
            };
            let deletes = vector.map(|id| DeleteInfo {
                storage_type: "i".into(),
                path_or_inline: id.into(),
                offset: None,
                size_in_bytes: 1,
                cardinality: 1,
                unique_id: id.into(),
                at: VectorLocation::Inline(Vec::new()),
            });
            builder.push(row, deletes);
        }
        builder.finish()
    }

    fn paths<'a>(files: &'a FileTable, ids: &[FileId]) -> Vec<(&'a str, Option<&'a str>)> {
        ids.iter().map(|id| files.get(*id)).map(|f| (f.path, f.deletes.map(|d| d.unique_id.as_str()))).collect()
    }

    #[test]
    fn a_file_with_another_vector_is_another_file() {
        let target = table(&[("stays", 1, None), ("marked", 2, None), ("gone", 4, Some("v1")), ("./odd", 8, None)]);
        let current = table(&[("new", 16, None), ("marked", 2, Some("v2")), ("stays", 1, None), ("odd", 8, None)]);
        let plan = restore(&current, &target, &|path| path.trim_start_matches("./").into());
        assert_eq!(paths(&target, &plan.restored), [("gone", Some("v1")), ("marked", None)]);
        assert_eq!(paths(&current, &plan.removed), [("marked", Some("v2")), ("new", None)]);
        let expected = RestoreMetrics {
            table_size_after_restore: 15,
            num_of_files_after_restore: 4,
            num_removed_files: 2,
            num_restored_files: 2,
            removed_files_size: 18,
            restored_files_size: 6,
        };
        assert_eq!(plan.metrics, expected);
    }
}
