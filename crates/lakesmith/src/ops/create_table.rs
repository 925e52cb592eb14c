//! CREATE TABLE and REPLACE TABLE from column definitions, on a path or under a name.

use std::collections::BTreeMap;

use lakesmith_core::op::{CreateTable, Replacing, Report, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::OperationInfo;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{DeltaTable, FirstRows, NewConfiguration};
use lakesmith_storage::{Location, Store};

use super::properties::commit;
use super::{json_text, load};
use crate::catalog::Target;
use crate::catalog::names::{quoted, table_exists};
use crate::{Session, run, table_ref};

/// Makes a table on a path.
pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &CreateTable) -> Result<Report> {
    check_location(root, options)?;
    let creation = Creation { session, store, target: &Target::path(root.clone()), options, claim: &|| Ok(()) };
    match existing(session, store, root, options)? {
        Some(table) => creation.meet(&table),
        None => creation.make(),
    }
}

/// Makes a table under a name, in the warehouse or at a LOCATION.
pub(crate) fn by_name(session: &Session, parts: &[String], options: &CreateTable) -> Result<Report> {
    let named = session.named(parts)?;
    let database = named.database()?;
    let location = options.location.as_deref().map(table_ref::parse).transpose()?;
    let found = named.find()?;
    if let (Some(found), Some(location)) = (&found, &location)
        && found.location != *location
        && !options.if_not_exists
    {
        return Err(table_exists(&database.name, &found.name).with("location", &found.location));
    }
    if found.is_none() && options.replacing == Replacing::Only {
        return Err(named.not_found());
    }
    let is_there = found.is_some();
    let table = match found {
        Some(found) => found,
        None => named.catalog.place(database, &named.table, location)?,
    };
    let target = Target { root: table.location.clone(), name: Some(named.name_of(&table)) };
    let store = session.open(&target.root)?;
    run::watched(&store, &target, "create table", || {
        let claim = || if is_there { Ok(()) } else { named.catalog.claim(database, &table) };
        let creation = Creation { session, store: &store, target: &target, options, claim: &claim };
        match existing(session, &store, &target.root, options)? {
            // A table without the name: it gets it, if it is what was asked for.
            Some(at) if !is_there && !table.managed && options.replacing == Replacing::Never => {
                lakesmith_delta::check_same_table(&at, options)?;
                claim()?;
                Ok(Report::Done { version: at.state.version })
            }
            Some(at) => creation.meet(&at),
            None => creation.make(),
        }
    })
}

/// One statement that makes a table.
struct Creation<'a> {
    session: &'a Session,
    store: &'a Store,
    target: &'a Target,
    options: &'a CreateTable,
    /// Takes the name, right before a version is written: what is refused leaves no name behind.
    claim: &'a dyn Fn() -> Result<()>,
}

impl Creation<'_> {
    fn make(&self) -> Result<Report> {
        let (root, options) = (&self.target.root, self.options);
        if options.replacing == Replacing::Only {
            return Err(Error::usage(format!(
                "the table or view {} cannot be found; nothing was replaced",
                self.shown()
            ))
            .class("TABLE_OR_VIEW_NOT_FOUND")
            .with("path", root));
        }
        if options.schema.fields.is_empty() {
            return Err(Error::usage(format!(
                "there is no Delta table at '{root}' whose columns could be taken; name the columns"
            ))
            .class("DELTA_MISSING_DELTA_TABLE")
            .with("path", root));
        }
        let world = self.session.options.world.as_ref();
        let new = lakesmith_delta::new_table(root, options, world)?;
        let context = self.session.commit_context(None)?;
        self.session.runtime.block_on(lakesmith_delta::check_room(self.store, root))?;
        (self.claim)()?;
        let operation = self.operation(&new);
        let rows = FirstRows { files: &[], metrics: &BTreeMap::new() };
        let create = lakesmith_delta::create(self.store, root, &new, &rows, &operation, &context);
        if self.session.runtime.block_on(create)? {
            return Ok(Report::Done { version: 0 });
        }
        // Another writer was faster, so that there is a table now.
        let table = load(self.session, self.store, root, TimeTravel::Latest, options.replacing != Replacing::Never)?;
        self.meet(&table)
    }

    /// The table is there.
    fn meet(&self, table: &DeltaTable) -> Result<Report> {
        let version = table.state.version;
        match self.options.replacing {
            Replacing::Never if self.options.if_not_exists => Ok(Report::Done { version }),
            Replacing::Never => Err(self.exists(version)),
            Replacing::IfThere | Replacing::Only => {
                lakesmith_delta::check_writable(table)?;
                let world = self.session.options.world.as_ref();
                let new = lakesmith_delta::replace_table(table, self.options, world)?;
                let operation = self.operation(&new);
                let root = &self.target.root;
                (self.claim)()?;
                let version = commit(self.session, self.store, root, table, new, operation)?;
                Ok(Report::Done { version })
            }
        }
    }

    fn exists(&self, version: u64) -> Error {
        match &self.target.name {
            Some(name) => table_exists(&name.database, &name.table),
            None => Error::usage(format!(
                "cannot create the table delta.`{}` because it exists already; write CREATE TABLE IF NOT EXISTS to leave it \
                 as it is, or choose another path",
                self.target.root
            ))
            .class("TABLE_OR_VIEW_ALREADY_EXISTS"),
        }
        .with("path", &self.target.root)
        .with("version", version)
    }

    fn shown(&self) -> String {
        match &self.target.name {
            Some(name) => quoted(&[&name.database, &name.table]),
            None => format!("delta.`{}`", self.target.root),
        }
    }

    fn operation(&self, new: &NewConfiguration) -> OperationInfo {
        let options = self.options;
        let metadata = new.metadata.as_ref();
        let keys = lakesmith_delta::schema_spelling(&options.schema, &options.cluster_by);
        let cluster_by: Vec<String> = keys.iter().map(|path| reference_name(path)).collect();
        let partition_by = metadata.map(|m| m.partition_columns.clone()).unwrap_or_default();
        let properties = metadata.map(|m| m.configuration.clone()).unwrap_or_default();
        let is_managed = self.target.name.as_ref().is_some_and(|name| name.managed);
        let name = match options.replacing {
            Replacing::Never => "CREATE TABLE",
            Replacing::IfThere => "CREATE OR REPLACE TABLE",
            Replacing::Only => "REPLACE TABLE",
        };
        OperationInfo {
            name: name.into(),
            parameters: vec![
                ("partitionBy".into(), json_text(&json_text(&partition_by))),
                ("clusterBy".into(), json_text(&json_text(&cluster_by))),
                ("description".into(), json_text(&metadata.and_then(|m| m.description.clone()))),
                ("isManaged".into(), json_text(&is_managed.to_string())),
                ("properties".into(), json_text(&json_text(&properties))),
            ],
            user_metadata: options.user_metadata.clone(),
        }
    }
}

fn check_location(root: &Location, options: &CreateTable) -> Result<()> {
    match &options.location {
        Some(location) if table_ref::parse(location)? != *root => Err(Error::usage(format!(
            "Creating path-based Delta table with a different location isn't supported. Identifier: delta.`{root}`, \
             Location: {location}"
        ))
        .class("DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH")
        .with("path", root)),
        _ => Ok(()),
    }
}

fn existing(session: &Session, store: &Store, root: &Location, options: &CreateTable) -> Result<Option<DeltaTable>> {
    let with_files = options.replacing != Replacing::Never;
    match load(session, store, root, TimeTravel::Latest, with_files) {
        Ok(table) => Ok(Some(table)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
