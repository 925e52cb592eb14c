//! Sums of BIGINT that fail rather than wrap: they are taken in wider numbers and turned back.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, LogicalPlan, Projection};

use super::casts::{Conversion, convert};

const WIDE: DataType = DataType::Decimal128(38, 0);

/// The plan with its sums checked.
pub(crate) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut aggregates, input) = match &plan {
        LogicalPlan::Aggregate(aggregate) => (aggregate.aggr_expr.clone(), &aggregate.input),
        LogicalPlan::Window(window) => (window.window_expr.clone(), &window.input),
        _ => return Ok(plan),
    };
    let before = Arc::clone(plan.schema());
    let first = before.fields().len() - aggregates.len();
    let mut widened = vec![false; aggregates.len()];
    for (index, aggregate) in aggregates.iter_mut().enumerate() {
        let new = aggregate.clone().transform_up(|e| wider(e, input.schema()))?;
        if new.transformed {
            let (qualifier, field) = before.qualified_field(first + index);
            *aggregate = new.data.unalias().alias_qualified(qualifier.cloned(), field.name());
            widened[index] = true;
        }
    }
    if !widened.contains(&true) {
        return Ok(plan);
    }
    let mut expressions = plan.expressions();
    let place = expressions.len() - aggregates.len();
    expressions.splice(place.., aggregates);
    let inputs = plan.inputs().into_iter().cloned().collect();
    let summed = plan.with_new_exprs(expressions, inputs)?;
    let columns = before.iter().enumerate().map(|(index, (qualifier, field))| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match index.checked_sub(first).is_some_and(|i| widened[i]) {
            true => convert(Conversion::SumToLong, column).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(summed))?))
}

fn wider(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let widen = |args: &mut Vec<Expr>| -> Result<bool> {
        let [arg] = args.as_mut_slice() else { return Ok(false) };
        if arg.get_type(schema)? != DataType::Int64 {
            return Ok(false);
        }
        *arg = Expr::Cast(Cast::new(Box::new(arg.clone()), WIDE));
        Ok(true)
    };
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) if func.name() == "sum" => {
            let widened = widen(&mut params.args)?;
            let expr = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(if widened { Transformed::yes(expr) } else { Transformed::no(expr) })
        }
        Expr::WindowFunction(mut window) => {
            let is_sum = matches!(&window.fun, WindowFunctionDefinition::AggregateUDF(f) if f.name() == "sum");
            let widened = is_sum && widen(&mut window.params.args)?;
            let expr = Expr::WindowFunction(window);
            Ok(if widened { Transformed::yes(expr) } else { Transformed::no(expr) })
        }
        other => Ok(Transformed::no(other)),
    }
}
