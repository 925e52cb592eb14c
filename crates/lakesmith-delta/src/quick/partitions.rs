//! Partition values as they are read, before the schema that gives them types is known.

use std::collections::BTreeMap;

use lakesmith_core::table::{PartitionTuple, Schema};
use lakesmith_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::identity::ByIdentity;
use crate::partition_value;
use crate::read::partition_fields;

/// Distinct sets of raw values, numbered in the order of their first file.
#[derive(Debug, Default)]
pub(crate) struct RawPartitions {
    /// By a hash of all names and values.
    numbers: ByIdentity<u32>,
    values: Vec<Vec<(String, Option<String>)>>,
    /// Reused from file to file.
    spelling: Vec<u8>,
}

impl RawPartitions {
    /// The number of these values: physical column name and raw value, in the order of the log.
    pub(crate) fn number<'a>(&mut self, values: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone) -> u32 {
        self.spelling.clear();
        for (name, value) in values.clone() {
            // The lengths keep ("a", "bc") and ("ab", "c") apart.
            self.spelling.extend((name.len() as u64).to_le_bytes());
            self.spelling.extend(name.as_bytes());
            self.spelling.extend(value.map_or(u64::MAX, |v| v.len() as u64).to_le_bytes());
            self.spelling.extend(value.unwrap_or_default().as_bytes());
        }
        let key = xxh3_128(&self.spelling);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.numbers.insert(key, number);
        self.values.push(values.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect());
        number
    }

    /// The values of each number, in their order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[(String, Option<String>)]> {
        self.values.iter().map(Vec::as_slice)
    }

    /// The partitions by typed value, and which of them each number means.
    ///
    /// # Errors
    /// `Corrupt` if a value is not of its column's type, or a file names a column that is none of the table's.
    pub(crate) fn resolve(self, schema: &Schema, columns: &[String]) -> Result<(Vec<PartitionTuple>, Vec<u32>)> {
        let fields = partition_fields(schema, columns)?;
        let mut places: BTreeMap<PartitionTuple, u32> = BTreeMap::new();
        let mut numbers = Vec::with_capacity(self.values.len());
        for entries in &self.values {
            let value = |physical: &str| entries.iter().find(|(name, _)| name == physical).map(|(_, v)| v.as_deref());
            // A missing key is NULL, as Spark reads it, unless the file names a column that is none of the table's.
            if fields.iter().any(|f| value(&f.physical).is_none())
                && let Some((name, _)) = entries.iter().find(|(n, _)| !fields.iter().any(|f| f.physical == *n))
            {
                return Err(Error::corrupt("the partition values of a file don't fit the partition columns")
                    .with("column", name));
            }
            let raw: Vec<Option<&str>> =
                fields.iter().map(|f| value(&f.physical).flatten().filter(|text| !text.is_empty())).collect();
            let values = fields.iter().zip(&raw).map(|(f, v)| partition_value::parse(f, *v)).collect::<Result<_>>()?;
            let tuple = PartitionTuple { raw: raw.into_iter().map(|v| v.map(str::to_owned)).collect(), values };
            let next = places.len() as u32;
            numbers.push(*places.entry(tuple).or_insert(next));
        }
        let mut partitions: Vec<(PartitionTuple, u32)> = places.into_iter().collect();
        partitions.sort_by_key(|(_, place)| *place);
        Ok((partitions.into_iter().map(|(tuple, _)| tuple).collect(), numbers))
    }
}
