//! Deletion vectors: descriptors of the log, files that hold them, and their identity.
//!
//! ```text
//! file: [version = 1] ( [length i32 BE] [bitmap: length bytes] [CRC-32 of the bitmap, u32 BE] )*
//! ```
//!
//! # Source
//! Delta PROTOCOL.md, "Deletion Vectors" and "Deletion Vector File Storage Format".

use bytes::Bytes;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{DeleteInfo, DeletionVector};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};
use uuid::Uuid;

use crate::actions::DeletionVectorDescriptor;
use crate::z85;

const FILE_VERSION: u8 = 1;
const UUID_TEXT: usize = 20;

/// A descriptor's fields, borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor<'a> {
    pub storage_type: &'a str,
    pub path_or_inline: &'a str,
    pub offset: Option<i32>,
    pub size_in_bytes: i32,
    pub cardinality: i64,
}

/// Identity of a vector within the log: storage type, path or bytes, and offset.
///
/// # Source
/// Delta PROTOCOL.md, "Derived Fields" (`uniqueId`).
pub fn unique_id(storage_type: &str, path_or_inline: &str, offset: Option<i32>) -> String {
    match offset {
        Some(offset) => format!("{storage_type}{path_or_inline}@{offset}"),
        None => format!("{storage_type}{path_or_inline}"),
    }
}

/// What a descriptor in the log of the table at `root` says.
///
/// # Errors
/// [`lakesmith_core::ErrorKind::Corrupt`] if the descriptor contradicts itself, `Unsupported` for an unknown storage type.
pub(crate) fn delete_info(root: &Location, descriptor: Descriptor<'_>) -> Result<DeleteInfo> {
    let d = descriptor;
    let bad = |why: &str| {
        Error::corrupt(format!("a deletion vector in the log is malformed: {why}"))
            .with("storage_type", d.storage_type)
            .with("vector", d.path_or_inline)
    };
    let size = usize::try_from(d.size_in_bytes).map_err(|_| bad("its size is negative"))?;
    let cardinality = u64::try_from(d.cardinality).map_err(|_| bad("its cardinality is negative"))?;
    // The first vector of a file follows the version byte.
    let offset = u64::try_from(d.offset.unwrap_or(1)).map_err(|_| bad("its offset is negative"))?;
    let at = match d.storage_type {
        "u" => {
            let location = root.join(&checked_path(d.path_or_inline)?);
            VectorLocation::File { location: location.to_string(), offset }
        }
        "p" => VectorLocation::File { location: root.resolve(d.path_or_inline)?.to_string(), offset },
        "i" => {
            let mut bytes = z85::decode(d.path_or_inline.as_bytes()).ok_or_else(|| bad("its bytes are not Z85"))?;
            if bytes.len() < size {
                return Err(bad("it is shorter than its size").class("DELTA_DELETION_VECTOR_SIZE_MISMATCH"));
            }
            bytes.truncate(size);
            VectorLocation::Inline(bytes)
        }
        other => {
            return Err(Error::unsupported(format!("the deletion vector storage type '{other}' is not known"))
                .with("vector", d.path_or_inline));
        }
    };
    Ok(DeleteInfo {
        unique_id: unique_id(d.storage_type, d.path_or_inline, d.offset),
        storage_type: d.storage_type.to_owned(),
        path_or_inline: d.path_or_inline.to_owned(),
        offset: d.offset,
        size_in_bytes: d.size_in_bytes,
        cardinality,
        at,
    })
}

/// The same of a descriptor as it stands in an action.
///
/// # Errors
/// As [`delete_info`].
pub(crate) fn info_of(root: &Location, d: &DeletionVectorDescriptor) -> Result<DeleteInfo> {
    let descriptor = Descriptor {
        storage_type: &d.storage_type,
        path_or_inline: &d.path_or_inline_dv,
        offset: d.offset,
        size_in_bytes: d.size_in_bytes,
        cardinality: d.cardinality,
    };
    delete_info(root, descriptor)
}

/// Path below the table root of a vector file that is named by an optional prefix and 20 characters of Z85.
pub fn relative_path(path_or_inline: &str) -> Option<String> {
    let start = path_or_inline.len().checked_sub(UUID_TEXT)?;
    let (prefix, text) = path_or_inline.split_at_checked(start)?;
    let uuid = Uuid::from_slice(&z85::decode(text.as_bytes())?).ok()?;
    Some(file_path(prefix, uuid))
}

/// The same of a vector in the log.
///
/// # Errors
/// `Corrupt` if the text is no such name.
pub(crate) fn checked_path(path_or_inline: &str) -> Result<String> {
    relative_path(path_or_inline).ok_or_else(|| {
        Error::corrupt("a deletion vector in the log is malformed: its name is no identifier")
            .with("vector", path_or_inline)
    })
}

fn file_path(prefix: &str, uuid: Uuid) -> String {
    let name = format!("deletion_vector_{uuid}.bin");
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// Reads a vector and checks its length, checksum and cardinality.
///
/// # Errors
/// `Corrupt` with Spark's class on a mismatch, `NotFound` or `Unavailable` from the storage.
pub async fn read_vector(store: &Store, info: &DeleteInfo) -> Result<DeletionVector> {
    let bytes = match &info.at {
        VectorLocation::Inline(bytes) => Bytes::from(bytes.clone()),
        VectorLocation::File { location, offset } => {
            let location = Location::from_canonical(location)?;
            read_bitmap(store, &location, *offset, info.size_in_bytes).await?
        }
    };
    let context = |error: Error| error.with("vector", &info.unique_id);
    let vector = DeletionVector::decode(&bytes).map_err(context)?;
    if vector.cardinality() != info.cardinality {
        return Err(context(
            Error::corrupt(format!(
                "the deletion vector marks {} rows but the log says {}",
                vector.cardinality(),
                info.cardinality
            ))
            .class("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"),
        ));
    }
    Ok(vector)
}

async fn read_bitmap(store: &Store, location: &Location, offset: u64, size_in_bytes: i32) -> Result<Bytes> {
    let context = |error: Error| error.with("path", location).with("offset", offset);
    let size =
        u64::try_from(size_in_bytes).map_err(|_| context(Error::corrupt("the deletion vector has a negative size")))?;
    let end = offset
        .checked_add(size)
        .and_then(|e| e.checked_add(8))
        .ok_or_else(|| context(Error::corrupt("the deletion vector's offset is out of range")))?;
    let read = store.get_ranges(location, &[0..1, offset..end]).await?;
    let [version, framed] = read.as_slice() else {
        return Err(context(Error::internal("the storage did not answer every range")));
    };
    if version.first() != Some(&FILE_VERSION) {
        return Err(context(Error::unsupported(format!(
            "the deletion vector file has version {:?}, which is not known",
            version.first()
        ))));
    }
    check_frame(framed, size).map_err(context)?;
    Ok(framed.slice(4..4 + size as usize))
}

fn check_frame(framed: &[u8], size: u64) -> Result<()> {
    let short = || {
        Error::corrupt("the deletion vector file ends inside the vector").class("DELTA_DELETION_VECTOR_SIZE_MISMATCH")
    };
    if framed.len() as u64 != size + 8 {
        return Err(short());
    }
    let (length, rest) = framed.split_first_chunk::<4>().ok_or_else(short)?;
    let (bitmap, checksum) = rest.split_last_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_be_bytes(*length);
    if u64::from(length) != size {
        return Err(Error::corrupt(format!("the deletion vector is {length} bytes long but the log says {size}"))
            .class("DELTA_DELETION_VECTOR_SIZE_MISMATCH"));
    }
    if crc32fast::hash(bitmap) != u32::from_be_bytes(*checksum) {
        return Err(Error::corrupt("the deletion vector's checksum does not match its bytes")
            .class("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"));
    }
    Ok(())
}

/// Writes vectors into one new file in the table's root and describes them, in order. No vectors: no file.
///
/// # Errors
/// `Limit` if the file would pass 2 GiB, `Unavailable` from the storage.
pub async fn write_vectors(
    store: &Store,
    root: &Location,
    vectors: &[DeletionVector],
) -> Result<Vec<DeletionVectorDescriptor>> {
    let uuid = Uuid::new_v4();
    let (bytes, descriptors) = encode_file("", uuid, vectors)?;
    if !descriptors.is_empty() {
        let location = root.join(&file_path("", uuid));
        match store.put_if_absent(&location, Bytes::from(bytes)).await? {
            // A lost answer makes our own put look like another's; the name is random, so the file is ours.
            lakesmith_storage::PutOutcome::Created | lakesmith_storage::PutOutcome::AlreadyExists => {}
        }
    }
    Ok(descriptors)
}

fn encode_file(
    prefix: &str,
    uuid: Uuid,
    vectors: &[DeletionVector],
) -> Result<(Vec<u8>, Vec<DeletionVectorDescriptor>)> {
    let name = format!("{prefix}{}", z85::encode(uuid.as_bytes()));
    let mut file = vec![FILE_VERSION];
    let mut descriptors = Vec::with_capacity(vectors.len());
    let too_large = |_| {
        Error::new(
            lakesmith_core::ErrorKind::Limit,
            "the deletion vectors of one commit would pass 2 GiB; commit in smaller batches",
        )
    };
    for vector in vectors {
        let bitmap = vector.encode();
        let offset = i32::try_from(file.len()).map_err(too_large)?;
        let size = i32::try_from(bitmap.len()).map_err(too_large)?;
        file.extend(size.to_be_bytes());
        file.extend(&bitmap);
        file.extend(crc32fast::hash(&bitmap).to_be_bytes());
        descriptors.push(DeletionVectorDescriptor {
            storage_type: "u".into(),
            path_or_inline_dv: name.clone(),
            offset: Some(offset),
            size_in_bytes: size,
            cardinality: vector.cardinality() as i64,
            unknown: Default::default(),
        });
    }
    Ok((file, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Location {
        Location::parse("/lake/t").unwrap()
    }

    fn describe(storage_type: &'static str, path: &'static str, offset: Option<i32>, size: i32) -> Result<DeleteInfo> {
        let descriptor = Descriptor { storage_type, path_or_inline: path, offset, size_in_bytes: size, cardinality: 6 };
        delete_info(&root(), descriptor)
    }

    #[test]
    fn every_storage_type_is_understood() {
        let relative = describe("u", "ab^-aqEH.-t@S}K{vb[*k^", Some(4), 40).unwrap();
        assert_eq!(relative.unique_id, "uab^-aqEH.-t@S}K{vb[*k^@4");
        assert_eq!(
            relative.at,
            VectorLocation::File {
                location: "file:///lake/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin".into(),
                offset: 4
            }
        );
        let absolute =
            describe("p", "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", Some(4), 40);
        let VectorLocation::File { location, .. } = absolute.unwrap().at else { panic!("a file was described") };
        assert_eq!(location, "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        let inline = describe("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 44).unwrap();
        let VectorLocation::Inline(bytes) = &inline.at else { panic!("bytes were described") };
        let vector = DeletionVector::decode(bytes).unwrap();
        assert_eq!(vector.iter().collect::<Vec<_>>(), [3, 4, 7, 11, 18, 29]);
    }

    #[test]
    fn malformed_descriptors_are_refused() {
        for (kind, path, offset, size) in [
            ("u", "short", Some(1), 1),
            ("u", "ä^-aqEH.-t@S}K{vb[*k^ü", Some(1), 1),
            ("u", "^-aqEH.-t@S}K{vb[*k^", Some(-1), 1),
            ("u", "^-aqEH.-t@S}K{vb[*k^", Some(1), -1),
            ("i", "abc", None, 3),
            ("i", "00000", None, 5),
            ("x", "00000", None, 4),
        ] {
            assert!(describe(kind, path, offset, size).is_err(), "{kind} {path}");
        }
    }

    #[test]
    fn a_written_file_passes_the_reader_s_checks() {
        let vectors = [DeletionVector::from_rows([1, 5, 70_000]), DeletionVector::from_rows(0..10)];
        let (file, descriptors) = encode_file("", Uuid::from_u128(7), &vectors).unwrap();
        assert_eq!(file[0], 1);
        for (vector, d) in vectors.iter().zip(&descriptors) {
            let start = d.offset.unwrap() as usize;
            let size = d.size_in_bytes as usize;
            let mut framed = file[start..start + size + 8].to_vec();
            check_frame(&framed, size as u64).unwrap();
            assert_eq!(&DeletionVector::decode(&framed[4..4 + size]).unwrap(), vector);
            framed[6] ^= 1;
            let error = check_frame(&framed, size as u64).unwrap_err();
            assert_eq!(error.class_name(), "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH");
            let error = check_frame(&framed[..size + 7], size as u64 - 1).unwrap_err();
            assert_eq!(error.class_name(), "DELTA_DELETION_VECTOR_SIZE_MISMATCH");
        }
        assert_eq!(descriptors[1].offset, Some(1 + 8 + descriptors[0].size_in_bytes));
    }
}
