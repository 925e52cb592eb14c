//! Functions of Spark's that DataFusion lacks.

mod date_format;
mod hash;
mod split;
mod type_name;

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

/// All of them.
pub(crate) fn all() -> [Arc<ScalarUDF>; 4] {
    [
        Arc::new(ScalarUDF::from(date_format::DateFormat::default())),
        Arc::new(ScalarUDF::from(hash::SparkHash::default())),
        Arc::new(ScalarUDF::from(split::Split::default())),
        Arc::new(ScalarUDF::from(type_name::TypeName::default())),
    ]
}

/// The arguments as arrays of one length; and whether one row stands for all.
fn arrays(args: &ScalarFunctionArgs) -> Result<(Vec<ArrayRef>, bool)> {
    let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
    let rows = if scalar { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
    Ok((arrays, scalar))
}

/// What a function gives: one value for all rows, or one each.
fn given(array: ArrayRef, scalar: bool) -> Result<ColumnarValue> {
    Ok(match scalar {
        true => ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&array, 0)?),
        false => ColumnarValue::Array(array),
    })
}

fn text(array: &ArrayRef) -> Result<StringArray> {
    let array = cast(array, &DataType::Utf8)?;
    Ok(arrow::array::AsArray::as_string::<i32>(&array).clone())
}
