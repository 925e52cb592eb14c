//! One dictionary for a whole output chunk, filled from many.

use xxhash_rust::xxh3::xxh3_64;

/// Distinct values in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// Values in plain encoding.
    raw: Vec<u8>,
    /// Where each value begins in `raw`, its length left out, and its end.
    spans: Vec<(u32, u32)>,
    /// Open addressing: hash and id + 1; 0 is free.
    slots: Vec<(u32, u32)>,
}

impl Dictionary {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
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
    pub(super) fn value(&self, id: u32) -> &[u8] {
        let (from, to) = self.spans[id as usize];
        &self.raw[from as usize..to as usize]
    }

    /// The id of a value, which is added if it is new; `None` when the dictionary is full. `sized`: values get a length.
    pub(super) fn intern(&mut self, value: &[u8], sized: bool) -> Option<u32> {
        if self.slots.len() <= self.spans.len() * 2 {
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
            if stored == hash && self.value(id - 1) == value {
                return Some(id - 1);
            }
            slot = (slot + 1) & mask;
        }
        let id = u32::try_from(self.spans.len()).ok().filter(|id| *id < i32::MAX as u32)?;
        let end = u32::try_from(self.raw.len() + value.len() + 4).ok()?;
        if sized {
            self.raw.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        let from = self.raw.len() as u32;
        self.raw.extend_from_slice(value);
        self.spans.push((from, if sized { end } else { end - 4 }));
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
        let mut dictionary = Dictionary::default();
        for round in 0..2u32 {
            for i in 0..5_000u32 {
                assert_eq!(dictionary.intern(&i.to_be_bytes(), round == 0), Some(i));
            }
        }
        assert_eq!((dictionary.len(), dictionary.raw().len()), (5_000, 40_000));
        assert_eq!(dictionary.value(7), 7u32.to_be_bytes());
        assert_eq!(dictionary.intern(b"", true), Some(5_000));
        assert_eq!(dictionary.value(5_000), b"");
    }
}
