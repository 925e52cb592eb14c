//! SELECT from Parquet, CSV and JSON files that belong to no table.
//!
//! # Source
//! Spark `ResolveSQLOnFile`: files are read with the defaults of their format; CSV has no header and holds strings.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use lakesmith::{Error, Location, Result, Session, TableRef};

use crate::failure::translate;

/// The files of `format` at `path`, a file or a folder, as a table; and the names of its columns as they are spelled.
///
/// # Errors
/// Usage (`PATH_NOT_FOUND`) if nothing lies there, those of reading schemas.
pub(crate) async fn open(
    session: &Session,
    context: &SessionContext,
    format: &str,
    path: &str,
) -> Result<(Arc<dyn TableProvider>, Vec<String>)> {
    let location = session.resolve(&TableRef::Path(path.to_owned()))?;
    let urls = found(session, context, &location).await?;
    let reader: Arc<dyn FileFormat> = match format {
        "csv" => Arc::new(CsvFormat::default().with_has_header(false)),
        "json" => Arc::new(JsonFormat::default()),
        _ => Arc::new(ParquetFormat::default().with_force_view_types(false)),
    };
    let planned = async {
        let options = ListingOptions::new(reader).with_file_extension("");
        let state = context.state();
        let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
        let config = config.infer_schema(&state).await?;
        let config = match (&config.file_schema, format) {
            (Some(schema), "csv") => {
                let fields = (0..schema.fields().len()).map(|i| Field::new(format!("_c{i}"), DataType::Utf8, true));
                let strings = Schema::new(fields.collect::<Vec<_>>());
                config.with_schema(Arc::new(strings))
            }
            _ => config,
        };
        let table = context.read_table(Arc::new(ListingTable::try_new(config)?))?;
        let names: Vec<String> = table.schema().fields().iter().map(|f| f.name().clone()).collect();
        let columns = names
            .iter()
            .map(|name| Expr::Column(datafusion::common::Column::new_unqualified(name)).alias(name.to_lowercase()));
        let view = table.select(columns.collect::<Vec<_>>())?.into_view();
        Ok((names, view))
    };
    let (names, view) = planned.await.map_err(|e| translate(e, &str::to_owned).with("path", &location))?;
    Ok((view, names))
}

/// The file, or what lies in the folder; names that begin with `_` or `.` are hidden.
async fn found(session: &Session, context: &SessionContext, location: &Location) -> Result<Vec<ListingTableUrl>> {
    let store = session.open(location)?;
    let below = store.list(location).await?;
    let hidden = |found: &Location| {
        found.relative_to(location).is_some_and(|path| path.split('/').any(|part| part.starts_with(['_', '.'])))
    };
    let mut files: Vec<Location> =
        below.into_iter().filter(|f| f.size > 0).map(|f| f.location).filter(|f| !hidden(f)).collect();
    if files.is_empty() && store.exists(location).await? {
        files.push(location.clone());
    }
    if files.is_empty() {
        return Err(Error::usage("the path does not exist, or holds no files")
            .class("PATH_NOT_FOUND")
            .with("path", location));
    }
    let mut root = location.to_url();
    root.set_path("/");
    context.register_object_store(&root, store.object_store());
    let url = |file: &Location| ListingTableUrl::parse(file.to_url()).map_err(|e| translate(e, &str::to_owned));
    files.iter().map(url).collect()
}
