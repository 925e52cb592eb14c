//! What the contents of delete files may take in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Room that there is always for a while.
const ROOM_MIN: usize = 1 << 10;

/// Bytes that are held, and how many may be.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    held: AtomicUsize,
    most: AtomicUsize,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub(super) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, held: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The most bytes that were ever held.
    #[cfg(test)]
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Bytes that may be held in addition for as long as the scan lasts. A quarter is kept for what comes and goes.
    pub(super) fn room(&self) -> usize {
        (self.limit - self.limit / 4).saturating_sub(self.held())
    }

    /// Bytes that may be held for a while: some keys, whatever the limit is.
    pub(super) fn room_for_a_while(&self) -> usize {
        self.limit.saturating_sub(self.held()).max(self.limit / 4).max(ROOM_MIN)
    }

    /// Tells that something which took `before` bytes takes `after`.
    pub(super) fn change(&self, before: usize, after: usize) {
        if after >= before {
            let held = self.held.fetch_add(after - before, Ordering::Relaxed) + (after - before);
            self.most.fetch_max(held, Ordering::Relaxed);
        } else {
            self.held.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}
