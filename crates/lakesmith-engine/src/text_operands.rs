//! Strings beside other values: they become what they stand beside; BIGINT beside whole numbers, DOUBLE beside other numbers.
//!
//! # Source
//! Spark `AnsiTypeCoercion.findWiderTypeForString`.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Functions whose arguments, from the given one on, have one type in common, strings among them.
const ALIKE: [(&str, usize); 7] =
    [("coalesce", 0), ("nvl", 0), ("ifnull", 0), ("nvl2", 1), ("if", 1), ("nullif", 0), ("make_array", 0)];

/// Casts the operands of operators as they are planned.
#[derive(Debug)]
pub(crate) struct TextInOperators;

impl ExprPlanner for TextInOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as B;
        let RawBinaryExpr { op, mut left, mut right } = expr;
        let compares = matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::Spaceship);
        if compares || matches!(op, B::Plus | B::Minus | B::Multiply) {
            cast_text(&mut [&mut left, &mut right], schema, compares)?;
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// Casts the other operands that are to be alike.
#[derive(Debug)]
pub(crate) struct TextInExpressions;

impl AnalyzerRule for TextInExpressions {
    fn name(&self) -> &str {
        "text_operands"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewrite).data()
    }
}

fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema = scan.projected_schema.as_ref().clone();
    }
    let names = NamePreserver::new(&plan);
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let new = expr.transform_up(|mut expr| {
            let changed = alike(&mut expr, &schema)?;
            Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
        })?;
        Ok(if new.transformed { new.update_data(|e| name.restore(e)) } else { new })
    })?;
    match rewritten.transformed {
        true => Ok(Transformed::yes(rewritten.data.recompute_schema()?)),
        false => Ok(rewritten),
    }
}

fn alike(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    match expr {
        Expr::Between(between) => {
            cast_text(&mut [&mut between.expr, &mut between.low, &mut between.high], schema, true)
        }
        Expr::InList(within) => {
            let mut operands: Vec<&mut Expr> = within.list.iter_mut().collect();
            operands.push(&mut within.expr);
            cast_text(&mut operands, schema, true)
        }
        Expr::Case(case) => {
            let (mut compared, mut results): (Vec<&mut Expr>, Vec<&mut Expr>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
            results.extend(case.else_expr.as_deref_mut());
            let changed = cast_text(&mut results, schema, true)?;
            match case.expr.as_deref_mut() {
                Some(operand) => {
                    compared.push(operand);
                    Ok(cast_text(&mut compared, schema, true)? || changed)
                }
                None => Ok(changed),
            }
        }
        Expr::ScalarFunction(function) => {
            let first = ALIKE.iter().find(|(name, _)| *name == function.func.name()).map(|(_, first)| *first);
            match first {
                Some(first) => cast_text(&mut function.args.iter_mut().skip(first).collect::<Vec<_>>(), schema, true),
                None => Ok(false),
            }
        }
        _ => Ok(false),
    }
}

/// Casts the operands if there are strings among others that are no strings; `alike`: the operands are to
/// have one type, so that the others may be booleans and times, too.
fn cast_text(operands: &mut [&mut Expr], schema: &DFSchema, alike: bool) -> Result<bool> {
    let types = operands.iter().map(|expr| expr.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let others = || types.iter().filter(|t| !matches!(t, DataType::Utf8 | DataType::Null));
    let Some(first) = others().next().filter(|_| types.contains(&DataType::Utf8)) else { return Ok(false) };
    let is_plain = matches!(first, DataType::Boolean | DataType::Date32 | DataType::Timestamp(..));
    let to = if others().all(DataType::is_signed_integer) {
        DataType::Int64
    } else if others().all(|t| t.is_numeric()) {
        DataType::Float64
    } else if alike && is_plain && others().all(|t| t == first) {
        first.clone()
    } else {
        return Ok(false);
    };
    for (operand, from) in operands.iter_mut().zip(&types) {
        if *from != to && *from != DataType::Null {
            let expr = std::mem::take(*operand);
            **operand = Expr::Cast(Cast::new(Box::new(expr), to.clone()));
        }
    }
    Ok(true)
}
