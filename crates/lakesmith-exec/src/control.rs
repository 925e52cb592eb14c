//! What a run may use and how it is watched and stopped.

use std::path::PathBuf;
use std::sync::Arc;

use lakesmith_storage::{Cancel, Progress, World};

/// Limits and companions of a run of rewrites.
#[derive(Clone)]
pub struct RewriteControl {
    /// Bytes that all tasks together may hold: read windows, batches and writer buffers.
    pub memory_bytes: u64,
    /// Threads at most; fewer run when the memory is short.
    pub threads: usize,
    /// Folder for what does not fit into the memory.
    pub spill_folder: PathBuf,
    /// Stops the run between batches.
    pub cancel: Cancel,
    /// Told of bytes and rows as they are read.
    pub progress: Arc<dyn Progress>,
    /// Clock for the modification times of outputs.
    pub now_ms: Arc<dyn World>,
    /// Runs the storage's requests; never entered from its own threads.
    pub runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for RewriteControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RewriteControl")
            .field("memory_bytes", &self.memory_bytes)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
