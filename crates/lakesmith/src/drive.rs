//! Executes a rewrite plan and commits it: the loop that OPTIMIZE and REORG share.
//!
//! Nothing refers to an output before its commit. Outputs that no commit can reach any more are swept; on any doubt they
//! stay as orphans for VACUUM.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use lakesmith_core::op::RewriteLimits;
use lakesmith_core::plan::{self, AddedFile, FileGroup, GroupResult, RewritePlan};
use lakesmith_core::table::{
    FileId, GroupEdit, LeftOut, NewFile, OperationInfo, RewriteOutcome, RewriteTask, VersionEdit, WriteSpec,
};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{CommitResult, DeltaTable, Needs};
use lakesmith_exec::{LocalExecutor, RewriteControl};
use lakesmith_storage::{Location, Store, SweepPlan, UncommittedProof, free_bytes, sweep};

use crate::Session;

/// Name under which commits are made.
pub(crate) const ENGINE_INFO: &str = concat!("Lakesmith/", env!("CARGO_PKG_VERSION"));

/// Threads that a run may use.
pub fn threads(limits: &RewriteLimits) -> usize {
    match limits.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        n => n,
    }
}

/// Deletes files that no commit can reach any more. A failed sweep leaves orphans, which is not worth failing a run for.
pub(crate) fn sweep_uncommitted(session: &Session, store: &Store, outputs: Vec<Location>, proof: UncommittedProof) {
    if outputs.is_empty() {
        return;
    }
    let count = outputs.len();
    let swept =
        SweepPlan::own_uncommitted(outputs, proof).and_then(|plan| session.runtime.block_on(sweep(store, plan)));
    match swept {
        Ok(report) if report.failed.is_empty() => tracing::info!(count, "removed uncommitted outputs"),
        Ok(report) => tracing::warn!(count, failed = report.failed.len(), "uncommitted outputs stay as orphans"),
        Err(error) => tracing::warn!(count, %error, "uncommitted outputs stay as orphans"),
    }
}

/// What a run did.
#[derive(Debug, Default)]
pub(crate) struct Driven {
    /// Last version committed.
    pub version_after: Option<u64>,
    /// Groups committed; ids refer to the table that was first loaded.
    pub done: Vec<GroupResult>,
    /// Rows of these groups, equal before and after.
    pub rows: u64,
    /// Groups given up because another writer touched their files.
    pub dropped: u64,
    /// Files that hold something that is not rewritten; their groups went on without them.
    pub left_out: Vec<LeftOut>,
    /// Commits made.
    pub batches: u64,
    /// Bytes spilled to local disk.
    pub bytes_spilled: u64,
    /// Tasks at once.
    pub parallelism: u64,
}

/// One run over a table.
pub(crate) struct Drive<'a> {
    pub session: &'a Session,
    pub store: &'a Store,
    pub root: &'a Location,
    pub limits: &'a RewriteLimits,
    pub operation: OperationInfo,
    /// True if rewriting a file alone can be worth a commit.
    pub purges: bool,
    /// True if finished work is to be done again.
    pub forced: bool,
}

impl Drive<'_> {
    /// Rewrites and commits every group of `plan`, batch by batch.
    ///
    /// # Errors
    /// The first failure; batches committed before it stay committed, and the message says so.
    pub(crate) fn run(&self, table: &DeltaTable, plan: RewritePlan) -> Result<Driven> {
        let mut driven = Driven::default();
        if plan.groups.is_empty() {
            return Ok(driven);
        }
        self.check_space(&plan)?;
        let total_bytes = plan.input_bytes();
        let files: u64 = plan.groups.iter().map(|g| g.files.len() as u64).sum();
        self.session.options.progress.begin("rewriting", total_bytes);
        let folders = self.folders(table, &plan);
        let result = self.run_batches(table, plan, &mut driven);
        if driven.batches > 0 {
            self.sweep_temporaries(&folders);
        }
        self.session.options.progress.end();
        match result {
            Ok(()) => match driven.left_out.first() {
                // Not one file could be rewritten: that is what the user must know, not that there was little to do.
                Some(first) if driven.left_out.len() as u64 == files => Err(first.error()),
                _ => Ok(driven),
            },
            Err(error) if driven.batches > 0 => Err(error.with("committed_batches", driven.batches)),
            Err(error) => Err(error),
        }
    }

    fn run_batches(&self, table: &DeltaTable, plan: RewritePlan, driven: &mut Driven) -> Result<()> {
        let batches = plan::into_batches(plan, self.limits.commit_every_bytes);
        let mut current = Refreshed { table: None };
        for (number, groups) in batches.into_iter().enumerate() {
            self.session.options.cancel.check()?;
            if number > 0 {
                current = self.refresh()?;
            }
            let base = current.table.as_ref().unwrap_or(table);
            let (groups, origins, lost) = current.translate(table, groups);
            driven.dropped += lost;
            if !groups.is_empty() {
                self.run_batch(base, &groups, &origins, driven)?;
            }
        }
        Ok(())
    }

    /// Loads the newest version: a long run must not carry its first snapshot through every commit.
    fn refresh(&self) -> Result<Refreshed> {
        let load = lakesmith_delta::load(
            self.store,
            self.root,
            lakesmith_core::op::TimeTravel::Latest,
            Needs { files: true, stats: false },
        );
        Ok(Refreshed { table: Some(self.session.runtime.block_on(load)?) })
    }

    fn run_batch(
        &self,
        base: &DeltaTable,
        groups: &[FileGroup],
        origins: &[Vec<FileId>],
        driven: &mut Driven,
    ) -> Result<()> {
        let tasks = self.tasks(base, groups)?;
        let (files, bytes): (u64, u64) =
            groups.iter().fold((0, 0), |(f, b), g| (f + g.files.len() as u64, b + g.bytes));
        tracing::info!(groups = groups.len(), files, bytes, version = base.state.version, "rewriting");
        let (outcomes, parallelism) = self.execute(tasks)?;
        let rows: u64 = outcomes.iter().map(|o| o.rows_out).sum();
        let written: u64 = outcomes.iter().map(|o| o.bytes_out).sum();
        driven.bytes_spilled += outcomes.iter().map(|o| o.bytes_spilled).sum::<u64>();
        tracing::info!(groups = outcomes.len(), rows, bytes = written, "rewritten and checked; committing");
        driven.parallelism = driven.parallelism.max(parallelism);
        let worth: Vec<bool> = groups.iter().zip(&outcomes).map(|(g, o)| self.is_worth_a_commit(base, g, o)).collect();
        let (worth, worthless): (Vec<usize>, Vec<usize>) = (0..groups.len()).partition(|i| worth[*i]);
        let edit = VersionEdit {
            groups: worth.iter().map(|i| group_edit(base, &groups[*i], &outcomes[*i])).collect(),
            operation: self.operation.clone(),
            ..Default::default()
        };
        let outputs = |i: usize| outcomes[i].outputs.iter().map(|f| self.root.join(&f.path)).collect::<Vec<_>>();
        self.sweep(worthless.into_iter().flat_map(outputs).collect(), UncommittedProof::never_tried());
        for left in outcomes.iter().flat_map(|o| &o.left_out) {
            let column = left.column.as_deref().unwrap_or_default();
            tracing::warn!(path = left.path, column, reason = left.reason, "a file is left as it is");
            driven.left_out.push(left.clone());
        }
        if worth.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.session.options.cancel.check() {
            self.sweep(worth.into_iter().flat_map(outputs).collect(), UncommittedProof::never_tried());
            return Err(error);
        }
        let context = self.session.commit_context(Some(self.limits.commit_timeout_ms))?;
        let commit = lakesmith_delta::commit(self.store, self.root, base, &edit, None, &context);
        match self.session.runtime.block_on(commit) {
            CommitResult::Committed(committed) => {
                driven.version_after = Some(committed.version);
                driven.batches += 1;
                driven.dropped += committed.groups_dropped.len() as u64;
                let named = |path: &str| !committed.unused.contains(&self.root.join(path));
                for i in committed.groups_done.iter().map(|i| worth[*i]) {
                    let order = groups[i].order.as_ref();
                    let outputs = outcomes[i].outputs.iter().filter(|f| named(&f.path));
                    let added = outputs.map(|f| AddedFile::new(f.size, &f.stats, order)).collect();
                    let stays = |at: usize| outcomes[i].left_out.iter().any(|l| l.input == groups[i].files[at]);
                    let removed = origins[i].iter().enumerate().filter(|(at, _)| !stays(*at)).map(|(_, id)| *id);
                    driven.done.push(GroupResult { removed: removed.collect(), added });
                    driven.rows += outcomes[i].rows_out;
                }
                // The groups were dropped after a winner took each version that they were part of.
                let dropped = committed.groups_dropped.iter().flat_map(|i| outputs(worth[*i]));
                self.sweep(
                    dropped.chain(committed.unused).collect(),
                    UncommittedProof { tried_versions: committed.versions_lost, all_taken_by_others: true },
                );
                Ok(())
            }
            CommitResult::NothingLeft { groups_dropped, versions_lost, unused } => {
                driven.dropped += groups_dropped.len() as u64;
                self.sweep(
                    groups_dropped.iter().flat_map(|i| outputs(worth[*i])).chain(unused).collect(),
                    UncommittedProof { tried_versions: versions_lost, all_taken_by_others: true },
                );
                Ok(())
            }
            CommitResult::Failed { error, tried_versions, all_taken_by_others, unused } => {
                self.sweep(
                    worth.into_iter().flat_map(outputs).chain(unused).collect(),
                    UncommittedProof { tried_versions, all_taken_by_others },
                );
                Err(error)
            }
        }
    }

    /// Where files were left out, a group that came down to one file, or to what an earlier run laid out, is left as it
    /// is, or every run would write the same rows again.
    fn is_worth_a_commit(&self, base: &DeltaTable, group: &FileGroup, outcome: &RewriteOutcome) -> bool {
        let is_left_out = |id: &FileId| outcome.left_out.iter().any(|l| l.input == *id);
        let rewritten: Vec<FileId> = group.files.iter().copied().filter(|id| !is_left_out(id)).collect();
        if outcome.left_out.is_empty() {
            return true;
        }
        match rewritten[..] {
            [] => false,
            _ if group.order.is_some() => self.forced || !plan::order::is_laid_out(&base.state.files, group, rewritten),
            [only] => self.purges || base.state.files.get(only).deletes.is_some(),
            _ => true,
        }
    }

    fn tasks(&self, base: &DeltaTable, groups: &[FileGroup]) -> Result<Vec<RewriteTask>> {
        let read = Arc::new(lakesmith_delta::read_spec(base)?);
        let write: Arc<WriteSpec> = Arc::new(lakesmith_delta::write_spec(
            base,
            self.limits.max_rows_per_file,
            self.limits.compression.clone(),
            self.limits.row_group_rows,
        )?);
        let mut tasks = Vec::with_capacity(groups.len());
        for (i, group) in groups.iter().enumerate() {
            let partition = base.state.files.partitions()[group.partition_index as usize].clone();
            let uuid = self.session.options.world.new_uuid();
            let directory = lakesmith_delta::output_directory(base, &partition, &uuid.simple().to_string()[..2]);
            tasks.push(RewriteTask {
                id: i as u32,
                inputs: lakesmith_delta::input_files(base, self.root, &group.files)?,
                partition,
                read: read.clone(),
                write: write.clone(),
                root: self.root.to_string(),
                output_stem: format!("{directory}part-{i:05}-{uuid}"),
                verify: self.limits.verify,
                order: group.order.clone(),
            });
        }
        Ok(tasks)
    }

    /// Runs the tasks; outcomes come back in task order. On failure everything written is swept.
    fn execute(&self, tasks: Vec<RewriteTask>) -> Result<(Vec<RewriteOutcome>, u64)> {
        let threads = threads(self.limits);
        let parallelism = threads.min(tasks.len()) as u64;
        let control = RewriteControl {
            memory_bytes: self.limits.memory_bytes,
            threads,
            spill_folder: self.limits.spill_folder.clone().unwrap_or_else(std::env::temp_dir),
            cancel: self.session.options.cancel.clone(),
            progress: self.session.options.progress.clone(),
            now_ms: self.session.options.world.clone(),
            runtime: self.session.runtime.handle().clone(),
        };
        let mut outcomes: Vec<Option<RewriteOutcome>> = vec![None; tasks.len()];
        let ran = LocalExecutor::new(self.store.clone(), control).run(tasks, &mut |outcome| {
            let slot = outcome.task as usize;
            tracing::debug!(
                group = slot,
                rows = outcome.rows_out,
                bytes_in = outcome.bytes_in,
                bytes_out = outcome.bytes_out,
                files = outcome.outputs.len(),
                "group rewritten"
            );
            outcomes[slot] = Some(outcome);
            Ok(())
        });
        if let Err(failure) = ran {
            let finished = outcomes.iter().flatten().flat_map(|o| o.outputs.iter().map(|f| self.root.join(&f.path)));
            let written: Vec<Location> = finished.chain(failure.leftovers).collect();
            self.sweep(written, UncommittedProof::never_tried());
            return Err(failure.error);
        }
        let complete: Option<Vec<RewriteOutcome>> = outcomes.into_iter().collect();
        let complete = complete.ok_or_else(|| Error::internal("a rewrite task ended without an outcome"))?;
        // The executor checked each task; this is the last look before a commit.
        assert!(complete.iter().all(|o| o.rows_in == o.rows_out), "a rewrite changed the number of rows");
        Ok((complete, parallelism))
    }

    /// The folders of the plan's inputs, as far as they belong to the table.
    fn folders(&self, table: &DeltaTable, plan: &RewritePlan) -> Vec<Location> {
        let inputs = plan.groups.iter().flat_map(|g| &g.files);
        let folder = |id: &FileId| self.root.resolve(table.state.files.get(*id).path).ok()?.parent();
        let own = inputs.filter_map(folder).filter(|f| f.relative_to(self.root).is_some());
        own.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Removes what runs that were killed left in `folders`, now that this run's commit tells the storage's time. Nobody
    /// waits for it, so a failure is only told.
    fn sweep_temporaries(&self, folders: &[Location]) {
        let log = self.root.join("_delta_log");
        match self.session.runtime.block_on(self.store.sweep_temporaries(&log, folders)) {
            Ok(report) if report.deleted.is_empty() => {}
            Ok(report) => tracing::info!(count = report.deleted.len(), "removed what killed runs had begun to write"),
            Err(error) => tracing::warn!(%error, "could not look for what killed runs had begun to write"),
        }
    }

    fn sweep(&self, outputs: Vec<Location>, proof: UncommittedProof) {
        sweep_uncommitted(self.session, self.store, outputs, proof);
    }

    /// Refuses a local disk that cannot hold the outputs, before the first write.
    fn check_space(&self, plan: &RewritePlan) -> Result<()> {
        // Inputs stay until VACUUM, so every batch adds to the disk.
        let needed = plan.input_bytes();
        match free_bytes(self.root)? {
            Some(free) if free < needed => Err(Error::new(
                ErrorKind::Retention,
                format!(
                    "the disk has {} free and the rewrite may write {}; free space or narrow the run with --where",
                    lakesmith_core::units::format_bytes(free),
                    lakesmith_core::units::format_bytes(needed)
                ),
            )
            .class("INSUFFICIENT_DISK_SPACE")
            .with("free_bytes", free)
            .with("needed_bytes", needed)
            .with("path", self.root)),
            _ => Ok(()),
        }
    }
}

fn group_edit(base: &DeltaTable, group: &FileGroup, outcome: &RewriteOutcome) -> GroupEdit {
    let partition = &base.state.files.partitions()[group.partition_index as usize];
    let mut marks = group.marks.clone();
    marks.tags.extend(lakesmith_delta::required_tags(base));
    GroupEdit {
        removed: group.files.iter().copied().filter(|id| outcome.left_out.iter().all(|l| l.input != *id)).collect(),
        added: outcome
            .outputs
            .iter()
            .map(|f| NewFile {
                path: f.path.clone(),
                size: f.size,
                modified_ms: f.modified_ms,
                partition: partition.clone(),
                stats: f.stats.clone(),
                marks: marks.clone(),
            })
            .collect(),
        row_map: outcome.row_map.clone(),
    }
}

/// The table at its newest version, when a later batch needs it.
struct Refreshed {
    table: Option<DeltaTable>,
}

impl Refreshed {
    /// Groups of the first table as groups of this one; groups that lost a file are left out and counted.
    fn translate(&self, first: &DeltaTable, groups: Vec<FileGroup>) -> (Vec<FileGroup>, Vec<Vec<FileId>>, u64) {
        let Some(table) = &self.table else {
            let origins = groups.iter().map(|g| g.files.clone()).collect();
            return (groups, origins, 0);
        };
        // A file that lost rows meanwhile is read with its newest vector.
        let now: HashMap<&str, FileId> = table.state.files.iter().map(|f| (f.path, f.id)).collect();
        let (mut kept, mut origins, mut lost) = (Vec::new(), Vec::new(), 0);
        for group in groups {
            let ids: Option<Vec<FileId>> =
                group.files.iter().map(|id| now.get(first.state.files.get(*id).path).copied()).collect();
            match ids {
                Some(files) => {
                    let partition_index = table.state.files.get(files[0]).partition_index;
                    origins.push(group.files);
                    kept.push(FileGroup { files, partition_index, ..group });
                }
                None => lost += 1,
            }
        }
        (kept, origins, lost)
    }
}
