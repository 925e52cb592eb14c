//! The columns of a checkpoint's batches, found by name; a column of another type than the format's makes the batch odd.

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{Int32Type, Int64Type};

use super::replay::Vector;
use super::{Odd, odd};

pub(crate) fn top<'a>(batch: &'a RecordBatch, name: &str) -> Result<Option<&'a StructArray>, Odd> {
    batch.column_by_name(name).map(|c| c.as_struct_opt().ok_or_else(|| wrong(name))).transpose()
}

fn wrong(name: &str) -> Odd {
    odd(format!("the checkpoint's column {name} is of another type than expected"))
}

/// A child of a struct, if there is one.
fn child<'a, T>(
    parent: &'a StructArray,
    name: &str,
    cast: impl Fn(&'a ArrayRef) -> Option<&'a T>,
) -> Result<Option<&'a T>, Odd> {
    parent.column_by_name(name).map(|c| cast(c).ok_or_else(|| wrong(name))).transpose()
}

pub(crate) fn strings<'a>(parent: &'a StructArray, name: &str) -> Result<Option<&'a StringArray>, Odd> {
    child(parent, name, |c| c.as_string_opt::<i32>())
}

pub(crate) fn longs<'a>(parent: &'a StructArray, name: &str) -> Result<Option<&'a Int64Array>, Odd> {
    child(parent, name, |c| c.as_primitive_opt::<Int64Type>())
}

pub(crate) fn ints<'a>(parent: &'a StructArray, name: &str) -> Result<Option<&'a Int32Array>, Odd> {
    child(parent, name, |c| c.as_primitive_opt::<Int32Type>())
}

pub(crate) fn structs<'a>(parent: &'a StructArray, name: &str) -> Result<Option<&'a StructArray>, Odd> {
    child(parent, name, |c| c.as_struct_opt())
}

pub(crate) fn lists<'a>(parent: &'a StructArray, name: &str) -> Result<Option<&'a ListArray>, Odd> {
    child(parent, name, |c| c.as_list_opt::<i32>())
}

/// A column that must be there.
pub(crate) fn needed<T>(column: Option<T>, name: &str) -> Result<T, Odd> {
    column.ok_or_else(|| odd(format!("the checkpoint lacks the column {name}")))
}

pub(crate) fn text(array: Option<&StringArray>, row: usize) -> Option<&str> {
    array.filter(|a| a.is_valid(row)).map(|a| a.value(row))
}

pub(crate) fn long(array: Option<&Int64Array>, row: usize) -> Option<i64> {
    array.filter(|a| a.is_valid(row)).map(|a| a.value(row))
}

pub(crate) fn int(array: Option<&Int32Array>, row: usize) -> Option<i32> {
    array.filter(|a| a.is_valid(row)).map(|a| a.value(row))
}

/// A map of strings.
#[derive(Clone, Copy)]
pub(crate) struct StringMaps<'a> {
    map: &'a MapArray,
    keys: &'a StringArray,
    values: &'a StringArray,
}

impl<'a> StringMaps<'a> {
    pub(crate) fn of(parent: &'a StructArray, name: &str) -> Result<Option<Self>, Odd> {
        let Some(map) = child(parent, name, |c| c.as_map_opt())? else { return Ok(None) };
        let strings = |c: &'a ArrayRef| c.as_string_opt::<i32>().ok_or_else(|| wrong(name));
        Ok(Some(Self { map, keys: strings(map.keys())?, values: strings(map.values())? }))
    }

    pub(crate) fn row(self, row: usize) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone {
        let range: Range<usize> = if self.map.is_null(row) {
            0..0
        } else {
            self.map.value_offsets()[row] as usize..self.map.value_offsets()[row + 1] as usize
        };
        let Self { keys, values, .. } = self;
        range.map(move |i| (keys.value(i), values.is_valid(i).then(|| values.value(i))))
    }
}

/// Descriptors of deletion vectors.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a> {
    all: &'a StructArray,
    storage_type: Option<&'a StringArray>,
    path: Option<&'a StringArray>,
    offset: Option<&'a Int32Array>,
    cardinality: Option<&'a Int64Array>,
}

impl<'a> Vectors<'a> {
    pub(crate) fn of(parent: &'a StructArray) -> Result<Option<Self>, Odd> {
        let Some(all) = structs(parent, "deletionVector")? else { return Ok(None) };
        Ok(Some(Self {
            all,
            storage_type: strings(all, "storageType")?,
            path: strings(all, "pathOrInlineDv")?,
            offset: ints(all, "offset")?,
            cardinality: longs(all, "cardinality")?,
        }))
    }

    pub(crate) fn row(&self, row: usize) -> Result<Option<Vector<'a>>, Odd> {
        let Some(storage_type) = text(self.storage_type, row).filter(|_| self.all.is_valid(row)) else {
            return Ok(None);
        };
        let lacking = || odd("a vector lacks its path or its cardinality");
        Ok(Some(Vector {
            storage_type,
            path_or_inline: text(self.path, row).ok_or_else(lacking)?,
            offset: int(self.offset, row),
            cardinality: long(self.cardinality, row).ok_or_else(lacking)?,
        }))
    }
}
