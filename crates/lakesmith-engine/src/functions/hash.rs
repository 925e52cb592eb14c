//! `hash`

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::{arrays, given, text};

/// What the first argument is hashed from; each further one begins with the hash so far.
const SEED: u32 = 42;

/// A hash of its arguments, the same as Spark's, so that what was spread by it stays where it is.
///
/// # Source
/// Spark `Murmur3Hash`, `HashExpression`, `Murmur3_x86_32`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SparkHash {
    signature: Signature,
}

impl Default for SparkHash {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for SparkHash {
    fn name(&self) -> &str {
        "hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.iter().find(|t| !is_hashed(t)) {
            Some(other) => plan_err!("hash of {other} is not supported: hash its parts"),
            None => Ok(DataType::Int32),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (arrays, scalar) = arrays(&args)?;
        let hashers = arrays.iter().map(hasher).collect::<Result<Vec<_>>>()?;
        let rows = arrays.first().map_or(0, |array| array.len());
        let hashes = (0..rows).map(|row| hashers.iter().fold(SEED, |hash, next| next(row, hash)).cast_signed());
        given(Arc::new(Int32Array::from_iter_values(hashes)), scalar)
    }
}

/// Spark hashes no maps, whose entries have no order.
fn is_hashed(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(element) => is_hashed(element.data_type()),
        DataType::Struct(fields) => fields.iter().all(|f| is_hashed(f.data_type())),
        DataType::Timestamp(unit, _) => *unit == TimeUnit::Microsecond,
        DataType::Null | DataType::Boolean | DataType::Date32 | DataType::Decimal128(..) => true,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        DataType::Float32 | DataType::Float64 => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        _ => false,
    }
}

/// From a row and the hash so far to the hash with that row's value.
type Hasher<'a> = Box<dyn Fn(usize, u32) -> u32 + 'a>;

fn hasher(array: &ArrayRef) -> Result<Hasher<'_>> {
    let value: Hasher<'_> = match array.data_type() {
        DataType::Null => return Ok(Box::new(|_, hash| hash)),
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => {
            let values = cast(array, &DataType::Int32)?.as_primitive::<Int32Type>().clone();
            Box::new(move |row, hash| of_int(values.value(row), hash))
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>();
            Box::new(|row, hash| of_long(values.value(row), hash))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let values = array.as_primitive::<TimestampMicrosecondType>();
            Box::new(|row, hash| of_long(values.value(row), hash))
        }
        // Adding zero makes -0.0 the zero that it equals; what is no number has one pattern, as Java's `floatToIntBits` gives.
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Box::new(|row, hash| {
                let value = values.value(row) + 0.0;
                let bits = if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
                of_int(bits.cast_signed(), hash)
            })
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Box::new(|row, hash| {
                let value = values.value(row) + 0.0;
                let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
                of_long(bits.cast_signed(), hash)
            })
        }
        DataType::Decimal128(precision, _) => {
            let (values, short) = (array.as_primitive::<Decimal128Type>(), *precision <= 18);
            Box::new(move |row, hash| match (short, i64::try_from(values.value(row))) {
                (true, Ok(unscaled)) => of_long(unscaled, hash),
                _ => of_bytes(shortest(&values.value(row).to_be_bytes()), hash),
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let values = text(array)?;
            Box::new(move |row, hash| of_bytes(values.value(row).as_bytes(), hash))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let values = cast(array, &DataType::Binary)?.as_binary::<i32>().clone();
            Box::new(move |row, hash| of_bytes(values.value(row), hash))
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let element = hasher(lists.values())?;
            Box::new(move |row, hash| {
                let (from, to) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
                (from..to).fold(hash, |hash, at| element(usize::try_from(at).unwrap_or_default(), hash))
            })
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter().map(hasher).collect::<Result<Vec<_>>>()?;
            Box::new(move |row, hash| fields.iter().fold(hash, |hash, field| field(row, hash)))
        }
        other => return plan_err!("hash of {other} is not supported: hash its parts"),
    };
    Ok(Box::new(move |row, hash| if array.is_null(row) { hash } else { value(row, hash) }))
}

/// A big-endian number without the bytes that only repeat its sign, as Java's `BigInteger.toByteArray` gives it.
fn shortest(bytes: &[u8]) -> &[u8] {
    let repeats = bytes.windows(2).take_while(|pair| {
        let sign = if pair[1] & 0x80 == 0 { 0x00 } else { 0xff };
        pair[0] == sign
    });
    &bytes[repeats.count()..]
}

fn of_int(value: i32, hash: u32) -> u32 {
    finished(with_word(hash, value), 4)
}

fn of_long(value: i64, hash: u32) -> u32 {
    let bits = value.cast_unsigned();
    // The lower half, then the upper one.
    let words = [bits as u32, (bits >> 32) as u32];
    finished(words.into_iter().fold(hash, |hash, word| with_word(hash, word.cast_signed())), 8)
}

/// Four bytes at a time, and what is left over one by one with its sign, which no other Murmur3 does.
fn of_bytes(bytes: &[u8], hash: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let hash = words.iter().fold(hash, |hash, word| with_word(hash, i32::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| with_word(hash, i32::from(byte.cast_signed())));
    // A value of Arrow's has less than 2^31 bytes.
    finished(hash, bytes.len() as u32)
}

fn with_word(hash: u32, word: i32) -> u32 {
    let word = word.cast_unsigned().wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finished(hash: u32, length: u32) -> u32 {
    let hash = hash ^ length;
    let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
