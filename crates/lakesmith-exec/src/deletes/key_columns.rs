//! The columns whose values an equality delete compares, and how a file's columns become them.
//!
//! # Source
//! Iceberg spec, "Equality Delete Files" and "Column Projection".

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use lakesmith_core::table::{DataType, Field, ReadSpec};
use lakesmith_core::{Error, Result};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::adapt::find_by_name;
use crate::calendar;
use crate::cast::{self, Cast};
use crate::failure::{does_not_fit, in_file};
use crate::file_read::OpenFile;
use crate::target::primitive_type;

/// Columns, and how their values become bytes: equal keys have equal bytes, and only they.
pub(super) struct KeyColumns {
    fields: Vec<Field>,
    types: Vec<ArrowType>,
    converter: RowConverter,
}

/// What a file is that has the columns, or lacks some.
#[derive(Clone, Copy)]
pub(super) enum Holder<'a> {
    /// A delete file: it must have them all.
    Deletes,
    /// A data file: it may be older than a column.
    Data(&'a ReadSpec),
}

/// Where the columns are in one file.
#[derive(Clone)]
pub(super) struct KeyPlan {
    sources: Vec<Source>,
    legacy: bool,
    path: String,
}

#[derive(Clone)]
enum Source {
    /// Indexes that lead to the column: of the root, then in structs.
    Column(Vec<usize>, Cast),
    /// One row with the value that all rows have.
    Constant(ArrayRef),
}

impl KeyColumns {
    /// # Errors
    /// Corrupt without a column, Unsupported for values that are not compared.
    pub(super) fn new(fields: &[Field]) -> Result<Self> {
        if fields.is_empty() {
            return Err(Error::corrupt("an equality delete file names no column that rows are compared by"));
        }
        let types: Vec<ArrowType> = fields.iter().map(key_type).collect::<Result<_>>()?;
        let converter = RowConverter::new(types.iter().cloned().map(SortField::new).collect())
            .map_err(|e| Error::unsupported("rows cannot be compared by the columns of a delete file").caused_by(e))?;
        Ok(Self { fields: fields.to_vec(), types, converter })
    }

    /// True if they are these columns, in any order.
    pub(super) fn are(&self, fields: &[Field]) -> bool {
        self.fields.len() == fields.len() && fields.iter().all(|field| self.fields.contains(field))
    }

    /// Looks for the columns in a file.
    ///
    /// # Errors
    /// Corrupt if one is missing or ambiguous, Unsupported if it holds other values; both name the column and the file.
    pub(super) fn plan(&self, file: &OpenFile, holder: Holder<'_>) -> Result<KeyPlan> {
        let path = file.handle.location.to_string();
        let sources = self.fields.iter().zip(&self.types).map(|(field, to)| {
            source(field, to, file.fields(), holder).map_err(|e| e.with("column", &field.name).with("path", &path))
        });
        let sources = sources.collect::<Result<_>>()?;
        Ok(KeyPlan { sources, legacy: calendar::is_legacy(file.footer.metadata.file_metadata()), path })
    }

    /// The keys of a batch that holds the columns `roots` of the file.
    ///
    /// # Errors
    /// Corrupt or Unsupported, naming the file, for values that the columns cannot hold.
    pub(super) fn keys(&self, plan: &KeyPlan, batch: &RecordBatch, roots: &[usize]) -> Result<Rows> {
        let column = |(i, source): (usize, &Source)| match source {
            Source::Constant(value) => repeated(value, batch.num_rows(), &plan.path),
            Source::Column(indexes, cast) => {
                let root = roots.binary_search(&indexes[0]).map_err(|_| {
                    Error::internal("a column that was asked for was not read").with("path", &plan.path)
                })?;
                let array = in_file(leaf(batch.column(root), &indexes[1..]), &plan.path)?;
                let array = cast::apply(*cast, &array, &self.types[i])
                    .map_err(|e| does_not_fit(e, &plan.path).with("column", &self.fields[i].name))?;
                if plan.legacy {
                    calendar::check(array.as_ref(), &self.fields[i].name, &plan.path)?;
                }
                Ok(with_one_nan(array))
            }
        };
        let columns: Vec<ArrayRef> = plan.sources.iter().enumerate().map(column).collect::<Result<_>>()?;
        in_file(self.converter.convert_columns(&columns), &plan.path)
    }

    /// The key that all rows of a file have which lacks every column.
    ///
    /// # Errors
    /// Internal if the file has one.
    pub(super) fn constant_key(&self, plan: &KeyPlan) -> Result<Rows> {
        let columns = plan.sources.iter().map(|source| match source {
            Source::Constant(value) => Ok(Arc::clone(value)),
            Source::Column(..) => {
                Err(Error::internal("a column that a file has was not read").with("path", &plan.path))
            }
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        in_file(self.converter.convert_columns(&columns), &plan.path)
    }
}

impl KeyPlan {
    /// Root columns that are to be read.
    pub(super) fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        self.sources.iter().filter_map(|source| match source {
            Source::Column(indexes, _) => indexes.first().copied(),
            Source::Constant(_) => None,
        })
    }
}

/// Strings are compared as the bytes that they are.
fn key_type(field: &Field) -> Result<ArrowType> {
    match &field.data_type {
        DataType::String => Ok(ArrowType::Binary),
        other => primitive_type(other).ok_or_else(|| {
            Error::unsupported(format!("an equality delete file compares values of the type {}", other.simple_string()))
                .with("column", &field.name)
        }),
    }
}

fn source(field: &Field, to: &ArrowType, file: &Fields, holder: Holder<'_>) -> Result<Source> {
    let Some(indexes) = locate(field, file, holder)? else {
        return match holder {
            Holder::Data(_) => Ok(Source::Constant(with_one_nan(crate::initial::value(field, to)?))),
            Holder::Deletes => Err(Error::corrupt("an equality delete file lacks a column that it compares")),
        };
    };
    let mut from = file[indexes[0]].data_type();
    for index in &indexes[1..] {
        let ArrowType::Struct(children) = from else {
            return Err(Error::internal("a column was looked for in what is no struct"));
        };
        from = children[*index].data_type();
    }
    if let ArrowType::Null = from {
        return Ok(Source::Constant(new_null_array(to, 1)));
    }
    let cast = cast::plan(from, to).ok_or_else(|| {
        Error::unsupported(format!(
            "a file holds {from} where a delete file compares {}; only widening is possible",
            field.data_type.simple_string()
        ))
    })?;
    Ok(Source::Column(indexes, cast))
}

/// The indexes that lead to the column: by its id if the file has ids, else by the names that the table gives to it.
fn locate(field: &Field, file: &Fields, holder: Holder<'_>) -> Result<Option<Vec<usize>>> {
    let (by_id, schema) = match holder {
        Holder::Deletes => (true, None),
        Holder::Data(read) => (read.match_by_id, Some(&read.schema.fields)),
    };
    if let (true, Some(id)) = (by_id, field.id)
        && file.iter().any(|f| file_id(f).is_some())
    {
        return Ok(by_ids(file, id));
    }
    let names = match (schema, field.id) {
        (Some(fields), Some(id)) if by_id => names(fields, id).ok_or_else(|| {
            Error::unsupported(
                "a delete file compares a column that left the table's schema, and the data file has no field ids by \
                 which to find it; rewrite the data file with the engine that wrote the delete file",
            )
        })?,
        _ => vec![field.physical.as_str()],
    };
    let (mut level, mut indexes) = (file, Vec::with_capacity(names.len()));
    for (depth, name) in names.iter().enumerate() {
        let Some(index) = find_by_name(name, level)? else { return Ok(None) };
        indexes.push(index);
        match level[index].data_type() {
            ArrowType::Struct(children) => level = children,
            _ if depth + 1 < names.len() => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(indexes))
}

fn file_id(field: &ArrowField) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY).and_then(|id| id.parse().ok())
}

fn by_ids(file: &Fields, id: i32) -> Option<Vec<usize>> {
    file.iter().enumerate().find_map(|(index, field)| match field.data_type() {
        _ if file_id(field) == Some(id) => Some(vec![index]),
        ArrowType::Struct(children) => by_ids(children, id).map(|rest| [vec![index], rest].concat()),
        _ => None,
    })
}

/// Physical names that lead through structs to the field with an id.
fn names(fields: &[Field], id: i32) -> Option<Vec<&str>> {
    fields.iter().find_map(|field| match &field.data_type {
        _ if field.id == Some(id) => Some(vec![field.physical.as_str()]),
        DataType::Struct(children) => names(children, id).map(|rest| [vec![field.physical.as_str()], rest].concat()),
        _ => None,
    })
}

/// The array below structs, NULL where one of them is.
fn leaf(root: &ArrayRef, indexes: &[usize]) -> Result<ArrayRef, arrow::error::ArrowError> {
    let mut array = Arc::clone(root);
    let mut nulls: Option<NullBuffer> = None;
    for index in indexes {
        nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
        array = Arc::clone(array.as_struct().column(*index));
    }
    if nulls.is_none() {
        return Ok(array);
    }
    let nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

fn repeated(value: &ArrayRef, rows: usize, path: &str) -> Result<ArrayRef> {
    in_file(take(value, &UInt32Array::from(vec![0; rows]), None), &path)
}

/// The same floats with one form of NaN, as Java compares them; -0.0 and 0.0 stay different values.
fn with_one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float32 => Arc::new(
            array.as_primitive::<Float32Type>().unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }),
        ),
        ArrowType::Float64 => Arc::new(
            array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }),
        ),
        _ => array,
    }
}
