//! Threads that work on one task together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use lakesmith_core::{Error, ErrorKind, Result};

use crate::rewrite::TaskContext;

/// One of the threads.
pub(crate) struct Worker<'a> {
    /// Its number, from 0.
    pub number: usize,
    /// The task's context with the thread's share of the memory.
    pub context: TaskContext,
    failed: &'a AtomicBool,
}

impl Worker<'_> {
    /// Stops a thread when the run is cancelled or another thread failed.
    ///
    /// # Errors
    /// Cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "another thread of the task failed"));
        }
        self.context.check()
    }
}

/// Runs `work` on so many threads, each with `share_bytes` of memory; results come in the order of their numbers.
///
/// # Errors
/// That of the first thread, by number, that failed by itself.
pub(crate) fn run<T: Send>(
    context: &TaskContext,
    threads: usize,
    share_bytes: u64,
    work: impl Fn(&Worker<'_>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let failed = AtomicBool::new(false);
    let one = |number: usize| {
        let context = TaskContext { memory_bytes: share_bytes, ..context.clone() };
        let worker = Worker { number, context, failed: &failed };
        // A panic must stop the others as an error does.
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&worker)));
        if !matches!(caught, Ok(Ok(_))) {
            failed.store(true, Ordering::Relaxed);
        }
        caught.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let joined = |thread: ScopedJoinHandle<'_, Result<T>>| {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let results: Vec<Result<T>> = if threads <= 1 {
        vec![one(0)]
    } else {
        std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
            threads.into_iter().map(joined).collect()
        })
    };
    let mut stopped = None;
    let mut done = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) if error.kind() == ErrorKind::Cancelled => stopped = stopped.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match stopped {
        Some(error) => Err(error),
        None => Ok(done),
    }
}
