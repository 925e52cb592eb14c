//! Catalogs that settings declare, as in Spark.
//!
//! ```text
//! SET spark.sql.catalog.lake = org.apache.iceberg.spark.SparkCatalog
//! SET spark.sql.catalog.lake.type = hadoop
//! SET spark.sql.catalog.lake.warehouse = s3://bucket/warehouse
//! ```
//!
//! # Source
//! Iceberg "Spark Configuration: Catalogs".

use std::sync::Arc;

use lakesmith_core::{Error, Result};
use lakesmith_iceberg::rest::{RestCatalog, RestOptions};
use lakesmith_sql::Settings;

use super::{Catalog, FolderCatalog, ServedCatalog};
use crate::{Session, table_ref};

const PREFIX: &str = "spark.sql.catalog.";

/// Names of the catalogs that the settings declare.
pub(super) fn names(settings: &Settings) -> Vec<String> {
    let name = |key: &str| {
        let name = key.strip_prefix(PREFIX)?;
        (!name.is_empty() && !name.contains('.') && !name.eq_ignore_ascii_case(super::DEFAULT_CATALOG))
            .then(|| name.to_lowercase())
    };
    let mut names: Vec<String> = settings.iter().filter_map(|(key, _)| name(key)).collect();
    names.dedup();
    names
}

/// The catalog of this name, if the settings declare one.
///
/// # Errors
/// Usage if something that the catalog needs is not set, Unsupported for a kind of catalog that is not known.
pub(super) fn catalog(session: &Session, name: &str) -> Result<Option<Arc<dyn Catalog>>> {
    if !names(&session.settings).iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(None);
    }
    let setting = |key: &str| {
        let wanted = format!("{PREFIX}{name}.{key}");
        let found = session.settings.iter().find(|(key, _)| key.eq_ignore_ascii_case(&wanted));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let kind = setting("type").unwrap_or("hive");
    match kind.to_lowercase().as_str() {
        "hadoop" => {
            let warehouse = setting("warehouse").ok_or_else(|| {
                Error::usage(format!("the catalog {name} has no warehouse: SET {PREFIX}{name}.warehouse to its folder"))
                    .with("key", format!("{PREFIX}{name}.warehouse"))
            })?;
            let root = table_ref::location(warehouse)?;
            let store = session.open(&root)?;
            Ok(Some(Arc::new(FolderCatalog::new(store, root, session.runtime.handle().clone()))))
        }
        "rest" => {
            let uri = setting("uri").ok_or_else(|| {
                Error::usage(format!("the catalog {name} has no address: SET {PREFIX}{name}.uri to that of its server"))
                    .with("key", format!("{PREFIX}{name}.uri"))
            })?;
            let before = format!("{PREFIX}{name}.");
            let own = session.settings.iter().filter_map(|(key, value)| {
                let starts = key.get(..before.len()).is_some_and(|start| start.eq_ignore_ascii_case(&before));
                starts.then(|| (key[before.len()..].to_owned(), value.to_owned()))
            });
            let warehouse = setting("warehouse").map(str::to_owned);
            let options = RestOptions { uri: uri.to_owned(), warehouse, properties: own.collect() };
            let served = ServedCatalog::new(RestCatalog::new(options)?, session.runtime.handle().clone())?;
            Ok(Some(Arc::new(served)))
        }
        _ => Err(Error::unsupported(format!(
            "the catalog {name} is of the type '{kind}'; this version reads catalogs of the types 'hadoop' and 'rest', and \
             tables of others by their path, as in iceberg.`/path/to/table`"
        ))
        .class("UNSUPPORTED_FEATURE")
        .with("key", format!("{PREFIX}{name}.type"))),
    }
}
