//! A folder as a catalog, on a disk or an object store, without a server.
//!
//! ```text
//! warehouse/                      the database `default`, as Spark lays it out
//!   events/_delta_log/…           the table default.events
//!   sales.db/                     the database sales; a plain folder sales/ that is no table counts, too
//!     orders/_delta_log/…         the table sales.orders
//!     _lakesmith/database.json    made by CREATE DATABASE
//!     _lakesmith/tables/x.json    the name x was given by CREATE TABLE: to the folder x, or to a place elsewhere
//! ```
//!
//! Tables that others made need no entry. CREATE TABLE writes one before the table's first version, so that of two
//! who create a name in different places one wins.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::op::TimeTravel;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::Needs;
use lakesmith_storage::{
    Children, DroppedTableProof, Location, NOTES_FOLDER, PutOutcome, Store, SweepPlan, World, sweep,
};
use tokio::runtime::Handle;

use super::entry::{
    DatabaseEntry, TableEntry, database_place, read_database, read_table, table_place, tables_folder, write_database,
    write_table,
};
use super::names::{check_new, not_empty, table_exists};
use super::{Catalog, CatalogTable, DEFAULT_DATABASE, Database};
use crate::format::{Format, not_written};

/// What Spark adds to a database's name to get its folder's.
const FOLDER_SUFFIX: &str = ".db";
/// Folders looked into at once.
const LOOKS_IN_FLIGHT: usize = 16;

/// The catalog of a warehouse folder.
pub(crate) struct Warehouse {
    store: Store,
    root: Location,
    runtime: Handle,
    world: Arc<dyn World>,
}

impl Warehouse {
    pub(crate) fn new(store: Store, root: Location, runtime: Handle, world: Arc<dyn World>) -> Self {
        Self { store, root, runtime, world }
    }

    async fn is_table(&self, folder: &Location) -> Result<bool> {
        Ok(self.format(folder).await?.is_some())
    }

    /// The format of the table in a folder, if there is one.
    async fn format(&self, folder: &Location) -> Result<Option<Format>> {
        if lakesmith_delta::is_table(&self.store, folder).await? {
            return Ok(Some(Format::Delta));
        }
        Ok(lakesmith_iceberg::is_table(&self.store, folder).await?.then_some(Format::Iceberg))
    }

    /// The folders in `parent` that are tables, or those that are not, without hidden ones.
    async fn folders(&self, parent: &Location, tables: bool) -> Result<Vec<String>> {
        let children = self.store.children(parent).await?;
        let visible = children.folders.into_iter().filter(|name| !name.starts_with(['_', '.']));
        let looks = futures::stream::iter(visible).map(|name| async move {
            let is_table = !name.ends_with(FOLDER_SUFFIX) && self.is_table(&parent.join(&name)).await?;
            Ok::<_, Error>((is_table == tables).then_some(name))
        });
        let found: Vec<Option<String>> = looks.buffered(LOOKS_IN_FLIGHT).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn folder_of_database(&self, name: &str) -> Result<Option<Location>> {
        if name.eq_ignore_ascii_case(DEFAULT_DATABASE) {
            return Ok(Some(self.root.clone()));
        }
        let children = self.store.children(&self.root).await?;
        let with_suffix = format!("{name}{FOLDER_SUFFIX}");
        if let Some(folder) = spelled(&children.folders, &with_suffix)? {
            return Ok(Some(self.root.join(folder)));
        }
        let plain = spelled(&children.folders, name)?.filter(|folder| !folder.starts_with(['_', '.']));
        match plain.map(|folder| self.root.join(folder)) {
            Some(folder) if !name.ends_with(FOLDER_SUFFIX) && !self.is_table(&folder).await? => Ok(Some(folder)),
            _ => Ok(None),
        }
    }

    /// A table of a place of its own inside the warehouse would be found by its folder, too, and be taken for the
    /// warehouse's own once its name is gone.
    fn check_outside(&self, location: &Location) -> Result<()> {
        let is_outside =
            |location: &Location, root: &Location| location != root && location.relative_to(root).is_none();
        if is_outside(location, &self.root) && is_outside(&followed(location), &followed(&self.root)) {
            return Ok(());
        }
        Err(Error::usage(
            "a table's LOCATION must not lie inside the warehouse, which would take its files for its own; leave LOCATION \
             out, or choose a place outside",
        )
        .class("UNSUPPORTED_FEATURE")
        .with("location", location)
        .with("warehouse", &self.root))
    }

    async fn find_table(&self, database: &Database, name: &str) -> Result<Option<CatalogTable>> {
        let name = name.to_lowercase();
        if name.is_empty() || name.contains('/') || name.starts_with(['_', '.']) {
            return Ok(None);
        }
        let place = table_place(&database.location, &name);
        if let Some(bytes) = self.read(&place).await?
            && let Some(elsewhere) = read_table(&bytes, &place)?.location
        {
            let location = Location::from_canonical(&elsewhere).map_err(|e| e.with("entry", &place))?;
            return Ok(Some(CatalogTable::new(name, location, false)));
        }
        let children = self.store.children(&database.location).await?;
        // A link to a folder is in no listing.
        let folder = spelled(&children.folders, &name)?.unwrap_or(&name);
        let location = database.location.join(folder);
        if name.ends_with(FOLDER_SUFFIX) {
            return Ok(None);
        }
        let format = self.format(&location).await?;
        Ok(format.map(|format| CatalogTable { format: Some(format), ..CatalogTable::new(name, location, true) }))
    }

    async fn read(&self, place: &Location) -> Result<Option<bytes::Bytes>> {
        match self.store.get(place).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What goes with a table besides its name; `None`: nothing.
    async fn drop_plan(&self, database: &Database, table: &CatalogTable) -> Result<Option<SweepPlan>> {
        if table.format == Some(Format::Iceberg) {
            return Err(not_written("DROP TABLE", &table.location));
        }
        if !table.managed {
            self.check_outside(&table.location)?;
            return Ok(None);
        }
        self.check_known(&table.location).await?;
        let proof = DroppedTableProof { database: database.location.clone() };
        SweepPlan::dropped_table(&self.store, &table.location, &proof).await.map(Some)
    }

    /// A table of which we don't understand everything may have files that others still need, or a catalog that knows of
    /// newer commits. A broken log says nothing, and is no reason to keep the table.
    async fn check_known(&self, table: &Location) -> Result<()> {
        match lakesmith_delta::load(&self.store, table, TimeTravel::Latest, Needs::default()).await {
            Ok(table) => lakesmith_delta::check_features(&table),
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Unavailable) => Err(error),
            Err(_) => Ok(()),
        }
    }

    async fn sweep(&self, plan: SweepPlan) -> Result<()> {
        let report = sweep(&self.store, plan).await?;
        match report.failed.first() {
            None => Ok(()),
            Some((location, reason)) => Err(Error::unavailable(format!(
                "could not delete everything, {} failed: {reason}; run again",
                report.failed.len()
            ))
            .with("path", location)),
        }
    }

    async fn forget(&self, database: &Database, notes: Vec<Location>) -> Result<()> {
        self.sweep(SweepPlan::own_notes(&database.location, notes)?).await?;
        self.sweep(SweepPlan::empty_folders(&database.location.join(NOTES_FOLDER))).await
    }

    /// What of a database's folder is neither a note of ours nor empty, nor, where `tables` may stay, a table.
    async fn leftover(&self, database: &Database, tables: bool) -> Result<Option<String>> {
        let Children { folders, objects } = self.store.children(&database.location).await?;
        if let Some(object) = objects.into_iter().next() {
            return Ok(Some(object));
        }
        for folder in folders.into_iter().filter(|name| name != NOTES_FOLDER) {
            let location = database.location.join(&folder);
            let stays = tables && !folder.starts_with(['_', '.']) && self.is_table(&location).await?;
            if !stays && self.store.holds_any(&location, |_| true).await? {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }
}

/// The place that a local path leads to through links, as far as it exists; any other location as it is.
fn followed(location: &Location) -> Location {
    let Some(path) = location.local_path() else { return location.clone() };
    let followed = path.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        Location::from_local_path(&real.join(rest)).ok()
    });
    followed.unwrap_or_else(|| location.clone())
}

/// The name in this spelling, or the only one that differs in case.
pub(super) fn spelled<'a>(names: &'a [String], wanted: &str) -> Result<Option<&'a String>> {
    if let Some(exact) = names.iter().find(|name| *name == wanted) {
        return Ok(Some(exact));
    }
    let wanted = wanted.to_lowercase();
    let mut alike = names.iter().filter(|name| name.to_lowercase() == wanted);
    match (alike.next(), alike.next()) {
        (Some(one), Some(other)) => Err(Error::usage(format!(
            "the name `{wanted}` may mean the folder {one} or {other}, which differ in case alone; name the table by its \
             path, as in delta.`/path`"
        ))
        .class("AMBIGUOUS_REFERENCE")),
        (one, _) => Ok(one),
    }
}

impl Catalog for Warehouse {
    fn databases(&self) -> Result<Vec<String>> {
        let folders = self.runtime.block_on(self.folders(&self.root, false))?;
        let names = folders.iter().map(|name| name.strip_suffix(FOLDER_SUFFIX).unwrap_or(name).to_lowercase());
        let mut names: Vec<String> = names.chain([DEFAULT_DATABASE.to_owned()]).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn database(&self, name: &str) -> Result<Option<Database>> {
        self.runtime.block_on(async {
            let Some(location) = self.folder_of_database(name).await? else { return Ok(None) };
            let place = database_place(&location);
            let entry = match self.read(&place).await? {
                Some(bytes) => Some(read_database(&bytes, &place)?),
                None => None,
            };
            let comment = match name.eq_ignore_ascii_case(DEFAULT_DATABASE) {
                true => Some("default database".to_owned()),
                false => entry.and_then(|entry| entry.comment),
            };
            Ok(Some(Database { name: name.to_lowercase(), comment, location }))
        })
    }

    fn create_database(&self, name: &str, comment: Option<&str>) -> Result<bool> {
        check_new(name)?;
        self.runtime.block_on(async {
            if self.folder_of_database(name).await?.is_some() {
                return Ok(false);
            }
            let folder = self.root.join(&format!("{}{FOLDER_SUFFIX}", name.to_lowercase()));
            let (id, place) = (Some(self.world.new_uuid().to_string()), database_place(&folder));
            let entry = DatabaseEntry { name: name.to_owned(), comment: comment.map(str::to_owned), id: id.clone() };
            let put = self.store.put_if_absent(&place, write_database(&entry)?.into()).await;
            if matches!(put, Ok(PutOutcome::Created)) {
                return Ok(true);
            }
            // Ours may have landed although the storage's answer was lost, or that of the first of two tries.
            match (self.read(&place).await, put) {
                (Ok(Some(bytes)), _) if read_database(&bytes, &place).is_ok_and(|found| found.id == id) => Ok(true),
                (_, Err(error)) => Err(error),
                (found, Ok(_)) => found.map(|_| false),
            }
        })
    }

    fn stray(&self, database: &Database) -> Result<Option<String>> {
        self.runtime.block_on(self.leftover(database, true))
    }

    fn drop_database(&self, database: &Database) -> Result<()> {
        self.runtime.block_on(async {
            if let Some(name) = self.leftover(database, false).await? {
                return Err(not_empty(database, &name));
            }
            let entries = self.store.list(&tables_folder(&database.location)).await?;
            // The database's own entry goes last: an interrupted drop leaves a database that can be dropped.
            self.forget(database, entries.into_iter().map(|entry| entry.location).collect()).await?;
            self.forget(database, vec![database_place(&database.location)]).await?;
            self.sweep(SweepPlan::empty_folders(&database.location)).await
        })
    }

    fn tables(&self, database: &Database) -> Result<Vec<String>> {
        self.runtime.block_on(async {
            let mut names: Vec<String> =
                self.folders(&database.location, true).await?.iter().map(|name| name.to_lowercase()).collect();
            let entries = self.store.children(&tables_folder(&database.location)).await?.objects;
            for name in entries.iter().filter_map(|file| file.strip_suffix(".json")) {
                let place = table_place(&database.location, name);
                // An entry of a later format is a table all the same; whoever names it learns why it can't be read.
                let elsewhere = match self.read(&place).await?.map(|bytes| read_table(&bytes, &place)) {
                    Some(Ok(entry)) => entry.location.is_some(),
                    Some(Err(_)) => true,
                    None => false,
                };
                if elsewhere {
                    names.push(name.to_owned());
                }
            }
            names.sort();
            names.dedup();
            Ok(names)
        })
    }

    fn table(&self, database: &Database, name: &str) -> Result<Option<CatalogTable>> {
        self.runtime.block_on(self.find_table(database, name))
    }

    fn place(&self, database: &Database, name: &str, location: Option<Location>) -> Result<CatalogTable> {
        check_new(name)?;
        let name = name.to_lowercase();
        if let Some(location) = &location {
            self.check_outside(location)?;
        }
        let managed = location.is_none();
        let location = location.unwrap_or_else(|| database.location.join(&name));
        Ok(CatalogTable::new(name, location, managed))
    }

    fn claim(&self, database: &Database, table: &CatalogTable) -> Result<()> {
        let location = (!table.managed).then(|| table.location.to_string());
        let entry = TableEntry { name: table.name.clone(), location };
        let place = table_place(&database.location, &table.name);
        self.runtime.block_on(async {
            if self.store.put_if_absent(&place, write_table(&entry)?.into()).await? == PutOutcome::Created {
                return Ok(());
            }
            let theirs = match self.read(&place).await? {
                Some(bytes) => read_table(&bytes, &place)?,
                None => {
                    return Err(Error::unavailable("the table's name is being dropped; run again").with("path", place));
                }
            };
            if theirs.location == entry.location {
                return Ok(());
            }
            let at = theirs.location.unwrap_or_else(|| "the database's own folder".to_owned());
            Err(table_exists(&database.name, &table.name).with("entry", place).with("location", at))
        })
    }

    fn disclaim(&self, database: &Database, name: &str) -> Result<bool> {
        self.runtime.block_on(async {
            let place = table_place(&database.location, name);
            let Some(bytes) = self.read(&place).await? else { return Ok(false) };
            read_table(&bytes, &place)?;
            self.forget(database, vec![place]).await?;
            Ok(true)
        })
    }

    fn check_droppable(&self, database: &Database, table: &CatalogTable) -> Result<()> {
        self.runtime.block_on(self.drop_plan(database, table)).map(drop)
    }

    fn drop_table(&self, database: &Database, table: &CatalogTable) -> Result<()> {
        self.runtime.block_on(async {
            if let Some(plan) = self.drop_plan(database, table).await? {
                self.sweep(plan).await?;
            }
            let entry = table_place(&database.location, &table.name);
            if self.store.exists(&entry).await? {
                self.forget(database, vec![entry]).await?;
            }
            Ok(())
        })
    }
}
