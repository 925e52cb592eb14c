//! Operators that mean something else in Spark.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, GetFieldAccess};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::arithmetic::{Op, call};
use super::decimal::digits;
use super::item::item;

/// Plans `/`, `div` and `%`, and what is computed with decimals.
#[derive(Debug)]
pub(crate) struct SparkOperators;

impl ExprPlanner for SparkOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let types = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
        let op = match expr.op {
            BinaryOperator::Divide => Op::Divide,
            BinaryOperator::MyIntegerDivide => Op::IntegerDivide,
            BinaryOperator::Modulo => Op::Remainder,
            BinaryOperator::Plus if are_decimals(&types) => Op::Add,
            BinaryOperator::Minus if are_decimals(&types) => Op::Subtract,
            BinaryOperator::Multiply if are_decimals(&types) => Op::Multiply,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if !is_number(&types.0) || !is_number(&types.1) {
            return Ok(PlannerResult::Original(expr));
        }
        let (left, right) = match op {
            _ if are_decimals(&types) => (narrow(expr.left, &types.1), narrow(expr.right, &types.0)),
            Op::Divide => (narrow(expr.left, &types.1), narrow(expr.right, &types.0)),
            Op::Remainder => match common(&types.0, &types.1) {
                Some(to) => (cast(expr.left, &types.0, &to), cast(expr.right, &types.1, &to)),
                None => return Ok(PlannerResult::Original(expr)),
            },
            _ => (expr.left, expr.right),
        };
        Ok(PlannerResult::Planned(call(op, left, right)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        match access {
            RawFieldAccessExpr { field_access: GetFieldAccess::ListIndex { key }, expr }
                if matches!(expr.get_type(schema)?, DataType::List(_)) =>
            {
                Ok(PlannerResult::Planned(item(expr, *key)))
            }
            other => Ok(PlannerResult::Original(other)),
        }
    }
}

/// True if decimal arithmetic is what these take.
fn are_decimals(types: &(DataType, DataType)) -> bool {
    let is_decimal = |t: &DataType| matches!(t, DataType::Decimal128(..));
    (is_decimal(&types.0) || is_decimal(&types.1)) && digits(&types.0).is_some() && digits(&types.1).is_some()
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Null | DataType::Utf8)
}

/// A whole number that is written down beside a decimal has as many digits as are written.
fn narrow(expr: Expr, other: &DataType) -> Expr {
    if !matches!(other, DataType::Decimal128(..)) {
        return expr;
    }
    let value = match &expr {
        Expr::Literal(value, _) => value,
        Expr::Cast(Cast { expr: inner, .. }) => match inner.as_ref() {
            Expr::Literal(value, _) => value,
            _ => return expr,
        },
        _ => return expr,
    };
    let number = match value {
        ScalarValue::Int32(Some(v)) => i128::from(*v),
        ScalarValue::Int64(Some(v)) => i128::from(*v),
        _ => return expr,
    };
    let precision = number.unsigned_abs().to_string().len() as u8;
    Expr::Literal(ScalarValue::Decimal128(Some(number), precision, 0), None)
}

fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as D;
    let is_decimal = |t: &D| matches!(t, D::Decimal128(..));
    if (left.is_floating() && is_decimal(right)) || (is_decimal(left) && right.is_floating()) {
        return Some(D::Float64);
    }
    let rank = |t: &D| match t {
        D::Int8 => Some(0),
        D::Int16 => Some(1),
        D::Int32 => Some(2),
        D::Int64 => Some(3),
        D::Float32 | D::Float64 | D::Utf8 => Some(4),
        _ => None,
    };
    let wider = if rank(left)? >= rank(right)? { left } else { right };
    Some(match wider {
        D::Float32 | D::Utf8 => D::Float64,
        other => other.clone(),
    })
}

fn cast(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to { expr } else { Expr::Cast(Cast::new(Box::new(expr), to.clone())) }
}
