//! Ranks: where a value stands among all values of its column, as the number of a quantile.
//!
//! Curves over ranks instead of values are indifferent to how values are spread and to what strings have in common.

/// Consecutive ranges of values that hold about equally many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankRanges<K> {
    /// Upper bounds, inclusive and ascending, of all ranges but the last.
    bounds: Vec<K>,
}

impl<K: Ord + Clone> RankRanges<K> {
    /// Cuts a sample without nulls, sorted ascending, into at most `max_ranges` ranges. A value that would fill more than one
    /// range has one.
    pub fn from_sorted(sample: &[K], max_ranges: u32) -> Self {
        debug_assert!(sample.is_sorted());
        let ranges = u128::from(max_ranges.max(1));
        let mut bounds = Vec::new();
        if let Some(largest) = sample.last() {
            for i in 1..ranges.min(sample.len() as u128 + 1) {
                // The smallest position with at least i of the equal shares at or below it.
                let shares = ranges.min(sample.len() as u128);
                let at = (i * sample.len() as u128).div_ceil(shares) - 1;
                let bound = &sample[at as usize];
                // Above the largest value there is nothing that a range of its own would be for.
                if bound < largest && bounds.last().is_none_or(|last| last < bound) {
                    bounds.push(bound.clone());
                }
            }
        }
        Self { bounds }
    }
}

impl<K: Ord> RankRanges<K> {
    /// The range that `value` falls into, counted from 1; 0 is left for nulls.
    pub fn rank(&self, value: &K) -> u32 {
        1 + self.bounds.partition_point(|bound| bound < value) as u32
    }

    /// Number of ranges, that of nulls not counted: ranks go from 0 up to and including this.
    #[expect(clippy::len_without_is_empty, reason = "there is always a range")]
    pub fn len(&self) -> usize {
        self.bounds.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_hold_equal_shares_and_their_upper_bound() {
        let sample: Vec<i32> = (1..=100).collect();
        let ranges = RankRanges::from_sorted(&sample, 4);
        assert_eq!(ranges.len(), 4);
        let ranks: Vec<u32> = [-5, 1, 25, 26, 50, 51, 75, 76, 1000].iter().map(|v| ranges.rank(v)).collect();
        assert_eq!(ranks, [1, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_frequent_value_has_one_range_and_a_constant_column_too() {
        let ranges = RankRanges::from_sorted(&[1, 5, 5, 5, 5, 5, 5, 9], 4);
        assert_eq!([1, 5, 6, 9].map(|v| ranges.rank(&v)), [1, 1, 2, 2]);
        assert_eq!(RankRanges::from_sorted(&["x"; 50], 1000).len(), 1);
        assert_eq!(RankRanges::<i32>::from_sorted(&[], 1000).rank(&7), 1);
    }

    #[test]
    fn few_values_have_a_range_each() {
        let ranges = RankRanges::from_sorted(&[10, 20, 30], 1000);
        assert_eq!([9, 10, 11, 20, 25, 30, 31].map(|v| ranges.rank(&v)), [1, 1, 2, 2, 3, 3, 3]);
    }

    proptest! {
        #[test]
        fn ranks_never_fall_and_ranges_hold_no_more_than_a_share_of_different_values(
            mut sample in prop::collection::vec(-300i64..300, 1..400), max_ranges in 1u32..40,
        ) {
            sample.sort_unstable();
            let ranges = RankRanges::from_sorted(&sample, max_ranges);
            prop_assert!(ranges.len() <= max_ranges as usize);
            let ranks: Vec<u32> = (-301..301).map(|v| ranges.rank(&v)).collect();
            prop_assert!(ranks.is_sorted());
            prop_assert!(ranks.iter().all(|r| (1..=ranges.len() as u32).contains(r)));
            sample.dedup();
            let share = sample.len().div_ceil(max_ranges as usize);
            for rank in 1..=ranges.len() as u32 {
                let held = sample.iter().filter(|v| ranges.rank(v) == rank).count();
                prop_assert!(held >= 1);
            }
            let distinct = RankRanges::from_sorted(&sample, max_ranges);
            for rank in 1..=distinct.len() as u32 {
                prop_assert!(sample.iter().filter(|v| distinct.rank(v) == rank).count() <= share);
            }
        }
    }
}
