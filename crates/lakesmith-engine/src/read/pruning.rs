//! Which files a filter can match, by what the metadata says of them; no file is touched. Whatever is not known keeps the
//! file.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue, internal_err};
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_expr::expressions::{Column as ColumnExpr, Literal};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprSimplifier, ScalarFunctionExpr, conjunction};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use lakesmith::layout::OrderKey;
use lakesmith::table::{ColumnBounds, DataType, Field, FileId, PartitionTuple, Scalar};
use lakesmith::{SkippedFiles, Table};

use super::columns::{Columns, arrow_type};
use super::scalars::{partition_value, scalar};
use crate::failure::external;
use crate::spark::float_order;

/// Joins the names of a nested column; no name holds it.
const NESTED: char = '\0';

/// Bounds held at once: of one column in so many files, or of more columns in fewer; the metadata is read once for each lot.
const BOUNDS_AT_ONCE: usize = 4 << 20;

/// Values of an IN list that are looked for in bounds one by one.
const LISTED_VALUES_MAX: usize = 200;

/// A filter of a scan, over [`Columns::schema`].
#[derive(Debug)]
pub(crate) struct Filter {
    /// The filter.
    pub expr: Arc<dyn PhysicalExpr>,
    /// True if partitions alone decide it, and rows are not asked again.
    pub decided: bool,
}

/// True if a filter is decided by the values of partition columns, and cannot fail.
pub(crate) fn is_decided(filter: &Expr, columns: &Columns) -> bool {
    let all = |parts: &[&Expr]| parts.iter().all(|part| is_decided(part, columns));
    match filter {
        Expr::Column(column) => columns.partitions.iter().any(|p| p.name() == column.name()),
        Expr::Literal(..) => true,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            use Operator as O;
            let known = matches!(
                op,
                O::Eq
                    | O::NotEq
                    | O::Lt
                    | O::LtEq
                    | O::Gt
                    | O::GtEq
                    | O::And
                    | O::Or
                    | O::IsDistinctFrom
                    | O::IsNotDistinctFrom
            );
            known && all(&[left, right])
        }
        Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_decided(inner, columns),
        Expr::Between(between) => all(&[&between.expr, &between.low, &between.high]),
        Expr::InList(list) => is_decided(&list.expr, columns) && list.list.iter().all(|e| is_decided(e, columns)),
        other => {
            float_order::is_comparable(other)
                && other.column_refs().iter().all(|c| columns.partitions.iter().any(|p| p.name() == c.name()))
        }
    }
}

/// The files that rows matching all of `filters` can be in, in the table's order. Filters are over [`Columns::schema`].
///
/// # Errors
/// Those of reading the metadata.
pub(crate) async fn prune(table: &Table, columns: &Columns, filters: &[Filter]) -> Result<(Vec<FileId>, SkippedFiles)> {
    let files = &table.state().files;
    let all = files.len();
    let mut kept: Vec<FileId> = match partitions(files.partitions(), columns, filters)? {
        Some(wanted) => files.iter().filter(|f| wanted[f.partition_index as usize]).map(|f| f.id).collect(),
        None => (0..all as u32).map(FileId).collect(),
    };
    let mut skipped = SkippedFiles { partition: (all - kept.len()) as u64, ..SkippedFiles::default() };
    if kept.is_empty() || filters.is_empty() {
        return Ok((kept, skipped));
    }
    let undecided: Vec<_> = filters.iter().filter(|f| !f.decided).map(|f| Arc::clone(&f.expr)).collect();
    if undecided.is_empty() {
        return Ok((kept, skipped));
    }
    if let Some(wanted) = by_bounds(table, columns, &undecided, &kept).await? {
        let before = kept.len();
        let mut wanted = wanted.into_iter();
        kept.retain(|_| wanted.next().unwrap_or(true));
        skipped.stats = (before - kept.len()) as u64;
    }
    Ok((kept, skipped))
}

/// Which of a table's partitions the filters on partition columns alone let through; `None`: all.
///
/// # Errors
/// Corrupt if a partition's value does not fit its column, Internal if a filter that partitions decide cannot be asked.
pub(super) fn partitions(
    tuples: &[PartitionTuple],
    columns: &Columns,
    filters: &[Filter],
) -> Result<Option<Vec<bool>>> {
    let schema: SchemaRef = Arc::new(ArrowSchema::new(columns.partitions.clone()));
    let on_partitions: Vec<&Filter> = filters
        .iter()
        .filter(|filter| {
            let used = collect_columns(&filter.expr);
            filter.decided || !used.is_empty() && used.iter().all(|c| schema.index_of(c.name()).is_ok())
        })
        .collect();
    if on_partitions.is_empty() || tuples.is_empty() {
        return Ok(None);
    }
    let arrays = columns.partitions.iter().enumerate().map(|(index, field)| {
        let values = tuples.iter().map(|tuple| partition_value(tuple.values.get(index), field).map_err(external));
        ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)
    });
    let rows = RecordBatchOptions::new().with_row_count(Some(tuples.len()));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &rows)?;
    let mut wanted = vec![true; tuples.len()];
    for filter in on_partitions {
        match matches(&filter.expr, &schema, &batch) {
            Some(matches) => {
                for (wanted, matches) in wanted.iter_mut().zip(matches.iter()) {
                    *wanted &= matches.unwrap_or(false);
                }
            }
            None if filter.decided => return internal_err!("a filter cannot be asked of partitions: {}", filter.expr),
            // A filter that fails, fails when rows are read; it says nothing of partitions.
            None => {}
        }
    }
    Ok(Some(wanted))
}

fn matches(filter: &Arc<dyn PhysicalExpr>, schema: &SchemaRef, batch: &RecordBatch) -> Option<BooleanArray> {
    let filter = reassign_expr_columns(Arc::clone(filter), schema).ok()?;
    let value = filter.evaluate(batch).ok()?.into_array(batch.num_rows()).ok()?;
    value.as_boolean_opt().cloned()
}

/// Which of `files` the bounds of the columns in the filters let through; `None`: they tell nothing.
async fn by_bounds(
    table: &Table,
    columns: &Columns,
    filters: &[Arc<dyn PhysicalExpr>],
    files: &[FileId],
) -> Result<Option<Vec<bool>>> {
    let mut leaves = Leaves { columns, fields: Vec::new() };
    let flat: Vec<_> = filters.iter().map(|f| leaves.flatten(Arc::clone(f))).collect::<Result<_>>()?;
    let schema: SchemaRef = Arc::new(ArrowSchema::new(leaves.fields));
    let flat = flat.into_iter().map(|f| reassign_expr_columns(f, &schema)).collect::<Result<Vec<_>>>();
    // A filter over a column that has no bounds of its own, such as an array, is not looked at.
    let Ok(flat) = flat else { return Ok(None) };
    let simple = PhysicalExprSimplifier::new(&schema).simplify(conjunction(flat))?;
    let predicate = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(&schema))
        .with_max_in_list_size(LISTED_VALUES_MAX)
        .try_build(simple);
    let Ok(predicate) = predicate else { return Ok(None) };
    if predicate.always_true() {
        return Ok(None);
    }
    let state = table.state();
    let mut known = Known { files: files.len(), columns: HashMap::new(), rows: None };
    let rows: UInt64Array = files.iter().map(|id| state.files.get(*id).rows).collect();
    known.rows = Some(Arc::new(rows));
    let mut keys = Vec::new();
    for field in schema.fields() {
        match columns.partitions.iter().position(|p| p.name() == field.name()) {
            Some(index) => {
                known.columns.insert(field.name().clone(), partition_values(table, files, index, field.data_type()));
            }
            None => keys.extend(leaf(columns, field.name()).map(|key| (field, key))),
        }
    }
    for lot in keys.chunks((BOUNDS_AT_ONCE / files.len().max(1)).max(1)) {
        let wanted: Vec<OrderKey> = lot.iter().map(|(_, key)| key.clone()).collect();
        let bounds = table.column_bounds(&wanted, files).await.map_err(external)?;
        for ((field, _), bounds) in lot.iter().zip(bounds) {
            known.columns.insert(field.name().clone(), of_bounds(bounds, field.data_type()));
        }
    }
    Ok(predicate.prune(&known).ok())
}

/// The leaf columns that filters name, nested ones under one name.
struct Leaves<'a> {
    columns: &'a Columns,
    fields: Vec<ArrowField>,
}

impl Leaves<'_> {
    /// The filter over leaf columns; floats are compared as they stand, for their bounds are told that way.
    fn flatten(&mut self, filter: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        filter
            .transform_down(|expr| {
                let inner = float_order::inner(&expr);
                let bare = inner.as_ref().unwrap_or(&expr);
                Ok(match self.name(bare) {
                    Some(name) => Transformed::new(self.leaf(name), true, TreeNodeRecursion::Jump),
                    None => Transformed::new_transformed(Arc::clone(bare), inner.is_some()),
                })
            })
            .data()
    }

    fn leaf(&mut self, name: String) -> Arc<dyn PhysicalExpr> {
        if !self.fields.iter().any(|f| *f.name() == name) {
            let data_type = leaf(self.columns, &name).and_then(|key| arrow_type(&key.data_type).ok());
            self.fields.push(ArrowField::new(&name, data_type.unwrap_or(ArrowType::Null), true));
        }
        let index = self.fields.iter().position(|f| *f.name() == name).unwrap_or_default();
        Arc::new(ColumnExpr::new(&name, index))
    }

    /// The name of the leaf that an expression is.
    fn name(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
        if let Some(column) = expr.downcast_ref::<ColumnExpr>() {
            return leaf(self.columns, column.name()).map(|_| column.name().to_owned());
        }
        let function = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr.as_ref())?;
        let (parent, keys) = function.args().split_first()?;
        let mut name = self.parent(parent)?;
        for key in keys {
            let key = key.downcast_ref::<Literal>()?.value().try_as_str().flatten()?;
            name.push(NESTED);
            name.push_str(key);
        }
        leaf(self.columns, &name).map(|_| name)
    }

    fn parent(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
        match expr.downcast_ref::<ColumnExpr>() {
            Some(column) => Some(column.name().to_owned()),
            None => {
                let function = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr.as_ref())?;
                let (parent, keys) = function.args().split_first()?;
                let mut name = self.parent(parent)?;
                for key in keys {
                    name.push(NESTED);
                    name.push_str(key.downcast_ref::<Literal>()?.value().try_as_str().flatten()?);
                }
                Some(name)
            }
        }
    }
}

/// A column whose values have bounds, by its name in queries.
pub(super) fn leaf(columns: &Columns, name: &str) -> Option<OrderKey> {
    let mut parts = name.split(NESTED);
    let mut field: &Field = columns.field(parts.next()?)?;
    let (mut path, mut names) = (vec![field.physical.clone()], vec![field.name.clone()]);
    for part in parts {
        let DataType::Struct(children) = &field.data_type else { return None };
        field = children.iter().find(|f| f.name.to_lowercase() == part)?;
        path.push(field.physical.clone());
        names.push(field.name.clone());
    }
    let bounded = !matches!(
        field.data_type,
        DataType::Struct(_) | DataType::List(_) | DataType::Map(..) | DataType::Variant | DataType::Null
    );
    bounded.then(|| OrderKey { path, name: names, data_type: field.data_type.clone() })
}

/// What is known of one column, file by file.
struct KnownColumn {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: Option<ArrayRef>,
}

struct Known {
    files: usize,
    columns: HashMap<String, KnownColumn>,
    rows: Option<ArrayRef>,
}

impl PruningStatistics for Known {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(column.name())?.min.clone()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(column.name())?.max.clone()
    }

    fn num_containers(&self) -> usize {
        self.files
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.columns.get(column.name())?.nulls.clone()
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        self.rows.clone()
    }

    fn contained(&self, _: &Column, _: &std::collections::HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// The smaller of two zeros, or the greater one: in the order of bits they differ, in queries they don't.
fn with_zero(value: Scalar, zero: f64) -> Scalar {
    match value {
        Scalar::Double(0.0) => Scalar::Double(zero),
        Scalar::Double(v) if v.is_nan() => Scalar::Double(f64::NAN),
        other => other,
    }
}

fn partition_values(table: &Table, files: &[FileId], index: usize, data_type: &ArrowType) -> KnownColumn {
    let state = table.state();
    let values = |zero: f64| {
        let of = |id: &FileId| {
            let value = state.files.get(*id).partition.values.get(index)?;
            scalar(&with_zero(value.clone(), zero), data_type)
        };
        array(files.iter().map(of), data_type)
    };
    let nulls: UInt64Array = files
        .iter()
        .map(|id| {
            let file = state.files.get(*id);
            match file.partition.values.get(index) {
                Some(value) if !value.is_null() => Some(0),
                _ => file.rows,
            }
        })
        .collect();
    KnownColumn { min: values(-0.0), max: values(0.0), nulls: Some(Arc::new(nulls)) }
}

fn of_bounds(bounds: ColumnBounds, data_type: &ArrowType) -> KnownColumn {
    let floats = matches!(data_type, ArrowType::Float32 | ArrowType::Float64);
    let low = bounds.low.into_iter().map(|value| {
        let value = value.filter(|v| !matches!(v, Scalar::Double(v) if v.is_nan()))?;
        scalar(&with_zero(value, -0.0), data_type)
    });
    let high = bounds.high.iter().map(|value| scalar(value.as_ref()?, data_type));
    let nulls: UInt64Array = bounds.nulls.into_iter().collect();
    KnownColumn {
        min: array(low, data_type),
        // NaN is greater than everything, and some writers leave it out of their bounds.
        max: if floats { None } else { array(high, data_type) },
        nulls: Some(Arc::new(nulls)),
    }
}

fn array(values: impl Iterator<Item = Option<ScalarValue>>, data_type: &ArrowType) -> Option<ArrayRef> {
    let null = ScalarValue::try_from(data_type).ok()?;
    ScalarValue::iter_to_array(values.map(|v| v.unwrap_or_else(|| null.clone()))).ok()
}
