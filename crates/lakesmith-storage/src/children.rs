//! What lies directly in a folder.

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;

use crate::failure::storage_error;
use crate::location::Location;
use crate::store::Store;

/// Names in a folder, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Children {
    /// Folders; on object stores those that hold something. Links to folders are left out.
    pub folders: Vec<String>,
    /// Objects.
    pub objects: Vec<String>,
}

impl Children {
    /// True if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.objects.is_empty()
    }
}

impl Store {
    /// The folders and objects directly in `folder`; none if there is no such folder.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn children(&self, folder: &Location) -> Result<Children> {
        let mut pages = self.list_level(self.path(folder)?);
        let mut found = Children::default();
        let name = |path: &object_store::path::Path| path.filename().unwrap_or_default().to_owned();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| storage_error(e, "list", folder))?;
            found.folders.extend(page.common_prefixes.iter().map(name));
            found.objects.extend(page.objects.iter().map(|object| name(&object.location)));
        }
        found.folders.sort();
        found.folders.dedup();
        found.objects.sort();
        Ok(found)
    }

    /// True if anything below `folder` satisfies `matches`, which gets paths below it.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn holds_any(&self, folder: &Location, matches: impl Fn(&str) -> bool) -> Result<bool> {
        let mut listed = self.list_stream(folder);
        while let Some(object) = listed.try_next().await? {
            if object.location.relative_to(folder).is_some_and(&matches) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
