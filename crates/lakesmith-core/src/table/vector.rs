//! Deletion vectors: which rows of a file are deleted, and the codec of their bytes.
//!
//! # Source
//! Delta PROTOCOL.md, "Deletion Vector Format"; the same 64-bit Roaring layout is Iceberg's `deletion-vector-v1` blob body.

use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// Magic number of the portable layout, little endian.
pub const PORTABLE_MAGIC: u32 = 1_681_511_377;

/// Where the bytes of a vector are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum VectorLocation {
    /// In a file: canonical absolute location (decoded), byte offset of the length word, bytes of the bitmap.
    File {
        /// Canonical absolute location.
        location: String,
        /// Offset of the 4-byte big-endian length that precedes the bitmap.
        offset: u64,
    },
    /// The bitmap itself (magic included).
    Inline(Vec<u8>),
}

/// Deleted rows of one file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeleteInfo {
    /// Unique id within the log (`u` + path + `@` + offset in Delta).
    pub unique_id: String,
    /// `storageType` as stored.
    pub storage_type: String,
    /// `pathOrInlineDv` as stored.
    pub path_or_inline: String,
    /// `offset` as stored.
    pub offset: Option<i32>,
    /// Bytes of the bitmap, without length and checksum words.
    pub size_in_bytes: i32,
    /// Number of deleted rows.
    pub cardinality: u64,
    /// Where to read it.
    pub at: VectorLocation,
}

/// A set of deleted row positions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector {
    rows: RoaringTreemap,
}

impl DeletionVector {
    /// A vector of the given positions.
    pub fn from_rows(rows: impl IntoIterator<Item = u64>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }

    /// Adds positions.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = u64>) {
        self.rows.extend(rows);
    }

    /// Adds the positions of another vector.
    pub fn merge(&mut self, other: &Self) {
        self.rows |= &other.rows;
    }

    /// Bytes of [`DeletionVector::encode`], about what the vector takes in memory.
    pub fn encoded_bytes(&self) -> usize {
        4 + self.rows.serialized_size()
    }

    /// Number of deleted rows.
    pub fn cardinality(&self) -> u64 {
        self.rows.len()
    }

    /// True if the row at `position` is deleted.
    pub fn contains(&self, position: u64) -> bool {
        self.rows.contains(position)
    }

    /// Deleted positions below `position`.
    pub fn rank(&self, position: u64) -> u64 {
        if position == 0 { 0 } else { self.rows.rank(position - 1) }
    }

    /// Largest deleted position.
    pub fn max(&self) -> Option<u64> {
        self.rows.max()
    }

    /// Deleted positions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter()
    }

    /// True if every position of `other` is deleted here too.
    pub fn is_superset(&self, other: &Self) -> bool {
        other.rows.is_subset(&self.rows)
    }

    /// Parses the bitmap bytes: magic, then the portable 64-bit Roaring layout.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] on a wrong magic number or malformed bitmap.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = |why: &str| Error::corrupt(format!("deletion vector cannot be decoded: {why}"));
        let Some((magic, body)) = bytes.split_first_chunk::<4>() else {
            return Err(bad("shorter than its magic number"));
        };
        match u32::from_le_bytes(*magic) {
            PORTABLE_MAGIC => {
                RoaringTreemap::deserialize_from(body).map(|rows| Self { rows }).map_err(|e| bad(&e.to_string()))
            }
            other => Err(bad(&format!("unknown magic number {other}"))),
        }
    }

    /// The bitmap bytes, magic included.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.rows.serialized_size());
        bytes.extend_from_slice(&PORTABLE_MAGIC.to_le_bytes());
        // Writing into a Vec cannot fail.
        let _ = self.rows.serialize_into(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_round_trips_beyond_32_bits() {
        let vector = DeletionVector::from_rows([0, 5, 65_536, u64::from(u32::MAX) + 7]);
        assert_eq!(DeletionVector::decode(&vector.encode()).ok(), Some(vector.clone()));
        assert_eq!(vector.encoded_bytes(), vector.encode().len());
        assert_eq!(vector.rank(6), 2);
        assert_eq!(vector.rank(0), 0);
    }

    #[test]
    fn merged_vectors_delete_what_each_of_them_does() {
        let mut vector = DeletionVector::from_rows([1, 3]);
        vector.merge(&DeletionVector::from_rows([3, u64::from(u32::MAX) + 7]));
        assert_eq!(vector.iter().collect::<Vec<_>>(), [1, 3, u64::from(u32::MAX) + 7]);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        for bytes in [&[][..], &[1, 2, 3], &[0xD1, 0xD3, 0x39, 0x64], &[0; 12]] {
            assert!(DeletionVector::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
