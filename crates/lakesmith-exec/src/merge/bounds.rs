//! Smallest and largest of plain-encoded values: for footers, for the column index and for the table's log.

use std::cmp::Ordering;

use arrow::datatypes::{DataType, TimeUnit};
use lakesmith_core::table::Scalar;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::statistics::{Statistics, ValueStatistics};

use crate::stats::compare_floats;

/// Bytes of a string that footers and indexes keep.
const MAX_STORED: usize = 64;

/// How the values of a leaf are laid out and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Flags.
    Bool,
    /// Signed 32-bit numbers.
    I32,
    /// Signed 64-bit numbers.
    I64,
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Bytes as unsigned numbers; true: UTF-8.
    Bytes(bool),
    /// Big-endian signed numbers of so many bytes.
    Decimal(usize),
}

/// Smallest and largest of at least one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bounds {
    /// Of flags.
    Bool(bool, bool),
    /// Of 32-bit numbers.
    I32(i32, i32),
    /// Of 64-bit numbers.
    I64(i64, i64),
    /// Of floats: those that are numbers, if any is, with -0.0 below 0.0; and whether any is not.
    Float(Option<(f64, f64)>, bool),
    /// Of bytes and of decimals.
    Bytes(Vec<u8>, Vec<u8>),
}

impl Bounds {
    /// Bounds of values in their plain encoding without length; `None` if there is none. A value of the wrong size counts
    /// as zero, so sizes are checked before.
    pub(super) fn of<'a>(order: Order, mut values: impl Iterator<Item = &'a [u8]>) -> Option<Bounds> {
        let i32_of = |v: &[u8]| i32::from_le_bytes(v.try_into().unwrap_or_default());
        let i64_of = |v: &[u8]| i64::from_le_bytes(v.try_into().unwrap_or_default());
        let f32_of = |v: &[u8]| f64::from(f32::from_le_bytes(v.try_into().unwrap_or_default()));
        let f64_of = |v: &[u8]| f64::from_le_bytes(v.try_into().unwrap_or_default());
        Some(match order {
            Order::Bool => return None,
            Order::I32 => {
                let first = i32_of(values.next()?);
                let (low, high) = values.map(i32_of).fold((first, first), |(l, h), v| (l.min(v), h.max(v)));
                Bounds::I32(low, high)
            }
            Order::I64 => {
                let first = i64_of(values.next()?);
                let (low, high) = values.map(i64_of).fold((first, first), |(l, h), v| (l.min(v), h.max(v)));
                Bounds::I64(low, high)
            }
            Order::F32 => floats(values.map(f32_of))?,
            Order::F64 => floats(values.map(f64_of))?,
            Order::Bytes(_) | Order::Decimal(_) => {
                let first = values.next()?;
                let (mut low, mut high) = (first, first);
                for value in values {
                    if compare(order, value, low) == Ordering::Less {
                        low = value;
                    } else if compare(order, value, high) == Ordering::Greater {
                        high = value;
                    }
                }
                Bounds::Bytes(low.to_vec(), high.to_vec())
            }
        })
    }

    /// Bounds of flags.
    pub(super) fn of_bits(bits: &[u8]) -> Option<Bounds> {
        let (any, all) = bits.iter().fold((0, 1), |(any, all), bit| (any | bit, all & bit));
        (!bits.is_empty()).then_some(Bounds::Bool(all == 1, any == 1))
    }

    /// True if a float was not a number.
    pub(super) fn has_nan(&self) -> bool {
        matches!(self, Bounds::Float(_, true))
    }

    /// Takes other bounds of the same leaf in.
    pub(super) fn join(&mut self, order: Order, other: &Bounds) {
        match (self, other) {
            (Bounds::Bool(low, high), Bounds::Bool(l, h)) => (*low, *high) = (*low & l, *high | h),
            (Bounds::I32(low, high), Bounds::I32(l, h)) => (*low, *high) = (*l.min(low), *h.max(high)),
            (Bounds::I64(low, high), Bounds::I64(l, h)) => (*low, *high) = (*l.min(low), *h.max(high)),
            (Bounds::Float(range, nan), Bounds::Float(other, other_nan)) => {
                *nan |= other_nan;
                if let Some((l, h)) = other {
                    *range = Some(match *range {
                        Some((low, high)) => (smaller(low, *l), larger(high, *h)),
                        None => (*l, *h),
                    });
                }
            }
            (Bounds::Bytes(low, high), Bounds::Bytes(l, h)) => {
                if compare(order, l, low) == Ordering::Less {
                    low.clone_from(l);
                }
                if compare(order, h, high) == Ordering::Greater {
                    high.clone_from(h);
                }
            }
            _ => {}
        }
    }

    /// What the column index holds; `None` if nothing valid can be said.
    ///
    /// # Source
    /// `parquet.thrift`, `ColumnIndex` and `ColumnOrder` (NaN is left out, zeros get the sign that widens).
    pub(super) fn stored(&self, order: Order) -> Option<(Vec<u8>, Vec<u8>)> {
        Some(match self {
            Bounds::Bool(low, high) => (vec![u8::from(*low)], vec![u8::from(*high)]),
            Bounds::I32(low, high) => (low.to_le_bytes().to_vec(), high.to_le_bytes().to_vec()),
            Bounds::I64(low, high) => (low.to_le_bytes().to_vec(), high.to_le_bytes().to_vec()),
            Bounds::Float(range, _) => {
                let (low, high) = widened((*range)?);
                match order {
                    Order::F32 => ((low as f32).to_le_bytes().to_vec(), (high as f32).to_le_bytes().to_vec()),
                    _ => (low.to_le_bytes().to_vec(), high.to_le_bytes().to_vec()),
                }
            }
            Bounds::Bytes(low, high) => match order {
                Order::Bytes(text) => (lower(low, text).to_vec(), upper(high, text)),
                _ => (low.clone(), high.clone()),
            },
        })
    }

    /// What the table's log says, by the same rules as for rows in memory.
    pub(super) fn logged(&self, data_type: &DataType) -> Option<(Scalar, Scalar)> {
        let both = |make: &dyn Fn(i64) -> Option<Scalar>, low: i64, high: i64| make(low).zip(make(high));
        let number = |value: i64| -> Option<Scalar> {
            Some(match data_type {
                DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Scalar::Long(value),
                DataType::Date32 => Scalar::Date(i32::try_from(value).ok()?),
                DataType::Decimal128(_, scale) => Scalar::Decimal(value.into(), *scale),
                DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Scalar::Timestamp(value),
                DataType::Timestamp(TimeUnit::Microsecond, None) => Scalar::TimestampNtz(value),
                _ => return None,
            })
        };
        match (self, data_type) {
            (Bounds::I32(low, high), _) => both(&number, (*low).into(), (*high).into()),
            (Bounds::I64(low, high), _) => both(&number, *low, *high),
            (Bounds::Float(range, nan), _) => {
                let (low, high) = match (range, nan) {
                    (None, _) => (f64::NAN, f64::NAN),
                    (Some((low, _)), true) => (*low, f64::NAN),
                    (Some((low, high)), false) => (*low, *high),
                };
                Some((Scalar::Double(low), Scalar::Double(high)))
            }
            (Bounds::Bytes(low, high), DataType::Utf8) => {
                let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(|t| Scalar::String(t.to_owned()));
                text(low).zip(text(high))
            }
            (Bounds::Bytes(low, high), DataType::Decimal128(_, scale)) => {
                let decimal = |bytes: &[u8]| signed(bytes).map(|v| Scalar::Decimal(v, *scale));
                decimal(low).zip(decimal(high))
            }
            _ => None,
        }
    }
}

/// The statistics of a column chunk.
pub(super) fn statistics(order: Order, bounds: Option<&Bounds>, nulls: u64) -> Statistics {
    // The trait that the library bounds its values by has no public name.
    macro_rules! typed {
        ($range:expr) => {{
            let (low, high) = $range.unzip();
            ValueStatistics::new(low, high, None, Some(nulls), false)
        }};
    }
    match (order, bounds) {
        (Order::Bool, Some(Bounds::Bool(low, high))) => Statistics::Boolean(typed!(Some((*low, *high)))),
        (Order::I32, Some(Bounds::I32(low, high))) => Statistics::Int32(typed!(Some((*low, *high)))),
        (Order::I64, Some(Bounds::I64(low, high))) => Statistics::Int64(typed!(Some((*low, *high)))),
        (Order::F32, Some(Bounds::Float(range, _))) => {
            Statistics::Float(typed!(range.map(widened).map(|(low, high)| (low as f32, high as f32))))
        }
        (Order::F64, Some(Bounds::Float(range, _))) => Statistics::Double(typed!(range.map(widened))),
        (Order::Decimal(_), Some(Bounds::Bytes(low, high))) => {
            let fixed = |bytes: &Vec<u8>| FixedLenByteArray::from(ByteArray::from(bytes.clone()));
            Statistics::FixedLenByteArray(typed!(Some((fixed(low), fixed(high)))))
        }
        (Order::Bytes(text), Some(Bounds::Bytes(low, high))) => {
            let (stored_low, stored_high) = (lower(low, text), upper(high, text));
            let exact = (stored_low.len() == low.len(), stored_high == *high);
            let range = Some((ByteArray::from(stored_low.to_vec()), ByteArray::from(stored_high)));
            Statistics::ByteArray(typed!(range).with_min_is_exact(exact.0).with_max_is_exact(exact.1))
        }
        (Order::Bool, _) => Statistics::Boolean(typed!(None::<(bool, bool)>)),
        (Order::I32, _) => Statistics::Int32(typed!(None::<(i32, i32)>)),
        (Order::I64, _) => Statistics::Int64(typed!(None::<(i64, i64)>)),
        (Order::F32, _) => Statistics::Float(typed!(None::<(f32, f32)>)),
        (Order::F64, _) => Statistics::Double(typed!(None::<(f64, f64)>)),
        (Order::Decimal(_), _) => Statistics::FixedLenByteArray(typed!(None::<(FixedLenByteArray, FixedLenByteArray)>)),
        (Order::Bytes(_), _) => Statistics::ByteArray(typed!(None::<(ByteArray, ByteArray)>)),
    }
}

/// Compares two stored values.
pub(super) fn compare(order: Order, a: &[u8], b: &[u8]) -> Ordering {
    match order {
        Order::Bool | Order::Bytes(_) => a.cmp(b),
        Order::Decimal(_) => {
            // Two's complement: flipping the sign bit makes it unsigned.
            let head = |v: &[u8]| v.first().map(|b| b ^ 0x80);
            head(a).cmp(&head(b)).then_with(|| a.cmp(b))
        }
        Order::I32 => {
            let of = |v: &[u8]| i32::from_le_bytes(v.try_into().unwrap_or_default());
            of(a).cmp(&of(b))
        }
        Order::I64 => {
            let of = |v: &[u8]| i64::from_le_bytes(v.try_into().unwrap_or_default());
            of(a).cmp(&of(b))
        }
        Order::F32 => {
            let of = |v: &[u8]| f32::from_le_bytes(v.try_into().unwrap_or_default());
            of(a).total_cmp(&of(b))
        }
        Order::F64 => {
            let of = |v: &[u8]| f64::from_le_bytes(v.try_into().unwrap_or_default());
            of(a).total_cmp(&of(b))
        }
    }
}

fn floats(values: impl Iterator<Item = f64>) -> Option<Bounds> {
    let (mut range, mut nan): (Option<(f64, f64)>, bool) = (None, false);
    for value in values {
        if value.is_nan() {
            nan = true;
        } else {
            range = Some(range.map_or((value, value), |(low, high)| (smaller(low, value), larger(high, value))));
        }
    }
    (nan || range.is_some()).then_some(Bounds::Float(range, nan))
}

fn smaller(a: f64, b: f64) -> f64 {
    if compare_floats(b, a) == Ordering::Less { b } else { a }
}

fn larger(a: f64, b: f64) -> f64 {
    if compare_floats(b, a) == Ordering::Greater { b } else { a }
}

fn widened((low, high): (f64, f64)) -> (f64, f64) {
    (if low == 0.0 { -0.0 } else { low }, if high == 0.0 { 0.0 } else { high })
}

fn signed(bytes: &[u8]) -> Option<i128> {
    let mut value = [if bytes.first()? & 0x80 == 0 { 0 } else { 0xff }; 16];
    value.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(value))
}

/// A prefix of a lower bound, cut between characters.
fn lower(bytes: &[u8], text: bool) -> &[u8] {
    if bytes.len() <= MAX_STORED {
        return bytes;
    }
    let cut = match std::str::from_utf8(bytes) {
        Ok(valid) if text => valid.floor_char_boundary(MAX_STORED),
        _ => MAX_STORED,
    };
    &bytes[..cut]
}

/// A short value above everything that begins as an upper bound does, or the bound itself if there is none.
fn upper(bytes: &[u8], text: bool) -> Vec<u8> {
    let cut = lower(bytes, text);
    if cut.len() == bytes.len() {
        return bytes.to_vec();
    }
    let raised = match std::str::from_utf8(cut) {
        Ok(valid) if text => raised_text(valid),
        _ => {
            let last = cut.iter().rposition(|b| *b != 0xff);
            last.map(|at| [&cut[..at], &[cut[at] + 1]].concat())
        }
    };
    raised.unwrap_or_else(|| bytes.to_vec())
}

/// The prefix with its last character replaced by the next one that exists.
fn raised_text(prefix: &str) -> Option<Vec<u8>> {
    prefix.char_indices().rev().find_map(|(at, character)| {
        let next = ((character as u32 + 1)..=char::MAX as u32).find_map(char::from_u32)?;
        let mut raised = prefix[..at].to_owned();
        raised.push(next);
        Some(raised.into_bytes())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stored_text_bounds_enclose(text in "[a\u{7f}é\u{d7ff}\u{10ffff}]{0,90}") {
            let bounds = Bounds::of(Order::Bytes(true), [text.as_bytes()].into_iter()).unwrap();
            let (low, high) = bounds.stored(Order::Bytes(true)).unwrap();
            prop_assert!(low.as_slice() <= text.as_bytes() && text.as_bytes() <= high.as_slice());
            prop_assert!(std::str::from_utf8(&low).is_ok() && std::str::from_utf8(&high).is_ok());
        }

        #[test]
        fn stored_byte_bounds_enclose(bytes in prop::collection::vec(prop::sample::select(vec![0u8, 254, 255]), 0..90)) {
            let bounds = Bounds::of(Order::Bytes(false), [bytes.as_slice()].into_iter()).unwrap();
            let (low, high) = bounds.stored(Order::Bytes(false)).unwrap();
            prop_assert!(low <= bytes && bytes <= high);
        }

        #[test]
        fn decimals_compare_as_numbers(a: i64, b: i64) {
            let order = compare(Order::Decimal(8), &a.to_be_bytes(), &b.to_be_bytes());
            prop_assert_eq!(order, a.cmp(&b));
            prop_assert_eq!(signed(&a.to_be_bytes()), Some(a.into()));
        }
    }

    #[test]
    fn nan_and_zeros_follow_each_readers_rules() {
        let of = |values: &[f64]| {
            let bytes: Vec<[u8; 8]> = values.iter().map(|v| v.to_le_bytes()).collect();
            Bounds::of(Order::F64, bytes.iter().map(|b| b.as_slice())).unwrap()
        };
        let mut bounds = of(&[0.0, f64::NAN]);
        assert_eq!(bounds.stored(Order::F64), Some((f64::to_le_bytes(-0.0).to_vec(), 0f64.to_le_bytes().to_vec())));
        bounds.join(Order::F64, &of(&[-0.0, 2.0]));
        let (low, high) = bounds.logged(&DataType::Float64).unwrap();
        assert!(matches!(low, Scalar::Double(v) if v == 0.0 && v.is_sign_negative()));
        assert!(matches!(high, Scalar::Double(v) if v.is_nan()));
        assert_eq!(of(&[f64::NAN]).stored(Order::F64), None);
        assert_eq!(Bounds::of(Order::F64, std::iter::empty()), None);
    }
}
