//! Lists of a report that may not fit into memory: read again and again from where they were put.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::ser::{Error as _, SerializeSeq as _};

use crate::{Error, Result};

/// Where the entries of a list lie.
pub trait EntrySource<T>: fmt::Debug + Send + Sync {
    /// Number of entries.
    fn len(&self) -> u64;

    /// True without entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands every entry to `each`, in order; the first failure stops.
    ///
    /// # Errors
    /// Those of `each`, and `Unavailable` if the entries can't be read back.
    fn for_each(&self, each: &mut dyn FnMut(T) -> Result<()>) -> Result<()>;
}

impl<T: Clone + fmt::Debug + Send + Sync> EntrySource<T> for Vec<T> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn for_each(&self, each: &mut dyn FnMut(T) -> Result<()>) -> Result<()> {
        self.iter().cloned().try_for_each(each)
    }
}

/// A list that is read entry by entry. Cloning shares it.
pub struct EntryList<T> {
    source: Arc<dyn EntrySource<T>>,
    entries: PhantomData<fn() -> T>,
}

impl<T> EntryList<T> {
    /// The list that lies in `source`.
    pub fn new(source: impl EntrySource<T> + 'static) -> Self {
        Self { source: Arc::new(source), entries: PhantomData }
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Hands every entry to `each`, in order; the first failure stops. A list must not be read inside its own reading.
    ///
    /// # Errors
    /// Those of `each`, and `Unavailable` if the entries can't be read back.
    pub fn for_each(&self, mut each: impl FnMut(T) -> Result<()>) -> Result<()> {
        self.source.for_each(&mut each)
    }

    /// All entries in memory.
    ///
    /// # Errors
    /// `Unavailable` if they can't be read back.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.for_each(|entry| {
            all.push(entry);
            Ok(())
        })?;
        Ok(all)
    }
}

impl<T: Clone + fmt::Debug + Send + Sync + 'static> Default for EntryList<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T> Clone for EntryList<T> {
    fn clone(&self) -> Self {
        Self { source: Arc::clone(&self.source), entries: PhantomData }
    }
}

impl<T> fmt::Debug for EntryList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryList({} entries)", self.len())
    }
}

impl<T: PartialEq> PartialEq for EntryList<T> {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.source, &other.source) {
            return true;
        }
        self.len() == other.len() && matches!((self.to_vec(), other.to_vec()), (Ok(ours), Ok(theirs)) if ours == theirs)
    }
}

impl<T: serde::Serialize> serde::Serialize for EntryList<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(usize::try_from(self.len()).ok())?;
        let mut failed = None;
        let read = self.for_each(|entry| {
            sequence.serialize_element(&entry).map_err(|e| {
                failed = Some(e);
                Error::internal("the list could not be written")
            })
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(S::Error::custom(error)),
            (None, Ok(())) => sequence.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_json_arrays_and_compare_by_their_entries() {
        let list = EntryList::new(vec![1, 2]);
        assert_eq!(serde_json::to_string(&list).unwrap(), "[1,2]");
        assert_eq!(list, EntryList::new(vec![1, 2]));
        assert_ne!(list, EntryList::new(vec![2, 1]));
        assert!(EntryList::<i32>::default().is_empty());
    }
}
