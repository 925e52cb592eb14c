//! Whether a dictionary pays for a chunk, found out from the first of its values.
//!
//! Values that hardly repeat within each of many small inputs may repeat all the more over all of them, and a dictionary
//! that a small input has may be of no use for all. So the first pages wait as ids until enough is known.

use lakesmith_core::{Error, Result};

use super::chunk::{MAX_DICTIONARY_BYTES, PAGE_ROWS, Pending, broken};
use super::codec::Packer;
use super::dictionary::Dictionary;
use super::hybrid;

/// With so many values, those that are packed both ways tell.
const LONG_VALUES: usize = 10 * PAGE_ROWS;
/// Values with more bytes are not packed where counting tells: there is no bound to what ids expand to.
const MAX_COMPARED_BYTES: usize = 4 << 20;

/// Pages of ids that may become plain.
#[derive(Default)]
pub(super) struct Trial {
    held: Vec<Pending>,
    /// Values of chunks whose pages could be copied.
    copyable: usize,
    /// Values that are not null.
    present: usize,
    /// Their bytes in plain encoding.
    plain_bytes: usize,
    /// Values when they were last packed both ways.
    compared: usize,
}

impl Trial {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.held.iter().map(Pending::memory).sum()
    }

    /// Keeps a full page.
    pub(super) fn hold(&mut self, mut page: Pending) {
        page.shrink();
        self.held.push(page);
    }

    /// Counts the values of a chunk, with their bytes in plain encoding; `copyable`: its pages could be copied.
    pub(super) fn count(&mut self, present: usize, plain_bytes: usize, copyable: bool) {
        self.copyable += if copyable { present } else { 0 };
        self.present += present;
        self.plain_bytes += plain_bytes;
    }

    /// Whether the dictionary pays, if enough is known; `last` is a page that is not full.
    ///
    /// # Errors
    /// Internal for a failure of the codec.
    pub(super) fn judge(
        &mut self,
        last: &Pending,
        dictionary: &Dictionary,
        packer: &mut Packer,
    ) -> Result<Option<bool>> {
        let is_long = self.present >= LONG_VALUES || dictionary.raw().len() > MAX_DICTIONARY_BYTES;
        if self.present < PAGE_ROWS && !is_long {
            return Ok(None);
        }
        // Looking up every value takes longer than copying pages, so it had better pay soon where they could be copied.
        let copies = self.copyable * 2 >= self.present;
        if copies && self.as_ids(dictionary) >= self.plain_bytes || dictionary.len() * 20 >= self.present * 19 {
            return Ok(Some(false));
        }
        if is_long || self.is_clear(dictionary) && self.present >= 2 * self.compared {
            self.compared = self.present;
            let pays = self.compare(last, dictionary, packer)?;
            return Ok((pays || is_long).then_some(pays));
        }
        Ok(None)
    }

    /// Bytes of ids and dictionary before compression, about.
    fn as_ids(&self, dictionary: &Dictionary) -> usize {
        let width = usize::from(hybrid::width_of(dictionary.len() as u32));
        dictionary.raw().len() + self.present * width / 8
    }

    /// True if ids and dictionary have half the bytes of the values before compression.
    fn is_clear(&self, dictionary: &Dictionary) -> bool {
        self.as_ids(dictionary) * 2 <= self.plain_bytes
    }

    /// Whether the dictionary and the ids take no more bytes than the values.
    ///
    /// # Errors
    /// Internal for a failure of the codec.
    pub(super) fn compare(&self, last: &Pending, dictionary: &Dictionary, packer: &mut Packer) -> Result<bool> {
        if self.plain_bytes > MAX_COMPARED_BYTES && self.is_clear(dictionary) {
            return Ok(true);
        }
        let mut packed = |bytes: Vec<u8>| {
            let packed = packer.pack(bytes).ok_or_else(|| broken("a page that cannot be compressed"))?;
            Ok::<usize, Error>(packed.len())
        };
        let mut as_ids = packed(dictionary.raw().to_vec())?;
        let mut as_values = 0;
        for page in self.held.iter().chain([last]).filter(|page| !page.ids.is_empty()) {
            let width = hybrid::width_of(page.ids.iter().copied().max().unwrap_or(0)).max(1);
            let mut ids = vec![width];
            hybrid::encode(&page.ids, width, &mut ids);
            as_ids += packed(ids)?;
            let values: Vec<&[u8]> = page.ids.iter().map(|id| dictionary.stored(*id)).collect();
            as_values += packed(values.concat())?;
        }
        Ok(as_ids <= as_values)
    }

    /// The full pages, in order.
    pub(super) fn pages(self) -> impl Iterator<Item = Pending> {
        self.held.into_iter()
    }
}

/// Watches whether values still repeat.
#[derive(Default)]
pub(super) struct News {
    present: usize,
    /// Values of the dictionary when counting began.
    known: usize,
}

impl News {
    /// Begins to count.
    pub(super) fn since(dictionary: &Dictionary) -> News {
        News { present: 0, known: dictionary.len() }
    }

    /// Counts values that came; true if nine of ten of late were new.
    pub(super) fn count(&mut self, present: usize, dictionary: &Dictionary) -> bool {
        self.present += present;
        if self.present < PAGE_ROWS {
            return false;
        }
        let new = dictionary.len() - self.known;
        let most = new * 10 >= self.present * 9;
        *self = News::since(dictionary);
        most
    }
}
