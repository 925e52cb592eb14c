//! Overlap depth: how many files a query for one value of a column must open, judged by the files' bounds.
//!
//! Rows of a file are taken to be spread evenly over what it covers: the gaps between neighbouring bounds of any files. A
//! file whose bounds are equal has all its rows on that point.

use std::collections::BTreeMap;

use crate::table::Scalar;

/// What is known of one file.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// Smallest and largest value of the column, both inclusive; `None` if they are not known.
    pub bounds: Option<(&'a Scalar, &'a Scalar)>,
    /// Live rows.
    pub rows: u64,
}

/// Overlap of files on one column.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Depth {
    /// Files to open for the value of a random row; `None` if too little is known to say, 0 without rows.
    pub mean: Option<f64>,
    /// Files to open for the value for which most must be opened; `None` as for `mean`.
    pub worst: Option<u64>,
    /// Files without bounds, or whose bounds are cut: every query opens them.
    #[serde(rename = "unknown")]
    pub unknown_files: u64,
}

/// The overlap of `files` on a column.
///
/// `prefix_chars`: characters to which long texts in the bounds are cut. Bounds that agree up to there hide where the rows
/// are, so that the depth is unknown, not bad.
pub fn depth<'a>(files: impl IntoIterator<Item = Extent<'a>>, prefix_chars: usize) -> Depth {
    let (mut extents, mut unknown_files, mut cut) = (Vec::new(), 0, false);
    for file in files {
        match file.bounds {
            Some((min, max)) if is_cut(min, max, prefix_chars) => {
                cut = true;
                unknown_files += 1;
            }
            Some((min, max)) if min <= max && !min.is_null() => extents.push((min, max, file.rows)),
            _ => unknown_files += 1,
        }
    }
    if cut {
        return Depth { mean: None, worst: None, unknown_files };
    }
    let line = Line::new(&extents);
    let covering = line.covering();
    let rows: u64 = extents.iter().map(|(_, _, rows)| rows).sum();
    // Rows of files without bounds are anywhere; they don't shift the mean of the others.
    let mean = if rows == 0 { 0.0 } else { line.rows_times(&covering) / rows as f64 };
    let worst = covering.iter().max().copied().unwrap_or(0);
    Depth { mean: Some(mean + unknown_files as f64), worst: Some(worst + unknown_files), unknown_files }
}

/// The overlap of files within their partitions, for a query that names one: the mean over the rows of all of them, the worst
/// of any. Each file comes with the number of its partition; `prefix_chars` as for [`depth`].
pub fn depth_within_partitions<'a>(files: impl IntoIterator<Item = (u32, Extent<'a>)>, prefix_chars: usize) -> Depth {
    let mut by_partition: BTreeMap<u32, Vec<Extent<'a>>> = BTreeMap::new();
    for (partition, file) in files {
        by_partition.entry(partition).or_default().push(file);
    }
    let mut all = Depth { mean: Some(0.0), worst: Some(0), unknown_files: 0 };
    let (mut sum, mut weight) = (0.0, 0.0);
    for files in by_partition.into_values() {
        let rows = files.iter().map(|file| file.rows).sum::<u64>() as f64;
        let of = depth(files, prefix_chars);
        all.unknown_files += of.unknown_files;
        all.worst = all.worst.zip(of.worst).map(|(a, b)| a.max(b));
        all.mean = all.mean.and(of.mean);
        sum += of.mean.unwrap_or(0.0) * rows;
        weight += rows;
    }
    all.mean = all.mean.map(|_| if weight > 0.0 { sum / weight } else { 0.0 });
    all
}

/// True if the two texts are cut at the prefix and nothing before it tells them apart.
pub(super) fn is_cut(min: &Scalar, max: &Scalar, prefix_chars: usize) -> bool {
    match (min, max) {
        (Scalar::String(min), Scalar::String(max)) => {
            let length = min.chars().count();
            // The larger one may have been rounded up behind the prefix.
            length >= prefix_chars && max.chars().count() >= prefix_chars && {
                let (a, b) = (min.chars().take(prefix_chars), max.chars().take(prefix_chars));
                let ahead: Vec<(char, char)> = a.zip(b).collect();
                ahead.iter().rev().skip(1).all(|(a, b)| a == b)
                    && ahead.last().is_none_or(|(a, b)| a == b || is_next(*a, *b))
            }
        }
        _ => false,
    }
}

/// True if `b` is the character after `a`, to which the last one of a cut bound is raised.
fn is_next(a: char, b: char) -> bool {
    (u32::from(a) + 1..=0x10_ffff).find_map(char::from_u32) == Some(b)
}

/// The distinct bounds in order. Places on it: even ones are the bounds, odd ones the gaps behind them.
struct Line {
    places: usize,
    /// First and last place of each file, and its rows.
    spans: Vec<(usize, usize, u64)>,
}

impl Line {
    fn new(extents: &[(&Scalar, &Scalar, u64)]) -> Self {
        let mut ends: Vec<&Scalar> = extents.iter().flat_map(|(min, max, _)| [*min, *max]).collect();
        ends.sort_unstable();
        ends.dedup();
        let place = |value: &Scalar| 2 * ends.partition_point(|end| *end < value);
        let spans = extents.iter().map(|(min, max, rows)| (place(min), place(max), *rows)).collect();
        Self { places: (2 * ends.len()).saturating_sub(1), spans }
    }

    /// Files over each place.
    fn covering(&self) -> Vec<u64> {
        let mut change = vec![0i64; self.places + 1];
        for (first, last, _) in &self.spans {
            change[*first] += 1;
            change[last + 1] -= 1;
        }
        let sums = change.iter().scan(0, |depth, step| {
            *depth += step;
            Some(*depth as u64)
        });
        sums.take(self.places).collect()
    }

    /// Sum over all rows of the number at their place.
    fn rows_times(&self, number: &[u64]) -> f64 {
        let mut gaps_before = vec![0u64; self.places + 1];
        for place in 0..self.places {
            gaps_before[place + 1] = gaps_before[place] + if place % 2 == 1 { number[place] } else { 0 };
        }
        let of_span = |(first, last, rows): &(usize, usize, u64)| {
            let mean = match (last - first) / 2 {
                0 => number[*first] as f64,
                gaps => (gaps_before[*last] - gaps_before[*first]) as f64 / gaps as f64,
            };
            mean * *rows as f64
        };
        self.spans.iter().map(of_span).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(files: &[(Option<(i64, i64)>, u64)]) -> Depth {
        let bounds: Vec<Option<(Scalar, Scalar)>> =
            files.iter().map(|(b, _)| b.map(|(min, max)| (Scalar::Long(min), Scalar::Long(max)))).collect();
        let extents = files.iter().zip(&bounds);
        depth(extents.map(|((_, rows), b)| Extent { bounds: b.as_ref().map(|(a, b)| (a, b)), rows: *rows }), 32)
    }

    fn of_texts(files: &[(&str, &str)]) -> Depth {
        let bounds: Vec<(Scalar, Scalar)> =
            files.iter().map(|(a, b)| (Scalar::String(a.to_string()), Scalar::String(b.to_string()))).collect();
        depth(bounds.iter().map(|(a, b)| Extent { bounds: Some((a, b)), rows: 1 }), 4)
    }

    #[test]
    fn files_side_by_side_have_depth_one_but_for_what_they_share() {
        assert_eq!(of(&[]), Depth { mean: Some(0.0), worst: Some(0), unknown_files: 0 });
        assert_eq!(of(&[(Some((1, 5)), 9), (Some((6, 9)), 1)]).mean, Some(1.0));
        let touching = of(&[(Some((1, 5)), 9), (Some((5, 9)), 1)]);
        assert_eq!((touching.mean, touching.worst), (Some(1.0), Some(2)));
    }

    #[test]
    fn rows_are_spread_over_gaps_and_a_single_value_keeps_its_rows() {
        // Two gaps, 0 to 5 and 5 to 10, and a file on 5.
        let found = of(&[(Some((0, 10)), 10), (Some((5, 5)), 30)]);
        assert_eq!((found.mean, found.worst), (Some((10.0 + 30.0 * 2.0) / 40.0), Some(2)));
        let nested = of(&[(Some((0, 30)), 30), (Some((10, 20)), 10)]);
        assert_eq!(nested.mean, Some((10.0 + 20.0 + 10.0 + 10.0 * 2.0) / 40.0));
    }

    #[test]
    fn partitions_are_looked_at_one_by_one_and_weigh_by_their_rows() {
        let (low, high) = (Scalar::Long(0), Scalar::Long(9));
        let file = |partition, rows| (partition, Extent { bounds: Some((&low, &high)), rows });
        let found = depth_within_partitions([file(0, 10), file(1, 15), file(1, 15)], 32);
        assert_eq!(found, Depth { mean: Some((10.0 + 30.0 * 2.0) / 40.0), worst: Some(2), unknown_files: 0 });
        assert_eq!(depth_within_partitions([], 32), depth([], 32));
        let text = Scalar::String("x".repeat(32));
        let cut = (2, Extent { bounds: Some((&text, &text)), rows: 1 });
        let found = depth_within_partitions([file(0, 10), cut], 32);
        assert_eq!(found, Depth { mean: None, worst: None, unknown_files: 1 });
    }

    #[test]
    fn a_file_without_bounds_is_always_opened() {
        let found = of(&[(Some((0, 10)), 10), (None, 5)]);
        assert_eq!(found, Depth { mean: Some(2.0), worst: Some(2), unknown_files: 1 });
        assert_eq!(of(&[(None, 5)]).mean, Some(1.0));
        assert_eq!(of(&[(Some((3, 1)), 5)]).unknown_files, 1);
    }

    #[test]
    fn bounds_cut_to_the_same_prefix_make_the_depth_unknown() {
        let unknown = Depth { mean: None, worst: None, unknown_files: 1 };
        assert_eq!(of_texts(&[("user", "user"), ("a", "b")]), unknown);
        assert_eq!(of_texts(&[("user", "uses")]), unknown);
        assert_eq!(of_texts(&[("user", "user\u{10ffff}")]), unknown);
        assert_eq!(of_texts(&[("use", "use")]).mean, Some(1.0));
        assert_eq!(of_texts(&[("user", "uset")]).mean, Some(1.0));
        assert_eq!(of_texts(&[("user", "utes")]).mean, Some(1.0));
    }

    proptest! {
        #[test]
        fn depth_is_what_counting_gives(
            files in prop::collection::vec((0i64..12, 0i64..6, 1u64..20, prop::bool::weighted(0.1)), 0..12),
        ) {
            let files: Vec<(Option<(i64, i64)>, u64)> = files.into_iter()
                .map(|(min, width, rows, unknown)| ((!unknown).then_some((min, min + width)), rows)).collect();
            let unknown = files.iter().filter(|f| f.0.is_none()).count();
            let known: Vec<(i64, i64, u64)> = files.iter().filter_map(|(b, rows)| b.map(|(a, b)| (a, b, *rows))).collect();
            let mut ends: Vec<i64> = known.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
            ends.sort_unstable();
            ends.dedup();
            // Doubled, so that the middle of a gap is a number too.
            let open = |twice: i64| known.iter().filter(|(a, b, _)| 2 * a <= twice && twice <= 2 * b).count() as f64;
            let (mut sum, mut rows) = (0.0, 0);
            for (a, b, r) in &known {
                let gaps: Vec<i64> = ends.windows(2).filter(|w| a <= &w[0] && &w[1] <= b).map(|w| w[0] + w[1]).collect();
                let mean = match gaps.len() {
                    0 => open(2 * a),
                    n => gaps.iter().map(|g| open(*g)).sum::<f64>() / n as f64,
                };
                sum += mean * *r as f64;
                rows += r;
            }
            let worst = ends.iter().map(|e| open(2 * e) as u64).max().unwrap_or(0);
            let found = of(&files);
            let mean = if rows == 0 { 0.0 } else { sum / rows as f64 } + unknown as f64;
            prop_assert!((found.mean.unwrap() - mean).abs() < 1e-9, "{:?} {}", found, mean);
            prop_assert_eq!(found.worst, Some(worst + unknown as u64));
        }
    }
}
