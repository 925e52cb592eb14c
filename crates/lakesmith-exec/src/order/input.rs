//! Live rows of an input, adapted to the outputs.

use arrow::array::RecordBatch;
use lakesmith_core::table::{DeletionVector, InputFile, RewriteTask};
use lakesmith_core::{Error, Result};

use super::budget::Budget;
use crate::file_plan::FilePlan;
use crate::file_read::{FileReader, OpenFile};
use crate::output::OutputPlan;
use crate::rewrite::keep_live;
use crate::target::Target;
use crate::tracking::Positions;

/// What reading needs besides an input.
pub(crate) struct Columns<'a> {
    /// The task.
    pub task: &'a RewriteTask,
    /// Columns of the outputs.
    pub target: &'a Target,
    /// How they are written.
    pub output: &'a OutputPlan,
    /// Which of them are read.
    pub wanted: &'a (dyn Fn(usize) -> bool + Sync),
}

/// An opened input.
pub(crate) struct Opened<'a> {
    /// The input.
    pub input: &'a InputFile,
    /// Its file.
    pub file: OpenFile,
    /// Rows to leave out.
    pub deleted: Option<DeletionVector>,
}

/// A batch of live rows, and possibly none.
pub(crate) struct LiveRows {
    /// The wanted columns.
    pub batch: RecordBatch,
    /// Index of the first row among the live rows of the input.
    pub first_live: u64,
    /// Rows of the input up to here, deleted ones too.
    pub position: u64,
    /// Rows that were read for it.
    pub read: u64,
    /// Uncompressed bytes of a row, about.
    pub row_bytes: u64,
}

impl Opened<'_> {
    /// Live rows before a position.
    pub(crate) fn live_before(&self, position: u64) -> u64 {
        position - self.deleted.as_ref().map_or(0, |v| v.rank(position))
    }

    /// Hands out the live rows of those row groups that are `wanted`, in order; returns how many the footer promises.
    ///
    /// # Errors
    /// Unsupported, Corrupt and Internal name the file; those of the storage and of `each`.
    pub(crate) fn read(
        &self,
        columns: &Columns<'_>,
        plan: &FilePlan,
        budget: &Budget,
        wanted: &dyn Fn(usize) -> bool,
        each: &mut dyn FnMut(LiveRows) -> Result<()>,
    ) -> Result<u64> {
        let starts = self.starts();
        let mut reader =
            FileReader::new(&self.file, plan.roots(columns.wanted), budget.window_bytes, budget.batch_bytes)
                .only(wanted);
        let mut promised = 0;
        while let Some(group) = reader.next_group()? {
            let mut position = starts[group.index];
            let end = position + group.rows;
            promised += self.live_before(end) - self.live_before(position);
            let mut deleted =
                self.deleted.as_ref().map(|v| v.iter().skip_while(|row| *row < starts[group.index]).peekable());
            let mut batches = reader.decode(&group, plan.roots(columns.wanted))?;
            while let Some(batch) = batches.next_batch()? {
                let read = batch.num_rows() as u64;
                let first_live = self.live_before(position);
                let (batch, listed) = match &mut deleted {
                    Some(deleted) => keep_live(batch, position, deleted, &self.input.location)?,
                    None => (batch, None),
                };
                let positions = match &listed {
                    Some(list) => Positions::Listed(list),
                    None => Positions::From(position),
                };
                let batch =
                    plan.adapt(columns.task, columns.target, &batch, batches.roots(), positions, columns.wanted)?;
                position += read;
                each(LiveRows { batch, first_live, position, read, row_bytes: batches.row_bytes() })?;
            }
            if position != end {
                let text = format!("the data file gave {position} rows where its footer says {end}");
                return Err(Error::corrupt(text).with("path", &self.input.location));
            }
        }
        Ok(promised)
    }

    /// First rows of the row groups.
    pub(crate) fn starts(&self) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut next = 0;
        for group in self.file.footer.metadata.row_groups() {
            starts.push(next);
            next += u64::try_from(group.num_rows()).unwrap_or(0);
        }
        starts
    }
}
