//! Progress of a task that may begin again: what is done twice is told once.

use std::sync::{Arc, Mutex, PoisonError};

use lakesmith_storage::Progress;

/// Passes on only what goes beyond the attempts before.
pub(crate) struct ToldOnce {
    inner: Arc<dyn Progress>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    bytes: Count,
    rows: Count,
}

#[derive(Default)]
struct Count {
    /// Of this attempt.
    done: u64,
    /// The most of any attempt.
    told: u64,
}

impl Count {
    /// What is new of so much more.
    fn add(&mut self, more: u64) -> u64 {
        self.done += more;
        let new = self.done.saturating_sub(self.told);
        self.told += new;
        new
    }
}

impl ToldOnce {
    pub(crate) fn new(inner: Arc<dyn Progress>) -> Self {
        Self { inner, counts: Mutex::default() }
    }

    /// The next attempt begins, and has no need to read so many bytes.
    pub(crate) fn begin_again(&self, done_bytes: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.bytes.done = 0;
        counts.rows.done = 0;
        drop(counts);
        self.advance(done_bytes, 0);
    }
}

impl Progress for ToldOnce {
    fn begin(&self, phase: &str, total_bytes: u64) {
        self.inner.begin(phase, total_bytes);
    }

    fn advance(&self, bytes: u64, rows: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, rows) = (counts.bytes.add(bytes), counts.rows.add(rows));
        drop(counts);
        if (bytes, rows) != (0, 0) {
            self.inner.advance(bytes, rows);
        }
    }

    fn end(&self) {
        self.inner.end();
    }
}
