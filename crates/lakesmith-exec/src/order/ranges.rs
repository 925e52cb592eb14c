//! The pass that writes: each thread merges ranges, one after another, into files.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use lakesmith_core::Result;

use super::Sorting;
use super::budget::Budget;
use super::merge::{MergeLimits, Merger, narrow};
use super::runs::Runs;
use super::team::{self, Worker};
use crate::output::{FinishedFile, OutputFile, OutputPlan};
use crate::rewrite::TaskContext;

/// What all threads of the pass share.
pub(crate) struct WritePass<'a> {
    /// Ordered runs.
    pub runs: &'a Runs,
    /// The order.
    pub sorting: &'a Sorting<'a>,
    /// Limits.
    pub budget: &'a Budget,
    /// How files are written.
    pub output: Arc<OutputPlan>,
    /// Bytes of progress that are left for this pass.
    pub progress_bytes: u64,
    /// Bytes that were spilled.
    pub spilled: &'a AtomicU64,
}

impl WritePass<'_> {
    /// Writes all files; they come in the order of their rows.
    ///
    /// # Errors
    /// Those of the storage and of spilling.
    pub(crate) fn run(&self, context: &TaskContext) -> Result<Vec<FinishedFile>> {
        let ranges = self.sorting.cuts.len() + 1;
        let threads = self.budget.threads.min(ranges);
        let next = AtomicUsize::new(0);
        let written = AtomicU64::new(0);
        let finished = team::run(context, threads, self.budget.share_bytes, |worker| {
            let mut finished = Vec::new();
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= ranges {
                    return Ok(finished);
                }
                self.write(worker, range, &written, &mut finished)?;
            }
        })?;
        let mut finished: Vec<_> = finished.into_iter().flatten().collect();
        finished.sort_by_key(|(place, _)| *place);
        Ok(finished.into_iter().map(|(_, file)| file).collect())
    }

    fn write(
        &self,
        worker: &Worker<'_>,
        range: usize,
        written: &AtomicU64,
        finished: &mut Vec<((usize, u64), FinishedFile)>,
    ) -> Result<()> {
        let mut rows = 0;
        let mut segments = Vec::new();
        for run in &self.runs.runs {
            let (segment, of_run) = run.segment(range);
            if of_run > 0 {
                rows += of_run;
                segments.push(segment);
            }
        }
        if rows == 0 {
            return Ok(());
        }
        let limits = MergeLimits {
            merge_bytes: self.budget.merge_bytes,
            batch_bytes: self.budget.batch_bytes,
            block_bytes: self.budget.block_bytes,
        };
        let mut spilled = 0;
        let segments = narrow(segments, self.sorting, limits, worker, &mut spilled)?;
        self.spilled.fetch_add(spilled, Ordering::Relaxed);
        let cap = self.output.write.max_rows_per_file.unwrap_or(u64::MAX).max(1);
        // Files that stay below the cap are equally long.
        let files = rows.div_ceil(cap);
        let end = |file: u64| (u128::from(rows) * u128::from(file + 1) / u128::from(files)) as u64;
        let ranges = self.sorting.cuts.len() as u64 + 1;
        let row_bytes = (self.runs.plain_bytes / self.runs.rows_in.max(1)).max(1);
        let mut merger = Merger::new(segments, self.sorting, limits, limits.batch_bytes)?;
        let (mut done, mut file) = (0, 0);
        let mut output: Option<OutputFile> = None;
        while let Some(batch) = merger.next_batch()? {
            let mut from = 0;
            while from < batch.num_rows() {
                worker.check()?;
                let out = match &mut output {
                    Some(out) => out,
                    none => {
                        let number = range as u64 + file * ranges;
                        let (store, runtime) = (&worker.context.store, &worker.context.control.runtime);
                        none.insert(OutputFile::start(&self.output, number as usize, store, runtime)?)
                    }
                };
                let fitting = usize::try_from(end(file) - done).unwrap_or(usize::MAX).max(1);
                let part = batch.slice(from, fitting.min(batch.num_rows() - from));
                out.write(&part, row_bytes)?;
                from += part.num_rows();
                done += part.num_rows() as u64;
                if done >= end(file) && file + 1 < files {
                    self.finish(worker, &mut output, (range, file), finished)?;
                    file += 1;
                }
            }
            self.advance(worker, written, batch.num_rows() as u64);
        }
        self.finish(worker, &mut output, (range, file), finished)
    }

    fn finish(
        &self,
        worker: &Worker<'_>,
        output: &mut Option<OutputFile>,
        place: (usize, u64),
        finished: &mut Vec<((usize, u64), FinishedFile)>,
    ) -> Result<()> {
        let Some(output) = output.take() else { return Ok(()) };
        let file = output.finish()?;
        worker.context.visible.lock().unwrap_or_else(PoisonError::into_inner).push(file.location.clone());
        finished.push((place, file));
        Ok(())
    }

    /// Tells progress of rows that were written.
    fn advance(&self, worker: &Worker<'_>, written: &AtomicU64, rows: u64) {
        let share = |rows: u64| {
            let part = u128::from(self.progress_bytes) * u128::from(rows) / u128::from(self.runs.rows_in.max(1));
            (part as u64).min(self.progress_bytes)
        };
        let before = written.fetch_add(rows, Ordering::Relaxed);
        worker.context.control.progress.advance(share(before + rows) - share(before), 0);
    }
}
