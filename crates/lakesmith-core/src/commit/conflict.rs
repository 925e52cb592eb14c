//! Which inputs of a rewrite another writer's commit touched.
//!
//! A rewrite moves rows that exist and adds none, so appends never matter to it. What matters is an input that the
//! winner touched: its rows, as we read them, are no longer the table's.

use std::collections::{BTreeMap, BTreeSet};

use super::CommitSummary;
use crate::table::FileKey;

/// What a winner did to an input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputFate {
    /// The file left the table.
    Removed,
    /// The file is in the table with another set of deleted rows, a larger or a smaller one.
    Remarked {
        /// Its identity now, if the winner took out what we read and put in one other vector; otherwise the winner did
        /// something that no writer should.
        now: Option<FileKey>,
    },
}

/// An input that is not in the table any more as we read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedInput {
    /// Index among the groups given.
    pub group: usize,
    /// Index among the group's inputs.
    pub input: usize,
    /// Its path.
    pub path: String,
    /// What happened to it.
    pub fate: InputFate,
}

/// The inputs that `winner` touched; groups without one may be committed after it. `groups` are the inputs' keys.
///
/// A file that the winner put in again with the vector that we read (new statistics, new tags) still holds our rows.
///
/// # Source
/// Delta Spark `ConflictChecker.checkForDeletedFilesAgainstCurrentTxnDeletedFiles`, made finer: by group and row.
pub fn touched_inputs<'a, G>(groups: G, winner: &CommitSummary) -> Vec<TouchedInput>
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
        match (removed.contains(key.path.as_str()), again) {
            (true, None) => Some(InputFate::Removed),
            (true, Some(vectors)) => Some(InputFate::Remarked { now: successor(key, vectors, winner) }),
            (false, Some(_)) if !same_rows => Some(InputFate::Remarked { now: None }),
            (false, _) => None,
        }
    };
    let touched = |(group, inputs): (usize, &'a [FileKey])| {
        inputs
            .iter()
            .enumerate()
            .filter_map(|(input, key)| Some(TouchedInput { group, input, path: key.path.clone(), fate: fate(key)? }))
            .collect::<Vec<_>>()
    };
    groups.into_iter().enumerate().flat_map(touched).collect()
}

fn successor(key: &FileKey, added: &[Option<&str>], winner: &CommitSummary) -> Option<FileKey> {
    let mut taken_out = winner.removed.iter().filter(|k| k.path == key.path);
    match (taken_out.next(), taken_out.next(), added) {
        (Some(old), None, [Some(vector)]) if old == key && key.vector_id.as_deref() != Some(vector) => {
            Some(FileKey { path: key.path.clone(), vector_id: Some((*vector).to_owned()) })
        }
        _ => None,
    }
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
    fn only_inputs_that_were_touched_are_named() {
        use InputFate::{Remarked, Removed};
        let groups = [keys(&["a", "b+v1"]), keys(&["c"])];
        let remarked = |now: &str| Remarked { now: Some(key(now)) };
        type Case = (&'static str, &'static [&'static str], &'static [&'static str], Vec<(usize, usize, InputFate)>);
        let cases: [Case; 12] = [
            ("an append", &[], &["new"], vec![]),
            ("another file left", &["x"], &[], vec![]),
            ("an input left", &["a"], &["new"], vec![(0, 0, Removed)]),
            ("an input with a vector left", &["b+v1"], &[], vec![(0, 1, Removed)]),
            ("a first vector", &["c"], &["c+v9"], vec![(1, 0, remarked("c+v9"))]),
            ("another vector", &["b+v1"], &["b+v2"], vec![(0, 1, remarked("b+v2"))]),
            ("a vector vanished", &["b+v1"], &["b"], vec![(0, 1, Remarked { now: None })]),
            ("two in one group", &["a", "b+v1"], &["b+v2"], vec![(0, 0, Removed), (0, 1, remarked("b+v2"))]),
            ("both groups", &["a", "c"], &[], vec![(0, 0, Removed), (1, 0, Removed)]),
            ("new statistics for the same rows", &[], &["a", "b+v1"], vec![]),
            ("another vector than ours was replaced", &["b+v0"], &["b+v2"], vec![(0, 1, Remarked { now: None })]),
            ("put in twice", &["c"], &["c+v1", "c+v2"], vec![(1, 0, Remarked { now: None })]),
        ];
        for (name, removed, added, expected) in cases {
            let winner = CommitSummary { removed: keys(removed), added: keys(added), ..CommitSummary::default() };
            let touched = touched_inputs(groups.iter().map(Vec::as_slice), &winner);
            let found: Vec<_> = touched.into_iter().map(|t| (t.group, t.input, t.fate)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_file_put_in_with_another_vector_but_never_taken_out_is_not_trusted() {
        let winner = CommitSummary { added: keys(&["a+v1"]), ..CommitSummary::default() };
        let touched = touched_inputs([keys(&["a"]).as_slice()], &winner);
        assert_eq!(touched[0].fate, InputFate::Remarked { now: None });
    }
}
