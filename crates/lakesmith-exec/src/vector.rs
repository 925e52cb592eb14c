//! Loading a deletion vector and checking it against what the log and the file say.
//!
//! # Source
//! Delta PROTOCOL.md, "Deletion Vector File Storage Format": length (big endian), bitmap, CRC-32 (big endian).

use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{DeleteInfo, DeletionVector};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

/// Reads the vector of a file with `rows` physical rows.
///
/// # Errors
/// Corrupt with Delta's class when size, checksum, cardinality or positions don't fit; those of the storage.
pub(crate) async fn load(store: &Store, info: &DeleteInfo, rows: u64, file: &str) -> Result<DeletionVector> {
    let vector = match &info.at {
        VectorLocation::Inline(bytes) => {
            check_size(info, bytes.len(), file)?;
            DeletionVector::decode(bytes)
        }
        VectorLocation::File { location, offset } => {
            let bytes = read(store, location, *offset, info, file).await?;
            DeletionVector::decode(&bytes)
        }
    }
    .map_err(|e| e.with("path", file).with("vector", &info.unique_id))?;
    if vector.cardinality() != info.cardinality {
        return Err(mismatch(
            format!("the deletion vector marks {} rows, the log says {}", vector.cardinality(), info.cardinality),
            "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
            info,
            file,
        ));
    }
    if vector.max().is_some_and(|max| max >= rows) {
        return Err(mismatch(
            format!("the deletion vector marks a row beyond the file's {rows} rows"),
            "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
            info,
            file,
        ));
    }
    Ok(vector)
}

async fn read(store: &Store, location: &str, offset: u64, info: &DeleteInfo, file: &str) -> Result<Vec<u8>> {
    let at = Location::from_canonical(location)?;
    let size = u64::try_from(info.size_in_bytes).map_err(|_| {
        mismatch("the log gives the deletion vector a negative size".to_owned(), SIZE_MISMATCH, info, file)
    })?;
    let framed = store
        .get_range(&at, offset..offset + size + 8)
        .await
        .map_err(|e| if e.kind() == lakesmith_core::ErrorKind::Corrupt { e.class(SIZE_MISMATCH) } else { e })?;
    let word = |at: usize| -> u32 {
        framed.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok()).map_or(0, u32::from_be_bytes)
    };
    check_size(info, word(0) as usize, file)?;
    let bitmap = &framed[4..4 + size as usize];
    if crc32fast::hash(bitmap) != word(4 + size as usize) {
        return Err(mismatch(
            "the deletion vector's checksum does not match its bytes".to_owned(),
            "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
            info,
            file,
        ));
    }
    Ok(bitmap.to_vec())
}

const SIZE_MISMATCH: &str = "DELTA_DELETION_VECTOR_SIZE_MISMATCH";

fn check_size(info: &DeleteInfo, found: usize, file: &str) -> Result<()> {
    if usize::try_from(info.size_in_bytes) == Ok(found) {
        return Ok(());
    }
    let text = format!("the deletion vector has {found} bytes, the log says {}", info.size_in_bytes);
    Err(mismatch(text, SIZE_MISMATCH, info, file))
}

fn mismatch(text: String, class: &'static str, info: &DeleteInfo, file: &str) -> Error {
    Error::corrupt(text).class(class).with("path", file).with("vector", &info.unique_id)
}
