//! Inputs opened in order, a few ahead of the one being read.

use std::collections::VecDeque;

use lakesmith_core::table::{DeletionVector, InputFile, ReadSpec};
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

/// Opens inputs in the order in which `source` names them, a few ahead. What `T` says of an input comes back with it.
pub(crate) struct Opener<'a, T> {
    context: &'a TaskContext,
    source: Box<dyn Iterator<Item = (&'a InputFile, T)> + 'a>,
    on_the_way: VecDeque<(&'a InputFile, T, JoinHandle<Result<Opened>>)>,
}

impl<'a, T> Opener<'a, T> {
    /// Starts opening.
    ///
    /// # Errors
    /// Usage for a location that is none.
    pub(crate) fn new(context: &'a TaskContext, source: impl Iterator<Item = (&'a InputFile, T)> + 'a) -> Result<Self> {
        let mut opener = Self { context, source: Box::new(source), on_the_way: VecDeque::new() };
        opener.start()?;
        Ok(opener)
    }

    fn start(&mut self) -> Result<()> {
        while self.on_the_way.len() <= OPEN_AHEAD {
            let Some((input, tag)) = self.source.next() else { break };
            let location = Location::from_canonical(&input.location)?;
            let store = self.context.store.clone();
            // A small file comes whole with its footer, in one request.
            let whole = self.context.memory_bytes / (8 * (OPEN_AHEAD as u64 + 2));
            let guess = if input.size <= whole { input.size } else { TAIL_BYTES };
            let opening = self.context.control.runtime.spawn(open(store, location, input.clone(), guess));
            self.on_the_way.push_back((input, tag, opening));
        }
        Ok(())
    }

    /// The next input; `None` after the last one.
    ///
    /// # Errors
    /// Usage for a location that is none.
    pub(crate) fn next(&mut self) -> Result<Option<Opening<'a, T>>> {
        self.start()?;
        let next = self.on_the_way.pop_front();
        Ok(next.map(|(input, tag, opening)| Opening { input, tag, context: self.context, opening }))
    }
}

/// An input that is being opened.
pub(crate) struct Opening<'a, T> {
    /// The input.
    pub input: &'a InputFile,
    /// What its source said of it.
    pub tag: T,
    context: &'a TaskContext,
    opening: JoinHandle<Result<Opened>>,
}

impl<T> Opening<'_, T> {
    /// Its footer and its deleted rows, by its vector and by its delete files.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the file; those of the storage.
    pub(crate) fn wait(self, strings: Strings, read: &ReadSpec) -> Result<(OpenFile, Option<DeletionVector>)> {
        let (footer, vector) = self.context.control.runtime.block_on(self.opening).map_err(|e| {
            Error::internal("opening an input was stopped").with("path", &self.input.location).caused_by(e)
        })??;
        let location = Location::from_canonical(&self.input.location)?;
        let file = OpenFile::new(self.context.handle(&location, self.input.size), footer, strings)?;
        let deleted = self.context.deletes.with_vector(self.input, &file, read, vector)?;
        Ok((file, deleted))
    }
}

impl<T> Drop for Opener<'_, T> {
    fn drop(&mut self) {
        self.on_the_way.iter().for_each(|(_, _, opening)| opening.abort());
    }
}

async fn open(store: Store, location: Location, input: InputFile, guess: u64) -> Result<Opened> {
    let footer = footer::read(&store, &location, input.size, guess).await?;
    let rows = footer.rows();
    check_rows(&input, rows)?;
    let vector = match &input.deletes {
        Some(info) => Some(vector::load(&store, info, rows, &input.location).await?),
        None => None,
    };
    Ok((footer, vector))
}

/// Compares the rows of a footer with those of the log.
///
/// # Errors
/// Corrupt if they differ.
pub(crate) fn check_rows(input: &InputFile, rows: u64) -> Result<()> {
    match input.rows {
        Some(expected) if expected != rows => Err(Error::corrupt(format!(
            "the data file holds {rows} rows, the log says {expected}; one of them is wrong, so it is not read"
        ))
        .with("path", &input.location)),
        _ => Ok(()),
    }
}
