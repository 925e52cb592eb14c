//! Packing files into bins.

/// Next-fit in the given order: a bin is closed when the next item would take it above `capacity`; an item above
/// `capacity` stands alone. Returns index ranges.
///
/// # Source
/// Delta Spark `OptimizeTableCommand.scala`, `groupFilesIntoBins`: neither first-fit nor best-fit, so results differ
/// from both.
pub fn next_fit(sizes: &[u64], capacity: u64) -> Vec<std::ops::Range<usize>> {
    let mut bins = Vec::new();
    let mut start = 0;
    let mut filled = 0u64;
    for (i, size) in sizes.iter().enumerate() {
        if filled.saturating_add(*size) > capacity && i > start {
            bins.push(start..i);
            start = i;
            filled = 0;
        }
        filled = filled.saturating_add(*size);
    }
    if start < sizes.len() {
        bins.push(start..sizes.len());
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn next_fit_differs_from_first_fit_and_includes_the_exact_boundary() {
        assert_eq!(next_fit(&[], 10), vec![]);
        assert_eq!(next_fit(&[5, 5, 1], 10), vec![0..2, 2..3]);
        assert_eq!(next_fit(&[11], 10), vec![0..1]);
        assert_eq!(next_fit(&[1, 11, 12], 10), vec![0..1, 1..2, 2..3]);
        assert_eq!(next_fit(&[6, 6, 4], 10), vec![0..1, 1..3]);
    }

    proptest! {
        #[test]
        fn bins_cover_every_item_once_and_hold_their_capacity(sizes in prop::collection::vec(0u64..100, 0..60), capacity in 1u64..200) {
            let bins = next_fit(&sizes, capacity);
            let mut next = 0;
            for bin in &bins {
                prop_assert_eq!(bin.start, next);
                prop_assert!(bin.end > bin.start);
                next = bin.end;
                prop_assert!(bin.len() == 1 || sizes[bin.clone()].iter().sum::<u64>() <= capacity);
            }
            prop_assert_eq!(next, sizes.len());
        }
    }
}
