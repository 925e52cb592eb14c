//! Results on standard output.

pub(crate) mod health;
pub(crate) mod json;
mod layout;
pub(crate) mod reference;
mod restore;
pub(crate) mod tables;
mod vacuum;

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use lakesmith::{Error, Result};

/// Standard output. When the reader goes away the rest is dropped and the work goes on: a closed pager must not stop
/// the statements that follow.
pub(crate) struct Stdout {
    inner: BufWriter<io::Stdout>,
    closed: bool,
    terminal: bool,
    wants_all: bool,
}

impl Stdout {
    /// `wants_all`: whoever reads it asked for everything that there is to tell.
    pub(crate) fn new(wants_all: bool) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Self { inner: BufWriter::with_capacity(1 << 16, stdout), closed: false, terminal, wants_all }
    }

    /// Whether a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether lists are printed whole, and what is rarely of interest, too.
    pub(crate) fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// Whether the reader went away.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.closed
    }

    /// # Errors
    /// Unavailable when it cannot be written, other than because the reader closed it.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(failed)
    }

    /// The text and a line feed. Errors as [`Self::bytes`].
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Errors as [`Self::bytes`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        Write::flush(self).map_err(failed)
    }

    /// Flushes and gives the stream up.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn open<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(otherwise)
            }
            other => other,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let done = self.inner.write(bytes);
        self.open(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.inner.flush();
        self.open(done, ())
    }
}

fn failed(e: io::Error) -> Error {
    Error::unavailable("cannot write the results to standard output").caused_by(e)
}
