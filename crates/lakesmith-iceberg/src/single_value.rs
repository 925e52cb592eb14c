//! Bounds in their binary form, and partition values, as typed values.
//!
//! # Source
//! Iceberg spec, appendix D, "Binary single-value serialization", and "Partition Specs".

use lakesmith_core::table::Scalar;
use lakesmith_core::{Error, Result};
use uuid::Uuid;

use crate::avro::AvroValue;
use crate::types::Primitive;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The value of a bound in a column that is `primitive` now; it may have been narrower when the bound was written. `None`
/// for bytes that are no such value, and for types whose order writers do not agree upon.
pub(crate) fn bound(primitive: &Primitive, bytes: &[u8]) -> Option<Scalar> {
    let int = || bytes.try_into().ok().map(i32::from_le_bytes);
    let long = || bytes.try_into().ok().map(i64::from_le_bytes);
    let micros = || long().or_else(|| i64::from(int()?).checked_mul(MICROS_PER_DAY));
    match primitive {
        Primitive::Boolean => match bytes {
            [0] => Some(Scalar::Boolean(false)),
            [_] => Some(Scalar::Boolean(true)),
            _ => None,
        },
        Primitive::Int => int().map(|value| Scalar::Long(value.into())),
        Primitive::Long => long().or_else(|| int().map(i64::from)).map(Scalar::Long),
        Primitive::Float => bytes.try_into().ok().map(|bytes| Scalar::Double(f32::from_le_bytes(bytes).into())),
        Primitive::Double => {
            let double = bytes.try_into().ok().map(f64::from_le_bytes);
            let float = || bytes.try_into().ok().map(|bytes| f64::from(f32::from_le_bytes(bytes)));
            double.or_else(float).map(Scalar::Double)
        }
        Primitive::Decimal { scale, .. } => unscaled(bytes).map(|unscaled| Scalar::Decimal(unscaled, *scale)),
        Primitive::Date => int().map(Scalar::Date),
        Primitive::Timestamp => micros().map(Scalar::TimestampNtz),
        Primitive::TimestampTz => micros().map(Scalar::Timestamp),
        Primitive::String => std::str::from_utf8(bytes).ok().map(|text| Scalar::String(text.to_owned())),
        Primitive::Fixed(_) | Primitive::Binary => Some(Scalar::Binary(bytes.to_vec())),
        // Java compares the halves of a UUID as signed numbers, others its bytes.
        Primitive::Uuid => None,
        Primitive::Time
        | Primitive::TimestampNs
        | Primitive::TimestampTzNs
        | Primitive::Variant
        | Primitive::Unknown
        | Primitive::Other(_) => None,
    }
}

/// The value of a bound for people, of types too that bounds say nothing useful of.
pub(crate) fn readable(primitive: &Primitive, bytes: &[u8]) -> Option<Scalar> {
    match primitive {
        Primitive::Uuid => Uuid::from_slice(bytes).ok().map(|uuid| Scalar::String(uuid.to_string())),
        Primitive::Time | Primitive::TimestampNs | Primitive::TimestampTzNs => {
            bytes.try_into().ok().map(|bytes| Scalar::Long(i64::from_le_bytes(bytes)))
        }
        other => bound(other, bytes),
    }
}

/// A number in two's complement, most significant byte first.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    // Longer forms than needed repeat the sign.
    let (extra, bytes) = bytes.split_at(bytes.len().saturating_sub(16));
    if extra.iter().any(|byte| *byte != fill) {
        return None;
    }
    let mut whole = [fill; 16];
    whole[16 - bytes.len()..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(whole);
    // What was cut must not have held the sign alone.
    ((number < 0) == (fill != 0)).then_some(number)
}

/// A partition value of type `primitive`; `None`: a type that can't be told, then the value is taken as it is stored.
///
/// # Errors
/// `Corrupt` if the stored value has no such type.
pub(crate) fn partition_value(primitive: Option<&Primitive>, value: AvroValue) -> Result<Scalar> {
    let wrong = |value: &AvroValue| {
        let wanted = primitive.map(Primitive::spelling).unwrap_or_default();
        Error::corrupt(format!("a partition value {value:?} is not of the type {wanted}"))
    };
    let narrow = |long: i64| i32::try_from(long).map_err(|_| wrong(&AvroValue::Long(long)));
    Ok(match (value, primitive) {
        (AvroValue::Null, _) => Scalar::Null,
        (AvroValue::Boolean(value), None | Some(Primitive::Boolean)) => Scalar::Boolean(value),
        (AvroValue::Long(days), Some(Primitive::Date)) => Scalar::Date(narrow(days)?),
        (AvroValue::Long(micros), Some(Primitive::Timestamp)) => Scalar::TimestampNtz(micros),
        (AvroValue::Long(micros), Some(Primitive::TimestampTz)) => Scalar::Timestamp(micros),
        (
            AvroValue::Long(value),
            None
            | Some(
                Primitive::Int
                | Primitive::Long
                | Primitive::Time
                | Primitive::TimestampNs
                | Primitive::TimestampTzNs
                | Primitive::Other(_),
            ),
        ) => Scalar::Long(value),
        (AvroValue::Float(value), None | Some(Primitive::Float | Primitive::Double)) => Scalar::Double(value.into()),
        (AvroValue::Double(value), None | Some(Primitive::Float | Primitive::Double)) => Scalar::Double(value),
        (AvroValue::Bytes(bytes), Some(Primitive::Decimal { scale, .. })) => match unscaled(&bytes) {
            Some(unscaled) => Scalar::Decimal(unscaled, *scale),
            None => return Err(wrong(&AvroValue::Bytes(bytes))),
        },
        (AvroValue::Bytes(bytes), Some(Primitive::Uuid)) => match Uuid::from_slice(&bytes) {
            Ok(uuid) => Scalar::String(uuid.to_string()),
            Err(_) => return Err(wrong(&AvroValue::Bytes(bytes))),
        },
        (AvroValue::Text(text), None | Some(Primitive::String | Primitive::Uuid)) => Scalar::String(text),
        (AvroValue::Bytes(bytes), None | Some(Primitive::Fixed(_) | Primitive::Binary)) => Scalar::Binary(bytes),
        (value, _) => return Err(wrong(&value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_every_type_and_of_narrower_ones_are_read() {
        let decimal = Primitive::Decimal { precision: 10, scale: 2 };
        for (primitive, bytes, expected) in [
            (Primitive::Boolean, &[1][..], Some(Scalar::Boolean(true))),
            (Primitive::Int, &[0xfe, 0xff, 0xff, 0xff], Some(Scalar::Long(-2))),
            (Primitive::Long, &[7, 0, 0, 0, 0, 0, 0, 0], Some(Scalar::Long(7))),
            (Primitive::Long, &[0xff, 0xff, 0xff, 0xff], Some(Scalar::Long(-1))),
            (Primitive::Double, &1.5f32.to_le_bytes(), Some(Scalar::Double(1.5))),
            (Primitive::Double, &1.5f64.to_le_bytes(), Some(Scalar::Double(1.5))),
            (Primitive::Date, &[1, 0, 0, 0], Some(Scalar::Date(1))),
            (Primitive::Timestamp, &[1, 0, 0, 0], Some(Scalar::TimestampNtz(MICROS_PER_DAY))),
            (decimal.clone(), &[0xff, 0x38], Some(Scalar::Decimal(-200, 2))),
            (decimal.clone(), &[0, 0xc8], Some(Scalar::Decimal(200, 2))),
            (decimal, &[], None),
            (Primitive::String, "ä".as_bytes(), Some(Scalar::String("ä".into()))),
            (Primitive::String, &[0xff], None),
            (Primitive::Int, &[1], None),
            (Primitive::Uuid, &[0; 16], None),
        ] {
            assert_eq!(bound(&primitive, bytes), expected, "{primitive:?} {bytes:?}");
        }
    }

    #[test]
    fn numbers_longer_than_128_bits_are_read_if_they_are_no_larger() {
        let mut bytes = vec![0xff; 20];
        assert_eq!(unscaled(&bytes), Some(-1));
        bytes[0] = 0;
        assert_eq!(unscaled(&bytes), None);
        let mut large = vec![0; 17];
        large[1] = 0x80;
        assert_eq!(unscaled(&large), None);
    }

    #[test]
    fn partition_values_have_the_type_of_their_transform() {
        let date = partition_value(Some(&Primitive::Date), AvroValue::Long(3)).unwrap();
        assert_eq!(date, Scalar::Date(3));
        let uuid = partition_value(Some(&Primitive::Uuid), AvroValue::Bytes(vec![0x11; 16])).unwrap();
        assert_eq!(uuid, Scalar::String("11111111-1111-1111-1111-111111111111".into()));
        assert!(partition_value(Some(&Primitive::Date), AvroValue::Long(i64::MAX)).is_err());
        assert!(partition_value(Some(&Primitive::Int), AvroValue::Text("x".into())).is_err());
    }
}
