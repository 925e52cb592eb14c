//! One task from inputs to checked outputs.
//!
//! The rows counted by the inputs' footers, less their vectors, must be the rows that the reopened outputs hold; else
//! nothing is returned.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use lakesmith_core::table::{
    DataType, DeletionVector, Field, InputFile, LeftOut, RewriteOutcome, RewriteTask, RowMapSegment, WrittenFile,
};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};
use parquet::basic::LogicalType;
use parquet::schema::types::Type;
use tokio::task::JoinHandle;

use crate::adapt::{self, ColumnPlan};
use crate::calendar;
use crate::constants;
use crate::content_hash;
use crate::control::RewriteControl;
use crate::encoding::EncodingChoice;
use crate::failure::{does_not_fit, in_file, is_not_text};
use crate::file_read::{FileReader, OpenFile};
use crate::footer::{self, Footer};
use crate::output::{FinishedFile, OutputFile, OutputPlan};
use crate::source::FileHandle;
use crate::target::{Strings, Target};
use crate::tracking::{Positions, TrackingPlan};
use crate::vector;

/// First read of a footer when nothing better is known.
const TAIL_BYTES: u64 = 64 << 10;
/// Footers looked at to choose codec and dictionaries.
const SAMPLED_FOOTERS: usize = 16;
/// Inputs opened ahead of the one being read.
const OPEN_AHEAD: usize = 3;

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
    /// Stops this task together with its run.
    pub stop: Cancel,
    /// Outputs that became visible, for sweeping if the task fails.
    pub visible: Arc<Mutex<Vec<Location>>>,
}

impl TaskContext {
    /// A context for one task that runs alone with all of the control's memory.
    pub fn new(store: Store, control: RewriteControl) -> Self {
        let memory_bytes = control.memory_bytes;
        Self { store, control, memory_bytes, stop: Cancel::default(), visible: Arc::default() }
    }

    fn check(&self) -> Result<()> {
        self.control.cancel.check()?;
        self.stop.check()
    }

    fn handle(&self, location: &Location, size: u64) -> Arc<FileHandle> {
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
    run(task, context, &mut |batch| Some(batch))
}

/// [`rewrite`] with a hook between reading and writing, through which tests lose batches.
///
/// An input that fails halfway is left out by beginning again without it: the outputs, which have the same names, are
/// written over.
pub(crate) fn run(
    task: &RewriteTask,
    context: &TaskContext,
    pass: &mut dyn FnMut(RecordBatch) -> Option<RecordBatch>,
) -> Result<RewriteOutcome> {
    let mut task = Cow::Borrowed(task);
    let mut strings = Strings::Text;
    let mut left_out = Vec::new();
    loop {
        let error = match attempt(&task, context, strings, pass) {
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
            }
            _ => return Err(error),
        }
    }
}

fn attempt(
    task: &RewriteTask,
    context: &TaskContext,
    strings: Strings,
    pass: &mut dyn FnMut(RecordBatch) -> Option<RecordBatch>,
) -> Result<RewriteOutcome> {
    context.check()?;
    let root = Location::from_canonical(&task.root)?;
    let (choice, annotate_variant) = sample(task, context)?;
    let target = Target::new(&task.read, &task.write, annotate_variant, strings)?;
    let mut plan = OutputPlan::new(
        (Arc::clone(&target.schema), Arc::clone(&target.declared)),
        Arc::clone(&task.write),
        root,
        task.output_stem.clone(),
        &choice,
        (context.memory_bytes / 3).max(4 << 20),
    )?;
    // No file holds a VOID column, so it has no statistics either.
    plan.stats_leaves.retain(|path| !is_void(&task.read.schema.fields, path));
    let mut rewriter = Rewriter {
        task,
        context,
        target,
        strings,
        left_out: Vec::new(),
        plan: Arc::new(plan),
        current: None,
        finished: Vec::new(),
        row_map: Vec::new(),
        rows_in: 0,
        hash: 0,
        pass,
    };
    let mut opener = Opener::new(task, context)?;
    for input in &task.inputs {
        context.check()?;
        let copied = opener.next(strings).and_then(|(file, vector)| rewriter.copy(input, &file, vector.as_ref()));
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
    plan: Arc<OutputPlan>,
    current: Option<OutputFile>,
    finished: Vec<FinishedFile>,
    row_map: Vec<RowMapSegment>,
    rows_in: u64,
    hash: u64,
    pass: &'a mut dyn FnMut(RecordBatch) -> Option<RecordBatch>,
}

impl Rewriter<'_> {
    fn has_rows_of(&self, input: &InputFile) -> bool {
        self.row_map.last().is_some_and(|segment| segment.input == input.id)
    }

    fn leave_out(&mut self, input: &InputFile, error: &Error) {
        self.context.control.progress.advance(input.size, 0);
        self.left_out.push(LeftOut::new(input, error));
    }

    fn copy(&mut self, input: &InputFile, file: &OpenFile, vector: Option<&DeletionVector>) -> Result<()> {
        let rows = file.footer.rows();
        let live = rows - vector.map_or(0, DeletionVector::cardinality);
        if live == 0 {
            self.context.control.progress.advance(input.size, 0);
            return Ok(());
        }
        let plan = FilePlan::new(self.task, &self.target, input, file)?;
        let memory = self.context.memory_bytes;
        let batch_bytes = (memory / 16).clamp(256 << 10, 16 << 20);
        let mut reader = FileReader::new(file, plan.roots(), memory / 8, batch_bytes);
        let mut deleted = vector.map(|v| v.iter().peekable());
        let (mut position, mut first_live, mut advanced) = (0u64, 0u64, 0u64);
        while let Some(batch) = reader.next_batch()? {
            self.context.check()?;
            let read_rows = batch.num_rows() as u64;
            let (batch, listed) = match &mut deleted {
                Some(deleted) => keep_live(batch, position, deleted, &input.location)?,
                None => (batch, None),
            };
            if batch.num_rows() > 0 {
                let positions = match &listed {
                    Some(list) => Positions::Listed(list),
                    None => Positions::From(position),
                };
                let adapted = plan.adapt(self.task, &self.target, &batch, reader.roots(), positions)?;
                if self.task.verify {
                    content_hash::add(&mut self.hash, &adapted)?;
                }
                let live_rows = adapted.num_rows() as u64;
                if let Some(adapted) = (self.pass)(adapted) {
                    self.write(input, first_live, &adapted, reader.row_bytes())?;
                }
                first_live += live_rows;
            }
            position += read_rows;
            let share = (u128::from(input.size) * u128::from(position) / u128::from(rows.max(1))) as u64;
            self.context.control.progress.advance(share - advanced, read_rows);
            advanced = share;
        }
        if position != rows {
            return Err(Error::corrupt(format!("the data file gave {position} rows, its footer says {rows}"))
                .with("path", &input.location));
        }
        self.rows_in += live;
        Ok(())
    }

    fn write(&mut self, input: &InputFile, first_live: u64, batch: &RecordBatch, row_bytes: u64) -> Result<()> {
        let cap = self.task.write.max_rows_per_file.unwrap_or(u64::MAX).max(1);
        let total = batch.num_rows() as u64;
        let mut done = 0;
        while done < total {
            if self.current.as_ref().is_some_and(|file| file.rows() >= cap) {
                self.roll()?;
            }
            let number = self.finished.len();
            let file = match &mut self.current {
                Some(file) => file,
                none => none.insert(OutputFile::start(
                    &self.plan,
                    number,
                    &self.context.store,
                    &self.context.control.runtime,
                )?),
            };
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
        if let Some(file) = self.current.take() {
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
        let mut outputs = Vec::with_capacity(self.finished.len());
        let (mut rows_out, mut bytes_out, mut hash_out) = (0, 0, 0u64);
        for file in self.finished {
            self.context.check()?;
            let handle = self.context.handle(&file.location, file.size);
            let footer = self.context.control.runtime.block_on(footer::read(
                &self.context.store,
                &file.location,
                file.size,
                TAIL_BYTES,
            ))?;
            let rows = footer.rows();
            if self.task.verify {
                hash_file(&mut hash_out, handle, footer, self.context, self.strings)?;
            }
            rows_out += rows;
            bytes_out += file.size;
            let modified_ms = self.context.control.now_ms.now_ms();
            outputs.push(WrittenFile { path: file.path, size: file.size, rows, stats: file.stats, modified_ms });
        }
        let is_left_out = |input: &InputFile| self.left_out.iter().any(|l| l.input == input.id);
        let mapped: u64 = self.row_map.iter().map(|s| s.rows).sum();
        let counted: u64 = outputs.iter().map(|o| o.stats.rows).sum();
        if rows_out != self.rows_in || mapped != self.rows_in || counted != self.rows_in {
            return Err(broken(
                self.task,
                format!("{} rows went in, {rows_out} rows are in the outputs", self.rows_in),
            ));
        }
        if self.task.verify && hash_out != self.hash {
            return Err(broken(self.task, "the outputs hold other values than the inputs".to_owned()));
        }
        Ok(RewriteOutcome {
            task: self.task.id,
            outputs,
            row_map: self.row_map,
            rows_in: self.rows_in,
            rows_out,
            bytes_in: self.task.inputs.iter().filter(|i| !is_left_out(i)).map(|i| i.size).sum(),
            bytes_out,
            content_hash: self.task.verify.then_some(hash_out),
            left_out: self.left_out,
        })
    }
}

fn is_void(fields: &[Field], path: &[String]) -> bool {
    let Some((name, rest)) = path.split_first() else { return false };
    match fields.iter().find(|f| f.physical == *name).map(|f| &f.data_type) {
        Some(DataType::Null) => true,
        Some(DataType::Struct(children)) => is_void(children, rest),
        _ => false,
    }
}

fn broken(task: &RewriteTask, what: String) -> Error {
    let inputs: Vec<&str> = task.inputs.iter().take(5).map(|i| i.location.as_str()).collect();
    Error::internal(format!("{what}; nothing is committed, please report this"))
        .with("task", task.id)
        .with("inputs", inputs.join(", "))
        .with("outputs", format!("{}/{}.*", task.root, task.output_stem))
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
    deleted: &mut std::iter::Peekable<impl Iterator<Item = u64>>,
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

/// How the batches of one file become output batches.
struct FilePlan {
    columns: Vec<ColumnPlan>,
    tracking: Option<TrackingPlan>,
    legacy: bool,
    path: String,
}

impl FilePlan {
    fn new(task: &RewriteTask, target: &Target, input: &InputFile, file: &OpenFile) -> Result<Self> {
        let data_fields = &target.schema.fields()[..target.data.len()];
        let columns = adapt::plan(&target.data, data_fields, file.fields(), task.read.match_by_id)
            .map_err(|e| e.with("path", &input.location))?;
        let tracking = match &task.write.row_tracking {
            Some(columns) => Some(TrackingPlan::new(columns, file.fields(), input)?),
            None => None,
        };
        let legacy = calendar::is_legacy(file.footer.metadata.file_metadata());
        Ok(Self { columns, tracking, legacy, path: input.location.clone() })
    }

    fn roots(&self) -> Vec<usize> {
        let tracking = self.tracking.iter().flat_map(|t| [t.row_id, t.commit_version]).flatten();
        self.columns.iter().filter_map(|c| c.source).chain(tracking).collect()
    }

    fn adapt(
        &self,
        task: &RewriteTask,
        target: &Target,
        batch: &RecordBatch,
        roots: &[usize],
        positions: Positions<'_>,
    ) -> Result<RecordBatch> {
        let column = |root: usize| -> Result<&ArrayRef> {
            roots
                .binary_search(&root)
                .ok()
                .filter(|i| *i < batch.num_columns())
                .map(|i| batch.column(i))
                .ok_or_else(|| Error::internal("a column that was asked for was not read").with("path", &self.path))
        };
        let rows = batch.num_rows();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(target.schema.fields().len());
        for plan in &self.columns {
            let to = plan.field.data_type();
            let array = match plan.source {
                Some(root) => adapt::apply(&plan.adapt, column(root)?, to)
                    .map_err(|e| does_not_fit(e, &self.path).with("column", plan.field.name()))?,
                None => arrow::array::new_null_array(to, rows),
            };
            if self.legacy {
                calendar::check(array.as_ref(), plan.field.name(), &self.path)?;
            }
            arrays.push(array);
        }
        for index in &task.write.partition_indexes {
            let value =
                task.partition.values.get(*index).ok_or_else(|| {
                    Error::internal("a partition column to be written has no value").with("index", index)
                })?;
            let Some(field) = target.schema.fields().get(arrays.len()) else { break };
            arrays.push(constants::repeat(value, field.data_type(), rows)?);
        }
        if let Some(tracking) = &self.tracking {
            let materialised =
                [tracking.row_id.map(&column).transpose()?, tracking.commit_version.map(&column).transpose()?];
            arrays.extend(tracking.columns(materialised, positions, rows)?);
        }
        in_file(RecordBatch::try_new(Arc::clone(&target.schema), arrays), &self.path)
    }
}

fn hash_file(
    hash: &mut u64,
    handle: Arc<FileHandle>,
    footer: Footer,
    context: &TaskContext,
    strings: Strings,
) -> Result<()> {
    let file = OpenFile::new(handle, footer, strings)?;
    let roots = (0..file.fields().len()).collect();
    let mut reader = FileReader::new(&file, roots, context.memory_bytes / 8, (context.memory_bytes / 16).min(16 << 20));
    while let Some(batch) = reader.next_batch()? {
        context.check()?;
        content_hash::add(hash, &batch)?;
    }
    Ok(())
}

/// Looks at some inputs' footers: codec, dictionaries, and whether variants carry the annotation.
fn sample(task: &RewriteTask, context: &TaskContext) -> Result<(EncodingChoice, bool)> {
    let mut choice = EncodingChoice::default();
    let mut annotated = false;
    let step = task.inputs.len().div_ceil(SAMPLED_FOOTERS).max(1);
    for input in task.inputs.iter().step_by(step) {
        context.check()?;
        let location = Location::from_canonical(&input.location)?;
        let read = footer::read(&context.store, &location, input.size, TAIL_BYTES);
        let footer = context.control.runtime.block_on(read)?;
        choice.observe(&footer.metadata);
        annotated |= has_variant(footer.metadata.file_metadata().schema());
    }
    Ok((choice, annotated))
}

fn has_variant(stored: &Type) -> bool {
    matches!(stored.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_)))
        || stored.is_group() && stored.get_fields().iter().any(|t| has_variant(t))
}

type Opened = (Footer, Option<DeletionVector>);

/// Opens inputs in order, a few ahead.
struct Opener<'a> {
    task: &'a RewriteTask,
    context: &'a TaskContext,
    started: usize,
    taken: usize,
    on_the_way: VecDeque<JoinHandle<Result<Opened>>>,
}

impl<'a> Opener<'a> {
    fn new(task: &'a RewriteTask, context: &'a TaskContext) -> Result<Self> {
        let mut opener = Self { task, context, started: 0, taken: 0, on_the_way: VecDeque::new() };
        opener.start()?;
        Ok(opener)
    }

    fn start(&mut self) -> Result<()> {
        while self.on_the_way.len() <= OPEN_AHEAD && self.started < self.task.inputs.len() {
            let input = self.task.inputs[self.started].clone();
            let location = Location::from_canonical(&input.location)?;
            let store = self.context.store.clone();
            // A small file comes whole with its footer, in one request.
            let whole = self.context.memory_bytes / (8 * (OPEN_AHEAD as u64 + 2));
            let guess = if input.size <= whole { input.size } else { TAIL_BYTES };
            self.on_the_way.push_back(self.context.control.runtime.spawn(open(store, location, input, guess)));
            self.started += 1;
        }
        Ok(())
    }

    fn next(&mut self, strings: Strings) -> Result<(OpenFile, Option<DeletionVector>)> {
        self.start()?;
        let input = &self.task.inputs[self.taken];
        self.taken += 1;
        let Some(mut opening) = self.on_the_way.pop_front() else {
            return Err(Error::internal("no input is left to open"));
        };
        let (footer, vector) = self.context.control.runtime.block_on(&mut opening).map_err(|e| {
            Error::internal("opening an input was stopped").with("path", &input.location).caused_by(e)
        })??;
        let location = Location::from_canonical(&input.location)?;
        Ok((OpenFile::new(self.context.handle(&location, input.size), footer, strings)?, vector))
    }
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.on_the_way.iter().for_each(JoinHandle::abort);
    }
}

async fn open(store: Store, location: Location, input: InputFile, guess: u64) -> Result<Opened> {
    let footer = footer::read(&store, &location, input.size, guess).await?;
    let rows = footer.rows();
    if input.rows.is_some_and(|expected| expected != rows) {
        return Err(Error::corrupt(format!(
            "the data file holds {rows} rows, the log says {}; one of them is wrong, so it is not rewritten",
            input.rows.unwrap_or(0)
        ))
        .with("path", &input.location));
    }
    let vector = match &input.deletes {
        Some(info) => Some(vector::load(&store, info, rows, &input.location).await?),
        None => None,
    };
    Ok((footer, vector))
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
