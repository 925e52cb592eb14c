//! Deletion vectors in Puffin files.
//!
//! ```text
//! blob: [length u32 BE] [magic D1 D3 39 64, bitmap: length bytes] [CRC-32 of those bytes, u32 BE]
//! ```
//!
//! # Source
//! Puffin spec, "`deletion-vector-v1` blob type".

use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{DeleteInfo, DeletionVector};
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

/// Bytes of the length word, and of the checksum.
const WORD: u64 = 4;

/// Reads a vector and checks its length, checksum and number of rows.
///
/// # Errors
/// `Corrupt` on a mismatch, `NotFound` or `Unavailable` from the storage, each with the path.
pub async fn read_vector(store: &Store, info: &DeleteInfo) -> Result<DeletionVector> {
    let context = |error: Error| error.with("vector", &info.unique_id);
    let VectorLocation::File { location, offset } = &info.at else {
        return Err(context(Error::internal("a deletion vector of an Iceberg table is not in a file")));
    };
    let location = Location::from_canonical(location)?;
    let size =
        u64::try_from(info.size_in_bytes).map_err(|_| context(Error::corrupt("the vector has a negative size")))?;
    let end = offset.checked_add(size).and_then(|end| end.checked_add(2 * WORD));
    let end = end.ok_or_else(|| context(Error::corrupt("the vector's offset is out of range")))?;
    let blob = store.get_range(&location, *offset..end).await.map_err(context)?;
    let vector = decode(&blob).map_err(|e| context(e.with("path", &location)))?;
    if vector.cardinality() != info.cardinality {
        return Err(context(Error::corrupt(format!(
            "the deletion vector marks {} rows but its manifest says {}",
            vector.cardinality(),
            info.cardinality
        ))));
    }
    Ok(vector)
}

fn decode(blob: &[u8]) -> Result<DeletionVector> {
    let short = || Error::corrupt("the deletion vector is shorter than its frame");
    let (length, rest) = blob.split_first_chunk::<4>().ok_or_else(short)?;
    let (bitmap, checksum) = rest.split_last_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_be_bytes(*length);
    if length as usize != bitmap.len() {
        return Err(Error::corrupt(format!(
            "the deletion vector is {length} bytes long but its manifest says {}",
            bitmap.len()
        )));
    }
    if crc32fast::hash(bitmap) != u32::from_be_bytes(*checksum) {
        return Err(Error::corrupt("the deletion vector's checksum does not match its bytes"));
    }
    DeletionVector::decode(bitmap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(vector: &DeletionVector) -> Vec<u8> {
        let bitmap = vector.encode();
        let mut blob = (bitmap.len() as u32).to_be_bytes().to_vec();
        blob.extend(&bitmap);
        blob.extend(crc32fast::hash(&bitmap).to_be_bytes());
        blob
    }

    #[test]
    fn a_blob_gives_its_rows_and_a_broken_one_an_error() {
        let vector = DeletionVector::from_rows([0, 7, 70_000, 5_000_000_000]);
        let whole = blob(&vector);
        assert_eq!(decode(&whole).unwrap(), vector);
        for place in 0..whole.len() {
            let mut broken = whole.clone();
            broken[place] ^= 1;
            assert!(decode(&broken).is_err(), "byte {place}");
            assert!(decode(&whole[..place]).is_err(), "{place} bytes");
        }
    }
}
