//! A task whose rows get an order: an external sort by all cores within the memory of the task.
//!
//! ```text
//! sample (keys of some rows) -> primary (ranks), cuts (where files begin)
//! runs   (all rows, in memory or spilled in order, range by range) -> ranges (merge, one range at a time) -> files
//! ```
//!
//! Rows are ordered by a number (the first key, its rank, or the place on a curve), then by all keys, then as they came in.

mod budget;
mod cuts;
mod input;
mod keys;
mod merge;
mod primary;
mod ranges;
mod runs;
mod sample;
mod shares;
mod sorted;
mod spill;
mod team;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::datatypes::SchemaRef;
use lakesmith_core::layout::RowOrder;
use lakesmith_core::table::{RewriteOutcome, RewriteTask};
use lakesmith_core::{Error, Result};

use self::budget::Budget;
use self::cuts::Cut;
use self::input::Columns;
use self::primary::Primary;
use self::ranges::WritePass;
use self::runs::{Passage, RunPass};
use self::sample::Sample;
use crate::outcome::Done;
use crate::prepare;
use crate::rewrite::TaskContext;
use crate::target::Strings;

/// The order of a task's rows, as it is carried out.
pub(crate) struct Sorting<'a> {
    order: &'a RowOrder,
    schema: SchemaRef,
    primary: Primary,
    cuts: Vec<Cut>,
}

/// Runs a task that has an order.
///
/// # Errors
/// Those of [`crate::rewrite`], Limit if the disk is full.
pub(crate) fn attempt(task: &RewriteTask, context: &TaskContext, strings: Strings) -> Result<RewriteOutcome> {
    let budget = Budget::new(context.memory_bytes, context.threads);
    attempt_within(task, context, strings, budget, &Some)
}

fn attempt_within(
    task: &RewriteTask,
    context: &TaskContext,
    strings: Strings,
    mut budget: Budget,
    passage: &Passage<'_>,
) -> Result<RewriteOutcome> {
    context.check()?;
    let order = task.order.as_ref().ok_or_else(|| Error::internal("a task without an order cannot be ordered"))?;
    let (target, output) = prepare::outputs(task, context, strings, budget.writer_bytes)?;
    let roots = order.keys.iter().map(|key| target.schema.index_of(key.path.first().map_or("", String::as_str)));
    let roots: Vec<usize> = roots
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| Error::internal("a column that rows are ordered by is not written").caused_by(e))?;
    let is_key = |root: usize| roots.contains(&root);
    let of_keys = Columns { task, target: &target, output: &output, wanted: &is_key };
    let sample = if order.files > 1 || Primary::needs_sample(order) {
        sample::take(&of_keys, &order.keys, order.files, context, strings, &budget)?
    } else {
        Sample::default()
    };
    let primary = Primary::new(order, sample.rows.iter().map(|row| &*row.keys));
    let cuts = cuts::cuts(sample, &primary, order.files);
    let sorting = Sorting { order, schema: Arc::clone(&target.schema), primary, cuts };
    let stored: u64 = task.inputs.iter().map(|input| input.size).sum();
    budget.expect_stored(stored);
    let spilled = AtomicU64::new(0);
    let columns = Columns { task, target: &target, output: &output, wanted: &|_| true };
    let pass = RunPass { columns: &columns, sorting: &sorting, budget: &budget, strings, passage, spilled: &spilled };
    let runs = pass.run(context)?;
    let output = output.with_filters(&runs.filtered)?.unwrap_or_else(|| output.clone());
    let pass = WritePass {
        runs: &runs,
        sorting: &sorting,
        budget: &budget,
        output: Arc::new(output),
        progress_bytes: stored.saturating_sub(runs.advanced),
        spilled: &spilled,
    };
    let finished = pass.run(context)?;
    Done {
        finished,
        rows_in: runs.rows_in,
        hash: runs.hash,
        bytes_spilled: spilled.into_inner(),
        left_out: runs.left_out,
    }
    .check(task, context, strings)
}

#[cfg(test)]
mod tests;
