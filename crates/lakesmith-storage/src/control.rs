//! How a running operation is watched and stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lakesmith_core::{Error, ErrorKind, Result};

/// A request to stop, shared by all threads of an operation.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Forgets the request, before the next piece of work.
    pub fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// True once somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`ErrorKind::Cancelled`] once somebody asked.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "stopped at the user's request; nothing further was committed",
            ));
        }
        Ok(())
    }
}

/// Watches long work. Called from several threads.
pub trait Progress: Send + Sync {
    /// A phase begins: its name and how many bytes it will read.
    fn begin(&self, phase: &str, total_bytes: u64);
    /// Work done since the last call.
    fn advance(&self, bytes: u64, rows: u64);
    /// The phase is over.
    fn end(&self);
}

/// Watches nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _phase: &str, _total_bytes: u64) {}
    fn advance(&self, _bytes: u64, _rows: u64) {}
    fn end(&self) {}
}
