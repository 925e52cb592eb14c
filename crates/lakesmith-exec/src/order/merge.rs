//! Runs merged into one sequence of rows.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use arrow::array::RecordBatch;
use lakesmith_core::Result;

use super::Sorting;
use super::keys::Keys;
use super::sorted::{SortedRun, gather, place_of, primary_of};
use super::spill::{Block, SpillFile, SpillWriter};
use super::team::Worker;

/// Rows of a batch at most.
const MAX_BATCH_ROWS: usize = 16_384;
/// A batch's source that has no number yet.
const NONE: usize = usize::MAX;

/// The rows of a run that go into one range.
pub(crate) enum Segment<'a> {
    /// In memory.
    Memory(&'a SortedRun, Range<usize>),
    /// On disk.
    Spilled(Arc<SpillFile>, Vec<Block>),
}

impl Segment<'_> {
    /// Bytes that merging it holds at any time.
    fn held(&self) -> u64 {
        match self {
            Segment::Memory(..) => 0,
            Segment::Spilled(_, blocks) => blocks.iter().map(|block| u64::from(block.bytes)).max().unwrap_or(0),
        }
    }
}

/// How much merging may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeLimits {
    /// Blocks.
    pub merge_bytes: u64,
    /// A batch.
    pub batch_bytes: u64,
    /// A block that is written between two merges.
    pub block_bytes: u64,
}

/// Merges neighbours on disk until all that is left can be merged at once; tells what was spilled for it.
///
/// # Errors
/// Those of spilling.
pub(crate) fn narrow<'a>(
    mut segments: Vec<Segment<'a>>,
    sorting: &Sorting<'_>,
    limits: MergeLimits,
    worker: &Worker<'_>,
    spilled: &mut u64,
) -> Result<Vec<Segment<'a>>> {
    let mut writer: Option<SpillWriter> = None;
    // Half of the memory is for blocks that are at their end and wait for their rows to be gathered.
    let fitting = limits.merge_bytes / 2;
    while segments.len() > 2 && segments.iter().map(Segment::held).sum::<u64>() > fitting {
        let mut fewer = Vec::new();
        let mut group: Vec<Segment<'a>> = Vec::new();
        let mut held = 0;
        let mut rest = segments.into_iter().peekable();
        while let Some(segment) = rest.next() {
            held += segment.held();
            group.push(segment);
            let full = rest.peek().is_none_or(|next| group.len() > 1 && held + next.held() > fitting);
            if !full {
                continue;
            }
            held = 0;
            if group.len() == 1 {
                fewer.append(&mut group);
                continue;
            }
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(SpillWriter::new(&worker.context.control.spill_folder, &sorting.schema)?),
            };
            let mut merger = Merger::new(std::mem::take(&mut group), sorting, limits, limits.block_bytes)?;
            let mut blocks = Vec::new();
            while let Some(batch) = merger.next_batch()? {
                worker.check()?;
                blocks.push(writer.append(&batch)?);
            }
            fewer.push(Segment::Spilled(writer.file(), blocks));
        }
        segments = fewer;
    }
    *spilled += writer.map_or(0, |writer| writer.length);
    Ok(segments)
}

/// Merges segments. Of rows with equal keys, those of earlier segments come first.
pub(crate) struct Merger<'a> {
    sorting: &'a Sorting<'a>,
    cursors: Vec<Cursor<'a>>,
    /// The first cursor, then the losers of a tournament of all.
    tree: Vec<usize>,
    /// Sources of the batch that is being put together.
    sources: Vec<RecordBatch>,
    places: Vec<(usize, usize)>,
    bytes: u64,
    /// Bytes of sources that are at their end.
    ended: u64,
    limits: MergeLimits,
    batch_bytes: u64,
}

impl<'a> Merger<'a> {
    /// Begins to merge into batches of about `batch_bytes`.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub(crate) fn new(
        segments: Vec<Segment<'a>>,
        sorting: &'a Sorting<'a>,
        limits: MergeLimits,
        batch_bytes: u64,
    ) -> Result<Self> {
        let cursors: Vec<Cursor<'a>> =
            segments.into_iter().map(|segment| Cursor::new(segment, sorting)).collect::<Result<_>>()?;
        let mut merger = Self {
            sorting,
            tree: vec![NONE; cursors.len()],
            cursors,
            sources: Vec::new(),
            places: Vec::new(),
            bytes: 0,
            ended: 0,
            limits,
            batch_bytes,
        };
        for cursor in 0..merger.cursors.len() {
            merger.play(cursor);
        }
        Ok(merger)
    }

    /// The next rows.
    ///
    /// # Errors
    /// Those of reading blocks.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(first) = self.tree.first().copied() {
            let cursor = &mut self.cursors[first];
            if cursor.done {
                break;
            }
            self.bytes += cursor.row_bytes();
            let place = cursor.place(&mut self.sources);
            self.places.push(place);
            self.ended += cursor.advance(self.sorting)?;
            self.play(first);
            let full = self.places.len() >= MAX_BATCH_ROWS
                || self.bytes >= self.batch_bytes
                || self.ended >= self.limits.merge_bytes / 2;
            if full {
                break;
            }
        }
        if self.places.is_empty() {
            return Ok(None);
        }
        let sources: Vec<&RecordBatch> = self.sources.iter().collect();
        let batch = gather(&self.sorting.schema, &sources, &self.places)?;
        self.sources.clear();
        self.places.clear();
        self.cursors.iter_mut().for_each(Cursor::forget);
        (self.bytes, self.ended) = (0, 0);
        Ok(Some(batch))
    }

    /// Lets a cursor play against those that it has to beat; in the beginning, until a place is free.
    fn play(&mut self, cursor: usize) {
        let mut winner = cursor;
        let mut node = (self.tree.len() + cursor) / 2;
        while node > 0 {
            let other = self.tree[node];
            if other == NONE {
                self.tree[node] = winner;
                return;
            }
            if self.precedes(other, winner) {
                self.tree[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.cursors[a], &self.cursors[b]);
        let order = x.done.cmp(&y.done).then_with(|| x.primary.cmp(&y.primary)).then_with(|| {
            if x.done || self.sorting.primary.decides(x.primary) {
                return Ordering::Equal;
            }
            let ((keys, row), (other, other_row)) = (x.key(), y.key());
            keys.compare(row, other, other_row)
        });
        order.then(a.cmp(&b)).is_lt()
    }
}

/// The next row of a segment.
struct Cursor<'a> {
    primary: u64,
    done: bool,
    at: At<'a>,
}

enum At<'a> {
    Memory {
        run: &'a SortedRun,
        entries: Range<usize>,
        /// Numbers of the parts among the sources.
        numbers: Vec<usize>,
    },
    Spilled {
        file: Arc<SpillFile>,
        blocks: IntoIter<Block>,
        block: Option<Loaded>,
        row: usize,
        /// Its number among the sources.
        number: usize,
    },
}

struct Loaded {
    batch: RecordBatch,
    keys: Keys,
    primaries: Vec<u64>,
    bytes: u64,
}

impl<'a> Cursor<'a> {
    fn new(segment: Segment<'a>, sorting: &Sorting<'_>) -> Result<Self> {
        let at = match segment {
            Segment::Memory(run, entries) => At::Memory { run, entries, numbers: vec![NONE; run.parts.len()] },
            Segment::Spilled(file, blocks) => {
                At::Spilled { file, blocks: blocks.into_iter(), block: None, row: 0, number: NONE }
            }
        };
        let mut cursor = Self { primary: 0, done: false, at };
        cursor.look(sorting)?;
        Ok(cursor)
    }

    /// Finds out what the next row is.
    fn look(&mut self, sorting: &Sorting<'_>) -> Result<()> {
        match &mut self.at {
            At::Memory { run, entries, .. } => match entries.start < entries.end {
                true => self.primary = primary_of(run.entries[entries.start]),
                false => self.done = true,
            },
            At::Spilled { file, blocks, block, row, number } => {
                if block.as_ref().is_none_or(|block| *row >= block.primaries.len()) {
                    (*block, *row, *number) = (None, 0, NONE);
                    let Some(next) = blocks.next() else {
                        self.done = true;
                        return Ok(());
                    };
                    let batch = file.read(&next)?;
                    let keys = Keys::new(&batch, &sorting.order.keys)?;
                    let primaries = sorting.primary.of(&keys, batch.num_rows());
                    *block = Some(Loaded { batch, keys, primaries, bytes: u64::from(next.bytes) });
                }
                if let Some(block) = block {
                    self.primary = block.primaries[*row];
                }
            }
        }
        Ok(())
    }

    /// Goes one row on; tells the bytes of a source that has come to its end.
    fn advance(&mut self, sorting: &Sorting<'_>) -> Result<u64> {
        let mut ended = 0;
        match &mut self.at {
            At::Memory { entries, .. } => entries.start += 1,
            At::Spilled { block, row, .. } => {
                *row += 1;
                if let Some(block) = block.as_ref().filter(|block| *row == block.primaries.len()) {
                    ended = block.bytes;
                }
            }
        }
        self.look(sorting)?;
        Ok(ended)
    }

    fn key(&self) -> (&Keys, usize) {
        match &self.at {
            At::Memory { run, entries, .. } => {
                let (part, row) = place_of(run.entries[entries.start]);
                (&run.parts[part].keys, row)
            }
            At::Spilled { block, row, .. } => match block {
                Some(block) => (&block.keys, *row),
                None => unreachable!("a cursor that is not done stands on a row"),
            },
        }
    }

    fn row_bytes(&self) -> u64 {
        match &self.at {
            At::Memory { run, entries, .. } => {
                let (part, row) = place_of(run.entries[entries.start]);
                run.parts[part].row_bytes(row)
            }
            At::Spilled { block, .. } => {
                block.as_ref().map_or(0, |block| block.bytes / block.primaries.len().max(1) as u64)
            }
        }
    }

    /// The source of the row, which joins `sources` if it is not among them, and where the row is in it.
    fn place(&mut self, sources: &mut Vec<RecordBatch>) -> (usize, usize) {
        let (number, batch, row) = match &mut self.at {
            At::Memory { run, entries, numbers } => {
                let (part, row) = place_of(run.entries[entries.start]);
                (&mut numbers[part], &run.parts[part].batch, row)
            }
            At::Spilled { block, row, number, .. } => match block {
                Some(block) => (number, &block.batch, *row),
                None => unreachable!("a cursor that is not done stands on a row"),
            },
        };
        if *number == NONE {
            *number = sources.len();
            sources.push(batch.clone());
        }
        (*number, row)
    }

    /// Forgets the numbers of sources.
    fn forget(&mut self) {
        match &mut self.at {
            At::Memory { numbers, .. } => numbers.fill(NONE),
            At::Spilled { number, .. } => *number = NONE,
        }
    }
}
