//! Cleaning up a log: what is older than its retention and no kept version needs.
//!
//! ```text
//! listing + cut-off ──> log_cut ──> sidecars of what stays ──> plan ──> load whole from the kept checkpoint ──> sweep
//! ```
//!
//! # Source
//! Delta PROTOCOL.md, "Metadata Cleanup"; Delta Spark `MetadataCleanup.scala`. Unlike Spark, which keeps the first
//! checkpoint after the cut-off, the version that was current at the cut-off stays readable, as the protocol says.

use futures::TryStreamExt as _;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::plan::{
    LogCleanupInput, LogCleanupPlan, LogCut, LogCutRules, log_cut, log_cutoff_ms, plan_log_cleanup,
};
use lakesmith_core::table::{LogFile, LogRole};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{CheckpointProof, Location, Store, SweepPlan, SweepReport, sweep};

use crate::check_writable;
use crate::commit_info::CommitClock;
use crate::last_checkpoint;
use crate::load::{Needs, load};
use crate::log_files::{LOG_FOLDER, LogFiles, log_file};
use crate::log_state::DeltaTable;
use crate::retention::LOG_RETENTION;
use crate::sidecars::referenced_sidecars;

const ENABLED: &str = "delta.enableExpiredLogCleanup";
pub(crate) const PROTECTED_BEFORE: &str = "delta.requireCheckpointProtectionBeforeVersion";

/// True unless the table says that its log is kept for ever.
pub(crate) fn is_enabled(table: &DeltaTable) -> bool {
    table.state.property(ENABLED).is_none_or(|v| !v.trim().eq_ignore_ascii_case("false"))
}

/// What a clean-up of the log would delete at `now_ms`; `planned_checkpoint` is a version that will have a checkpoint by
/// then. `table` is the newest version.
///
/// # Errors
/// `Retention` if the table keeps its log for ever, `Unsupported` for a table whose log a catalog manages or that has
/// features that we don't know, `Usage` for a retention that is no interval, `Unavailable` from the storage.
pub async fn plan_log_clean(
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    now_ms: i64,
    planned_checkpoint: Option<u64>,
) -> Result<LogCleanupPlan> {
    check_writable(table)?;
    if !is_enabled(table) {
        return Err(Error::new(
            ErrorKind::Retention,
            format!("the table keeps its log for ever; unset {ENABLED} or set it to true to have it cleaned up"),
        )
        .with("path", root)
        .with("property", ENABLED));
    }
    let folder = root.join(LOG_FOLDER);
    let files: Vec<LogFile> = store
        .list_stream(&folder)
        .try_filter_map(|info| std::future::ready(Ok(log_file(&folder, &info))))
        .try_collect()
        .await?;
    let cutoff_ms = log_cutoff_ms(now_ms, LOG_RETENTION.of(table)?);
    let rules = LogCutRules {
        cutoff_version: cutoff_version(store, root, table, cutoff_ms).await?,
        pointed_to: last_checkpoint::published(store, root).await?,
        protected_before: protected_before(table),
        planned_checkpoint,
    };
    let cut = log_cut(&files, rules);
    let referenced = match &cut {
        LogCut::Before(version) if files.iter().any(|f| f.role == LogRole::Sidecar) => {
            let staying = files.iter().filter(|f| f.role == LogRole::Checkpoint && f.version >= *version);
            match referenced_sidecars(store, &folder, staying).await {
                Ok(referenced) => Some(referenced),
                Err(error) => {
                    tracing::warn!(%error, "sidecars stay, because a checkpoint could not be searched for them");
                    None
                }
            }
        }
        _ => None,
    };
    let input = LogCleanupInput { files: &files, cutoff_ms, now_ms, referenced_sidecars: referenced.as_ref() };
    Ok(plan_log_cleanup(&input, cut))
}

/// Carries `plan` out: loads the table whole from the checkpoint that stays, then deletes.
///
/// # Errors
/// `Corrupt` if the checkpoint can't take the place of the older files; then nothing is deleted. `Unavailable` from the
/// storage. A file that can't be deleted is reported, not an error.
pub async fn clean_log(store: &Store, root: &Location, plan: &LogCleanupPlan) -> Result<SweepReport> {
    let LogCut::Before(version) = plan.cut() else { return Ok(SweepReport::default()) };
    if plan.is_empty() {
        return Ok(SweepReport::default());
    }
    let needs = Needs { files: true, stats: false };
    let kept = load(store, root, TimeTravel::Version(*version), needs).await.map_err(|e| unusable(e, *version))?;
    let Some(loaded_from) = kept.log.checkpoint_version.filter(|from| from == version) else {
        return Err(unusable(Error::corrupt("readers don't use it"), *version).with("path", root));
    };
    let proof = CheckpointProof { loaded_from };
    sweep(store, SweepPlan::log_expired(&root.join(LOG_FOLDER), plan, proof)?).await
}

fn unusable(error: Error, version: u64) -> Error {
    Error::new(
        error.kind(),
        "the log was not cleaned up: the checkpoint that would take the place of older files can't be read; remove that \
         checkpoint if all commits before it are still there, and run again",
    )
    .with("version", version)
    .caused_by(error)
}

/// Cleans up after a checkpoint that a commit asked for; nothing if the table doesn't want it.
///
/// # Errors
/// As [`plan_log_clean`] and [`clean_log`].
pub(crate) async fn after_checkpoint(store: &Store, root: &Location, table: &DeltaTable, now_ms: i64) -> Result<()> {
    if !is_enabled(table) {
        return Ok(());
    }
    let plan = plan_log_clean(store, root, table, now_ms, None).await?;
    let report = clean_log(store, root, &plan).await?;
    if !report.failed.is_empty() {
        tracing::warn!(failed = report.failed.len(), "expired files of the log stay until the next clean-up");
    }
    Ok(())
}

/// A value that can't be read protects everything.
pub(crate) fn protected_before(table: &DeltaTable) -> u64 {
    if !table.state.has_feature("checkpointProtection") {
        return 0;
    }
    table.state.property(PROTECTED_BEFORE).map_or(0, |v| v.trim().parse().unwrap_or(u64::MAX))
}

/// The version that was current at the cut-off by the table's clock.
async fn cutoff_version(store: &Store, root: &Location, table: &DeltaTable, cutoff_ms: i64) -> Result<Option<u64>> {
    let files = LogFiles::list(store, root).await?;
    // A time that the storage doesn't tell makes a commit old that may be new.
    if files.commits.iter().any(|c| c.info.modified_ms <= 0) {
        return Ok(None);
    }
    CommitClock::of(table).newest_at(store, &files, cutoff_ms).await
}
