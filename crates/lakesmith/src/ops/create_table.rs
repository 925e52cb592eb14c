//! CREATE TABLE and REPLACE TABLE from column definitions or from rows, on a path or under a name.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::op::{CreateTable, Replacing, Report, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::{DataEdit, NewFile, OperationInfo, ReadSet};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{DeltaTable, FirstRows, NewConfiguration};
use lakesmith_sql::TableRef;
use lakesmith_storage::{Location, Store, UncommittedProof};

use super::properties::commit;
use super::{json_text, load};
use crate::catalog::Target;
use crate::catalog::names::{quoted, table_exists};
use crate::change::{RowChange, count_output};
use crate::{Session, run, table_ref};

/// Writes the rows that a table begins with.
pub(crate) type Rows<'a> = &'a dyn Fn(&RowChange<'_>) -> Result<Vec<NewFile>>;

/// Makes a table on a path; `rows`: from rows.
pub(crate) fn run(
    session: &Session,
    store: &Store,
    root: &Location,
    options: &CreateTable,
    rows: Option<Rows<'_>>,
) -> Result<Report> {
    check_location(root, options)?;
    let target = Target::path(root.clone());
    let creation = Creation { session, store, target: &target, options, claim: &|| Ok(()), rows };
    match existing(session, store, root, options)? {
        Some(table) => creation.meet(&table),
        None => creation.make(),
    }
}

/// Makes a table under a name, in the warehouse or at a LOCATION.
pub(crate) fn by_name(
    session: &Session,
    parts: &[String],
    options: &CreateTable,
    rows: Option<Rows<'_>>,
) -> Result<Report> {
    let named = session.named(parts)?;
    let database = named.database()?;
    let location =
        options.location.as_deref().map(|text| table_ref::parse(text).map(|target| target.root)).transpose()?;
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
    let target = Target { name: Some(named.name_of(&table)), ..Target::path(table.location.clone()) };
    let store = session.open(&target.root)?;
    run::watched(&store, &target, "create table", || {
        let claim = || if is_there { Ok(()) } else { named.catalog.claim(database, &table) };
        let creation = Creation { session, store: &store, target: &target, options, claim: &claim, rows };
        match existing(session, &store, &target.root, options)? {
            // A table without the name: it gets it, if it is what was asked for.
            Some(at) if rows.is_none() && !is_there && !table.managed && options.replacing == Replacing::Never => {
                lakesmith_delta::check_same_table(&at, options)?;
                claim()?;
                Ok(Report::Done { version: at.state.version })
            }
            Some(at) => creation.meet(&at),
            None => creation.make(),
        }
    })
}

/// Files and the history's counters of them.
type CountedFiles = (Vec<NewFile>, BTreeMap<String, String>);

/// One statement that makes a table.
struct Creation<'a> {
    session: &'a Session,
    store: &'a Store,
    target: &'a Target,
    options: &'a CreateTable,
    /// Takes the name, right before a version is written: what is refused leaves no name behind.
    claim: &'a dyn Fn() -> Result<()>,
    /// The rows that it begins with.
    rows: Option<Rows<'a>>,
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
        let operation = self.operation(&new);
        let change = self.rows.map(|write| self.first_rows(&new, write)).transpose()?;
        (self.claim)()?;
        let none = (Vec::new(), BTreeMap::new());
        let (files, metrics) = change.as_ref().map_or(&none, |(_, rows)| rows);
        let rows = FirstRows { files, metrics };
        let create = lakesmith_delta::create(self.store, root, &new, &rows, &operation, &context);
        let created = self.session.runtime.block_on(create);
        match (&created, change) {
            // Committed, or not known not to be.
            (Ok(true) | Err(_), Some((change, _))) => change.keep_files(),
            (Ok(false), Some((change, _))) => {
                change.give_up(UncommittedProof { tried_versions: vec![0], all_taken_by_others: true });
            }
            (_, None) => {}
        }
        if created? {
            return Ok(Report::Done { version: 0 });
        }
        // Another writer was faster, so that there is a table now.
        let table = load(self.session, self.store, root, TimeTravel::Latest, options.replacing != Replacing::Never)?;
        self.meet(&table)
    }

    /// The rows of a new table, in files that nothing refers to yet, and the history's counters of them.
    fn first_rows(&self, new: &NewConfiguration, write: Rows<'_>) -> Result<(RowChange<'_>, CountedFiles)> {
        let root = &self.target.root;
        let table = Arc::new(lakesmith_delta::becoming(root, new, None)?);
        let change = RowChange::begin(self.session, self.store, root, table, None)?;
        let files = write(&change)?;
        let mut metrics = BTreeMap::new();
        count_output(&mut metrics, &files);
        Ok((change, (files, metrics)))
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
                let Some(write) = self.rows else {
                    (self.claim)()?;
                    let version = commit(self.session, self.store, root, table, new, operation)?;
                    return Ok(Report::Done { version });
                };
                let target = Arc::new(lakesmith_delta::becoming(root, &new, Some(table))?);
                let change =
                    RowChange::begin(self.session, self.store, root, Arc::new(table.clone()), Some((new, target)))?;
                let added = write(&change)?;
                (self.claim)()?;
                let mut metrics = BTreeMap::new();
                count_output(&mut metrics, &added);
                let removed = table.state.files.iter().map(|file| file.id).collect();
                let edit =
                    DataEdit { added, removed, reads: ReadSet::Everything, operation, metrics, ..Default::default() };
                let version = change.commit(edit)?.version.unwrap_or(version);
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
        let from_rows = if self.rows.is_some() { " AS SELECT" } else { "" };
        OperationInfo {
            name: format!("{name}{from_rows}"),
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
        Some(location) if table_ref::parse(location)?.root != *root => Err(Error::usage(format!(
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

impl Session {
    /// Makes a table whose columns `options` has from the rows that `write` writes.
    ///
    /// # Errors
    /// Those of CREATE TABLE and of `write`; nothing is made then.
    pub fn create_table_from(
        &self,
        table: &TableRef,
        options: &CreateTable,
        write: &dyn Fn(&RowChange<'_>) -> Result<Vec<NewFile>>,
    ) -> Result<()> {
        match table {
            TableRef::Name(parts) => by_name(self, parts, options, Some(write)).map(drop),
            TableRef::Path(_) | TableRef::IcebergPath(_) => {
                let target = self.target(table)?.written()?;
                let store = self.open(&target.root)?;
                run::watched(&store, &target, "create table", || run(self, &store, &target.root, options, Some(write)))
                    .map(drop)
            }
        }
    }
}
