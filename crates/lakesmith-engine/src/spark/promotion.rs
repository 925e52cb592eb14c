//! The common type of operands where Spark has another one than DataFusion: a decimal beside a float becomes DOUBLE, a date
//! beside a timestamp becomes a timestamp of microseconds. Runs before DataFusion's own coercion, which then finds equal types.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan, Operator, Projection, Subquery, Union,
};
use datafusion::optimizer::AnalyzerRule;

use super::ranks::ranks;
use super::rule::compares;

/// Functions whose arguments, from the given one on, have one type in common.
const ALIKE: [(&str, usize); 12] = [
    ("coalesce", 0),
    ("nvl", 0),
    ("ifnull", 0),
    ("nvl2", 1),
    ("if", 1),
    ("nullif", 0),
    ("greatest", 0),
    ("least", 0),
    ("array", 0),
    ("make_array", 0),
    ("pow", 0),
    ("power", 0),
];

/// The rule.
#[derive(Debug)]
pub(crate) struct SparkCommonTypes;

impl AnalyzerRule for SparkCommonTypes {
    fn name(&self) -> &str {
        "spark_promotions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(rewrite).data()
    }
}

fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
                if let Some(to) = common(&types, true) {
                    *left = cast(left.clone(), &types[0], &to);
                    *right = cast(right.clone(), &types[1], &to);
                }
            }
            LogicalPlan::Join(join)
        }
        LogicalPlan::Union(union) => LogicalPlan::Union(unite(union)?),
        other => other,
    };
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema = scan.projected_schema.as_ref().clone();
    }
    let names = NamePreserver::new(&plan);
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let new = expr.transform_up(|e| alike(e, &schema))?;
        Ok(if new.transformed { new.update_data(|e| name.restore(e)) } else { new })
    })?;
    Ok(Transformed::yes(ranks(rewritten.data.recompute_schema()?)?))
}

/// Casts the columns of a union's inputs.
fn unite(union: Union) -> Result<Union> {
    let width = union.schema.fields().len();
    if union.inputs.iter().any(|input| input.schema().fields().len() != width) {
        return Ok(union);
    }
    let targets: Vec<Option<DataType>> = (0..width)
        .map(|at| {
            let types: Vec<DataType> = union.inputs.iter().map(|i| i.schema().field(at).data_type().clone()).collect();
            common(&types, true)
        })
        .collect();
    if targets.iter().all(Option::is_none) {
        return Ok(union);
    }
    let inputs = union.inputs.into_iter().map(|input| projected(input, &targets)).collect::<Result<Vec<_>>>()?;
    Union::try_new_with_loose_types(inputs)
}

/// `input` with its columns cast to `targets`, their names unchanged.
fn projected(input: Arc<LogicalPlan>, targets: &[Option<DataType>]) -> Result<Arc<LogicalPlan>> {
    let columns = input.schema().iter().zip(targets).map(|((qualifier, field), target)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match target {
            Some(to) if to != field.data_type() => {
                cast(column, field.data_type(), to).alias_qualified(qualifier.cloned(), field.name())
            }
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}

fn alike(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) || computes(op) => {
            let (all, changed) = together(vec![*left, *right], schema, compares(op))?;
            let mut all = all.into_iter().map(Box::new);
            match (all.next(), all.next()) {
                (Some(left), Some(right)) => done(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed),
                _ => return datafusion::common::internal_err!("an operator lost an operand"),
            }
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (all, changed) = together(vec![*expr, *low, *high], schema, true)?;
            let mut all = all.into_iter().map(Box::new);
            match (all.next(), all.next(), all.next()) {
                (Some(expr), Some(low), Some(high)) => {
                    done(Expr::Between(Between::new(expr, negated, low, high)), changed)
                }
                _ => return datafusion::common::internal_err!("BETWEEN lost an operand"),
            }
        }
        Expr::InList(InList { expr, mut list, negated }) => {
            list.push(*expr);
            let (mut list, changed) = together(list, schema, true)?;
            match list.pop() {
                Some(expr) => done(Expr::InList(InList::new(Box::new(expr), list, negated)), changed),
                None => return datafusion::common::internal_err!("IN lost its operand"),
            }
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let types = [expr.get_type(schema)?, subquery.subquery.schema().field(0).data_type().clone()];
            match common(&types, true) {
                Some(to) if subquery.subquery.schema().fields().len() == 1 => {
                    let expr = Box::new(cast(*expr, &types[0], &to));
                    let plan = projected(subquery.subquery, &[Some(to)])?;
                    let subquery = Subquery { subquery: plan, ..subquery };
                    done(Expr::InSubquery(InSubquery { expr, subquery, negated }), true)
                }
                _ => Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })),
            }
        }
        Expr::Case(case) => {
            let (case, changed) = branches(case, schema)?;
            done(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(ScalarFunction { func, mut args }) => {
            let first = ALIKE.iter().find(|(name, _)| *name == func.name()).map(|(_, first)| *first);
            match first {
                Some(first) if first < args.len() => {
                    let (rest, changed) = together(args.split_off(first), schema, true)?;
                    args.extend(rest);
                    done(Expr::ScalarFunction(ScalarFunction { func, args }), changed)
                }
                _ => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
            }
        }
        other => Transformed::no(other),
    })
}

fn done(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// The results of a CASE are alike, and so are what it compares.
fn branches(case: Case, schema: &DFSchema) -> Result<(Case, bool)> {
    let (conditions, results): (Vec<_>, Vec<_>) = case.when_then_expr.into_iter().map(|(w, t)| (*w, *t)).unzip();
    let count = results.len();
    let mut compared = conditions;
    let simple = case.expr.is_some();
    compared.extend(case.expr.map(|e| *e));
    let (mut compared, first) = if simple { together(compared, schema, true)? } else { (compared, false) };
    let expr = if simple { compared.pop().map(Box::new) } else { None };
    let mut results = results;
    results.extend(case.else_expr.map(|e| *e));
    let (mut results, second) = together(results, schema, true)?;
    let else_expr = if results.len() > count { results.pop().map(Box::new) } else { None };
    let when_then_expr = compared.into_iter().zip(results).map(|(w, t)| (Box::new(w), Box::new(t))).collect();
    Ok((Case { expr, when_then_expr, else_expr }, first || second))
}

/// The operands, cast to what they have in common; and whether that changed any.
fn together(operands: Vec<Expr>, schema: &DFSchema, with_times: bool) -> Result<(Vec<Expr>, bool)> {
    let types = operands.iter().map(|e| e.get_type(schema)).collect::<Result<Vec<_>>>()?;
    Ok(match common(&types, with_times) {
        None => (operands, false),
        Some(to) => (operands.into_iter().zip(&types).map(|(e, from)| cast(e, from, &to)).collect(), true),
    })
}

/// The type that these have in common, where it is for this rule to say.
///
/// # Source
/// Spark `DecimalPrecision` and `TypeCoercion.findWiderTypeForTwo`.
fn common(types: &[DataType], with_times: bool) -> Option<DataType> {
    let has = |test: fn(&DataType) -> bool| types.iter().any(test);
    if has(DataType::is_floating) && has(|t| matches!(t, DataType::Decimal128(..))) {
        return Some(DataType::Float64);
    }
    if with_times && has(|t| matches!(t, DataType::Date32)) && has(|t| matches!(t, DataType::Timestamp(..))) {
        let zone = types.iter().find_map(|t| match t {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        });
        return Some(DataType::Timestamp(TimeUnit::Microsecond, zone));
    }
    None
}

fn computes(op: Operator) -> bool {
    use Operator as O;
    matches!(op, O::Plus | O::Minus | O::Multiply | O::Divide | O::Modulo)
}

/// `expr` as `to`, if it is of the kind that is for this rule to cast.
fn cast(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    let is_ours = match to {
        DataType::Float64 => from.is_numeric(),
        _ => matches!(from, DataType::Date32 | DataType::Timestamp(..)),
    };
    if from == to || !is_ours {
        return expr;
    }
    match literal(&expr) {
        Some(number) if *to == DataType::Float64 => Expr::Literal(ScalarValue::Float64(Some(number)), None),
        _ => Expr::Cast(Cast::new(Box::new(expr), to.clone())),
    }
}

/// The nearest DOUBLE to a decimal that is written down.
fn literal(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Decimal128(Some(digits), _, scale), _) => {
            format!("{digits}e{}", -i32::from(*scale)).parse().ok()
        }
        Expr::Negative(inner) => literal(inner).map(|number| if number == 0.0 { 0.0 } else { -number }),
        _ => None,
    }
}
