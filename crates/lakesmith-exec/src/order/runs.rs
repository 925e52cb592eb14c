//! The pass over all rows: each thread reads consecutive inputs and leaves ordered runs, on disk if they are too many.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use lakesmith_core::table::{InputFile, LeftOut};
use lakesmith_core::{ErrorKind, Result};

use super::Sorting;
use super::budget::Budget;
use super::input::{Columns, Opened};
use super::merge::Segment;
use super::sample::Ordinal;
use super::shares::Shares;
use super::sorted::{Buffer, SortedRun};
use super::spill::{Block, SpillFile, SpillWriter};
use super::team::{self, Worker};
use crate::content_hash;
use crate::file_plan::FilePlan;
use crate::opener::Opener;
use crate::rewrite::TaskContext;
use crate::target::Strings;

/// What stands between reading and ordering, through which tests lose and change rows.
pub(crate) type Passage<'a> = dyn Fn(RecordBatch) -> Option<RecordBatch> + Sync + 'a;

/// Ordered rows.
pub(crate) enum Run {
    /// In memory.
    Memory(SortedRun),
    /// On disk, range by range.
    Spilled(Ordinal, Arc<SpillFile>, Vec<Vec<Block>>),
}

impl Run {
    fn first(&self) -> Ordinal {
        match self {
            Run::Memory(run) => run.first,
            Run::Spilled(first, ..) => *first,
        }
    }

    /// The rows of a range, and how many they are.
    pub(crate) fn segment(&self, range: usize) -> (Segment<'_>, u64) {
        match self {
            Run::Memory(run) => {
                let entries = run.range(range);
                let rows = entries.len() as u64;
                (Segment::Memory(run, entries), rows)
            }
            Run::Spilled(_, file, ranges) => {
                let rows = ranges[range].iter().map(|block| u64::from(block.rows)).sum();
                (Segment::Spilled(Arc::clone(file), ranges[range].clone()), rows)
            }
        }
    }
}

/// What the pass leaves.
#[derive(Default)]
pub(crate) struct Runs {
    /// All runs, in the order in which their rows came in.
    pub runs: Vec<Run>,
    /// Live rows of the inputs, by their footers, less the deleted ones.
    pub rows_in: u64,
    /// Their hash, if the task is to be verified.
    pub hash: u64,
    /// Inputs that hold something that is not rewritten.
    pub left_out: Vec<LeftOut>,
    /// Leaves with bloom filters.
    pub filtered: BTreeSet<Vec<String>>,
    /// Bytes of all rows, uncompressed, about.
    pub plain_bytes: u64,
    /// Bytes that progress was told of.
    pub advanced: u64,
}

impl Runs {
    fn add(&mut self, other: Runs) {
        self.runs.extend(other.runs);
        self.rows_in += other.rows_in;
        self.hash = self.hash.wrapping_add(other.hash);
        self.left_out.extend(other.left_out);
        self.filtered.extend(other.filtered);
        self.plain_bytes = self.plain_bytes.saturating_add(other.plain_bytes);
        self.advanced += other.advanced;
    }
}

/// What all threads of the pass share.
pub(crate) struct RunPass<'a> {
    /// The task and its columns.
    pub columns: &'a Columns<'a>,
    /// The order.
    pub sorting: &'a Sorting<'a>,
    /// Limits.
    pub budget: &'a Budget,
    /// How strings are read.
    pub strings: Strings,
    /// What tests do to rows.
    pub passage: &'a Passage<'a>,
    /// Bytes that were spilled.
    pub spilled: &'a AtomicU64,
}

impl RunPass<'_> {
    /// Reads all inputs.
    ///
    /// # Errors
    /// Those of reading and spilling; an unsupported input of which rows are in a run already.
    pub(crate) fn run(&self, context: &TaskContext) -> Result<Runs> {
        let inputs = &self.columns.task.inputs;
        let threads = self.budget.threads.min(inputs.len()).max(1);
        let shares = Shares::new(inputs.iter().map(|input| input.size), threads);
        let share_bytes = self.budget.share_bytes;
        let left = team::run(context, threads, share_bytes, |worker| self.read(worker, &shares))?;
        let mut all = Runs::default();
        left.into_iter().for_each(|runs| all.add(runs));
        // Either all rows are in memory while files are written, or none.
        if all.runs.iter().any(|run| matches!(run, Run::Spilled(..))) {
            let waiting = Mutex::new(std::mem::take(&mut all.runs));
            let spilled = team::run(context, threads, share_bytes, |worker| {
                let mut spill = None;
                let mut done = Vec::new();
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
                while let Some(run) = next() {
                    done.push(match run {
                        Run::Memory(run) => self.spill(worker, run, &mut spill)?,
                        other => other,
                    });
                }
                Ok(done)
            })?;
            all.runs = spilled.into_iter().flatten().collect();
        }
        all.runs.sort_by_key(Run::first);
        let number = |left: &LeftOut| inputs.iter().position(|input| input.id == left.input);
        all.left_out.sort_by_key(number);
        Ok(all)
    }

    fn read(&self, worker: &Worker<'_>, shares: &Shares) -> Result<Runs> {
        let inputs = &self.columns.task.inputs;
        let mut reader = Reader {
            pass: self,
            worker,
            buffer: Buffer::new(self.sorting, self.budget.buffer_bytes),
            sealed: Vec::new(),
            sealed_bytes: 0,
            spill: None,
            left: Runs::default(),
        };
        let claims = std::iter::from_fn(|| shares.claim(worker.number)).map(|number| (&inputs[number], number));
        let mut opener = Opener::new(&worker.context, claims)?;
        let mut next = None;
        while let Some(opening) = opener.next()? {
            worker.check()?;
            let (input, number) = (opening.input, opening.tag);
            if next.is_some_and(|next| next != number) {
                reader.seal()?;
            }
            next = Some(number + 1);
            let mut begun = false;
            let read = opening
                .wait(self.strings, &self.columns.task.read)
                .and_then(|(file, deleted)| reader.take(&Opened { input, file, deleted }, number as u32, &mut begun));
            match read {
                Err(error) if error.kind() == ErrorKind::Unsupported && !begun => {
                    reader.advance(input.size, 0);
                    reader.left.left_out.push(LeftOut::new(input, &error));
                }
                other => other?,
            }
        }
        reader.seal()?;
        reader.left.runs.extend(reader.sealed.into_iter().map(Run::Memory));
        Ok(reader.left)
    }

    fn spill(&self, worker: &Worker<'_>, run: SortedRun, writer: &mut Option<SpillWriter>) -> Result<Run> {
        let writer = match writer {
            Some(writer) => writer,
            none => none.insert(SpillWriter::new(&worker.context.control.spill_folder, &self.sorting.schema)?),
        };
        let before = writer.length;
        let mut ranges = Vec::with_capacity(run.ranges());
        for range in 0..run.ranges() {
            let mut blocks = Vec::new();
            run.blocks(range, self.budget.block_bytes, &mut |batch, _| {
                worker.check()?;
                blocks.push(writer.append(&batch)?);
                Ok(())
            })?;
            ranges.push(blocks);
        }
        self.spilled.fetch_add(writer.length - before, Ordering::Relaxed);
        Ok(Run::Spilled(run.first, writer.file(), ranges))
    }
}

/// One thread of the pass.
struct Reader<'a> {
    pass: &'a RunPass<'a>,
    worker: &'a Worker<'a>,
    buffer: Buffer<'a>,
    /// Runs that end where another thread's rows begin, still in memory.
    sealed: Vec<SortedRun>,
    sealed_bytes: u64,
    spill: Option<SpillWriter>,
    left: Runs,
}

impl Reader<'_> {
    /// Takes the rows of an input in; `begun` tells whether any came.
    fn take(&mut self, opened: &Opened<'_>, number: u32, begun: &mut bool) -> Result<()> {
        let columns = self.pass.columns;
        let (input, rows) = (opened.input, opened.file.footer.rows());
        if opened.live_before(rows) == 0 {
            self.advance(input.size, 0);
            return Ok(());
        }
        let plan = FilePlan::new(columns.task, columns.target, columns.output, input, &opened.file)?;
        let mut told = 0;
        let promised = opened.read(columns, &plan, self.pass.budget, &|_| true, &mut |live| {
            self.worker.check()?;
            let share = half(input, live.position, rows);
            self.advance(share - told, live.read);
            told = share;
            let live_rows = live.batch.num_rows() as u64;
            if live_rows == 0 {
                return Ok(());
            }
            *begun = true;
            self.left.plain_bytes = self.left.plain_bytes.saturating_add(live.row_bytes.saturating_mul(live_rows));
            if columns.task.verify {
                content_hash::add(&mut self.left.hash, &live.batch)?;
            }
            let Some(batch) = (self.pass.passage)(live.batch) else { return Ok(()) };
            self.buffer.push(batch, (number, live.first_live))?;
            if self.buffer.bytes + self.sealed_bytes >= self.pass.budget.buffer_bytes { self.spill() } else { Ok(()) }
        })?;
        self.left.filtered.extend(plan.filtered);
        self.left.rows_in += promised;
        Ok(())
    }

    fn advance(&mut self, bytes: u64, rows: u64) {
        self.left.advanced += bytes;
        self.worker.context.control.progress.advance(bytes, rows);
    }

    fn seal(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            let run = self.buffer.seal()?;
            self.sealed_bytes += run.bytes;
            self.sealed.push(run);
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.seal()?;
        for run in std::mem::take(&mut self.sealed) {
            let spilled = self.pass.spill(self.worker, run, &mut self.spill)?;
            self.left.runs.push(spilled);
        }
        self.sealed_bytes = 0;
        Ok(())
    }
}

/// Half of the bytes of an input up to a position.
fn half(input: &InputFile, position: u64, rows: u64) -> u64 {
    (u128::from(input.size) * u128::from(position) / u128::from(rows.max(1)) / 2) as u64
}
