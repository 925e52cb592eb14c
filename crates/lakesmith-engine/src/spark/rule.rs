//! Gives expressions their Spark meaning once all types are known.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan, Operator, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::arithmetic::{Op, call};
use super::casts::{conversion, convert};
use super::float_order::{comparable, is_comparable};
use super::sums::checked;
use super::truth::sealed;

/// The rule.
#[derive(Debug)]
pub(crate) struct SparkMeaning;

impl AnalyzerRule for SparkMeaning {
    fn name(&self) -> &str {
        "spark_meaning"
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
    let keys = matches!(plan, LogicalPlan::Aggregate(_));
    let groups = match &plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len(),
        _ => 0,
    };
    let names = NamePreserver::new(&plan);
    // The parts of a filter stay apart: each finds its own place.
    let sorts = matches!(plan, LogicalPlan::Sort(_));
    let filters = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let mut at = 0;
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let is_group = keys && at < groups;
        at += 1;
        let new = expr.transform_up(|e| meaning(e, &schema))?;
        let new = new.transform_data(|e| if filters { sealed_parts(e, &schema) } else { sealed(e, &schema) })?;
        let new = match is_group || sorts {
            true => Transformed::yes(grouped(new.data, &schema)?),
            false => new,
        };
        Ok(if new.transformed { new.update_data(|e| name.restore(e)) } else { new })
    })?;
    let plan = rewritten.map_data(LogicalPlan::recompute_schema)?;
    Ok(Transformed::yes(checked(plan.data)?))
}

/// The parts of a condition, each sealed by itself.
fn sealed_parts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    let mut parts = Vec::new();
    for part in split_conjunction_owned(expr) {
        let part = sealed(part, schema)?;
        changed |= part.transformed;
        parts.push(part.data);
    }
    match conjunction(parts) {
        Some(all) => Ok(Transformed::new_transformed(all, changed)),
        None => internal_err!("a condition has no parts"),
    }
}

/// Zeros of either sign are one group, and so are all NaNs.
fn grouped(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let wraps = is_float(&expr, schema) && !matches!(expr, Expr::GroupingSet(_)) && !is_comparable(&expr);
    Ok(if wraps { comparable(expr) } else { expr })
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}

fn is_whole(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64))
}

fn meaning(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let wrap = |e: Expr| if is_float(&e, schema) && !is_comparable(&e) { comparable(e) } else { e };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let arithmetic = match op {
                Operator::Plus => Some(Op::Add),
                Operator::Minus => Some(Op::Subtract),
                Operator::Multiply => Some(Op::Multiply),
                _ => None,
            };
            match arithmetic {
                Some(kind) if is_whole(&left, schema) && is_whole(&right, schema) => {
                    Transformed::yes(call(kind, *left, *right))
                }
                None if compares(op) && (is_float(&left, schema) || is_float(&right, schema)) => {
                    let (left, right) = (Box::new(wrap(*left)), Box::new(wrap(*right)));
                    Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
                }
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Cast(cast) => {
            let (from, to) = (cast.expr.get_type(schema)?, cast.field.data_type());
            match conversion(&from, to, false) {
                None => Transformed::no(Expr::Cast(cast)),
                Some(found) => {
                    let to = to.clone();
                    let converted = convert(found, *cast.expr);
                    // What comes out may be a wider number, or a time with a zone.
                    Transformed::yes(if matches!(to, DataType::Int64 | DataType::Utf8) {
                        converted
                    } else {
                        Expr::Cast(Cast::new(Box::new(converted), to))
                    })
                }
            }
        }
        Expr::TryCast(cast) => {
            let (from, to) = (cast.expr.get_type(schema)?, cast.field.data_type().clone());
            match conversion(&from, &to, true) {
                None => Transformed::no(Expr::TryCast(cast)),
                Some(found) => {
                    let converted = convert(found, *cast.expr);
                    Transformed::yes(Expr::TryCast(TryCast::new(Box::new(converted), to)))
                }
            }
        }
        Expr::ScalarFunction(function) if matches!(function.name(), "round" | "bround") => {
            let to = rounded(&function.args, schema);
            let expr = Expr::ScalarFunction(function);
            match to {
                Some(to) => Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), to))),
                None => Transformed::no(expr),
            }
        }
        Expr::Negative(inner) if is_whole(&inner, schema) => {
            let zero = ScalarValue::new_zero(&inner.get_type(schema)?)?;
            Transformed::yes(call(Op::Subtract, Expr::Literal(zero, None), *inner))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_float(&expr, schema) => {
            let between = Between::new(Box::new(wrap(*expr)), negated, Box::new(wrap(*low)), Box::new(wrap(*high)));
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(InList { expr, list, negated }) if is_float(&expr, schema) => {
            let list = list.into_iter().map(wrap).collect();
            Transformed::yes(Expr::InList(InList::new(Box::new(wrap(*expr)), list, negated)))
        }
        Expr::WindowFunction(mut window) => {
            let params = &mut window.params;
            let keys = params.partition_by.iter_mut().chain(params.order_by.iter_mut().map(|sort| &mut sort.expr));
            let mut changed = false;
            for key in keys.filter(|key| is_float(key, schema) && !is_comparable(key)) {
                *key = comparable(key.clone());
                changed = true;
            }
            Transformed::new_transformed(Expr::WindowFunction(window), changed)
        }
        other => Transformed::no(other),
    })
}

/// The type of a decimal that is rounded to fewer digits.
///
/// # Source
/// Spark `RoundBase.dataType`.
fn rounded(args: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let DataType::Decimal128(precision, scale) = args.first()?.get_type(schema).ok()? else { return None };
    let digits = match args.get(1) {
        None => 0,
        Some(digits) => {
            let literal = match digits {
                Expr::Literal(value, _) => value,
                Expr::Cast(cast) => match cast.expr.as_ref() {
                    Expr::Literal(value, _) => value,
                    _ => return None,
                },
                _ => return None,
            };
            match literal.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(Some(digits)) => i8::try_from(digits).ok()?,
                _ => return None,
            }
        }
    };
    (0..scale).contains(&digits).then(|| {
        let whole = i16::from(precision) - i16::from(scale) + 1;
        DataType::Decimal128((whole + i16::from(digits)).min(38) as u8, digits)
    })
}

/// True for an operator that compares.
pub(super) fn compares(op: Operator) -> bool {
    use Operator as O;
    matches!(op, O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq | O::IsDistinctFrom | O::IsNotDistinctFrom)
}
