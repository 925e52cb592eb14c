//! Columns under other names: the arrays of rows as the files call them, fields inside of columns included.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::{DataType, Field};
use lakesmith_core::{Error, Result};

/// `array`, whose fields stand at the same places as those of `to`, as an array of that type.
///
/// # Errors
/// Internal if a value would need another type.
pub(crate) fn relabel(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let failed = |e| Error::internal("a column does not have the shape of the table's").caused_by(e);
    Ok(match (array.data_type(), to) {
        (DataType::Struct(from), DataType::Struct(fields)) if from.len() == fields.len() => {
            let held = array.as_struct();
            let children = held.columns().iter().zip(fields).map(|(child, field)| relabel(child, field.data_type()));
            let children = children.collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), children, held.nulls().cloned()).map_err(failed)?)
        }
        (DataType::List(_), DataType::List(field)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = relabel(&values, field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls).map_err(failed)?)
        }
        (DataType::Map(..), DataType::Map(field, sorted)) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let entries: ArrayRef = Arc::new(entries);
            let entries = relabel(&entries, field.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *sorted).map_err(failed)?)
        }
        (from, _) => {
            return Err(Error::internal(format!("a column of the type {from} was to be written as {to}")));
        }
    })
}

/// The array under the field's name and type.
///
/// # Errors
/// As [`relabel`], with the column.
pub(crate) fn as_field(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    relabel(array, field.data_type()).map_err(|e| e.with("column", field.name()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Fields;

    use super::*;

    #[test]
    fn fields_inside_of_columns_get_their_names_and_keep_their_values() {
        let inner = |name: &str| Fields::from(vec![Field::new(name, DataType::Int32, true)]);
        let structs = |name: &str| {
            let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
            StructArray::new(inner(name), vec![values], Some(vec![true, true, false].into()))
        };
        let list = |name: &str, element: &str| {
            let field = Arc::new(Field::new(element, DataType::Struct(inner(name)), true));
            let offsets = OffsetBuffer::new(vec![0, 2, 3].into());
            Arc::new(ListArray::new(field, offsets, Arc::new(structs(name)), None)) as ArrayRef
        };
        let wanted = list("col-1", "element");
        assert_eq!(&relabel(&list("a", "item"), wanted.data_type()).unwrap(), &wanted);
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
        let map = |names: [&str; 4]| {
            let fields = Fields::from(vec![
                Field::new(names[1], DataType::Utf8, false),
                Field::new(names[2], DataType::Struct(inner(names[3])), true),
            ]);
            let entries = StructArray::new(fields.clone(), vec![Arc::clone(&keys), Arc::new(structs(names[3]))], None);
            let field = Arc::new(Field::new(names[0], DataType::Struct(fields), false));
            Arc::new(MapArray::new(field, OffsetBuffer::new(vec![0, 2, 3].into()), entries, None, false)) as ArrayRef
        };
        let wanted = map(["key_value", "key", "value", "col-2"]);
        assert_eq!(&relabel(&map(["entries", "keys", "values", "b"]), wanted.data_type()).unwrap(), &wanted);
        assert!(relabel(&keys, &DataType::Int32).is_err());
    }
}
