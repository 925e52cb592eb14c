//! How much files overlap in the keys that an OPTIMIZE orders them by, before and after, and what the keys are worth.

use super::compact::matching_partitions;
use super::{GroupResult, KeyBounds};
use crate::error::Result;
use crate::layout::advice::{KeyEvidence, advice};
use crate::layout::depth::{Depth, Extent, depth_within_partitions};
use crate::layout::{Curve, OrderKey};
use crate::op::optimize::KeyLayout;
use crate::plan::keys::attribute_name;
use crate::predicate::BoundPredicate;
use crate::table::{DataFile, FileId, Scalar, TableState};

/// The files that an OPTIMIZE may put in order, and their bounds.
#[derive(Debug)]
pub struct KeyLayouts<'a> {
    state: &'a TableState,
    keys: &'a [OrderKey],
    bounds: &'a [KeyBounds],
    /// For each partition, whether its files are in scope.
    matching: Vec<bool>,
    prefix_chars: usize,
}

impl<'a> KeyLayouts<'a> {
    /// For files whose partition matches `predicate`. `bounds`: those of each key in every file of the table;
    /// `prefix_chars`: characters to which long texts in them are cut.
    ///
    /// # Errors
    /// As [`super::optimize()`] for predicates that don't fit the partitions.
    pub fn new(
        state: &'a TableState,
        predicate: Option<&BoundPredicate>,
        keys: &'a [OrderKey],
        bounds: &'a [KeyBounds],
        prefix_chars: usize,
    ) -> Result<Self> {
        Ok(Self { state, keys, bounds, matching: matching_partitions(state, predicate)?, prefix_chars })
    }

    /// The overlap as it is, and what speaks against the keys; `indexed_leaves`: those that get statistics.
    pub fn before(&self, curve: Curve, indexed_leaves: &[Vec<String>]) -> Vec<KeyLayout> {
        let of_key = |(place, (key, bounds)): (usize, (&OrderKey, &KeyBounds))| {
            let evidence = KeyEvidence {
                key,
                place,
                keys: self.keys.len(),
                curve,
                has_statistics: indexed_leaves.contains(&key.path),
                partition_columns: &self.state.partition_columns,
                prefix_chars: self.prefix_chars,
            };
            let of_files: Vec<Option<(&Scalar, &Scalar)>> = self.files().map(|f| known(bounds, f.id)).collect();
            KeyLayout {
                column: attribute_name(&key.name),
                files: of_files.len() as u64,
                depth_before: depth_within_partitions(self.files().map(|f| extent(&f, bounds)), self.prefix_chars),
                depth_after: None,
                advice: advice(&evidence, &of_files),
            }
        };
        self.keys.iter().zip(self.bounds).enumerate().map(of_key).collect()
    }

    /// The overlap once these groups are committed, key by key.
    pub fn after(&self, done: &[GroupResult]) -> Vec<Depth> {
        let mut gone = vec![false; self.state.files.len()];
        done.iter().flat_map(|group| &group.removed).for_each(|id| gone[id.0 as usize] = true);
        let of_key = |(place, bounds): (usize, &KeyBounds)| {
            let kept = self.files().filter(|f| !gone[f.id.0 as usize]).map(|f| extent(&f, bounds));
            let added =
                done.iter().filter_map(|group| Some((group, *group.removed.first()?))).flat_map(|(group, input)| {
                    let partition = self.state.files.get(input).partition_index;
                    group.added.iter().map(move |file| {
                        let bounds = file.bounds.get(place).and_then(Option::as_ref).map(|(min, max)| (min, max));
                        (partition, Extent { bounds, rows: file.rows })
                    })
                });
            depth_within_partitions(kept.chain(added), self.prefix_chars)
        };
        self.bounds.iter().enumerate().map(of_key).collect()
    }

    fn files(&self) -> impl Iterator<Item = DataFile<'a>> {
        self.state.files.iter().filter(|f| self.matching[f.partition_index as usize])
    }
}

fn known(bounds: &KeyBounds, id: FileId) -> Option<(&Scalar, &Scalar)> {
    bounds[id.0 as usize].as_ref().map(|(min, max)| (min, max))
}

fn extent<'b>(file: &DataFile<'_>, bounds: &'b KeyBounds) -> (u32, Extent<'b>) {
    let rows = file.rows.map_or(1, |rows| rows.saturating_sub(file.deleted_rows()));
    (file.partition_index, Extent { bounds: known(bounds, file.id), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::AddedFile;
    use crate::plan::compact::tests::{TestFile, file, state};
    use crate::table::DataType;

    fn bounds(of: &[(i64, i64)]) -> KeyBounds {
        of.iter().map(|(a, b)| Some((Scalar::Long(*a), Scalar::Long(*b)))).collect()
    }

    fn added(a: i64, b: i64) -> AddedFile {
        AddedFile { size: 1, rows: 100, bounds: vec![Some((Scalar::Long(a), Scalar::Long(b)))] }
    }

    #[test]
    fn depth_after_counts_outputs_and_files_left_alone() {
        let in_partition = |path: &str, partition| TestFile { partition, ..file(path, 10) };
        let state = state(&[in_partition("a", 0), in_partition("b", 0), in_partition("c", 1), in_partition("d", 1)]);
        let key = OrderKey { path: vec!["id".into()], name: vec!["id".into()], data_type: DataType::Long };
        let (keys, bounds) = ([key], [bounds(&[(0, 99), (0, 99), (0, 99), (50, 99)])]);
        let layouts = KeyLayouts::new(&state, None, &keys, &bounds, 32).unwrap();
        let before = layouts.before(Curve::Zorder, &[vec!["id".into()]]);
        assert_eq!((before[0].column.as_str(), before[0].files, before[0].advice.len()), ("id", 4, 0));
        assert_eq!(before[0].depth_before.worst, Some(2));
        assert_eq!(layouts.after(&[])[0], before[0].depth_before);
        let of = |path: &str| state.files.iter().find(|f| f.path == path).unwrap().id;
        let first = GroupResult { removed: vec![of("a"), of("b")], added: vec![added(0, 49), added(50, 99)] };
        let after = layouts.after(std::slice::from_ref(&first));
        assert_eq!(after[0].worst, Some(2), "the other partition still overlaps");
        assert!(after[0].mean < before[0].depth_before.mean);
        let second = GroupResult { removed: vec![of("c"), of("d")], added: vec![added(0, 30), added(31, 99)] };
        let depth = layouts.after(&[first, second])[0];
        assert_eq!(depth, Depth { mean: Some(1.0), worst: Some(1), unknown_files: 0 });
        assert!(!layouts.before(Curve::Zorder, &[])[0].advice.is_empty());
    }
}
