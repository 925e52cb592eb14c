//! Sums of BIGINT and of long decimals that fail rather than wrap, and means of decimals that are rounded rather than cut:
//! they are taken in wider numbers and turned back, or by an aggregate that looks itself.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, LogicalPlan, Projection};

use super::casts::{Conversion, convert};
use super::decimal_sum::decimal_sum;

const WIDE: DataType = DataType::Decimal128(38, 0);
const PRECISION_MAX: u8 = 38;

/// How a wider number becomes the result.
#[derive(Debug, Clone)]
enum Back {
    /// A sum that must be a BIGINT.
    Sum,
    /// A sum that must be a decimal.
    Decimal,
    /// A mean with one digit too many.
    Mean(DataType),
}

/// The plan with its sums checked.
pub(crate) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut aggregates, input) = match &plan {
        LogicalPlan::Aggregate(aggregate) => (aggregate.aggr_expr.clone(), &aggregate.input),
        LogicalPlan::Window(window) => (window.window_expr.clone(), &window.input),
        _ => return Ok(plan),
    };
    let before = Arc::clone(plan.schema());
    let first = before.fields().len() - aggregates.len();
    let mut widened: Vec<Option<Back>> = vec![None; aggregates.len()];
    let mut changed = false;
    for (index, aggregate) in aggregates.iter_mut().enumerate() {
        let mut back = None;
        let new = aggregate.clone().transform_up(|e| wider(e, input.schema(), &mut back))?;
        if new.transformed {
            let (qualifier, field) = before.qualified_field(first + index);
            *aggregate = new.data.unalias().alias_qualified(qualifier.cloned(), field.name());
            widened[index] = back;
            changed = true;
        }
    }
    if !changed {
        return Ok(plan);
    }
    let mut expressions = plan.expressions();
    let place = expressions.len() - aggregates.len();
    expressions.splice(place.., aggregates);
    let inputs = plan.inputs().into_iter().cloned().collect();
    let summed = plan.with_new_exprs(expressions, inputs)?;
    if widened.iter().all(Option::is_none) {
        return Ok(summed);
    }
    let columns = before.iter().enumerate().map(|(index, (qualifier, field))| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let result = match index.checked_sub(first).and_then(|i| widened[i].clone()) {
            None => return column,
            Some(Back::Sum) => convert(Conversion::SumToLong, column),
            Some(Back::Decimal) => convert(Conversion::SumToDecimal, column),
            Some(Back::Mean(to)) => Expr::Cast(Cast::new(Box::new(column), to)),
        };
        result.alias_qualified(qualifier.cloned(), field.name())
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(summed))?))
}

fn wider(expr: Expr, schema: &DFSchema, back: &mut Option<Back>) -> Result<Transformed<Expr>> {
    let mut widen = |function: &str, args: &mut Vec<Expr>| -> Result<bool> {
        let [arg] = args.as_mut_slice() else { return Ok(false) };
        let (to, found) = match (function, arg.get_type(schema)?) {
            ("sum", DataType::Int64) => (WIDE, Back::Sum),
            ("sum", DataType::Decimal128(precision, scale)) if is_long(precision) => {
                (DataType::Decimal256(precision, scale), Back::Decimal)
            }
            // The mean has four digits more than its values; what it cuts off after a fifth decides nothing.
            ("avg", DataType::Decimal128(precision, scale)) if precision + 5 <= PRECISION_MAX => (
                DataType::Decimal128(precision + 1, scale + 1),
                Back::Mean(DataType::Decimal128(precision + 4, scale + 4)),
            ),
            _ => return Ok(false),
        };
        *arg = Expr::Cast(Cast::new(Box::new(arg.clone()), to));
        *back = Some(found);
        Ok(true)
    };
    Ok(match expr {
        Expr::AggregateFunction(call) if is_long_sum(&call, schema)? => {
            Transformed::yes(Expr::AggregateFunction(AggregateFunction { func: decimal_sum(), ..call }))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let widened = widen(func.name(), &mut params.args)?;
            with(Expr::AggregateFunction(AggregateFunction { func, params }), widened)
        }
        Expr::WindowFunction(mut window) => {
            let widened = match &window.fun {
                WindowFunctionDefinition::AggregateUDF(function) => {
                    let name = function.name().to_owned();
                    widen(&name, &mut window.params.args)?
                }
                WindowFunctionDefinition::WindowUDF(_) => false,
            };
            with(Expr::WindowFunction(window), widened)
        }
        other => Transformed::no(other),
    })
}

/// True for decimals of which ten digits are not left for rows.
fn is_long(precision: u8) -> bool {
    precision + 10 > PRECISION_MAX
}

/// True for a sum of long decimals that an aggregate of our own takes.
fn is_long_sum(call: &AggregateFunction, schema: &DFSchema) -> Result<bool> {
    let [arg] = call.params.args.as_slice() else { return Ok(false) };
    let is_sum = call.func.name() == "sum" && call.func != decimal_sum() && !call.params.distinct;
    Ok(is_sum && matches!(arg.get_type(schema)?, DataType::Decimal128(precision, _) if is_long(precision)))
}

fn with(expr: Expr, widened: bool) -> Transformed<Expr> {
    if widened { Transformed::yes(expr) } else { Transformed::no(expr) }
}
