//! Floats in Spark's order: `-0.0` is `0.0`, and all NaNs are the same one, above everything else.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::physical_expr::PhysicalExpr;

use super::function::{Function, argument, named, physical_argument};

const NAME: &str = "__lakesmith_float";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Function::of(NAME, 1, |types| Ok(types[0].clone()), |arrays, _| ordered(&arrays[0]), named(NAME)));

/// The value that stands for `expr` where floats are compared.
pub(crate) fn comparable(expr: Expr) -> Expr {
    FUNCTION.call(vec![expr])
}

/// True if the expression is [`comparable`] already.
pub(crate) fn is_comparable(expr: &Expr) -> bool {
    argument(expr, &FUNCTION).is_some()
}

/// What is made comparable by `expr`.
pub(crate) fn inner(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    physical_argument(expr, &FUNCTION).cloned()
}

fn ordered(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN.abs() } else { v + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN.abs() } else { v + 0.0 }),
        ),
        other => return exec_err!("{other} has no floats to be put in order"),
    })
}
