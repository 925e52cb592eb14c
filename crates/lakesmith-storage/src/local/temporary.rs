//! Names of the hidden files in which local writes begin, and which of them nobody will finish any more.

use std::time::Duration;

use lakesmith_core::Result;

use crate::failure::storage_error;
use crate::location::{Location, Scheme};
use crate::store::{ObjectInfo, Store};
use crate::sweep::{SweepPlan, SweepReport, sweep};

const SUFFIX: &str = ".lakesmith-tmp";

/// A write that put nothing into its file for so long is over: its process was killed.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A fresh name. The leading dot hides the file from every table reader and cleaner.
pub(super) fn fresh() -> String {
    format!(".{}{SUFFIX}", uuid::Uuid::new_v4().simple())
}

/// True for the names that [`fresh`] makes, and for the checksum that Hadoop may have put beside such a file.
pub(crate) fn is_temporary(name: &str) -> bool {
    let own = |name: &str| {
        let id = name.strip_prefix('.').and_then(|n| n.strip_suffix(SUFFIX));
        id.is_some_and(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    own(name) || name.strip_prefix('.').and_then(|n| n.strip_suffix(".crc")).is_some_and(own)
}

impl Store {
    /// Deletes what killed writes left directly in `folders`; does nothing where writes leave nothing behind.
    ///
    /// `log` is the table's log: its newest file tells the time by the storage's own clock.
    ///
    /// # Errors
    /// `Unavailable` if a folder cannot be listed.
    pub async fn sweep_temporaries(&self, log: &Location, folders: &[Location]) -> Result<SweepReport> {
        if self.root().kind() != Scheme::File {
            return Ok(SweepReport::default());
        }
        let mut found: Vec<ObjectInfo> = Vec::new();
        for folder in std::iter::once(log).chain(folders) {
            let listed = self.object_store().list_with_delimiter(Some(&self.path(folder)?)).await;
            let listed = listed.map_err(|e| storage_error(e, "list", folder))?;
            found.extend(listed.objects.into_iter().map(|meta| self.info(meta)));
        }
        sweep(self, SweepPlan::stale_temporaries(&found)).await
    }
}
