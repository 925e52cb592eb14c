//! One file an operation: load, plan, drive, report.

pub(crate) mod alter_table;
pub(crate) mod checkpoint;
pub(crate) mod cluster_by;
pub(crate) mod create_table;
pub(crate) mod describe;
pub(crate) mod describe_table;
pub(crate) mod fsck;
pub(crate) mod health;
pub(crate) mod optimize;
pub(crate) mod properties;
pub(crate) mod reorg;
pub(crate) mod restore;
pub(crate) mod vacuum;

use lakesmith_core::Result;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::predicate::{BoundPredicate, Expr, bind_partition_predicate};
use lakesmith_core::table::TableState;
use lakesmith_delta::{DeltaTable, Needs};
use lakesmith_storage::{Location, Store};

use crate::Session;

fn load(session: &Session, store: &Store, root: &Location, at: TimeTravel, files: bool) -> Result<DeltaTable> {
    let table = session.runtime.block_on(lakesmith_delta::load(store, root, at, Needs { files, stats: false }))?;
    let state = &table.state;
    tracing::info!(
        version = state.version,
        files = state.files.len(),
        checkpoint = table.log.checkpoint_version,
        requests = store.requests().total(),
        "loaded"
    );
    Ok(table)
}

fn bind(session: &Session, state: &TableState, predicate: Option<&Expr>) -> Result<Option<BoundPredicate>> {
    let now_ms = session.options.world.now_ms();
    predicate.map(|p| bind_partition_predicate(p, &state.schema, &state.partition_columns, now_ms)).transpose()
}

fn predicate_parameter(predicate: Option<&Expr>) -> String {
    let texts: Vec<String> = predicate.iter().map(|p| p.spark_text()).collect();
    json_text(&json_text(&texts))
}

/// JSON text of a value that always has one.
pub(crate) fn json_text<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(crate) fn iso(timestamp_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(timestamp_ms)
        .map_or_else(|_| timestamp_ms.to_string(), |t| t.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string())
}
