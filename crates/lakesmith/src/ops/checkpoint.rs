//! Writes a checkpoint of the newest version, and cleans up the log that it replaces.

use lakesmith_core::Result;
use lakesmith_core::op::{CheckpointOptions, CheckpointReport, ExpiredLogFile, LogCleanupReport, Report, TimeTravel};
use lakesmith_core::plan::{KeptLogFile, LogCleanupPlan, LogCut};
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Location, Store, SweepReport};

use super::{iso, load};
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: CheckpointOptions) -> Result<Report> {
    let table = load(session, store, root, TimeTravel::Latest, false)?;
    lakesmith_delta::check_writable(&table)?;
    let version = table.state.version;
    let mut report = CheckpointReport { version, written: false, log: None };
    if options.dry_run {
        session.runtime.block_on(lakesmith_delta::check_hint_replaceable(store, root, version))?;
    } else {
        let info = session.runtime.block_on(lakesmith_delta::write_checkpoint(store, root, version))?;
        report.written = info.written.is_some();
    }
    if options.clean_log {
        report.log = Some(clean(session, store, root, &table, options.dry_run)?);
    }
    Ok(Report::Checkpoint(Box::new(report)))
}

fn clean(
    session: &Session,
    store: &Store,
    root: &Location,
    table: &DeltaTable,
    dry_run: bool,
) -> Result<LogCleanupReport> {
    let now_ms = session.options.world.now_ms();
    let planned = dry_run.then_some(table.state.version);
    let plan = session.runtime.block_on(lakesmith_delta::plan_log_clean(store, root, table, now_ms, planned))?;
    let swept = if dry_run {
        SweepReport::default()
    } else {
        session.runtime.block_on(lakesmith_delta::clean_log(store, root, &plan))?
    };
    Ok(report(root, &plan, &swept, dry_run))
}

fn report(root: &Location, plan: &LogCleanupPlan, swept: &SweepReport, dry_run: bool) -> LogCleanupReport {
    let folder = root.join("_delta_log");
    let name = |location: &Location| location.relative_to(&folder).unwrap_or_default().to_owned();
    let gone: std::collections::BTreeSet<String> = swept.deleted.iter().map(name).collect();
    let files: Vec<ExpiredLogFile> = plan
        .expired()
        .filter(|file| dry_run || gone.contains(&file.name))
        .map(|file| ExpiredLogFile { path: file.name.clone(), size: file.size })
        .collect();
    let (keep_from, nothing) = match plan.cut() {
        LogCut::Before(version) => (Some(*version), None),
        LogCut::Nothing(why) => (None, Some(why.clone())),
    };
    LogCleanupReport {
        cutoff: iso(plan.cutoff_ms()),
        keep_from,
        nothing,
        bytes: files.iter().map(|f| f.size).sum(),
        files,
        kept: plan.kept().to_vec(),
        failed: swept.failed.iter().map(|(l, why)| KeptLogFile { path: name(l), reason: why.clone() }).collect(),
        dry_run,
    }
}
