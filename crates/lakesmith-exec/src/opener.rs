//! Inputs opened in order, a few ahead of the one being read.

use std::collections::VecDeque;

use lakesmith_core::table::{DeletionVector, InputFile, RewriteTask};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use tokio::task::JoinHandle;

use crate::file_read::OpenFile;
use crate::footer::{self, Footer};
use crate::rewrite::{TAIL_BYTES, TaskContext};
use crate::target::Strings;
use crate::vector;

/// Inputs opened ahead of the one being read.
const OPEN_AHEAD: usize = 3;

type Opened = (Footer, Option<DeletionVector>);

/// Opens inputs in order, a few ahead.
pub(crate) struct Opener<'a> {
    task: &'a RewriteTask,
    context: &'a TaskContext,
    started: usize,
    taken: usize,
    on_the_way: VecDeque<JoinHandle<Result<Opened>>>,
}

impl<'a> Opener<'a> {
    /// Starts opening.
    ///
    /// # Errors
    /// Usage for a location that is none.
    pub(crate) fn new(task: &'a RewriteTask, context: &'a TaskContext) -> Result<Self> {
        let mut opener = Self { task, context, started: 0, taken: 0, on_the_way: VecDeque::new() };
        opener.start()?;
        Ok(opener)
    }

    fn start(&mut self) -> Result<()> {
        while self.on_the_way.len() <= OPEN_AHEAD && self.started < self.task.inputs.len() {
            let input = self.task.inputs[self.started].clone();
            let location = Location::from_canonical(&input.location)?;
            let store = self.context.store.clone();
            // A small file comes whole with its footer, in one request.
            let whole = self.context.memory_bytes / (8 * (OPEN_AHEAD as u64 + 2));
            let guess = if input.size <= whole { input.size } else { TAIL_BYTES };
            self.on_the_way.push_back(self.context.control.runtime.spawn(open(store, location, input, guess)));
            self.started += 1;
        }
        Ok(())
    }

    /// The next input's footer and vector, in the task's order.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the file; those of the storage.
    pub(crate) fn next(&mut self, strings: Strings) -> Result<(OpenFile, Option<DeletionVector>)> {
        self.start()?;
        let input = &self.task.inputs[self.taken];
        self.taken += 1;
        let Some(mut opening) = self.on_the_way.pop_front() else {
            return Err(Error::internal("no input is left to open"));
        };
        let (footer, vector) = self.context.control.runtime.block_on(&mut opening).map_err(|e| {
            Error::internal("opening an input was stopped").with("path", &input.location).caused_by(e)
        })??;
        let location = Location::from_canonical(&input.location)?;
        Ok((OpenFile::new(self.context.handle(&location, input.size), footer, strings)?, vector))
    }
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.on_the_way.iter().for_each(JoinHandle::abort);
    }
}

async fn open(store: Store, location: Location, input: InputFile, guess: u64) -> Result<Opened> {
    let footer = footer::read(&store, &location, input.size, guess).await?;
    let rows = footer.rows();
    if input.rows.is_some_and(|expected| expected != rows) {
        return Err(Error::corrupt(format!(
            "the data file holds {rows} rows, the log says {}; one of them is wrong, so it is not rewritten",
            input.rows.unwrap_or(0)
        ))
        .with("path", &input.location));
    }
    let vector = match &input.deletes {
        Some(info) => Some(vector::load(&store, info, rows, &input.location).await?),
        None => None,
    };
    Ok((footer, vector))
}
