//! A folder of Iceberg tables as a catalog: namespaces are folders, tables those that hold metadata. It is read, never
//! written.
//!
//! # Source
//! Iceberg `HadoopCatalog`.

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::Result;
use lakesmith_storage::{Location, Store};
use tokio::runtime::Handle;

use super::{Catalog, CatalogTable, Database};
use crate::format::Format;

/// Folders looked into at once.
const LOOKS_IN_FLIGHT: usize = 16;

/// The catalog of a warehouse folder of Iceberg's.
pub(crate) struct FolderCatalog {
    store: Store,
    root: Location,
    runtime: Handle,
}

impl FolderCatalog {
    pub(crate) fn new(store: Store, root: Location, runtime: Handle) -> Self {
        Self { store, root, runtime }
    }

    /// The folders in `parent` that are tables, or those that are not, without hidden ones.
    async fn folders(&self, parent: &Location, tables: bool) -> Result<Vec<String>> {
        let children = self.store.children(parent).await?;
        let visible = children.folders.into_iter().filter(|name| !name.starts_with(['_', '.']));
        let looks = futures::stream::iter(visible).map(|name| async move {
            let is_table = lakesmith_iceberg::is_table(&self.store, &parent.join(&name)).await?;
            Ok::<_, lakesmith_core::Error>((is_table == tables).then_some(name))
        });
        let mut found: Vec<String> =
            looks.buffered(LOOKS_IN_FLIGHT).try_collect::<Vec<_>>().await?.into_iter().flatten().collect();
        found.sort();
        Ok(found)
    }

    /// The folder of a name in `parent`: in this spelling, or the only one that differs in case.
    async fn folder(&self, parent: &Location, name: &str) -> Result<Option<Location>> {
        if name.is_empty() || name.contains('/') || name.starts_with(['_', '.']) {
            return Ok(None);
        }
        let folders = self.store.children(parent).await?.folders;
        Ok(super::warehouse::spelled(&folders, name)?.map(|folder| parent.join(folder)))
    }
}

impl Catalog for FolderCatalog {
    fn databases(&self) -> Result<Vec<String>> {
        self.runtime.block_on(self.folders(&self.root, false))
    }

    fn database(&self, name: &str) -> Result<Option<Database>> {
        self.runtime.block_on(async {
            let mut location = self.root.clone();
            for level in name.split('.') {
                match self.folder(&location, level).await? {
                    Some(folder) => location = folder,
                    None => return Ok(None),
                }
            }
            Ok(Some(Database { name: name.to_owned(), comment: None, location }))
        })
    }

    fn tables(&self, database: &Database) -> Result<Vec<String>> {
        self.runtime.block_on(self.folders(&database.location, true))
    }

    fn table(&self, database: &Database, name: &str) -> Result<Option<CatalogTable>> {
        self.runtime.block_on(async {
            let Some(location) = self.folder(&database.location, name).await? else { return Ok(None) };
            if !lakesmith_iceberg::is_table(&self.store, &location).await? {
                return Ok(None);
            }
            let table = CatalogTable::new(location.file_name().to_owned(), location, true);
            Ok(Some(CatalogTable { format: Some(Format::Iceberg), ..table }))
        })
    }
}
