//! Floats in Spark's order: `-0.0` is `0.0`, and all NaNs are the same one, above everything else.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(FloatOrder::default())));

/// The value that stands for `expr` where floats are compared.
pub(crate) fn comparable(expr: Expr) -> Expr {
    FUNCTION.call(vec![expr])
}

/// True if the expression is [`comparable`] already.
pub(crate) fn is_comparable(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.name() == FUNCTION.name())
}

/// What is made comparable by `expr`.
pub(crate) fn inner(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let function = ScalarFunctionExpr::try_downcast_func::<FloatOrder>(expr.as_ref())?;
    function.args().first().cloned()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatOrder {
    signature: Signature,
}

impl Default for FloatOrder {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for FloatOrder {
    fn name(&self) -> &str {
        "__lakesmith_float"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = matches!(args.args[0], ColumnarValue::Scalar(_));
        let array = args.args[0].to_array(if scalar { 1 } else { args.number_rows })?;
        let ordered: ArrayRef = match array.data_type() {
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
        };
        if scalar {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&ordered, 0)?));
        }
        Ok(ColumnarValue::Array(ordered))
    }
}
