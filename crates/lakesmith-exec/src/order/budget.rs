//! How the memory of a task is divided between its threads and their buffers.

use lakesmith_core::op::RewriteLimits;

/// A thread more is worth its memory from here on.
const THREAD_BYTES: u64 = 32 << 20;
/// Decoded bytes of a stored one, rather too many.
const STORED_TO_DECODED: u64 = 3;
/// Decoded bytes of a spilled block, at least and at most.
const BLOCK_BYTES: (u64, u64) = (32 << 10, 1 << 20);

/// Limits of an ordered rewrite. All bytes but those of the sample are one thread's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Threads.
    pub threads: usize,
    /// All that a thread may hold.
    pub share_bytes: u64,
    /// Compressed bytes of an input fetched at once.
    pub window_bytes: u64,
    /// Decoded bytes of a batch, when reading and when writing.
    pub batch_bytes: u64,
    /// A run: decoded rows, their keys and their order.
    pub buffer_bytes: u64,
    /// Blocks that are being merged.
    pub merge_bytes: u64,
    /// Decoded bytes of a spilled block at most, unless one row has more.
    pub block_bytes: u64,
    /// Encoded bytes of the row group being written.
    pub writer_bytes: u64,
    /// Sampled keys, of all threads.
    pub sample_bytes: u64,
}

impl Budget {
    /// Divides `memory_bytes` between at most `threads` threads.
    pub(crate) fn new(memory_bytes: u64, threads: usize) -> Budget {
        let memory_bytes = memory_bytes.max(RewriteLimits::MEMORY_BYTES_MIN);
        let by_memory = usize::try_from(memory_bytes / THREAD_BYTES).unwrap_or(usize::MAX);
        let threads = threads.min(by_memory).max(1);
        let share_bytes = memory_bytes / threads as u64;
        Budget {
            threads,
            share_bytes,
            window_bytes: share_bytes / 16,
            batch_bytes: (share_bytes / 32).clamp(128 << 10, 8 << 20),
            buffer_bytes: share_bytes / 5 * 2,
            merge_bytes: share_bytes / 4,
            block_bytes: BLOCK_BYTES.1,
            writer_bytes: share_bytes / 4,
            sample_bytes: memory_bytes / 8,
        }
    }

    /// Lets blocks be so small that the expected number of runs can be merged at once, if that is possible.
    pub(crate) fn expect_stored(&mut self, stored_bytes: u64) {
        let runs = (stored_bytes.saturating_mul(STORED_TO_DECODED) / self.buffer_bytes.max(1) + 1).saturating_mul(2);
        self.block_bytes = (self.merge_bytes / runs).clamp(BLOCK_BYTES.0, BLOCK_BYTES.1);
    }
}
