//! Tables that describe tables, as DataFusion scans them.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, MapArray, NullArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Schema};
use datafusion::catalog::MemTable;
use datafusion::common::ScalarValue;
use lakesmith::table::{Field, MetadataTable, Value};
use lakesmith::{Error, Result};

use super::columns::arrow_field;
use super::scalars::scalar;

/// The table with its rows.
///
/// # Errors
/// Those of the rows; Internal if a value does not fit its column.
pub(crate) fn metadata_rows(table: MetadataTable) -> Result<MemTable> {
    let fields = table.schema.fields.iter().map(arrow_field).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Schema::new(fields));
    let mut batches = Vec::new();
    for rows in table.rows {
        let rows = rows?;
        let columns = schema.fields().iter().enumerate().map(|(place, field)| {
            let values: Vec<&Value> = rows.iter().map(|row| row.get(place).unwrap_or(&Value::NULL)).collect();
            array(&values, field.data_type()).map_err(|e| e.with("column", field.name()))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns.collect::<Result<_>>()?, &options);
        batches.push(batch.map_err(unfit)?);
    }
    MemTable::try_new(schema, vec![batches]).map_err(unfit)
}

/// One value of a column.
///
/// # Errors
/// Internal if it does not fit.
pub(super) fn value(value: &Value, field: &Field) -> Result<ScalarValue> {
    let values = array(&[value], arrow_field(field)?.data_type())?;
    ScalarValue::try_from_array(&values, 0).map_err(unfit)
}

fn unfit(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("the rows of a metadata table do not fit its columns").caused_by(error)
}

fn array(values: &[&Value], data_type: &DataType) -> Result<ArrayRef> {
    let nulls = || NullBuffer::from_iter(values.iter().map(|value| !value.is_null()));
    let lengths = || {
        OffsetBuffer::from_lengths(values.iter().map(|value| match value {
            Value::List(items) => items.len(),
            Value::Map(entries) => entries.len(),
            Value::Scalar(_) | Value::Struct(_) => 0,
        }))
    };
    Ok(match data_type {
        DataType::Struct(fields) => {
            let columns = fields.iter().enumerate().map(|(place, field)| {
                let of = |value: &&'_ Value| match *value {
                    Value::Struct(parts) => parts.get(place).cloned().unwrap_or(Value::NULL),
                    _ => Value::NULL,
                };
                let parts: Vec<Value> = values.iter().map(of).collect();
                array(&parts.iter().collect::<Vec<_>>(), field.data_type())
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            match fields.is_empty() {
                true => Arc::new(StructArray::new_empty_fields(values.len(), Some(nulls()))),
                false => Arc::new(StructArray::try_new(fields.clone(), columns, Some(nulls())).map_err(unfit)?),
            }
        }
        DataType::List(element) => {
            let items = values.iter().flat_map(|value| match value {
                Value::List(items) => items.as_slice(),
                _ => &[],
            });
            let items = array(&items.collect::<Vec<_>>(), element.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(element), lengths(), items, Some(nulls())).map_err(unfit)?)
        }
        DataType::Map(entries_field, sorted) => {
            let DataType::Struct(of_entry) = entries_field.data_type() else {
                return Err(Error::internal("the entries of a map are no structs"));
            };
            let [key, value] = of_entry.as_ref() else {
                return Err(Error::internal("the entries of a map have no key and value"));
            };
            let entries: Vec<&(Value, Value)> = values
                .iter()
                .flat_map(|value| match value {
                    Value::Map(entries) => entries.as_slice(),
                    _ => &[],
                })
                .collect();
            let keys = array(&entries.iter().map(|entry| &entry.0).collect::<Vec<_>>(), key.data_type())?;
            let held = array(&entries.iter().map(|entry| &entry.1).collect::<Vec<_>>(), value.data_type())?;
            let entries = StructArray::try_new(of_entry.clone(), vec![keys, held], None).map_err(unfit)?;
            let map = MapArray::try_new(Arc::clone(entries_field), lengths(), entries, Some(nulls()), *sorted);
            Arc::new(map.map_err(unfit)?)
        }
        DataType::Null => Arc::new(NullArray::new(values.len())),
        _ if values.is_empty() => arrow::array::new_empty_array(data_type),
        _ => {
            let wrong = || Error::internal(format!("a value of a metadata table is no {data_type}"));
            let scalars = values.iter().map(|value| match value {
                Value::Scalar(value) => scalar(value, data_type).ok_or_else(wrong),
                _ => Err(wrong()),
            });
            ScalarValue::iter_to_array(scalars.collect::<Result<Vec<_>>>()?).map_err(unfit)?
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray};
    use arrow::datatypes::{Field, Int64Type};
    use lakesmith::table::Scalar;

    use super::*;

    #[test]
    fn nested_values_keep_their_nulls() {
        let entry = DataType::Struct(
            vec![Field::new("key", DataType::Int64, false), Field::new("value", DataType::Utf8, true)].into(),
        );
        let map = DataType::Map(Arc::new(Field::new("entries", entry, false)), false);
        let list = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
        let whole = DataType::Struct(vec![Field::new("m", map, true), Field::new("l", list, true)].into());
        let rows = [
            Value::Struct(vec![Value::Map(vec![(1.into(), "a".into()), (2.into(), Value::NULL)]), Value::NULL]),
            Value::NULL,
            Value::Struct(vec![Value::NULL, Value::List(vec![7.into(), Value::Scalar(Scalar::Null)])]),
        ];
        let made = array(&rows.iter().collect::<Vec<_>>(), &whole).unwrap();
        let made = made.as_struct();
        assert_eq!((made.is_null(0), made.is_null(1), made.is_null(2)), (false, true, false));
        let maps = made.column(0).as_map();
        assert_eq!((maps.value_length(0), maps.is_null(1), maps.is_null(2)), (2, true, true));
        assert_eq!(maps.entries().column(1).as_string::<i32>().value(0), "a");
        assert!(maps.entries().column(1).is_null(1));
        let lists = made.column(1).as_list::<i32>();
        assert_eq!(lists.value(2).as_primitive::<Int64Type>().value(0), 7);
        assert!(lists.value(2).is_null(1) && lists.is_null(0));
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        assert!(array(&[&Value::from("x")], &DataType::Int64).is_err());
    }
}
