//! Statements about databases and names.

use std::sync::Arc;

use lakesmith_core::{Error, Result};
use lakesmith_sql::{CatalogStatement, TableRef};
use serde_json::Value;

use super::names::{check_new, database_not_found, matches, not_empty, quoted};
use super::{Catalog, DEFAULT_DATABASE, Database};
use crate::Session;
use crate::ops::describe::spark_uri;
use crate::rows::Rows;

/// The database that names without one belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    pub catalog: String,
    pub database: String,
}

impl Default for Current {
    fn default() -> Self {
        Self { catalog: super::DEFAULT_CATALOG.to_owned(), database: DEFAULT_DATABASE.to_owned() }
    }
}

pub(crate) fn run(session: &mut Session, statement: &CatalogStatement) -> Result<Rows> {
    match statement {
        CatalogStatement::CreateDatabase { name, if_not_exists, comment } => {
            create_database(session, name, *if_not_exists, comment.as_deref())?;
        }
        CatalogStatement::DropDatabase { name, if_exists, cascade } => {
            drop_database(session, name, *if_exists, *cascade)?;
        }
        CatalogStatement::DescribeDatabase { name, extended } => return describe_database(session, name, *extended),
        CatalogStatement::Use { name } => use_database(session, name)?,
        CatalogStatement::ShowDatabases { within, like } => {
            return show_databases(session, within, like.as_deref());
        }
        CatalogStatement::ShowTables { database, like } => return show_tables(session, database, like.as_deref()),
        CatalogStatement::DropTable { table, if_exists } => drop_table(session, table, *if_exists)?,
    }
    Ok(Rows::default())
}

fn rows(columns: &[&str]) -> Rows {
    Rows { columns: columns.iter().map(|c| (*c).to_owned()).collect(), rows: Vec::new() }
}

/// A database's name in its catalog, and the database if it exists.
struct Found {
    catalog_name: String,
    catalog: Arc<dyn Catalog>,
    name: String,
    database: Option<Database>,
}

fn find(session: &Session, parts: &[String]) -> Result<Found> {
    let (catalog_name, name) = session.namespace(parts)?;
    let catalog = session.catalog(&catalog_name)?;
    let database = catalog.database(&name)?;
    Ok(Found { catalog_name, catalog, name, database })
}

fn existing(session: &Session, parts: &[String]) -> Result<(Arc<dyn Catalog>, Database)> {
    let Found { catalog, name, database, .. } = find(session, parts)?;
    match database {
        Some(database) => Ok((catalog, database)),
        None => Err(database_not_found(catalog.as_ref(), &name)),
    }
}

fn create_database(session: &Session, parts: &[String], if_not_exists: bool, comment: Option<&str>) -> Result<()> {
    let Found { catalog, name, database: there, .. } = find(session, parts)?;
    if there.is_none() {
        check_new(&name)?;
    }
    if there.is_none() && catalog.create_database(&name, comment)? || if_not_exists {
        return Ok(());
    }
    Err(Error::usage(format!(
        "cannot create schema {} because it already exists; choose a different name, drop the existing schema, or add \
         IF NOT EXISTS",
        quoted(&[&name])
    ))
    .class("SCHEMA_ALREADY_EXISTS")
    .with("database", name))
}

fn drop_database(session: &mut Session, parts: &[String], if_exists: bool, cascade: bool) -> Result<()> {
    let Found { catalog_name, catalog, name, database } = find(session, parts)?;
    let Some(database) = database else {
        return if if_exists { Ok(()) } else { Err(database_not_found(catalog.as_ref(), &name)) };
    };
    if database.name == DEFAULT_DATABASE {
        return Err(
            Error::unsupported("the default database can't be dropped").class("UNSUPPORTED_FEATURE.DROP_DATABASE")
        );
    }
    let tables = catalog.tables(&database)?;
    if let (Some(first), false) = (tables.first(), cascade) {
        return Err(Error::usage(format!(
            "cannot drop the schema {} because it contains objects, such as the table {first}; DROP SCHEMA … CASCADE drops \
             them, too",
            quoted(&[&database.name])
        ))
        .class("SCHEMA_NOT_EMPTY")
        .with("tables", tables.len()));
    }
    // Before the first table goes: a database that can't be dropped keeps them all.
    if let Some(name) = catalog.stray(&database)? {
        return Err(not_empty(&database, &name));
    }
    let mut found = Vec::with_capacity(tables.len());
    for table in tables {
        session.options.cancel.check()?;
        if let Some(table) = catalog.table(&database, &table)? {
            catalog.check_droppable(&database, &table)?;
            found.push(table);
        }
    }
    for table in found {
        session.options.cancel.check()?;
        catalog.drop_table(&database, &table)?;
    }
    catalog.drop_database(&database)?;
    let current = &mut session.current;
    if current.database == database.name && current.catalog.eq_ignore_ascii_case(&catalog_name) {
        current.database = DEFAULT_DATABASE.to_owned();
    }
    Ok(())
}

fn use_database(session: &mut Session, parts: &[String]) -> Result<()> {
    if let [only] = parts
        && session.is_catalog(only)
    {
        session.current = Current { catalog: only.to_lowercase(), ..Current::default() };
        return Ok(());
    }
    let (catalog, _) = session.namespace(parts)?;
    let (_, database) = existing(session, parts)?;
    session.current = Current { catalog, database: database.name };
    Ok(())
}

fn show_databases(session: &Session, within: &[String], like: Option<&str>) -> Result<Rows> {
    let catalog = match within {
        [] => session.current.catalog.clone(),
        [catalog] if session.is_catalog(catalog) => catalog.clone(),
        _ => {
            return Err(
                Error::usage(format!("there is no catalog {}", quoted(within))).class("REQUIRES_SINGLE_PART_NAMESPACE")
            );
        }
    };
    let mut shown = rows(&["namespace"]);
    let names = session.catalog(&catalog)?.databases()?;
    let wanted = names.into_iter().filter(|name| like.is_none_or(|pattern| matches(pattern, name)));
    shown.rows.extend(wanted.map(|name| vec![Value::from(name)]));
    Ok(shown)
}

fn show_tables(session: &Session, parts: &[String], like: Option<&str>) -> Result<Rows> {
    let (catalog, database) = existing(session, parts)?;
    let mut shown = rows(&["namespace", "tableName", "isTemporary"]);
    let names = catalog.tables(&database)?;
    let wanted = names.into_iter().filter(|name| like.is_none_or(|pattern| matches(pattern, name)));
    shown.rows.extend(wanted.map(|name| vec![database.name.as_str().into(), name.into(), false.into()]));
    Ok(shown)
}

fn describe_database(session: &Session, parts: &[String], extended: bool) -> Result<Rows> {
    let (catalog, _) = session.namespace(parts)?;
    let (_, database) = existing(session, parts)?;
    let mut shown = rows(&["info_name", "info_value"]);
    let location = spark_uri(&database.location);
    let pairs = [
        ("Catalog Name", Some(catalog.as_str())),
        ("Namespace Name", Some(database.name.as_str())),
        ("Comment", database.comment.as_deref()),
        ("Location", Some(location.as_str())),
        ("Properties", extended.then_some("")),
    ];
    shown.rows.extend(pairs.into_iter().filter_map(|(key, value)| Some(vec![key.into(), value?.into()])));
    Ok(shown)
}

fn drop_table(session: &Session, table: &TableRef, if_exists: bool) -> Result<()> {
    let parts = match table {
        TableRef::Name(parts) => parts,
        TableRef::Path(path) | TableRef::IcebergPath(path) => {
            return Err(Error::unsupported(format!(
                "DROP TABLE takes a table's name: `{path}` belongs to no catalog, so nothing says that its files may \
                 be deleted; nothing was done. Delete the folder yourself if nobody needs it"
            ))
            .class("UNSUPPORTED_FEATURE")
            .with("path", path));
        }
    };
    let named = session.named(parts)?;
    match named.find()? {
        Some(found) => named.catalog.drop_table(named.database()?, &found),
        None => match named.database.as_ref().map(|database| named.catalog.disclaim(database, &named.table)) {
            Some(Err(error)) => Err(error),
            Some(Ok(true)) => Ok(()),
            _ if if_exists => Ok(()),
            _ => Err(named.not_found()),
        },
    }
}
