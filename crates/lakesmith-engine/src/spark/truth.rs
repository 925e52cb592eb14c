//! Truth values kept from the optimizer: it makes AND and OR of a CASE that is true or false, and both sides of those are
//! asked of every row. A CASE of numbers stays one, and asks only what is to be asked.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::utils::{conjunction, disjunction, split_binary_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, ScalarUDF, lit};

use super::failing::may_fail;
use super::function::{Function, named};

fn to(arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    Ok(cast(&arrays[0], result)?)
}

static HIDDEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| turning("__lakesmith_hidden", DataType::Int8));

static SHOWN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| turning_back("__lakesmith_shown"));

/// A truth value as a number.
pub(super) fn hidden(expr: Expr) -> Expr {
    HIDDEN.call(vec![expr])
}

/// The truth value that a number stands for; `function` turns it back.
pub(super) fn turned_back(function: &ScalarUDF, expr: Expr) -> Expr {
    function.call(vec![expr])
}

/// A function that turns numbers back into truth values.
pub(super) fn turning_back(name: &'static str) -> Arc<ScalarUDF> {
    turning(name, DataType::Boolean)
}

fn turning(name: &'static str, result: DataType) -> Arc<ScalarUDF> {
    Function::of(name, 1, move |_| Ok(result.clone()), to, named(name))
}

fn shown(expr: Expr) -> Expr {
    turned_back(&SHOWN, expr)
}

/// The expression with each part that may fail behind what decides without it, as it is written: `b <> 0 AND a / b > 1`.
pub(super) fn sealed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) if matches!(op, Operator::And | Operator::Or) => {
            chain(expr, op, schema)
        }
        Expr::Case(case) if is_truth(&Expr::Case(case.clone()), schema) && some_fail(&case, schema) => {
            let when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (when, Box::new(hidden(*then))));
            let else_expr = case.else_expr.map(|e| Box::new(hidden(*e)));
            let case = Case { expr: case.expr, when_then_expr: when_then_expr.collect(), else_expr };
            inside(case, schema)
        }
        Expr::ScalarFunction(call) => {
            let first = match call.func.name() {
                "coalesce" | "ifnull" | "nvl" => 0,
                "if" | "nvl2" => 1,
                _ => return Ok(Transformed::no(Expr::ScalarFunction(call))),
            };
            let expr = Expr::ScalarFunction(call);
            if !is_truth(&expr, schema) || !may_fail(&expr, schema) {
                return Ok(Transformed::no(expr));
            }
            let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return Ok(Transformed::no(expr)) };
            let args = args.into_iter().enumerate().map(|(at, arg)| {
                let arg = sealed(arg, schema)?.data;
                Ok(if at < first { arg } else { hidden(arg) })
            });
            let call = ScalarFunction { func, args: args.collect::<Result<_>>()? };
            Ok(Transformed::new(shown(Expr::ScalarFunction(call)), true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_truth(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Boolean))
}

fn some_fail(case: &Case, schema: &DFSchema) -> bool {
    may_fail(&Expr::Case(case.clone()), schema)
}

/// The CASE with its parts sealed.
fn inside(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let part = |expr: Box<Expr>| Ok::<_, datafusion::error::DataFusionError>(Box::new(sealed(*expr, schema)?.data));
    let pairs = case.when_then_expr.into_iter().map(|(when, then)| Ok((part(when)?, part(then)?)));
    let case = Case {
        when_then_expr: pairs.collect::<Result<_>>()?,
        expr: case.expr.map(part).transpose()?,
        else_expr: case.else_expr.map(part).transpose()?,
    };
    Ok(Transformed::new(shown(Expr::Case(case)), true, TreeNodeRecursion::Jump))
}

/// Operands of one AND or OR: none after the first that may fail is asked where those before it decide.
fn chain(expr: Expr, op: Operator, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_and = op == Operator::And;
    let joined = |parts: Vec<Expr>| {
        let all = if is_and { conjunction(parts) } else { disjunction(parts) };
        all.unwrap_or_else(|| lit(is_and))
    };
    let mut changed = false;
    let mut parts = Vec::new();
    for part in split_binary_owned(expr, op) {
        let part = sealed(part, schema)?;
        changed |= part.transformed;
        parts.push(part.data);
    }
    let fails: Vec<bool> = parts.iter().map(|part| may_fail(part, schema)).collect();
    if !fails.iter().skip(1).any(|fails| *fails) {
        return Ok(Transformed::new(joined(parts), changed, TreeNodeRecursion::Jump));
    }
    // Operands that cannot fail decide together.
    let mut deciding: Vec<Vec<Expr>> = vec![Vec::new()];
    for (at, part) in parts.iter().enumerate().take(parts.len() - 1) {
        let together = !fails[at] && (at == 0 || !fails[at - 1]);
        match deciding.last_mut() {
            Some(last) if together => last.push(part.clone()),
            _ => deciding.push(vec![part.clone()]),
        }
    }
    let when = deciding.into_iter().filter(|parts| !parts.is_empty()).map(|parts| {
        let all = Box::new(joined(parts));
        let decides = if is_and { Expr::IsFalse(all) } else { Expr::IsTrue(all) };
        (Box::new(decides), Box::new(hidden(lit(!is_and))))
    });
    let case = Case { expr: None, when_then_expr: when.collect(), else_expr: Some(Box::new(hidden(joined(parts)))) };
    Ok(Transformed::new(shown(Expr::Case(case)), true, TreeNodeRecursion::Jump))
}
