//! Which groups of a rewrite survive another writer's commit.
//!
//! A rewrite moves rows that exist and adds none, so appends never matter to it. What matters is an input that the
//! winner touched: its rows, as we read them, are no longer the table's.

use std::collections::{BTreeMap, BTreeSet};

use super::CommitSummary;
use crate::table::FileKey;

/// What a winner did to an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFate {
    /// The file left the table.
    Removed,
    /// The file is in the table with another set of deleted rows, a larger or a smaller one.
    Remarked,
}

/// A group that cannot be committed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostGroup {
    /// Index among the groups given.
    pub group: usize,
    /// The first input that the winner touched.
    pub path: String,
    /// What happened to it.
    pub fate: InputFate,
}

/// The groups that `winner` made worthless; the others may be committed after it. `groups` are the inputs' keys.
///
/// A file that the winner put in again with the vector that we read (new statistics, new tags) still holds our rows.
///
/// # Source
/// Delta Spark `ConflictChecker.checkForDeletedFilesAgainstCurrentTxnDeletedFiles`, made finer: by group.
pub fn lost_groups<'a, G>(groups: G, winner: &CommitSummary) -> Vec<LostGroup>
where
    G: IntoIterator<Item = &'a [FileKey]>,
{
    let removed: BTreeSet<&str> = winner.removed.iter().map(|k| k.path.as_str()).collect();
    let mut added: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for key in &winner.added {
        added.entry(key.path.as_str()).or_default().push(key.vector_id.as_deref());
    }
    let fate = |key: &FileKey| {
        let again = added.get(key.path.as_str());
        let same_rows = again.is_some_and(|vectors| vectors.iter().all(|v| *v == key.vector_id.as_deref()));
        match (removed.contains(key.path.as_str()), again.is_some()) {
            (true, false) => Some(InputFate::Removed),
            (true, true) => Some(InputFate::Remarked),
            (false, true) if !same_rows => Some(InputFate::Remarked),
            (false, _) => None,
        }
    };
    let lost = |(group, inputs): (usize, &[FileKey])| {
        inputs.iter().find_map(|key| fate(key).map(|fate| LostGroup { group, path: key.path.clone(), fate }))
    };
    groups.into_iter().enumerate().filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> FileKey {
        let (path, vector) = text.split_once('+').map_or((text, None), |(p, v)| (p, Some(v.to_string())));
        FileKey { path: path.into(), vector_id: vector }
    }

    fn keys(texts: &[&str]) -> Vec<FileKey> {
        texts.iter().map(|t| key(t)).collect()
    }

    #[test]
    fn only_groups_whose_inputs_were_touched_are_lost() {
        use InputFate::{Remarked, Removed};
        let groups = [keys(&["a", "b+v1"]), keys(&["c"])];
        type Case = (
            &'static str,
            &'static [&'static str],
            &'static [&'static str],
            &'static [(usize, &'static str, InputFate)],
        );
        let cases: [Case; 9] = [
            ("an append", &[], &["new"], &[]),
            ("another file left", &["x"], &[], &[]),
            ("an input left", &["a"], &["new"], &[(0, "a", Removed)]),
            ("an input with a vector left", &["b+v1"], &[], &[(0, "b", Removed)]),
            ("a first vector", &["c"], &["c+v9"], &[(1, "c", Remarked)]),
            ("a vector grew or shrank", &["b+v1"], &["b+v2"], &[(0, "b", Remarked)]),
            ("a vector vanished", &["b+v1"], &["b"], &[(0, "b", Remarked)]),
            ("both groups", &["a", "c"], &[], &[(0, "a", Removed), (1, "c", Removed)]),
            ("new statistics for the same rows", &[], &["a", "b+v1"], &[]),
        ];
        for (name, removed, added, expected) in cases {
            let winner = CommitSummary { removed: keys(removed), added: keys(added), ..CommitSummary::default() };
            let lost = lost_groups(groups.iter().map(Vec::as_slice), &winner);
            let found: Vec<_> = lost.iter().map(|l| (l.group, l.path.as_str(), l.fate)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_file_put_in_with_another_vector_but_never_taken_out_is_not_trusted() {
        let winner = CommitSummary { added: keys(&["a+v1"]), ..CommitSummary::default() };
        let lost = lost_groups([keys(&["a"]).as_slice()], &winner);
        assert_eq!(lost[0].fate, InputFate::Remarked);
    }
}
