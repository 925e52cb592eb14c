//! ADD CONSTRAINT and DROP CONSTRAINT.

use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::predicate::{Expr, bind_partition_predicate};
use lakesmith_core::table::{DataType, TableState};
use lakesmith_core::{Error, ErrorKind, Result};
use serde_json::Value;

use super::path::unresolved;
use super::{Draft, History};
use crate::properties::FileUse;
use crate::schema::find_column;

const PREFIX: &str = "delta.constraints.";

fn key(draft: &Draft<'_>, name: &str) -> Option<String> {
    let wanted = format!("{PREFIX}{name}").to_lowercase();
    draft.configuration.keys().find(|key| key.to_lowercase() == wanted).cloned()
}

pub(super) fn add(
    draft: &mut Draft<'_>,
    name: &str,
    check: &str,
    condition: Option<&Expr>,
    rows_are_judged: bool,
) -> Result<History> {
    if let Some(old) = key(draft, name).and_then(|key| draft.configuration.get(&key)) {
        return Err(Error::usage(format!(
            "Constraint '{name}' already exists. Please delete the old constraint first.\nOld constraint:\n{old}"
        ))
        .class("DELTA_CONSTRAINT_ALREADY_EXISTS")
        .with("constraint", name));
    }
    let state = &draft.table.state;
    let judged = match condition {
        Some(condition) => check_condition(state, name, check, condition, draft.world.now_ms()),
        None => return Err(not_read(name, check)),
    };
    match judged {
        Err(error) if rows_are_judged && error.kind() == ErrorKind::Unsupported => {}
        judged => judged?,
    }
    if !state.files.is_empty() && !rows_are_judged {
        return Err(needs_engine(name, "the rows that are there have to satisfy it"));
    }
    draft.configuration.insert(format!("{PREFIX}{}", name.to_lowercase()), check.to_owned());
    draft.features.insert("checkConstraints");
    draft.files = FileUse::Read;
    Ok(History::new("ADD CONSTRAINT", vec![("name", name.into()), ("expr", check.into())]))
}

fn needs_engine(name: &str, why: &str) -> Error {
    Error::unsupported(format!(
        "adding the constraint {} needs the query engine: {why}; nothing was changed. Use Spark for it, or add it while \
         the table is empty",
        reference_name(&[name.to_owned()])
    ))
    .class("UNSUPPORTED_FEATURE")
    .with("constraint", name)
}

/// A condition that can't be looked through might be one that no writer can check: every later write would fail.
fn not_read(name: &str, check: &str) -> Error {
    Error::unsupported(format!(
        "the condition of the constraint {} is more than Lakesmith reads, so it can't be told whether writers could check \
         it (subqueries and aggregates can't be): {check}; nothing was changed. Write it with columns, literals, operators \
         and plain functions, or use Spark for it",
        reference_name(&[name.to_owned()])
    ))
    .class("UNSUPPORTED_FEATURE")
    .with("constraint", name)
}

/// Columns exist, types fit, and the whole is true or false.
fn check_condition(state: &TableState, name: &str, check: &str, condition: &Expr, now_ms: i64) -> Result<()> {
    let is_plain =
        |of: &DataType| !matches!(of, DataType::Struct(_) | DataType::List(_) | DataType::Map(..) | DataType::Variant);
    let fields = state.schema.fields.iter();
    let columns: Vec<String> = fields.filter(|f| is_plain(&f.data_type)).map(|f| f.name.clone()).collect();
    let Err(error) = bind_partition_predicate(condition, &state.schema, &columns, now_ms) else { return Ok(()) };
    match error.class_name() {
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN" => {
            Err(Error::usage(format!("CHECK constraint '{name}' ({check}) should be a boolean expression."))
                .class("DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"))
        }
        "DELTA_NON_PARTITION_COLUMN_REFERENCE" => {
            let column = error.context_value("column").unwrap_or_default().to_owned();
            let path: Vec<String> = column.split('.').map(str::to_owned).collect();
            if find_column(&state.schema, &path).is_some() {
                return Err(needs_engine(name, "it looks into a nested column"));
            }
            Err(unresolved(&state.schema.fields, &path))
        }
        "UNRESOLVED_ROUTINE" => {
            Err(needs_engine(name, "it calls a function that only the engine knows").caused_by(error))
        }
        _ => Err(error.with("constraint", name)),
    }
}

pub(super) fn remove(draft: &mut Draft<'_>, name: &str, if_exists: bool) -> Result<History> {
    let old = key(draft, name).and_then(|key| draft.configuration.remove(&key));
    let mut parameters = vec![("name", Value::from(name))];
    match old {
        Some(check) => parameters.extend([("expr", check.into()), ("existed", "true".into())]),
        None if if_exists => parameters.push(("existed", "false".into())),
        None => {
            return Err(Error::usage(format!(
                "Cannot drop nonexistent constraint {name} from table {}. To avoid throwing an error, provide the \
                 parameter IF EXISTS.",
                draft.table.state.location
            ))
            .class("DELTA_CONSTRAINT_DOES_NOT_EXIST")
            .with("constraint", name));
        }
    }
    Ok(History::new("DROP CONSTRAINT", parameters))
}
