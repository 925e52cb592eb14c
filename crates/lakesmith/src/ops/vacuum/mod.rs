//! VACUUM: finds what no version within the retention needs, and deletes it.
//!
//! ```text
//! load, features, retention guard ──> references ──> rule
//! folder | log | inventory ──rule──> candidates                                     dry run: stop
//! VACUUM START ──> references of the newest version ──rule again──> delete ──> VACUUM END, how far it covered
//! ```

mod condemned;
mod find;
mod history;
mod inventory;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lakesmith_core::op::{
    Compat, EntryList, Report, SweptEntry, TimeTravel, VacuumFailure, VacuumMode, VacuumOptions, VacuumReport,
};
use lakesmith_core::plan::sweep::{PathHash, PathSet, Retention, RetentionRequest, SweepRule};
use lakesmith_core::{Error, Result};
use lakesmith_delta::{DeltaTable, Needs};
use lakesmith_storage::{
    Location, NOTES_FOLDER, Renewal, SpillWriter, Store, Survey, SweepPlan, Swept, SweptOutcome, still_listed,
    sweep_with,
};

use self::condemned::Condemned;
use self::history::History;
use super::{iso, load};
use crate::{Session, plan_file};

/// Failures that are kept in the report one by one.
const FAILURES_SHOWN: usize = 1000;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &VacuumOptions) -> Result<Report> {
    let lists_nothing = options.mode == VacuumMode::Lite || options.inventory.is_some();
    if options.condemn_ms.is_some() && lists_nothing {
        return Err(Error::usage("condemning needs a full VACUUM that lists the table's folder"));
    }
    if options.plan_out.is_some()
        && (options.inventory.is_some() || options.condemn_ms.is_some() || options.pardon.is_some())
    {
        return Err(Error::usage(
            "a plan file goes with a VACUUM that lists the folder or reads the log, not with one that \
                                 takes an inventory, condemns or pardons",
        ));
    }
    let table = load(session, store, root, TimeTravel::Latest, true)?;
    lakesmith_delta::check_writable(&table)?;
    session.runtime.block_on(lakesmith_delta::check_undoubted(store, root, &table))?;
    if let Some(approved) = &options.approved {
        plan_file::check(approved, &table)?;
    }
    let vacuum = Vacuum::new(session, store, root, options, &table)?;
    let condemned = Condemned { session, store, root, table: &table.state.id, now_ms: vacuum.retention.now_ms() };
    let mut report = VacuumReport {
        path: root.to_string(),
        cutoff: iso(vacuum.retention.cutoff_ms()),
        dry_run: options.dry_run,
        mode: options.mode,
        ..VacuumReport::default()
    };
    match &options.pardon {
        Some(run) => {
            condemned.pardon(run, options.dry_run)?;
            report.pardoned = Some(run.clone());
        }
        None => vacuum.run(&table, &condemned, &mut report)?,
    }
    report.requests = store.requests().total();
    Ok(Report::Vacuum(Box::new(report)))
}

/// The time by which ages are counted. The storage's own clock wrote the times of the files; where ours is ahead of it, files
/// would look older than they are.
fn now_ms(session: &Session, store: &Store, root: &Location, dry_run: bool) -> Result<i64> {
    let ours = session.options.world.now_ms();
    if dry_run || root.scheme() == "file" {
        return Ok(ours);
    }
    let probe = root.join(&format!("{NOTES_FOLDER}/clock"));
    let theirs = session.runtime.block_on(async {
        store.put(&probe, Bytes::from_static(b"{}")).await?;
        store.head(&probe).await
    })?;
    Ok(if theirs.modified_ms > 0 { ours.min(theirs.modified_ms) } else { ours })
}

struct Vacuum<'a> {
    session: &'a Session,
    store: &'a Store,
    root: &'a Location,
    options: &'a VacuumOptions,
    retention: Retention,
    history: History<'a>,
}

/// What was deleted.
#[derive(Default)]
struct Done {
    files: EntryList<SweptEntry>,
    bytes: u64,
    failed: Vec<VacuumFailure>,
    version_after: Option<u64>,
}

impl<'a> Vacuum<'a> {
    fn new(
        session: &'a Session,
        store: &'a Store,
        root: &'a Location,
        options: &'a VacuumOptions,
        table: &DeltaTable,
    ) -> Result<Self> {
        let table_ms = lakesmith_delta::deleted_file_retention_ms(table)?;
        let specified_ms = match options.retain_ms {
            Some(ms) if ms != 0 && options.compat == Compat::Spark => {
                tracing::warn!("RETAIN is ignored unless it is 0, as in Spark; the table's own retention is used");
                None
            }
            specified => specified,
        };
        let retention = Retention::of(RetentionRequest {
            specified_ms,
            table_ms,
            check: options.retention_check,
            no_writers: options.no_writers,
            now_ms: now_ms(session, store, root, options.dry_run)?,
        })?;
        let history = History { session, store, root, options, specified_ms, table_ms };
        Ok(Self { session, store, root, options, retention, history })
    }

    fn run(&self, table: &DeltaTable, condemned: &Condemned<'_>, report: &mut VacuumReport) -> Result<()> {
        let rule = self.rule(table)?;
        // Looked up before anything is listed: what is removed meanwhile is the next run's.
        let covered = self.covered(table)?;
        let mut found = self.find(&rule, covered)?;
        let (mut fresh, mut lists) = (EntryList::default(), Vec::new());
        if self.options.condemn_ms.is_some() {
            let split = condemned.split(found)?;
            (found, fresh, lists) = (split.due, split.fresh, split.lists);
        }
        if let Some(approved) = &self.options.approved {
            found = plan_file::restrict_survey(found, approved)?;
        }
        if let Some(path) = &self.options.plan_out {
            plan_file::write_vacuum(path, table, self.options, &found)?;
        }
        report.kept = found.kept.clone();
        report.directories = found.folders + 1;
        if self.options.dry_run {
            (report.files, report.bytes) = (found.candidates, found.bytes);
            return Ok(());
        }
        let done = self.sweep(table, rule, &found)?;
        let complete = done.failed.is_empty();
        (report.files, report.bytes, report.failed) = (done.files, done.bytes, done.failed);
        report.version_after = done.version_after;
        match self.options.condemn_ms {
            Some(days_ms) => {
                report.condemned = condemned.write(&fresh, days_ms)?;
                if complete {
                    condemned.drop_lists(lists)?;
                }
            }
            // A run that was told which candidates to take leaves others behind.
            None if complete && self.options.inventory.is_none() && self.options.approved.is_none() => {
                self.session.runtime.block_on(lakesmith_delta::note_vacuum(self.store, self.root, covered))?;
                if self.options.mode == VacuumMode::Full {
                    // Nothing is left for them to wait for.
                    condemned.drop_lists(condemned.known_lists()?)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    fn rule(&self, table: &DeltaTable) -> Result<SweepRule> {
        let beyond = self.history.reaches_beyond_checkpoints();
        let rule = lakesmith_delta::sweep_rule(self.store, self.root, table, self.retention, beyond);
        self.session.runtime.block_on(rule)
    }

    /// Looks for commits after `newest`, and makes the rule anew if there are any; that of a table in whose place there is
    /// another one now says nothing any more.
    fn renewal(&self, newest: DeltaTable) -> Renewal {
        let (store, root, retention) = (self.store.clone(), self.root.clone(), self.retention);
        let beyond = self.history.reaches_beyond_checkpoints();
        let known = Arc::new(Mutex::new(Arc::new(newest)));
        Arc::new(move || {
            let (store, root, known) = (store.clone(), root.clone(), Arc::clone(&known));
            Box::pin(async move {
                let last = Arc::clone(&known.lock().unwrap_or_else(PoisonError::into_inner));
                if !lakesmith_delta::has_commits_after(&store, &root, last.state.version).await? {
                    lakesmith_delta::check_same_log(&store, &root, &last).await?;
                    return Ok(None);
                }
                let needs = Needs { files: true, stats: false };
                let table = lakesmith_delta::load(&store, &root, TimeTravel::Latest, needs).await?;
                lakesmith_delta::check_writable(&table)?;
                let rule = lakesmith_delta::sweep_rule(&store, &root, &table, retention, beyond).await?;
                *known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
                Ok(Some(rule))
            })
        })
    }

    fn find(&self, rule: &SweepRule, covered: Option<u64>) -> Result<Survey> {
        match (&self.options.inventory, self.options.mode) {
            (Some(_), VacuumMode::Lite) => {
                Err(Error::usage("LITE reads only the log; an inventory goes with a full VACUUM"))
            }
            (Some(inventory), VacuumMode::Full) => self.read_inventory(rule, inventory),
            (None, VacuumMode::Full) => self.list(rule),
            (None, VacuumMode::Lite) => self.read_log(rule, covered),
        }
    }

    fn sweep(&self, table: &DeltaTable, rule: SweepRule, found: &Survey) -> Result<Done> {
        self.session.options.cancel.check()?;
        let started = self.history.start(table, found)?;
        // Whatever was committed since the table was loaded may need a candidate.
        let newest = load(self.session, self.store, self.root, TimeTravel::Latest, false)?;
        lakesmith_delta::check_writable(&newest)?;
        self.session.runtime.block_on(lakesmith_delta::check_same_log(self.store, self.root, table))?;
        let own = u64::from(started.is_some());
        let rule = if newest.state.version == table.state.version + own {
            rule
        } else {
            self.rule(&load(self.session, self.store, self.root, TimeTravel::Version(newest.state.version), true)?)?
        };
        let mut done = self.delete(rule, found, self.renewal(newest.clone()))?;
        done.version_after = self.history.end(&newest, &done, found)?.or(started);
        Ok(done)
    }

    fn delete(&self, rule: SweepRule, found: &Survey, renewal: Renewal) -> Result<Done> {
        let (guards, candidates) = (found.guards.clone(), found.candidates.clone());
        let plan = SweepPlan::unreferenced(self.root, rule, guards, candidates, renewal);
        let mut gone = SpillWriter::new();
        let mut done = Done::default();
        let progress = &self.session.options.progress;
        let mut take = |swept: Swept| {
            let Some(entry) = swept.entry else { return Ok(()) };
            progress.advance(entry.size, 1);
            match swept.outcome {
                SweptOutcome::Gone => {
                    done.bytes = done.bytes.saturating_add(entry.size);
                    gone.push(&entry)?;
                }
                SweptOutcome::Spared => {}
                SweptOutcome::Failed(reason) if done.failed.len() < FAILURES_SHOWN => {
                    done.failed.push(VacuumFailure { path: entry.path, reason });
                }
                SweptOutcome::Failed(_) => {}
            }
            Ok(())
        };
        progress.begin("deleting", found.bytes);
        let cancel = &self.session.options.cancel;
        let swept = self.session.runtime.block_on(sweep_with(self.store, plan, cancel, &mut take));
        progress.end();
        swept.map_err(|e| e.with("deleted", gone.len()))?;
        done.files = gone.finish()?;
        if self.root.scheme() != "file" && self.options.mode == VacuumMode::Full && !done.files.is_empty() {
            self.confirm(&mut done)?;
        }
        Ok(done)
    }

    /// Lists again: only what the storage no longer shows is reported as gone.
    fn confirm(&self, done: &mut Done) -> Result<()> {
        let mut hashes = Vec::new();
        done.files.for_each(|entry| {
            hashes.push(PathHash::of(&entry.path));
            Ok(())
        })?;
        let gone: PathSet = hashes.into_iter().collect();
        let cancel = &self.session.options.cancel;
        let still = match self.session.runtime.block_on(still_listed(self.store, self.root, &gone, cancel)) {
            Ok(still) => still,
            Err(error) => {
                tracing::warn!(%error, "the deletions could not be confirmed by another listing");
                return Ok(());
            }
        };
        if still.is_empty() {
            return Ok(());
        }
        let mut confirmed = SpillWriter::new();
        std::mem::take(&mut done.files).for_each(|entry| {
            if !still.contains(&entry.path) {
                return confirmed.push(&entry);
            }
            done.bytes = done.bytes.saturating_sub(entry.size);
            if done.failed.len() < FAILURES_SHOWN {
                let reason = "the storage said that it is deleted, but still lists it".to_owned();
                done.failed.push(VacuumFailure { path: entry.path, reason });
            }
            Ok(())
        })?;
        done.files = confirmed.finish()?;
        Ok(())
    }
}
