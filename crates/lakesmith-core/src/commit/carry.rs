//! Rows that another writer deleted while we moved them: where they are now.

use crate::table::{DeletionVector, FileId, RowMapSegment};

/// A row of an output: index among the outputs and position in the file.
pub type OutputRow = (u32, u64);

/// The rows of `input` that `new` deletes beyond `old`, as rows of the outputs.
///
/// `None` if the deletes cannot be carried over: `new` brings rows back that were left out, or deletes one of which the
/// map does not say where it went.
pub fn carried_rows(
    map: &[RowMapSegment],
    input: FileId,
    old: &DeletionVector,
    new: &DeletionVector,
) -> Option<Vec<OutputRow>> {
    if !new.is_superset(old) {
        return None;
    }
    let mut segments: Vec<&RowMapSegment> = map.iter().filter(|s| s.input == input).collect();
    segments.sort_unstable_by_key(|s| s.first_live);
    let locate = |position: u64| {
        let live = position - old.rank(position);
        let at = segments.partition_point(|s| s.first_live <= live).checked_sub(1)?;
        let within = live - segments[at].first_live;
        (within < segments[at].rows).then(|| (segments[at].output, segments[at].output_start + within))
    };
    new.iter().filter(|position| !old.contains(*position)).map(locate).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(input: u32, first_live: u64, rows: u64, output: u32, output_start: u64) -> RowMapSegment {
        RowMapSegment { input: FileId(input), first_live, rows, output, output_start }
    }

    #[test]
    fn deletes_follow_their_rows() {
        // Input 1: rows 0..10, of which 2 and 3 were left out; its live rows fill up output 0 and begin output 1.
        let map = [segment(0, 0, 5, 0, 0), segment(1, 0, 4, 0, 5), segment(1, 4, 4, 1, 0)];
        let old = DeletionVector::from_rows([2, 3]);
        let carried = |rows: &[u64]| {
            let new = DeletionVector::from_rows(rows.iter().copied());
            carried_rows(&map, FileId(1), &old, &new)
        };
        assert_eq!(carried(&[2, 3]), Some(vec![]));
        assert_eq!(carried(&[0, 2, 3, 4, 9]), Some(vec![(0, 5), (0, 7), (1, 3)]));
        assert_eq!(carried(&[2, 4]), None, "row 3 is back");
        assert_eq!(carried(&[2, 3, 10]), None, "no row 10 was read");
        assert_eq!(carried_rows(&[], FileId(1), &old, &DeletionVector::from_rows([0, 2, 3])), None);
    }

    proptest! {
        #[test]
        fn each_delete_meets_the_row_that_was_written(
            files in proptest::collection::vec(proptest::collection::vec(0u8..3, 1..60), 1..5),
            cap in 1u64..50,
        ) {
            // Marks a row: 0 lives on, 1 was deleted before, 2 is deleted meanwhile.
            let (mut map, mut outputs) = (Vec::new(), vec![Vec::new()]);
            for (file, rows) in files.iter().enumerate() {
                for (live, position) in (0..rows.len()).filter(|at| rows[*at] != 1).enumerate() {
                    if outputs.last().is_none_or(|output: &Vec<_>| output.len() as u64 == cap) {
                        outputs.push(Vec::new());
                    }
                    let (number, output) = (outputs.len() as u32 - 1, outputs.last_mut().expect("one was pushed"));
                    map.push(segment(file as u32, live as u64, 1, number, output.len() as u64));
                    output.push((file, position));
                }
            }
            for (file, rows) in files.iter().enumerate() {
                let marked = |upto: u8| {
                    DeletionVector::from_rows((0..rows.len() as u64).filter(|at| (1..=upto).contains(&rows[*at as usize])))
                };
                let carried = carried_rows(&map, FileId(file as u32), &marked(1), &marked(2)).expect("vectors only grew");
                let found: Vec<_> = carried.iter().map(|(output, at)| outputs[*output as usize][*at as usize]).collect();
                let expected: Vec<_> = (0..rows.len()).filter(|at| rows[*at] == 2).map(|at| (file, at)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
