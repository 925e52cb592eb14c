//! Errors about names, with the nearest one that exists, and what a name may look like.
//!
//! # Source
//! Spark `SessionCatalog.validateName`, `error-conditions.json`.

use lakesmith_core::{Error, Result};
use lakesmith_sql::nearest;

use super::{Catalog, Database};

/// Refuses names that Spark does not give to tables and databases either.
pub(crate) fn check_new(name: &str) -> Result<()> {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with('_') {
        return Ok(());
    }
    Err(Error::usage(format!(
        "`{name}` is not a valid name for tables/schemas. Valid names only contain alphabet characters, numbers and _, \
         and don't start with _."
    ))
    .class("INVALID_SCHEMA_OR_RELATION_NAME")
    .with("name", name))
}

/// `` `a`.`b` ``
pub(crate) fn quoted(parts: &[impl AsRef<str>]) -> String {
    parts.iter().map(|part| format!("`{}`", part.as_ref().replace('`', "``"))).collect::<Vec<_>>().join(".")
}

/// There is no such table; names the nearest one.
pub(crate) fn table_not_found(catalog: &dyn Catalog, database: Option<&Database>, parts: &[String]) -> Error {
    let tables = database.and_then(|database| catalog.tables(database).ok()).unwrap_or_default();
    let wanted = parts.last().map(String::as_str).unwrap_or_default();
    let hint = match (nearest(wanted, tables.iter().map(String::as_str)), database) {
        (Some(meant), Some(database)) => format!("did you mean {}?", quoted(&[&database.name, meant])),
        _ => "SHOW TABLES lists the names; a table without one is named by its path, as in delta.`/path`".to_owned(),
    };
    Error::usage(format!("the table or view {} cannot be found; {hint}", quoted(parts)))
        .class("TABLE_OR_VIEW_NOT_FOUND")
        .with("table", quoted(parts))
}

/// There is no such database; names the nearest one.
pub(crate) fn database_not_found(catalog: &dyn Catalog, name: &str) -> Error {
    let databases = catalog.databases().unwrap_or_default();
    let hint = match nearest(name, databases.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {}?", quoted(&[meant])),
        None => "SHOW DATABASES lists the names".to_owned(),
    };
    Error::usage(format!("the schema {} cannot be found; {hint}", quoted(&[super::DEFAULT_CATALOG, name])))
        .class("SCHEMA_NOT_FOUND")
        .with("database", name)
}

/// The database's place holds what is no table of its.
pub(crate) fn not_empty(database: &Database, name: &str) -> Error {
    Error::usage(format!(
        "cannot drop the schema {}: its folder holds {name}, which is no table; move it elsewhere",
        quoted(&[&database.name])
    ))
    .class("SCHEMA_NOT_EMPTY")
    .with("path", database.location.join(name))
}

/// Another table has the name.
pub(crate) fn table_exists(database: &str, name: &str) -> Error {
    Error::usage(format!(
        "cannot create table or view {} because it already exists; choose a different name, drop or replace the existing \
         object, or add IF NOT EXISTS",
        quoted(&[database, name])
    ))
    .class("TABLE_OR_VIEW_ALREADY_EXISTS")
    .with("table", quoted(&[database, name]))
}

/// True if the name matches a pattern of SHOW: `*` for anything, `|` between alternatives, case aside.
///
/// # Source
/// Spark `StringUtils.filterPattern`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    pattern.trim().split('|').any(|alternative| {
        let alternative: Vec<char> = alternative.trim().to_lowercase().chars().collect();
        matches_one(&alternative, &name)
    })
}

fn matches_one(pattern: &[char], name: &[char]) -> bool {
    // `reached[i]`: the pattern so far matches the first `i` characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; name.len() + 1];
        for i in 0..=name.len() {
            next[i] = match part {
                '*' => reached[i] || (i > 0 && next[i - 1]),
                '.' => i > 0 && reached[i - 1],
                c => i > 0 && reached[i - 1] && name[i - 1] == *c,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_sparks() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("e*", "events", true),
            ("E*S", "events", true),
            ("event", "events", false),
            ("x|ev*", "events", true),
            (" x | events ", "events", true),
            ("e_ents", "events", false),
            ("e.ents", "events", true),
            ("*v*t*", "events", true),
            ("", "events", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn names_are_words() {
        for name in ["a", "Events_2", "1st"] {
            assert!(check_new(name).is_ok(), "{name}");
        }
        for name in ["", "_x", "a b", "a-b", "a.b", "../x", "ä", "a/b"] {
            assert_eq!(
                check_new(name).map_err(|e| e.class_name().to_owned()),
                Err("INVALID_SCHEMA_OR_RELATION_NAME".into())
            );
        }
    }
}
