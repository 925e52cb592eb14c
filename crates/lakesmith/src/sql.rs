//! Runs SQL text: statements in order, in one session.

use std::sync::Arc;

use lakesmith_core::op::{Operation, Report};
use lakesmith_core::{Error, Result};
use lakesmith_sql::{Statement, StatementKind, TableRef};
use serde_json::Value;

use crate::catalog::statements;
use crate::rows::{Rows, sql_rows};
use crate::{Query, QueryRows, ScanReport, Session, ops, run};

/// Result of one statement.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlResult {
    /// The statement's text.
    pub statement: String,
    /// Columns, in order; none for statements without a result.
    pub columns: Vec<String>,
    /// Rows; numbers, strings, booleans, nulls, arrays (ARRAY) and objects (STRUCT, MAP).
    pub rows: Vec<Vec<Value>>,
    /// The full report behind the rows, for operations on tables.
    pub report: Option<Report>,
    /// True if the rows go on where those of the result before ended: large results come in parts.
    pub continues: bool,
    /// What a query's scans skipped and read.
    pub scans: Arc<[ScanReport]>,
}

pub(crate) fn run(session: &mut Session, text: &str, each: &mut dyn FnMut(SqlResult) -> Result<()>) -> Result<()> {
    // Everything is parsed before anything runs: a typo in the last statement must not leave half a script done.
    for statement in lakesmith_sql::parse(text)? {
        session.options.cancel.check()?;
        let placed =
            |e: Error| e.with("statement_line", statement.span.line).with("statement_column", statement.span.column);
        match &statement.kind {
            StatementKind::Query { text } => run_query(session, &statement, text, each).map_err(placed)?,
            _ => each(run_statement(session, &statement).map_err(placed)?)?,
        }
    }
    Ok(())
}

fn run_statement(session: &mut Session, statement: &Statement) -> Result<SqlResult> {
    let (rows, report) = match &statement.kind {
        StatementKind::Table { table, op } => {
            let operation = lakesmith_sql::to_operation(op, &session.settings)?;
            let report = match (operation, table) {
                (Operation::CreateTable(options), TableRef::Name(parts)) => {
                    ops::create_table::by_name(session, parts, &options, None)?
                }
                (operation, _) => run::run(session, &session.target(table)?, operation)?,
            };
            (sql_rows(&report, session.settings.extended_columns())?, Some(report))
        }
        StatementKind::Catalog(statement) => (statements::run(session, statement)?, None),
        StatementKind::Set { key, value } => (set(session, key.as_deref(), value.as_deref())?, None),
        StatementKind::Reset { key } => {
            session.settings.reset(key.as_deref());
            (Rows::default(), None)
        }
        StatementKind::Query { .. } => return Err(Error::internal("a query is run by an engine")),
    };
    Ok(SqlResult {
        statement: statement.text.clone(),
        columns: rows.columns,
        rows: rows.rows,
        report,
        continues: false,
        scans: Arc::default(),
    })
}

fn run_query(
    session: &Session,
    statement: &Statement,
    text: &str,
    each: &mut dyn FnMut(SqlResult) -> Result<()>,
) -> Result<()> {
    let Some(engine) = &session.options.engine else {
        return Err(Error::unsupported(
            "this build has no query engine: OPTIMIZE, REORG, VACUUM, DESCRIBE, SHOW, CREATE and DROP of databases and \
             tables, ALTER TABLE, USE, SET and RESET are available",
        )
        .class("UNSUPPORTED_FEATURE"));
    };
    let mut continues = false;
    engine.run(session, Query { text, span: statement.span }, &mut |part| {
        session.options.cancel.check()?;
        let QueryRows { columns, rows, scans } = part;
        each(SqlResult { statement: statement.text.clone(), columns, rows, report: None, continues, scans })?;
        continues = true;
        Ok(())
    })
}

/// `SET k = v`, `SET k` and `SET`; each answers key and value.
fn set(session: &mut Session, key: Option<&str>, value: Option<&str>) -> Result<Rows> {
    let columns = vec!["key".to_string(), "value".to_string()];
    let row = |k: &str, v: &str| vec![Value::from(k), Value::from(lakesmith_sql::shown(k, v))];
    let rows = match (key, value) {
        (Some(key), Some(value)) => {
            session.settings.set(key, value)?;
            if session.settings.is_fixed(key) {
                let in_force = session.settings.get(key).map(|v| lakesmith_sql::shown(key, v));
                tracing::warn!(key, in_force, "SET has no effect: a flag or a LAKESMITH_* variable wins over it");
            }
            vec![row(key, value)]
        }
        (Some(key), None) => vec![row(key, session.settings.get(key).unwrap_or("<undefined>"))],
        (None, _) => session.settings.iter().map(|(k, v)| row(k, v)).collect(),
    };
    Ok(Rows { columns, rows })
}
