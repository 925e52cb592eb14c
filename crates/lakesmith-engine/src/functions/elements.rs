//! Elements of arrays and maps by their place or key, and arrays made of others.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Date32Array, Int64Array, ListArray, StringArray, UInt32Array,
    make_comparator,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast, interleave, take};
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::{Result, exec_err};
use lakesmith::Error;
use lakesmith::predicate::calendar::{DAY, add_months};

use super::builtin::{Builtin, cast_to};
use super::membership::{alike, element, places};
use crate::failure::external;

const NANOS_A_DAY: i64 = DAY * 1000;

/// # Source
/// Spark `Concat`, `ElementAt`, `Reverse`, `Sequence`; `ExplodeOuter` for the last one.
pub(super) const FUNCTIONS: [Builtin; 6] = [
    Builtin {
        name: "concat",
        arguments: 0..=usize::MAX,
        takes: |types| {
            let arrays = types.iter().filter(|t| matches!(t, DataType::List(_))).count();
            if arrays > 0 {
                let elements = types.iter().map(element).collect::<Option<Vec<_>>>()?;
                let elements: Vec<_> = elements.into_iter().flatten().collect();
                let to = elements.iter().try_fold(DataType::Null, |to, field| alike(&to, field.data_type()))?;
                return Some(vec![DataType::new_list(to, true); types.len()]);
            }
            let binary = !types.is_empty() && types.iter().all(|t| matches!(t, DataType::Binary));
            cast_to(types, &vec![if binary { DataType::Binary } else { DataType::Utf8 }; types.len()])
        },
        gives: |types| types.first().cloned().unwrap_or(DataType::Utf8),
        apply: joined,
    },
    Builtin {
        name: "element_at",
        arguments: 2..=2,
        takes: place_or_key,
        gives: one_of,
        apply: |arrays, _| element_at(&arrays[0], &arrays[1], false),
    },
    Builtin {
        name: "try_element_at",
        arguments: 2..=2,
        takes: place_or_key,
        gives: one_of,
        apply: |arrays, _| element_at(&arrays[0], &arrays[1], true),
    },
    Builtin {
        name: "reverse",
        arguments: 1..=1,
        takes: |types| match &types[0] {
            DataType::List(_) => Some(types.to_vec()),
            _ => cast_to(types, &[DataType::Utf8]),
        },
        gives: |types| types[0].clone(),
        apply: |arrays, _| match arrays[0].data_type() {
            DataType::List(_) => taken(&arrays[0], |places, into| into.extend(places.rev().map(Some))),
            _ => {
                let texts = arrays[0].as_string::<i32>().iter();
                let reversed = texts.map(|text| text.map(|text| text.chars().rev().collect::<String>()));
                Ok(Arc::new(reversed.collect::<StringArray>()))
            }
        },
    },
    Builtin {
        name: "sequence",
        arguments: 2..=3,
        takes: |types| match &types[0] {
            DataType::Date32 => {
                let interval = DataType::Interval(IntervalUnit::MonthDayNano);
                let is_interval = types.get(2).is_none_or(|step| *step == interval);
                let to = [DataType::Date32, DataType::Date32, interval];
                (is_interval && types[1] == DataType::Date32).then(|| to[..types.len()].to_vec())
            }
            _ if types.iter().all(|t| t.is_signed_integer()) => {
                let widest = types.iter().max_by_key(|t| t.primitive_width())?;
                Some(vec![widest.clone(); types.len()])
            }
            _ => None,
        },
        gives: |types| DataType::new_list(types[0].clone(), false),
        apply: |arrays, result| match arrays[0].data_type() {
            DataType::Date32 => dates(arrays, result),
            _ => numbers(arrays, result),
        },
    },
    Builtin {
        name: "__lakesmith_or_null",
        arguments: 1..=1,
        takes: |types| matches!(types[0], DataType::List(_)).then(|| types.to_vec()),
        gives: |types| match &types[0] {
            DataType::List(field) => DataType::new_list(field.data_type().clone(), true),
            other => other.clone(),
        },
        apply: |arrays, result| {
            let list = arrays[0].as_list::<i32>();
            let mut at: Vec<Option<u32>> = Vec::new();
            let lengths = (0..list.len()).map(|row| {
                let places = places(list, row).filter(|places| !places.is_empty());
                let before = at.len();
                match places {
                    Some(places) => at.extend(places.map(|at| Some(at as u32))),
                    None => at.push(None),
                }
                at.len() - before
            });
            let offsets = OffsetBuffer::<i32>::from_lengths(lengths.collect::<Vec<_>>());
            let values = take(list.values(), &UInt32Array::from(at), None)?;
            listed(result, offsets, values, None)
        },
    },
];

fn place_or_key(types: &[DataType]) -> Option<Vec<DataType>> {
    match &types[0] {
        DataType::List(_) => Some(vec![types[0].clone(), cast_to(&types[1..], &[DataType::Int64])?.remove(0)]),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let key = cast_to(&types[1..], &[fields[0].data_type().clone()])?.remove(0);
                Some(vec![types[0].clone(), key])
            }
            _ => None,
        },
        _ => None,
    }
}

fn one_of(types: &[DataType]) -> DataType {
    match &types[0] {
        DataType::List(field) => field.data_type().clone(),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => fields[1].data_type().clone(),
            other => other.clone(),
        },
        other => other.clone(),
    }
}

fn element_at(from: &ArrayRef, at: &ArrayRef, or_null: bool) -> Result<ArrayRef> {
    if let DataType::Map(..) = from.data_type() {
        let map = from.as_map();
        let compare = make_comparator(map.keys(), at, SortOptions::default())?;
        let place = |row: usize| {
            let range = map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
            let known = map.is_valid(row) && at.is_valid(row);
            range.into_iter().find(|key| known && compare(*key, row) == Ordering::Equal).map(|at| at as u32)
        };
        let found: UInt32Array = (0..map.len()).map(place).collect();
        return Ok(take(map.values(), &found, None)?);
    }
    let (list, at) = (from.as_list::<i32>(), at.as_primitive::<Int64Type>());
    let place = |row: usize| -> Result<Option<u32>> {
        let Some(places) = places(list, row).filter(|_| at.is_valid(row)) else { return Ok(None) };
        let (at, count) = (at.value(row), places.len() as i64);
        let from_start = match at {
            0 => {
                let message =
                    "the index 0 is invalid: elements are counted from 1, or from the end by a negative index";
                return Err(external(Error::usage(message).class("INVALID_INDEX_OF_ZERO")));
            }
            1.. => at - 1,
            _ => count + at,
        };
        match usize::try_from(from_start) {
            Ok(place) if place < places.len() => Ok(Some((places.start + place) as u32)),
            _ if or_null => Ok(None),
            _ => Err(external(
                Error::usage(format!(
                    "the index {at} is out of bounds: the array has {count} elements; use try_element_at to get NULL instead"
                ))
                .class("INVALID_ARRAY_INDEX_IN_ELEMENT_AT"),
            )),
        }
    };
    let found = (0..list.len()).map(place).collect::<Result<UInt32Array>>()?;
    Ok(take(list.values(), &found, None)?)
}

/// What stands side by side in a row as one; NULL if a part of it is.
fn joined(arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let rows = arrays.first().map_or(1, |array| array.len());
    let known = |row: usize| arrays.iter().all(|array| array.is_valid(row));
    Ok(match result {
        DataType::List(_) => {
            let lists: Vec<&ListArray> = arrays.iter().map(|array| array.as_list::<i32>()).collect();
            let values: Vec<&dyn Array> = lists.iter().map(|list| list.values().as_ref()).collect();
            let (mut from, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
            for row in 0..rows {
                let before = from.len();
                if known(row) {
                    for (at, list) in lists.iter().enumerate() {
                        from.extend(places(list, row).unwrap_or_default().map(|place| (at, place)));
                    }
                }
                lengths.push(from.len() - before);
            }
            let values = interleave(&values, &from)?;
            listed(result, OffsetBuffer::from_lengths(lengths), values, Some((0..rows).map(known).collect()))?
        }
        DataType::Binary => {
            let parts: Vec<&BinaryArray> = arrays.iter().map(|array| array.as_binary::<i32>()).collect();
            let row = |row: usize| {
                known(row).then(|| parts.iter().flat_map(|part| part.value(row)).copied().collect::<Vec<u8>>())
            };
            Arc::new((0..rows).map(row).collect::<BinaryArray>())
        }
        _ => {
            let parts: Vec<&StringArray> = arrays.iter().map(|array| array.as_string::<i32>()).collect();
            let row = |row: usize| known(row).then(|| parts.iter().map(|part| part.value(row)).collect::<String>());
            Arc::new((0..rows).map(row).collect::<StringArray>())
        }
    })
}

/// The arrays with elements of their own as `pick` puts them into a list of places.
fn taken(array: &ArrayRef, pick: impl Fn(std::ops::Range<usize>, &mut Vec<Option<usize>>)) -> Result<ArrayRef> {
    let list = array.as_list::<i32>();
    let (mut at, mut lengths) = (Vec::new(), Vec::with_capacity(list.len()));
    for row in 0..list.len() {
        let before = at.len();
        if let Some(places) = places(list, row) {
            pick(places, &mut at);
        }
        lengths.push(at.len() - before);
    }
    let at: UInt32Array = at.into_iter().map(|at| at.map(|at| at as u32)).collect();
    let values = take(list.values(), &at, None)?;
    listed(array.data_type(), OffsetBuffer::from_lengths(lengths), values, list.nulls().cloned())
}

fn listed(
    result: &DataType,
    offsets: OffsetBuffer<i32>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::List(field) = result else { return exec_err!("{result} is no array") };
    Ok(Arc::new(ListArray::try_new(Arc::<Field>::clone(field), offsets, values, nulls)?))
}

fn too_long() -> datafusion::common::DataFusionError {
    let message = "a sequence has more elements than an array may have; take a greater step";
    external(Error::usage(message).class("COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER"))
}

fn wrong_step() -> datafusion::common::DataFusionError {
    external(Error::usage("a sequence never gets from its start to its end by steps like that").class("QUERY_FAILED"))
}

/// Elements that the arrays of a batch have at most.
const ELEMENTS_MAX: usize = 1 << 28;

fn numbers(arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let arrays = arrays.iter().map(|a| cast(a, &DataType::Int64)).collect::<Result<Vec<_>, _>>()?;
    let arrays: Vec<&Int64Array> = arrays.iter().map(|a| a.as_primitive::<Int64Type>()).collect();
    let mut values: Vec<i64> = Vec::new();
    let mut lengths = Vec::new();
    let rows = arrays[0].len();
    let nulls: NullBuffer = (0..rows).map(|row| arrays.iter().all(|a| a.is_valid(row))).collect();
    for row in 0..rows {
        let before = values.len();
        if nulls.is_valid(row) {
            let (start, stop) = (arrays[0].value(row), arrays[1].value(row));
            let step = arrays.get(2).map_or(if start <= stop { 1 } else { -1 }, |steps| steps.value(row));
            if start != stop && (step == 0 || (step > 0) != (stop > start)) {
                return Err(wrong_step());
            }
            let count = if start == stop { 0 } else { stop.abs_diff(start) / step.unsigned_abs() };
            let room = (ELEMENTS_MAX - values.len()) as u64;
            if count >= room {
                return Err(too_long());
            }
            values.extend((0..=count).map(|at| start.wrapping_add(step.wrapping_mul(at.cast_signed()))));
        }
        lengths.push(values.len() - before);
    }
    let DataType::List(field) = result else { return exec_err!("{result} is no array") };
    let values = cast(&Int64Array::from(values), field.data_type())?;
    listed(result, OffsetBuffer::from_lengths(lengths), values, Some(nulls))
}

fn dates(arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (starts, stops) = (arrays[0].as_primitive::<Date32Type>(), arrays[1].as_primitive::<Date32Type>());
    let steps = arrays.get(2).map(|steps| steps.as_primitive::<IntervalMonthDayNanoType>());
    let nulls: NullBuffer = (0..starts.len()).map(|row| arrays.iter().all(|a| a.is_valid(row))).collect();
    let (mut values, mut lengths): (Vec<i32>, Vec<usize>) = (Vec::new(), Vec::new());
    for row in 0..starts.len() {
        let before = values.len();
        if nulls.is_valid(row) {
            let (start, stop) = (starts.value(row), stops.value(row));
            let (months, days) = match steps {
                Some(steps) => {
                    let step = steps.value(row);
                    (step.months, i64::from(step.days) + step.nanoseconds / NANOS_A_DAY)
                }
                None => (0, if start <= stop { 1 } else { -1 }),
            };
            let forward = i64::from(months) * 31 + days;
            if start != stop && (forward == 0 || (forward > 0) != (stop > start)) {
                return Err(wrong_step());
            }
            for at in 0.. {
                let by_months = months.checked_mul(at).and_then(|months| add_months(start, months));
                let day = by_months.and_then(|day| i32::try_from(i64::from(day) + days * i64::from(at)).ok());
                match day {
                    Some(day) if (forward >= 0 && day <= stop) || (forward < 0 && day >= stop) => values.push(day),
                    _ => break,
                }
                if start == stop {
                    break;
                }
                if values.len() >= ELEMENTS_MAX {
                    return Err(too_long());
                }
            }
        }
        lengths.push(values.len() - before);
    }
    listed(result, OffsetBuffer::from_lengths(lengths), Arc::new(Date32Array::from(values)), Some(nulls))
}
