//! The manifests of a snapshot, and what the list of them says of each.
//!
//! # Source
//! Iceberg spec, "Manifest Lists".

use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

use crate::avro::{AvroSchema, Container, Cursor, each_field};
use crate::metadata::Snapshot;
use crate::path::Paths;

/// What the files of a manifest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManifestContent {
    /// Data files.
    Data,
    /// Files that delete rows.
    Deletes,
}

/// A manifest as a manifest list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Path as it stands there.
    pub path: String,
    /// Bytes; 0 if it is not told.
    pub length: u64,
    /// Partition spec of its files; `None` if only the manifest itself tells.
    pub partition_spec_id: Option<i32>,
    /// What its files are.
    pub content: ManifestContent,
    /// Number of the change that added it; 0 in version 1.
    pub sequence_number: i64,
    /// Smallest data sequence number of its live files.
    pub min_sequence_number: i64,
    /// Snapshot that added it, if it is told.
    pub added_snapshot_id: Option<i64>,
    /// Entries that were added by that snapshot.
    pub added_files: Option<i32>,
    /// Live entries that older snapshots added.
    pub existing_files: Option<i32>,
    /// Entries that were deleted by that snapshot.
    pub deleted_files: Option<i32>,
    /// Rows of the first.
    pub added_rows: Option<i64>,
    /// Rows of the second.
    pub existing_rows: Option<i64>,
    /// Rows of the third.
    pub deleted_rows: Option<i64>,
    /// What its partitions hold, field by field.
    pub partitions: Option<Vec<FieldSummary>>,
    /// With which key it is encrypted.
    pub key_metadata: Option<Vec<u8>>,
    /// First row id of its added files that have none of their own (version 3).
    pub first_row_id: Option<i64>,
}

/// What a partition field holds over the files of a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSummary {
    /// Whether a value is NULL.
    pub contains_null: bool,
    /// Whether a value is NaN, if it is told.
    pub contains_nan: Option<bool>,
    /// Smallest value in binary form.
    pub lower_bound: Option<Vec<u8>>,
    /// Largest value in binary form.
    pub upper_bound: Option<Vec<u8>>,
}

/// The manifests of a snapshot, in the order of its list.
///
/// # Errors
/// `NotFound`, `Corrupt` or `Unsupported` with the path of the list.
pub(crate) async fn manifests(store: &Store, paths: &Paths, snapshot: &Snapshot) -> Result<Vec<ManifestFile>> {
    let context = |error: Error| error.with("snapshot", snapshot.snapshot_id);
    let Some(list) = &snapshot.manifest_list else {
        let inline = snapshot.manifests.as_ref().ok_or_else(|| {
            context(Error::corrupt("the snapshot has neither a manifest list nor manifests of its own"))
        })?;
        return Ok(inline.iter().map(|path| ManifestFile::unlisted(path, snapshot.snapshot_id)).collect());
    };
    let location = paths.readable(store, list).map_err(context)?;
    if snapshot.key_id.is_some() {
        return Err(context(Error::unsupported("the snapshot's manifest list is encrypted").with("path", location)));
    }
    let bytes = match store.get(&location).await {
        Err(error) if error.kind() == lakesmith_core::ErrorKind::NotFound => {
            let error = Error::not_found("the snapshot's manifest list does not exist").with("path", &location);
            return Err(context(paths.missing(error)));
        }
        other => other.map_err(context)?,
    };
    parse(&bytes).map_err(|e| context(e.with("path", &location)))
}

/// # Errors
/// `Corrupt` if the bytes are no manifest list.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<ManifestFile>> {
    let container = Container::open(bytes)?;
    let mut manifests = Vec::new();
    container.each_row(|schema, cursor| {
        manifests.push(manifest(schema, cursor)?);
        Ok(())
    })?;
    Ok(manifests)
}

impl ManifestFile {
    /// A manifest of which only the path is known.
    pub(crate) fn unlisted(path: &str, snapshot_id: i64) -> Self {
        Self {
            path: path.to_owned(),
            length: 0,
            partition_spec_id: None,
            content: ManifestContent::Data,
            sequence_number: 0,
            min_sequence_number: 0,
            added_snapshot_id: Some(snapshot_id),
            added_files: None,
            existing_files: None,
            deleted_files: None,
            added_rows: None,
            existing_rows: None,
            deleted_rows: None,
            partitions: None,
            key_metadata: None,
            first_row_id: None,
        }
    }

    /// True unless the list says that no file of it is live.
    pub fn may_hold_live_files(&self) -> bool {
        self.added_files != Some(0) || self.existing_files != Some(0)
    }

    /// Where it is, if it can be read.
    pub(crate) fn location(&self, store: &Store, paths: &Paths) -> Result<Location> {
        let location = paths.readable(store, &self.path)?;
        if self.key_metadata.is_some() {
            return Err(Error::unsupported("the manifest is encrypted").with("path", location));
        }
        Ok(location)
    }
}

fn manifest(schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<ManifestFile> {
    let mut file = ManifestFile::unlisted("", 0);
    file.added_snapshot_id = None;
    let (mut path, mut spec) = (None, None);
    each_field(schema, cursor, |field, slot| {
        match field.id {
            Some(500) => path = slot.text()?.map(str::to_owned),
            Some(501) => file.length = slot.long()?.and_then(|length| u64::try_from(length).ok()).unwrap_or(0),
            Some(502) => spec = slot.int()?,
            Some(517) => file.content = content(slot.long()?)?,
            Some(515) => file.sequence_number = slot.long()?.unwrap_or(0),
            Some(516) => file.min_sequence_number = slot.long()?.unwrap_or(0),
            Some(503) => file.added_snapshot_id = slot.long()?,
            Some(504) => file.added_files = slot.int()?,
            Some(505) => file.existing_files = slot.int()?,
            Some(506) => file.deleted_files = slot.int()?,
            Some(512) => file.added_rows = slot.long()?,
            Some(513) => file.existing_rows = slot.long()?,
            Some(514) => file.deleted_rows = slot.long()?,
            Some(519) => file.key_metadata = slot.bytes()?.map(<[u8]>::to_vec),
            Some(520) => file.first_row_id = slot.long()?,
            Some(507) => {
                let mut summaries = Vec::new();
                let there = slot.items(|item| {
                    let mut summary = FieldSummary::default();
                    item.fields(|field, slot| {
                        match field.id {
                            Some(509) => summary.contains_null = slot.boolean()?.unwrap_or(true),
                            Some(518) => summary.contains_nan = slot.boolean()?,
                            Some(510) => summary.lower_bound = slot.bytes()?.map(<[u8]>::to_vec),
                            Some(511) => summary.upper_bound = slot.bytes()?.map(<[u8]>::to_vec),
                            _ => {}
                        }
                        Ok(())
                    })?;
                    summaries.push(summary);
                    Ok(())
                })?;
                file.partitions = there.then_some(summaries);
            }
            _ => {}
        }
        Ok(())
    })?;
    file.path = path.ok_or_else(|| Error::corrupt("the manifest list has an entry without a path"))?;
    file.partition_spec_id = Some(spec.ok_or_else(|| {
        Error::corrupt("the manifest list does not tell a manifest's partition spec").with("manifest", &file.path)
    })?);
    Ok(file)
}

fn content(number: Option<i64>) -> Result<ManifestContent> {
    match number {
        None | Some(0) => Ok(ManifestContent::Data),
        Some(1) => Ok(ManifestContent::Deletes),
        Some(other) => {
            Err(Error::unsupported(format!("the manifest list has manifests with content {other}, which is not known")))
        }
    }
}
