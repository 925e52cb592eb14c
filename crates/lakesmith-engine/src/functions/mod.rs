//! Functions of Spark's that DataFusion lacks, or has with another meaning.

mod builtin;
mod date_format;
mod elements;
mod hash;
mod lambda;
mod membership;
mod numbers;
mod patterns;
mod split;
mod texts;
mod times;
mod type_name;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, HigherOrderUDF, ScalarFunctionArgs, ScalarUDF};

/// All of them.
pub(crate) fn all() -> Vec<ScalarUDF> {
    let own = [
        ScalarUDF::from(date_format::DateFormat::default()),
        ScalarUDF::from(hash::SparkHash::default()),
        ScalarUDF::from(split::Split::default()),
        ScalarUDF::from(type_name::TypeName::default()),
    ];
    let of_arrays = membership::FUNCTIONS.into_iter().chain(elements::FUNCTIONS);
    let of_texts = patterns::FUNCTIONS.into_iter().chain(texts::FUNCTIONS);
    let tables = of_arrays.chain(of_texts).chain(numbers::FUNCTIONS).chain(times::FUNCTIONS);
    own.into_iter().chain(tables.map(builtin::Builtin::registered)).collect()
}

/// Those that take functions.
pub(crate) fn higher_order() -> Vec<HigherOrderUDF> {
    lambda::all()
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
