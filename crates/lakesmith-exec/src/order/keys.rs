//! The values that rows are ordered by, taken from batches.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Decimal128Array, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use lakesmith_core::layout::OrderKey;
use lakesmith_core::layout::encode::{f64_key, i64_key, i128_key};
use lakesmith_core::{Error, Result};

/// Decimals of so many digits fit 64 bits.
pub(super) const NARROW_DIGITS: u8 = 18;

/// A value of a key; values of one key are all of one kind, and their order is the key's. Nulls come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyValue<B> {
    /// No value, or none in a parent.
    Null,
    /// A value of at most 64 bits.
    Fixed(u64),
    /// The upper and the lower half of one of 128.
    Wide(u64, u64),
    /// Text or bytes.
    Bytes(B),
}

/// A value inside an array.
pub(crate) type KeyRef<'a> = KeyValue<&'a [u8]>;
/// A value of its own.
pub(crate) type OwnedKey = KeyValue<Box<[u8]>>;

impl KeyRef<'_> {
    fn to_owned(self) -> OwnedKey {
        match self {
            KeyValue::Null => KeyValue::Null,
            KeyValue::Fixed(v) => KeyValue::Fixed(v),
            KeyValue::Wide(high, low) => KeyValue::Wide(high, low),
            KeyValue::Bytes(bytes) => KeyValue::Bytes(bytes.into()),
        }
    }
}

impl OwnedKey {
    /// The same value without its bytes.
    pub(crate) fn borrowed(&self) -> KeyRef<'_> {
        match self {
            KeyValue::Null => KeyValue::Null,
            KeyValue::Fixed(v) => KeyValue::Fixed(*v),
            KeyValue::Wide(high, low) => KeyValue::Wide(*high, *low),
            KeyValue::Bytes(bytes) => KeyValue::Bytes(bytes),
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let beyond = if let KeyValue::Bytes(bytes) = self { bytes.len() + 16 } else { 0 };
        size_of::<OwnedKey>() + beyond
    }
}

/// One key of a batch's rows.
#[derive(Debug, Clone)]
struct KeyColumn {
    values: Values,
    /// Nulls of the leaf and of its parents.
    nulls: Option<NullBuffer>,
}

#[derive(Debug, Clone)]
enum Values {
    Fixed(Vec<u64>),
    Wide(Decimal128Array),
    Text(StringArray),
    Bytes(BinaryArray),
}

impl KeyColumn {
    fn new(batch: &RecordBatch, key: &OrderKey) -> Result<Self> {
        let missing = || {
            Error::internal("a column that rows are ordered by is not among those that are written")
                .with("column", key.path.join("."))
        };
        let (first, rest) = key.path.split_first().ok_or_else(missing)?;
        let mut array: &ArrayRef = batch.column_by_name(first).ok_or_else(missing)?;
        let mut nulls = array.nulls().cloned();
        for name in rest {
            let parent = array.as_struct_opt().ok_or_else(missing)?;
            array = parent.column_by_name(name).ok_or_else(missing)?;
            nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
        }
        let values = match array.data_type() {
            DataType::Boolean => Values::Fixed(array.as_boolean().values().iter().map(u64::from).collect()),
            DataType::Int8 => fixed::<Int8Type>(array, |v| i64_key(v.into())),
            DataType::Int16 => fixed::<Int16Type>(array, |v| i64_key(v.into())),
            DataType::Int32 => fixed::<Int32Type>(array, |v| i64_key(v.into())),
            DataType::Int64 => fixed::<Int64Type>(array, i64_key),
            DataType::Float32 => fixed::<Float32Type>(array, |v| f64_key(v.into())),
            DataType::Float64 => fixed::<Float64Type>(array, f64_key),
            DataType::Date32 => fixed::<Date32Type>(array, |v| i64_key(v.into())),
            DataType::Timestamp(TimeUnit::Microsecond, _) => fixed::<TimestampMicrosecondType>(array, i64_key),
            // What lies beyond its digits is no value of the type; it is no reason to lose the order of the others.
            DataType::Decimal128(digits, _) if *digits <= NARROW_DIGITS => {
                let narrow = |v: i128| i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX });
                fixed::<Decimal128Type>(array, |v| i64_key(narrow(v)))
            }
            DataType::Decimal128(..) => Values::Wide(array.as_primitive::<Decimal128Type>().clone()),
            DataType::Utf8 => Values::Text(array.as_string::<i32>().clone()),
            DataType::Binary => Values::Bytes(array.as_binary::<i32>().clone()),
            other => {
                return Err(Error::unsupported(format!("rows cannot be ordered by a column of type {other}"))
                    .with("column", key.name.join(".")));
            }
        };
        Ok(Self { values, nulls: nulls.filter(|n| n.null_count() > 0) })
    }

    fn value(&self, row: usize) -> KeyRef<'_> {
        if self.nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            return KeyValue::Null;
        }
        match &self.values {
            Values::Fixed(values) => KeyValue::Fixed(values[row]),
            Values::Wide(values) => {
                let key = i128_key(values.value(row));
                KeyValue::Wide((key >> 64) as u64, key as u64)
            }
            Values::Text(values) => KeyValue::Bytes(values.value(row).as_bytes()),
            Values::Bytes(values) => KeyValue::Bytes(values.value(row)),
        }
    }
}

fn fixed<T: ArrowPrimitiveType>(array: &ArrayRef, key: impl Fn(T::Native) -> u64) -> Values {
    Values::Fixed(array.as_primitive::<T>().values().iter().map(|v| key(*v)).collect())
}

/// The keys of a batch's rows.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    columns: Vec<KeyColumn>,
}

impl Keys {
    /// Takes the keys out of a batch that holds at least their columns.
    ///
    /// # Errors
    /// Internal if one is missing, Unsupported if it has no order.
    pub(crate) fn new(batch: &RecordBatch, keys: &[OrderKey]) -> Result<Self> {
        Ok(Self { columns: keys.iter().map(|key| KeyColumn::new(batch, key)).collect::<Result<_>>()? })
    }

    /// One value.
    pub(crate) fn value(&self, key: usize, row: usize) -> KeyRef<'_> {
        self.columns[key].value(row)
    }

    /// The encoded values of a key of at most 64 bits, those of nulls meaning nothing, and where it is null.
    pub(crate) fn fixed(&self, key: usize) -> Option<(&[u64], Option<&NullBuffer>)> {
        match &self.columns[key].values {
            Values::Fixed(values) => Some((values, self.columns[key].nulls.as_ref())),
            _ => None,
        }
    }

    /// All values of a row.
    pub(crate) fn owned(&self, row: usize) -> Box<[OwnedKey]> {
        self.columns.iter().map(|column| column.value(row).to_owned()).collect()
    }

    /// The order of two rows.
    pub(crate) fn compare(&self, row: usize, other: &Keys, other_row: usize) -> Ordering {
        let columns = self.columns.iter().zip(&other.columns);
        columns.map(|(a, b)| a.value(row).cmp(&b.value(other_row))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The order of a row and a list of values.
    pub(crate) fn compare_owned(&self, row: usize, other: &[OwnedKey]) -> Ordering {
        let columns = self.columns.iter().zip(other);
        columns.map(|(a, b)| a.value(row).cmp(&b.borrowed())).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Bytes held beyond those of the batch.
    pub(crate) fn memory(&self) -> u64 {
        let fixed = |column: &KeyColumn| if let Values::Fixed(values) = &column.values { 8 * values.len() } else { 0 };
        self.columns.iter().map(fixed).sum::<usize>() as u64
    }
}
