//! RESTORE.

use lakesmith_core::Result;
use lakesmith_core::op::{Report, RestoreOptions, RestoreReport, TimeTravel};
use lakesmith_core::table::OperationInfo;
use lakesmith_delta::{CommitContext, Restoration};
use lakesmith_storage::{Location, Store};

use super::{iso, json_text};
use crate::Session;
use crate::drive::ENGINE_INFO;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &RestoreOptions) -> Result<Report> {
    let cancel = &session.options.cancel;
    let restoration = session.runtime.block_on(Restoration::prepare(store, root, options, cancel))?;
    let version_after = if options.dry_run {
        None
    } else {
        let context = CommitContext {
            world: session.options.world.as_ref(),
            cancel,
            engine_info: ENGINE_INFO.to_string(),
            timeout_ms: options.commit_timeout_ms,
        };
        let operation = operation(options);
        Some(session.runtime.block_on(restoration.commit(store, root, &operation, &context))?)
    };
    Ok(Report::Restore(Box::new(RestoreReport {
        path: root.to_string(),
        version_before: restoration.current_version(),
        restored_version: restoration.target_version(),
        version_after,
        committed: version_after.is_some(),
        metrics: *restoration.metrics(),
    })))
}

/// As Spark has it: what was not said is null.
fn operation(options: &RestoreOptions) -> OperationInfo {
    let (version, timestamp) = match options.to {
        TimeTravel::Version(version) => (Some(version), None),
        TimeTravel::Timestamp(time_ms) => (None, Some(options.timestamp_text.clone().unwrap_or_else(|| iso(time_ms)))),
        TimeTravel::Latest => (None, None),
    };
    OperationInfo {
        name: "RESTORE".into(),
        parameters: vec![("version".into(), json_text(&version)), ("timestamp".into(), json_text(&timestamp))],
        user_metadata: options.user_metadata.clone(),
    }
}
