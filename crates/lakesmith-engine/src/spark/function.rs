//! Functions of arrays that queries cannot name: what stands for Spark's meaning in a plan.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

type ResultType = dyn Fn(&[DataType]) -> Result<DataType> + Send + Sync;
type Apply = dyn Fn(&[ArrayRef], &DataType) -> Result<ArrayRef> + Send + Sync;
type Spelled = dyn Fn(&[String]) -> String + Send + Sync;

/// A function; its name makes it what it is.
pub(crate) struct Function {
    name: &'static str,
    result: Box<ResultType>,
    apply: Box<Apply>,
    spelled: Box<Spelled>,
    signature: Signature,
}

impl Function {
    /// A function of so many arguments, as plans hold it. `name` begins with `__lakesmith`; `result` is the type of the
    /// result for types of arguments, `apply` gives results of that type, one a row, and `spelled` a call as people
    /// write it.
    pub(crate) fn of(
        name: &'static str,
        arguments: usize,
        result: impl Fn(&[DataType]) -> Result<DataType> + Send + Sync + 'static,
        apply: impl Fn(&[ArrayRef], &DataType) -> Result<ArrayRef> + Send + Sync + 'static,
        spelled: impl Fn(&[String]) -> String + Send + Sync + 'static,
    ) -> Arc<ScalarUDF> {
        let signature = Signature::any(arguments, Volatility::Immutable);
        let (result, apply, spelled) = (Box::new(result), Box::new(apply), Box::new(spelled));
        Arc::new(ScalarUDF::from(Self { name, result, apply, spelled, signature }))
    }
}

/// A call of the function by its name.
pub(crate) fn named(name: &'static str) -> impl Fn(&[String]) -> String {
    move |args| format!("{name}({})", args.join(", "))
}

/// The argument of a call of `function`, the first one, in a logical expression.
pub(crate) fn argument<'a>(expr: &'a Expr, function: &ScalarUDF) -> Option<&'a Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == function.name() => call.args.first(),
        _ => None,
    }
}

/// The same in a physical expression.
pub(crate) fn physical_argument<'a>(
    expr: &'a Arc<dyn PhysicalExpr>,
    function: &ScalarUDF,
) -> Option<&'a Arc<dyn PhysicalExpr>> {
    let call = ScalarFunctionExpr::try_downcast_func::<Function>(expr.as_ref())?;
    if call.fun().name() == function.name() { call.args().first() } else { None }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok((self.spelled)(&args.iter().map(ToString::to_string).collect::<Vec<_>>()))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok((self.spelled)(&args.iter().map(|e| e.schema_name().to_string()).collect::<Vec<_>>()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        (self.result)(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let results = (self.apply)(&arrays, args.return_field.data_type())?;
        Ok(match scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?),
            false => ColumnarValue::Array(results),
        })
    }
}
