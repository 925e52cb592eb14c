//! The catalogue names every golden table, and every table that it names is there.

use std::collections::BTreeSet;

/// The catalogue, relative to the root.
pub(crate) const CATALOGUE: &str = "fixtures/README.md";
/// Folders of golden tables, and what the catalogue puts before the names of those in each.
const FOLDERS: [(&str, &str); 2] = [("fixtures/delta/", ""), ("fixtures/iceberg/", "iceberg/")];

/// Findings among the project's files and in the catalogue's text.
pub(crate) fn check(files: &[String], catalogue: &str) -> Vec<String> {
    let inside = |file: &'_ String| {
        FOLDERS.iter().find_map(|(folder, before)| {
            let (name, _) = file.strip_prefix(folder)?.split_once('/')?;
            Some(format!("{before}{name}"))
        })
    };
    let tables: BTreeSet<String> = files.iter().filter_map(inside).collect();
    let row = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
    let named: BTreeSet<String> = catalogue.lines().filter_map(row).collect();
    let unnamed = tables.difference(&named).map(|name| format!("{CATALOGUE}: no row for {}", folder_of(name)));
    let gone = named.difference(&tables).map(|name| format!("{CATALOGUE}: {} does not exist", folder_of(name)));
    let untold = tables
        .iter()
        .map(|name| format!("{}.expected.json", folder_of(name)))
        .filter(|expected| !files.contains(expected))
        .map(|expected| format!("{expected} is missing"));
    unnamed.chain(gone).chain(untold).collect()
}

/// The folder of a table that the catalogue calls `name`.
fn folder_of(name: &str) -> String {
    if name.starts_with("iceberg/") { format!("fixtures/{name}") } else { format!("fixtures/delta/{name}") }
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
        let iceberg = ["fixtures/iceberg/t/metadata/v1.metadata.json", "fixtures/iceberg/t.expected.json"];
        assert_eq!(check(&files(&iceberg), "| `iceberg/t` | a table |"), Vec::<String>::new());
        assert_eq!(check(&files(&iceberg), "| `t` | a table |").len(), 2);
    }
}
