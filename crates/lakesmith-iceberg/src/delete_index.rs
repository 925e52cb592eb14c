//! Which delete files and vectors apply to a data file.
//!
//! ```text
//! vector of the path ──────────────> applies; position delete files are then ignored
//! position deletes of the path ────> delete's number >= the file's
//! position deletes of the partition  delete's number >= the file's
//! equality deletes of the partition  delete's number >  the file's
//! equality deletes of no partition   delete's number >  the file's
//! ```
//!
//! # Source
//! Iceberg spec, "Scan Planning"; Apache Iceberg, `DeleteFileIndex`.

use std::collections::HashMap;

use lakesmith_core::table::{DeleteFileId, DeleteInfo, Scalar};
use lakesmith_core::{Error, Result};

/// A partition of a spec, told apart bit by bit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartitionKey {
    spec_id: i32,
    values: Vec<u8>,
}

impl PartitionKey {
    pub(crate) fn new(spec_id: i32, values: &[Scalar]) -> Self {
        let mut bytes = Vec::new();
        let mut part = |tag: u8, value: &[u8]| {
            bytes.push(tag);
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
        };
        for value in values {
            match value {
                Scalar::Null => part(0, &[]),
                Scalar::Boolean(value) => part(1, &[u8::from(*value)]),
                Scalar::Long(value) => part(2, &value.to_le_bytes()),
                // Zeros of both signs are two partitions, and every NaN is in one.
                Scalar::Double(value) if value.is_nan() => part(3, &f64::NAN.to_bits().to_le_bytes()),
                Scalar::Double(value) => part(3, &value.to_bits().to_le_bytes()),
                Scalar::Decimal(value, _) => part(4, &value.to_le_bytes()),
                Scalar::Date(value) => part(5, &value.to_le_bytes()),
                Scalar::Timestamp(value) => part(6, &value.to_le_bytes()),
                Scalar::TimestampNtz(value) => part(7, &value.to_le_bytes()),
                Scalar::String(value) => part(8, value.as_bytes()),
                Scalar::Binary(value) => part(9, value),
            }
        }
        Self { spec_id, values: bytes }
    }
}

/// Delete files by data sequence number, ascending once the index is built.
type ByNumber = Vec<(i64, DeleteFileId)>;

/// A deletion vector and its data sequence number.
#[derive(Debug, Clone)]
struct Vector {
    sequence_number: i64,
    info: DeleteInfo,
}

/// What deletes rows of the data files of a snapshot. Paths are canonical locations.
#[derive(Debug, Default)]
pub(crate) struct DeleteIndex {
    vectors: HashMap<String, Vector>,
    positions_of_path: HashMap<String, ByNumber>,
    positions: HashMap<PartitionKey, ByNumber>,
    equality: HashMap<PartitionKey, ByNumber>,
    equality_everywhere: ByNumber,
}

/// What deletes rows of one data file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Deletes {
    pub(crate) vector: Option<DeleteInfo>,
    /// Ascending.
    pub(crate) files: Vec<DeleteFileId>,
}

impl DeleteIndex {
    /// A vector of the data file at `path`.
    ///
    /// # Errors
    /// `Corrupt` if the file has one already.
    pub(crate) fn add_vector(&mut self, path: String, sequence_number: i64, info: DeleteInfo) -> Result<()> {
        match self.vectors.entry(path) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Vector { sequence_number, info });
                Ok(())
            }
            std::collections::hash_map::Entry::Occupied(known) => {
                Err(Error::corrupt("the snapshot has two deletion vectors for one data file")
                    .with("file", known.key())
                    .with("vector", &known.get().info.unique_id)
                    .with("other_vector", info.unique_id))
            }
        }
    }

    pub(crate) fn add_positions_of(&mut self, path: String, sequence_number: i64, id: DeleteFileId) {
        self.positions_of_path.entry(path).or_default().push((sequence_number, id));
    }

    pub(crate) fn add_positions(&mut self, partition: PartitionKey, sequence_number: i64, id: DeleteFileId) {
        self.positions.entry(partition).or_default().push((sequence_number, id));
    }

    /// `partition` is `None` for deletes of an unpartitioned spec, which hold for all files of all specs.
    pub(crate) fn add_equality(&mut self, partition: Option<PartitionKey>, sequence_number: i64, id: DeleteFileId) {
        match partition {
            Some(partition) => self.equality.entry(partition).or_default().push((sequence_number, id)),
            None => self.equality_everywhere.push((sequence_number, id)),
        }
    }

    /// To be called after the last addition and before the first question.
    pub(crate) fn build(&mut self) {
        let maps = [&mut self.positions, &mut self.equality];
        let lists = maps.into_iter().flat_map(HashMap::values_mut).chain(self.positions_of_path.values_mut());
        for list in lists.chain([&mut self.equality_everywhere]) {
            list.sort_unstable();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.vectors.is_empty()
            && self.positions_of_path.is_empty()
            && self.positions.is_empty()
            && self.equality.is_empty()
            && self.equality_everywhere.is_empty()
    }

    /// What deletes rows of the data file at `path`.
    ///
    /// # Errors
    /// `Corrupt` for a vector that is older than its file.
    pub(crate) fn of(&self, path: &str, partition: &PartitionKey, sequence_number: i64) -> Result<Deletes> {
        let mut deletes = Deletes::default();
        let from = |list: Option<&ByNumber>, first: i64, files: &mut Vec<DeleteFileId>| {
            let list = list.map_or(&[][..], Vec::as_slice);
            let start = list.partition_point(|(number, _)| *number < first);
            files.extend(list[start..].iter().map(|(_, id)| *id));
        };
        match self.vectors.get(path) {
            Some(vector) if vector.sequence_number < sequence_number => {
                return Err(Error::corrupt("a deletion vector is older than the data file that it belongs to")
                    .with("file", path)
                    .with("vector", &vector.info.unique_id));
            }
            Some(vector) => deletes.vector = Some(vector.info.clone()),
            None => {
                from(self.positions_of_path.get(path), sequence_number, &mut deletes.files);
                from(self.positions.get(partition), sequence_number, &mut deletes.files);
            }
        }
        // Nothing is newer than the greatest number there is.
        if let Some(after) = sequence_number.checked_add(1) {
            from(self.equality.get(partition), after, &mut deletes.files);
            from(Some(&self.equality_everywhere), after, &mut deletes.files);
        }
        deletes.files.sort_unstable();
        Ok(deletes)
    }
}

#[cfg(test)]
#[path = "delete_index_tests.rs"]
mod tests;
