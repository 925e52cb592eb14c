//! Rows in memory and their order.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{concat_batches, interleave};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use lakesmith_core::{Error, Result};

use super::Sorting;
use super::keys::Keys;
use super::sample::Ordinal;

/// Bytes of a row beyond its values: its entry, and its place while it is gathered.
const ROW_BYTES: u64 = 32;
/// Batches below this part of a buffer are put together: each array costs time wherever rows are gathered from it.
const SMALL_PART: u64 = 128;
/// Rows whose sizes are looked at together.
const SIZED_ROWS: usize = 64;

/// A row's primary number, its part and its row in it: in this order, which is the wanted one unless keys say otherwise.
pub(crate) type Entry = u128;

fn entry(primary: u64, part: usize, row: usize) -> Entry {
    u128::from(primary) << 64 | (part as u128) << 32 | row as u128
}

/// The primary number.
pub(crate) fn primary_of(entry: Entry) -> u64 {
    (entry >> 64) as u64
}

/// The part and the row in it.
pub(crate) fn place_of(entry: Entry) -> (usize, usize) {
    ((entry >> 32) as u32 as usize, entry as u32 as usize)
}

/// A batch of rows.
pub(crate) struct Part {
    /// All columns.
    pub batch: RecordBatch,
    /// Its rows' keys.
    pub keys: Keys,
    /// First rows, and what they are.
    pieces: Vec<(usize, Ordinal)>,
    /// Bytes of each row, if they differ much.
    sizes: Option<Vec<u32>>,
    row_bytes: u64,
}

impl Part {
    fn new(batch: RecordBatch, pieces: Vec<(usize, Ordinal)>, sorting: &Sorting<'_>) -> Result<Self> {
        let keys = Keys::new(&batch, &sorting.order.keys)?;
        let (row_bytes, sizes) = row_sizes(&batch);
        Ok(Self { batch, keys, pieces, sizes, row_bytes })
    }

    fn memory(&self) -> u64 {
        let sizes = self.sizes.as_ref().map_or(0, |sizes| 4 * sizes.len() as u64);
        self.batch.get_array_memory_size() as u64
            + self.keys.memory()
            + sizes
            + ROW_BYTES * self.batch.num_rows() as u64
    }

    fn ordinal(&self, row: usize) -> Ordinal {
        let piece = self.pieces.partition_point(|(start, _)| *start <= row).saturating_sub(1);
        let (start, (input, first)) = self.pieces[piece];
        (input, first + (row - start) as u64)
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(&self, row: usize) -> u64 {
        self.sizes.as_ref().map_or(self.row_bytes, |sizes| u64::from(sizes[row]))
    }
}

/// Rows as they come in.
pub(crate) struct Buffer<'a> {
    sorting: &'a Sorting<'a>,
    small_bytes: u64,
    parts: Vec<Part>,
    entries: Vec<Entry>,
    small: Vec<(RecordBatch, Ordinal)>,
    small_held: u64,
    /// Bytes held.
    pub bytes: u64,
}

impl<'a> Buffer<'a> {
    /// An empty buffer that will hold about so many bytes.
    pub(crate) fn new(sorting: &'a Sorting<'a>, expected_bytes: u64) -> Self {
        let small_bytes = expected_bytes / SMALL_PART;
        Self { sorting, small_bytes, parts: vec![], entries: vec![], small: vec![], small_held: 0, bytes: 0 }
    }

    /// True without rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.small.is_empty()
    }

    /// Takes rows in, which follow each other from `at` on and come after all that are there.
    ///
    /// # Errors
    /// Those of taking out keys.
    pub(crate) fn push(&mut self, batch: RecordBatch, at: Ordinal) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let bytes = batch.get_array_memory_size() as u64;
        if bytes >= self.small_bytes {
            self.join_small()?;
            return self.add(batch, vec![(0, at)]);
        }
        self.bytes += bytes;
        self.small_held += bytes;
        self.small.push((batch, at));
        if self.small_held >= self.small_bytes { self.join_small() } else { Ok(()) }
    }

    fn join_small(&mut self) -> Result<()> {
        if self.small.is_empty() {
            return Ok(());
        }
        let small = std::mem::take(&mut self.small);
        self.bytes -= std::mem::take(&mut self.small_held);
        let mut rows = 0;
        let mut pieces = Vec::with_capacity(small.len());
        for (batch, at) in &small {
            pieces.push((rows, *at));
            rows += batch.num_rows();
        }
        let joined = match &small[..] {
            [(only, _)] => only.clone(),
            _ => concat_batches(&self.sorting.schema, small.iter().map(|(batch, _)| batch)).map_err(not_gathered)?,
        };
        self.add(joined, pieces)
    }

    fn add(&mut self, batch: RecordBatch, pieces: Vec<(usize, Ordinal)>) -> Result<()> {
        let part = Part::new(batch, pieces, self.sorting)?;
        let number = self.parts.len();
        let primaries = self.sorting.primary.of(&part.keys, part.batch.num_rows());
        self.entries.extend(primaries.into_iter().enumerate().map(|(row, primary)| entry(primary, number, row)));
        self.bytes += part.memory();
        self.parts.push(part);
        Ok(())
    }

    /// Orders the rows that are there and leaves the buffer empty.
    ///
    /// # Errors
    /// Those of taking out keys.
    pub(crate) fn seal(&mut self) -> Result<SortedRun> {
        self.join_small()?;
        let parts = std::mem::take(&mut self.parts);
        let mut entries = std::mem::take(&mut self.entries);
        let bytes = std::mem::take(&mut self.bytes);
        entries.sort_unstable();
        let compare = |a: &Entry, b: &Entry| {
            let ((part, row), (other, other_row)) = (place_of(*a), place_of(*b));
            parts[part].keys.compare(row, &parts[other].keys, other_row).then(a.cmp(b))
        };
        for same in entries.chunk_by_mut(|a, b| primary_of(*a) == primary_of(*b)) {
            if same.len() > 1 && !self.sorting.primary.decides(primary_of(same[0])) {
                same.sort_unstable_by(compare);
            }
        }
        let mut bounds = Vec::with_capacity(self.sorting.cuts.len() + 2);
        bounds.push(0);
        for cut in &self.sorting.cuts {
            let from = bounds[bounds.len() - 1];
            let below = |entry: &Entry| {
                let (part, row) = place_of(*entry);
                let part = &parts[part];
                cut.compare(primary_of(*entry), &part.keys, row, part.ordinal(row)) == Ordering::Less
            };
            bounds.push(from + entries[from..].partition_point(below));
        }
        bounds.push(entries.len());
        let first = parts.first().map_or((0, 0), |part| part.ordinal(0));
        Ok(SortedRun { parts, entries, bounds, first, bytes, schema: Arc::clone(&self.sorting.schema) })
    }
}

/// Ordered rows in memory.
pub(crate) struct SortedRun {
    /// Their batches.
    pub parts: Vec<Part>,
    /// Their order.
    pub entries: Vec<Entry>,
    bounds: Vec<usize>,
    /// The first of the rows as they came in; no other run has rows between its own.
    pub first: Ordinal,
    /// Bytes held.
    pub bytes: u64,
    schema: SchemaRef,
}

impl SortedRun {
    /// Entries of the rows that go into a range.
    pub(crate) fn range(&self, range: usize) -> Range<usize> {
        self.bounds[range]..self.bounds[range + 1]
    }

    /// Ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Hands out the rows of a range in batches of about `bytes`.
    ///
    /// # Errors
    /// Those of `each`.
    pub(crate) fn blocks(
        &self,
        range: usize,
        bytes: u64,
        each: &mut dyn FnMut(RecordBatch, u64) -> Result<()>,
    ) -> Result<()> {
        let sources: Vec<&RecordBatch> = self.parts.iter().map(|part| &part.batch).collect();
        let mut places = Vec::new();
        let mut held = 0;
        let range = self.range(range);
        for index in range.clone() {
            let (part, row) = place_of(self.entries[index]);
            held += self.parts[part].row_bytes(row);
            places.push((part, row));
            if held >= bytes || index + 1 == range.end {
                each(gather(&self.schema, &sources, &places)?, held)?;
                places.clear();
                held = 0;
            }
        }
        Ok(())
    }
}

/// Rows of several batches, in the given order.
///
/// # Errors
/// Internal if Arrow cannot put them together.
pub(crate) fn gather(schema: &SchemaRef, sources: &[&RecordBatch], places: &[(usize, usize)]) -> Result<RecordBatch> {
    let column = |index: usize| {
        let arrays: Vec<&dyn Array> = sources.iter().map(|batch| batch.column(index).as_ref()).collect();
        interleave(&arrays, places)
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<Vec<ArrayRef>, ArrowError>>();
    columns.and_then(|columns| RecordBatch::try_new(Arc::clone(schema), columns)).map_err(not_gathered)
}

pub(crate) fn not_gathered(error: ArrowError) -> Error {
    Error::internal("rows in memory could not be put in order; please report this").caused_by(error)
}

/// Bytes of a row on average, and of each row if some are far from it.
fn row_sizes(batch: &RecordBatch) -> (u64, Option<Vec<u32>>) {
    let rows = batch.num_rows().max(1);
    let total: u64 = batch.columns().iter().map(|column| extent(column, 0, batch.num_rows())).sum();
    let average = (total / rows as u64).max(1);
    let varying: Vec<&ArrayRef> = batch.columns().iter().filter(|column| varies(column.data_type())).collect();
    let of = |from: usize, to: usize| varying.iter().map(|column| extent(column, from, to)).sum::<u64>();
    let widest =
        (0..batch.num_rows()).step_by(SIZED_ROWS).map(|from| of(from, (from + SIZED_ROWS).min(batch.num_rows())));
    if widest.max().unwrap_or(0) <= 4 * average * SIZED_ROWS as u64 {
        return (average, None);
    }
    let even = (total - of(0, batch.num_rows())) / rows as u64;
    let size = |row| u32::try_from(even + of(row, row + 1)).unwrap_or(u32::MAX);
    (average, Some((0..batch.num_rows()).map(size).collect()))
}

fn varies(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| varies(field.data_type())),
        other => other.primitive_width().is_none() && *other != DataType::Boolean,
    }
}

/// Bytes of the values from one row to another.
fn extent(array: &ArrayRef, from: usize, to: usize) -> u64 {
    let offsets = |offsets: &[i32]| (offsets[from] as usize, offsets[to] as usize);
    match array.data_type() {
        DataType::Utf8 => {
            let (start, end) = offsets(array.as_string::<i32>().value_offsets());
            (end - start + 4 * (to - from)) as u64
        }
        DataType::Binary => {
            let (start, end) = offsets(array.as_binary::<i32>().value_offsets());
            (end - start + 4 * (to - from)) as u64
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, end) = offsets(list.value_offsets());
            extent(list.values(), start, end) + 4 * (to - from) as u64
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let (start, end) = offsets(map.value_offsets());
            let columns = map.entries().columns().iter();
            columns.map(|column| extent(column, start, end)).sum::<u64>() + 4 * (to - from) as u64
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| extent(column, from, to)).sum(),
        other => (other.primitive_width().unwrap_or(1) * (to - from)) as u64,
    }
}
