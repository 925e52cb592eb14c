//! DELETE, and where the rows lie that a condition takes away.

use std::collections::HashMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::{
    Expr as Sql, ObjectName, Query as Ast, SetExpr, TableAlias, TableFactor, TableVersion, Value,
};
use futures::StreamExt as _;
use lakesmith::op::TimeTravel;
use lakesmith::table::{DeletionVector, FileId, MarkedFile};
use lakesmith::{Error, QueryRows, Result, RowChange};
use serde_json::Value as Json;

use super::Running;
use crate::query::Prepared;
use crate::statement::{Delete, ELSEWHERE, Kind, has_subquery, parse_at, table_ref};

/// Runs the statement.
///
/// # Errors
/// Usage with Spark's classes for a condition that means nothing, conflicts, those of the storage.
pub(crate) fn delete(
    running: Running<'_>,
    delete: &Delete,
    each: &mut dyn FnMut(QueryRows) -> Result<()>,
) -> Result<()> {
    let session = running.session;
    let table = session.open_table(&table_ref(&delete.table), TimeTravel::Latest)?;
    let change = RowChange::of(session, &table)?;
    change.check_takes_deletes()?;
    let condition = delete.condition.as_ref();
    if let Some(condition) = condition.filter(|c| has_subquery(&c.expr)) {
        return Err(change.no_subquery(&condition.text));
    }
    let touched = change.touched(condition.map(|c| c.text.as_str()))?;
    let marked = match (&touched.whole, condition) {
        (None, Some(condition)) => {
            rows_that_meet(running, &change, &delete.table, delete.alias.as_ref(), &condition.expr)?
        }
        _ => Vec::new(),
    };
    let (rows, _) = change.delete(condition.map(|c| c.text.as_str()), touched, marked)?;
    each(QueryRows {
        columns: vec!["num_affected_rows".to_owned()],
        rows: vec![vec![Json::from(rows.map_or(-1, |rows| i64::try_from(rows).unwrap_or(i64::MAX)))]],
        scans: Default::default(),
    })
}

/// The rows of the table, as `change` knows it, for which the condition is true.
pub(super) fn rows_that_meet(
    running: Running<'_>,
    change: &RowChange<'_>,
    name: &ObjectName,
    alias: Option<&TableAlias>,
    condition: &Sql,
) -> Result<Vec<MarkedFile>> {
    let Running { session, runtime, views, parsed: statement } = running;
    let text = "SELECT _metadata.file_path AS f, _metadata.row_index AS r FROM t WHERE true";
    // Its own names must not be taken for names of the statement, which are known by their places.
    let parsed = parse_at(text, ELSEWHERE)?;
    let Kind::Query(template) = &parsed.kind else { return Err(Error::internal("a query is none")) };
    let mut query: Ast = (**template).clone();
    let SetExpr::Select(select) = &mut *query.body else { return Err(Error::internal("a query is no SELECT")) };
    select.selection = Some(condition.clone());
    for from in &mut select.from {
        if let TableFactor::Table { name: table, alias: called, version, .. } = &mut from.relation {
            *table = name.clone();
            *called = alias.cloned();
            let number = Value::Number(change.state().version.to_string(), false);
            *version = Some(TableVersion::VersionAsOf(Sql::Value(number.into())));
        }
    }
    let files = change.files_by_path()?;
    let prepared = Prepared::new(session, runtime, views, &mut query, statement)?;
    let planned = prepared.plan(runtime)?;
    let mut found: HashMap<FileId, DeletionVector> = HashMap::new();
    runtime.block_on(async {
        let mut stream = execute_stream(planned.physical(), planned.task_ctx()).map_err(|e| planned.failed(e))?;
        while let Some(batch) = stream.next().await {
            session.cancel().check()?;
            let batch = batch.map_err(|e| planned.failed(e))?;
            let (paths, rows) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
            let mut at = 0;
            while at < batch.num_rows() {
                let path = paths.value(at);
                let end = (at..batch.num_rows()).find(|row| paths.value(*row) != path).unwrap_or(batch.num_rows());
                let id = files.get(path).ok_or_else(|| {
                    Error::internal("a row lies in a file that is not the table's").with("path", path)
                })?;
                let positions = rows.values()[at..end].iter().map(|row| u64::try_from(*row).unwrap_or(u64::MAX));
                found.entry(*id).or_default().extend(positions);
                at = end;
            }
            if paths.null_count() + rows.null_count() > 0 {
                return Err(Error::internal("a row does not know where it lies"));
            }
        }
        Ok(())
    })?;
    let mut marked = Vec::with_capacity(found.len());
    for (file, rows) in found {
        marked.push(MarkedFile { file, rows, physical_rows: change.physical_rows(file)? });
    }
    marked.sort_by_key(|m| m.file);
    Ok(marked)
}
