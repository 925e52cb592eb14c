//! Which column of the source goes to which column of the table.
//!
//! # Source
//! Delta Spark `DeltaAnalysis.resolveQueryColumnsByOrdinal`, `resolveQueryColumnsByName`; Spark `ResolveUserSpecifiedColumns`.

use std::collections::HashSet;

use lakesmith::table::Field;
use lakesmith::{Error, Result, RowChange, RowRules};

use crate::statement::Insert;

/// What stands where nothing is given.
const NULL: &str = "NULL";

/// Where a column of the table gets its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    /// From the column of the source at this place.
    Source(usize),
    /// From an expression in SQL: a default value, or NULL.
    Sql(String),
    /// From an expression over other columns, once those are known.
    Generated(String),
    /// The next number of the column.
    Numbered,
}

/// One entry for each column of the table.
///
/// # Errors
/// Usage with Spark's classes for columns that are not the table's, are named twice, or are too many or too few.
pub(super) fn assign(
    change: &RowChange<'_>,
    rules: &RowRules,
    insert: &Insert,
    source: &[String],
) -> Result<Vec<Given>> {
    let fields = &change.schema().fields;
    let place = |name: &str| {
        let found = fields.iter().position(|f| f.name.to_lowercase() == name.to_lowercase());
        found.ok_or_else(|| unknown(name, fields))
    };
    // Columns of PARTITION (…) with a value are not in the rows; the others stand there where the table has them.
    let state = change.state();
    let mut fixed: Vec<(usize, String)> = Vec::new();
    for (column, value) in &insert.partition {
        let at = place(&column.value)?;
        if !state.partition_columns.iter().any(|p| p.eq_ignore_ascii_case(&column.value)) {
            return Err(Error::usage(format!(
                "PARTITION clause cannot contain the column `{}`, which is no partition column",
                fields[at].name
            ))
            .class("NON_PARTITION_COLUMN")
            .with("column", &fields[at].name));
        }
        fixed.extend(value.as_ref().map(|value| (at, value.text.clone())));
    }
    let named: Vec<usize> = match (&insert.columns, insert.by_name) {
        (Some(columns), _) => columns.iter().map(|c| place(&c.value)).collect::<Result<_>>()?,
        (None, true) => source.iter().map(|name| place(name)).collect::<Result<_>>()?,
        (None, false) => {
            let is_left = |at: &usize| !fixed.iter().any(|(f, _)| f == at);
            let mut order: Vec<usize> = (0..fields.len()).filter(is_left).collect();
            // What a table computes by itself need not be given.
            let own = |at: &usize| {
                rules.generated.iter().any(|(place, _)| place == at)
                    || rules.identity.iter().any(|(place, _)| place == at)
            };
            if source.len() < order.len() && order.len() - order.iter().filter(|at| own(at)).count() == source.len() {
                order.retain(|at| !own(at));
            }
            order
        }
    };
    let mut seen = HashSet::new();
    if let Some(twice) = named.iter().chain(fixed.iter().map(|(at, _)| at)).find(|at| !seen.insert(**at)) {
        let name = &fields[*twice].name;
        return Err(Error::usage(format!("the column `{name}` is given twice"))
            .class("COLUMN_ALREADY_EXISTS")
            .with("column", name));
    }
    if named.len() != source.len() {
        let listed = insert.columns.is_some();
        return Err(match listed {
            false => change.arity(source.len() + fixed.len()),
            true => {
                let (class, what) = if source.len() > named.len() {
                    ("INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS", "too many data columns")
                } else {
                    ("INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "not enough data columns")
                };
                Error::usage(format!(
                    "the statement names {} columns and its rows have {}: {what}",
                    named.len(),
                    source.len()
                ))
                .class(class)
            }
        });
    }
    let numbers_itself =
        |at: &usize| rules.identity.iter().any(|(place, identity)| place == at && !identity.takes_values);
    if let Some(at) = named.iter().chain(fixed.iter().map(|(at, _)| at)).find(|at| numbers_itself(at)) {
        return Err(change.numbers_itself(*at));
    }
    let given = |at: usize| {
        if let Some(source) = named.iter().position(|n| *n == at) {
            return Given::Source(source);
        }
        if let Some((_, sql)) = fixed.iter().find(|(f, _)| *f == at) {
            return Given::Sql(sql.clone());
        }
        if let Some((_, sql)) = rules.generated.iter().find(|(g, _)| *g == at) {
            return Given::Generated(sql.clone());
        }
        if rules.identity.iter().any(|(place, _)| *place == at) {
            return Given::Numbered;
        }
        let default = rules.defaults.iter().find(|(d, _)| *d == at);
        Given::Sql(default.map_or_else(|| NULL.to_owned(), |(_, sql)| sql.clone()))
    };
    let all: Vec<Given> = (0..fields.len()).map(given).collect();
    match fields.iter().zip(&all).find(|(field, given)| !field.nullable && **given == Given::Sql(NULL.to_owned())) {
        None => Ok(all),
        Some((field, _)) => Err(change.left_out(&field.name)),
    }
}

fn unknown(name: &str, fields: &[Field]) -> Error {
    let names: Vec<String> = fields.iter().map(|f| format!("`{}`", f.name)).collect();
    Error::usage(format!(
        "A column, variable, or function parameter with name `{name}` cannot be resolved. Did you mean one of the following? \
         [{}].",
        names.join(", ")
    ))
    .class("UNRESOLVED_COLUMN.WITH_SUGGESTION")
    .with("column", name)
}
