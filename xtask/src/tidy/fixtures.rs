//! The catalogue names every golden table, and every table that it names is there.

use std::collections::BTreeSet;

/// The catalogue, relative to the root.
pub(crate) const CATALOGUE: &str = "fixtures/README.md";
const TABLES: &str = "fixtures/delta/";

/// Findings among the project's files and in the catalogue's text.
pub(crate) fn check(files: &[String], catalogue: &str) -> Vec<String> {
    let inside = |file: &'_ String| {
        let (name, _) = file.strip_prefix(TABLES)?.split_once('/')?;
        Some(name.to_owned())
    };
    let tables: BTreeSet<String> = files.iter().filter_map(inside).collect();
    let row = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
    let named: BTreeSet<String> = catalogue.lines().filter_map(row).collect();
    let unnamed = tables.difference(&named).map(|name| format!("{CATALOGUE}: no row for {TABLES}{name}"));
    let gone = named.difference(&tables).map(|name| format!("{CATALOGUE}: {TABLES}{name} does not exist"));
    let untold = tables
        .iter()
        .filter(|name| !files.contains(&format!("{TABLES}{name}.expected.json")))
        .map(|name| format!("{TABLES}{name}.expected.json is missing"));
    unnamed.chain(gone).chain(untold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_and_folders_must_agree() {
        let files = |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
        let log = "fixtures/delta/a b/_delta_log/00000000000000000000.json";
        let expected = "fixtures/delta/a b.expected.json";
        let text = "| table | what it holds |\n|---|---|\n| `a b` | odd name |\n";
        assert_eq!(check(&files(&[log, expected]), text), Vec::<String>::new());
        assert_eq!(check(&files(&[log, expected]), "").len(), 1);
        assert_eq!(check(&files(&[log]), text).len(), 1);
        assert_eq!(check(&files(&[]), text).len(), 1);
    }
}
