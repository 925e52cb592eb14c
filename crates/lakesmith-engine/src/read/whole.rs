//! A nested column taken as a whole.
//!
//! The Parquet reader takes filters over fields of structs and elements of lists upon itself while a query is planned, and
//! drops them without a word where a file then holds the column in another shape. Behind this function it does not see them.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Whole::default())));

/// The column that `expr` is, as a whole.
pub(crate) fn whole(expr: Expr) -> Expr {
    FUNCTION.call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    signature: Signature,
}

impl Default for Whole {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        "__lakesmith_whole"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => exec_err!("a column as a whole is one column"),
        }
    }
}
