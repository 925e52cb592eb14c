//! `array[index]`, counted from 0, and `map[key]`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use lakesmith::Error;

use super::function::Function;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let result = |types: &[DataType]| match &types[0] {
        DataType::List(field) => Ok(field.data_type().clone()),
        other => exec_err!("{other} has no elements by number"),
    };
    let spelled = |args: &[String]| args.join("[") + "]";
    Function::of("__lakesmith_item", 2, result, |arrays, _| elements(&arrays[0], &arrays[1]), spelled)
});

/// The element of `list` at `index`.
pub(crate) fn item(list: Expr, index: Expr) -> Expr {
    FUNCTION.call(vec![list, index])
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
