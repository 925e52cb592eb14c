//! ALTER TABLE of columns and constraints.

use lakesmith_core::op::{AlterTable, Report, TableChange, TimeTravel};
use lakesmith_core::table::OperationInfo;
use lakesmith_core::{Error, Result};
use lakesmith_sql::Span;
use lakesmith_storage::{Location, Store};

use super::load;
use super::properties::commit;
use crate::{Query, QueryEngine, Session};

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &AlterTable) -> Result<Report> {
    // Whether a constraint holds is a question to the rows.
    let with_files = matches!(options.change, TableChange::AddConstraint { .. });
    let table = load(session, store, root, TimeTravel::Latest, with_files)?;
    lakesmith_delta::check_writable(&table)?;
    let world = session.options.world.as_ref();
    let engine = session.options.engine.as_deref();
    let Some(altered) = lakesmith_delta::alter_table(&table, &options.change, engine.is_some(), world)? else {
        return Ok(Report::Done { version: table.state.version });
    };
    if let (TableChange::AddConstraint { name, check, .. }, Some(engine)) = (&options.change, engine) {
        let violations = violations(session, engine, root, table.state.version, check)?;
        if violations > 0 {
            return Err(Error::usage(format!(
                "{violations} rows in {root} violate the new CHECK constraint ({check})"
            ))
            .class("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION")
            .with("constraint", name)
            .with("path", root));
        }
    }
    let operation = OperationInfo {
        name: altered.operation.into(),
        parameters: altered.parameters,
        user_metadata: options.user_metadata.clone(),
    };
    commit(session, store, root, &table, altered.configuration, operation).map(|version| Report::Done { version })
}

/// Rows of the version for which the condition is not true; as in Delta, one that is NULL is violated.
fn violations(session: &Session, engine: &dyn QueryEngine, root: &Location, version: u64, check: &str) -> Result<u64> {
    let table = root.to_string().replace('`', "``");
    let text =
        format!("SELECT count(*) FROM delta.`{table}` VERSION AS OF {version} WHERE NOT coalesce(({check}), false)");
    let end = text.len();
    let span = Span { line: 1, column: 1, end_line: 1, end_column: end as u64 + 1, start: 0, end };
    let mut counted = None;
    engine.run(session, Query { text: &text, span }, &mut |part| {
        counted = part.rows.first().and_then(|row| row.first()).and_then(serde_json::Value::as_u64).or(counted);
        Ok(())
    })?;
    counted.ok_or_else(|| Error::internal("the query engine did not count the rows that violate a constraint"))
}
