//! Expressions over the table's columns as expressions over those of one file.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};
use lakesmith::table::{Field, Scalar};
use lakesmith_exec::{ColumnAdapter, check_calendar};

use super::columns::Columns;
use super::file_reader::{BYTES, FILE_PATH, LEGACY_CALENDAR};
use super::scalars::scalar;
use super::source::FilterFailure;

/// Makes adapters for the files of one table.
#[derive(Debug)]
pub(crate) struct TableAdapter {
    /// The table's columns.
    pub columns: Arc<Columns>,
    /// Takes what fails inside filters.
    pub failure: FilterFailure,
    /// Values that columns have in all rows of a file which lacks them, by the file's location.
    pub constants: Arc<Constants>,
}

/// Values by field id of files by location.
pub(crate) type Constants = HashMap<String, Vec<(i32, Scalar)>>;

impl PhysicalExprAdapterFactory for TableAdapter {
    fn create(&self, _table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let fields = self.columns.scan.file_schema().fields();
        let mut plans = HashMap::with_capacity(fields.len());
        let path = file.metadata().get(FILE_PATH).cloned().unwrap_or_default();
        let legacy = file.metadata().contains_key(LEGACY_CALENDAR);
        let stored: Fields = file.fields().iter().map(with_own_name).collect();
        for (field, arrow) in self.columns.data.iter().zip(fields) {
            // What no file holds has no plan; a column that cannot be read matters only to those who ask for it.
            let plan = match arrow.data_type() {
                DataType::Null => Ok(None),
                to => ColumnAdapter::plan(field, to, &stored, self.columns.by_id)
                    .map_err(|e| Arc::new(e.with("path", &path))),
            };
            let plan = match plan {
                Ok(None) => self.absent(field, arrow.data_type(), &path).map(Plan::Constant),
                Ok(Some((index, adapter))) => Ok(Plan::Column(index, adapter)),
                Err(error) => Err(error),
            };
            plans.insert(arrow.name().clone(), (plan, arrow.data_type().clone()));
        }
        Ok(Arc::new(FileAdapter { plans, file, legacy, path: path.into(), failure: self.failure.clone() }))
    }
}

impl TableAdapter {
    /// What all rows of a file have in a column that it lacks.
    fn absent(
        &self,
        field: &Field,
        to: &DataType,
        path: &str,
    ) -> std::result::Result<ScalarValue, Arc<lakesmith::Error>> {
        let wrong = |e: lakesmith::Error| Arc::new(e.with("column", &field.name).with("path", path));
        let constants = self.constants.get(path).map(Vec::as_slice).unwrap_or_default();
        if let Some((_, value)) = constants.iter().find(|(id, _)| Some(*id) == field.id) {
            return scalar(value, to)
                .ok_or_else(|| wrong(lakesmith::Error::corrupt("a partition's value does not fit its column")));
        }
        let found = ColumnAdapter::absent(field, to).map_err(wrong)?;
        let found = match found {
            Some(array) => ScalarValue::try_from_array(&array, 0),
            None => ScalarValue::try_from(to),
        };
        found.map_err(|e| wrong(lakesmith::Error::internal("a column that files lack has no value").caused_by(e)))
    }
}

/// The field by the name that it has in the file.
fn with_own_name(field: &FieldRef) -> FieldRef {
    match field.name().strip_prefix(BYTES) {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => Arc::clone(field),
    }
}

/// What becomes of a column.
#[derive(Debug, Clone)]
enum Plan {
    /// It is in the file, at this place.
    Column(usize, ColumnAdapter),
    /// It is not, and is the same in all rows.
    Constant(ScalarValue),
}

/// A column that cannot be read matters only to those who ask for it.
type Planned = std::result::Result<Plan, Arc<lakesmith::Error>>;

#[derive(Debug)]
struct FileAdapter {
    plans: HashMap<String, (Planned, DataType)>,
    file: SchemaRef,
    legacy: bool,
    path: Arc<str>,
    failure: FilterFailure,
}

impl PhysicalExprAdapter for FileAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        expr.transform(|expr| match expr.downcast_ref::<Column>() {
            Some(column) => Ok(Transformed::yes(self.column(column)?)),
            None => Ok(Transformed::no(expr)),
        })
        .data()
    }
}

impl FileAdapter {
    fn column(&self, column: &Column) -> Result<Arc<dyn PhysicalExpr>> {
        let Some((plan, to)) = self.plans.get(column.name()) else {
            // A column that the reader makes up.
            return Ok(Arc::new(Column::new_with_schema(column.name(), &self.file)?));
        };
        let plan = plan.as_ref().map_err(|e| DataFusionError::External(Box::new(Arc::clone(e))))?;
        let (index, adapter) = match plan {
            Plan::Column(index, adapter) => (index, adapter),
            Plan::Constant(value) => return Ok(Arc::new(Literal::new(value.clone()))),
        };
        let field = self.file.field(*index);
        let source: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), *index));
        let from = field.data_type();
        Ok(match (from, to) {
            // What the file's own statistics say of floats, readers must not trust: NaN may be hidden.
            _ if from == to && !has_floats(to) && !self.checks(to) => source,
            (
                DataType::Int8 | DataType::Int16 | DataType::Int32,
                DataType::Int16 | DataType::Int32 | DataType::Int64,
            ) => Arc::new(CastExpr::new(source, to.clone(), None)),
            _ => Arc::new(AdaptExpr {
                source,
                adapter: adapter.clone(),
                column: column.name().into(),
                path: Arc::clone(&self.path),
                checks: self.checks(to),
                failure: self.failure.clone(),
            }),
        })
    }

    /// True if values of the type must be looked at: the file was written by another calendar.
    fn checks(&self, data_type: &DataType) -> bool {
        self.legacy && holds(data_type, &|t| matches!(t, DataType::Date32 | DataType::Timestamp(..)))
    }
}

fn has_floats(data_type: &DataType) -> bool {
    holds(data_type, &|t| matches!(t, DataType::Float16 | DataType::Float32 | DataType::Float64))
}

fn holds(data_type: &DataType, wanted: &dyn Fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|f| holds(f.data_type(), wanted)),
        DataType::List(inner) | DataType::Map(inner, _) => holds(inner.data_type(), wanted),
        other => wanted(other),
    }
}

/// A column of a file turned into the table's; nothing of it can be derived from statistics.
#[derive(Debug, Clone)]
struct AdaptExpr {
    source: Arc<dyn PhysicalExpr>,
    adapter: ColumnAdapter,
    column: Arc<str>,
    path: Arc<str>,
    checks: bool,
    failure: FilterFailure,
}

impl PartialEq for AdaptExpr {
    fn eq(&self, other: &Self) -> bool {
        self.source.eq(&other.source)
            && self.adapter.data_type() == other.adapter.data_type()
            && self.path == other.path
    }
}

impl Eq for AdaptExpr {}

impl Hash for AdaptExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
        self.adapter.data_type().hash(state);
    }
}

impl fmt::Display for AdaptExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} AS {}", self.source, self.adapter.data_type())
    }
}

impl PhysicalExpr for AdaptExpr {
    fn data_type(&self, _input: &Schema) -> Result<DataType> {
        Ok(self.adapter.data_type().clone())
    }

    fn nullable(&self, _input: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.source.evaluate(batch)?.into_array(batch.num_rows())?;
        let adapted = self.adapter.apply(&array).map_err(|e| {
            let error = lakesmith::Error::unsupported(
                "a file holds a value that the column's type in the table cannot hold; rewrite the file with its own writer",
            );
            self.failure.note(error.with("column", &self.column).with("path", &self.path).caused_by(e))
        })?;
        if self.checks {
            check_calendar(&adapted, &self.column, &self.path).map_err(|e| self.failure.note(e))?;
        }
        Ok(ColumnarValue::Array(adapted))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.source]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let mut new = (*self).clone();
        if let [source] = children.as_slice() {
            new.source = Arc::clone(source);
        }
        Ok(Arc::new(new))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt_sql(f)
    }
}
