//! What a key is worth for an order of rows, from the bounds that files have in it.

use std::collections::BTreeSet;

use super::depth::is_cut;
use super::{Curve, OrderKey};
use crate::table::{DataType, Scalar};
use crate::units::{counted, format_count};

/// Beyond so many keys each of them gets too few of the cuts.
pub const KEYS_MAX: usize = 4;
/// Files cannot be cut into more slices by a key than it has values; up to so many are few.
const FEW_VALUES: i128 = 16;
/// Files at least whose bounds say something of how many values there are.
const FILES_MIN: usize = 8;

/// What is known of a key before the files are ordered by it.
#[derive(Debug, Clone, Copy)]
pub struct KeyEvidence<'a> {
    /// The key.
    pub key: &'a OrderKey,
    /// Its place among the keys, from 0.
    pub place: usize,
    /// Number of keys.
    pub keys: usize,
    /// The curve.
    pub curve: Curve,
    /// True if new files get statistics for it.
    pub has_statistics: bool,
    /// Names of the partition columns.
    pub partition_columns: &'a [String],
    /// Characters to which long texts in the bounds are cut.
    pub prefix_chars: usize,
}

/// What speaks against a key, one sentence each; `bounds` are those of the files to be ordered.
pub fn advice(of: &KeyEvidence<'_>, bounds: &[Option<(&Scalar, &Scalar)>]) -> Vec<String> {
    let mut found = Vec::new();
    if of.place >= KEYS_MAX {
        found.push(format!(
            "it is key {} of {}: beyond {KEYS_MAX} each key gets so few of the cuts that none skips much",
            of.place + 1,
            of.keys
        ));
    }
    if !of.has_statistics {
        found.push(
            "it gets no statistics, so no reader can skip a file by it; name it in delta.dataSkippingStatsColumns"
                .into(),
        );
    }
    let leaf = of.key.name.last().map(|name| name.to_lowercase());
    if let Some(column) = of.partition_columns.iter().find(|c| Some(c.to_lowercase()) == leaf) {
        found.push(format!(
            "it is named like the partition column {column}: if it holds the same values, the partitions have them apart already"
        ));
    }
    found.extend(of_bounds(of, bounds));
    found
}

fn of_bounds(of: &KeyEvidence<'_>, bounds: &[Option<(&Scalar, &Scalar)>]) -> Option<String> {
    let known: Vec<(&Scalar, &Scalar)> = bounds.iter().flatten().filter(|(a, b)| a <= b).copied().collect();
    let cut = known.iter().filter(|(min, max)| is_cut(min, max, of.prefix_chars)).count();
    if cut > 0 {
        return Some(format!(
            "in {} the first {} characters of all its texts are the same, and statistics have no more: no reader can skip \
             these files by it, however they are ordered",
            counted(cut as u64, "file"),
            of.prefix_chars
        ));
    }
    let least = known.iter().map(|(min, _)| min).min()?;
    let most = known.iter().map(|(_, max)| max).max()?;
    if known.len() < 2 || known.len() < bounds.len() {
        return None;
    }
    if least == most {
        return Some("it has one value in all files: an order by it changes nothing".into());
    }
    // A first key with few values is what a plain sort is often wanted for.
    if of.curve == Curve::Sort && of.keys > 1 {
        return None;
    }
    if let Some(values) = values_at_most(of.key, least, most).filter(|values| *values <= FEW_VALUES) {
        return Some(format!(
            "it has {values} different values at most, so that files can be cut into no more slices by it; keys with more \
             values skip more"
        ));
    }
    let ends: BTreeSet<&Scalar> = known.iter().flat_map(|(min, max)| [*min, *max]).collect();
    (known.len() >= FILES_MIN && ends.len() * 4 <= known.len()).then(|| {
        format!(
            "the bounds of {} files take {} in it, so that it may have few values; keys with more values skip more",
            format_count(known.len() as u64),
            counted(ends.len() as u64, "value")
        )
    })
}

/// How many values there can be between two, for types that count them.
fn values_at_most(key: &OrderKey, least: &Scalar, most: &Scalar) -> Option<i128> {
    let between = match (least, most) {
        (Scalar::Long(a), Scalar::Long(b)) => i128::from(*b) - i128::from(*a),
        (Scalar::Date(a), Scalar::Date(b)) => i128::from(*b) - i128::from(*a),
        (Scalar::Decimal(a, _), Scalar::Decimal(b, _)) => b.checked_sub(*a)?,
        _ if key.data_type == DataType::Boolean => 1,
        _ => return None,
    };
    Some(between.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(data_type: DataType, curve: Curve, bounds: &[(Scalar, Scalar)]) -> Vec<String> {
        let key = OrderKey { path: vec!["k".into()], name: vec!["s".into(), "Day".into()], data_type };
        let of = KeyEvidence {
            key: &key,
            place: 0,
            keys: 2,
            curve,
            has_statistics: true,
            partition_columns: &["country".into()],
            prefix_chars: 4,
        };
        advice(&of, &bounds.iter().map(|(a, b)| Some((a, b))).collect::<Vec<_>>())
    }

    fn longs(files: &[(i64, i64)]) -> Vec<(Scalar, Scalar)> {
        files.iter().map(|(a, b)| (Scalar::Long(*a), Scalar::Long(*b))).collect()
    }

    fn texts(files: &[(&str, &str)]) -> Vec<(Scalar, Scalar)> {
        files.iter().map(|(a, b)| (Scalar::String(a.to_string()), Scalar::String(b.to_string()))).collect()
    }

    fn says(found: &[String], what: &str) {
        assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
    }

    #[test]
    fn few_values_are_told_from_the_bounds() {
        says(&about(DataType::Long, Curve::Zorder, &longs(&[(5, 5), (5, 5)])), "one value");
        says(&about(DataType::Long, Curve::Zorder, &longs(&[(0, 9), (3, 15)])), "16 different values");
        assert!(about(DataType::Long, Curve::Zorder, &longs(&[(0, 9), (3, 16)])).is_empty());
        assert!(about(DataType::Long, Curve::Sort, &longs(&[(0, 9), (3, 15)])).is_empty());
        says(&about(DataType::String, Curve::Hilbert, &texts(&[("a", "z"); 8])), "2 values");
        assert!(about(DataType::String, Curve::Hilbert, &texts(&[("a", "z"); 7])).is_empty());
        let switch = [(Scalar::Boolean(false), Scalar::Boolean(true)), (Scalar::Boolean(true), Scalar::Boolean(true))];
        says(&about(DataType::Boolean, Curve::Zorder, &switch), "2 different values");
        assert!(about(DataType::Long, Curve::Zorder, &[]).is_empty());
    }

    #[test]
    fn texts_that_statistics_cannot_tell_apart_are_named() {
        says(&about(DataType::String, Curve::Sort, &texts(&[("user", "user"), ("a", "b")])), "first 4 characters");
    }

    #[test]
    fn keys_without_statistics_of_partitions_and_too_many_are_named() {
        let key = OrderKey { path: vec!["d".into()], name: vec!["s".into(), "Day".into()], data_type: DataType::Date };
        let of = KeyEvidence {
            key: &key,
            place: 4,
            keys: 5,
            curve: Curve::Zorder,
            has_statistics: false,
            partition_columns: &["day".into()],
            prefix_chars: 32,
        };
        let found = advice(&of, &[]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].contains("key 5 of 5") && found[1].contains("no statistics") && found[2].contains("column day")
        );
        assert!(advice(&KeyEvidence { place: 3, has_statistics: true, partition_columns: &[], ..of }, &[]).is_empty());
    }
}
