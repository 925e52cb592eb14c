//! A server that knows Iceberg tables by name, as a catalog. It is read, never written.

use std::collections::BTreeMap;

use lakesmith_core::Result;
use lakesmith_iceberg::rest::{RestCatalog, RestTable};
use lakesmith_storage::Location;
use tokio::runtime::Handle;

use super::{Catalog, CatalogTable, Database};
use crate::format::Format;

/// The catalog of a server.
pub(crate) struct ServedCatalog {
    catalog: RestCatalog,
    /// Where namespaces seem to lie, which have no place of their own.
    place: Location,
    runtime: Handle,
}

impl ServedCatalog {
    /// # Errors
    /// Usage if the server's address is none.
    pub(crate) fn new(catalog: RestCatalog, runtime: Handle) -> Result<Self> {
        Ok(Self { catalog, place: Location::parse("memory://catalog")?, runtime })
    }
}

impl Catalog for ServedCatalog {
    fn databases(&self) -> Result<Vec<String>> {
        let mut names = self.runtime.block_on(self.catalog.namespaces(None))?;
        names.sort();
        Ok(names)
    }

    fn database(&self, name: &str) -> Result<Option<Database>> {
        let found = self.runtime.block_on(async {
            if self.catalog.has_namespace(name).await? {
                return Ok(Some(name.to_owned()));
            }
            // Statements have names in lower case, servers may have others.
            let parent = name.rsplit_once('.').map(|(parent, _)| parent);
            let names = self.catalog.namespaces(parent).await?;
            super::warehouse::spelled(&names, name).map(Option::<&String>::cloned)
        })?;
        Ok(found.map(|name| Database { name, comment: None, location: self.place.clone() }))
    }

    fn tables(&self, database: &Database) -> Result<Vec<String>> {
        let mut names = self.runtime.block_on(self.catalog.tables(&database.name))?;
        names.sort();
        Ok(names)
    }

    fn table(&self, database: &Database, name: &str) -> Result<Option<CatalogTable>> {
        self.runtime.block_on(async {
            if let Some(table) = self.catalog.table(&database.name, name).await? {
                return of_server(name, table).map(Some);
            }
            let names = self.catalog.tables(&database.name).await?;
            match super::warehouse::spelled(&names, name)? {
                Some(spelled) => {
                    let found = self.catalog.table(&database.name, spelled).await?;
                    found.map(|table| of_server(spelled, table)).transpose()
                }
                None => Ok(None),
            }
        })
    }
}

fn of_server(name: &str, table: RestTable) -> Result<CatalogTable> {
    let metadata = Location::from_unencoded(&table.metadata_location)?;
    let location = match &table.location {
        Some(location) => Location::from_unencoded(location)?,
        None => metadata.clone(),
    };
    Ok(CatalogTable {
        format: Some(Format::Iceberg),
        metadata: Some(metadata),
        storage: storage(&table.config),
        ..CatalogTable::new(name.to_owned(), location, true)
    })
}

/// Settings of the storage as Iceberg's own readers name them.
///
/// # Source
/// Iceberg `S3FileIOProperties`, `AwsClientProperties`.
fn storage(config: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    const KEYS: [(&str, &str); 6] = [
        ("s3.access-key-id", "aws_access_key_id"),
        ("s3.secret-access-key", "aws_secret_access_key"),
        ("s3.session-token", "aws_session_token"),
        ("s3.endpoint", "aws_endpoint"),
        ("client.region", "aws_region"),
        ("s3.region", "aws_region"),
    ];
    let known = KEYS.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), config.get(*theirs)?.clone())));
    let mut found: BTreeMap<String, String> = known.collect();
    if let Some(path_style) = config.get("s3.path-style-access") {
        let is_path_style = path_style.eq_ignore_ascii_case("true");
        found.insert("aws_virtual_hosted_style_request".into(), (!is_path_style).to_string());
    }
    found
}
