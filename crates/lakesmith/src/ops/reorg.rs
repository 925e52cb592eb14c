//! REORG … APPLY (PURGE): deleted rows and dropped columns leave the files.

use std::collections::BTreeSet;

use lakesmith_core::Result;
use lakesmith_core::op::{Compat, PlannedOperation, ReorgOptions, Report, TimeTravel};
use lakesmith_core::plan;
use lakesmith_core::table::{FileId, OperationInfo};
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Location, Store};

use super::optimize::Rewrite;
use super::{bind, load, predicate_parameter};
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &ReorgOptions) -> Result<Report> {
    let start_time_ms = session.options.world.now_ms();
    let table = load(session, store, root, TimeTravel::Latest, true)?;
    let predicate = bind(session, &table.state, options.predicate.as_ref())?;
    let candidates = plan::purge_candidates(&table.state, options, predicate.as_ref())?;
    let dropped = with_dropped_columns(session, store, root, &table, &candidates)?;
    let plan = plan::purge(&table.state, options, predicate.as_ref(), &dropped)?;
    let planned =
        PlannedOperation::Reorg { predicate: options.predicate_text.clone(), target_bytes: options.sizes.target_bytes };
    let operation = OperationInfo {
        name: "REORG".into(),
        parameters: vec![
            ("predicate".into(), predicate_parameter(options.predicate.as_ref())),
            ("applyPurge".into(), "true".into()),
        ],
        user_metadata: options.limits.user_metadata.clone(),
    };
    let limits = &options.limits;
    let rewrite = Rewrite {
        session,
        store,
        root,
        table: &table,
        limits,
        start_time_ms,
        compat: Compat::Lakesmith,
        mode: None,
        full: false,
        purges: true,
        forced: false,
        layout: None,
    };
    rewrite.run(plan, operation, planned)
}

/// Looks into the footers: a file without deleted rows may still hold a column that the schema dropped.
fn with_dropped_columns(
    session: &Session,
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    candidates: &[FileId],
) -> Result<BTreeSet<FileId>> {
    let read = lakesmith_delta::read_spec(table)?;
    let hidden = lakesmith_delta::hidden_columns(table);
    let inputs = lakesmith_delta::input_files(table, root, candidates)?;
    session.options.progress.begin("reading footers", inputs.iter().map(|f| f.size).sum());
    let found = lakesmith_exec::files_with_dropped_columns(
        store,
        &inputs,
        &read,
        &hidden,
        &session.options.cancel,
        session.options.progress.as_ref(),
        session.runtime.handle(),
    );
    session.options.progress.end();
    found
}
