//! INSERT INTO, INSERT OVERWRITE and INSERT INTO … REPLACE WHERE.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::sql::sqlparser::ast::{Expr as Sql, SetExpr};
use lakesmith::op::TimeTravel;
use lakesmith::{Error, Replaced, Result, RowChange, RowRules};

use super::columns::{Given, assign};
use super::fill::fill;
use super::spread::Spread;
use super::{Running, delete, in_insert, sink};
use crate::query::Prepared;
use crate::statement::{Files, Insert, RowsBefore, table_ref};

/// Runs the statement.
///
/// # Errors
/// Usage with Spark's classes for rows that the table does not take, conflicts, those of the query and of the storage.
pub(crate) fn insert(running: Running<'_>, insert: &Insert) -> Result<()> {
    let Running { session, runtime, views, parsed } = running;
    let table = session.open_table(&table_ref(&insert.table), TimeTravel::Latest)?;
    let mut change = RowChange::of(session, &table)?;
    let rules = change.rules();
    let mut source = (*insert.source).clone();
    put_defaults(&mut source.body, &change, &rules, insert);
    let prepared = Prepared::new(session, runtime, views, &mut source, parsed)?;
    let (names, logical) = prepared.logical()?;
    let given = assign(&change, &rules, insert, &names)?;
    let condition = match &insert.rows_before {
        RowsBefore::GoWhere(condition) => Some(condition.text.as_str()),
        RowsBefore::Stay | RowsBefore::Go => None,
    };
    let filled = fill(prepared.context(), &change, &rules, logical, &given, condition)?;
    let physical = prepared.physical(runtime, &filled.plan).map_err(in_insert)?;
    let reads_itself = prepared.reads(table.root());
    let (physical, writers, spread) = laid_out(&change, physical, parsed.files)?;
    let task = prepared.context().task_ctx();
    let added = sink::write(runtime, &change, &physical, &task, (writers, spread), &filled.checks)?;
    let replaced = replaced(running, &change, insert, &given)?;
    let numbered: Vec<(usize, u64)> = filled.numbered.iter().map(|n| (n.place, n.count())).collect();
    change.note_numbers(&numbered)?;
    change.insert(added, replaced, reads_itself)?;
    Ok(())
}

/// What becomes of the rows that were there.
fn replaced(running: Running<'_>, change: &RowChange<'_>, insert: &Insert, given: &[Given]) -> Result<Replaced> {
    let within = |condition: String, expr: &Sql| -> Result<Replaced> {
        let touched = change.touched(Some(&condition))?;
        let marked = match &touched.whole {
            None => delete::rows_that_meet(running, change, &insert.table, None, expr)?,
            Some(_) => Vec::new(),
        };
        Ok(Replaced::Where { condition, touched, marked })
    };
    match &insert.rows_before {
        RowsBefore::Stay => Ok(Replaced::Nothing),
        RowsBefore::GoWhere(condition) => within(condition.text.clone(), &condition.expr),
        RowsBefore::Go => {
            let fields = &change.schema().fields;
            let fixed: Vec<String> = insert
                .partition
                .iter()
                .filter_map(|(column, value)| {
                    let at = fields.iter().position(|f| f.name.to_lowercase() == column.value)?;
                    value.as_ref()?;
                    match &given[at] {
                        Given::Sql(sql) => Some(format!("`{}` <=> ({sql})", fields[at].name.replace('`', "``"))),
                        Given::Source(_) | Given::Generated(_) | Given::Numbered => None,
                    }
                })
                .collect();
            let dynamic = running.session.settings().get("spark.sql.sources.partitionOverwriteMode");
            let dynamic = dynamic.is_some_and(|mode| mode.eq_ignore_ascii_case("dynamic"));
            if dynamic && !change.state().partition_columns.is_empty() {
                return Ok(Replaced::Partitions);
            }
            if fixed.is_empty() {
                return Ok(Replaced::Everything);
            }
            let condition = fixed.join(" AND ");
            let expr = crate::statement::parse_expression(&condition)?;
            within(condition, &expr)
        }
    }
}

/// DEFAULT among the values of VALUES stands for the column's default value.
fn put_defaults(body: &mut SetExpr, change: &RowChange<'_>, rules: &RowRules, insert: &Insert) {
    let SetExpr::Values(values) = body else { return };
    let fields = &change.schema().fields;
    let place = |index: usize| match &insert.columns {
        Some(columns) => {
            let name = columns.get(index)?.value.to_lowercase();
            fields.iter().position(|f| f.name.to_lowercase() == name)
        }
        None => Some(index),
    };
    for row in &mut values.rows {
        for (index, value) in row.iter_mut().enumerate() {
            let is_default =
                matches!(value, Sql::Identifier(ident) if ident.quote_style.is_none() && ident.value == "default");
            if is_default {
                let default = rules.defaults.iter().find(|(at, _)| Some(*at) == place(index));
                let parsed = default.and_then(|(_, sql)| crate::statement::parse_expression(sql).ok());
                *value = parsed.unwrap_or_else(|| Sql::Value(datafusion::sql::sqlparser::ast::Value::Null.into()));
            }
        }
    }
}

/// The plan with its rows where their writers want them: how many writers, and how rows come to them.
pub(super) fn laid_out(
    change: &RowChange<'_>,
    plan: Arc<dyn ExecutionPlan>,
    files: Option<Files>,
) -> Result<(Arc<dyn ExecutionPlan>, usize, Spread)> {
    let failed = |e| crate::failure::translate(e, &str::to_owned);
    let count = plan.properties().partitioning.partition_count().max(1);
    let state = change.state();
    if state.partition_columns.is_empty() {
        return Ok(match files {
            Some(Files::Exactly(n)) => (plan, n, Spread::Rows),
            Some(Files::AtMost(n)) => (plan, n.min(count), Spread::Partitions),
            None => (plan, count, Spread::Partitions),
        });
    }
    let columns = state.partition_columns.iter().map(|name| col(&name.to_lowercase(), plan.schema().as_ref()));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let order = columns.iter().cloned().map(|expr| PhysicalSortExpr { expr, options: SortOptions::default() });
    let order =
        LexOrdering::new(order).ok_or_else(|| Error::internal("a partitioned table without partition columns"))?;
    if let Some(Files::Exactly(n)) = files {
        // Rows go round in their final order, so that each writer has its share of every partition, and one at a time.
        let plan = match count {
            1 => plan,
            _ => Arc::new(CoalescePartitionsExec::new(plan)),
        };
        return Ok((Arc::new(SortExec::new(order, plan)), n, Spread::Rows));
    }
    let partitioning = match files {
        Some(Files::AtMost(n)) if n < count => Some(Partitioning::RoundRobinBatch(n)),
        Some(_) => None,
        // All rows of a partition into one file.
        None => (count > 1).then(|| Partitioning::Hash(columns, count)),
    };
    let plan: Arc<dyn ExecutionPlan> = match partitioning {
        Some(partitioning) => Arc::new(RepartitionExec::try_new(plan, partitioning).map_err(failed)?),
        None => plan,
    };
    let count = plan.properties().partitioning.partition_count().max(1);
    let plan: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(order, plan).with_preserve_partitioning(true));
    Ok((plan, count, Spread::Partitions))
}
