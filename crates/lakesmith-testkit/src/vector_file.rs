//! Deletion vectors in files of their own, and their descriptors in the log: writing them, and finding them again.
//!
//! # Source
//! Delta PROTOCOL.md, "Deletion Vector File Storage Format" and "Derived Fields".

use std::io;
use std::path::Path;

use lakesmith_core::table::DeletionVector;
use serde_json::{Value, json};

/// Characters of the Z85 encoding, by value.
const Z85: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Writes `deletion_vector_<id>.bin` with one vector; returns the descriptor.
pub(crate) fn write(folder: &Path, id: uuid::Uuid, vector: &DeletionVector) -> io::Result<Value> {
    let bitmap = vector.encode();
    let size = u32::try_from(bitmap.len()).map_err(io::Error::other)?;
    let mut file = vec![1];
    file.extend_from_slice(&size.to_be_bytes());
    file.extend_from_slice(&bitmap);
    file.extend_from_slice(&crc32fast::hash(&bitmap).to_be_bytes());
    std::fs::write(folder.join(format!("deletion_vector_{id}.bin")), file)?;
    Ok(json!({
        "storageType": "u",
        "pathOrInlineDv": z85(id.as_bytes()),
        "offset": 1,
        "sizeInBytes": size,
        "cardinality": vector.cardinality(),
    }))
}

/// The deleted rows behind a vector's unique id (`u`, 20 characters of Z85, `@`, offset) in the table of `folder`.
///
/// # Errors
/// If the id names no vector file of the table's root, or the file is cut short.
pub fn read_vector(folder: &Path, unique_id: &str) -> io::Result<DeletionVector> {
    let bad = || io::Error::other(format!("{unique_id} names no vector in the table's root"));
    let (name, offset) = unique_id.strip_prefix('u').and_then(|id| id.rsplit_once('@')).ok_or_else(bad)?;
    let offset: usize = offset.parse().map_err(io::Error::other)?;
    let id = uuid::Uuid::from_bytes(unz85(name.as_bytes()).ok_or_else(bad)?);
    let file = std::fs::read(folder.join(format!("deletion_vector_{id}.bin")))?;
    let (length, bitmap) = file.get(offset..).and_then(|from| from.split_first_chunk::<4>()).ok_or_else(bad)?;
    let bitmap = bitmap.get(..u32::from_be_bytes(*length) as usize).ok_or_else(bad)?;
    DeletionVector::decode(bitmap).map_err(io::Error::other)
}

fn unz85(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = Vec::with_capacity(16);
    for word in text.chunks(5) {
        let digit = |c: &u8| Z85.iter().position(|z| z == c);
        let value = word.iter().try_fold(0_u64, |value, c| Some(value * 85 + digit(c)? as u64))?;
        bytes.extend_from_slice(&u32::try_from(value).ok()?.to_be_bytes());
    }
    bytes.try_into().ok()
}

fn z85(bytes: &[u8; 16]) -> String {
    let mut out = String::with_capacity(20);
    for word in bytes.chunks(4) {
        let value = word.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        for power in (0..5).rev() {
            out.push(char::from(Z85[(value / 85_u32.pow(power) % 85) as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z85_agrees_with_its_specification() {
        let bytes = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(z85(&bytes), "HelloWorld00000%nSc0");
        assert_eq!(unz85(b"HelloWorld00000%nSc0"), Some(bytes));
    }
}
