//! Lists that grow beyond memory: the first mebibyte stays there, the rest goes to a nameless temporary file.

use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use lakesmith_core::op::{EntryList, EntrySource};
use lakesmith_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::SpooledTempFile;

const IN_MEMORY_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 16;

/// Collects entries, one line of JSON each.
pub struct SpillWriter<T> {
    file: BufWriter<SpooledTempFile>,
    count: u64,
    entries: PhantomData<fn(T)>,
}

impl<T> SpillWriter<T>
where
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// An empty list.
    pub fn new() -> Self {
        let file = BufWriter::with_capacity(BUFFER_BYTES, SpooledTempFile::new(IN_MEMORY_BYTES));
        Self { file, count: 0, entries: PhantomData }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// `Unavailable` if the temporary folder can't take it.
    pub fn push(&mut self, entry: &T) -> Result<()> {
        serde_json::to_writer(&mut self.file, entry).map_err(|e| no_space(e.into()))?;
        self.file.write_all(b"\n").map_err(no_space)?;
        self.count += 1;
        Ok(())
    }

    /// Number of entries so far.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The list as it can be read.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub fn finish(self) -> Result<EntryList<T>> {
        let file = self.file.into_inner().map_err(|e| no_space(e.into_error()))?;
        Ok(EntryList::new(Spill { file: Mutex::new(file), count: self.count, entries: PhantomData }))
    }
}

impl<T> Default for SpillWriter<T>
where
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

struct Spill<T> {
    file: Mutex<SpooledTempFile>,
    count: u64,
    entries: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Spill<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spill({} entries)", self.count)
    }
}

impl<T: DeserializeOwned> EntrySource<T> for Spill<T> {
    fn len(&self) -> u64 {
        self.count
    }

    fn for_each(&self, each: &mut dyn FnMut(T) -> Result<()>) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &mut *file);
        let mut line = Vec::new();
        for _ in 0..self.count {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(unreadable)?;
            each(serde_json::from_slice(&line).map_err(|e| unreadable(e.into()))?)?;
        }
        Ok(())
    }
}

fn no_space(source: std::io::Error) -> Error {
    Error::unavailable("the list of files could not be written to the temporary folder; free space there or set TMPDIR")
        .with("path", std::env::temp_dir().display())
        .caused_by(source)
}

fn unreadable(source: std::io::Error) -> Error {
    Error::unavailable("the list of files could not be read back from the temporary folder")
        .with("path", std::env::temp_dir().display())
        .caused_by(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order_also_from_disk_and_twice() {
        let mut writer = SpillWriter::new();
        let long = "x".repeat(3_000);
        for i in 0..1_000u64 {
            writer.push(&(i, format!("{long}\n{i}"))).unwrap();
        }
        let list = writer.finish().unwrap();
        for _ in 0..2 {
            let mut next = 0;
            list.for_each(|(i, text)| {
                assert_eq!((i, text.ends_with(&format!("\n{next}"))), (next, true));
                next += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(next, 1_000);
        }
        let stopped = list.for_each(|(i, _)| if i == 5 { Err(Error::usage("enough")) } else { Ok(()) });
        assert_eq!(stopped.unwrap_err().message(), "enough");
        assert_eq!(SpillWriter::<u64>::new().finish().unwrap().to_vec().unwrap(), Vec::<u64>::new());
    }
}
