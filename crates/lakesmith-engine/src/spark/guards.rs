//! Filters that may fail, each behind the others: `WHERE b <> 0 AND a / b > 1` fails for no row, wherever the parts of the
//! condition end up in a plan and in whatever order they are asked.
//!
//! # Source
//! Spark `FilterExec`: conditions are asked in their order, and a row that one does not let through is not asked again.

use std::sync::{Arc, LazyLock};

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, ScalarUDF, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::PhysicalExpr;

use super::failing::may_fail;
use super::function::{argument, physical_argument};
use super::truth::{hidden, turned_back, turning_back};

static GUARDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| turning_back("__lakesmith_guarded"));

/// True for a filter that may fail, behind those that keep it from failing.
pub(crate) fn is_guarded(filter: &Arc<dyn PhysicalExpr>) -> bool {
    physical_argument(filter, &GUARDED).is_some()
}

/// The rule. It runs before filters are moved, and again after.
#[derive(Debug)]
pub(crate) struct GuardFilters {
    /// True after: what still stands in a filter then, joins no relations any more.
    pub moved: bool,
}

impl OptimizerRule for GuardFilters {
    fn name(&self) -> &str {
        "guard_filters"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(filter) => match guarded(&filter.predicate, filter.input.schema(), !self.moved)? {
                Some(predicate) => Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?))),
                None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
            },
            LogicalPlan::Join(mut join) => {
                let Some(filter) = &join.filter else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
                let schema = merge_schema(&[&join.left, &join.right]);
                match guarded(filter, &schema, true)? {
                    Some(filter) => {
                        join.filter = Some(filter);
                        Ok(Transformed::yes(LogicalPlan::Join(join)))
                    }
                    None => Ok(Transformed::no(LogicalPlan::Join(join))),
                }
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// The condition with all that may fail in one part, which asks the other parts itself; `None`: it stands as it is.
/// `joins`: equal columns of two relations may yet join them.
fn guarded(predicate: &Expr, schema: &DFSchema, joins: bool) -> Result<Option<Expr>> {
    let parts = split_conjunction(predicate);
    let (mut rest, mut guards, mut failing) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = Vec::new();
    for part in parts {
        if let Some(inner) = argument(part, &GUARDED) {
            before.push(part);
            for inner in asked(inner) {
                let known = if may_fail(&inner, schema) { &mut failing } else { &mut guards };
                if !known.contains(&inner) {
                    known.push(inner);
                }
            }
        } else if stands_alone(part, joins)? || joins && equals(part) {
            rest.push(part.clone());
        } else if may_fail(part, schema) {
            if !failing.contains(part) {
                failing.push(part.clone());
            }
        } else {
            rest.push(part.clone());
            if !guards.contains(part) && !part.column_refs().is_empty() {
                guards.push(part.clone());
            }
        }
    }
    let Some(last) = failing.pop() else { return Ok(None) };
    let mut when = Vec::new();
    for guard in conjunction(guards).into_iter().chain(failing) {
        when.push((Box::new(Expr::IsNotTrue(Box::new(guard))), Box::new(hidden(lit(false)))));
    }
    let case = match when.is_empty() {
        true => hidden(last),
        false => Expr::Case(Case { expr: None, when_then_expr: when, else_expr: Some(Box::new(hidden(last))) }),
    };
    let new = turned_back(&GUARDED, case);
    if matches!(before.as_slice(), [one] if **one == new) {
        return Ok(None);
    }
    rest.push(new);
    Ok(conjunction(rest))
}

/// What a guarded part asks, one after the other.
fn asked(inner: &Expr) -> Vec<Expr> {
    let bare = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) if call.args.len() == 1 => call.args[0].clone(),
        other => other.clone(),
    };
    let Expr::Case(case) = inner else { return vec![bare(inner)] };
    let mut asked = Vec::new();
    for (when, _) in &case.when_then_expr {
        match when.as_ref() {
            Expr::IsNotTrue(guard) => asked.extend(split_conjunction(guard).into_iter().cloned()),
            other => asked.push(Expr::IsNotTrue(Box::new(other.clone()))),
        }
    }
    asked.extend(case.else_expr.as_deref().map(bare));
    asked
}

/// True for a part that other rules look for as it is: subqueries. `moving`: filters are yet to be moved; afterwards a
/// scalar subquery that still is one is a value like any other.
fn stands_alone(part: &Expr, moving: bool) -> Result<bool> {
    if part.is_volatile() {
        return Ok(true);
    }
    part.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::OuterReferenceColumn(..) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        ) || moving && matches!(expr, Expr::ScalarSubquery(_)))
    })
}

/// True for a part that holds one relation's columns equal to another's.
fn equals(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    let (left, right) = (left.column_refs(), right.column_refs());
    let apart = left.iter().all(|l| right.iter().all(|r| l.relation.is_some() && l.relation != r.relation));
    apart && !left.is_empty() && !right.is_empty()
}
