//! From the columns that a file has to the columns that the table has.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, FieldRef, Fields};
use arrow::error::ArrowError;
use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::cast::{self, Cast};
use crate::initial;

/// How one array of a file becomes one of the table.
#[derive(Debug, Clone)]
pub(crate) enum Adapt {
    /// The file lacks it: NULL.
    Missing,
    /// The file lacks it, and all of its rows have this one value.
    Filled(ArrayRef),
    /// A primitive.
    Primitive(Cast),
    /// Fields by index in the file's struct.
    Struct(Vec<(Option<usize>, Adapt)>),
    /// Elements.
    List(Box<Adapt>),
    /// Keys and values.
    Map(Box<(Adapt, Adapt)>),
    /// Indexes of the value and the metadata bytes.
    Variant(usize, usize),
}

/// One output column.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    /// Root index in the file, if the file has the column.
    pub source: Option<usize>,
    /// What to do with it.
    pub adapt: Adapt,
    /// What comes out.
    pub field: FieldRef,
}

/// Plans the columns `targets`, whose Arrow fields are `fields`, over a file with the columns `file`.
///
/// # Errors
/// Unsupported where a type cannot be widened, Corrupt where a name is ambiguous; both name the column.
pub(crate) fn plan(targets: &[Field], fields: &[FieldRef], file: &Fields, by_id: bool) -> Result<Vec<ColumnPlan>> {
    targets
        .iter()
        .zip(fields)
        .map(|(target, field)| {
            let (source, adapt) = match plan_column(target, field.data_type(), file, by_id)? {
                Some((source, adapt)) => (Some(source), adapt),
                None => (None, absent(target, field.data_type())?),
            };
            Ok(ColumnPlan { source, adapt, field: Arc::clone(field) })
        })
        .collect()
}

/// Where the file holds `target` and how it becomes `to`; `None` if the file lacks the column.
///
/// # Errors
/// As [`plan`].
pub(crate) fn plan_column(
    target: &Field,
    to: &ArrowType,
    file: &Fields,
    by_id: bool,
) -> Result<Option<(usize, Adapt)>> {
    let Some(source) = find(target, file, by_id)? else { return Ok(None) };
    let adapt = plan_type(&target.data_type, to, file[source].data_type(), by_id);
    Ok(Some((source, adapt.map_err(|e| e.with("column", &target.name))?)))
}

/// The file's column for a target: by id where both have one, else by physical name, case deciding only between several.
fn find(target: &Field, file: &Fields, by_id: bool) -> Result<Option<usize>> {
    if let (true, Some(id)) = (by_id, target.id) {
        let file_id = |f: &ArrowField| f.metadata().get(PARQUET_FIELD_ID_META_KEY).and_then(|v| v.parse::<i32>().ok());
        if file.iter().any(|f| file_id(f).is_some()) {
            return Ok(file.iter().position(|f| file_id(f) == Some(id)));
        }
    }
    find_by_name(&target.physical, file)
}

/// A column by its exact name, else by its only match without regard to case.
pub(crate) fn find_by_name(name: &str, file: &Fields) -> Result<Option<usize>> {
    let exact: Vec<usize> = positions(file, |f| f.name() == name);
    let found = if exact.is_empty() { positions(file, |f| same_name(f.name(), name)) } else { exact };
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Error::corrupt("the data file holds a column more than once; rewrite it with its own writer")
            .with("column", name)),
    }
}

fn positions(file: &Fields, wanted: impl Fn(&ArrowField) -> bool) -> Vec<usize> {
    file.iter().enumerate().filter(|(_, f)| wanted(f)).map(|(i, _)| i).collect()
}

/// Equality without regard to case, as Spark resolves columns.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// What turns an array of the type `from` into one of `to`.
///
/// # Errors
/// Unsupported where values could change.
fn plan_type(target: &DataType, to: &ArrowType, from: &ArrowType, by_id: bool) -> Result<Adapt> {
    let cannot = || {
        Error::unsupported(format!(
            "a file holds {from} where the table has {}; only widening is possible",
            target.simple_string()
        ))
    };
    if matches!(from, ArrowType::Null) {
        return Ok(Adapt::Missing);
    }
    match (target, to, from) {
        (DataType::Variant, _, ArrowType::Struct(file)) => {
            if file.iter().any(|f| f.name() == "typed_value") {
                return Err(Error::unsupported(
                    "the file holds a shredded variant (typed_value), which is not rewritten; rewrite it with Spark \
                     without variant shredding first",
                ));
            }
            let part = |name: &str| {
                file.iter().position(|f| f.name() == name && f.data_type() == &ArrowType::Binary).ok_or_else(cannot)
            };
            Ok(Adapt::Variant(part("value")?, part("metadata")?))
        }
        (DataType::Struct(children), ArrowType::Struct(fields), ArrowType::Struct(file)) => {
            let present: Vec<&Field> = children.iter().filter(|c| !matches!(c.data_type, DataType::Null)).collect();
            present
                .into_iter()
                .zip(fields)
                .map(|(child, field)| match find(child, file, by_id)? {
                    Some(i) => plan_type(&child.data_type, field.data_type(), file[i].data_type(), by_id)
                        .map(|adapt| (Some(i), adapt)),
                    None => Ok((None, absent(child, field.data_type())?)),
                })
                .collect::<Result<_>>()
                .map(Adapt::Struct)
        }
        (DataType::List(element), ArrowType::List(field), ArrowType::List(file)) => {
            let inner = plan_type(&element.data_type, field.data_type(), file.data_type(), by_id)?;
            Ok(Adapt::List(Box::new(inner)))
        }
        (DataType::Map(key, value), ArrowType::Map(entries, _), ArrowType::Map(file, _)) => {
            let (ArrowType::Struct(to), ArrowType::Struct(from)) = (entries.data_type(), file.data_type()) else {
                return Err(cannot());
            };
            if to.len() != 2 || from.len() != 2 {
                return Err(cannot());
            }
            Ok(Adapt::Map(Box::new((
                plan_type(&key.data_type, to[0].data_type(), from[0].data_type(), by_id)?,
                plan_type(&value.data_type, to[1].data_type(), from[1].data_type(), by_id)?,
            ))))
        }
        (DataType::Struct(_) | DataType::List(_) | DataType::Map(..) | DataType::Variant, ..) => Err(cannot()),
        _ => cast::plan(from, to).map(Adapt::Primitive).ok_or_else(cannot),
    }
}

/// What rows have in a column that their file lacks.
///
/// # Errors
/// Corrupt if the table's schema has a value of another type.
pub(crate) fn absent(target: &Field, to: &ArrowType) -> Result<Adapt> {
    Ok(initial::of_absent(target, to)?.map_or(Adapt::Missing, Adapt::Filled))
}

/// The column of rows whose file lacks it.
///
/// # Errors
/// If the value is of another type.
pub(crate) fn fill(adapt: &Adapt, to: &ArrowType, rows: usize) -> Result<ArrayRef, ArrowError> {
    match adapt {
        Adapt::Filled(value) => take(value, &UInt32Array::from(vec![0; rows]), None),
        _ => Ok(new_null_array(to, rows)),
    }
}

/// Adapts an array. Buffers are shared wherever no value changes.
///
/// # Errors
/// Where a value does not fit, or a required part is null.
pub(crate) fn apply(adapt: &Adapt, array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, ArrowError> {
    match (adapt, to) {
        (Adapt::Missing | Adapt::Filled(_), _) => fill(adapt, to, array.len()),
        (Adapt::Primitive(cast), _) => cast::apply(*cast, array, to),
        (Adapt::Struct(parts), ArrowType::Struct(fields)) => {
            let source = array.as_struct();
            let mut children = Vec::with_capacity(fields.len());
            for ((index, adapt), field) in parts.iter().zip(fields) {
                children.push(match index {
                    Some(i) => apply(adapt, source.column(*i), field.data_type())?,
                    None => fill(adapt, field.data_type(), source.len())?,
                });
            }
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, source.nulls().cloned())?))
        }
        (Adapt::Variant(value, metadata), ArrowType::Struct(fields)) => {
            let source = array.as_struct();
            let children = vec![Arc::clone(source.column(*value)), Arc::clone(source.column(*metadata))];
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, source.nulls().cloned())?))
        }
        (Adapt::List(inner), ArrowType::List(field)) => {
            let source = array.as_list::<i32>();
            let values = apply(inner, source.values(), field.data_type())?;
            let nulls = source.nulls().cloned();
            Ok(Arc::new(ListArray::try_new(Arc::clone(field), source.offsets().clone(), values, nulls)?))
        }
        (Adapt::Map(inner), ArrowType::Map(field, _)) => {
            let ArrowType::Struct(fields) = field.data_type() else {
                return Err(ArrowError::SchemaError("a map without entries".to_owned()));
            };
            let source = array.as_map();
            let keys = apply(&inner.0, source.keys(), fields[0].data_type())?;
            let values = apply(&inner.1, source.values(), fields[1].data_type())?;
            let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            let nulls = source.nulls().cloned();
            Ok(Arc::new(MapArray::try_new(Arc::clone(field), source.offsets().clone(), entries, nulls, false)?))
        }
        _ => Err(ArrowError::SchemaError(format!("no way from {} to {to}", array.data_type()))),
    }
}
