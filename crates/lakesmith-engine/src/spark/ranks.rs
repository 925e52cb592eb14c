//! Numbers of rows and ranks are INT.
//!
//! # Source
//! Spark `RowNumberLike.dataType`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, Projection};

const RANKS: [&str; 4] = ["dense_rank", "ntile", "rank", "row_number"];

fn is_rank(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_rank(&alias.expr),
        Expr::WindowFunction(window) => {
            matches!(&window.fun, WindowFunctionDefinition::WindowUDF(f) if RANKS.contains(&f.name()))
        }
        _ => false,
    }
}

/// The plan with its ranks as INT.
pub(super) fn ranks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Window(window) = &plan else { return Ok(plan) };
    if !window.window_expr.iter().any(is_rank) {
        return Ok(plan);
    }
    let first = window.schema.fields().len() - window.window_expr.len();
    let columns = window.schema.iter().enumerate().map(|(index, (qualifier, field))| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match index.checked_sub(first).and_then(|at| window.window_expr.get(at)) {
            Some(expr) if is_rank(expr) => Expr::Cast(Cast::new(Box::new(column), DataType::Int32))
                .alias_qualified(qualifier.cloned(), field.name()),
            _ => column,
        }
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
