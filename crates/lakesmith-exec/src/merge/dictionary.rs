//! One dictionary for a whole output chunk, filled from many.

use xxhash_rust::xxh3::xxh3_64;

/// Distinct values in the order in which they came.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// Bytes of a value; `None` if each has a length of its own.
    width: Option<usize>,
    /// Values in plain encoding.
    raw: Vec<u8>,
    count: usize,
    /// Where values with lengths of their own begin in `raw`, their lengths left out, and their ends.
    spans: Vec<(u32, u32)>,
    /// Open addressing: hash and id + 1; 0 is free.
    slots: Vec<(u32, u32)>,
}

impl Dictionary {
    /// An empty dictionary of values of so many bytes, or with lengths of their own.
    pub(super) fn new(width: Option<usize>) -> Dictionary {
        Dictionary { width, raw: Vec::new(), count: 0, spans: Vec::new(), slots: Vec::new() }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The dictionary page.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.raw.capacity() + 8 * (self.spans.capacity() + self.slots.capacity())
    }

    /// A value without its length.
    #[inline]
    pub(super) fn value(&self, id: u32) -> &[u8] {
        match self.width {
            Some(width) => &self.raw[id as usize * width..][..width],
            None => {
                let (from, to) = self.spans[id as usize];
                &self.raw[from as usize..to as usize]
            }
        }
    }

    /// A value in plain encoding.
    pub(super) fn stored(&self, id: u32) -> &[u8] {
        match self.width {
            Some(_) => self.value(id),
            None => {
                let (from, to) = self.spans[id as usize];
                &self.raw[from as usize - size_of::<u32>()..to as usize]
            }
        }
    }

    /// The id of a value, which is added if it is new; `None` when the dictionary is full or the value has another width.
    pub(super) fn intern(&mut self, value: &[u8]) -> Option<u32> {
        // Numbers are compared as such, which is what most of the time goes by.
        match self.width {
            Some(4) => self.intern_fixed::<4>(value),
            Some(8) => self.intern_fixed::<8>(value),
            Some(width) if width != value.len() => None,
            _ => self.find_or_add(value, |known, id| known.value(id) == value),
        }
    }

    fn intern_fixed<const WIDTH: usize>(&mut self, value: &[u8]) -> Option<u32> {
        let value: [u8; WIDTH] = value.try_into().ok()?;
        self.find_or_add(&value, |known, id| known.raw[id as usize * WIDTH..][..WIDTH] == value)
    }

    #[inline]
    fn find_or_add(&mut self, value: &[u8], is: impl Fn(&Dictionary, u32) -> bool) -> Option<u32> {
        if self.slots.len() <= self.count * 2 {
            self.grow();
        }
        let hash = xxh3_64(value) as u32;
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (stored, id) = self.slots[slot];
            if id == 0 {
                break;
            }
            if stored == hash && is(self, id - 1) {
                return Some(id - 1);
            }
            slot = (slot + 1) & mask;
        }
        let id = u32::try_from(self.count).ok().filter(|id| *id < i32::MAX as u32)?;
        let sized = self.width.is_none();
        let end = u32::try_from(self.raw.len() + value.len() + size_of::<u32>()).ok()?;
        if sized {
            self.raw.extend_from_slice(&(value.len() as u32).to_le_bytes());
            self.spans.push((self.raw.len() as u32, end));
        }
        self.raw.extend_from_slice(value);
        self.count += 1;
        self.slots[slot] = (hash, id + 1);
        Some(id)
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
        for (hash, id) in old.into_iter().filter(|(_, id)| *id != 0) {
            let mut slot = hash as usize & (size - 1);
            while self.slots[slot].1 != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = (hash, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_an_id() {
        for width in [Some(4), Some(8), Some(5), None] {
            let mut dictionary = Dictionary::new(width);
            let value = |i: u32| [i.to_be_bytes(), i.to_le_bytes()].concat()[..width.unwrap_or(4)].to_vec();
            for _ in 0..2 {
                for i in 0..5_000 {
                    assert_eq!(dictionary.intern(&value(i)), Some(i));
                }
            }
            let bytes = width.unwrap_or(8);
            assert_eq!((dictionary.len(), dictionary.raw().len()), (5_000, 5_000 * bytes));
            assert_eq!(dictionary.value(7), value(7));
            assert_eq!(dictionary.stored(7), &dictionary.raw()[7 * bytes..8 * bytes]);
            // Another width is no value.
            assert_eq!(dictionary.intern(b""), width.is_none().then_some(5_000));
        }
    }

    #[test]
    fn values_have_their_lengths_in_front() {
        let mut dictionary = Dictionary::new(None);
        for (id, value) in [&b"ab"[..], b"", b"abc"].into_iter().enumerate() {
            assert_eq!(dictionary.intern(value), Some(id as u32));
            assert_eq!(dictionary.value(id as u32), value);
        }
        assert_eq!(dictionary.stored(1), [0; 4]);
        assert_eq!(dictionary.stored(2), [3, 0, 0, 0, b'a', b'b', b'c']);
    }
}
