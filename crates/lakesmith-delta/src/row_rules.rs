//! What a table asks of new rows: conditions, and columns that get their value by themselves.
//!
//! # Source
//! Delta PROTOCOL.md, "CHECK Constraints", "Generated Columns", "Default Columns", "Identity Columns", "Column Invariants".

use lakesmith_core::table::{Field, TableState};
use serde_json::Value;

use crate::alter::DEFAULT;
use crate::identity_column::{Identity, identity};
use crate::schema_text::CHAR_VARCHAR;

const CONSTRAINT_PREFIX: &str = "delta.constraints.";
const GENERATED: &str = "delta.generationExpression";
const INVARIANTS: &str = "delta.invariants";

/// A condition that must be true of every row; NULL is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCheck {
    /// Its name.
    pub name: String,
    /// The condition, in SQL.
    pub sql: String,
}

/// How long a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLength {
    /// Exactly so many characters; shorter ones are padded with blanks.
    Char(u32),
    /// So many characters at most.
    Varchar(u32),
}

/// What a table asks of new rows, beside NOT NULL. Columns are named by their place in the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowRules {
    /// Conditions.
    pub checks: Vec<RowCheck>,
    /// Columns that are computed from others, and how, in SQL.
    pub generated: Vec<(usize, String)>,
    /// Values of columns that a statement leaves out, in SQL.
    pub defaults: Vec<(usize, String)>,
    /// Columns that number their rows.
    pub identity: Vec<(usize, Identity)>,
    /// Texts of limited length.
    pub lengths: Vec<(usize, TextLength)>,
}

/// The rules of a table.
pub fn row_rules(state: &TableState) -> RowRules {
    let mut rules = RowRules::default();
    for (key, sql) in &state.properties {
        let is_constraint =
            key.get(..CONSTRAINT_PREFIX.len()).is_some_and(|p| p.eq_ignore_ascii_case(CONSTRAINT_PREFIX));
        if is_constraint {
            let name = key[CONSTRAINT_PREFIX.len()..].to_owned();
            rules.checks.push(RowCheck { name, sql: sql.clone() });
        }
    }
    for (place, field) in state.schema.fields.iter().enumerate() {
        rules.generated.extend(text(field, GENERATED).map(|sql| (place, sql)));
        rules.defaults.extend(text(field, DEFAULT).map(|sql| (place, sql)));
        rules.lengths.extend(text(field, CHAR_VARCHAR).and_then(|t| length(&t)).map(|l| (place, l)));
        rules.identity.extend(identity(field).map(|identity| (place, identity)));
        let invariant = text(field, INVARIANTS).and_then(|t| serde_json::from_str::<Value>(&t).ok());
        if let Some(sql) = invariant.as_ref().and_then(|i| i["expression"]["expression"].as_str()) {
            rules.checks.push(RowCheck { name: format!("EXPRESSION({sql})"), sql: sql.to_owned() });
        }
    }
    rules
}

fn text(field: &Field, key: &str) -> Option<String> {
    field.metadata.get(key).and_then(|json| serde_json::from_str::<String>(json).ok())
}

fn length(written: &str) -> Option<TextLength> {
    let written = written.trim().to_ascii_lowercase();
    let number = |rest: &str| rest.trim().strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok();
    match written.strip_prefix("varchar") {
        Some(rest) => number(rest).map(TextLength::Varchar),
        None => number(written.strip_prefix("char")?).map(TextLength::Char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_from_their_types() {
        assert_eq!(length("varchar(10)"), Some(TextLength::Varchar(10)));
        assert_eq!(length("CHAR( 3 )"), Some(TextLength::Char(3)));
        assert_eq!(length("array<char(3)>"), None);
    }
}
