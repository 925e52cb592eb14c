//! Writes deletion vectors to a file of their own and describes them for the log.
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
    }
}
