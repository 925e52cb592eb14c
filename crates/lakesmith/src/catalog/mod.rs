//! Names of tables: a catalog says where the table of a name lies.
//!
//! ```text
//! catalog.database.table --names--> Catalog::database, Catalog::table --> Location
//!                                     └─ Warehouse: a folder that holds a folder for each database, and in it one a table
//! ```

mod declared;
mod entry;
mod folder;
pub(crate) mod names;
mod resolve;
mod rest;
pub(crate) mod statements;
mod warehouse;

use std::collections::BTreeMap;

use lakesmith_core::{Error, Result};
use lakesmith_storage::Location;

use crate::format::Format;

pub(crate) use folder::FolderCatalog;
pub(crate) use resolve::Target;
pub(crate) use rest::ServedCatalog;
pub(crate) use warehouse::Warehouse;

/// The database that is there without having been made.
pub(crate) const DEFAULT_DATABASE: &str = "default";
/// The catalog that names without one belong to, under the name that it has in Spark.
pub(crate) const DEFAULT_CATALOG: &str = "spark_catalog";

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its name, in lower case.
    pub name: String,
    /// What was written about it.
    pub comment: Option<String>,
    /// Where it keeps its tables.
    pub location: Location,
}

/// The table of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    /// Its name, in lower case.
    pub name: String,
    /// Where it lies.
    pub location: Location,
    /// True if it lies in its database's own folder and is deleted when it is dropped.
    pub managed: bool,
    /// Its format, where the catalog knows it.
    pub format: Option<Format>,
    /// The file that describes its newest version, where the catalog and not the folder tells which that is.
    pub metadata: Option<Location>,
    /// Settings by which its storage is reached, beside those of the session.
    pub storage: BTreeMap<String, String>,
}

impl CatalogTable {
    /// A table of which the catalog knows no more than where it lies.
    pub fn new(name: String, location: Location, managed: bool) -> Self {
        Self { name, location, managed, format: None, metadata: None, storage: BTreeMap::new() }
    }
}

/// A catalog is not written.
fn read_only() -> Error {
    Error::unsupported("this catalog is read only: its databases and tables are made and dropped by other engines")
        .class("UNSUPPORTED_FEATURE.CATALOG_OPERATION")
}

/// Knows tables by name. Names compare without regard to case. All methods block. One that has no more than the methods
/// without a body is read only.
pub trait Catalog: Send + Sync {
    /// Names of all databases, sorted.
    ///
    /// # Errors
    /// `Unavailable`.
    fn databases(&self) -> Result<Vec<String>>;

    /// A database; `None` if there is none of this name.
    ///
    /// # Errors
    /// `Unavailable`, `Unsupported` for an entry of a later format.
    fn database(&self, name: &str) -> Result<Option<Database>>;

    /// Makes a database; false if there is one of this name.
    ///
    /// # Errors
    /// `Unavailable`.
    fn create_database(&self, _name: &str, _comment: Option<&str>) -> Result<bool> {
        Err(read_only())
    }

    /// Something in the database's own place that is no table, so that the database can't be dropped; `None` if there is
    /// nothing.
    ///
    /// # Errors
    /// `Unavailable`.
    fn stray(&self, _database: &Database) -> Result<Option<String>> {
        Ok(None)
    }

    /// Removes a database that has no tables any more.
    ///
    /// # Errors
    /// Usage (`SCHEMA_NOT_EMPTY`) if it holds anything, `Unavailable`.
    fn drop_database(&self, _database: &Database) -> Result<()> {
        Err(read_only())
    }

    /// Names of the tables, sorted.
    ///
    /// # Errors
    /// `Unavailable`.
    fn tables(&self, database: &Database) -> Result<Vec<String>>;

    /// A table; `None` if there is none of this name.
    ///
    /// # Errors
    /// `Unavailable`, `Unsupported` for an entry of a later format.
    fn table(&self, database: &Database, name: &str) -> Result<Option<CatalogTable>>;

    /// Where a table of this name is to be made: at `location`, or in the database's folder. Nothing is written.
    ///
    /// # Errors
    /// Usage if no table can have this name.
    fn place(&self, _database: &Database, _name: &str, _location: Option<Location>) -> Result<CatalogTable> {
        Err(read_only())
    }

    /// Gives the name to a table before its first version is written; of two who want it for different places one gets it.
    /// Again for the same place is no error, so that a creation that was interrupted can be finished.
    ///
    /// # Errors
    /// Usage (`TABLE_OR_VIEW_ALREADY_EXISTS`) if another table has the name, `Unavailable`.
    fn claim(&self, _database: &Database, _table: &CatalogTable) -> Result<()> {
        Err(read_only())
    }

    /// Takes back a name that was given to a table that is not there, as after a creation that was interrupted; false if
    /// nobody gave it.
    ///
    /// # Errors
    /// `Unavailable`, `Unsupported` for an entry of a later format.
    fn disclaim(&self, _database: &Database, _name: &str) -> Result<bool> {
        Ok(false)
    }

    /// Checks that nothing stands against dropping a table; nothing is changed.
    ///
    /// # Errors
    /// As [`Catalog::drop_table`].
    fn check_droppable(&self, _database: &Database, _table: &CatalogTable) -> Result<()> {
        Err(read_only())
    }

    /// Takes the name from a table, and deletes its files if it is managed.
    ///
    /// # Errors
    /// `Retention` if its folder holds another table, `Unsupported` if only another engine may drop it, `Unavailable` if
    /// something could not be deleted.
    fn drop_table(&self, _database: &Database, _table: &CatalogTable) -> Result<()> {
        Err(read_only())
    }
}
