//! The rows of a source as rows of the table: cast, completed and checked, each step a query over the one before.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use datafusion::catalog::TableProvider;
use datafusion::common::Result as PlanResult;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use lakesmith::table::Field as TableField;
use lakesmith::{Result, RowChange, RowRules, TextLength};

use super::columns::Given;
use super::numbering::Numbers;
use crate::planner::Tables;
use crate::query::plan_text;
use crate::read::arrow_field;

/// What rows on their way are called.
const ROWS: &str = "__lakesmith_new_rows";

/// A condition of the rows, as a column behind the table's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Name of the rule.
    pub name: String,
    /// The rule in SQL.
    pub sql: String,
    /// What breaks it.
    pub kind: Kind,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A condition of the table.
    Constraint,
    /// The length of a text.
    Length(u32),
    /// A condition of the statement: REPLACE WHERE.
    Replaced,
}

/// Rows of the table, with one more column for each check.
pub(super) struct Filled {
    pub plan: LogicalPlan,
    pub checks: Vec<Check>,
    /// Numbers that identity columns give while it runs.
    pub numbered: Vec<Arc<Numbers>>,
}

/// Plans the rows that `source` gives as rows of the table of `change`. `replaced`: a condition that each must meet.
pub(super) fn fill(
    context: &SessionContext,
    change: &RowChange<'_>,
    rules: &RowRules,
    source: LogicalPlan,
    given: &[Given],
    replaced: Option<&str>,
) -> Result<Filled> {
    let failed = |e| crate::failure::translate(e, &str::to_owned);
    let fields = &change.schema().fields;
    let types: Vec<DataType> =
        fields.iter().map(|field| Ok(arrow_field(field)?.data_type().clone())).collect::<Result<_>>()?;
    // Values that were given, and constants.
    let columns = source.schema().columns();
    let numbered = columns.into_iter().enumerate().map(|(i, c)| Expr::Column(c).alias(format!("c{i}")));
    let source = LogicalPlanBuilder::from(source).project(numbered).and_then(|b| b.build()).map_err(failed)?;
    let item = |(given, place): (&Given, usize)| match given {
        Given::Source(at) => Some((place, format!("`c{at}`"))),
        Given::Sql(sql) => Some((place, format!("({sql})"))),
        Given::Generated(_) | Given::Numbered => None,
    };
    let items: Vec<(usize, String)> = given.iter().zip(0..).filter_map(item).collect();
    let places: Vec<usize> = items.iter().map(|(place, _)| *place).collect();
    let list: Vec<String> =
        items.iter().map(|(place, sql)| format!("{sql} AS {}", quoted(&fields[*place].name))).collect();
    let known = step(context, source, &list.join(", "))?;
    let known = cast(known, &places.iter().map(|p| types[*p].clone()).collect::<Vec<_>>()).map_err(failed)?;
    let numbered: Vec<Arc<Numbers>> = given
        .iter()
        .enumerate()
        .filter(|(_, given)| **given == Given::Numbered)
        .filter_map(|(place, _)| rules.identity.iter().find(|(at, _)| *at == place))
        .map(|(place, identity)| Numbers::new(*place, *identity))
        .collect();
    let known = number(known, fields, &numbered).map_err(failed)?;
    // Values that follow from them.
    let list: Vec<String> = given
        .iter()
        .zip(fields)
        .zip(0..)
        .map(|((given, field), place)| {
            let name = quoted(&field.name);
            let padded = rules.lengths.iter().find(|(at, _)| *at == place);
            match (given, padded) {
                (Given::Generated(sql), _) => format!("({sql}) AS {name}"),
                (_, Some((_, TextLength::Char(n)))) => {
                    format!("CASE WHEN length({name}) < {n} THEN rpad({name}, {n}, ' ') ELSE {name} END AS {name}")
                }
                _ => name,
            }
        })
        .collect();
    let whole = step(context, known, &list.join(", "))?;
    let whole = cast(whole, &types).map_err(failed)?;
    let checks = checks(change, rules, given, replaced);
    if checks.is_empty() {
        return Ok(Filled { plan: whole, checks, numbered });
    }
    let mut list: Vec<String> = fields.iter().map(|f| quoted(&f.name)).collect();
    list.extend(
        checks.iter().enumerate().map(|(i, check)| format!("coalesce(({}), false) AS `{ROWS}_{i}`", check.sql)),
    );
    let plan = step(context, whole, &list.join(", "))?;
    Ok(Filled { plan, checks, numbered })
}

fn checks(change: &RowChange<'_>, rules: &RowRules, given: &[Given], replaced: Option<&str>) -> Vec<Check> {
    let fields = &change.schema().fields;
    let constraint = |name: String, sql: String| Check { name, sql, kind: Kind::Constraint };
    let mut checks: Vec<Check> =
        rules.checks.iter().map(|check| constraint(check.name.clone(), check.sql.clone())).collect();
    for (place, sql) in &rules.generated {
        if !matches!(given[*place], Given::Generated(_)) {
            checks.push(constraint(
                "Generated Column".to_owned(),
                format!("{} <=> ({sql})", quoted(&fields[*place].name)),
            ));
        }
    }
    for (place, length) in &rules.lengths {
        let (TextLength::Char(n) | TextLength::Varchar(n)) = *length;
        let name = quoted(&fields[*place].name);
        checks.push(Check {
            name: fields[*place].name.clone(),
            sql: format!("{name} IS NULL OR length({name}) <= {n}"),
            kind: Kind::Length(n),
        });
    }
    checks.extend(replaced.map(|sql| Check {
        name: "REPLACE WHERE".to_owned(),
        sql: sql.to_owned(),
        kind: Kind::Replaced,
    }));
    checks
}

/// `SELECT list` over the rows.
fn step(context: &SessionContext, rows: LogicalPlan, list: &str) -> Result<LogicalPlan> {
    let rows: Arc<dyn TableProvider> = Arc::new(ViewTable::new(rows, None));
    let tables = Tables::from([(ROWS.to_owned(), rows)]);
    plan_text(context, &tables, &format!("SELECT {list} FROM `{ROWS}`"))
}

/// The rows with their numbers.
fn number(plan: LogicalPlan, fields: &[TableField], numbered: &[Arc<Numbers>]) -> PlanResult<LogicalPlan> {
    if numbered.is_empty() {
        return Ok(plan);
    }
    let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    columns.extend(numbered.iter().map(|n| n.expression().alias(fields[n.place].name.to_lowercase())));
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The columns of `plan` in these types.
fn cast(plan: LogicalPlan, types: &[DataType]) -> PlanResult<LogicalPlan> {
    let columns = plan.schema().columns();
    let same = plan.schema().fields().iter().zip(types).all(|(field, to)| field.data_type() == to);
    if same {
        return Ok(plan);
    }
    let held: Vec<DataType> = plan.schema().fields().iter().map(|f| f.data_type().clone()).collect();
    let casts = columns.into_iter().zip(held).zip(types).map(|((column, from), to)| {
        let name = column.name.clone();
        let expr = Expr::Column(column);
        let to = named_like(to, &from);
        if from == to { expr } else { Expr::Cast(Cast::new(Box::new(expr), to)).alias(name) }
    });
    LogicalPlanBuilder::from(plan).project(casts.collect::<Vec<_>>())?.build()
}

/// The type `to` with the names of `from` for the fields inside of it, which go by their place.
fn named_like(to: &DataType, from: &DataType) -> DataType {
    let field = |to: &Field, from: &Field| {
        Field::new(from.name(), named_like(to.data_type(), from.data_type()), true)
            .with_metadata(from.metadata().clone())
            .with_nullable(from.is_nullable())
    };
    match (to, from) {
        (DataType::Struct(to), DataType::Struct(from)) if to.len() == from.len() => {
            DataType::Struct(to.iter().zip(from).map(|(to, from)| field(to, from)).collect::<Fields>())
        }
        (DataType::List(to), DataType::List(from)) => DataType::List(Arc::new(field(to, from))),
        (DataType::Map(to, sorted), DataType::Map(from, _)) => DataType::Map(Arc::new(field(to, from)), *sorted),
        _ => to.clone(),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
