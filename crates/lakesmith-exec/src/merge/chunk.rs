//! One column chunk of an output, put together from the pages of many inputs.

use std::sync::Arc;

use bytes::Bytes;
use lakesmith_core::{Error, Result};
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::properties::WriterProperties;

use super::bounds::{self, Bounds, Order};
use super::codec::{self, Packer};
use super::dictionary::Dictionary;
use super::header;
use super::hybrid;
use super::input::{Packed, Page, Plain, Prepared, Values};
use super::leaf::Column;
use crate::skipping::{FALSE_POSITIVES, hide_nothing};

/// A dictionary that has grown beyond this is not used for what comes after.
const MAX_DICTIONARY_BYTES: usize = 1 << 20;
/// Rows of a page that is put together from smaller ones.
const PAGE_ROWS: usize = 20_000;
/// Bytes of a page that is put together from smaller ones, about.
const PAGE_BYTES: usize = 1 << 20;
/// Pages with as many rows or bytes are copied as they are.
const COPIED_ROWS: usize = 4_096;
const COPIED_BYTES: usize = 32 << 10;
/// Fewer values say nothing about whether they repeat.
const TELLING_VALUES: usize = 1_000;

/// A chunk that grows input by input.
pub(crate) struct MergedChunk {
    column: Arc<Column>,
    /// Off once a page is plain: no page goes back to the dictionary, as in other writers' files.
    use_dictionary: bool,
    dictionary: Dictionary,
    /// Ids that were seen in the page being written.
    marked: Vec<bool>,
    pending: Pending,
    /// Headers and bodies of finished pages.
    finished: Vec<Bytes>,
    stored: u64,
    uncompressed: u64,
    plain_bytes: u64,
    pages: Vec<PageFacts>,
    bounds: Option<Bounds>,
    nulls: u64,
    rows: u64,
    /// A page holds plain values.
    has_plain: bool,
    /// Values of plain pages so far; those of the dictionary come last.
    bloom_filter: Option<Sbbf>,
}

/// Rows that wait until they fill a page: ids, plain values or flags.
#[derive(Default)]
struct Pending {
    levels: Vec<u8>,
    rows: usize,
    nulls: usize,
    ids: Vec<u32>,
    raw: Vec<u8>,
    bits: Vec<u8>,
}

struct PageFacts {
    rows: usize,
    nulls: usize,
    stored: usize,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    dictionary: bool,
    plain_bytes: usize,
}

impl MergedChunk {
    /// An empty chunk.
    ///
    /// # Errors
    /// Internal if its bloom filter cannot be made.
    pub(crate) fn new(column: Arc<Column>, properties: &WriterProperties) -> Result<Self> {
        let path = column.descriptor.path();
        let bloom_filter = properties.bloom_filter_properties(path).filter(|_| column.order != Order::Bool);
        let bloom_filter = bloom_filter.map(|filter| Sbbf::new_with_ndv_fpp(filter.ndv(), filter.fpp())).transpose();
        Ok(Self {
            use_dictionary: properties.dictionary_enabled(path) && column.order != Order::Bool,
            bloom_filter: bloom_filter.map_err(|e| broken("its bloom filter").caused_by(e))?,
            column,
            dictionary: Dictionary::default(),
            marked: Vec::new(),
            pending: Pending::default(),
            finished: Vec::new(),
            stored: 0,
            uncompressed: 0,
            plain_bytes: 0,
            pages: Vec::new(),
            bounds: None,
            nulls: 0,
            rows: 0,
            has_plain: false,
        })
    }

    /// False once values have come that are no ids: whatever comes next should be plain, too.
    pub(super) fn takes_ids(&self) -> bool {
        self.use_dictionary
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let pending = &self.pending;
        self.stored as usize
            + self.bloom_filter.as_ref().map_or(0, |filter| filter.num_blocks() * 32)
            + self.dictionary.memory()
            + pending.levels.capacity()
            + 4 * pending.ids.capacity()
            + pending.raw.capacity()
            + pending.bits.capacity()
    }

    /// True if the prepared pages can be taken in within `limit` bytes.
    pub(super) fn accepts(&self, prepared: &Prepared, limit: usize) -> bool {
        self.keeps_dictionary(prepared) || expanded(prepared) <= limit
    }

    /// True if ids stay ids.
    fn keeps_dictionary(&self, prepared: &Prepared) -> bool {
        let present: usize = prepared.pages.iter().map(|p| p.rows - p.nulls).sum();
        if present == 0 {
            return self.use_dictionary;
        }
        let Some((dictionary, _)) = &prepared.dictionary else { return false };
        let repeats = present < TELLING_VALUES || dictionary.count() * 10 < present * 9;
        let all_ids = prepared.pages.iter().all(|p| matches!(p.values, Values::Ids(_)));
        self.use_dictionary && repeats && all_ids && self.dictionary.raw().len() <= MAX_DICTIONARY_BYTES
    }

    /// Takes prepared pages in. Ids stay ids where their values would not fit `limit` bytes, if only ids came before.
    ///
    /// # Errors
    /// Internal if a page cannot be written.
    pub(super) fn append(&mut self, prepared: Prepared, limit: usize, packer: &mut Packer) -> Result<()> {
        let keeps = self.keeps_dictionary(&prepared);
        self.use_dictionary = keeps || self.use_dictionary && expanded(&prepared) > limit;
        self.append_pages(prepared, packer)?;
        if self.use_dictionary != keeps {
            self.flush(packer)?;
            self.use_dictionary = keeps;
        }
        Ok(())
    }

    fn append_pages(&mut self, prepared: Prepared, packer: &mut Packer) -> Result<()> {
        let Prepared { dictionary, pages, codec } = prepared;
        let single = pages.len() == 1;
        let mut remap = vec![u32::MAX; dictionary.as_ref().map_or(0, |(plain, _)| plain.count())];
        for mut page in pages {
            if page.nulls == page.rows {
                for (from, to) in slices(page.rows, PAGE_ROWS) {
                    self.make_room(to - from, 0, packer)?;
                    self.take_levels(part(&page, from, to).0, to - from, to - from, packer)?;
                }
                continue;
            }
            let copied = page.rows >= COPIED_ROWS || page.expanded >= COPIED_BYTES;
            match (std::mem::replace(&mut page.values, Values::Bits(Vec::new())), &dictionary) {
                (Values::Ids(ids), Some((entries, _))) if self.use_dictionary => {
                    self.append_ids(&page, &ids, entries, &mut remap, packer)?;
                }
                (Values::Ids(ids), Some((entries, packed))) => {
                    let in_order = single && ids.len() == entries.count() && ids.iter().zip(0..).all(|(a, b)| *a == b);
                    let written = copied
                        && in_order
                        && codec == packer.codec()
                        && self.copy(&page, entries, &Packed::Values(packed.clone()), packer)?;
                    if !written {
                        self.append_expanded(&page, &ids, entries, packer)?;
                    }
                }
                (Values::Ids(_), None) => return Err(broken("a page without its dictionary")),
                (Values::Plain(values), _) => {
                    let written = match &page.packed {
                        Some(packed) if copied && codec == packer.codec() => {
                            self.copy(&page, &values, packed, packer)?
                        }
                        _ => false,
                    };
                    if !written {
                        self.append_plain(&page, &values, packer)?;
                    }
                }
                (Values::Bits(bits), _) => {
                    let mut taken = 0;
                    for (from, to) in slices(page.rows, PAGE_ROWS) {
                        let (levels, present) = part(&page, from, to);
                        self.make_room(to - from, 0, packer)?;
                        self.pending.bits.extend_from_slice(&bits[taken..taken + present]);
                        taken += present;
                        self.take_levels(levels, to - from, to - from - present, packer)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn append_ids(
        &mut self,
        page: &Page,
        ids: &[u32],
        entries: &Plain,
        remap: &mut [u32],
        packer: &mut Packer,
    ) -> Result<()> {
        let sized = self.column.width.is_none();
        let mut taken = 0;
        for (from, to) in slices(page.rows, PAGE_ROWS) {
            let (levels, present) = part(page, from, to);
            self.make_room(to - from, 0, packer)?;
            for id in &ids[taken..taken + present] {
                let to = &mut remap[*id as usize];
                if *to == u32::MAX {
                    let interned = self.dictionary.intern(entries.value(*id as usize), sized);
                    *to = interned.ok_or_else(|| broken("a dictionary beyond 4 GiB"))?;
                }
                self.pending.ids.push(*to);
            }
            taken += present;
            self.take_levels(levels, to - from, to - from - present, packer)?;
        }
        Ok(())
    }

    fn append_expanded(&mut self, page: &Page, ids: &[u32], entries: &Plain, packer: &mut Packer) -> Result<()> {
        let mut taken = 0;
        for (from, to) in slices(page.rows, page_rows(page)) {
            let (levels, present) = part(page, from, to);
            self.make_room(to - from, page.expanded * (to - from) / page.rows, packer)?;
            for id in &ids[taken..taken + present] {
                self.pending.raw.extend_from_slice(entries.raw_range(*id as usize, *id as usize + 1));
            }
            taken += present;
            self.take_levels(levels, to - from, to - from - present, packer)?;
        }
        Ok(())
    }

    fn append_plain(&mut self, page: &Page, values: &Plain, packer: &mut Packer) -> Result<()> {
        let mut taken = 0;
        for (from, to) in slices(page.rows, page_rows(page)) {
            let (levels, present) = part(page, from, to);
            let raw = values.raw_range(taken, taken + present);
            self.make_room(to - from, raw.len(), packer)?;
            self.pending.raw.extend_from_slice(raw);
            taken += present;
            self.take_levels(levels, to - from, to - from - present, packer)?;
        }
        Ok(())
    }

    /// Writes what waits if as much more would not fit.
    fn make_room(&mut self, rows: usize, bytes: usize, packer: &mut Packer) -> Result<()> {
        let full = self.pending.rows + rows > PAGE_ROWS || self.pending.raw.len() + bytes > PAGE_BYTES;
        // Ids and plain values never share a page.
        let other = if self.use_dictionary { !self.pending.raw.is_empty() } else { !self.pending.ids.is_empty() };
        if full || other { self.flush(packer) } else { Ok(()) }
    }

    fn take_levels(&mut self, levels: &[u8], rows: usize, nulls: usize, packer: &mut Packer) -> Result<()> {
        self.pending.levels.extend_from_slice(levels);
        self.pending.rows += rows;
        self.pending.nulls += nulls;
        if self.pending.rows >= PAGE_ROWS || self.pending.raw.len() >= PAGE_BYTES { self.flush(packer) } else { Ok(()) }
    }

    /// Writes what waits as a page.
    fn flush(&mut self, packer: &mut Packer) -> Result<()> {
        if self.pending.rows == 0 {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        let mut body = self.level_bytes(&pending.levels)?;
        let mut dictionary = false;
        let (bounds, plain_bytes) = if self.column.order == Order::Bool {
            for eight in pending.bits.chunks(8) {
                body.push(eight.iter().rev().fold(0, |byte, bit| byte << 1 | bit));
            }
            (Bounds::of_bits(&pending.bits), 0)
        } else if pending.ids.is_empty() {
            body.extend_from_slice(&pending.raw);
            self.add_to_filter(&pending.raw);
            (raw_bounds(&self.column, &pending.raw), self.text_bytes(pending.raw.len(), pending.rows - pending.nulls))
        } else {
            dictionary = true;
            let width = hybrid::width_of(self.dictionary.len() as u32 - 1).max(1);
            body.push(width);
            hybrid::encode(&pending.ids, width, &mut body);
            let bytes: usize = match self.column.width {
                Some(_) => 0,
                None => pending.ids.iter().map(|id| self.dictionary.value(*id).len()).sum(),
            };
            self.marked.clear();
            self.marked.resize(self.dictionary.len(), false);
            pending.ids.retain(|id| !std::mem::replace(&mut self.marked[*id as usize], true));
            let values = pending.ids.iter().map(|id| self.dictionary.value(*id));
            (Bounds::of(self.column.order, values), bytes)
        };
        let uncompressed = body.len();
        let packed = packer.pack(body).ok_or_else(|| broken("a page that cannot be compressed"))?;
        let page = Finished { rows: pending.rows, nulls: pending.nulls, bounds, dictionary, plain_bytes, uncompressed };
        self.push(page, packed)?;
        // The buffers are kept for the next page.
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    /// Copies a plain page without compressing it again; false if its codec has no way to put levels in front.
    fn copy(&mut self, page: &Page, values: &Plain, packed: &Packed, packer: &mut Packer) -> Result<bool> {
        let levels = self.level_bytes(&page.levels)?;
        let raw = values.raw();
        let (packed, uncompressed) = match packed {
            Packed::Whole(bytes, uncompressed) => (bytes.to_vec(), *uncompressed),
            Packed::Values(bytes) => match codec::prefixed(packer.codec(), &levels, bytes) {
                Some(joined) => (joined, levels.len() + raw.len()),
                None => return Ok(false),
            },
        };
        self.flush(packer)?;
        self.add_to_filter(raw);
        let page = Finished {
            rows: page.rows,
            nulls: page.nulls,
            bounds: raw_bounds(&self.column, raw),
            dictionary: false,
            plain_bytes: self.text_bytes(raw.len(), values.count()),
            uncompressed,
        };
        self.push(page, packed)?;
        Ok(true)
    }

    fn add_to_filter(&mut self, raw: &[u8]) {
        if let Some(filter) = &mut self.bloom_filter {
            raw_values(&self.column, raw).for_each(|value| filter.insert(value));
        }
    }

    fn level_bytes(&self, levels: &[u8]) -> Result<Vec<u8>> {
        let max = self.column.descriptor.max_def_level();
        if max == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; 4];
        hybrid::encode(levels, hybrid::width_of(max as u32), &mut bytes);
        let length = u32::try_from(bytes.len() - 4).map_err(|_| broken("levels beyond 4 GiB"))?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// Bytes of strings without their lengths.
    fn text_bytes(&self, raw: usize, values: usize) -> usize {
        if self.column.width.is_none() { raw - 4 * values } else { 0 }
    }

    fn push(&mut self, page: Finished, packed: Vec<u8>) -> Result<()> {
        // Spark's vectorised reader takes values for ids where a page of ids follows them.
        if page.dictionary && self.has_plain {
            return Err(broken("ids that follow values"));
        }
        self.has_plain |= !page.dictionary && page.nulls < page.rows;
        let encoding = if page.dictionary { header::RLE_DICTIONARY } else { header::PLAIN };
        let head = header::write_data(page.rows, encoding, page.uncompressed, packed.len())
            .ok_or_else(|| broken("a page beyond 2 GiB"))?;
        let stored = head.len() + packed.len();
        self.stored += stored as u64;
        self.uncompressed += (head.len() + page.uncompressed) as u64;
        self.rows += page.rows as u64;
        self.nulls += page.nulls as u64;
        self.plain_bytes += page.plain_bytes as u64;
        self.pages.push(PageFacts {
            rows: page.rows,
            nulls: page.nulls,
            stored,
            bounds: page.bounds.as_ref().and_then(|b| b.stored(self.column.order)),
            dictionary: page.dictionary,
            plain_bytes: page.plain_bytes,
        });
        match (&mut self.bounds, page.bounds) {
            (Some(all), Some(new)) => all.join(self.column.order, &new),
            (none @ None, new) => *none = new,
            (Some(_), None) => {}
        }
        self.finished.extend([Bytes::from(head), Bytes::from(packed)]);
        Ok(())
    }

    /// Ends the chunk.
    ///
    /// # Errors
    /// Internal if a page cannot be written or described.
    pub(super) fn close(mut self, compression: Compression, packer: &mut Packer) -> Result<ClosedChunk> {
        self.flush(packer)?;
        let mut pieces = Vec::with_capacity(self.finished.len() + 2);
        let mut dictionary_length = 0;
        if self.pages.iter().any(|page| page.dictionary) {
            let raw = self.dictionary.raw().to_vec();
            let uncompressed = raw.len();
            let packed = packer.pack(raw).ok_or_else(|| broken("a dictionary that cannot be compressed"))?;
            let head = header::write_dictionary(self.dictionary.len(), uncompressed, packed.len())
                .ok_or_else(|| broken("a dictionary beyond 2 GiB"))?;
            dictionary_length = head.len() + packed.len();
            self.stored += dictionary_length as u64;
            self.uncompressed += (head.len() + uncompressed) as u64;
            pieces.extend([Bytes::from(head), Bytes::from(packed)]);
        }
        pieces.append(&mut self.finished);
        if let Some(filter) = &mut self.bloom_filter {
            (0..self.dictionary.len() as u32).for_each(|id| filter.insert(self.dictionary.value(id)));
            filter.fold_to_target_fpp(FALSE_POSITIVES);
        }
        let nan = self.bounds.as_ref().is_some_and(Bounds::has_nan);
        let mut close =
            self.describe(compression, dictionary_length).map_err(|e| broken("its metadata").caused_by(e))?;
        close.bloom_filter = self.bloom_filter.take();
        hide_nothing(&mut close, nan).map_err(|e| broken("its metadata").caused_by(e))?;
        Ok(ClosedChunk { pieces, close, nulls: self.nulls, bounds: self.bounds, column: self.column })
    }

    fn describe(&self, compression: Compression, dictionary_length: usize) -> Result<ColumnCloseResult, ParquetError> {
        let order = self.column.order;
        let has_dictionary = dictionary_length > 0;
        let of = |dictionary: bool| self.pages.iter().filter(|p| p.dictionary == dictionary).count() as i32;
        let count = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let mut encodings = vec![Encoding::RLE];
        let mut counts = Vec::new();
        if has_dictionary {
            encodings.push(Encoding::RLE_DICTIONARY);
            counts.push(count(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
            counts.push(count(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, of(true)));
        }
        if of(false) > 0 {
            counts.push(count(PageType::DATA_PAGE, Encoding::PLAIN, of(false)));
        }
        encodings.push(Encoding::PLAIN);
        let is_text = self.column.width.is_none();
        let metadata = ColumnChunkMetaData::builder(Arc::clone(&self.column.descriptor))
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(counts)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(self.stored as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(dictionary_length as i64)
            .set_statistics(bounds::statistics(order, self.bounds.as_ref(), self.nulls))
            .set_unencoded_byte_array_data_bytes(is_text.then_some(self.plain_bytes as i64))
            .build()?;
        let mut offsets = OffsetIndexBuilder::new();
        let mut at = dictionary_length as i64;
        for page in &self.pages {
            offsets.append_offset_and_size(at, i32::try_from(page.stored)?);
            offsets.append_row_count(page.rows as i64);
            offsets.append_unencoded_byte_array_data_bytes(is_text.then_some(page.plain_bytes as i64));
            at += page.stored as i64;
        }
        Ok(ColumnCloseResult {
            bytes_written: self.stored,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: self.column_index()?,
            offset_index: Some(offsets.build()),
        })
    }

    /// `None` if a page has values without bounds.
    fn column_index(
        &self,
    ) -> Result<Option<parquet::file::page_index::column_index::ColumnIndexMetaData>, ParquetError> {
        let order = self.column.order;
        let mut builder = ColumnIndexBuilder::new(self.column.descriptor.physical_type());
        for page in &self.pages {
            let null_page = page.nulls == page.rows;
            match &page.bounds {
                Some((low, high)) => builder.append(false, low.clone(), high.clone(), page.nulls as i64),
                None if null_page => builder.append(true, Vec::new(), Vec::new(), page.nulls as i64),
                None => return Ok(None),
            }
        }
        let bounded: Vec<_> = self.pages.iter().filter_map(|p| p.bounds.as_ref()).collect();
        let sorted = |ascending: bool| {
            bounded.windows(2).all(|pair| {
                let ((l0, h0), (l1, h1)) = (pair[0], pair[1]);
                let (low, high) = (bounds::compare(order, l0, l1), bounds::compare(order, h0, h1));
                if ascending { low.is_le() && high.is_le() } else { low.is_ge() && high.is_ge() }
            })
        };
        builder.set_boundary_order(match (sorted(true), sorted(false)) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        builder.build().map(Some)
    }
}

impl Pending {
    fn clear(&mut self) {
        self.levels.clear();
        self.ids.clear();
        self.raw.clear();
        self.bits.clear();
        (self.rows, self.nulls) = (0, 0);
    }
}

/// A page on its way into the chunk.
struct Finished {
    rows: usize,
    nulls: usize,
    bounds: Option<Bounds>,
    dictionary: bool,
    plain_bytes: usize,
    uncompressed: usize,
}

/// A finished chunk: its bytes, and what the footer says of it as if the chunk stood at the start of a file.
pub(super) struct ClosedChunk {
    /// In file order.
    pub pieces: Vec<Bytes>,
    /// For the row group.
    pub close: ColumnCloseResult,
    /// Nulls.
    pub nulls: u64,
    /// Of all values.
    pub bounds: Option<Bounds>,
    /// Which leaf.
    pub column: Arc<Column>,
}

/// Bytes that a chunk's ids would have as plain values.
fn expanded(prepared: &Prepared) -> usize {
    prepared.pages.iter().filter(|p| matches!(p.values, Values::Ids(_))).map(|p| p.expanded).sum()
}

fn raw_bounds(column: &Column, raw: &[u8]) -> Option<Bounds> {
    match column.width {
        Some(width) => Bounds::of(column.order, raw.chunks_exact(width)),
        None => Bounds::of(column.order, sized_values(raw)),
    }
}

/// Plain values without their lengths.
fn raw_values<'a>(column: &Column, raw: &'a [u8]) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
    match column.width {
        Some(width) => Box::new(raw.chunks_exact(width)),
        None => Box::new(sized_values(raw)),
    }
}

fn sized_values(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (value, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(value)
    })
}

/// Rows of a page whose values are as large as these.
fn page_rows(page: &Page) -> usize {
    (PAGE_BYTES * page.rows / page.expanded.max(1)).clamp(1, PAGE_ROWS)
}

fn slices(rows: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(step).map(move |from| (from, (from + step).min(rows)))
}

/// Levels of some rows of a page, and how many of them have a value.
fn part(page: &Page, from: usize, to: usize) -> (&[u8], usize) {
    if from == 0 && to == page.rows {
        return (&page.levels, page.rows - page.nulls);
    }
    match page.levels.get(from..to) {
        Some(levels) => (levels, levels.iter().filter(|l| **l == page.max_level).count()),
        None => (&[], to - from),
    }
}

fn broken(what: &str) -> Error {
    Error::internal(format!("pages could not be merged because of {what}; please report this"))
}
