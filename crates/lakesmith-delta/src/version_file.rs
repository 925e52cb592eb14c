//! The file of the log that gives a version, and whether the log still holds it: a log that was replaced meanwhile, as by
//! DROP TABLE and CREATE TABLE, is another table's, and nothing of the old one may be committed to it.

use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, ObjectInfo, Store};

use crate::log_files::LOG_FOLDER;
use crate::log_state::DeltaTable;

/// What tells the file from another one of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionFile {
    /// Name below the log.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// As the log was listed, milliseconds since the epoch.
    pub modified_ms: i64,
}

impl VersionFile {
    /// As it was listed.
    pub(crate) fn of(info: &ObjectInfo) -> Self {
        Self { name: info.location.file_name().to_owned(), size: info.size, modified_ms: info.modified_ms }
    }

    /// Checks that the log of the table at `root` still holds the file as it was.
    ///
    /// # Errors
    /// `Conflict` if it is gone or another one, `Unavailable` from the storage.
    pub(crate) async fn check(&self, store: &Store, root: &Location) -> Result<()> {
        let location = root.join(&format!("{LOG_FOLDER}/{}", self.name));
        let why = match store.head(&location).await {
            Ok(now) if now.size == self.size && self.is_time(now.modified_ms) => return Ok(()),
            Ok(_) => "is another one",
            Err(error) if error.kind() == ErrorKind::NotFound => "is gone",
            Err(error) => return Err(error),
        };
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "the log is not the one that was loaded: the file of that version {why}, as after DROP TABLE and CREATE TABLE; \
                 nothing was done to it. Look at the table and run again"
            ),
        )
        .with("file", location))
    }

    /// Storages that list milliseconds may tell whole seconds of a single object.
    fn is_time(&self, modified_ms: i64) -> bool {
        let second = self.modified_ms.div_euclid(1000) * 1000;
        modified_ms == self.modified_ms || modified_ms == second
    }
}

/// Checks that the log of the table at `root` still is the one that `table` was loaded from.
///
/// # Errors
/// `Conflict` if it is another one, `Unavailable` from the storage.
pub async fn check_same_log(store: &Store, root: &Location, table: &DeltaTable) -> Result<()> {
    match &table.log.file {
        Some(file) => file.check(store, root).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_whole_seconds_is_the_same_and_another_one_is_not() {
        let file = VersionFile { name: "x".into(), size: 1, modified_ms: 5_123 };
        let same: Vec<bool> = [5_123, 5_000, 5_124, 6_000, 4_000].into_iter().map(|ms| file.is_time(ms)).collect();
        assert_eq!(same, [true, true, false, false, false]);
    }
}
