//! What manifests and partitions say of columns, file by file: smallest and largest values, and NULLs.
//!
//! The manifests are read again for it: bounds of millions of files would not fit beside the files themselves.

use std::collections::HashMap;
use std::mem::discriminant;

use futures::TryStreamExt as _;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::plan::KeyBounds;
use lakesmith_core::table::{ColumnBounds, DataType, Field, FileId, Scalar};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

use crate::manifest::{ContentFile, Entry, Metrics, Status, of_column};
use crate::manifest_list::{ManifestContent, ManifestFile};
use crate::single_value::bound;
use crate::snapshot_files::ManifestReader;
use crate::table::IcebergTable;
use crate::transform::Transform;
use crate::types::Primitive;

/// The bounds of each key in all files of `table`.
///
/// # Errors
/// As [`column_bounds`].
pub async fn key_bounds(
    store: &Store,
    root: &Location,
    table: &IcebergTable,
    keys: &[OrderKey],
) -> Result<Vec<KeyBounds>> {
    let files: Vec<FileId> = (0..table.state.files.len() as u32).map(FileId).collect();
    let bounds = column_bounds(store, root, table, keys, &files).await?;
    let both =
        |column: ColumnBounds| column.low.into_iter().zip(column.high).map(|(low, high)| low.zip(high)).collect();
    Ok(bounds.into_iter().map(both).collect())
}

/// What is known of each of `columns` in `files` of `table`, in their order; the manifests are read once. A column that
/// the table does not have has no bounds.
///
/// # Errors
/// As [`crate::load`]; `Corrupt` if the manifests no longer give the same files.
pub async fn column_bounds(
    store: &Store,
    root: &Location,
    table: &IcebergTable,
    columns: &[OrderKey],
    files: &[FileId],
) -> Result<Vec<ColumnBounds>> {
    let mut collector = Collector::new(table, columns, files);
    if columns.is_empty() || files.is_empty() {
        return Ok(collector.bounds);
    }
    let reader = ManifestReader { store: store.clone(), paths: table.paths(), metadata: table.log.metadata.clone() };
    let holds_data = |m: &&ManifestFile| m.content == ManifestContent::Data && m.may_hold_live_files();
    let manifests: Vec<ManifestFile> = table.log.manifests.iter().filter(holds_data).cloned().collect();
    let context = |error: Error| error.with("table", root);
    let mut read = reader.read(manifests, collector.metrics());
    while let Some(manifest) = read.try_next().await.map_err(context)? {
        for entry in manifest.entries.iter().filter(|entry| entry.status != Status::Deleted) {
            collector.take(entry).map_err(context)?;
        }
    }
    collector.finish().map_err(context)
}

/// A column that bounds are wanted of.
struct Column<'a> {
    id: i32,
    primitive: &'a Primitive,
    /// A value of the type that bounds have.
    example: Scalar,
    is_float: bool,
}

impl<'a> Column<'a> {
    fn find(table: &'a IcebergTable, key: &OrderKey) -> Option<Self> {
        let id = field_of(&table.state.schema.fields, &key.path)?.id?;
        let primitive = table.schema().primitive(id)?;
        let example = example(&key.data_type)?;
        let is_float = matches!(key.data_type, DataType::Float | DataType::Double);
        Some(Self { id, primitive, example, is_float })
    }

    fn fits(&self, value: Scalar) -> Option<Scalar> {
        (discriminant(&value) == discriminant(&self.example)).then_some(value)
    }
}

/// The field at a path of physical names.
fn field_of<'a>(fields: &'a [Field], path: &[String]) -> Option<&'a Field> {
    let (name, below) = path.split_first()?;
    let field = fields.iter().find(|field| field.physical == *name)?;
    match (&field.data_type, below) {
        (_, []) => Some(field),
        (DataType::Struct(fields), below) => field_of(fields, below),
        _ => None,
    }
}

fn example(data_type: &DataType) -> Option<Scalar> {
    Some(match data_type {
        DataType::Boolean => Scalar::Boolean(false),
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long => Scalar::Long(0),
        DataType::Float | DataType::Double => Scalar::Double(0.0),
        DataType::Decimal { scale, .. } => Scalar::Decimal(0, *scale),
        DataType::String => Scalar::String(String::new()),
        DataType::Binary => Scalar::Binary(Vec::new()),
        DataType::Date => Scalar::Date(0),
        DataType::Timestamp => Scalar::Timestamp(0),
        DataType::TimestampNtz => Scalar::TimestampNtz(0),
        DataType::Variant | DataType::Null | DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => {
            return None;
        }
    })
}

/// What is known of a column in one file.
#[derive(Debug, Default, PartialEq)]
struct Known {
    low: Option<Scalar>,
    high: Option<Scalar>,
    nulls: Option<u64>,
    tight: bool,
}

struct Collector<'a> {
    table: &'a IcebergTable,
    columns: Vec<Option<Column<'a>>>,
    /// The places of each file among those that are asked for.
    places: Vec<Option<u32>>,
    /// Further places of files that are asked for more than once.
    more_places: HashMap<u32, Vec<u32>>,
    bounds: Vec<ColumnBounds>,
    next: usize,
}

impl<'a> Collector<'a> {
    fn new(table: &'a IcebergTable, keys: &[OrderKey], files: &[FileId]) -> Self {
        let mut places = vec![None; table.state.files.len()];
        let mut more_places: HashMap<u32, Vec<u32>> = HashMap::new();
        for (place, file) in (0u32..).zip(files) {
            match &mut places[file.0 as usize] {
                Some(_) => more_places.entry(file.0).or_default().push(place),
                free => *free = Some(place),
            }
        }
        Self {
            table,
            columns: keys.iter().map(|key| Column::find(table, key)).collect(),
            places,
            more_places,
            bounds: vec![ColumnBounds::unknown(files.len()); keys.len()],
            next: 0,
        }
    }

    fn metrics(&self) -> Metrics {
        let mut ids: Vec<i32> = self.columns.iter().flatten().map(|column| column.id).collect();
        ids.sort_unstable();
        ids.dedup();
        Metrics::Of(ids)
    }

    /// Manifests give the files in the order in which they were loaded.
    fn take(&mut self, entry: &Entry) -> Result<()> {
        let row = self.next;
        self.next += 1;
        let files = &self.table.state.files;
        if row >= files.len() || files.get(FileId(row as u32)).path != entry.file.path {
            return Err(changed().with("file", &entry.file.path));
        }
        let Some(first) = self.places[row] else { return Ok(()) };
        let more = self.more_places.get(&(row as u32)).map_or(&[][..], Vec::as_slice);
        for (column, bounds) in self.columns.iter().zip(&mut self.bounds) {
            let Some(column) = column else { continue };
            let mut known = by_statistics(column, &entry.file);
            tighten(&mut known, column, self.table, &entry.file);
            for place in std::iter::once(&first).chain(more) {
                let place = *place as usize;
                bounds.low[place].clone_from(&known.low);
                bounds.high[place].clone_from(&known.high);
                bounds.nulls[place] = known.nulls;
                bounds.tight[place] = known.tight;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<ColumnBounds>> {
        if self.next == self.table.state.files.len() { Ok(self.bounds) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    Error::corrupt("the manifests give other files than before; run again")
}

/// What the entry's statistics say.
fn by_statistics(column: &Column<'_>, file: &ContentFile) -> Known {
    let count = |counts: &Option<Vec<(i32, i64)>>| {
        of_column(counts.as_ref(), column.id).and_then(|count| u64::try_from(*count).ok())
    };
    let read = |bytes: Option<&Vec<u8>>| column.fits(bound(column.primitive, bytes?)?);
    let mut low = read(of_column(file.lower_bounds.as_ref(), column.id));
    let mut high = read(of_column(file.upper_bounds.as_ref(), column.id));
    // Values of a list are counted one by one, those of a column row by row.
    let whole = count(&file.value_counts) == Some(file.record_count);
    let nulls = count(&file.null_value_counts).filter(|nulls| *nulls <= file.record_count);
    let is_nan = |bound: &Option<Scalar>| matches!(bound, Some(Scalar::Double(number)) if number.is_nan());
    if column.is_float {
        if is_nan(&low) || is_nan(&high) {
            (low, high) = (None, None);
        }
        // NaN is greater than every bound.
        if count(&file.nan_value_counts) != Some(0) {
            high = None;
        }
    }
    if matches!((&low, &high), (Some(low), Some(high)) if low > high) {
        (low, high) = (None, None);
    }
    let has_bounds = low.is_some() && high.is_some() || nulls == Some(file.record_count);
    let exact = matches!(
        column.example,
        Scalar::Boolean(_)
            | Scalar::Long(_)
            | Scalar::Decimal(..)
            | Scalar::Date(_)
            | Scalar::Timestamp(_)
            | Scalar::TimestampNtz(_)
    );
    let tight = whole && exact && has_bounds && nulls.is_some();
    Known { low, high, nulls, tight }
}

/// What the file's partition says besides.
fn tighten(known: &mut Known, column: &Column<'_>, table: &IcebergTable, file: &ContentFile) {
    let Some(spec) = table.log.metadata.spec(file.spec_id) else { return };
    let fields = spec.fields.iter().zip(&file.partition).filter(|(field, _)| field.source_id == column.id);
    for (field, value) in fields {
        if value.is_null() {
            // All transforms but this one keep NULL and give it for nothing else.
            let keeps_null = !matches!(field.transform, Transform::Void | Transform::Unknown(_));
            if field.transform == Transform::Identity {
                *known = Known { low: None, high: None, nulls: Some(file.record_count), tight: true };
            } else if keeps_null {
                *known = Known { low: None, high: None, nulls: Some(file.record_count), tight: known.tight };
            }
            continue;
        }
        let Some(source) = table.log.metadata.primitive(field.source_id) else { continue };
        let (low, high) = field.transform.source_range(source, value);
        let (low, high) = (low.and_then(|low| column.fits(low)), high.and_then(|high| column.fits(high)));
        if field.transform == Transform::Identity && low.is_some() {
            *known = Known { low, high, nulls: Some(0), tight: !column.is_float };
            continue;
        }
        if !matches!(field.transform, Transform::Void | Transform::Unknown(_)) {
            known.nulls = Some(0);
        }
        if let Some(low) = low
            && known.low.as_ref().is_none_or(|known| *known < low)
        {
            known.low = Some(low);
            known.tight = false;
        }
        if let Some(high) = high
            && known.high.as_ref().is_none_or(|known| *known > high)
        {
            known.high = Some(high);
            known.tight = false;
        }
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
