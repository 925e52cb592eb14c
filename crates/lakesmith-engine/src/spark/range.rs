//! `range(end)`, `range(start, end[, step[, partitions]])`: the column `id`.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The table function.
#[derive(Debug)]
pub(crate) struct Range;

impl TableFunctionImpl for Range {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let numbers = args.exprs().iter().map(whole).collect::<Option<Vec<i64>>>();
        let (start, end, step) = match numbers.as_deref() {
            Some([end]) => (0, *end, 1),
            Some([start, end]) => (*start, *end, 1),
            Some([start, end, step] | [start, end, step, _]) if *step != 0 => (*start, *end, *step),
            _ => return plan_err!("range takes one to four whole numbers: (end) or (start, end, step, partitions)"),
        };
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
        let numbers = Numbers { schema: Arc::clone(&schema), start, end, step };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(numbers)])?))
    }
}

fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(value) => value,
            _ => None,
        },
        Expr::Cast(cast) => whole(&cast.expr),
        Expr::Negative(inner) => whole(inner)?.checked_neg(),
        _ => None,
    }
}

#[derive(Debug)]
struct Numbers {
    schema: SchemaRef,
    start: i64,
    end: i64,
    step: i64,
}

impl PartitionStream for Numbers {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (end, step, schema) = (self.end, self.step, Arc::clone(&self.schema));
        let mut next = Some(self.start);
        let batches = std::iter::from_fn(move || {
            let inside = |value: i64| if step > 0 { value < end } else { value > end };
            let mut values = Vec::with_capacity(BATCH_ROWS);
            while let Some(value) = next.filter(|v| inside(*v) && values.len() < BATCH_ROWS) {
                values.push(value);
                next = value.checked_add(step);
            }
            if values.is_empty() {
                return None;
            }
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(values))]);
            Some(batch.map_err(Into::into))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}
