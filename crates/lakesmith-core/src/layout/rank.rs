//! Ranks: where a value stands among all values of its column, as the number of a quantile.
//!
//! Curves over ranks instead of values are indifferent to how values are spread and to what strings have in common. A rank
//! tells what part of the rows lies below, however many values there are: half of the rows have ranks in the lower half,
//! so the bits of a column of few values count as much as those of one of many.

/// Consecutive ranges of values that hold about equally many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankRanges<K> {
    /// Upper bounds, inclusive and ascending, of all ranges but the last.
    bounds: Vec<K>,
    /// Ranks of all ranges, ascending.
    ranks: Vec<u32>,
}

impl<K: Ord + Clone> RankRanges<K> {
    /// Cuts a sample without its `nulls`, sorted ascending, into at most `max_ranges` ranges, whose ranks are at least 1 and at most
    /// `max_ranges`. A value that would fill more than one range has one; the ranks of the others are left out.
    pub fn from_sorted(sample: &[K], nulls: usize, max_ranges: u32) -> Self {
        debug_assert!(sample.is_sorted());
        let all = (sample.len() + nulls).max(1) as u128;
        let below = u128::from(max_ranges.saturating_sub(1)) * nulls as u128 / all;
        let ranges = u128::from(max_ranges.max(1)) - below;
        let shares = ranges.min(sample.len() as u128);
        let mut bounds: Vec<K> = Vec::new();
        let mut ranks = vec![1 + below as u32];
        if let Some(largest) = sample.last() {
            for i in 1..=shares {
                // The smallest position with at least i of the equal shares at or below it.
                let bound = &sample[(i * sample.len() as u128).div_ceil(shares) as usize - 1];
                // Above the largest value there is nothing that a range of its own would be for.
                if bound == largest {
                    break;
                }
                let above = (1 + below + i * ranges / shares) as u32;
                if bounds.last() == Some(bound) {
                    ranks.pop();
                } else {
                    bounds.push(bound.clone());
                }
                ranks.push(above);
            }
        }
        Self { bounds, ranks }
    }
}

impl<K: Ord> RankRanges<K> {
    /// The rank of the range that `value` falls into; 0 is left for nulls.
    pub fn rank(&self, value: &K) -> u32 {
        self.ranks[self.bounds.partition_point(|bound| bound < value)]
    }

    /// Number of ranges, that of nulls not counted.
    #[expect(clippy::len_without_is_empty, reason = "there is always a range")]
    pub fn len(&self) -> usize {
        self.ranks.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_hold_equal_shares_and_their_upper_bound() {
        let sample: Vec<i32> = (1..=100).collect();
        let ranges = RankRanges::from_sorted(&sample, 0, 4);
        assert_eq!(ranges.len(), 4);
        let ranks: Vec<u32> = [-5, 1, 25, 26, 50, 51, 75, 76, 1000].iter().map(|v| ranges.rank(v)).collect();
        assert_eq!(ranks, [1, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_frequent_value_has_one_range_and_a_constant_column_too() {
        let ranges = RankRanges::from_sorted(&[1, 5, 5, 5, 5, 5, 9, 9], 0, 4);
        assert_eq!([1, 5, 6, 9].map(|v| ranges.rank(&v)), [1, 1, 4, 4]);
        assert_eq!(RankRanges::from_sorted(&["x"; 50], 0, 1000).len(), 1);
        assert_eq!(RankRanges::<i32>::from_sorted(&[], 0, 1000).rank(&7), 1);
    }

    #[test]
    fn few_values_have_a_range_each_and_all_ranks_between_them() {
        let ranges = RankRanges::from_sorted(&[10, 20, 30], 0, 999);
        assert_eq!([9, 10, 11, 20, 25, 30, 31].map(|v| ranges.rank(&v)), [1, 1, 334, 334, 667, 667, 667]);
    }

    #[test]
    fn nulls_take_their_share_of_the_ranks() {
        let ranges = RankRanges::from_sorted(&[10, 20, 30, 40], 12, 17);
        assert_eq!([10, 20, 30, 40].map(|v| ranges.rank(&v)), [13, 14, 15, 16]);
        assert_eq!(RankRanges::from_sorted(&[1], 1_000_000, 4).rank(&1), 3);
    }

    proptest! {
        #[test]
        fn ranks_never_fall_and_tell_what_part_of_the_rows_is_below(
            mut sample in prop::collection::vec(-300i64..300, 1..400), nulls in 0usize..400, max_ranges in 1u32..40,
        ) {
            sample.sort_unstable();
            let ranges = RankRanges::from_sorted(&sample, nulls, max_ranges);
            prop_assert!(ranges.len() <= max_ranges as usize);
            let ranks: Vec<u32> = (-301..301).map(|v| ranges.rank(&v)).collect();
            prop_assert!(ranks.is_sorted());
            prop_assert!(ranks.iter().all(|r| (1..=max_ranges).contains(r)));
            // What part of the rows lies below a value is what part of the ranks does, but for what is rounded.
            let all = (sample.len() + nulls) as f64;
            for value in &sample {
                let below = (nulls + sample.partition_point(|v| v < value)) as f64 / all;
                let rank = f64::from(ranges.rank(value) - 1) / f64::from(max_ranges);
                let most = 4.0 / f64::from(max_ranges) + 1.0 / all;
                prop_assert!((below - rank).abs() <= most, "{below} {rank}");
            }
            sample.dedup();
            let share = sample.len().div_ceil(max_ranges as usize);
            let distinct = RankRanges::from_sorted(&sample, 0, max_ranges);
            for rank in 1..=max_ranges {
                prop_assert!(sample.iter().filter(|v| distinct.rank(v) == rank).count() <= share);
            }
        }
    }
}
