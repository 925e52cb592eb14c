//! A listing that somebody else made, such as the inventory of a bucket: Parquet or CSV.
//!
//! # Source
//! Delta Spark `VacuumCommand.INVENTORY_SCHEMA`, `getFilesFromInventory`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use lakesmith_core::op::{Inventory, InventoryFormat};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{ListedEntry, Location, Store};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::Session;

const COLUMNS: [&str; 4] = ["path", "length", "isDir", "modificationTime"];

/// Hands every entry below `root` to `each`.
pub(super) fn read(
    session: &Session,
    root: &Location,
    inventory: &Inventory,
    each: &mut dyn FnMut(ListedEntry) -> Result<()>,
) -> Result<()> {
    let location = Location::parse(&inventory.location)?;
    let store = session.open(&location)?;
    let files = files(session, &store, &location)?;
    for file in files {
        session.options.cancel.check()?;
        let bytes = session.runtime.block_on(store.get(&file))?;
        let context = |e: Error| e.with("inventory", &file);
        match format(inventory, &file)? {
            InventoryFormat::Parquet => parquet(bytes, root, each).map_err(context)?,
            InventoryFormat::Csv => csv(&bytes, root, each).map_err(context)?,
        }
    }
    Ok(())
}

/// The file itself, or the files of a folder as Spark writes one.
fn files(session: &Session, store: &Store, location: &Location) -> Result<Vec<Location>> {
    match session.runtime.block_on(store.head(location)) {
        Ok(info) => return Ok(vec![info.location]),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listed = session.runtime.block_on(store.list(location))?;
    let files: Vec<Location> =
        listed.into_iter().map(|info| info.location).filter(|file| !file.file_name().starts_with(['_', '.'])).collect();
    if files.is_empty() {
        return Err(Error::not_found("the inventory does not exist; name a Parquet or CSV file").with("path", location));
    }
    Ok(files)
}

fn format(inventory: &Inventory, file: &Location) -> Result<InventoryFormat> {
    let extension = file.file_name().rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match (inventory.format, extension.as_str()) {
        (Some(format), _) => Ok(format),
        (None, "parquet") => Ok(InventoryFormat::Parquet),
        (None, "csv") => Ok(InventoryFormat::Csv),
        (None, _) => Err(Error::usage("the inventory's name ends neither in .parquet nor in .csv").with("path", file)),
    }
}

fn wrong_schema(why: &str) -> Error {
    Error::usage(format!(
        "The schema for the specified INVENTORY does not contain all of the required fields. Required fields are: path: \
         string, length: long, isDir: boolean, modificationTime: long ({why})"
    ))
    .class("DELTA_INVALID_INVENTORY_SCHEMA")
}

fn parquet(bytes: Bytes, root: &Location, each: &mut dyn FnMut(ListedEntry) -> Result<()>) -> Result<()> {
    let unreadable = |e: &dyn std::fmt::Display| {
        Error::corrupt("the inventory is not a valid Parquet file").caused_by(e.to_string())
    };
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| unreadable(&e))?;
    for batch in reader.build().map_err(|e| unreadable(&e))? {
        rows(&batch.map_err(|e| unreadable(&e))?, root, each)?;
    }
    Ok(())
}

fn rows(batch: &RecordBatch, root: &Location, each: &mut dyn FnMut(ListedEntry) -> Result<()>) -> Result<()> {
    let column = |name: &str, wanted: &DataType, also: fn(&DataType) -> bool| -> Result<ArrayRef> {
        let column = batch.column_by_name(name).ok_or_else(|| wrong_schema(&format!("{name} is missing")))?;
        if column.data_type() != wanted && !also(column.data_type()) {
            return Err(wrong_schema(&format!("{name} is {}", column.data_type())));
        }
        cast(column, wanted).map_err(|e| wrong_schema(&format!("{name}: {e}")))
    };
    let integer = |t: &DataType| t.is_integer();
    let time = |t: &DataType| t.is_integer() || matches!(t, DataType::Timestamp(..));
    let text = |t: &DataType| matches!(t, DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..));
    let paths = column(COLUMNS[0], &DataType::Utf8, text)?;
    let sizes = column(COLUMNS[1], &DataType::Int64, integer)?;
    let folders = column(COLUMNS[2], &DataType::Boolean, |_| false)?;
    let mut times = column(COLUMNS[3], &DataType::Int64, time)?;
    if let Some(DataType::Timestamp(unit, zone)) = batch.column_by_name(COLUMNS[3]).map(|c| c.data_type())
        && *unit != TimeUnit::Millisecond
        && let Some(original) = batch.column_by_name(COLUMNS[3])
    {
        let ms = cast(original, &DataType::Timestamp(TimeUnit::Millisecond, zone.clone()));
        let ms = ms.and_then(|ms| cast(&ms, &DataType::Int64));
        times = ms.map_err(|e| wrong_schema(&format!("{}: {e}", COLUMNS[3])))?;
    }
    let (paths, folders) = (paths.as_string::<i32>(), folders.as_boolean());
    let (sizes, times) = (sizes.as_primitive::<Int64Type>(), times.as_primitive::<Int64Type>());
    for row in 0..batch.num_rows() {
        if paths.is_null(row) {
            continue;
        }
        let entry = Row {
            path: paths.value(row),
            size: sizes.is_valid(row).then(|| sizes.value(row)),
            is_folder: folders.is_valid(row) && folders.value(row),
            modified_ms: times.is_valid(row).then(|| times.value(row)),
        };
        entry.hand_on(root, each)?;
    }
    Ok(())
}

fn csv(bytes: &[u8], root: &Location, each: &mut dyn FnMut(ListedEntry) -> Result<()>) -> Result<()> {
    let mut reader = csv::Reader::from_reader(bytes);
    let headers = reader.headers().map_err(|e| Error::corrupt("the inventory is not valid CSV").caused_by(e))?.clone();
    let mut places = [0; 4];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        *place = headers
            .iter()
            .position(|header| header.trim() == name)
            .ok_or_else(|| wrong_schema(&format!("{name} is missing")))?;
    }
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| Error::corrupt("the inventory is not valid CSV").caused_by(e))? {
        let field = |column: usize| record.get(places[column]).map(str::trim).filter(|text| !text.is_empty());
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize| -> Result<Option<i64>> {
            let bad = || wrong_schema(&format!("{} is no whole number in line {line}", COLUMNS[column]));
            field(column).map(|text| text.parse().map_err(|_| bad())).transpose()
        };
        let Some(path) = field(0) else { continue };
        let is_folder = match field(2).map(str::to_ascii_lowercase).as_deref() {
            Some("true") => true,
            Some("false") | None => false,
            Some(_) => return Err(wrong_schema(&format!("isDir is neither true nor false in line {line}"))),
        };
        Row { path, size: number(1)?, is_folder, modified_ms: number(3)? }.hand_on(root, each)?;
    }
    Ok(())
}

struct Row<'a> {
    path: &'a str,
    size: Option<i64>,
    is_folder: bool,
    modified_ms: Option<i64>,
}

impl Row<'_> {
    /// Paths are full URIs; what lies elsewhere is left out, also what we can't read as a path.
    fn hand_on(&self, root: &Location, each: &mut dyn FnMut(ListedEntry) -> Result<()>) -> Result<()> {
        let Ok(location) = root.resolve(self.path) else { return Ok(()) };
        let below = Location::is_absolute(self.path).then(|| location.relative_to(root)).flatten();
        let Some(path) = below.filter(|path| !path.is_empty()) else { return Ok(()) };
        each(ListedEntry {
            path: path.to_owned(),
            size: self.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            modified_ms: self.modified_ms,
            is_folder: self.is_folder,
        })
    }
}
