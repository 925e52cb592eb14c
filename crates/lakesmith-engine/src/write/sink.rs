//! Runs the plan of new rows and hands them to writers, each on a thread of its own.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt as _;
use lakesmith::table::NewFile;
use lakesmith::{Error, Result, RowChange, RowWriter};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::fill::{Check, Kind};
use super::in_insert;
use super::spread::{Spread, in_turn};

/// Batches that may wait for a writer.
const WAITING: usize = 2;

/// Writes the rows of `plan` into new files by `count` writers. The plan's columns are the table's, then those of `checks`.
///
/// # Errors
/// Usage for a row that breaks a rule, those of the plan and of the writers. Files that were written go with `change`.
pub(super) fn write(
    runtime: &Runtime,
    change: &RowChange<'_>,
    plan: &Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    (count, spread): (usize, Spread),
    checks: &[Check],
) -> Result<Vec<NewFile>> {
    let writers = change.writers(count)?;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel::<RecordBatch>(WAITING)).unzip();
    std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .into_iter()
            .zip(receivers)
            .map(|(writer, receiver)| scope.spawn(move || take(change, writer, receiver, checks)))
            .collect();
        let fed = runtime.block_on(feed(plan, task, senders, spread));
        let mut files = Vec::new();
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(written)) => files.extend(written),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(_) => {
                    failed =
                        failed.or(Some(Error::internal("a thread that wrote rows broke off; nothing is committed")))
                }
            }
        }
        // A writer that failed is why the rest could not be fed.
        match (failed, fed) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(in_insert(crate::failure::translate(error, &str::to_owned))),
            (None, Ok(false)) => Err(Error::internal("rows found no writer; nothing is committed")),
            (None, Ok(true)) => Ok(files),
        }
    })
}

/// Sends every batch; false if a writer is gone.
async fn feed(
    plan: &Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    senders: Vec<Sender<RecordBatch>>,
    spread: Spread,
) -> Result<bool, DataFusionError> {
    let mut running = JoinSet::new();
    for partition in 0..plan.properties().partitioning.partition_count() {
        let mut stream = plan.execute(partition, Arc::clone(task))?;
        let senders = match spread {
            Spread::Partitions => vec![senders[partition % senders.len()].clone()],
            Spread::Rows => senders.clone(),
        };
        running.spawn(async move {
            let mut turn = partition % senders.len();
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                let parts = match senders.len() {
                    1 => vec![batch],
                    count => in_turn(&batch, count, &mut turn)?,
                };
                for (part, sender) in parts.into_iter().zip(&senders) {
                    if part.num_rows() > 0 && sender.send(part).await.is_err() {
                        return Ok(false);
                    }
                }
            }
            Ok::<bool, DataFusionError>(true)
        });
    }
    drop(senders);
    let mut whole = true;
    while let Some(done) = running.join_next().await {
        // Whatever fails, the tasks that are left end with the set.
        whole &= done.map_err(|e| DataFusionError::External(Box::new(e)))??;
    }
    Ok(whole)
}

/// Writes what comes; a source that failed has closed the channel, and then the files are of no use.
fn take(
    change: &RowChange<'_>,
    mut writer: RowWriter,
    mut batches: Receiver<RecordBatch>,
    checks: &[Check],
) -> Result<Vec<NewFile>> {
    while let Some(batch) = batches.blocking_recv() {
        let columns = batch.num_columns() - checks.len();
        let rows = batch.project(&(0..columns).collect::<Vec<_>>());
        let rows = rows.map_err(|e| Error::internal("rows have lost their columns").caused_by(e))?;
        writer.check(&rows)?;
        for (check, column) in checks.iter().zip(&batch.columns()[columns..]) {
            let held = column.as_boolean();
            if held.true_count() < held.len() {
                let row = (0..held.len()).find(|row| held.is_null(*row) || !held.value(*row)).unwrap_or(0);
                return Err(broken(change, check, &batch, row));
            }
        }
        writer.write(&rows)?;
    }
    writer.finish()
}

fn broken(change: &RowChange<'_>, check: &Check, batch: &RecordBatch, row: usize) -> Error {
    let fields = &change.schema().fields;
    let shown = |column: usize| {
        let value = arrow::util::display::array_value_to_string(batch.column(column), row).unwrap_or_default();
        if batch.column(column).is_null(row) { "null".to_owned() } else { value }
    };
    let values: Vec<(String, String)> =
        fields.iter().enumerate().map(|(column, field)| (field.name.clone(), shown(column))).collect();
    match check.kind {
        Kind::Constraint => change.violated(&check.name, &check.sql, &values),
        Kind::Length(limit) => change.too_long(&check.name, limit),
        Kind::Replaced => change.not_replaced(&check.sql, &values),
    }
}
