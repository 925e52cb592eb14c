//! Order-preserving bytes: comparing the bytes of two tuples compares the tuples, nulls first.
//!
//! Every column starts with a byte that tells null from a value, so columns of a tuple are simply appended one after
//! another. Only values of one type may meet at one place of the tuple, decimals only with one scale.

use crate::table::Scalar;

const NULL: u8 = 0;
const VALUE: u8 = 1;

/// What ends a value of unknown length; inside one, a zero byte is followed by [`NOT_THE_END`].
const END: [u8; 2] = [0, 0];
const NOT_THE_END: u8 = 0xff;

const SIGN_64: u64 = 1 << 63;
const SIGN_128: u128 = 1 << 127;

/// A number whose unsigned order is the signed order of `value`.
pub fn i64_key(value: i64) -> u64 {
    value as u64 ^ SIGN_64
}

/// As [`i64_key`], for 128 bits (decimals, unscaled).
pub fn i128_key(value: i128) -> u128 {
    value as u128 ^ SIGN_128
}

/// A number whose unsigned order is Spark's order of doubles: `-0.0 = 0.0`, every NaN the same and above infinity.
pub fn f64_key(value: f64) -> u64 {
    let canonical = match value {
        v if v.is_nan() => f64::NAN.abs(),
        // Adding positive zero turns the negative one into it.
        v => v + 0.0,
    };
    let bits = canonical.to_bits();
    if bits & SIGN_64 == 0 { bits ^ SIGN_64 } else { !bits }
}

/// Appends a null, below every value.
pub fn push_null(to: &mut Vec<u8>) {
    to.push(NULL);
}

/// Appends a value of a length that all values of its column share, most significant byte first.
pub fn push_fixed(to: &mut Vec<u8>, big_endian: &[u8]) {
    to.push(VALUE);
    to.extend_from_slice(big_endian);
}

/// Appends a value of any length; a prefix of a value is below it.
pub fn push_bytes(to: &mut Vec<u8>, value: &[u8]) {
    to.reserve(value.len() + 3);
    to.push(VALUE);
    let mut rest = value;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        to.extend_from_slice(&rest[..=zero]);
        to.push(NOT_THE_END);
        rest = &rest[zero + 1..];
    }
    to.extend_from_slice(rest);
    to.extend_from_slice(&END);
}

/// Appends a typed value.
pub fn push_scalar(to: &mut Vec<u8>, value: &Scalar) {
    match value {
        Scalar::Null => push_null(to),
        Scalar::Boolean(v) => push_fixed(to, &[u8::from(*v)]),
        Scalar::Long(v) | Scalar::Timestamp(v) | Scalar::TimestampNtz(v) => push_fixed(to, &i64_key(*v).to_be_bytes()),
        Scalar::Date(v) => push_fixed(to, &i64_key(i64::from(*v)).to_be_bytes()),
        Scalar::Double(v) => push_fixed(to, &f64_key(*v).to_be_bytes()),
        Scalar::Decimal(v, _) => push_fixed(to, &i128_key(*v).to_be_bytes()),
        Scalar::String(v) => push_bytes(to, v.as_bytes()),
        Scalar::Binary(v) => push_bytes(to, v),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(tuple: &[Scalar]) -> Vec<u8> {
        let mut to = Vec::new();
        tuple.iter().for_each(|value| push_scalar(&mut to, value));
        to
    }

    fn any_double() -> impl Strategy<Value = f64> {
        let odd =
            [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324, -5e-324];
        prop_oneof![any::<f64>(), any::<u64>().prop_map(f64::from_bits), prop::sample::select(odd.to_vec())]
    }

    /// Short, of few different bytes, so that prefixes and zero bytes meet often.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 0x7f, 0xfe, 0xff]), 0..5)
    }

    fn or_null(values: impl Strategy<Value = Scalar> + 'static) -> BoxedStrategy<Scalar> {
        prop_oneof![1 => Just(Scalar::Null), 4 => values].boxed()
    }

    fn column(kind: usize) -> BoxedStrategy<Scalar> {
        match kind {
            0 => or_null(any::<bool>().prop_map(Scalar::Boolean)),
            1 => or_null(prop_oneof![any::<i64>(), -2i64..3].prop_map(Scalar::Long)),
            2 => or_null(any_double().prop_map(Scalar::Double)),
            3 => or_null(prop_oneof![any::<i128>(), -2i128..3].prop_map(|v| Scalar::Decimal(v, 5))),
            4 => or_null(any::<i32>().prop_map(Scalar::Date)),
            5 => or_null(any::<i64>().prop_map(Scalar::Timestamp)),
            6 => or_null(any::<i64>().prop_map(Scalar::TimestampNtz)),
            7 => or_null("[\u{0}a-bé\u{10ffff}]{0,4}".prop_map(Scalar::String)),
            _ => or_null(any_bytes().prop_map(Scalar::Binary)),
        }
    }

    fn two_tuples() -> impl Strategy<Value = (Vec<Scalar>, Vec<Scalar>)> {
        prop::collection::vec(0usize..9, 1..4).prop_flat_map(|kinds| {
            let tuple = || kinds.iter().map(|k| column(*k)).collect::<Vec<_>>();
            (tuple(), tuple())
        })
    }

    #[test]
    fn zeros_are_one_value_and_every_nan_is_one_above_infinity() {
        assert_eq!(f64_key(-0.0), f64_key(0.0));
        assert_eq!(f64_key(f64::from_bits(0xfff8_0000_0000_0001)), f64_key(f64::NAN));
        assert!(f64_key(f64::NAN) > f64_key(f64::INFINITY));
        assert!(f64_key(f64::NEG_INFINITY) < f64_key(f64::MIN));
        assert!(f64_key(-5e-324) < f64_key(0.0) && f64_key(0.0) < f64_key(5e-324));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_order_of_the_bytes_is_that_of_the_tuples((a, b) in two_tuples()) {
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), a.cmp(&b));
        }
    }
}
