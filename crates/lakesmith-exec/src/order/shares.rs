//! Work that lies in a row, shared between threads so that each goes through consecutive pieces.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Pieces of work of known sizes. Each thread has a range of its own; one that is done takes the second half of the range
/// that has most left.
pub(crate) struct Shares {
    /// Sizes of all pieces before each one, and of all.
    before: Vec<u64>,
    left: Mutex<Vec<Range<usize>>>,
}

impl Shares {
    /// Divides pieces of the given sizes.
    pub(crate) fn new(sizes: impl IntoIterator<Item = u64>, threads: usize) -> Self {
        let mut before = vec![0u64];
        for size in sizes {
            let sum = before[before.len() - 1];
            // A piece without a size is work, too.
            before.push(sum + size.max(1));
        }
        let shares = Self { before, left: Mutex::default() };
        let mut rest = 0..shares.before.len() - 1;
        let ranges = (0..threads).rev().map(|others| {
            let own = shares.cut(&rest, 1, others as u64 + 1);
            let first = rest.start..own;
            rest.start = own;
            first
        });
        let ranges = ranges.collect();
        Self { left: Mutex::new(ranges), ..shares }
    }

    /// Where the first `part` of `of` equal parts of a range ends.
    fn cut(&self, range: &Range<usize>, part: u64, of: u64) -> usize {
        let (from, to) = (self.before[range.start], self.before[range.end]);
        let wanted = from + (u128::from(to - from) * u128::from(part) / u128::from(of.max(1))) as u64;
        range.start + self.before[range.start..range.end].partition_point(|size| *size < wanted)
    }

    /// The next piece for a thread.
    pub(crate) fn claim(&self, thread: usize) -> Option<usize> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left[thread].is_empty() {
            let size = |range: &Range<usize>| self.before[range.end] - self.before[range.start];
            let victim = (0..left.len()).max_by_key(|other| size(&left[*other]))?;
            let middle = self.cut(&left[victim], 1, 2).min(left[victim].end.saturating_sub(1)).max(left[victim].start);
            left[thread] = middle..left[victim].end;
            left[victim].end = middle;
        }
        left[thread].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_handed_out_once_and_mostly_in_a_row() {
        for threads in 1..5 {
            for pieces in 0..40u64 {
                let shares = Shares::new((0..pieces).map(|i| i % 7 * 100), threads);
                let mut seen = Vec::new();
                let mut jumps = 0;
                let mut last = vec![None; threads];
                let mut thread = 0;
                while let Some(piece) = shares.claim(thread) {
                    jumps += usize::from(last[thread].is_some_and(|last| last + 1 != piece));
                    last[thread] = Some(piece);
                    seen.push(piece as u64);
                    // The first thread is three times as fast.
                    thread = if seen.len() % 3 == 0 { (thread + 1) % threads } else { thread };
                }
                seen.sort_unstable();
                assert_eq!(seen, (0..pieces).collect::<Vec<_>>());
                assert!(jumps <= threads * 6, "{jumps} jumps of {threads} threads over {pieces} pieces");
            }
        }
    }
}
