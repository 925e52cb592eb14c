//! Rows that are deleted by delete files: which positions of a data file they are.
//!
//! ```text
//! position delete files -> positions (by path) -------------------------------------------.
//! equality delete files -> key_columns -> key_set (keys)  <- key columns of the data file -+-> positions of the file
//! ```
//!
//! Which delete files apply to a data file was decided before.
//!
//! # Source
//! Iceberg spec, "Delete Formats".

mod budget;
mod equality;
mod key_columns;
mod key_set;
mod positions;
mod reads;

use lakesmith_core::table::{DeleteContent, DeletionVector, InputFile, ReadSpec};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Cancel, Store};
use tokio::runtime::Handle;

use self::budget::Budget;
use self::equality::EqualityFiles;
use self::positions::PositionFiles;
use self::reads::Reads;
use crate::file_read::OpenFile;
use crate::target::Strings;

/// What the delete files of a scan delete. All of its threads share it: a delete file is read once if what it holds fits
/// into the memory.
pub struct Deletes {
    reads: Reads,
    budget: Budget,
    positions: PositionFiles,
    equality: EqualityFiles,
}

impl Deletes {
    /// Nothing is read yet. What is held and what is read on the way takes about `memory_bytes`.
    pub fn new(store: Store, runtime: Handle, cancel: Cancel, memory_bytes: u64) -> Self {
        Self {
            reads: Reads::new(store, runtime, cancel, memory_bytes),
            budget: Budget::new(memory_bytes / 4 * 3),
            positions: PositionFiles::default(),
            equality: EqualityFiles::default(),
        }
    }

    /// Positions of the rows of `file` that its delete files delete, its vector left aside. Waits for the storage: the
    /// calling thread must be one that may block.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the delete file, or the data file if it lacks what is compared; Cancelled;
    /// Limit; those of the storage.
    pub fn positions(&self, file: &InputFile, read: &ReadSpec) -> Result<DeletionVector> {
        let compares = file.delete_files.iter().any(|delete| matches!(delete.content, DeleteContent::Equality(_)));
        let open = if compares { Some(self.reads.open_data(file)?) } else { None };
        let mut deleted = DeletionVector::default();
        self.mark(file, open.as_ref(), read, &mut deleted)?;
        Ok(deleted)
    }

    /// Bytes that are held for the files to come.
    pub fn held_bytes(&self) -> usize {
        self.budget.held()
    }

    /// All rows of an opened file that are deleted: those of its vector, and those of its delete files.
    ///
    /// # Errors
    /// As [`Deletes::positions`].
    pub(crate) fn with_vector(
        &self,
        file: &InputFile,
        open: &OpenFile,
        read: &ReadSpec,
        vector: Option<DeletionVector>,
    ) -> Result<Option<DeletionVector>> {
        if file.delete_files.is_empty() {
            return Ok(vector);
        }
        let open = OpenFile::new(open.handle.clone(), open.footer.clone(), Strings::Bytes)?;
        let mut deleted = vector.unwrap_or_default();
        self.mark(file, Some(&open), read, &mut deleted)?;
        Ok(Some(deleted))
    }

    fn mark(
        &self,
        file: &InputFile,
        open: Option<&OpenFile>,
        read: &ReadSpec,
        deleted: &mut DeletionVector,
    ) -> Result<()> {
        let (mut naming, mut comparing) = (Vec::new(), Vec::new());
        for delete in &file.delete_files {
            match &delete.content {
                DeleteContent::Positions => naming.push(&**delete),
                DeleteContent::Equality(fields) => comparing.push((&**delete, fields.as_slice())),
            }
        }
        if !naming.is_empty() {
            self.positions.mark(&naming, &file.location, &self.reads, &self.budget, deleted)?;
        }
        let rows = open.map(|open| open.footer.rows()).or(file.rows);
        if let (Some(rows), Some(last)) = (rows, deleted.max())
            && last >= rows
        {
            let paths: Vec<&str> = naming.iter().map(|delete| delete.path.as_str()).collect();
            return Err(Error::corrupt(format!(
                "a position delete file deletes row {last} of a data file that has {rows} rows; restore the delete file \
                 from a copy"
            ))
            .with("path", &file.location)
            .with("delete files", paths.join(", ")));
        }
        if let (Some(open), false) = (open, comparing.is_empty()) {
            self.equality.mark(&comparing, open, read, &self.reads, &self.budget, deleted)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Deletes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deletes").field("held_bytes", &self.held_bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
