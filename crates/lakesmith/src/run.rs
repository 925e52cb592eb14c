//! The one dispatch from an operation to its room.

use std::time::Instant;

use lakesmith_core::Result;
use lakesmith_core::op::{Operation, Report};
use lakesmith_storage::Store;

use crate::catalog::Target;
use crate::format::{Format, find, not_written};
use crate::{Session, Table, ops};

pub(crate) fn run(session: &Session, target: &Target, operation: Operation) -> Result<Report> {
    let store = session.open_target(target)?;
    let name = operation.name();
    watched(&store, target, name, || {
        dispatch(session, &store, target, operation).map_err(|error| {
            let found = Table::is_missing(&error) && target.format.is_none();
            let found = found.then(|| session.runtime.block_on(find(&store, &target.root)));
            match found {
                Some(Ok(Format::Iceberg)) => not_written(name, &target.root),
                _ => error,
            }
        })
    })
}

/// Runs the operation `name` and logs what it cost.
pub(crate) fn watched(
    store: &Store,
    target: &Target,
    name: &str,
    work: impl FnOnce() -> Result<Report>,
) -> Result<Report> {
    let span = tracing::info_span!("run", operation = name, table = %target.root);
    let _entered = span.enter();
    let started = Instant::now();
    let done = work();
    let requests = store.requests();
    let (seconds, total) = (started.elapsed().as_secs_f64(), requests.total());
    let (bytes_read, bytes_written) = (requests.bytes_read, requests.bytes_written);
    match &done {
        Ok(_) => tracing::info!(seconds, requests = total, bytes_read, bytes_written, "done"),
        Err(error) => {
            tracing::info!(seconds, requests = total, bytes_read, bytes_written, class = error.class_name(), "failed");
        }
    }
    done
}

fn dispatch(session: &Session, store: &Store, target: &Target, operation: Operation) -> Result<Report> {
    let root = &target.root;
    if target.format == Some(Format::Iceberg) && !is_read(&operation) {
        return Err(not_written(operation.name(), root));
    }
    match planned_only(operation) {
        Operation::Optimize(options) => ops::optimize::run(session, store, root, &options),
        Operation::Reorg(options) => ops::reorg::run(session, store, root, &options),
        Operation::Detail(at) => ops::describe::detail(session, store, target, at),
        Operation::History(options) => ops::describe::history(session, store, target, options),
        Operation::Files(at) => ops::describe::files(session, store, target, at),
        Operation::ShowProperties(key) => ops::properties::show(session, store, target, key.as_deref()),
        Operation::AlterProperties(options) => ops::properties::alter(session, store, root, &options),
        Operation::AlterTable(options) => ops::alter_table::run(session, store, root, &options),
        Operation::ClusterBy(options) => ops::cluster_by::run(session, store, root, &options),
        Operation::CreateTable(options) => ops::create_table::run(session, store, root, &options, None),
        Operation::ShowColumns => ops::describe_table::columns(session, store, target),
        Operation::ShowCreate => ops::describe_table::create_statement(session, store, target),
        Operation::DescribeTable { extended } => ops::describe_table::table(session, store, target, extended),
        Operation::DescribeColumn(column) => ops::describe_table::column(session, store, target, &column),
        Operation::Checkpoint(options) => ops::checkpoint::run(session, store, root, options),
        Operation::Vacuum(options) => ops::vacuum::run(session, store, root, &options),
        Operation::Fsck(options) => ops::fsck::run(session, store, root, &options),
        Operation::Restore(options) => ops::restore::run(session, store, root, &options),
        Operation::Health(options) => ops::health::run(session, store, target, &options),
    }
}

/// True for operations that every format has.
fn is_read(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Detail(_)
            | Operation::History(_)
            | Operation::Files(_)
            | Operation::Health(_)
            | Operation::ShowProperties(_)
            | Operation::ShowColumns
            | Operation::ShowCreate
            | Operation::DescribeTable { .. }
            | Operation::DescribeColumn(_)
    )
}

/// A run that writes its plan to a file stops there.
fn planned_only(mut operation: Operation) -> Operation {
    match &mut operation {
        Operation::Optimize(options) => options.limits.dry_run |= options.limits.plan_out.is_some(),
        Operation::Reorg(options) => options.limits.dry_run |= options.limits.plan_out.is_some(),
        Operation::Vacuum(options) => options.dry_run |= options.plan_out.is_some(),
        _ => {}
    }
    operation
}
