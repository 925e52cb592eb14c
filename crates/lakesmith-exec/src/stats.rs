//! Exact statistics over the rows that are written, leaf by leaf.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, PrimitiveArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::{max, min};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema,
    TimeUnit, TimestampMicrosecondType,
};
use lakesmith_core::table::{FileStats, LeafStats, Scalar};
use lakesmith_core::{Error, Result};

/// Gathers statistics over the columns of one file.
#[derive(Debug, Clone)]
pub(crate) struct StatsCollector {
    leaves: Vec<Leaf>,
    rows: u64,
}

#[derive(Debug, Clone)]
struct Leaf {
    indexes: Vec<usize>,
    stats: LeafStats,
    /// The leaf holds strings; they may come as bytes.
    text: bool,
    /// Bounds of strings that came as bytes.
    byte_bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl StatsCollector {
    /// Statistics of the given physical paths in the files' schema.
    ///
    /// # Errors
    /// Internal if a path names no leaf.
    pub(crate) fn new(paths: &[Vec<String>], schema: &Schema) -> Result<Self> {
        let leaves = paths
            .iter()
            .map(|path| {
                let mut fields = schema.fields();
                let mut indexes = Vec::with_capacity(path.len());
                let mut text = false;
                for (depth, name) in path.iter().enumerate() {
                    let index = fields.iter().position(|f| f.name() == name).ok_or_else(|| unknown_leaf(path))?;
                    indexes.push(index);
                    text = fields[index].data_type() == &DataType::Utf8;
                    match fields[index].data_type() {
                        DataType::Struct(children) if depth + 1 < path.len() => fields = children,
                        _ if depth + 1 < path.len() => return Err(unknown_leaf(path)),
                        _ => {}
                    }
                }
                let stats = LeafStats { path: path.clone(), null_count: 0, min: None, max: None };
                Ok(Leaf { indexes, stats, text, byte_bounds: None })
            })
            .collect::<Result<_>>()?;
        Ok(Self { leaves, rows: 0 })
    }

    /// Counts rows.
    pub(crate) fn observe_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Takes whole rows in.
    pub(crate) fn observe_batch(&mut self, batch: &RecordBatch) {
        self.observe_rows(batch.num_rows() as u64);
        for (root, column) in batch.columns().iter().enumerate() {
            self.observe(root, column);
        }
    }

    /// Takes values of a root column in.
    pub(crate) fn observe(&mut self, root: usize, column: &ArrayRef) {
        for leaf in &mut self.leaves {
            let Some((first, rest)) = leaf.indexes.split_first() else { continue };
            if *first != root {
                continue;
            }
            let mut array = column;
            let mut nulls = array.nulls().cloned();
            for index in rest {
                array = array.as_struct().column(*index);
                nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
            }
            let null_count = nulls.as_ref().map_or(0, |n| n.null_count() as u64);
            if leaf.text && array.data_type() == &DataType::Binary {
                leaf.take(null_count, None);
                leaf.observe_bytes(array.as_binary::<i32>(), nulls.as_ref());
            } else {
                leaf.take(null_count, bounds(array, nulls.as_ref()));
            }
        }
    }

    /// Takes what is known of values of a leaf in.
    pub(crate) fn observe_known(&mut self, path: &[String], nulls: u64, bounds: Option<(Scalar, Scalar)>) {
        if let Some(leaf) = self.leaves.iter_mut().find(|leaf| leaf.stats.path == path) {
            leaf.take(nulls, bounds);
        }
    }

    /// The statistics of the file.
    pub(crate) fn finish(self) -> FileStats {
        FileStats { rows: self.rows, leaves: self.leaves.into_iter().map(Leaf::finish).collect() }
    }
}

impl Leaf {
    fn take(&mut self, nulls: u64, bounds: Option<(Scalar, Scalar)>) {
        self.stats.null_count += nulls;
        let Some((low, high)) = bounds else { return };
        if self.stats.min.as_ref().is_none_or(|m| total(&low, m) == Ordering::Less) {
            self.stats.min = Some(low);
        }
        if self.stats.max.as_ref().is_none_or(|m| total(&high, m) == Ordering::Greater) {
            self.stats.max = Some(high);
        }
    }

    fn observe_bytes(&mut self, values: &BinaryArray, nulls: Option<&NullBuffer>) {
        for i in valid_rows(values.len(), nulls) {
            let value = values.value(i);
            match &mut self.byte_bounds {
                Some((low, _)) if value < low.as_slice() => *low = value.to_vec(),
                Some((_, high)) if value > high.as_slice() => *high = value.to_vec(),
                Some(_) => {}
                none => *none = Some((value.to_vec(), value.to_vec())),
            }
        }
    }

    /// A bound that is no text has no place in the log; strings compare by their bytes, so the other one holds.
    fn finish(mut self) -> LeafStats {
        if let Some((low, high)) = self.byte_bounds {
            self.stats.min = String::from_utf8(low).ok().map(Scalar::String);
            self.stats.max = String::from_utf8(high).ok().map(Scalar::String);
        }
        self.stats
    }
}

fn unknown_leaf(path: &[String]) -> Error {
    Error::internal("statistics were asked for a column that is not written").with("column", path.join("."))
}

/// Spark's order, but with -0.0 below 0.0, so that bounds hold for readers that tell the zeros apart.
fn total(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Double(x), Scalar::Double(y)) => compare_floats(*x, *y),
        _ => a.cmp(b),
    }
}

/// Spark's order of floats, but with -0.0 below 0.0.
pub(crate) fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.total_cmp(&b),
    }
}

/// Smallest and largest value; `None` without any, or for a type that has no bounds.
pub(crate) fn bounds(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Option<(Scalar, Scalar)> {
    match array.data_type() {
        DataType::Int8 => primitive::<Int8Type>(array, nulls, |v| Scalar::Long(v.into())),
        DataType::Int16 => primitive::<Int16Type>(array, nulls, |v| Scalar::Long(v.into())),
        DataType::Int32 => primitive::<Int32Type>(array, nulls, |v| Scalar::Long(v.into())),
        DataType::Int64 => primitive::<Int64Type>(array, nulls, Scalar::Long),
        DataType::Float32 => floats::<Float32Type>(array, nulls),
        DataType::Float64 => floats::<Float64Type>(array, nulls),
        DataType::Decimal128(_, scale) => primitive::<Decimal128Type>(array, nulls, |v| Scalar::Decimal(v, *scale)),
        DataType::Date32 => primitive::<Date32Type>(array, nulls, Scalar::Date),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            primitive::<TimestampMicrosecondType>(array, nulls, Scalar::Timestamp)
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            primitive::<TimestampMicrosecondType>(array, nulls, Scalar::TimestampNtz)
        }
        DataType::Utf8 => {
            let strings = array.as_string::<i32>();
            let mut range: Option<(&str, &str)> = None;
            for i in valid_rows(array.len(), nulls) {
                let value = strings.value(i);
                range = Some(match range {
                    None => (value, value),
                    Some((low, high)) if value < low => (value, high),
                    Some((low, high)) if value > high => (low, value),
                    Some(same) => same,
                });
            }
            range.map(|(low, high)| (Scalar::String(low.to_owned()), Scalar::String(high.to_owned())))
        }
        _ => None,
    }
}

fn masked<T: ArrowPrimitiveType>(array: &ArrayRef, nulls: Option<&NullBuffer>) -> PrimitiveArray<T> {
    PrimitiveArray::new(array.as_primitive::<T>().values().clone(), nulls.cloned())
}

fn primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    scalar: impl Fn(T::Native) -> Scalar,
) -> Option<(Scalar, Scalar)>
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    let array = masked::<T>(array, nulls);
    Some((scalar(min(&array)?), scalar(max(&array)?)))
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Option<(Scalar, Scalar)>
where
    T::Native: Into<f64>,
{
    let values = array.as_primitive::<T>().values();
    let mut range: Option<(f64, f64)> = None;
    for i in valid_rows(values.len(), nulls) {
        let value: f64 = values[i].into();
        range = Some(match range {
            None => (value, value),
            Some((low, high)) if compare_floats(value, low) == Ordering::Less => (value, high),
            Some((low, high)) if compare_floats(value, high) == Ordering::Greater => (low, value),
            Some(same) => same,
        });
    }
    range.map(|(low, high)| (Scalar::Double(low), Scalar::Double(high)))
}

fn valid_rows(rows: usize, nulls: Option<&NullBuffer>) -> Box<dyn Iterator<Item = usize> + '_> {
    match nulls.filter(|n| n.null_count() > 0) {
        Some(nulls) => Box::new(nulls.valid_indices()),
        None => Box::new(0..rows),
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
