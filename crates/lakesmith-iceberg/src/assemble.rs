//! Puts the file table together: delete files first, so that each data file finds the deletes that apply to it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use futures::TryStreamExt as _;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{
    DeleteContent, DeleteFile, DeleteFileId, DeleteInfo, Field, FileFormat, FileId, FileMarks, FileTable,
    FileTableBuilder, NewRow, PartitionTuple, Scalar,
};
use lakesmith_core::{Error, Result};

use crate::delete_index::{DeleteIndex, Deletes, PartitionKey};
use crate::manifest::{Content, ContentFile, Entry, Metrics, Status, StoredFormat};
use crate::manifest_list::{ManifestContent, ManifestFile};
use crate::metadata::TableMetadata;
use crate::path::Paths;
use crate::snapshot_files::{ManifestReader, blocking};
use crate::table::FileFacts;
use crate::value_text::value_text;

/// Length and checksum words around the bitmap of a deletion vector.
const VECTOR_FRAME_BYTES: i64 = 8;
/// How [`DeleteInfo::storage_type`] calls a vector in a Puffin file.
pub(crate) const PUFFIN: &str = "puffin";

/// The files of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct SnapshotFiles {
    pub(crate) files: FileTable,
    pub(crate) facts: Vec<FileFacts>,
    pub(crate) encrypted_deletes: BTreeSet<DeleteFileId>,
    pub(crate) encrypted_vectors: BTreeSet<String>,
}

/// Reads the live files that `manifests` name.
///
/// # Errors
/// `NotFound`, `Corrupt` or `Unsupported` with the path of the manifest.
pub(crate) async fn read(reader: &ManifestReader, manifests: &[ManifestFile]) -> Result<SnapshotFiles> {
    let live = |content: ManifestContent| {
        let of = manifests.iter().filter(move |m| m.content == content && m.may_hold_live_files());
        of.cloned().collect::<Vec<_>>()
    };
    let mut assembly = Assembly::new(Arc::clone(&reader.metadata), reader.paths.clone());
    let mut deletes = reader.read(live(ManifestContent::Deletes), Metrics::deleted_path());
    while let Some(manifest) = deletes.try_next().await? {
        for entry in manifest.entries.into_iter().filter(|entry| entry.status != Status::Deleted) {
            assembly.add_delete(entry).map_err(|e| e.with("manifest", &manifest.listed.path))?;
        }
    }
    assembly.index.build();
    let mut data = reader.read(live(ManifestContent::Data), Metrics::Of(Vec::new()));
    while let Some(manifest) = data.try_next().await? {
        for entry in manifest.entries.into_iter().filter(|entry| entry.status != Status::Deleted) {
            assembly.add_data(entry).map_err(|e| e.with("manifest", &manifest.listed.path))?;
        }
    }
    blocking(move || assembly.finish()).await
}

struct Assembly {
    metadata: Arc<TableMetadata>,
    paths: Paths,
    builder: FileTableBuilder,
    index: DeleteIndex,
    facts: Vec<FileFacts>,
    encrypted_deletes: BTreeSet<DeleteFileId>,
    encrypted_vectors: BTreeSet<String>,
    marks: u32,
}

impl Assembly {
    fn new(metadata: Arc<TableMetadata>, paths: Paths) -> Self {
        let mut builder = FileTableBuilder::new(false);
        let marks = builder.marks(FileMarks::default());
        Self {
            metadata,
            paths,
            builder,
            index: DeleteIndex::default(),
            facts: Vec::new(),
            encrypted_deletes: BTreeSet::new(),
            encrypted_vectors: BTreeSet::new(),
            marks,
        }
    }

    fn add_delete(&mut self, entry: Entry) -> Result<()> {
        let context = |error: Error| error.with("file", &entry.file.path);
        let file = &entry.file;
        let number = sequence_number(&entry)?;
        if file.format == StoredFormat::Puffin {
            let (path, info) = self.vector(file).map_err(context)?;
            if file.key_metadata.is_some() {
                self.encrypted_vectors.insert(info.unique_id.clone());
            }
            return self.index.add_vector(path, number, info);
        }
        let content = match file.content {
            Content::EqualityDeletes => DeleteContent::Equality(self.equality_fields(file).map_err(context)?),
            Content::PositionDeletes => DeleteContent::Positions,
            Content::Data => return Err(context(Error::internal("a data file was taken for a delete file"))),
        };
        let format = match file.format {
            StoredFormat::Parquet => FileFormat::Parquet,
            StoredFormat::Orc => FileFormat::Orc,
            StoredFormat::Avro => FileFormat::Avro,
            StoredFormat::Puffin => return Err(context(Error::internal("a vector was taken for a delete file"))),
        };
        let id = self.builder.delete_file(DeleteFile {
            path: file.path.clone(),
            size: file.size,
            rows: file.record_count,
            format,
            content,
        });
        if file.key_metadata.is_some() {
            self.encrypted_deletes.insert(id);
        }
        let key = || PartitionKey::new(file.spec_id, &file.partition);
        match (file.content, file.deletes_of()) {
            (Content::EqualityDeletes, _) => {
                let spec = self.metadata.spec(file.spec_id);
                let everywhere = spec.is_none_or(|spec| spec.is_unpartitioned());
                self.index.add_equality((!everywhere).then(key), number, id);
            }
            (_, Some(path)) => {
                let path = self.paths.resolve(path)?.to_string();
                self.index.add_positions_of(path, number, id);
            }
            (_, None) => self.index.add_positions(key(), number, id),
        }
        Ok(())
    }

    /// The data file that a vector belongs to, and the vector.
    fn vector(&self, file: &ContentFile) -> Result<(String, DeleteInfo)> {
        let malformed = |why: &str| Error::corrupt(format!("the entry of a deletion vector is malformed: {why}"));
        if file.content != Content::PositionDeletes {
            return Err(malformed("its content is not position deletes"));
        }
        let path = file.referenced_data_file.as_deref().ok_or_else(|| malformed("it names no data file"))?;
        let offset = file.content_offset.and_then(|offset| u64::try_from(offset).ok());
        let offset = offset.ok_or_else(|| malformed("it has no offset, or a negative one"))?;
        let size = file.content_size.and_then(|size| size.checked_sub(VECTOR_FRAME_BYTES));
        let size = size.and_then(|size| i32::try_from(size).ok()).filter(|size| *size > 0);
        let info = DeleteInfo {
            unique_id: format!("{}@{offset}", file.path),
            storage_type: PUFFIN.to_owned(),
            path_or_inline: file.path.clone(),
            offset: i32::try_from(offset).ok(),
            size_in_bytes: size.ok_or_else(|| malformed("its size is none that a vector can have"))?,
            cardinality: file.record_count,
            at: VectorLocation::File { location: self.paths.resolve(&file.path)?.to_string(), offset },
        };
        Ok((self.paths.resolve(path)?.to_string(), info))
    }

    /// The columns of an equality delete file; those that left the schema are looked up in older ones.
    fn equality_fields(&self, file: &ContentFile) -> Result<Vec<Field>> {
        let ids = file.equality_ids.as_deref().unwrap_or_default();
        if ids.is_empty() {
            return Err(Error::corrupt("the equality delete file names no columns"));
        }
        let schemas = self.metadata.schemas_newest_first();
        let field = |id: &i32| {
            let found = schemas.iter().find_map(|schema| schema.field(*id));
            let missing =
                || Error::corrupt(format!("no schema of the table has the column {id} of the equality delete file"));
            found.map(|field| field.field()).ok_or_else(missing)
        };
        ids.iter().map(field).collect()
    }

    fn add_data(&mut self, entry: Entry) -> Result<()> {
        let number = sequence_number(&entry)?;
        let file = entry.file;
        if file.format == StoredFormat::Puffin {
            return Err(Error::corrupt("a data file cannot be a Puffin file").with("file", file.path));
        }
        let deletes = if self.index.is_empty() {
            Deletes::default()
        } else {
            let path = self.paths.resolve(&file.path)?.to_string();
            self.index.of(&path, &PartitionKey::new(file.spec_id, &file.partition), number)?
        };
        // A file without a row id, as of a table that was upgraded, has no numbers for its rows either.
        let first_row_id = file.first_row_id.filter(|_| self.metadata.format_version >= 3);
        let facts = FileFacts {
            sequence_number: number,
            snapshot_id: entry.snapshot_id,
            spec_id: file.spec_id,
            sort_order_id: file.sort_order_id,
            format: file.format,
            encrypted: file.key_metadata.is_some(),
        };
        let partition_index = self.builder.partition(partition_tuple(file.spec_id, file.partition));
        let row = NewRow {
            path: &file.path,
            size: file.size,
            rows: Some(file.record_count),
            modified_ms: 0,
            partition_index,
            marks_index: self.marks,
            base_row_id: first_row_id,
            row_commit_version: first_row_id.map(|_| number),
            stats_json: None,
        };
        let id = self.builder.push(row, deletes.vector);
        self.builder.delete_by(id, deletes.files);
        self.facts.push(facts);
        Ok(())
    }

    fn finish(self) -> Result<SnapshotFiles> {
        let files = self.builder.finish();
        check_distinct(&files)?;
        let (encrypted_deletes, encrypted_vectors) = (self.encrypted_deletes, self.encrypted_vectors);
        Ok(SnapshotFiles { files, facts: self.facts, encrypted_deletes, encrypted_vectors })
    }
}

fn sequence_number(entry: &Entry) -> Result<i64> {
    entry
        .sequence_number
        .ok_or_else(|| Error::corrupt("a live file has no data sequence number").with("file", entry.file.path.clone()))
}

/// The partition as planners see it: files of two specs are never in one.
pub(crate) fn partition_tuple(spec_id: i32, partition: Vec<Scalar>) -> PartitionTuple {
    let values: Vec<Scalar> = std::iter::once(Scalar::Long(spec_id.into())).chain(partition).collect();
    PartitionTuple { raw: values.iter().map(value_text).collect(), values }
}

/// # Errors
/// `Corrupt` if a data file is live twice: its rows would be read twice.
fn check_distinct(files: &FileTable) -> Result<()> {
    let hasher = RandomState::new();
    let mut seen: HashMap<u64, FileId> = HashMap::with_capacity(files.len());
    for file in files.iter() {
        if let Some(other) = seen.insert(hasher.hash_one(file.path), file.id)
            && files.get(other).path == file.path
        {
            return Err(Error::corrupt("the snapshot has a data file twice").with("file", file.path));
        }
    }
    Ok(())
}
