//! One column chunk of an output, put together from the pages of many inputs.

use std::sync::Arc;

use bytes::Bytes;
use lakesmith_core::{Error, Result};
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::properties::WriterProperties;

use super::bounds::{Bounds, Order};
use super::codec::{self, Packer};
use super::dictionary::Dictionary;
use super::facts::{Facts, PageFacts};
use super::header;
use super::hybrid;
use super::input::{Packed, Page, Plain, Prepared, Values};
use super::leaf::Column;
use super::pending::{PAGE_BYTES, PAGE_ROWS, Pending, page_rows, part, slices};
use super::trial::{News, Trial};
use crate::skipping::{FALSE_POSITIVES, hide_nothing};

/// A dictionary that has grown beyond this is not used for what comes after.
pub(super) const MAX_DICTIONARY_BYTES: usize = 1 << 20;
/// Pages with as many rows or bytes are copied as they are.
pub(crate) const COPIED_ROWS: usize = 4_096;
const COPIED_BYTES: usize = 32 << 10;
/// Chunks whose values have at most so many bytes in plain encoding are encoded anew: how their writer encoded them tells
/// little of what many of them are best encoded as together. Looking a value up costs about what unpacking it does, so
/// such a chunk takes a millisecond or two more than one whose pages are copied, which is what opening its file takes.
pub(crate) const SMALL_CHUNK_BYTES: usize = 128 << 10;

/// A chunk that grows input by input.
pub(crate) struct MergedChunk {
    column: Arc<Column>,
    /// Off once a page is plain: no page goes back to the dictionary, as in other writers' files.
    use_dictionary: bool,
    dictionary: Dictionary,
    /// Ids that were seen in the page being written.
    marked: Vec<bool>,
    pending: Pending,
    /// Pages of ids, while it is open whether they stay ids: there are no finished pages then.
    trial: Option<Trial>,
    news: News,
    /// Headers and bodies of finished pages.
    finished: Vec<Bytes>,
    facts: Facts,
    bounds: Option<Bounds>,
    /// A page holds plain values.
    has_plain: bool,
    /// Values of plain pages so far; those of the dictionary come last.
    bloom_filter: Option<Sbbf>,
}

impl MergedChunk {
    /// An empty chunk; `untold`: whether a dictionary pays is to be found out whatever the properties say.
    ///
    /// # Errors
    /// Internal if its bloom filter cannot be made.
    pub(crate) fn new(column: Arc<Column>, properties: &WriterProperties, untold: bool) -> Result<Self> {
        let path = column.descriptor.path();
        let bloom_filter = properties.bloom_filter_properties(path).filter(|_| column.order != Order::Bool);
        let bloom_filter = bloom_filter.map(|filter| Sbbf::new_with_ndv_fpp(filter.ndv(), filter.fpp())).transpose();
        let use_dictionary = (untold || properties.dictionary_enabled(path)) && column.order != Order::Bool;
        Ok(Self {
            use_dictionary,
            trial: use_dictionary.then(Trial::default),
            news: News::default(),
            bloom_filter: bloom_filter.map_err(|e| broken("its bloom filter").caused_by(e))?,
            dictionary: Dictionary::new(column.width),
            column,
            marked: Vec::new(),
            pending: Pending::default(),
            finished: Vec::new(),
            facts: Facts::default(),
            bounds: None,
            has_plain: false,
        })
    }

    /// False once values have come that are no ids: whatever comes next should be plain, too.
    pub(super) fn takes_ids(&self) -> bool {
        self.use_dictionary
    }

    /// True while it is open whether values become ids.
    pub(super) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.facts.stored as usize
            + self.bloom_filter.as_ref().map_or(0, |filter| filter.num_blocks() * 32)
            + self.dictionary.memory()
            + self.pending.memory()
            + self.trial.as_ref().map_or(0, Trial::memory)
    }

    /// True if the prepared pages can be taken in within `limit` bytes.
    pub(super) fn accepts(&self, prepared: &Prepared, limit: usize) -> bool {
        self.keeps_dictionary(prepared, false) || expanded(prepared) <= limit
    }

    /// True if ids stay ids, and the values of a small chunk become some.
    fn keeps_dictionary(&self, prepared: &Prepared, own: bool) -> bool {
        let present = prepared.present();
        if present == 0 || !self.use_dictionary {
            return self.use_dictionary;
        }
        let entries = prepared.dictionary.as_ref().map_or(0, |(entries, _)| entries.count());
        let repeats = entries > 0 && entries * 10 < present * 9;
        let all_ids = prepared.pages.iter().all(|p| matches!(p.values, Values::Ids(_)));
        let small = prepared.plain_bytes() <= SMALL_CHUNK_BYTES && !hardly_repeats(entries, present)
            || own && self.trial.is_some();
        let keeps = small || repeats && all_ids;
        keeps && self.dictionary.raw().len() <= MAX_DICTIONARY_BYTES
    }

    /// Takes prepared pages in; `own`: this program encoded them, and knew no better. Ids stay ids where their values would
    /// not fit `limit` bytes, if only ids came before.
    ///
    /// # Errors
    /// Internal if a page cannot be written.
    pub(super) fn append(&mut self, prepared: Prepared, own: bool, limit: usize, packer: &mut Packer) -> Result<()> {
        if !self.keeps_dictionary(&prepared, own) {
            let too_large = self.use_dictionary && expanded(&prepared) > limit;
            self.settle(too_large.then_some(true), packer)?;
            self.use_dictionary = too_large;
            self.append_pages(prepared, false, packer)?;
            if too_large {
                self.end_ids(packer)?;
            }
            return Ok(());
        }
        let (present, plain_bytes) = (prepared.present(), prepared.plain_bytes());
        self.append_pages(prepared, true, packer)?;
        if let Some(trial) = &mut self.trial {
            trial.count(present, plain_bytes, !own && present >= COPIED_ROWS);
            if let Some(pays) = trial.judge(&self.pending, &self.dictionary, packer)? {
                self.settle(Some(pays), packer)?;
            }
        } else if self.news.count(present, &self.dictionary) {
            self.end_ids(packer)?;
        }
        Ok(())
    }

    /// Whatever comes is plain from here on.
    fn end_ids(&mut self, packer: &mut Packer) -> Result<()> {
        self.flush(packer)?;
        self.use_dictionary = false;
        Ok(())
    }

    /// Ends the trial, if there is one; `pays` if its outcome is known.
    ///
    /// # Errors
    /// Internal if a page cannot be written.
    pub(super) fn settle(&mut self, pays: Option<bool>, packer: &mut Packer) -> Result<()> {
        let Some(trial) = self.trial.take() else { return Ok(()) };
        let pays = match pays {
            Some(pays) => pays,
            None => trial.compare(&self.pending, &self.dictionary, packer)?,
        };
        if pays {
            self.news = News::since(&self.dictionary);
            return trial.pages().try_for_each(|mut page| self.write(&mut page, packer));
        }
        self.use_dictionary = false;
        let dictionary = std::mem::replace(&mut self.dictionary, Dictionary::new(self.column.width));
        let last = std::mem::take(&mut self.pending);
        for Pending { levels, rows, nulls, ids, .. } in trial.pages().chain([last]) {
            // Levels were kept below 100 when the column was made.
            let max_level = self.column.descriptor.max_def_level() as u8;
            let expanded = ids.iter().map(|id| dictionary.stored(*id).len()).sum();
            let page =
                Page { levels, max_level, rows, nulls, values: Values::Bits(Vec::new()), expanded, packed: None };
            self.append_expanded(&page, &ids, &|id| dictionary.stored(id), packer)?;
        }
        Ok(())
    }

    /// `interns`: plain values become ids.
    fn append_pages(&mut self, prepared: Prepared, interns: bool, packer: &mut Packer) -> Result<()> {
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
                    let mut id_of = |dictionary: &mut Dictionary, i: usize| {
                        let to = &mut remap[ids[i] as usize];
                        if *to == u32::MAX {
                            *to = dictionary.intern(entries.value(ids[i] as usize))?;
                        }
                        Some(*to)
                    };
                    self.append_ids(&page, &mut id_of, packer)?;
                }
                (Values::Ids(ids), Some((entries, packed))) => {
                    let in_order = single && ids.len() == entries.count() && ids.iter().zip(0..).all(|(a, b)| *a == b);
                    let written = copied
                        && in_order
                        && codec == packer.codec()
                        && self.copy(&page, entries, &Packed::Values(packed.clone()), packer)?;
                    if !written {
                        let stored = |id: u32| entries.raw_range(id as usize, id as usize + 1);
                        self.append_expanded(&page, &ids, &stored, packer)?;
                    }
                }
                (Values::Ids(_), None) => return Err(broken("a page without its dictionary")),
                (Values::Plain(values), _) if interns => {
                    let mut id_of = |dictionary: &mut Dictionary, i| dictionary.intern(values.value(i));
                    self.append_ids(&page, &mut id_of, packer)?;
                }
                (Values::Plain(values), _) => {
                    if self.use_dictionary {
                        self.end_ids(packer)?;
                    }
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

    /// `id_of`: the id of a value of the page by its place among those that are not null.
    fn append_ids(
        &mut self,
        page: &Page,
        id_of: &mut dyn FnMut(&mut Dictionary, usize) -> Option<u32>,
        packer: &mut Packer,
    ) -> Result<()> {
        let mut taken = 0;
        for (from, to) in slices(page.rows, PAGE_ROWS) {
            let (levels, present) = part(page, from, to);
            self.make_room(to - from, 0, packer)?;
            for i in taken..taken + present {
                let id = id_of(&mut self.dictionary, i).ok_or_else(|| broken("a dictionary beyond 4 GiB"))?;
                self.pending.ids.push(id);
            }
            taken += present;
            self.take_levels(levels, to - from, to - from - present, packer)?;
        }
        Ok(())
    }

    /// `stored`: the value of an id in plain encoding.
    fn append_expanded<'a>(
        &mut self,
        page: &Page,
        ids: &[u32],
        stored: &dyn Fn(u32) -> &'a [u8],
        packer: &mut Packer,
    ) -> Result<()> {
        let mut taken = 0;
        for (from, to) in slices(page.rows, page_rows(page)) {
            let (levels, present) = part(page, from, to);
            self.make_room(to - from, page.expanded * (to - from) / page.rows, packer)?;
            for id in &ids[taken..taken + present] {
                self.pending.raw.extend_from_slice(stored(*id));
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

    /// Writes what waits as a page, or keeps it while it is open which kind.
    fn flush(&mut self, packer: &mut Packer) -> Result<()> {
        if self.pending.rows == 0 {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        match &mut self.trial {
            Some(trial) => trial.hold(pending),
            None => {
                self.write(&mut pending, packer)?;
                // The buffers are kept for the next page.
                pending.clear();
                self.pending = pending;
            }
        }
        Ok(())
    }

    fn write(&mut self, pending: &mut Pending, packer: &mut Packer) -> Result<()> {
        let mut body = self.level_bytes(&pending.levels)?;
        let dictionary = !pending.ids.is_empty();
        let values = match (self.column.order, self.column.width) {
            (Order::Bool, _) => pending.bits.len(),
            _ if dictionary => pending.ids.len(),
            (_, Some(width)) => pending.raw.len() / width,
            (_, None) => sized_values(&pending.raw).count(),
        };
        // Readers of a page with fewer values than it says lose them, or the file.
        if values != pending.rows - pending.nulls || dictionary && !pending.raw.is_empty() {
            return Err(broken("a page whose values are not its rows"));
        }
        let (bounds, plain_bytes) = if self.column.order == Order::Bool {
            for eight in pending.bits.chunks(8) {
                body.push(eight.iter().rev().fold(0, |byte, bit| byte << 1 | bit));
            }
            (Bounds::of_bits(&pending.bits), 0)
        } else if !dictionary {
            body.extend_from_slice(&pending.raw);
            self.add_to_filter(&pending.raw);
            (raw_bounds(&self.column, &pending.raw), self.text_bytes(pending.raw.len(), values))
        } else {
            let width = hybrid::width_of(pending.ids.iter().copied().max().unwrap_or(0)).max(1);
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
        self.push(page, packed)
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
        let facts = &mut self.facts;
        facts.stored += stored as u64;
        facts.uncompressed += (head.len() + page.uncompressed) as u64;
        facts.rows += page.rows as u64;
        facts.nulls += page.nulls as u64;
        facts.plain_bytes += page.plain_bytes as u64;
        facts.pages.push(PageFacts {
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
        self.settle(None, packer)?;
        self.flush(packer)?;
        let mut pieces = Vec::with_capacity(self.finished.len() + 2);
        let mut dictionary_length = 0;
        if self.facts.pages.iter().any(|page| page.dictionary) {
            let raw = self.dictionary.raw().to_vec();
            let uncompressed = raw.len();
            let packed = packer.pack(raw).ok_or_else(|| broken("a dictionary that cannot be compressed"))?;
            let head = header::write_dictionary(self.dictionary.len(), uncompressed, packed.len())
                .ok_or_else(|| broken("a dictionary beyond 2 GiB"))?;
            dictionary_length = head.len() + packed.len();
            self.facts.stored += dictionary_length as u64;
            self.facts.uncompressed += (head.len() + uncompressed) as u64;
            pieces.extend([Bytes::from(head), Bytes::from(packed)]);
        }
        pieces.append(&mut self.finished);
        if let Some(filter) = &mut self.bloom_filter {
            (0..self.dictionary.len() as u32).for_each(|id| filter.insert(self.dictionary.value(id)));
            filter.fold_to_target_fpp(FALSE_POSITIVES);
        }
        let nan = self.bounds.as_ref().is_some_and(Bounds::has_nan);
        let described = self.facts.describe(&self.column, compression, dictionary_length, self.bounds.as_ref());
        let mut close = described.map_err(|e| broken("its metadata").caused_by(e))?;
        close.bloom_filter = self.bloom_filter.take();
        hide_nothing(&mut close, nan).map_err(|e| broken("its metadata").caused_by(e))?;
        Ok(ClosedChunk { pieces, close, nulls: self.facts.nulls, bounds: self.bounds, column: self.column })
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

/// True if a dictionary of several thousand values has nearly as many entries: with values that repeat by chance, a page
/// of them would take as much as ids and dictionary.
fn hardly_repeats(entries: usize, present: usize) -> bool {
    present >= COPIED_ROWS && entries * 50 >= present * 49
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

pub(super) fn broken(what: &str) -> Error {
    Error::internal(format!("pages could not be merged because of {what}; please report this"))
}
