//! Rows that enter and leave a table: new files, files copied without some of their rows, and the commit of both.
//!
//! Nothing refers to a new file before the commit; files that no commit can reach any more are swept.

mod copy;
mod nulls;
mod statements;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};

use lakesmith_core::op::RewriteLimits;
use lakesmith_core::table::{DataEdit, FileMarks, NewFile, PartitionTuple, Schema, TableState, WriteSpec, WrittenFile};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{Becoming, CommitResult, DeltaTable, NewConfiguration};
use lakesmith_exec::NewFiles;
use lakesmith_storage::{Location, Store, UncommittedProof};

use crate::drive::sweep_uncommitted;
use crate::{Session, Table};

pub use copy::Copied;
pub use lakesmith_delta::{Identity, RowCheck, RowRules, TextLength};
pub(crate) use statements::count_output;
pub use statements::{Replaced, Touched};
pub use writer::RowWriter;

/// A change of one table's rows that is being made. Dropped without its commit, it takes the files that it wrote with it.
pub struct RowChange<'s> {
    session: &'s Session,
    store: Store,
    root: Location,
    limits: RewriteLimits,
    /// The table as it was read.
    base: Arc<DeltaTable>,
    /// What it becomes.
    becoming: Option<(NewConfiguration, Arc<DeltaTable>)>,
    /// True if that is only how far its identity columns have come.
    numbers: bool,
    /// Files that became visible.
    visible: Arc<Mutex<Vec<Location>>>,
}

/// A change that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The version that it made; `None` if nothing was left to change.
    pub version: Option<u64>,
    /// Counters as recorded in the history.
    pub metrics: std::collections::BTreeMap<String, String>,
}

impl<'s> RowChange<'s> {
    /// A change of the rows of a table as it was opened.
    ///
    /// # Errors
    /// Unsupported if the table cannot be written, by the feature's name; Usage for a setting that cannot be read.
    pub fn of(session: &'s Session, table: &Table) -> Result<Self> {
        let base = table.opened().delta("this statement", table.root())?;
        lakesmith_delta::check_writable(base)?;
        Self::begin(session, table.store(), table.root(), Arc::clone(base), None)
    }

    /// A change of the rows of `base`, together with which it becomes another table.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub(crate) fn begin(
        session: &'s Session,
        store: &Store,
        root: &Location,
        base: Arc<DeltaTable>,
        becoming: Option<(NewConfiguration, Arc<DeltaTable>)>,
    ) -> Result<Self> {
        Ok(Self {
            session,
            store: store.clone(),
            root: root.clone(),
            limits: session.settings().limits()?,
            base,
            becoming,
            numbers: false,
            visible: Arc::default(),
        })
    }

    /// Takes the files that it wrote with it, which were named by puts of `proof` at most.
    pub(crate) fn give_up(self, proof: UncommittedProof) {
        let written = std::mem::take(&mut *self.visible.lock().unwrap_or_else(PoisonError::into_inner));
        sweep_uncommitted(self.session, &self.store, written, proof);
    }

    /// Leaves the files that it wrote where they are.
    pub(crate) fn keep_files(self) {
        self.visible.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The table's columns as new rows must have them.
    pub fn schema(&self) -> &Schema {
        &self.target().state.schema
    }

    /// The table as new files are written for it.
    pub fn state(&self) -> &TableState {
        &self.target().state
    }

    fn target(&self) -> &Arc<DeltaTable> {
        self.becoming.as_ref().map_or(&self.base, |(_, table)| table)
    }

    /// Writers of new files, to be used side by side.
    ///
    /// # Errors
    /// Those of the table's properties; Unsupported for columns that no file can hold.
    pub fn writers(&self, count: usize) -> Result<Vec<RowWriter>> {
        let target = self.target();
        let write = WriteSpec { row_tracking: None, ..self.write_spec(target)? };
        let files = self.new_files(target, write, self.limits.memory_bytes / 4 / count.max(1) as u64)?;
        (0..count).map(|number| RowWriter::new(&files, Arc::clone(target), number)).collect()
    }

    fn write_spec(&self, table: &DeltaTable) -> Result<WriteSpec> {
        let limits = &self.limits;
        lakesmith_delta::write_spec(table, limits.max_rows_per_file, limits.compression.clone(), limits.row_group_rows)
    }

    fn new_files(&self, table: &DeltaTable, write: WriteSpec, memory_bytes: u64) -> Result<NewFiles> {
        Ok(NewFiles {
            store: self.store.clone(),
            root: self.root.clone(),
            read: Arc::new(lakesmith_delta::read_spec(table)?),
            write: Arc::new(write),
            memory_bytes,
            runtime: self.session.runtime.handle().clone(),
            cancel: self.session.options.cancel.clone(),
            world: Arc::clone(&self.session.options.world),
            visible: Arc::clone(&self.visible),
        })
    }

    /// Notes how many rows identity columns have numbered, by their places.
    ///
    /// # Errors
    /// Usage (`ARITHMETIC_OVERFLOW`) if there are not as many numbers.
    pub fn note_numbers(&mut self, numbered: &[(usize, u64)]) -> Result<()> {
        if self.becoming.is_none() && numbered.iter().any(|(_, count)| *count > 0) {
            let configuration = lakesmith_delta::after_numbers(&self.base, numbered)?;
            self.becoming = Some((configuration, Arc::clone(&self.base)));
            self.numbers = true;
        }
        Ok(())
    }

    /// Commits it; the user's metadata is added to the edit's operation.
    ///
    /// # Errors
    /// Conflict with Spark's classes, Usage (`DELTA_CANNOT_MODIFY_APPEND_ONLY`), those of the storage. Nothing is committed
    /// then, unless the storage left that unknown.
    pub fn commit(self, mut edit: DataEdit) -> Result<Changed> {
        edit.operation.user_metadata.clone_from(&self.limits.user_metadata);
        let context = self.session.commit_context(Some(self.limits.commit_timeout_ms))?;
        let written = std::mem::take(&mut *self.visible.lock().unwrap_or_else(PoisonError::into_inner));
        let becoming = self.becoming.as_ref().map(|(configuration, table)| Becoming {
            configuration,
            table: table.as_ref(),
            numbers: self.numbers,
        });
        let commit = lakesmith_delta::commit_data(&self.store, &self.root, &self.base, &edit, becoming, &context);
        let (result, unused, proof) = match self.session.runtime.block_on(commit) {
            CommitResult::Committed(committed) => {
                let named: std::collections::HashSet<Location> =
                    edit.added.iter().chain(&edit.changes).map(|file| self.root.join(&file.path)).collect();
                let mut unused: Vec<Location> = written.into_iter().filter(|file| !named.contains(file)).collect();
                unused.extend(committed.unused);
                let proof = UncommittedProof { tried_versions: committed.versions_lost, all_taken_by_others: true };
                let changed = Changed { version: Some(committed.version), metrics: committed.metrics };
                (Ok(changed), unused, proof)
            }
            CommitResult::NothingLeft { versions_lost, unused, .. } => {
                let proof = UncommittedProof { tried_versions: versions_lost, all_taken_by_others: true };
                let changed = Changed { version: None, metrics: edit.metrics };
                (Ok(changed), written.into_iter().chain(unused).collect(), proof)
            }
            CommitResult::Failed { error, tried_versions, all_taken_by_others, unused } => {
                let proof = UncommittedProof { tried_versions, all_taken_by_others };
                (Err(error), written.into_iter().chain(unused).collect(), proof)
            }
        };
        sweep_uncommitted(self.session, &self.store, unused, proof);
        result
    }
}

impl Drop for RowChange<'_> {
    fn drop(&mut self) {
        let written = std::mem::take(&mut *self.visible.lock().unwrap_or_else(PoisonError::into_inner));
        sweep_uncommitted(self.session, &self.store, written, UncommittedProof::never_tried());
    }
}

/// A file that was written, as a commit adds it.
fn new_file(table: &DeltaTable, partition: PartitionTuple, written: WrittenFile) -> NewFile {
    NewFile {
        path: written.path,
        size: written.size,
        modified_ms: written.modified_ms,
        partition,
        stats: written.stats,
        marks: FileMarks { tags: lakesmith_delta::required_tags(table), ..FileMarks::default() },
    }
}

/// The name of a new file without its ending, in the folder of its partition.
fn stem(
    session_world: &dyn lakesmith_storage::World,
    table: &DeltaTable,
    partition: &PartitionTuple,
    n: usize,
) -> String {
    let uuid = session_world.new_uuid();
    let directory = lakesmith_delta::output_directory(table, partition, &uuid.simple().to_string()[..2]);
    format!("{directory}part-{n:05}-{uuid}")
}

/// A panic or an error of a thread that wrote.
pub(crate) fn broken_off() -> Error {
    Error::internal("a thread that wrote rows broke off; nothing is committed, please report this")
}
