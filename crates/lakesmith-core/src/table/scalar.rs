//! Typed values of partition columns and statistics, with one total order.

use std::cmp::Ordering;

/// A typed value. Floats order as Spark does: `-0.0 = 0.0`, NaN above everything. Values of different variants compare
/// by variant, so that the order is total; planners never mix types of one column.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum Scalar {
    /// SQL NULL; sorts first.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// Any of the integer types.
    Long(i64),
    /// FLOAT or DOUBLE.
    Double(f64),
    /// Unscaled value and scale.
    Decimal(i128, i8),
    /// Days since the epoch.
    Date(i32),
    /// Microseconds since the epoch, UTC.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00 in no zone.
    TimestampNtz(i64),
    /// STRING.
    String(String),
    /// BINARY.
    Binary(Vec<u8>),
}

impl Scalar {
    fn rank(&self) -> u8 {
        match self {
            Scalar::Null => 0,
            Scalar::Boolean(_) => 1,
            Scalar::Long(_) => 2,
            Scalar::Double(_) => 3,
            Scalar::Decimal(..) => 4,
            Scalar::Date(_) => 5,
            Scalar::Timestamp(_) => 6,
            Scalar::TimestampNtz(_) => 7,
            Scalar::String(_) => 8,
            Scalar::Binary(_) => 9,
        }
    }

    /// True for [`Scalar::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Scalar::Null)
    }
}

/// Order of doubles as Spark has it.
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

fn compare_decimals(a: i128, a_scale: i8, b: i128, b_scale: i8) -> Ordering {
    if a_scale == b_scale {
        return a.cmp(&b);
    }
    let (low, high, low_scale, high_scale, flip) =
        if a_scale < b_scale { (a, b, a_scale, b_scale, false) } else { (b, a, b_scale, a_scale, true) };
    let factor = 10i128.checked_pow((high_scale - low_scale) as u32);
    let order = match factor.and_then(|f| low.checked_mul(f)) {
        Some(scaled) => scaled.cmp(&high),
        // The scaled value leaves 128 bits, so its sign alone decides.
        None => low.cmp(&0),
    };
    if flip { order.reverse() } else { order }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Scalar::Null, Scalar::Null) => Ordering::Equal,
            (Scalar::Boolean(a), Scalar::Boolean(b)) => a.cmp(b),
            (Scalar::Long(a), Scalar::Long(b)) => a.cmp(b),
            (Scalar::Double(a), Scalar::Double(b)) => compare_doubles(*a, *b),
            (Scalar::Decimal(a, s), Scalar::Decimal(b, t)) => compare_decimals(*a, *s, *b, *t),
            (Scalar::Date(a), Scalar::Date(b)) => a.cmp(b),
            (Scalar::Timestamp(a), Scalar::Timestamp(b)) => a.cmp(b),
            (Scalar::TimestampNtz(a), Scalar::TimestampNtz(b)) => a.cmp(b),
            (Scalar::String(a), Scalar::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Scalar::Binary(a), Scalar::Binary(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_and_decimals_order_as_spark_does() {
        assert!(Scalar::Double(f64::NAN) > Scalar::Double(f64::INFINITY));
        assert_eq!(Scalar::Double(-0.0), Scalar::Double(0.0));
        assert_eq!(Scalar::Decimal(10, 1), Scalar::Decimal(100, 2));
        assert!(Scalar::Decimal(i128::MAX, 0) > Scalar::Decimal(1, 30));
        assert!(Scalar::Decimal(-5, 0) < Scalar::Decimal(-49, 1));
        assert!(Scalar::Null < Scalar::Boolean(false));
    }
}
