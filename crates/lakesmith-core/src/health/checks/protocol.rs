//! Protocol, schema and properties.

use serde_json::json;

use super::{Subject, days, finding, plural};
use crate::op::health::{Finding, Severity};
use crate::table::{DataType, Field};

const WEEK_MS: i64 = 7 * 86_400_000;
const DAY_MS: i64 = 86_400_000;

/// Features that forbid us to maintain the table.
pub(super) fn blocked(s: &Subject<'_>) -> Option<Finding> {
    let (reason, features) = s.facts.blocked.as_ref()?;
    let evidence = json!({
        "features": features,
        "min_reader_version": s.state.min_reader_version,
        "min_writer_version": s.state.min_writer_version,
    });
    Some(finding("maintenance-blocked", Severity::Warning, 10.0, reason.clone(), evidence))
}

/// Files written under an older schema: columns that were dropped or widened since.
pub(super) fn schema_debt(s: &Subject<'_>) -> Option<Finding> {
    let mut widened = Vec::new();
    let mut ids = 0;
    for field in &s.state.schema.fields {
        walk(field, "", &mut widened, &mut ids);
    }
    let highest = s.state.property("delta.columnMapping.maxColumnId").and_then(|v| v.trim().parse::<u64>().ok());
    let dropped = highest.filter(|_| ids > 0).map_or(0, |highest| highest.saturating_sub(ids));
    if s.files() == 0 || (widened.is_empty() && dropped == 0) {
        return None;
    }
    let mut parts = Vec::new();
    if dropped > 0 {
        parts.push(format!(
            "{} dropped since the table began: older files may still hold their values",
            plural_columns(dropped)
        ));
    }
    if !widened.is_empty() {
        parts.push(format!(
            "{} of a widened type ({}): older files are converted at every read",
            plural_columns(widened.len() as u64),
            widened.join(", ")
        ));
    }
    let mut found = finding(
        "schema-debt",
        Severity::Info,
        0.0,
        parts.join("; "),
        json!({"dropped_columns": dropped, "widened_columns": widened}),
    );
    if dropped > 0 {
        found.command = s.cure.purge();
    }
    Some(found)
}

fn plural_columns(number: u64) -> String {
    format!("{} {}", plural(number, "column"), if number == 1 { "was" } else { "were" })
}

fn walk(field: &Field, parent: &str, widened: &mut Vec<String>, ids: &mut u64) {
    let name = if parent.is_empty() { field.name.clone() } else { format!("{parent}.{}", field.name) };
    *ids += u64::from(field.id.is_some());
    if field.metadata.contains_key("delta.typeChanges") {
        widened.push(name.clone());
    }
    match &field.data_type {
        DataType::Struct(fields) => fields.iter().for_each(|f| walk(f, &name, widened, ids)),
        DataType::List(element) => walk(element, &name, widened, ids),
        DataType::Map(key, value) => {
            walk(key, &name, widened, ids);
            walk(value, &name, widened, ids);
        }
        _ => {}
    }
}

/// A retention so short that running queries and time travel are at risk.
pub(super) fn short_retention(s: &Subject<'_>) -> Option<Finding> {
    let retention_ms = s.facts.tombstones.map(|t| t.retention_ms).filter(|ms| *ms < WEEK_MS)?;
    let risky = retention_ms < DAY_MS;
    let severity = if risky { Severity::Warning } else { Severity::Info };
    let message = format!(
        "removed files are kept for {} only (delta.deletedFileRetentionDuration): a VACUUM may take them from queries \
         and writers that still run",
        days(retention_ms),
    );
    Some(finding(
        "short-retention",
        severity,
        if risky { 5.0 } else { 1.0 },
        message,
        json!({"retention_ms": retention_ms}),
    ))
}
