//! Tasks on local threads, each within its share of the memory.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use lakesmith_core::table::{RewriteOutcome, RewriteTask};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store};

use crate::control::RewriteControl;
use crate::deletes::Deletes;
use crate::rewrite::{TaskContext, rewrite};

/// A task gets at least this much memory when the limit allows it.
const MIN_SHARE_BYTES: u64 = 64 << 20;

/// Runs tasks on threads of its own.
#[derive(Debug, Clone)]
pub struct LocalExecutor {
    store: Store,
    control: RewriteControl,
}

/// A run that did not end well.
#[derive(Debug)]
pub struct RunFailure {
    /// The first error.
    pub error: Error,
    /// Outputs that are visible on the storage but belong to no outcome that was handed out; nothing refers to them.
    pub leftovers: Vec<Location>,
}

impl LocalExecutor {
    /// An executor over the table's storage.
    pub fn new(store: Store, control: RewriteControl) -> Self {
        Self { store, control }
    }

    /// Runs the tasks side by side and hands each outcome to `done`, in the calling thread and in the order in which
    /// tasks finish. The first error stops the others. Progress is told of bytes only; phases are the caller's. The calling thread must not be one of the runtime's.
    ///
    /// An outcome that reached `done` is the caller's, even if `done` failed: its outputs are never among the leftovers.
    ///
    /// # Errors
    /// The first error of a task or of `done`.
    pub fn run(
        &self,
        tasks: Vec<RewriteTask>,
        done: &mut dyn FnMut(RewriteOutcome) -> Result<()>,
    ) -> Result<(), RunFailure> {
        let threads = self.threads(tasks.len());
        let deletes_bytes = self.deletes_bytes(&tasks);
        let memory_bytes = (self.control.memory_bytes - deletes_bytes) / threads as u64;
        let (runtime, cancel) = (self.control.runtime.clone(), self.control.cancel.clone());
        let deletes = Arc::new(Deletes::new(self.store.clone(), runtime, cancel, deletes_bytes));
        // What the tasks leave idle, one of them may use.
        let task_threads = (self.control.threads / threads).max(1);
        let stop = Cancel::default();
        let queue = Arc::new(Mutex::new(VecDeque::from(tasks)));
        let (sender, receiver) = sync_channel::<Finished>(threads);
        let mut error = None;
        let mut leftovers = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let sender = sender.clone();
                let worker = Worker {
                    queue: Arc::clone(&queue),
                    stop: stop.clone(),
                    store: self.store.clone(),
                    control: self.control.clone(),
                    memory_bytes,
                    task_threads,
                    deletes: Arc::clone(&deletes),
                };
                scope.spawn(move || worker.run(&sender));
            }
            drop(sender);
            for (result, outputs) in receiver {
                let failed = match result {
                    Ok(outcome) if error.is_none() => done(outcome).err(),
                    Ok(_) => {
                        leftovers.extend(outputs);
                        None
                    }
                    Err(e) => {
                        leftovers.extend(outputs);
                        Some(e)
                    }
                };
                if let Some(e) = failed
                    && error.is_none()
                {
                    error = Some(e);
                    stop.cancel();
                }
            }
        });
        match error {
            Some(error) => Err(RunFailure { error, leftovers }),
            None => Ok(()),
        }
    }

    /// The part of the memory that is kept for what delete files delete.
    fn deletes_bytes(&self, tasks: &[RewriteTask]) -> u64 {
        let has_any = tasks.iter().flat_map(|task| &task.inputs).any(|input| !input.delete_files.is_empty());
        if has_any { self.control.memory_bytes / 4 } else { 0 }
    }

    fn threads(&self, tasks: usize) -> usize {
        let by_memory = (self.control.memory_bytes / MIN_SHARE_BYTES).clamp(1, 1024) as usize;
        self.control.threads.min(by_memory).min(tasks).max(1)
    }
}

type Finished = (Result<RewriteOutcome>, Vec<Location>);

struct Worker {
    queue: Arc<Mutex<VecDeque<RewriteTask>>>,
    stop: Cancel,
    store: Store,
    control: RewriteControl,
    memory_bytes: u64,
    task_threads: usize,
    deletes: Arc<Deletes>,
}

impl Worker {
    fn run(&self, sender: &SyncSender<Finished>) {
        while !self.stop.is_cancelled() {
            let Some(task) = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return };
            let context = TaskContext {
                store: self.store.clone(),
                control: self.control.clone(),
                memory_bytes: self.memory_bytes,
                threads: self.task_threads,
                stop: self.stop.clone(),
                visible: Arc::default(),
                deletes: Arc::clone(&self.deletes),
            };
            // A panic of a decoder on hostile bytes must not take the run down with its outputs unlisted.
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rewrite(&task, &context)));
            let result = caught.unwrap_or_else(|panic| Err(panicked(&task, panic.as_ref())));
            let outputs = std::mem::take(&mut *context.visible.lock().unwrap_or_else(PoisonError::into_inner));
            if sender.send((result, outputs)).is_err() {
                return;
            }
        }
    }
}

fn panicked(task: &RewriteTask, panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let inputs: Vec<&str> = task.inputs.iter().take(5).map(|i| i.location.as_str()).collect();
    Error::new(ErrorKind::Internal, format!("a rewrite broke off: {text}"))
        .with("task", task.id)
        .with("inputs", inputs.join(", "))
}
