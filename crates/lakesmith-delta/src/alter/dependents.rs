//! What stands in the way of a change: constraints and generated columns that read the column, keys that it is.

use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};

use super::Draft;
use super::mentions::mentions;

const CONSTRAINTS: &str = "delta.constraints.";
const GENERATED: &str = "delta.generationExpression";
const INVARIANTS: &str = "delta.invariants";

/// Refuses a change of a column that a constraint or a generated column reads.
pub(super) fn check_expressions(draft: &Draft<'_>, path: &[String]) -> Result<()> {
    let named = |key: &String| key.to_lowercase().starts_with(CONSTRAINTS);
    let mut constraints: Vec<(String, String)> = draft
        .configuration
        .iter()
        .filter(|(key, check)| named(key) && mentions(check, path))
        .map(|(key, check)| (key.clone(), check.clone()))
        .collect();
    let (mut generated, mut invariants) = (Vec::new(), Vec::new());
    collect(&draft.fields, &mut |field| {
        if let Some(expression) = text(field, GENERATED).filter(|e| mentions(e, path)) {
            generated.push((field.name.clone(), expression));
        }
        if let Some(expression) = text(field, INVARIANTS).filter(|e| mentions(e, path)) {
            invariants.push((field.name.clone(), expression));
        }
    });
    constraints.append(&mut invariants);
    for (found, what, class) in [
        (constraints, "check constraint(s)", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (generated, "generated column(s)", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
    ] {
        if !found.is_empty() {
            let list: Vec<String> = found.iter().map(|(name, expression)| format!("{name} -> {expression}")).collect();
            return Err(Error::usage(format!(
                "Cannot alter column {} because this column is referenced by the following {what}:\n{}",
                path.join("."),
                list.join("\n")
            ))
            .class(class)
            .with("column", path.join(".")));
        }
    }
    Ok(())
}

/// Refuses to drop what the files are laid out by.
pub(super) fn check_no_key(draft: &Draft<'_>, paths: &[Vec<String>]) -> Result<()> {
    let names = |found: Vec<&Vec<String>>| found.iter().map(|p| p.join(".")).collect::<Vec<_>>().join(",");
    let is_partition = |path: &&Vec<String>| path.len() == 1 && draft.partition_columns.contains(&path[0]);
    let partitions: Vec<&Vec<String>> = paths.iter().filter(is_partition).collect();
    if !partitions.is_empty() {
        return Err(Error::usage(format!("Dropping partition columns ({}) is not allowed.", names(partitions)))
            .class("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"));
    }
    let keys = draft.table.state.clustering_columns.clone().unwrap_or_default();
    let is_key = |path: &&Vec<String>| keys.iter().any(|key| key.starts_with(path));
    let clustering: Vec<&Vec<String>> = paths.iter().filter(is_key).collect();
    if !clustering.is_empty() {
        return Err(Error::usage(format!("Dropping clustering columns ({}) is not allowed.", names(clustering)))
            .class("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"));
    }
    Ok(())
}

fn text(field: &Field, key: &str) -> Option<String> {
    serde_json::from_str(field.metadata.get(key)?).ok()
}

fn collect(fields: &[Field], look: &mut impl FnMut(&Field)) {
    for field in fields {
        look(field);
        if let DataType::Struct(inner) = &field.data_type {
            collect(inner, look);
        }
    }
}
