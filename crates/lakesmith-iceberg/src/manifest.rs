//! A manifest: its entries, with what they inherit from the manifest list.
//!
//! # Source
//! Iceberg spec, "Manifests", "Sequence Number Inheritance" and "First Row ID Inheritance".

use lakesmith_core::table::Scalar;
use lakesmith_core::{Error, Result};

use crate::avro::{AvroField, AvroSchema, Container, Cursor, Slot, each_field};
use crate::manifest_list::{ManifestContent, ManifestFile};
use crate::metadata::{PartitionSpec, TableMetadata};
use crate::single_value::partition_value;
use crate::transform::Transform;
use crate::types::Primitive;

/// Field id of the path column of position delete files: equal bounds of it name the one data file that is meant.
pub(crate) const DELETED_PATH: i32 = 2_147_483_546;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Live, and added before the manifest was written.
    Existing,
    /// Live, and new.
    Added,
    /// No longer live.
    Deleted,
}

impl Status {
    /// The number that stands for it.
    pub fn number(self) -> i32 {
        match self {
            Self::Existing => 0,
            Self::Added => 1,
            Self::Deleted => 2,
        }
    }
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Rows.
    Data,
    /// Paths and positions of deleted rows, or a deletion vector.
    PositionDeletes,
    /// Values of deleted rows.
    EqualityDeletes,
}

impl Content {
    /// The number that stands for it.
    pub fn number(self) -> i32 {
        match self {
            Self::Data => 0,
            Self::PositionDeletes => 1,
            Self::EqualityDeletes => 2,
        }
    }
}

/// Encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache ORC.
    Orc,
    /// Apache Avro.
    Avro,
    /// Puffin: deletion vectors.
    Puffin,
}

impl StoredFormat {
    /// As metadata tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "PARQUET",
            Self::Orc => "ORC",
            Self::Avro => "AVRO",
            Self::Puffin => "PUFFIN",
        }
    }
}

/// An entry of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What happened to the file.
    pub status: Status,
    /// Snapshot that added the file, or deleted it.
    pub snapshot_id: Option<i64>,
    /// Data sequence number: which deletes apply.
    pub sequence_number: Option<i64>,
    /// Number of the change that added the file.
    pub file_sequence_number: Option<i64>,
    /// The file.
    pub file: ContentFile,
}

/// A file that a manifest names.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentFile {
    /// What it holds.
    pub content: Content,
    /// Path as it stands there.
    pub path: String,
    /// How it is encoded.
    pub format: StoredFormat,
    /// Its partition spec.
    pub spec_id: i32,
    /// Values of the partition fields, in the order of the spec.
    pub partition: Vec<Scalar>,
    /// Rows.
    pub record_count: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes by column, as far as asked for; so are the next five.
    pub column_sizes: Option<Vec<(i32, i64)>>,
    /// Values by column, NULL and NaN included.
    pub value_counts: Option<Vec<(i32, i64)>>,
    /// NULLs by column.
    pub null_value_counts: Option<Vec<(i32, i64)>>,
    /// NaNs by column.
    pub nan_value_counts: Option<Vec<(i32, i64)>>,
    /// Smallest values in binary form.
    pub lower_bounds: Option<Vec<(i32, Vec<u8>)>>,
    /// Largest values in binary form.
    pub upper_bounds: Option<Vec<(i32, Vec<u8>)>>,
    /// With which key it is encrypted.
    pub key_metadata: Option<Vec<u8>>,
    /// Where its row groups start.
    pub split_offsets: Option<Vec<i64>>,
    /// Columns of an equality delete file.
    pub equality_ids: Option<Vec<i32>>,
    /// Order of its rows.
    pub sort_order_id: Option<i32>,
    /// Row id of its first row.
    pub first_row_id: Option<i64>,
    /// The data file whose rows it deletes, if it is one.
    pub referenced_data_file: Option<String>,
    /// Where the deletion vector starts.
    pub content_offset: Option<i64>,
    /// Bytes of the deletion vector.
    pub content_size: Option<i64>,
}

/// Bounds by column.
type Bounds = Vec<(i32, Vec<u8>)>;

/// Which statistics of entries are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Metrics {
    /// Those of these columns, by ascending id.
    Of(Vec<i32>),
    /// All, sizes and split offsets too.
    All,
}

impl Metrics {
    /// What tells which data file a position delete file is about.
    pub(crate) fn deleted_path() -> Self {
        Self::Of(vec![DELETED_PATH])
    }

    fn wants(&self, id: i32) -> bool {
        match self {
            Self::Of(ids) => ids.binary_search(&id).is_ok(),
            Self::All => true,
        }
    }

    fn wants_any(&self) -> bool {
        *self != Self::Of(Vec::new())
    }
}

/// The value of a column in a list of statistics.
pub(crate) fn of_column<T>(values: Option<&Vec<(i32, T)>>, id: i32) -> Option<&T> {
    values?.iter().find(|(column, _)| *column == id).map(|(_, value)| value)
}

impl ContentFile {
    /// The one data file whose rows a file of position deletes is about, if it is one.
    ///
    /// # Source
    /// Iceberg spec, "Manifests", note on `referenced_data_file`; Apache Iceberg, `ContentFileUtil.referencedDataFile`.
    pub(crate) fn deletes_of(&self) -> Option<&str> {
        if self.content != Content::PositionDeletes {
            return None;
        }
        if self.referenced_data_file.is_some() {
            return self.referenced_data_file.as_deref();
        }
        let lower = of_column(self.lower_bounds.as_ref(), DELETED_PATH)?;
        let upper = of_column(self.upper_bounds.as_ref(), DELETED_PATH)?;
        (lower == upper).then(|| std::str::from_utf8(lower).ok()).flatten()
    }
}

/// Reads the entries of a manifest in their order, with what they inherit.
///
/// # Errors
/// `Corrupt` if the bytes are no manifest of the table, `Unsupported` for what is not known.
pub(crate) fn parse(
    bytes: &[u8],
    listed: &ManifestFile,
    metadata: &TableMetadata,
    wanted: &Metrics,
) -> Result<Vec<Entry>> {
    let container = Container::open(bytes)?;
    let number = |key: &str| std::str::from_utf8(container.metadata(key)?).ok()?.trim().parse::<i32>().ok();
    let spec_id = listed.partition_spec_id.or_else(|| number("partition-spec-id")).unwrap_or(0);
    let spec = metadata.spec(spec_id).ok_or_else(|| {
        Error::corrupt(format!("the manifest has the partition spec {spec_id}, which the table's metadata lacks"))
    })?;
    let types = metadata.partition_types(spec);
    let reader = EntryReader { spec, types: &types, wanted };
    let mut inherit = Inheritance { listed, next_row_id: listed.first_row_id };
    let mut entries = Vec::new();
    container.each_row(|schema, cursor| {
        let mut entry = reader.entry(schema, cursor)?;
        inherit.apply(&mut entry)?;
        entries.push(entry);
        Ok(())
    })?;
    Ok(entries)
}

/// What entries get from the manifest that holds them.
struct Inheritance<'a> {
    listed: &'a ManifestFile,
    next_row_id: Option<i64>,
}

impl Inheritance<'_> {
    fn apply(&mut self, entry: &mut Entry) -> Result<()> {
        let listed = self.listed;
        let context = |error: Error, path: &str| error.with("file", path.to_owned());
        let is_data = entry.file.content == Content::Data;
        if is_data != (listed.content == ManifestContent::Data) {
            let error = Error::corrupt("the manifest holds data files and delete files together");
            return Err(context(error, &entry.file.path));
        }
        entry.snapshot_id = entry.snapshot_id.or(listed.added_snapshot_id);
        // A manifest of version 1 has numbers neither for itself nor for its files.
        let inherits = entry.status == Status::Added || listed.sequence_number == 0;
        for number in [&mut entry.sequence_number, &mut entry.file_sequence_number] {
            if number.is_none() && inherits {
                *number = Some(listed.sequence_number);
            }
        }
        if entry.sequence_number.is_none() && entry.status != Status::Deleted {
            let error = Error::corrupt("an entry of the manifest that is not new has no data sequence number");
            return Err(context(error, &entry.file.path));
        }
        let Some(next) = self.next_row_id.filter(|_| is_data) else {
            // Without an id of the manifest, rows have none, whatever an entry says.
            entry.file.first_row_id = None;
            return Ok(());
        };
        if entry.file.first_row_id.is_none() && entry.status != Status::Deleted {
            entry.file.first_row_id = Some(next);
            let rows = i64::try_from(entry.file.record_count).ok();
            let after = rows.and_then(|rows| next.checked_add(rows));
            let error = || context(Error::corrupt("the row ids of the manifest pass 64 bits"), &entry.file.path);
            self.next_row_id = Some(after.ok_or_else(error)?);
        }
        Ok(())
    }
}

struct EntryReader<'a> {
    spec: &'a PartitionSpec,
    types: &'a [Option<Primitive>],
    wanted: &'a Metrics,
}

impl EntryReader<'_> {
    fn entry(&self, schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<Entry> {
        let (mut status, mut snapshot_id, mut sequence_number, mut file_sequence_number) = (None, None, None, None);
        let mut file = None;
        each_field(schema, cursor, |field, slot| {
            match field.id {
                Some(0) => status = slot.int()?,
                Some(1) => snapshot_id = slot.long()?,
                Some(3) => sequence_number = slot.long()?,
                Some(4) => file_sequence_number = slot.long()?,
                Some(2) => file = self.file(slot)?,
                _ => {}
            }
            Ok(())
        })?;
        let file = file.ok_or_else(|| Error::corrupt("the manifest has an entry without a file"))?;
        let status = match status {
            Some(0) => Status::Existing,
            Some(1) => Status::Added,
            Some(2) => Status::Deleted,
            other => {
                return Err(Error::corrupt(format!("the manifest has an entry with the status {other:?}"))
                    .with("file", file.path));
            }
        };
        Ok(Entry { status, snapshot_id, sequence_number, file_sequence_number, file })
    }

    fn file(&self, slot: &mut Slot<'_, '_, '_>) -> Result<Option<ContentFile>> {
        let (mut content, mut path, mut format, mut rows, mut size) = (0, None, None, None, None);
        let mut partition = None;
        let mut file = ContentFile::empty(self.spec.spec_id);
        let there = slot.fields(|field, slot| {
            match field.id {
                Some(134) => content = slot.int()?.unwrap_or(0),
                Some(100) => path = slot.text()?.map(str::to_owned),
                Some(101) => format = slot.text()?.map(str::to_owned),
                Some(102) => partition = Some(self.partition(slot)?),
                Some(103) => rows = slot.long()?,
                Some(104) => size = slot.long()?,
                Some(108) => file.column_sizes = self.counts(slot, false)?,
                Some(109) => file.value_counts = self.counts(slot, true)?,
                Some(110) => file.null_value_counts = self.counts(slot, true)?,
                Some(137) => file.nan_value_counts = self.counts(slot, true)?,
                Some(125) => file.lower_bounds = self.bounds(slot)?,
                Some(128) => file.upper_bounds = self.bounds(slot)?,
                Some(131) => file.key_metadata = slot.bytes()?.map(<[u8]>::to_vec),
                Some(132) if *self.wanted == Metrics::All => file.split_offsets = numbers(slot, |slot| slot.long())?,
                Some(135) => file.equality_ids = numbers(slot, |slot| slot.int())?,
                Some(140) => file.sort_order_id = slot.int()?,
                Some(142) => file.first_row_id = slot.long()?,
                Some(143) => file.referenced_data_file = slot.text()?.map(str::to_owned),
                Some(144) => file.content_offset = slot.long()?,
                Some(145) => file.content_size = slot.long()?,
                _ => {}
            }
            Ok(())
        })?;
        if !there {
            return Ok(None);
        }
        file.path = path.ok_or_else(|| Error::corrupt("the manifest has a file without a path"))?;
        self.check(&mut file, content, format.as_deref(), rows, size, partition)
            .map_err(|e| e.with("file", &file.path))?;
        Ok(Some(file))
    }

    fn check(
        &self,
        file: &mut ContentFile,
        content: i32,
        format: Option<&str>,
        rows: Option<i64>,
        size: Option<i64>,
        partition: Option<Vec<Scalar>>,
    ) -> Result<()> {
        file.content = match content {
            0 => Content::Data,
            1 => Content::PositionDeletes,
            2 => Content::EqualityDeletes,
            other => {
                return Err(Error::unsupported(format!("the file has the content {other}, which is not known")));
            }
        };
        file.format = match format.map(str::to_ascii_lowercase).as_deref() {
            Some("parquet") => StoredFormat::Parquet,
            Some("orc") => StoredFormat::Orc,
            Some("avro") => StoredFormat::Avro,
            Some("puffin") => StoredFormat::Puffin,
            other => {
                let name = other.unwrap_or_default();
                return Err(Error::unsupported(format!("the file has the format '{name}', which is not known")));
            }
        };
        let count = |number: Option<i64>, what: &str| {
            let count = number.and_then(|number| u64::try_from(number).ok());
            count.ok_or_else(|| Error::corrupt(format!("the manifest gives a file no {what}, or a negative one")))
        };
        file.record_count = count(rows, "row count")?;
        file.size = count(size, "size")?;
        file.partition = match partition {
            Some(partition) => partition,
            None if self.spec.fields.is_empty() => Vec::new(),
            None => return Err(Error::corrupt("the manifest gives a file no partition")),
        };
        Ok(())
    }

    /// Partition values in the order of the spec, whatever the order of the file.
    fn partition(&self, slot: &mut Slot<'_, '_, '_>) -> Result<Vec<Scalar>> {
        let mut values: Vec<Option<Scalar>> = vec![None; self.spec.fields.len()];
        slot.fields(|field, slot| {
            if let Some(place) = self.place(field) {
                values[place] = Some(partition_value(self.types[place].as_ref(), slot.value()?)?);
            }
            Ok(())
        })?;
        let missing = |name: &str| {
            Error::corrupt("the manifest gives a file no value of a partition field").with("field", name.to_owned())
        };
        let value = |(field, value): (&crate::metadata::PartitionField, Option<Scalar>)| match value {
            Some(value) => Ok(value),
            None if field.transform == Transform::Void => Ok(Scalar::Null),
            None => Err(missing(&field.name)),
        };
        self.spec.fields.iter().zip(values).map(value).collect()
    }

    fn place(&self, field: &AvroField) -> Option<usize> {
        let fields = &self.spec.fields;
        match field.id {
            Some(id) => fields.iter().position(|of_spec| of_spec.field_id == id),
            None => fields.iter().position(|of_spec| of_spec.name == field.name),
        }
    }

    fn counts(&self, slot: &mut Slot<'_, '_, '_>, small: bool) -> Result<Option<Vec<(i32, i64)>>> {
        if !self.wanted.wants_any() || (!small && *self.wanted != Metrics::All) {
            return Ok(None);
        }
        pairs(slot, |id| self.wanted.wants(id), |slot| slot.long())
    }

    fn bounds(&self, slot: &mut Slot<'_, '_, '_>) -> Result<Option<Bounds>> {
        if !self.wanted.wants_any() {
            return Ok(None);
        }
        pairs(slot, |id| self.wanted.wants(id), |slot| Ok(slot.bytes()?.map(<[u8]>::to_vec)))
    }
}

impl ContentFile {
    pub(crate) fn empty(spec_id: i32) -> Self {
        Self {
            content: Content::Data,
            path: String::new(),
            format: StoredFormat::Parquet,
            spec_id,
            partition: Vec::new(),
            record_count: 0,
            size: 0,
            column_sizes: None,
            value_counts: None,
            null_value_counts: None,
            nan_value_counts: None,
            lower_bounds: None,
            upper_bounds: None,
            key_metadata: None,
            split_offsets: None,
            equality_ids: None,
            sort_order_id: None,
            first_row_id: None,
            referenced_data_file: None,
            content_offset: None,
            content_size: None,
        }
    }
}

/// A map from column ids, which is stored as a list of records with key and value.
fn pairs<'a, T>(
    slot: &mut Slot<'_, '_, 'a>,
    wants: impl Fn(i32) -> bool,
    read: impl Fn(&mut Slot<'_, '_, 'a>) -> Result<Option<T>>,
) -> Result<Option<Vec<(i32, T)>>> {
    let mut found = Vec::new();
    let there = slot.items(|item| {
        let mut key = None;
        item.fields(|field, slot| {
            match field.name.as_str() {
                "key" => key = slot.int()?,
                "value" => {
                    if let Some(id) = key
                        && wants(id)
                        && let Some(value) = read(slot)?
                    {
                        found.push((id, value));
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(there.then_some(found))
}

fn numbers<'a, T>(
    slot: &mut Slot<'_, '_, 'a>,
    read: impl Fn(&mut Slot<'_, '_, 'a>) -> Result<Option<T>>,
) -> Result<Option<Vec<T>>> {
    let mut found = Vec::new();
    let there = slot.items(|item| {
        found.extend(read(item)?);
        Ok(())
    })?;
    Ok(there.then_some(found))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
