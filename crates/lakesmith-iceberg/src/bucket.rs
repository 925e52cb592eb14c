//! Bucket partitions: which column is hashed, into how many buckets, and the bucket of a value.
//!
//! # Source
//! Iceberg spec, "Bucket Transform Details" and appendix B, "32-bit Hash Requirements".

use lakesmith_core::table::{DataType, FileId, Scalar};
use uuid::Uuid;

use crate::table::IcebergTable;
use crate::transform::Transform;

/// A column by whose hash files are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketColumn {
    /// The partition spec; files of another one have no bucket.
    pub spec_id: i32,
    /// The partition field.
    pub partition_field_id: i32,
    /// The column that is hashed.
    pub source_id: i32,
    /// Number of buckets.
    pub buckets: u32,
    /// Place of the field in its spec.
    place: usize,
}

impl BucketColumn {
    /// The bucket of a data file's rows; `None` if the file has none, or its rows have NULL in the column.
    ///
    /// # Panics
    /// If the id is not of `table`.
    pub fn bucket(&self, table: &IcebergTable, file: FileId) -> Option<i32> {
        if table.facts(file).spec_id != self.spec_id {
            return None;
        }
        match table.partition_values(file).get(self.place) {
            Some(Scalar::Long(bucket)) => i32::try_from(*bucket).ok(),
            _ => None,
        }
    }
}

/// The bucket fields of all partition specs of a table, in the order of the specs.
pub fn bucket_columns(table: &IcebergTable) -> Vec<BucketColumn> {
    let specs = table.log.metadata.partition_specs.iter();
    specs
        .flat_map(|spec| {
            spec.fields.iter().enumerate().filter_map(|(place, field)| match field.transform {
                Transform::Bucket(buckets) => Some(BucketColumn {
                    spec_id: spec.spec_id,
                    partition_field_id: field.field_id,
                    source_id: field.source_id,
                    buckets,
                    place,
                }),
                _ => None,
            })
        })
        .collect()
}

/// The bucket, of `buckets`, of a value in a column of `data_type`; `None` for NULL, for types that are not hashed, and for
/// a value that is not of the type. `iceberg_type` is the format's own name where the type alone does not tell
/// ([`crate::types::ICEBERG_TYPE`]): `uuid` is hashed as its bytes.
pub fn bucket_of(value: &Scalar, data_type: &DataType, iceberg_type: Option<&str>, buckets: u32) -> Option<i32> {
    if buckets == 0 || buckets > i32::MAX as u32 {
        return None;
    }
    let long = |value: i64| murmur3(&value.to_le_bytes());
    let hash = match (value, data_type) {
        (Scalar::Long(value), DataType::Byte | DataType::Short | DataType::Integer | DataType::Long) => long(*value),
        (Scalar::Date(days), DataType::Date) => long(i64::from(*days)),
        (Scalar::Timestamp(micros), DataType::Timestamp) | (Scalar::TimestampNtz(micros), DataType::TimestampNtz) => {
            long(*micros)
        }
        (Scalar::Decimal(unscaled, scale), DataType::Decimal { scale: of_column, .. }) if scale == of_column => {
            murmur3(shortest(&unscaled.to_be_bytes()))
        }
        (Scalar::String(text), DataType::String) if iceberg_type == Some("uuid") => {
            murmur3(Uuid::parse_str(text).ok()?.as_bytes())
        }
        (Scalar::String(text), DataType::String) => murmur3(text.as_bytes()),
        (Scalar::Binary(bytes), DataType::Binary) => murmur3(bytes),
        _ => return None,
    };
    i32::try_from((hash & i32::MAX as u32) % buckets).ok()
}

/// The fewest bytes that hold a number in two's complement.
fn shortest(bytes: &[u8; 16]) -> &[u8] {
    let redundant = bytes.windows(2).take_while(|pair| {
        let sign = pair[1] & 0x80;
        (pair[0] == 0 && sign == 0) || (pair[0] == 0xff && sign != 0)
    });
    &bytes[redundant.count()..]
}

/// The 32-bit x86 variant with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |block: u32| block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0u32;
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let last = tail.iter().rev().fold(0u32, |last, byte| last << 8 | u32::from(*byte));
    hash ^= mix(last);
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(value: &Scalar, data_type: &DataType, iceberg_type: Option<&str>) -> i32 {
        // With as many buckets as there are numbers, only the sign is lost.
        bucket_of(value, data_type, iceberg_type, i32::MAX as u32).unwrap()
    }

    #[test]
    fn hashes_are_those_of_the_specification() {
        let uuid = Scalar::String("f79c3e09-677c-4bbd-a479-3f349cb785e7".into());
        let decimal = DataType::Decimal { precision: 9, scale: 2 };
        for (value, data_type, iceberg_type, expected) in [
            (Scalar::Long(34), DataType::Integer, None, 2_017_239_379i32),
            (Scalar::Long(34), DataType::Long, None, 2_017_239_379),
            (Scalar::Decimal(1420, 2), decimal, None, -500_754_589),
            (Scalar::Date(17_486), DataType::Date, None, -653_330_422),
            (Scalar::TimestampNtz(1_510_871_468_000_000), DataType::TimestampNtz, None, -2_047_944_441),
            (Scalar::Timestamp(1_510_871_468_000_001), DataType::Timestamp, None, -1_207_196_810),
            (Scalar::String("iceberg".into()), DataType::String, None, 1_210_000_089),
            (uuid, DataType::String, Some("uuid"), 1_488_055_340),
            (Scalar::Binary(vec![0, 1, 2, 3]), DataType::Binary, None, -188_683_207),
        ] {
            let expected = (expected & i32::MAX) % i32::MAX;
            assert_eq!(hash(&value, &data_type, iceberg_type), expected, "{value:?}");
        }
    }

    #[test]
    fn what_has_no_bucket_gets_none() {
        assert_eq!(bucket_of(&Scalar::Null, &DataType::Long, None, 4), None);
        assert_eq!(bucket_of(&Scalar::Double(1.0), &DataType::Double, None, 4), None);
        assert_eq!(bucket_of(&Scalar::Long(1), &DataType::Long, None, 0), None);
        assert_eq!(bucket_of(&Scalar::String("no uuid".into()), &DataType::String, Some("uuid"), 4), None);
        assert_eq!(bucket_of(&Scalar::Long(34), &DataType::Long, None, 4), Some(2_017_239_379 % 4));
    }

    #[test]
    fn numbers_are_hashed_without_needless_bytes() {
        for (number, bytes) in
            [(0i128, &[0u8][..]), (-1, &[0xff]), (128, &[0, 0x80]), (-128, &[0x80]), (1420, &[5, 0x8c])]
        {
            assert_eq!(shortest(&number.to_be_bytes()), bytes, "{number}");
        }
    }
}
