//! Files copied without some of their rows, where a table takes no deletion vectors.

use std::sync::Arc;

use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{
    DeleteInfo, DeletionVector, FileId, MarkedFile, NewFile, RewriteOutcome, RewriteTask, WriteSpec,
};
use lakesmith_core::{Error, Result};
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

impl RowChange<'_> {
    /// Writes each file again without the rows that are marked and without those that were deleted before. Rows keep their ids.
    ///
    /// # Errors
    /// Unsupported for a file that holds what cannot be written again, Corrupt, those of the storage.
    pub fn copy_without(&self, marked: &[MarkedFile]) -> Result<Copied> {
        let table = &self.base;
        let read = Arc::new(lakesmith_delta::read_spec(table)?);
        let write: Arc<WriteSpec> = Arc::new(self.write_spec(table)?);
        let mut copied = Copied::default();
        let mut tasks = Vec::with_capacity(marked.len());
        let mut partitions = Vec::with_capacity(marked.len());
        for file in marked {
            let [input] = &mut lakesmith_delta::input_files(table, &self.root, &[file.file])?[..] else {
                return Err(Error::internal("one file was asked for"));
            };
            let before = match &input.deletes {
                Some(info) => self.session.runtime.block_on(lakesmith_delta::read_vector(&self.store, info))?,
                None => DeletionVector::default(),
            };
            let all = DeletionVector::from_rows(before.iter().chain(file.rows.iter()));
            copied.deleted += all.cardinality() - before.cardinality();
            copied.removed.push(file.file);
            if all.cardinality() == file.physical_rows {
                continue;
            }
            input.deletes = Some(in_memory(&all));
            let partition = table.state.files.get(file.file).partition.clone();
            tasks.push(RewriteTask {
                id: tasks.len() as u32,
                inputs: vec![input.clone()],
                read: Arc::clone(&read),
                write: Arc::clone(&write),
                root: self.root.to_string(),
                output_stem: stem(self.session.options.world.as_ref(), table, &partition, tasks.len()),
                verify: self.limits.verify,
                order: None,
                partition: partition.clone(),
            });
            partitions.push(partition);
        }
        let control = RewriteControl {
            memory_bytes: self.limits.memory_bytes / 2,
            threads: threads(&self.limits),
            spill_folder: self.limits.spill_folder.clone().unwrap_or_else(std::env::temp_dir),
            cancel: self.session.options.cancel.clone(),
            progress: Arc::clone(&self.session.options.progress),
            now_ms: Arc::clone(&self.session.options.world),
            runtime: self.session.runtime.handle().clone(),
        };
        let mut outcomes = vec![None; tasks.len()];
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
        for (outcome, partition) in outcomes.into_iter().zip(partitions) {
            let outcome: RewriteOutcome = outcome.ok_or_else(super::broken_off)?;
            if let Some(left) = outcome.left_out.first() {
                return Err(left.error());
            }
            copied.rows += outcome.rows_out;
            copied.added.extend(outcome.outputs.into_iter().map(|file| new_file(table, partition.clone(), file)));
        }
        Ok(copied)
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
