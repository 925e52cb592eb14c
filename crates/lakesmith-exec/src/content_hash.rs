//! An order-free hash of rows: equal multisets of rows have equal hashes.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use lakesmith_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Adds the hash of every row of a batch to `sum`, wrapping. Each value is preceded by a mark for NULL or its length, so
/// that no two different rows share an encoding; floats count by their bits.
///
/// # Errors
/// Internal for a type that no output holds.
pub(crate) fn add(sum: &mut u64, batch: &RecordBatch) -> Result<()> {
    let mut row = Vec::new();
    for i in 0..batch.num_rows() {
        row.clear();
        for column in batch.columns() {
            encode(column.as_ref(), i, &mut row)?;
        }
        *sum = sum.wrapping_add(xxh3_64(&row));
    }
    Ok(())
}

fn encode(array: &dyn Array, i: usize, row: &mut Vec<u8>) -> Result<()> {
    if array.is_null(i) {
        row.push(0);
        return Ok(());
    }
    row.push(1);
    match array.data_type() {
        DataType::Boolean => row.push(u8::from(array.as_boolean().value(i))),
        DataType::Int8 => row.extend(array.as_primitive::<Int8Type>().value(i).to_le_bytes()),
        DataType::Int16 => row.extend(array.as_primitive::<Int16Type>().value(i).to_le_bytes()),
        DataType::Int32 => row.extend(array.as_primitive::<Int32Type>().value(i).to_le_bytes()),
        DataType::Int64 => row.extend(array.as_primitive::<Int64Type>().value(i).to_le_bytes()),
        DataType::Float32 => row.extend(array.as_primitive::<Float32Type>().value(i).to_bits().to_le_bytes()),
        DataType::Float64 => row.extend(array.as_primitive::<Float64Type>().value(i).to_bits().to_le_bytes()),
        DataType::Decimal128(..) => row.extend(array.as_primitive::<Decimal128Type>().value(i).to_le_bytes()),
        DataType::Date32 => row.extend(array.as_primitive::<Date32Type>().value(i).to_le_bytes()),
        DataType::Timestamp(..) => row.extend(array.as_primitive::<TimestampMicrosecondType>().value(i).to_le_bytes()),
        DataType::Utf8 => bytes(array.as_string::<i32>().value(i).as_bytes(), row),
        DataType::Binary => bytes(array.as_binary::<i32>().value(i), row),
        DataType::Struct(_) => {
            for child in array.as_struct().columns() {
                encode(child.as_ref(), i, row)?;
            }
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            elements(list.values().as_ref(), list.value_offsets(), i, row)?;
        }
        DataType::Map(..) => {
            let map = array.as_map();
            elements(map.entries(), map.value_offsets(), i, row)?;
        }
        other => return Err(Error::internal(format!("rows with {other} cannot be hashed"))),
    }
    Ok(())
}

fn bytes(value: &[u8], row: &mut Vec<u8>) {
    row.extend((value.len() as u64).to_le_bytes());
    row.extend_from_slice(value);
}

fn elements(values: &dyn Array, offsets: &[i32], i: usize, row: &mut Vec<u8>) -> Result<()> {
    let (from, to) = (offsets[i] as usize, offsets[i + 1] as usize);
    row.extend(((to - from) as u64).to_le_bytes());
    (from..to).try_for_each(|k| encode(values, k, row))
}
