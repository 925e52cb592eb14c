//! From what people write to the place of a table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lakesmith_core::op::TableName;
use lakesmith_core::{Error, Result};
use lakesmith_sql::{TableRef, parse_table_name};
use lakesmith_storage::Location;

use super::names::{database_not_found, quoted, table_not_found};
use super::{Catalog, CatalogTable, DEFAULT_CATALOG, Database, Warehouse, declared};
use crate::format::{Format, not_written};
use crate::{Session, table_ref};

/// A table's place, and its name if it was reached by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub root: Location,
    pub name: Option<TableName>,
    /// The format that was asked for; `None`: that of the table which lies there.
    pub format: Option<Format>,
    /// As in [`CatalogTable::metadata`].
    pub metadata: Option<Location>,
    /// As in [`CatalogTable::storage`].
    pub storage: BTreeMap<String, String>,
}

impl Target {
    /// A table that is named by its place.
    pub(crate) fn path(root: Location) -> Self {
        Self { root, name: None, format: None, metadata: None, storage: BTreeMap::new() }
    }

    /// The same place, whose table is of this format.
    pub(crate) fn of(self, format: Format) -> Self {
        Self { format: Some(format), ..self }
    }

    /// The same if tables of its format are written.
    ///
    /// # Errors
    /// Unsupported.
    pub(crate) fn written(self) -> Result<Self> {
        match self.format {
            Some(Format::Iceberg) => Err(not_written("this statement", &self.root)),
            _ => Ok(self),
        }
    }
}

/// A name cut into its parts, the database in its catalog.
pub(crate) struct Named {
    pub catalog_name: String,
    pub catalog: Arc<dyn Catalog>,
    pub database: Option<Database>,
    /// The database as it was written.
    pub database_name: String,
    /// The table as it was written.
    pub table: String,
    /// Everything that was written.
    pub parts: Vec<String>,
}

impl Named {
    /// The database.
    ///
    /// # Errors
    /// Usage (`SCHEMA_NOT_FOUND`).
    pub(crate) fn database(&self) -> Result<&Database> {
        self.database.as_ref().ok_or_else(|| database_not_found(self.catalog.as_ref(), &self.database_name))
    }

    /// The table, if there is one.
    ///
    /// # Errors
    /// Those of the catalog.
    pub(crate) fn find(&self) -> Result<Option<CatalogTable>> {
        self.database.as_ref().map_or(Ok(None), |database| self.catalog.table(database, &self.table))
    }

    /// There is no such table.
    pub(crate) fn not_found(&self) -> Error {
        match &self.database {
            None if self.parts.len() > 1 => table_not_found(self.catalog.as_ref(), None, &self.parts)
                .caused_by(database_not_found(self.catalog.as_ref(), &self.database_name)),
            database => table_not_found(self.catalog.as_ref(), database.as_ref(), &self.parts),
        }
    }

    /// The table's full name.
    pub(crate) fn name_of(&self, table: &CatalogTable) -> TableName {
        TableName {
            catalog: self.catalog_name.clone(),
            database: self.database.as_ref().map_or_else(|| self.database_name.clone(), |d| d.name.clone()),
            table: table.name.clone(),
            managed: table.managed,
        }
    }
}

impl Session {
    /// Where the table of a SQL statement lies. Blocks; it must not be called from async code.
    ///
    /// # Errors
    /// Usage for a path that can't be one, and with Spark's classes for names: `TABLE_OR_VIEW_NOT_FOUND`,
    /// `REQUIRES_SINGLE_PART_NAMESPACE`; those of the catalog.
    pub fn resolve(&self, table: &TableRef) -> Result<Location> {
        self.target(table).map(|target| target.root)
    }

    pub(crate) fn target(&self, table: &TableRef) -> Result<Target> {
        match table {
            TableRef::Path(path) => Ok(Target::path(table_ref::location(path)?).of(Format::Delta)),
            TableRef::IcebergPath(path) => Ok(Target::path(table_ref::location(path)?).of(Format::Iceberg)),
            TableRef::Name(parts) => {
                let named = self.named(parts)?;
                match named.find()? {
                    Some(found) => {
                        let name = Some(named.name_of(&found));
                        let CatalogTable { location: root, format, metadata, storage, .. } = found;
                        Ok(Target { root, name, format, metadata, storage })
                    }
                    None => Err(named.not_found()),
                }
            }
        }
    }

    /// The table of a command line: an existing path, a URL, ``delta.`path` `` or else a name. `creates`: a table that is
    /// about to be made needs no name.
    pub(crate) fn target_of_text(&self, text: &str, creates: bool) -> Result<Target> {
        let is_path = creates || text.contains('/') || Path::new(text).exists();
        let name = if is_path { None } else { parse_table_name(text.trim()) };
        match name {
            // One part of two may be the word that says that the other is a path.
            Some(parts) if !is_prefix_of_path(&parts) => self.target(&TableRef::Name(parts)).map_err(|error| {
                if error.class_name() == "TABLE_OR_VIEW_NOT_FOUND" { error.with("no_such_path", text) } else { error }
            }),
            _ => table_ref::parse(text),
        }
    }

    /// Cuts a table's name into its parts.
    pub(crate) fn named(&self, parts: &[String]) -> Result<Named> {
        let (table, namespace) = match parts.split_last() {
            Some((table, namespace)) if !table.is_empty() => (table.clone(), namespace),
            _ => return Err(Error::usage("the name of a table is empty")),
        };
        let (catalog_name, database_name) = self.namespace(namespace)?;
        let catalog = self.catalog(&catalog_name)?;
        let database = catalog.database(&database_name)?;
        Ok(Named { catalog_name, catalog, database, database_name, table, parts: parts.to_vec() })
    }

    /// The catalog and the database of a name's first parts.
    pub(crate) fn namespace(&self, parts: &[String]) -> Result<(String, String)> {
        match parts {
            [] => Ok((self.current.catalog.clone(), self.current.database.clone())),
            [database] => Ok((self.current.catalog.clone(), database.clone())),
            [catalog, database] if self.is_catalog(catalog) => Ok((catalog.to_lowercase(), database.clone())),
            // The warehouse has one level of databases, other catalogs may have more.
            [catalog, levels @ ..]
                if self.is_catalog(catalog) && !levels.is_empty() && !catalog.eq_ignore_ascii_case(DEFAULT_CATALOG) =>
            {
                Ok((catalog.to_lowercase(), levels.join(".")))
            }
            _ => Err(Error::usage(format!(
                "{} requires a single-part namespace, but got {}; there are the catalogs {}",
                self.current.catalog,
                quoted(parts),
                self.catalog_names().join(", ")
            ))
            .class("REQUIRES_SINGLE_PART_NAMESPACE")),
        }
    }

    /// True if there is a catalog of this name.
    pub(crate) fn is_catalog(&self, name: &str) -> bool {
        self.catalog_names().iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn catalog_names(&self) -> Vec<String> {
        let declared = declared::names(&self.settings);
        self.options.catalogs.keys().cloned().chain(declared).chain([DEFAULT_CATALOG.to_owned()]).collect()
    }

    /// A catalog by name; the warehouse's under Spark's name for its own.
    ///
    /// # Errors
    /// Usage for a warehouse that is no path, those of opening its storage.
    pub(crate) fn catalog(&self, name: &str) -> Result<Arc<dyn Catalog>> {
        let other = self.options.catalogs.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some((_, catalog)) = other {
            return Ok(Arc::clone(catalog));
        }
        if let Some(catalog) = declared::catalog(self, name)? {
            return Ok(catalog);
        }
        let root = table_ref::location(&self.settings.warehouse().location)?;
        let store = self.open(&root)?;
        Ok(Arc::new(Warehouse::new(store, root, self.runtime.handle().clone(), Arc::clone(&self.options.world))))
    }
}

/// True for ``delta.`…` `` and its like.
fn is_prefix_of_path(parts: &[String]) -> bool {
    parts.len() == 2 && ["delta", "iceberg"].iter().any(|format| parts[0].eq_ignore_ascii_case(format))
}
