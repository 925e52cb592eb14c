//! Keys of some rows, evenly over all of them, from which ranges and cuts are made.
//!
//! Probes stand at equal distances over the rows of all inputs. Where one falls, a number of rows of its row group are taken;
//! of small tasks all rows are. What is taken depends on nothing but the inputs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lakesmith_core::layout::OrderKey;
use lakesmith_core::table::InputFile;
use lakesmith_core::{ErrorKind, Result};

use super::budget::Budget;
use super::input::{Columns, Opened};
use super::keys::{Keys, OwnedKey};
use super::team::{self, Worker};
use crate::file_plan::FilePlan;
use crate::opener::Opener;
use crate::rewrite::TaskContext;
use crate::target::Strings;

/// Rows of a sample, about.
const SAMPLED_ROWS: u64 = 256 << 10;
/// Probes, however few files are wanted and however many.
const PROBES: (u64, u64) = (1024, 8192);

/// Where a row came from: the number of its input, and its index among that one's live rows.
pub(crate) type Ordinal = (u32, u64);

/// A row of a sample.
#[derive(Debug, Clone)]
pub(crate) struct SampledRow {
    /// Its keys.
    pub keys: Box<[OwnedKey]>,
    /// Where it is.
    pub ordinal: Ordinal,
    /// Rows that it stands for, in some unit.
    pub weight: f64,
    number: u64,
}

/// A sample.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// Its rows, in the order of their ordinals.
    pub rows: Vec<SampledRow>,
}

/// What is taken of which input.
struct Wish {
    input: usize,
    /// Where probes fall, as parts of the input; `None`: all rows are taken.
    probes: Option<Vec<f64>>,
    /// Number of the first row.
    first: u64,
}

struct Collected {
    rows: Vec<SampledRow>,
    bytes: usize,
    /// Only rows whose number is a multiple of two to this power are kept.
    level: u32,
}

impl Collected {
    fn push(&mut self, row: SampledRow, limit: u64) {
        self.bytes += memory(&row);
        self.rows.push(row);
        while self.bytes as u64 > limit && self.level < 63 {
            self.level += 1;
            let kept = |row: &SampledRow| row.number.is_multiple_of(1 << self.level);
            self.rows.retain(kept);
            self.bytes = self.rows.iter().map(memory).sum();
        }
    }
}

fn memory(row: &SampledRow) -> usize {
    size_of::<SampledRow>() + 16 + row.keys.iter().map(OwnedKey::memory).sum::<usize>()
}

/// Takes the sample for `files` files.
///
/// # Errors
/// Those of reading. An input that is not rewritten at all is passed over.
pub(crate) fn take(
    columns: &Columns<'_>,
    keys: &[OrderKey],
    files: u64,
    context: &TaskContext,
    strings: Strings,
    budget: &Budget,
) -> Result<Sample> {
    let inputs = &columns.task.inputs;
    let (wishes, per_probe) = wishes(inputs, files);
    let next = AtomicUsize::new(0);
    let collected = Mutex::new(Collected { rows: Vec::new(), bytes: 0, level: 0 });
    let threads = budget.threads.min(wishes.len()).max(1);
    team::run(context, threads, budget.share_bytes, |worker| {
        let source = std::iter::from_fn(|| wishes.get(next.fetch_add(1, Ordering::Relaxed)));
        let mut opener = Opener::new(&worker.context, source.map(|wish| (&inputs[wish.input], wish)))?;
        while let Some(opening) = opener.next()? {
            worker.check()?;
            let (input, wish) = (opening.input, opening.tag);
            let taken = opening.wait(strings, &columns.task.read).and_then(|(file, deleted)| {
                let opened = Opened { input, file, deleted };
                take_input(&opened, wish, per_probe, columns, keys, worker, budget, &collected)
            });
            match taken {
                // The pass over all rows decides what becomes of it.
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                other => other?,
            }
        }
        Ok(())
    })?;
    let mut rows = collected.into_inner().unwrap_or_else(PoisonError::into_inner).rows;
    rows.sort_unstable_by_key(|row| row.ordinal);
    Ok(Sample { rows })
}

#[expect(clippy::too_many_arguments, reason = "they are what the threads share")]
fn take_input(
    opened: &Opened<'_>,
    wish: &Wish,
    per_probe: u64,
    columns: &Columns<'_>,
    keys: &[OrderKey],
    worker: &Worker<'_>,
    budget: &Budget,
    collected: &Mutex<Collected>,
) -> Result<()> {
    let plan = FilePlan::new(columns.task, columns.target, columns.output, opened.input, &opened.file)?;
    let rows = opened.file.footer.rows();
    let starts = opened.starts();
    let group_of = |row: u64| starts.partition_point(|start| *start <= row).saturating_sub(1);
    let mut probes = vec![0u64; starts.len()];
    for part in wish.probes.iter().flatten() {
        let row = ((part * rows as f64) as u64).min(rows.saturating_sub(1));
        if let Some(count) = probes.get_mut(group_of(row)) {
            *count += 1;
        }
    }
    let wanted = |group: usize| wish.probes.is_none() || probes[group] > 0;
    let mut number = wish.first;
    let mut picks = Picks::default();
    let mut group = usize::MAX;
    opened.read(columns, &plan, budget, &wanted, &mut |live| {
        worker.check()?;
        let at = group_of(live.position - live.read);
        if at != group {
            group = at;
            let end = starts.get(at + 1).copied().unwrap_or(rows);
            let (first, last) = (opened.live_before(starts[at]), opened.live_before(end));
            let most = if wish.probes.is_none() { u64::MAX } else { probes[at].saturating_mul(per_probe) };
            picks = Picks::new(first, last - first, most);
            picks.weight = if wish.probes.is_none() { 1.0 } else { probes[at] as f64 / picks.count.max(1) as f64 };
        }
        let taken = Keys::new(&live.batch, keys)?;
        let end = live.first_live + live.batch.num_rows() as u64;
        let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(index) = picks.next_before(end) {
            if number.is_multiple_of(1 << collected.level) {
                let row = SampledRow {
                    keys: taken.owned((index - live.first_live) as usize),
                    ordinal: (wish.input as u32, index),
                    weight: picks.weight,
                    number,
                };
                collected.push(row, budget.sample_bytes);
            }
            number += 1;
        }
        Ok(())
    })?;
    Ok(())
}

/// Rows at equal distances.
#[derive(Default)]
struct Picks {
    first: u64,
    rows: u64,
    count: u64,
    done: u64,
    weight: f64,
}

impl Picks {
    fn new(first: u64, rows: u64, most: u64) -> Self {
        Self { first, rows, count: rows.min(most), done: 0, weight: 0.0 }
    }

    fn next_before(&mut self, end: u64) -> Option<u64> {
        if self.done == self.count {
            return None;
        }
        let middle = u128::from(2 * self.done + 1) * u128::from(self.rows) / u128::from(2 * self.count);
        let index = self.first + middle as u64;
        (index < end).then(|| {
            self.done += 1;
            index
        })
    }
}

/// Which inputs are looked at where, and how many rows a probe takes.
fn wishes(inputs: &[InputFile], files: u64) -> (Vec<Wish>, u64) {
    let live = |input: &InputFile| {
        Some(input.rows?.saturating_sub(input.deletes.as_ref().map_or(0, |deletes| deletes.cardinality)))
    };
    let known: Option<Vec<u64>> = inputs.iter().map(live).collect();
    if let Some(rows) = &known
        && rows.iter().sum::<u64>() <= SAMPLED_ROWS
    {
        let mut first = 0;
        let all = rows.iter().enumerate().map(|(input, rows)| {
            let wish = Wish { input, probes: None, first };
            first += rows;
            wish
        });
        return (all.collect(), 0);
    }
    let weights = known.unwrap_or_else(|| inputs.iter().map(|input| input.size).collect());
    let total: u64 = weights.iter().sum::<u64>().max(1);
    let count = files.saturating_mul(8).clamp(PROBES.0, PROBES.1);
    let per_probe = SAMPLED_ROWS.div_ceil(count);
    let mut wishes: Vec<Wish> = Vec::new();
    let (mut before, mut probe) = (0u64, 0u64);
    for (input, weight) in weights.iter().enumerate() {
        let mut probes = Vec::new();
        let first = probe * per_probe;
        while probe < count {
            let at = (probe as f64 + 0.5) / count as f64 * total as f64;
            if at >= (before + weight) as f64 {
                break;
            }
            probes.push((at - before as f64) / (*weight).max(1) as f64);
            probe += 1;
        }
        before += weight;
        if !probes.is_empty() {
            wishes.push(Wish { input, probes: Some(probes), first });
        }
    }
    (wishes, per_probe)
}
