//! Arithmetic that fails rather than gives another number: Spark's ANSI mode.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, Datum, Float64Array, Int64Array, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::decimal;
use super::function::Function;

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// `+` of whole numbers or decimals
    Add,
    /// `-` of whole numbers or decimals
    Subtract,
    /// `*` of whole numbers or decimals
    Multiply,
    /// `/`, never of whole numbers: those become DOUBLE
    Divide,
    /// `div`
    IntegerDivide,
    /// `%`
    Remainder,
}

static FUNCTIONS: LazyLock<[(Op, Arc<ScalarUDF>); 6]> = LazyLock::new(|| {
    [Op::Add, Op::Subtract, Op::Multiply, Op::Divide, Op::IntegerDivide, Op::Remainder].map(|op| (op, function(op)))
});

/// `left op right`.
pub(crate) fn call(op: Op, left: Expr, right: Expr) -> Expr {
    let function = FUNCTIONS.iter().find(|(known, _)| *known == op).map_or(&FUNCTIONS[0].1, |(_, f)| f);
    function.call(vec![left, right])
}

/// The failure of a division by zero.
pub(crate) fn divide_by_zero() -> DataFusionError {
    external("division by zero; use try_divide to get NULL instead", "DIVIDE_BY_ZERO")
}

/// The failure of a remainder of a division by zero.
pub(crate) fn remainder_by_zero() -> DataFusionError {
    external("remainder by zero; use try_mod to get NULL instead", "REMAINDER_BY_ZERO")
}

/// The operator of a call of one of these functions.
pub(crate) fn operator(function: &str) -> Option<Op> {
    FUNCTIONS.iter().find(|(_, known)| known.name() == function).map(|(op, _)| *op)
}

/// The failure of a result that its type cannot hold.
pub(crate) fn out_of_range(what: &str) -> DataFusionError {
    external(&format!("{what} overflow: the result does not fit its type; cast to a wider type"), "ARITHMETIC_OVERFLOW")
}

fn external(message: &str, class: &'static str) -> DataFusionError {
    DataFusionError::External(Box::new(lakesmith::Error::usage(message).class(class)))
}

fn function(op: Op) -> Arc<ScalarUDF> {
    let (name, symbol) = match op {
        Op::Add => ("__lakesmith_add", "+"),
        Op::Subtract => ("__lakesmith_subtract", "-"),
        Op::Multiply => ("__lakesmith_multiply", "*"),
        Op::Divide => ("__lakesmith_divide", "/"),
        Op::IntegerDivide => ("__lakesmith_div", "div"),
        Op::Remainder => ("__lakesmith_remainder", "%"),
    };
    let results = move |operands: &[ArrayRef], result: &DataType| {
        let [left, right] = operands else { return exec_err!("an operator has two operands") };
        match both_digits(left.data_type(), right.data_type()) {
            Some(_) => decimals(op, left, right, result),
            None => numbers(op, left, right),
        }
    };
    let spelled = move |operands: &[String]| format!("({})", operands.join(&format!(" {symbol} ")));
    Function::of(name, 2, move |types| result_type(op, types), results, spelled)
}

fn result_type(op: Op, types: &[DataType]) -> Result<DataType> {
    let [left, right] = types else { return exec_err!("an operator has two operands") };
    Ok(match (op, both_digits(left, right)) {
        (Op::IntegerDivide, _) => DataType::Int64,
        (op, Some((left, right))) => {
            let (precision, scale) = decimal::result_type(op, left, right);
            DataType::Decimal128(precision, scale)
        }
        (Op::Divide, None) => DataType::Float64,
        (_, None) => left.clone(),
    })
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    Ok(cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?)
}

fn checked(result: Result<ArrayRef, ArrowError>) -> Result<ArrayRef> {
    result.map_err(|e| match e {
        ArrowError::ArithmeticOverflow(_) => out_of_range("integer"),
        ArrowError::DivideByZero => divide_by_zero(),
        other => other.into(),
    })
}

fn as_decimal(array: &ArrayRef) -> Result<ArrayRef> {
    match decimal::digits(array.data_type()) {
        Some((precision, scale)) => cast(array, &DataType::Decimal128(precision, scale)),
        None => exec_err!("{} is no decimal", array.data_type()),
    }
}

fn decimals(op: Op, left: &ArrayRef, right: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
    let (left, right) = (as_decimal(left)?, as_decimal(right)?);
    let (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) = (left.data_type(), right.data_type()) else {
        return exec_err!("decimals are none");
    };
    let total = decimal::is_total(op, (*p1, *s1), (*p2, *s2));
    match (op, result) {
        (Op::IntegerDivide, _) => decimal::whole_quotients(&left, &right),
        (Op::Divide, DataType::Decimal128(precision, scale)) => decimal::divide(&left, &right, *precision, *scale),
        (Op::Add, _) if total => Ok(numeric::add(&left, &right)?),
        (Op::Subtract, _) if total => Ok(numeric::sub(&left, &right)?),
        (Op::Multiply, _) if total => Ok(numeric::mul(&left, &right)?),
        (op, DataType::Decimal128(precision, scale)) => decimal::compute(op, &left, &right, *precision, *scale),
        (_, other) => exec_err!("{other} is no decimal"),
    }
}

fn numbers(op: Op, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (l, r): (&dyn Datum, &dyn Datum) = (left, right);
    Ok(match op {
        Op::Add => checked(numeric::add(l, r))?,
        Op::Subtract => checked(numeric::sub(l, r))?,
        Op::Multiply => checked(numeric::mul(l, r))?,
        Op::Remainder => remainder(left, right)?,
        Op::IntegerDivide => {
            let (left, right) = (cast(left, &DataType::Int64)?, cast(right, &DataType::Int64)?);
            let (left, right) = (left.as_primitive::<Int64Type>(), right.as_primitive::<Int64Type>());
            let quotients: Int64Array = binary(left, right, |l, r| match r {
                0 => Err(divide_by_zero()),
                _ => l.checked_div(r).ok_or_else(|| out_of_range("integer")),
            })?;
            Arc::new(quotients)
        }
        Op::Divide => {
            let (left, right) = (cast(left, &DataType::Float64)?, cast(right, &DataType::Float64)?);
            let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
            let quotients: Float64Array =
                binary(left, right, |l, r| if r == 0.0 { Err(divide_by_zero()) } else { Ok(l / r) })?;
            Arc::new(quotients)
        }
    })
}

/// Digits of two numbers that decimal arithmetic takes.
fn both_digits(left: &DataType, right: &DataType) -> Option<((u8, i8), (u8, i8))> {
    let decimal = [left, right].iter().any(|t| matches!(t, DataType::Decimal128(..)));
    decimal::digits(left).zip(decimal::digits(right)).filter(|_| decimal)
}

fn remainder(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    if let (DataType::Float64, DataType::Float64) = (left.data_type(), right.data_type()) {
        let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
        let rest: Float64Array =
            binary(left, right, |l, r| if r == 0.0 { Err(remainder_by_zero()) } else { Ok(l % r) })?;
        return Ok(Arc::new(rest));
    }
    numeric::rem(left, right).map_err(|e| match e {
        ArrowError::DivideByZero => remainder_by_zero(),
        ArrowError::ArithmeticOverflow(_) => out_of_range("integer"),
        other => other.into(),
    })
}

fn binary<T: arrow::datatypes::ArrowPrimitiveType>(
    left: &PrimitiveArray<T>,
    right: &PrimitiveArray<T>,
    op: impl Fn(T::Native, T::Native) -> Result<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let pairs = left.iter().zip(right.iter());
    pairs
        .map(|pair| match pair {
            (Some(l), Some(r)) => op(l, r).map(Some),
            _ => Ok(None),
        })
        .collect()
}
