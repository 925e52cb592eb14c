//! RESTORE.

use lakesmith_core::Result;
use lakesmith_core::op::{Report, RestoreOptions, RestoreReport, TimeTravel};
use lakesmith_core::table::OperationInfo;
use lakesmith_delta::Restoration;
use lakesmith_storage::{Location, Store};

use super::json_text;
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &RestoreOptions) -> Result<Report> {
    let cancel = &session.options.cancel;
    let restoration = session.runtime.block_on(Restoration::prepare(store, root, options, cancel))?;
    let version_after = if options.dry_run {
        None
    } else {
        let context = session.commit_context(Some(options.commit_timeout_ms))?;
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
    let (version, timestamp) = match &options.to {
        TimeTravel::Version(version) => (Some(*version), None),
        TimeTravel::Timestamp(time_ms) => (None, Some(spark_time(*time_ms))),
        TimeTravel::Latest | TimeTravel::Reference(_) => (None, None),
    };
    OperationInfo {
        name: "RESTORE".into(),
        parameters: vec![("version".into(), json_text(&version)), ("timestamp".into(), json_text(&timestamp))],
        user_metadata: options.user_metadata.clone(),
    }
}

/// As Java prints it: no zeros at the end, but one digit behind the point.
fn spark_time(time_ms: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_millisecond(time_ms) else { return time_ms.to_string() };
    let text = time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string();
    match text.trim_end_matches('0') {
        whole if whole.ends_with('.') => format!("{whole}0"),
        shortened => shortened.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_javas() {
        assert_eq!(spark_time(1_796_059_898_747), "2026-11-30 17:31:38.747");
        assert_eq!(spark_time(1_796_059_898_700), "2026-11-30 17:31:38.7");
        assert_eq!(spark_time(1_796_059_890_000), "2026-11-30 17:31:30.0");
    }
}
