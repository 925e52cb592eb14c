//! Numbers whose unsigned order is the order of the values that they stand for.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::Scalar;

    fn any_double() -> impl Strategy<Value = f64> {
        let odd =
            [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324, -5e-324];
        prop_oneof![any::<f64>(), any::<u64>().prop_map(f64::from_bits), prop::sample::select(odd.to_vec())]
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
        fn the_order_of_the_numbers_is_that_of_the_values(
            (a, b) in prop_oneof![any::<(i64, i64)>(), (-2i64..3, -2i64..3)],
            (c, d) in (any_double(), any_double()),
            (e, f) in prop_oneof![any::<(i128, i128)>(), (-2i128..3, -2i128..3)],
        ) {
            prop_assert_eq!(i64_key(a).cmp(&i64_key(b)), Scalar::Long(a).cmp(&Scalar::Long(b)));
            prop_assert_eq!(f64_key(c).cmp(&f64_key(d)), Scalar::Double(c).cmp(&Scalar::Double(d)));
            prop_assert_eq!(i128_key(e).cmp(&i128_key(f)), Scalar::Decimal(e, 5).cmp(&Scalar::Decimal(f, 5)));
        }
    }
}
