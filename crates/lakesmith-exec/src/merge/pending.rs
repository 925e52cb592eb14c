//! Rows that wait until they fill a page, and how pages of inputs are cut for it.

use super::input::Page;

/// Rows of a page that is put together from smaller ones.
pub(crate) const PAGE_ROWS: usize = 20_000;
/// Bytes of a page that is put together from smaller ones, about.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// Rows that wait until they fill a page: ids, plain values or flags.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) levels: Vec<u8>,
    pub(super) rows: usize,
    pub(super) nulls: usize,
    pub(super) ids: Vec<u32>,
    pub(super) raw: Vec<u8>,
    pub(super) bits: Vec<u8>,
}

impl Pending {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.levels.capacity() + 4 * self.ids.capacity() + self.raw.capacity() + self.bits.capacity()
    }

    /// Gives back what a page does not need.
    pub(super) fn shrink(&mut self) {
        self.levels.shrink_to_fit();
        self.ids.shrink_to_fit();
    }

    /// Empties it; the buffers stay.
    pub(super) fn clear(&mut self) {
        self.levels.clear();
        self.ids.clear();
        self.raw.clear();
        self.bits.clear();
        (self.rows, self.nulls) = (0, 0);
    }
}

/// Rows of a page whose values are as large as these.
pub(super) fn page_rows(page: &Page) -> usize {
    (PAGE_BYTES * page.rows / page.expanded.max(1)).clamp(1, PAGE_ROWS)
}

/// Rows cut into steps.
pub(super) fn slices(rows: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(step).map(move |from| (from, (from + step).min(rows)))
}

/// Levels of some rows of a page, and how many of them have a value.
pub(super) fn part(page: &Page, from: usize, to: usize) -> (&[u8], usize) {
    if from == 0 && to == page.rows {
        return (&page.levels, page.rows - page.nulls);
    }
    match page.levels.get(from..to) {
        Some(levels) => (levels, levels.iter().filter(|l| **l == page.max_level).count()),
        None => (&[], to - from),
    }
}
