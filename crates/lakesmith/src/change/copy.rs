//! Files copied without some of their rows, where a table takes no deletion vectors.

use std::sync::Arc;

use lakesmith_core::Result;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{
    DataType, DeleteInfo, DeletionVector, Field, FileId, MarkedFile, NewFile, PartitionTuple, RewriteOutcome,
    RewriteTask, Scalar, WriteSpec, WrittenFile,
};
use lakesmith_exec::{LocalExecutor, RewriteControl};

use super::{RowChange, new_file, stem};
use crate::drive::threads;

/// What was copied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copied {
    /// Files that are copied, or of which no row is left.
    pub removed: Vec<FileId>,
    /// The copies.
    pub added: Vec<NewFile>,
    /// Rows that were copied.
    pub rows: u64,
    /// Rows that were not.
    pub deleted: u64,
}

/// Where files for readers of changes lie, and the column that tells the kind of change.
const CHANGES_FOLDER: &str = "_change_data";
const CHANGE_TYPE: &str = "_change_type";

/// A file that is to be written again.
struct Copy<'a> {
    file: &'a MarkedFile,
    /// Rows that are left out.
    without: DeletionVector,
    partition: PartitionTuple,
    stem: String,
}

impl RowChange<'_> {
    /// Writes each file again without the rows that are marked and without those that were deleted before. Rows keep their ids.
    ///
    /// # Errors
    /// Unsupported for a file that holds what cannot be written again, Corrupt, those of the storage.
    pub fn copy_without(&self, marked: &[MarkedFile]) -> Result<Copied> {
        let table = &self.base;
        let write = Arc::new(self.write_spec(table)?);
        let mut copied = Copied::default();
        let mut copies = Vec::with_capacity(marked.len());
        for file in marked {
            let before = self.deleted_before(file)?;
            let all = DeletionVector::from_rows(before.iter().chain(file.rows.iter()));
            copied.deleted += all.cardinality() - before.cardinality();
            copied.removed.push(file.file);
            let partition = table.state.files.get(file.file).partition.clone();
            let stem = stem(self.session.options.world.as_ref(), table, &partition, copies.len());
            copies.push(Copy { file, without: all, partition, stem });
        }
        for (partition, written) in self.write_copies(copies, &write)? {
            copied.rows += written.rows;
            copied.added.push(new_file(table, partition, written));
        }
        Ok(copied)
    }

    /// Writes the rows that are marked, and were not deleted before, for readers of changes.
    ///
    /// # Errors
    /// As [`RowChange::copy_without`].
    ///
    /// # Source
    /// Delta PROTOCOL.md, "Add CDC File", "Change Data Files".
    pub fn deleted_rows(&self, marked: &[MarkedFile]) -> Result<Vec<NewFile>> {
        let table = &self.base;
        let mut write = WriteSpec { row_tracking: None, stats_leaves: Vec::new(), ..self.write_spec(table)? };
        write.partition_indexes.push(table.state.partition_columns.len());
        write.partition_fields.push(Field {
            name: CHANGE_TYPE.to_owned(),
            physical: CHANGE_TYPE.to_owned(),
            id: None,
            data_type: DataType::String,
            nullable: true,
            metadata: Default::default(),
        });
        let write = Arc::new(write);
        let mut copies = Vec::with_capacity(marked.len());
        for file in marked {
            let before = self.deleted_before(file)?;
            let gone = DeletionVector::from_rows(file.rows.iter().filter(|row| !before.contains(*row)));
            let kept = DeletionVector::from_rows((0..file.physical_rows).filter(|row| !gone.contains(*row)));
            let mut partition = table.state.files.get(file.file).partition.clone();
            let place = stem(self.session.options.world.as_ref(), table, &partition, copies.len());
            let (folder, name) = place.rsplit_once("/part-").map_or(("", place.as_str()), |(f, n)| (f, n));
            let slash = if folder.is_empty() { "" } else { "/" };
            let stem = format!("{CHANGES_FOLDER}/{folder}{slash}cdc-{}", name.trim_start_matches("part-"));
            partition.values.push(Scalar::String("delete".to_owned()));
            partition.raw.push(Some("delete".to_owned()));
            copies.push(Copy { file, without: kept, partition, stem });
        }
        let written = self.write_copies(copies, &write)?.into_iter().map(|(mut partition, written)| {
            partition.values.pop();
            partition.raw.pop();
            new_file(table, partition, written)
        });
        Ok(written.collect())
    }

    fn deleted_before(&self, file: &MarkedFile) -> Result<DeletionVector> {
        match self.base.state.files.get(file.file).deletes {
            Some(info) => self.session.runtime.block_on(lakesmith_delta::read_vector(&self.store, info)),
            None => Ok(DeletionVector::default()),
        }
    }

    /// Writes the files again, each with its partition; those of which no row is left are passed over.
    fn write_copies(
        &self,
        copies: Vec<Copy<'_>>,
        write: &Arc<WriteSpec>,
    ) -> Result<Vec<(PartitionTuple, WrittenFile)>> {
        let read = Arc::new(lakesmith_delta::read_spec(&self.base)?);
        let mut tasks: Vec<RewriteTask> = Vec::with_capacity(copies.len());
        for copy in copies {
            if copy.without.cardinality() == copy.file.physical_rows {
                continue;
            }
            let mut inputs = lakesmith_delta::input_files(&self.base, &self.root, &[copy.file.file])?;
            inputs.iter_mut().for_each(|input| input.deletes = Some(in_memory(&copy.without)));
            tasks.push(RewriteTask {
                id: tasks.len() as u32,
                inputs,
                read: Arc::clone(&read),
                write: Arc::clone(write),
                root: self.root.to_string(),
                output_stem: copy.stem,
                verify: self.limits.verify,
                order: None,
                partition: copy.partition,
            });
        }
        let partitions: Vec<PartitionTuple> = tasks.iter().map(|task| task.partition.clone()).collect();
        let control = RewriteControl {
            memory_bytes: self.limits.memory_bytes / 2,
            threads: threads(&self.limits),
            spill_folder: self.limits.spill_folder.clone().unwrap_or_else(std::env::temp_dir),
            cancel: self.session.options.cancel.clone(),
            progress: Arc::clone(&self.session.options.progress),
            now_ms: Arc::clone(&self.session.options.world),
            runtime: self.session.runtime.handle().clone(),
        };
        let mut outcomes: Vec<Option<RewriteOutcome>> = vec![None; tasks.len()];
        let ran = LocalExecutor::new(self.store.clone(), control).run(tasks, &mut |outcome| {
            self.note(outcome.outputs.iter().map(|file| self.root.join(&file.path)));
            let place = outcome.task as usize;
            outcomes[place] = Some(outcome);
            Ok(())
        });
        if let Err(failure) = ran {
            self.note(failure.leftovers);
            return Err(failure.error);
        }
        let mut written = Vec::with_capacity(partitions.len());
        for (outcome, partition) in outcomes.into_iter().zip(partitions) {
            let outcome = outcome.ok_or_else(super::broken_off)?;
            if let Some(left) = outcome.left_out.first() {
                return Err(left.error());
            }
            written.extend(outcome.outputs.into_iter().map(|file| (partition.clone(), file)));
        }
        Ok(written)
    }

    fn note(&self, files: impl IntoIterator<Item = lakesmith_storage::Location>) {
        self.visible.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(files);
    }
}

/// A vector that lies in no file.
fn in_memory(rows: &DeletionVector) -> DeleteInfo {
    let bytes = rows.encode();
    DeleteInfo {
        unique_id: "copied".to_owned(),
        storage_type: "i".to_owned(),
        path_or_inline: String::new(),
        offset: None,
        size_in_bytes: i32::try_from(bytes.len()).unwrap_or(i32::MAX),
        cardinality: rows.cardinality(),
        at: VectorLocation::Inline(bytes),
    }
}
