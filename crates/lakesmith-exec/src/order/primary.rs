//! A number for each row that sorts most of the work away: rows whose numbers differ are in the order of the numbers.

use lakesmith_core::layout::curve::{bits_per_key, hilbert, zorder};
use lakesmith_core::layout::rank::RankRanges;
use lakesmith_core::layout::{Curve, RowOrder};

use super::keys::{KeyRef, KeyValue, Keys, OwnedKey};

/// Ranks of a first key of any length in a plain sort; more ranges leave fewer rows to be compared by their bytes.
const SORT_RANKS: u32 = 1 << 16;

/// How the number is made.
#[derive(Debug)]
pub(crate) struct Primary {
    kind: Kind,
    keys: usize,
}

#[derive(Debug)]
enum Kind {
    /// The first key's value, which has at most 64 bits.
    Value,
    /// The first key's rank.
    Rank(Ranks),
    /// The place of all keys' ranks on a curve.
    Curve(fn(&[u32], u32) -> u64, u32, Vec<Ranks>),
}

#[derive(Debug)]
enum Ranks {
    Fixed(RankRanges<u64>),
    Wide(RankRanges<(u64, u64)>),
    Bytes(RankRanges<Vec<u8>>),
}

impl Ranks {
    fn new(sample: &[&OwnedKey], max_ranges: u32) -> Self {
        let mut fixed = Vec::new();
        let mut wide = Vec::new();
        let mut bytes = Vec::new();
        let mut nulls = 0;
        for value in sample {
            match value {
                KeyValue::Null => nulls += 1,
                KeyValue::Fixed(v) => fixed.push(*v),
                KeyValue::Wide(high, low) => wide.push((*high, *low)),
                KeyValue::Bytes(v) => bytes.push(v),
            }
        }
        if !bytes.is_empty() {
            bytes.sort_unstable();
            let sorted: Vec<&[u8]> = bytes.iter().map(|b| b.as_ref()).collect();
            return Ranks::Bytes(owned_ranges(&sorted, nulls, max_ranges));
        }
        if !wide.is_empty() {
            wide.sort_unstable();
            return Ranks::Wide(RankRanges::from_sorted(&wide, nulls, max_ranges));
        }
        fixed.sort_unstable();
        Ranks::Fixed(RankRanges::from_sorted(&fixed, nulls, max_ranges))
    }

    fn rank(&self, value: KeyRef<'_>, scratch: &mut Vec<u8>) -> u32 {
        match (self, value) {
            (_, KeyValue::Null) => 0,
            (Ranks::Fixed(ranges), KeyValue::Fixed(v)) => ranges.rank(&v),
            (Ranks::Wide(ranges), KeyValue::Wide(high, low)) => ranges.rank(&(high, low)),
            (Ranks::Bytes(ranges), KeyValue::Bytes(bytes)) => {
                scratch.clear();
                scratch.extend_from_slice(bytes);
                ranges.rank(scratch)
            }
            // The sample held nothing but nulls.
            _ => 1,
        }
    }
}

fn owned_ranges(sorted: &[&[u8]], nulls: usize, max_ranges: u32) -> RankRanges<Vec<u8>> {
    let owned: Vec<Vec<u8>> = sorted.iter().map(|b| b.to_vec()).collect();
    RankRanges::from_sorted(&owned, nulls, max_ranges)
}

impl Primary {
    /// True if the keys must be sampled before any number can be made.
    pub(crate) fn needs_sample(order: &RowOrder) -> bool {
        !(is_sort(order) && order.keys.first().is_some_and(is_fixed))
    }

    /// Makes ranks of a sample, where they are needed.
    pub(crate) fn new<'s>(order: &RowOrder, sample: impl Iterator<Item = &'s [OwnedKey]> + Clone) -> Self {
        let keys = order.keys.len();
        let ranks = |key: usize, max_ranges: u32| {
            let values: Vec<&OwnedKey> = sample.clone().map(|row| &row[key]).collect();
            Ranks::new(&values, max_ranges)
        };
        let curve = match order.curve {
            _ if is_sort(order) => None,
            Curve::Hilbert => Some(hilbert as fn(&[u32], u32) -> u64),
            Curve::Zorder | Curve::Sort => Some(zorder as fn(&[u32], u32) -> u64),
        };
        let kind = match curve {
            None if !Self::needs_sample(order) => Kind::Value,
            None => Kind::Rank(ranks(0, SORT_RANKS)),
            Some(curve) => {
                let bits = bits_per_key(keys);
                // Null's range has the number 0.
                let max_ranges = (1u32 << bits) - 1;
                Kind::Curve(curve, bits, (0..keys).map(|key| ranks(key, max_ranges)).collect())
            }
        };
        Self { kind, keys }
    }

    /// The numbers of a batch's rows.
    pub(crate) fn of(&self, keys: &Keys, rows: usize) -> Vec<u64> {
        if let (Kind::Value, Some((values, nulls))) = (&self.kind, keys.fixed(0)) {
            let above_null = values.iter().map(|v| (*v).max(1));
            return match nulls {
                None => above_null.collect(),
                Some(nulls) => above_null.enumerate().map(|(i, v)| if nulls.is_null(i) { 0 } else { v }).collect(),
            };
        }
        let mut scratch = Scratch::default();
        (0..rows).map(|row| self.of_row(&|key| keys.value(key, row), &mut scratch)).collect()
    }

    /// The number of a row of values.
    pub(crate) fn of_owned(&self, keys: &[OwnedKey]) -> u64 {
        self.of_row(&|key| keys[key].borrowed(), &mut Scratch::default())
    }

    fn of_row<'v>(&self, value: &dyn Fn(usize) -> KeyRef<'v>, scratch: &mut Scratch) -> u64 {
        match &self.kind {
            Kind::Value => match value(0) {
                KeyValue::Fixed(v) => v.max(1),
                _ => 0,
            },
            Kind::Rank(ranks) => u64::from(ranks.rank(value(0), &mut scratch.bytes)),
            Kind::Curve(curve, bits, ranks) => {
                scratch.point.clear();
                for (key, ranks) in ranks.iter().enumerate() {
                    let rank = ranks.rank(value(key), &mut scratch.bytes);
                    scratch.point.push(rank);
                }
                curve(&scratch.point, *bits)
            }
        }
    }

    /// True if the numbers are places on a curve.
    pub(crate) fn is_curve(&self) -> bool {
        matches!(self.kind, Kind::Curve(..))
    }

    /// True if rows with this number are equal in all keys. The smallest value shares its number with the one after it,
    /// since null has a number too.
    pub(crate) fn decides(&self, primary: u64) -> bool {
        self.keys == 1 && matches!(self.kind, Kind::Value) && primary != 1
    }
}

#[derive(Default)]
struct Scratch {
    point: Vec<u32>,
    bytes: Vec<u8>,
}

/// With one key every curve is the order of its values.
fn is_sort(order: &RowOrder) -> bool {
    order.curve == Curve::Sort || order.keys.len() == 1
}

fn is_fixed(key: &lakesmith_core::layout::OrderKey) -> bool {
    use lakesmith_core::table::DataType as D;
    match key.data_type {
        D::String | D::Binary => false,
        D::Decimal { precision, .. } => precision <= super::keys::NARROW_DIGITS,
        _ => true,
    }
}
