//! One task from inputs to checked outputs.
//!
//! The rows counted by the inputs' footers, less their deleted ones, must be the rows that the reopened outputs hold; else
//! nothing is returned.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use lakesmith_core::op::RewriteLimits;
use lakesmith_core::table::{DeletionVector, InputFile, LeftOut, RewriteOutcome, RewriteTask, RowMapSegment};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Progress, Store};

use crate::content_hash;
use crate::control::RewriteControl;
use crate::deletes::Deletes;
use crate::failure::{in_file, is_not_text};
use crate::file_plan::FilePlan;
use crate::file_read::{FileReader, Group, OpenFile};
use crate::merge::InputChunk;
use crate::opener::Opener;
use crate::order;
use crate::outcome::{self, Done};
use crate::output::{FinishedFile, OutputFile, OutputPlan};
use crate::prepare;
use crate::source::FileHandle;
use crate::target::{Strings, Target};
use crate::told_once::ToldOnce;
use crate::tracking::Positions;

/// First read of a footer when nothing better is known.
pub(crate) const TAIL_BYTES: u64 = 64 << 10;

/// Inputs that may fail halfway before the task is given up.
const BEGUN_AGAIN_MAX: usize = 16;

/// What a task may use.
#[derive(Debug, Clone)]
pub struct TaskContext {
    /// Storage of inputs, vectors and outputs.
    pub store: Store,
    /// Clock, progress, cancellation and runtime of the run.
    pub control: RewriteControl,
    /// Bytes that this task may hold.
    pub memory_bytes: u64,
    /// Threads that this task may use.
    pub threads: usize,
    /// Stops this task together with its run.
    pub stop: Cancel,
    /// Outputs that became visible, for sweeping if the task fails.
    pub visible: Arc<Mutex<Vec<Location>>>,
    /// What delete files delete, for all tasks of a run.
    pub deletes: Arc<Deletes>,
}

impl TaskContext {
    /// A context for one task that runs alone with all of the control's memory and threads; its delete files may take a
    /// quarter as much beside it.
    pub fn new(store: Store, control: RewriteControl) -> Self {
        let memory_bytes = control.memory_bytes;
        let threads = control.threads;
        let (runtime, cancel) = (control.runtime.clone(), control.cancel.clone());
        let deletes = Arc::new(Deletes::new(store.clone(), runtime, cancel, memory_bytes / 4));
        Self { store, control, memory_bytes, threads, stop: Cancel::default(), visible: Arc::default(), deletes }
    }

    /// The same context, watched by another.
    fn watched_by(&self, progress: Arc<dyn Progress>) -> Self {
        Self { control: RewriteControl { progress, ..self.control.clone() }, ..self.clone() }
    }

    /// Stops the task when the run is cancelled.
    ///
    /// # Errors
    /// Cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        self.control.cancel.check()?;
        self.stop.check()
    }

    pub(crate) fn handle(&self, location: &Location, size: u64) -> Arc<FileHandle> {
        Arc::new(FileHandle {
            store: self.store.clone(),
            location: location.clone(),
            size,
            runtime: self.control.runtime.clone(),
        })
    }
}

/// Runs a task on the calling thread, which must not be one of the runtime's.
///
/// On an error no partial object is left; outputs that were finished before it are in [`TaskContext::visible`].
///
/// # Errors
/// NotFound, Corrupt and Unsupported name the file; Cancelled; Internal if the rows don't add up; those of the storage.
pub fn rewrite(task: &RewriteTask, context: &TaskContext) -> Result<RewriteOutcome> {
    run(task, context, &mut Straight)
}

/// What stands between reading and writing, through which tests lose and change rows.
pub(crate) trait Between {
    /// A batch on its way.
    fn batch(&mut self, batch: RecordBatch) -> Option<RecordBatch>;

    /// Whether pages may be merged.
    fn merges(&self) -> bool;

    /// Chunks on their way.
    fn chunks(&mut self, chunks: &mut [InputChunk]);
}

struct Straight;

impl Between for Straight {
    fn batch(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        Some(batch)
    }

    fn merges(&self) -> bool {
        true
    }

    fn chunks(&mut self, _chunks: &mut [InputChunk]) {}
}

/// [`rewrite`] with something between reading and writing.
///
/// An input that fails halfway is left out by beginning again without it: the outputs, which have the same names, are
/// written over. Progress is told once of what is read twice.
pub(crate) fn run(task: &RewriteTask, context: &TaskContext, between: &mut dyn Between) -> Result<RewriteOutcome> {
    let mut task = Cow::Borrowed(task);
    let mut strings = Strings::Text;
    let mut left_out = Vec::new();
    let mut left_out_bytes = 0;
    let told = Arc::new(ToldOnce::new(Arc::clone(&context.control.progress)));
    let context = context.watched_by(told.clone());
    loop {
        let error = match attempt(&task, &context, strings, between) {
            Ok(mut outcome) => {
                outcome.left_out.append(&mut left_out);
                return Ok(outcome);
            }
            Err(error) => error,
        };
        let refused = task.inputs.iter().position(|i| error.context_value("path") == Some(i.location.as_str()));
        match refused {
            _ if strings == Strings::Text && is_not_text(&error) => strings = Strings::Bytes,
            Some(index) if error.kind() == ErrorKind::Unsupported && left_out.len() < BEGUN_AGAIN_MAX => {
                let input = task.to_mut().inputs.remove(index);
                left_out.push(LeftOut::new(&input, &error));
                left_out_bytes += input.size;
            }
            _ => return Err(error),
        }
        told.begin_again(left_out_bytes);
    }
}

fn attempt(
    task: &RewriteTask,
    context: &TaskContext,
    strings: Strings,
    between: &mut dyn Between,
) -> Result<RewriteOutcome> {
    context.check()?;
    if task.order.is_some() {
        return order::attempt(task, context, strings);
    }
    let writer_bytes = context.memory_bytes.max(RewriteLimits::MEMORY_BYTES_MIN) / 3;
    let (target, plan) = prepare::outputs(task, context, strings, writer_bytes)?;
    let mut rewriter = Rewriter {
        task,
        context,
        target,
        strings,
        left_out: Vec::new(),
        halfway: false,
        plan: Arc::new(plan),
        current: None,
        finished: Vec::new(),
        row_map: Vec::new(),
        rows_in: 0,
        hash: 0,
        between,
    };
    let mut opener = Opener::new(context, task.inputs.iter().map(|input| (input, ())))?;
    while let Some(opening) = opener.next()? {
        context.check()?;
        let input = opening.input;
        let opened = opening.wait(strings, &task.read);
        let copied = opened.and_then(|(file, deleted)| rewriter.copy(input, &file, deleted.as_ref()));
        match copied {
            Err(error) if error.kind() == ErrorKind::Unsupported && !rewriter.has_rows_of(input) => {
                rewriter.leave_out(input, &error);
            }
            other => other?,
        }
    }
    rewriter.finish()
}

struct Rewriter<'a> {
    task: &'a RewriteTask,
    context: &'a TaskContext,
    target: Target,
    strings: Strings,
    left_out: Vec<LeftOut>,
    /// Some columns got rows that others lack.
    halfway: bool,
    plan: Arc<OutputPlan>,
    current: Option<OutputFile>,
    finished: Vec<FinishedFile>,
    row_map: Vec<RowMapSegment>,
    rows_in: u64,
    hash: u64,
    between: &'a mut dyn Between,
}

/// Where a file is being read.
struct Place<'a> {
    input: &'a InputFile,
    file: &'a OpenFile,
    plan: &'a FilePlan,
    /// Positions of deleted rows that are still to come.
    deleted: Option<Peekable<Box<dyn Iterator<Item = u64> + 'a>>>,
    /// Rows read.
    position: u64,
    /// Live rows read.
    first_live: u64,
    /// All rows.
    rows: u64,
    /// Bytes that progress was told of.
    advanced: u64,
}

impl Place<'_> {
    fn miscounted(&self) -> Error {
        Error::corrupt(format!("the data file gave {} rows, its footer says {}", self.position, self.rows))
            .with("path", &self.input.location)
    }
}

impl Rewriter<'_> {
    /// True if rows of an input, or columns of them, are in an output.
    fn has_rows_of(&self, input: &InputFile) -> bool {
        self.row_map.last().is_some_and(|segment| segment.input == input.id) || self.halfway
    }

    fn leave_out(&mut self, input: &InputFile, error: &Error) {
        self.context.control.progress.advance(input.size, 0);
        self.left_out.push(LeftOut::new(input, error));
    }

    fn copy(&mut self, input: &InputFile, file: &OpenFile, deleted: Option<&DeletionVector>) -> Result<()> {
        let rows = file.footer.rows();
        let live = rows - deleted.map_or(0, DeletionVector::cardinality);
        if live == 0 {
            self.context.control.progress.advance(input.size, 0);
            return Ok(());
        }
        let plan = FilePlan::new(self.task, &self.target, &self.plan, input, file)?;
        self.filter(&plan.filtered)?;
        let memory = self.context.memory_bytes;
        let batch_bytes = (memory / 16).clamp(256 << 10, 16 << 20);
        let mut reader = FileReader::new(file, plan.roots(&|_| true), memory / 8, batch_bytes);
        let mut at = Place { input, file, plan: &plan, deleted: None, position: 0, first_live: 0, rows, advanced: 0 };
        at.deleted = deleted.map(|v| (Box::new(v.iter()) as Box<dyn Iterator<Item = u64>>).peekable());
        while let Some(group) = reader.next_group()? {
            self.context.check()?;
            let merged = self.merge(&mut at, &group)?;
            self.encode(&mut at, &reader, &group, merged.as_deref())?;
        }
        if at.position != rows {
            return Err(at.miscounted());
        }
        self.rows_in += live;
        Ok(())
    }

    /// Gives leaves bloom filters from here on: not every footer is looked at beforehand.
    fn filter(&mut self, leaves: &BTreeSet<Vec<String>>) -> Result<()> {
        let Some(plan) = self.plan.with_filters(leaves)? else { return Ok(()) };
        self.plan = Arc::new(plan);
        self.current.as_mut().map_or(Ok(()), |file| file.follow(&self.plan))
    }

    /// Merges those columns of a row group that can be. `None` if none was, and the row group may be cut anywhere; else
    /// all of its rows go into the same row group of the output.
    fn merge(&mut self, at: &mut Place<'_>, group: &Group) -> Result<Option<Vec<bool>>> {
        let end = at.position + group.rows;
        let whole = at.deleted.as_mut().is_none_or(|d| d.peek().is_none_or(|next| *next >= end));
        if !whole || !at.plan.merges() || !self.between.merges() {
            return Ok(None);
        }
        if self.current.as_ref().is_some_and(|file| file.rows() >= self.cap()) {
            self.roll()?;
        }
        let written = self.current.as_ref().map_or(0, OutputFile::rows);
        if group.rows > self.cap() - written {
            return Ok(None);
        }
        let bytes = file_bytes(at.file, group);
        let mut merged = vec![false; self.plan.roots.len()];
        let limit = self.plan.merge_bytes();
        if !self.output()?.make_room(group.rows, bytes)? {
            return Ok(None);
        }
        for (root, merged) in merged.iter_mut().enumerate() {
            let Some(mut chunks) = at.plan.chunks(root, at.file, group, limit)? else { continue };
            self.between.chunks(&mut chunks);
            *merged = self.output()?.merge(root, &chunks, group.rows)?;
            self.halfway |= *merged;
        }
        Ok(merged.contains(&true).then_some(merged))
    }

    /// Decodes and encodes what was not merged of a row group.
    fn encode(
        &mut self,
        at: &mut Place<'_>,
        reader: &FileReader<'_>,
        group: &Group,
        merged: Option<&[bool]>,
    ) -> Result<()> {
        let end = at.position + group.rows;
        let left = |root: usize| merged.is_none_or(|merged| !merged[root]);
        let wanted = |root: usize| self.task.verify || left(root);
        if (0..self.plan.roots.len()).any(wanted) {
            let mut batches = reader.decode(group, at.plan.roots(&wanted))?;
            while let Some(batch) = batches.next_batch()? {
                self.context.check()?;
                let read_rows = batch.num_rows() as u64;
                let (batch, listed) = match &mut at.deleted {
                    Some(deleted) => keep_live(batch, at.position, deleted, &at.input.location)?,
                    None => (batch, None),
                };
                if batch.num_rows() > 0 {
                    let positions = match &listed {
                        Some(list) => Positions::Listed(list),
                        None => Positions::From(at.position),
                    };
                    let adapted =
                        at.plan.adapt(self.task, &self.target, &batch, batches.roots(), positions, &wanted)?;
                    if self.task.verify {
                        content_hash::add(&mut self.hash, &adapted)?;
                    }
                    self.put(at, adapted, batches.row_bytes(), merged.is_some(), &left)?;
                }
                at.position += read_rows;
                self.advance(at, read_rows);
            }
            if merged.is_some() && at.position != end {
                return Err(at.miscounted());
            }
        } else {
            at.position = end;
            self.advance(at, group.rows);
        }
        if merged.is_some() {
            let number = self.finished.len() as u32;
            let file = self.output()?;
            let output_start = file.rows();
            file.end_rows(group.rows, group.row_bytes)?;
            self.halfway = false;
            let (input, first_live, rows) = (at.input.id, at.first_live, group.rows);
            append_segment(&mut self.row_map, RowMapSegment { input, first_live, rows, output: number, output_start });
            at.first_live += group.rows;
        }
        Ok(())
    }

    /// Hands a batch to the output: whole rows, or beside merged columns those that are `left`.
    fn put(
        &mut self,
        at: &mut Place<'_>,
        adapted: RecordBatch,
        row_bytes: u64,
        beside: bool,
        left: &dyn Fn(usize) -> bool,
    ) -> Result<()> {
        let live_rows = adapted.num_rows() as u64;
        let passed = self.between.batch(adapted);
        if !beside {
            if let Some(batch) = passed {
                self.write(at.input, at.first_live, &batch, row_bytes)?;
            }
            at.first_live += live_rows;
            return Ok(());
        }
        let Some(batch) = passed else { return Ok(()) };
        let roots = (0..self.plan.roots.len()).filter(|root| self.task.verify || left(*root));
        for (root, column) in roots.zip(batch.columns()).filter(|(root, _)| left(*root)) {
            self.output()?.encode(root, column)?;
        }
        Ok(())
    }

    fn advance(&self, at: &mut Place<'_>, rows: u64) {
        let share = (u128::from(at.input.size) * u128::from(at.position) / u128::from(at.rows.max(1))) as u64;
        self.context.control.progress.advance(share - at.advanced, rows);
        at.advanced = share;
    }

    /// Rows of an output at most.
    fn cap(&self) -> u64 {
        self.task.write.max_rows_per_file.unwrap_or(u64::MAX).max(1)
    }

    /// The output being written.
    fn output(&mut self) -> Result<&mut OutputFile> {
        let number = self.finished.len();
        match &mut self.current {
            Some(file) => Ok(file),
            none => {
                let runtime = &self.context.control.runtime;
                Ok(none.insert(OutputFile::start(&self.plan, number, &self.context.store, runtime)?))
            }
        }
    }

    fn write(&mut self, input: &InputFile, first_live: u64, batch: &RecordBatch, row_bytes: u64) -> Result<()> {
        let cap = self.cap();
        let total = batch.num_rows() as u64;
        let mut done = 0;
        while done < total {
            if self.current.as_ref().is_some_and(|file| file.rows() >= cap) {
                self.roll()?;
            }
            let number = self.finished.len();
            let file = self.output()?;
            let rows = (total - done).min(cap - file.rows());
            let output_start = file.rows();
            if rows == total {
                file.write(batch, row_bytes)?;
            } else {
                file.write(&batch.slice(done as usize, rows as usize), row_bytes)?;
            }
            let segment = RowMapSegment {
                input: input.id,
                first_live: first_live + done,
                rows,
                output: number as u32,
                output_start,
            };
            append_segment(&mut self.row_map, segment);
            done += rows;
        }
        Ok(())
    }

    fn roll(&mut self) -> Result<()> {
        if let Some(file) = self.current.take().filter(|file| file.rows() > 0) {
            let finished = file.finish()?;
            let mut visible = self.context.visible.lock().unwrap_or_else(PoisonError::into_inner);
            visible.push(finished.location.clone());
            drop(visible);
            self.finished.push(finished);
        }
        Ok(())
    }

    /// Closes the last output, reopens all of them and lets the rows add up.
    fn finish(mut self) -> Result<RewriteOutcome> {
        self.roll()?;
        let mapped: u64 = self.row_map.iter().map(|s| s.rows).sum();
        let done = Done {
            finished: self.finished,
            rows_in: self.rows_in,
            hash: self.hash,
            bytes_spilled: 0,
            left_out: self.left_out,
        };
        let outcome = done.check(self.task, self.context, self.strings)?;
        if mapped != outcome.rows_in {
            return Err(outcome::broken(
                self.task,
                format!("{mapped} rows are mapped, {} are in the outputs", outcome.rows_out),
            ));
        }
        Ok(RewriteOutcome { row_map: self.row_map, ..outcome })
    }
}

/// Uncompressed or stored bytes of a row group, whichever are fewer: what merging it adds to what is held, about.
fn file_bytes(file: &OpenFile, group: &Group) -> u64 {
    let columns = file.footer.metadata.row_group(group.index).columns();
    columns.iter().map(|c| u64::try_from(c.compressed_size().min(c.uncompressed_size())).unwrap_or(0)).sum()
}

fn append_segment(map: &mut Vec<RowMapSegment>, next: RowMapSegment) {
    if let Some(last) = map.last_mut()
        && last.input == next.input
        && last.output == next.output
        && last.first_live + last.rows == next.first_live
        && last.output_start + last.rows == next.output_start
    {
        last.rows += next.rows;
        return;
    }
    map.push(next);
}

/// Leaves deleted rows out; lists the physical positions of the rest when any was deleted.
pub(crate) fn keep_live(
    batch: RecordBatch,
    position: u64,
    deleted: &mut Peekable<impl Iterator<Item = u64>>,
    path: &str,
) -> Result<(RecordBatch, Option<Vec<u64>>)> {
    let end = position + batch.num_rows() as u64;
    if deleted.peek().is_none_or(|next| *next >= end) {
        return Ok((batch, None));
    }
    let mut keep = vec![true; batch.num_rows()];
    while let Some(row) = deleted.next_if(|row| *row < end) {
        keep[(row - position) as usize] = false;
    }
    let positions = keep.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| position + i as u64).collect();
    let batch = in_file(filter_record_batch(&batch, &BooleanArray::from(keep)), &path)?;
    Ok((batch, Some(positions)))
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rewrite_merge_tests.rs"]
mod merge_tests;
