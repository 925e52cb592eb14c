//! `array[index]`, counted from 0, and `map[key]`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use lakesmith::Error;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Item::default())));

/// The element of `list` at `index`.
pub(crate) fn item(list: Expr, index: Expr) -> Expr {
    FUNCTION.call(vec![list, index])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Item {
    signature: Signature,
}

impl Default for Item {
    fn default() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Item {
    fn name(&self) -> &str {
        "__lakesmith_item"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect::<Vec<_>>().join("[") + "]")
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &types[0] {
            DataType::List(field) => Ok(field.data_type().clone()),
            other => exec_err!("{other} has no elements by number"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let (list, index) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let found = elements(&list, &index)?;
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?));
        }
        Ok(ColumnarValue::Array(found))
    }
}

fn elements(list: &ArrayRef, index: &ArrayRef) -> Result<ArrayRef> {
    let list = list.as_list::<i32>();
    let index = cast(index, &DataType::Int64)?;
    let index = index.as_primitive::<Int64Type>();
    let place = |row: usize| -> Result<Option<u32>> {
        if list.is_null(row) || index.is_null(row) {
            return Ok(None);
        }
        let (start, end) = (list.value_offsets()[row] as i64, list.value_offsets()[row + 1] as i64);
        let at = index.value(row);
        match u32::try_from(start + at) {
            Ok(place) if at >= 0 && at < end - start => Ok(Some(place)),
            _ => Err(DataFusionError::External(Box::new(
                Error::usage(format!(
                    "the index {at} is out of bounds: the array has {} elements; use get() to get NULL instead",
                    end - start
                ))
                .class("INVALID_ARRAY_INDEX"),
            ))),
        }
    };
    let places: UInt32Array = (0..list.len()).map(place).collect::<Result<_>>()?;
    Ok(take(list.values(), &places, None)?)
}
