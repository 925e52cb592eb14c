//! What arrays hold: `array_contains`, `array_position`, `arrays_overlap`, with NULL where an element that is NULL leaves it
//! open.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StructArray, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;

use super::builtin::Builtin;

/// # Source
/// Spark `ArrayContains`, `ArrayPosition`, `ArraysOverlap`.
pub(super) const FUNCTIONS: [Builtin; 3] = [
    Builtin {
        name: "array_contains",
        arguments: 2..=2,
        takes: array_and_element,
        gives: |_| DataType::Boolean,
        apply: |arrays, _| {
            let (list, wanted) = (arrays[0].as_list::<i32>(), plain(&arrays[1])?);
            let values = plain(list.values())?;
            let compare = make_comparator(&values, &wanted, SortOptions::default())?;
            let holds = |row: usize| {
                let places = places(list, row).filter(|_| wanted.is_valid(row))?;
                let found = places.clone().any(|at| values.is_valid(at) && compare(at, row) == Ordering::Equal);
                or_unknown(found, places.into_iter().any(|at| values.is_null(at)))
            };
            Ok(Arc::new((0..list.len()).map(holds).collect::<BooleanArray>()))
        },
    },
    Builtin {
        name: "array_position",
        arguments: 2..=2,
        takes: array_and_element,
        gives: |_| DataType::Int64,
        apply: |arrays, _| {
            let (list, wanted) = (arrays[0].as_list::<i32>(), plain(&arrays[1])?);
            let values = plain(list.values())?;
            let compare = make_comparator(&values, &wanted, SortOptions::default())?;
            let position = |row: usize| {
                let mut places = places(list, row).filter(|_| wanted.is_valid(row))?;
                let found = places.position(|at| values.is_valid(at) && compare(at, row) == Ordering::Equal);
                Some(found.map_or(0, |at| at as i64 + 1))
            };
            Ok(Arc::new((0..list.len()).map(position).collect::<Int64Array>()))
        },
    },
    Builtin {
        name: "arrays_overlap",
        arguments: 2..=2,
        takes: |types| {
            let list = DataType::new_list(alike(&element_type(&types[0])?, &element_type(&types[1])?)?, true);
            Some(vec![list.clone(), list])
        },
        gives: |_| DataType::Boolean,
        apply: |arrays, _| {
            let (left, right) = (arrays[0].as_list::<i32>(), arrays[1].as_list::<i32>());
            let (ours, theirs) = (plain(left.values())?, plain(right.values())?);
            let compare = make_comparator(&ours, &theirs, SortOptions::default())?;
            let overlaps = |row: usize| {
                let (left, right) = (places(left, row)?, places(right, row)?);
                let meets = |l: usize| {
                    ours.is_valid(l) && right.clone().any(|r| theirs.is_valid(r) && compare(l, r) == Ordering::Equal)
                };
                let found = left.clone().any(meets);
                let both = !left.is_empty() && !right.is_empty();
                let open = left.clone().any(|l| ours.is_null(l)) || right.clone().any(|r| theirs.is_null(r));
                or_unknown(found, both && open)
            };
            Ok(Arc::new((0..left.len()).map(overlaps).collect::<BooleanArray>()))
        },
    },
];

fn or_unknown(found: bool, open: bool) -> Option<bool> {
    if !found && open { None } else { Some(found) }
}

/// Where the elements of an array lie; `None` for NULL.
pub(super) fn places(list: &ListArray, row: usize) -> Option<Range<usize>> {
    let offsets = list.value_offsets();
    list.is_valid(row).then(|| offsets[row] as usize..offsets[row + 1] as usize)
}

fn array_and_element(types: &[DataType]) -> Option<Vec<DataType>> {
    let to = alike(&element_type(&types[0])?, &types[1])?;
    Some(vec![DataType::new_list(to.clone(), true), to])
}

/// The elements of an array's type, none for a NULL; `None` for what is no array.
pub(super) fn element(data_type: &DataType) -> Option<Option<FieldRef>> {
    match data_type {
        DataType::List(field) => Some(Some(Arc::clone(field))),
        DataType::Null => Some(None),
        _ => None,
    }
}

fn element_type(data_type: &DataType) -> Option<DataType> {
    Some(element(data_type)?.map_or(DataType::Null, |field| field.data_type().clone()))
}

/// The type in which two values are compared, where neither is text beside something else.
///
/// # Source
/// Spark `AnsiTypeCoercion.findWiderTypeWithoutStringPromotion`.
pub(super) fn alike(left: &DataType, right: &DataType) -> Option<DataType> {
    let is_text = |t: &DataType| matches!(t, DataType::Utf8);
    let is_decimal = |t: &DataType| matches!(t, DataType::Decimal128(..));
    match (left, right) {
        // What holds nothing but NULLs may be of any type.
        (DataType::Null, DataType::Null) => Some(DataType::Boolean),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (l, r) if l == r => Some(l.clone()),
        (l, r) if is_text(l) != is_text(r) => None,
        (l, r) if (l.is_floating() && is_decimal(r)) || (is_decimal(l) && r.is_floating()) => Some(DataType::Float64),
        (l, r) => comparison_coercion(l, r),
    }
}

/// The values with one zero and one NaN, so that those that are equal compare so.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }),
        ),
        DataType::List(field) => {
            let list = array.as_list::<i32>();
            let values = plain(list.values())?;
            Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            let rows = array.as_struct();
            let columns = rows.columns().iter().map(plain).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, rows.nulls().cloned())?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::builder::Float64Builder;
    use arrow::array::{Float64Array, ListBuilder};

    use super::*;

    fn list(rows: &[Option<&[Option<f64>]>]) -> ArrayRef {
        let mut builder = ListBuilder::new(Float64Builder::new());
        for row in rows {
            match row {
                Some(values) => {
                    values.iter().for_each(|v| builder.values().append_option(*v));
                    builder.append(true);
                }
                None => builder.append(false),
            }
        }
        Arc::new(builder.finish())
    }

    fn truths(at: usize, arrays: &[ArrayRef]) -> Vec<Option<bool>> {
        let given = (FUNCTIONS[at].apply)(arrays, &DataType::Boolean).unwrap();
        given.as_boolean().iter().collect()
    }

    #[test]
    fn a_null_in_the_array_leaves_it_open() {
        let (x, y, none) = (Some(1.0), Some(2.0), None);
        let lists = list(&[Some(&[x, none]), Some(&[y, none]), Some(&[y]), None, Some(&[]), Some(&[x])]);
        let wanted: ArrayRef = Arc::new(Float64Array::from(vec![x, x, x, x, x, none]));
        assert_eq!(truths(0, &[lists, wanted]), [Some(true), None, Some(false), None, Some(false), None]);
    }

    #[test]
    fn zeros_and_what_is_no_number_are_equal() {
        let lists = list(&[Some(&[Some(0.0)]), Some(&[Some(f64::NAN)])]);
        let wanted: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, -f64::NAN]));
        assert_eq!(truths(0, &[lists, wanted]), [Some(true), Some(true)]);
    }

    #[test]
    fn empty_arrays_overlap_with_none() {
        let (x, y, none) = (Some(1.0), Some(2.0), None);
        let left = list(&[Some(&[x, none]), Some(&[x, none]), Some(&[]), Some(&[x]), None]);
        let right = list(&[Some(&[x]), Some(&[y]), Some(&[none]), Some(&[y]), Some(&[x])]);
        assert_eq!(truths(2, &[left, right]), [Some(true), None, Some(false), Some(false), None]);
    }
}
