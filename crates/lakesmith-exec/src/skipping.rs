//! What readers skip chunks by: bloom filters that the inputs have, bounds that hide no NaN, dictionaries that hide no zero.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use lakesmith_core::{Error, Result};
use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::properties::BloomFilterProperties;
use parquet::file::statistics::Statistics;

/// Share of absent values that a filter takes for present: what Parquet's own writer aims at. Footers don't keep it.
pub(crate) const FALSE_POSITIVES: f64 = 0.01;
/// Distinct values that a filter is made for at most.
const MAX_VALUES: u64 = 1 << 22;
/// Bytes that a filter needs for a value, with room for rounding up to a power of two.
const VALUE_BYTES: u64 = 3;

/// The filters of `columns` columns, which together take no more than `memory_bytes` until their row group of at most
/// `rows` rows is closed. Each is then folded to what its values need.
///
/// # Errors
/// Internal if the library refuses them.
pub(crate) fn filters(columns: usize, rows: u64, memory_bytes: u64) -> Result<BloomFilterProperties> {
    let values = (memory_bytes / VALUE_BYTES / columns.max(1) as u64).min(rows).min(MAX_VALUES);
    BloomFilterProperties::builder()
        .with_fpp(FALSE_POSITIVES)
        .with_max_ndv(values.max(1))
        .try_build()
        .map_err(|e| Error::internal("the properties of bloom filters are refused; please report this").caused_by(e))
}

/// Notes which leaves of a root column hold NaN; `seen` has a place for each leaf, in order.
pub(crate) fn note_nan(array: &dyn Array, seen: &mut std::slice::IterMut<'_, bool>) {
    match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().for_each(|child| note_nan(child.as_ref(), seen)),
        DataType::List(_) => note_nan(array.as_list::<i32>().values().as_ref(), seen),
        DataType::Map(..) => note_nan(array.as_map().entries(), seen),
        DataType::Float32 => note(seen, || holds(array.as_primitive::<Float32Type>(), f32::is_nan)),
        DataType::Float64 => note(seen, || holds(array.as_primitive::<Float64Type>(), f64::is_nan)),
        _ => note(seen, || false),
    }
}

fn holds<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, wanted: impl Fn(T::Native) -> bool) -> bool {
    match array.null_count() {
        0 => array.values().iter().any(|value| wanted(*value)),
        _ => array.iter().flatten().any(wanted),
    }
}

fn note(seen: &mut std::slice::IterMut<'_, bool>, holds: impl Fn() -> bool) {
    if let Some(seen) = seen.next() {
        *seen = *seen || holds();
    }
}

/// Lets a finished chunk of floats hide no value from readers that take both zeros, or all NaN, for equal, and NaN for
/// the largest value: bounds leave NaN out, so with one there are none.
///
/// # Errors
/// Those of the metadata's builder.
pub(crate) fn hide_nothing(close: &mut ColumnCloseResult, nan: bool) -> Result<(), ParquetError> {
    let physical = close.metadata.column_type();
    if let Some(filter) = &mut close.bloom_filter {
        widen(filter, physical, nan);
    }
    if !matches!(physical, PhysicalType::FLOAT | PhysicalType::DOUBLE) {
        return Ok(());
    }
    let statistics = close.metadata.statistics();
    let nulls = statistics.and_then(Statistics::null_count_opt);
    let zero = may_hold_zero(statistics);
    let mut metadata = close.metadata.clone().into_builder();
    if zero {
        // Where all pages are known to have ids, Spark rules out values by the dictionary alone, and takes both zeros for two.
        metadata = metadata.clear_page_encoding_stats();
    }
    if nan {
        metadata = metadata.set_statistics(match physical {
            PhysicalType::FLOAT => Statistics::float(None, None, None, nulls, false),
            _ => Statistics::double(None, None, None, nulls, false),
        });
        close.column_index = None;
    }
    close.metadata = metadata.build()?;
    Ok(())
}

fn may_hold_zero(statistics: Option<&Statistics>) -> bool {
    let bounds = match statistics {
        Some(Statistics::Float(s)) => s.min_opt().zip(s.max_opt()).map(|(min, max)| (f64::from(*min), f64::from(*max))),
        Some(Statistics::Double(s)) => s.min_opt().copied().zip(s.max_opt().copied()),
        _ => None,
    };
    bounds.is_none_or(|(min, max)| min <= 0.0 && 0.0 <= max)
}

/// Adds to a filter of floats what a reader may look for instead of the values that are there.
fn widen(filter: &mut Sbbf, physical: PhysicalType, nan: bool) {
    match physical {
        PhysicalType::FLOAT => {
            if filter.check(&0f32) || filter.check(&-0f32) {
                filter.insert(&0f32);
                filter.insert(&-0f32);
            }
            if nan {
                filter.insert(&f32::NAN);
            }
        }
        PhysicalType::DOUBLE => {
            if filter.check(&0f64) || filter.check(&-0f64) {
                filter.insert(&0f64);
                filter.insert(&-0f64);
            }
            if nan {
                filter.insert(&f64::NAN);
            }
        }
        _ => {}
    }
}
