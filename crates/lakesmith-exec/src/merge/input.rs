//! A column chunk of an input taken apart: levels, values or ids, dictionary. Whatever is unusual is left to the decoder.

use bytes::Bytes;

use super::codec::{self, Codec};
use super::header::{self, Kind, PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};
use super::hybrid;
use super::leaf::Leaf;

/// Plain-encoded values one after the other.
#[derive(Debug)]
pub(super) struct Plain {
    bytes: Vec<u8>,
    /// Where the values begin in `bytes`.
    start: usize,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    Fixed(usize),
    /// Where each value's length begins, and the end.
    Offsets(Vec<u32>),
}

impl Plain {
    /// Checks that the bytes from `start` are exactly `count` values.
    fn new(bytes: Vec<u8>, start: usize, count: usize, leaf: &Leaf) -> Option<Plain> {
        let values = bytes.get(start..)?;
        let layout = match leaf.width {
            Some(width) => {
                if count.checked_mul(width)? != values.len() {
                    return None;
                }
                Layout::Fixed(width)
            }
            None => {
                u32::try_from(bytes.len()).ok()?;
                // No more room is taken than the lengths alone would need.
                values.len().checked_sub(count.checked_mul(4)?)?;
                let mut offsets = Vec::with_capacity(count + 1);
                let mut at = 0;
                for _ in 0..count {
                    offsets.push(at as u32);
                    let length = u32::from_le_bytes(values.get(at..at + 4)?.try_into().ok()?) as usize;
                    let value = values.get(at + 4..(at + 4).checked_add(length)?)?;
                    if leaf.is_text() && !value.is_ascii() {
                        std::str::from_utf8(value).ok()?;
                    }
                    at += 4 + length;
                }
                if at != values.len() {
                    return None;
                }
                offsets.push(at as u32);
                Layout::Offsets(offsets)
            }
        };
        Some(Plain { bytes, start, layout })
    }

    /// Number of values.
    pub(super) fn count(&self) -> usize {
        match &self.layout {
            Layout::Fixed(width) => self.raw().len() / width,
            Layout::Offsets(offsets) => offsets.len() - 1,
        }
    }

    /// All values with their lengths.
    pub(super) fn raw(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Values `from..to` with their lengths.
    pub(super) fn raw_range(&self, from: usize, to: usize) -> &[u8] {
        match &self.layout {
            Layout::Fixed(width) => &self.raw()[from * width..to * width],
            Layout::Offsets(offsets) => &self.raw()[offsets[from] as usize..offsets[to] as usize],
        }
    }

    /// One value without its length.
    pub(super) fn value(&self, i: usize) -> &[u8] {
        match &self.layout {
            Layout::Fixed(width) => &self.raw()[i * width..(i + 1) * width],
            Layout::Offsets(offsets) => &self.raw()[offsets[i] as usize + 4..offsets[i + 1] as usize],
        }
    }

    /// Bytes that the values at `ids` have in plain encoding.
    fn expanded(&self, ids: &[u32]) -> usize {
        match &self.layout {
            Layout::Fixed(width) => width * ids.len(),
            Layout::Offsets(o) => ids.iter().map(|id| (o[*id as usize + 1] - o[*id as usize]) as usize).sum(),
        }
    }
}

/// A data page's values without its nulls.
#[derive(Debug)]
pub(super) enum Values {
    /// Plain.
    Plain(Plain),
    /// Into the dictionary.
    Ids(Vec<u32>),
    /// Flags, one a byte.
    Bits(Vec<u8>),
}

/// The compressed form of a plain page.
#[derive(Debug)]
pub(super) enum Packed {
    /// Levels and values together, as the output would have them, and their bytes when decompressed.
    Whole(Bytes, usize),
    /// The values alone.
    Values(Bytes),
}

/// One data page.
#[derive(Debug)]
pub(super) struct Page {
    /// Definition levels of the output's column; empty if it has none.
    pub levels: Vec<u8>,
    /// The level of a value that is not null.
    pub max_level: u8,
    /// Values with nulls.
    pub rows: usize,
    /// Nulls.
    pub nulls: usize,
    /// The rest.
    pub values: Values,
    /// Bytes of the values in plain encoding.
    pub expanded: usize,
    /// How it was stored, if that is of use.
    pub packed: Option<Packed>,
}

/// A chunk that can be merged.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Entries, and their compressed form.
    pub dictionary: Option<(Plain, Bytes)>,
    /// In order.
    pub pages: Vec<Page>,
    /// How the pages were compressed.
    pub codec: Codec,
}

impl Prepared {
    /// Values that are not null.
    pub(super) fn present(&self) -> usize {
        self.pages.iter().map(|page| page.rows - page.nulls).sum()
    }

    /// Bytes of all values in plain encoding.
    pub(super) fn plain_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.expanded).sum()
    }
}

/// Takes a chunk of `rows` rows apart, if it holds nothing unusual and no more than `limit` bytes at once.
pub(super) fn prepare(chunk: &Bytes, codec: Codec, leaf: &Leaf, rows: usize, limit: usize) -> Option<Prepared> {
    let mut left = limit.checked_sub(rows.checked_mul(1 + size_of::<u32>())?)?;
    let (mut at, mut seen) = (0, 0);
    let mut dictionary: Option<(Plain, Bytes)> = None;
    let mut pages = Vec::new();
    while seen < rows {
        let header = header::read(chunk.get(at..)?)?;
        let from = at + header.length;
        at = from.checked_add(header.stored)?;
        if at > chunk.len() {
            return None;
        }
        let stored = chunk.slice(from..at);
        left = left.checked_sub(header.uncompressed)?;
        if let Kind::Dictionary { values, encoding } = header.kind {
            if dictionary.is_some() || !pages.is_empty() || !matches!(encoding, PLAIN | PLAIN_DICTIONARY) {
                return None;
            }
            let bytes = codec::unpack(codec, &stored, header.uncompressed)?;
            dictionary = Some((Plain::new(bytes, 0, values, leaf)?, stored));
            continue;
        }
        if header.kind.values() > rows - seen {
            return None;
        }
        let body = Body::open(&header, stored, codec, leaf)?;
        seen += body.rows;
        pages.push(body.page(dictionary.as_ref().map(|(plain, _)| plain), leaf)?);
    }
    (seen == rows && at == chunk.len()).then_some(Prepared { dictionary, pages, codec })
}

/// A data page of either version, decompressed.
struct Body {
    rows: usize,
    nulls: usize,
    encoding: i32,
    levels: Vec<u8>,
    bytes: Vec<u8>,
    /// Where the values begin in `bytes`.
    start: usize,
    packed: Option<Packed>,
}

impl Body {
    fn open(header: &header::Header, stored: Bytes, codec: Codec, leaf: &Leaf) -> Option<Body> {
        match header.kind {
            Kind::Data { values, encoding, def_encoding } => {
                let bytes = codec::unpack(codec, &stored, header.uncompressed)?;
                let (mut levels, mut start) = (&bytes[..0], 0);
                if leaf.stored_max() > 0 {
                    if def_encoding != RLE {
                        return None;
                    }
                    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
                    start = length.checked_add(4)?;
                    levels = bytes.get(4..start)?;
                }
                let (levels, nulls) = read_levels(levels, values, leaf)?;
                let packed = match leaf.stored_max() {
                    0 => Some(Packed::Values(stored)),
                    _ if leaf.keeps_levels() => Some(Packed::Whole(stored, header.uncompressed)),
                    _ => None,
                };
                Some(Body { rows: values, nulls, encoding, levels, bytes, start, packed })
            }
            Kind::DataV2 { values, nulls, rows, encoding, def_bytes, rep_bytes, compressed } => {
                if rows != values || rep_bytes != 0 || (leaf.stored_max() == 0 && def_bytes != 0) {
                    return None;
                }
                let (levels, counted) = read_levels(stored.get(..def_bytes)?, values, leaf)?;
                if counted != nulls {
                    return None;
                }
                let rest = stored.slice(def_bytes..);
                let size = header.uncompressed.checked_sub(def_bytes)?;
                let as_stored = if compressed { codec } else { Codec::Uncompressed };
                let bytes = if rest.is_empty() { Vec::new() } else { codec::unpack(as_stored, &rest, size)? };
                let packed = (as_stored == codec && bytes.len() == size && size > 0).then_some(Packed::Values(rest));
                Some(Body { rows: values, nulls, encoding, levels, bytes, start: 0, packed })
            }
            Kind::Dictionary { .. } => None,
        }
    }

    fn page(self, dictionary: Option<&Plain>, leaf: &Leaf) -> Option<Page> {
        let present = self.rows - self.nulls;
        let raw = self.bytes.get(self.start..)?;
        let flags = leaf.is_bool();
        let (values, expanded) = match self.encoding {
            PLAIN if flags => (Values::Bits(plain_bits(raw, present)?), present.div_ceil(8)),
            RLE if flags => (Values::Bits(rle_bits(raw, present)?), present.div_ceil(8)),
            PLAIN => {
                let size = raw.len();
                (Values::Plain(Plain::new(self.bytes, self.start, present, leaf)?), size)
            }
            PLAIN_DICTIONARY | RLE_DICTIONARY if !flags => {
                let dictionary = dictionary?;
                let mut ids = Vec::with_capacity(present);
                if present > 0 {
                    hybrid::decode(raw.get(1..)?, raw[0], present, &mut ids)?;
                }
                if ids.iter().any(|id| *id as usize >= dictionary.count()) {
                    return None;
                }
                let expanded = dictionary.expanded(&ids);
                (Values::Ids(ids), expanded)
            }
            _ => return None,
        };
        let packed = self.packed.filter(|_| matches!(values, Values::Plain(_)));
        let (levels, max_level) = (self.levels, leaf.max());
        Some(Page { levels, max_level, rows: self.rows, nulls: self.nulls, values, expanded, packed })
    }
}

/// Definition levels of the output's column, and the number of nulls.
fn read_levels(encoded: &[u8], values: usize, leaf: &Leaf) -> Option<(Vec<u8>, usize)> {
    let max = leaf.stored_max();
    let mut levels: Vec<u8> = Vec::with_capacity(values);
    if max == 0 {
        levels.resize(values, 0);
    } else {
        hybrid::decode(encoded, hybrid::width_of(max.into()), values, &mut levels)?;
    }
    if levels.iter().any(|level| *level > max) {
        return None;
    }
    let nulls = levels.iter().filter(|level| **level != max).count();
    if !leaf.keeps_levels() {
        levels.iter_mut().for_each(|level| *level = leaf.level(*level));
    }
    if leaf.max() == 0 {
        levels.clear();
    }
    Some((levels, nulls))
}

fn plain_bits(packed: &[u8], count: usize) -> Option<Vec<u8>> {
    if packed.len() != count.div_ceil(8) {
        return None;
    }
    Some((0..count).map(|i| packed[i / 8] >> (i % 8) & 1).collect())
}

fn rle_bits(bytes: &[u8], count: usize) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let mut bits = Vec::with_capacity(count);
    hybrid::decode(bytes.get(4..4usize.checked_add(length)?)?, 1, count, &mut bits)?;
    Some(bits)
}
