//! Whether a dictionary pays for a chunk, found out from the first of its values.
//!
//! Values that hardly repeat within each of many small inputs may repeat all the more over all of them, and a dictionary
//! that a small input has may be of no use for all. So the first pages wait as ids until enough is known.

use lakesmith_core::{Error, Result};

use super::chunk::{MAX_DICTIONARY_BYTES, broken};
use super::codec::Packer;
use super::dictionary::Dictionary;
use super::hybrid;
use super::pending::{PAGE_ROWS, Pending};

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
        let is_new = dictionary.len() * 20 >= self.present * 19;
        // A few large values among many may repeat: there is no bound to what ids expand to.
        if copies && self.as_ids(dictionary) >= self.plain_bytes || is_new && !self.is_clear(dictionary) {
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

#[cfg(test)]
mod tests {
    use parquet::basic::Compression;

    use super::*;

    /// A trial of these values, page by page.
    fn judged(values: impl Iterator<Item = String>) -> (Trial, Pending, Dictionary) {
        let (mut trial, mut page, mut dictionary) = (Trial::default(), Pending::default(), Dictionary::new(None));
        for value in values {
            page.ids.push(dictionary.intern(value.as_bytes()).unwrap());
            page.rows += 1;
            trial.count(1, value.len() + 4, false);
            if page.rows == PAGE_ROWS {
                trial.hold(std::mem::take(&mut page));
            }
        }
        (trial, page, dictionary)
    }

    fn verdict(values: impl Iterator<Item = String>) -> Option<bool> {
        let (mut trial, page, dictionary) = judged(values);
        trial.judge(&page, &dictionary, &mut Packer::new(Compression::UNCOMPRESSED).unwrap()).unwrap()
    }

    #[test]
    fn values_that_repeat_become_ids_and_others_do_not() {
        let few = |i: usize| format!("value {}", i % 50);
        assert_eq!(verdict((0..PAGE_ROWS - 1).map(few)), None);
        assert_eq!(verdict((0..PAGE_ROWS).map(few)), Some(true));
        assert_eq!(verdict((0..PAGE_ROWS).map(|i| format!("value {i}"))), Some(false));
    }

    #[test]
    fn large_values_that_repeat_among_many_that_do_not_stay_ids() {
        // Nineteen of twenty values are new, but what repeats has nearly all bytes.
        let value = |i: usize| if i.is_multiple_of(25) { "x".repeat(9_000) } else { i.to_string() };
        assert_eq!(verdict((0..PAGE_ROWS).map(value)), Some(true));
    }

    #[test]
    fn news_are_values_of_which_nine_in_ten_are_new() {
        for (share, most) in [(10, false), (1, true)] {
            let mut dictionary = Dictionary::new(None);
            dictionary.intern(b"0").unwrap();
            let mut news = News::since(&dictionary);
            for i in 0..PAGE_ROWS {
                dictionary.intern((i / share).to_string().as_bytes()).unwrap();
            }
            assert!(!news.count(PAGE_ROWS - 1, &dictionary));
            assert_eq!(news.count(1, &dictionary), most);
        }
    }
}
