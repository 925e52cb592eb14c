//! Commits that don't lose: the next version by put-if-absent, winners read and followed, whole groups dropped.
//!
//! ```text
//! catch up: list, read every winner, check, carry deletes over, drop lost groups ──> assemble ──> put-if-absent ──> created: done
//!    ^                                                                            │ exists, or no clear answer
//!    └────────────── another's <── read the version back: ours: done, absent: put the same bytes again
//! ```
//!
//! # Source
//! Delta PROTOCOL.md, "Delta Log Entries"; Delta Spark `OptimisticTransaction.doCommitRetryIteratively`.

use std::collections::BTreeMap;

use lakesmith_core::commit::{InputFate, TouchedInput, touched_inputs};
use lakesmith_core::table::{FileKey, VersionEdit};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Cancel, Location, Store, World};

use crate::actions::Metadata;
use crate::assemble::{Assembled, Intent};
use crate::carry::{Carry, OutputDeletes};
use crate::conflict::OwnChanges;
use crate::log_state::DeltaTable;
use crate::properties::{FileUse, NewConfiguration};
use crate::puts::{Holder, Puts};
use crate::tip::Tip;
use crate::version_checksum::Before;
use crate::winners::Winner;
use crate::{check_writable, checkpoint, version_checksum};

/// What a commit needs of its surroundings.
#[derive(Debug, Clone)]
pub struct CommitContext<'a> {
    /// Clock and identifiers.
    pub world: &'a dyn World,
    /// A request to stop.
    pub cancel: &'a Cancel,
    /// `engineInfo` of the history.
    pub engine_info: String,
    /// How long conflicts and unclear answers are retried.
    pub timeout_ms: u64,
}

/// A commit that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its version.
    pub version: u64,
    /// Indexes of the edit's groups that are in it.
    pub groups_done: Vec<usize>,
    /// Indexes of the groups that a winner made worthless. Their outputs are in no commit and never will be.
    pub groups_dropped: Vec<usize>,
    /// Versions that were tried before and hold other writers' commits. Only these puts may have named a dropped
    /// group.
    pub versions_lost: Vec<u64>,
    /// Further files of this run that the commit does not name: outputs of which every row was deleted meanwhile, and
    /// vectors of earlier attempts.
    pub unused: Vec<Location>,
    /// Counters as recorded in the history.
    pub metrics: BTreeMap<String, String>,
}

/// How a commit ended.
#[derive(Debug)]
pub enum CommitResult {
    /// A version was made.
    Committed(Committed),
    /// Winners made every group worthless: nothing was committed, and no put of ours can land any more.
    NothingLeft {
        /// All groups.
        groups_dropped: Vec<usize>,
        /// Versions that were tried, all of which hold other writers' commits.
        versions_lost: Vec<u64>,
        /// Files that were written for the commit, beside the groups' outputs.
        unused: Vec<Location>,
    },
    /// Nothing is known to be committed.
    Failed {
        /// Why.
        error: Error,
        /// Versions that a put was sent for.
        tried_versions: Vec<u64>,
        /// True if each of them holds another writer's commit, so that none of ours can appear any more. Outputs may be
        /// deleted only then.
        all_taken_by_others: bool,
        /// Files that were written for the commit, beside the groups' outputs.
        unused: Vec<Location>,
    },
}

/// Commits `edit` on top of `base`, or a new configuration.
///
/// A checksum of the version follows where the previous version has one, and a checkpoint where the table's interval asks
/// for one, with a clean-up of the log that it replaces. Their failures are logged and do not fail the commit.
pub async fn commit(
    store: &Store,
    root: &Location,
    base: &DeltaTable,
    edit: &VersionEdit,
    new_configuration: Option<NewConfiguration>,
    context: &CommitContext<'_>,
) -> CommitResult {
    let transaction_id = context.world.new_uuid().to_string();
    let committer = Committer {
        store,
        root,
        context,
        intent: Intent {
            base,
            edit,
            configuration: new_configuration.as_ref(),
            transaction_id: &transaction_id,
            engine_info: &context.engine_info,
            deletion_timestamp_ms: context.world.now_ms(),
        },
        inputs: edit.groups.iter().map(|g| g.removed.iter().map(|id| key(base, *id)).collect()).collect(),
        kept: vec![true; edit.groups.len()],
        carry: Carry::new(edit.groups.len()),
        tip: Tip::of(base),
        puts: Puts::new(store, root, context, &transaction_id, base.log.file.as_ref()),
    };
    committer.run().await
}

/// Identity of a file of `base`.
pub(crate) fn key(base: &DeltaTable, id: lakesmith_core::table::FileId) -> FileKey {
    let file = base.state.files.get(id);
    FileKey { path: file.path.to_owned(), vector_id: file.deletes.map(|d| d.unique_id.clone()) }
}

struct Committer<'a> {
    store: &'a Store,
    root: &'a Location,
    context: &'a CommitContext<'a>,
    intent: Intent<'a>,
    /// Keys of each group's inputs, as they are now.
    inputs: Vec<Vec<FileKey>>,
    /// Which groups are still worth committing.
    kept: Vec<bool>,
    carry: Carry,
    tip: Tip,
    puts: Puts<'a>,
}

impl Committer<'_> {
    async fn run(mut self) -> CommitResult {
        match self.drive().await {
            Ok(result) => result,
            Err(error) => CommitResult::Failed {
                error: error.with("table", self.root),
                all_taken_by_others: self.puts.unresolved.is_none(),
                unused: self.carry.unused(None),
                tried_versions: self.puts.tried,
            },
        }
    }

    async fn drive(&mut self) -> Result<CommitResult> {
        let configures = self.intent.configuration.is_some();
        let without_files = configures || self.intent.edit.history_only.is_some();
        if without_files && !self.kept.is_empty() {
            return Err(Error::internal("files and configuration are changed by separate commits"));
        }
        check_writable(self.intent.base)?;
        let mut version = self.intent.base.state.version + 1;
        let mut races_lost = 0;
        loop {
            version = self.catch_up(version).await?;
            self.carry_over().await?;
            if !without_files && !self.kept.contains(&true) {
                return Ok(CommitResult::NothingLeft {
                    groups_dropped: self.groups(false),
                    versions_lost: self.puts.tried.clone(),
                    unused: self.carry.unused(None),
                });
            }
            let now_ms = self.context.world.now_ms();
            let assembled = self.intent.assemble(&self.tip, &self.kept, &self.carry.groups, version, now_ms)?;
            tracing::info!(version, attempt = races_lost + 1, groups = self.groups(true).len(), "committing");
            match self.puts.put(version, &assembled.bytes).await? {
                Holder::Us => return Ok(self.committed(version, assembled).await),
                Holder::Another => races_lost += 1,
            }
            tracing::info!(version, "another writer holds the version; looking at what it did");
            self.puts.wait(races_lost, || {
                Error::new(
                    ErrorKind::Conflict,
                    "other writers were faster with every version until the commit timeout; run again when fewer write",
                )
            })
            .await?;
        }
    }

    async fn committed(&self, version: u64, assembled: Assembled) -> CommitResult {
        tracing::info!(version, groups_dropped = self.groups(false).len(), "committed");
        let metadata = self.intent.configuration.and_then(|c| c.metadata.as_ref()).unwrap_or(&self.tip.metadata);
        let now_ms = self.context.world.now_ms();
        follow_up(self.store, self.root, version, self.before(version), metadata, &assembled.bytes, now_ms).await;
        CommitResult::Committed(Committed {
            version,
            groups_done: self.groups(true),
            groups_dropped: self.groups(false),
            versions_lost: self.puts.tried.iter().copied().filter(|tried| *tried != version).collect(),
            unused: self.unused(),
            metrics: assembled.metrics,
        })
    }

    fn before(&self, version: u64) -> Before<'_> {
        let state = &self.intent.base.state;
        // Only a change of files loads them.
        let removes = self.intent.configuration.is_some_and(|c| c.files == FileUse::Removed);
        let loaded = (!self.kept.is_empty() || removes) && state.version + 1 == version;
        Before { tip: &self.tip, files: loaded.then(|| (state.files.len() as u64, state.files.total_bytes())) }
    }

    /// Files of the run that the commit that stands does not name, besides the outputs of dropped groups.
    fn unused(&self) -> Vec<Location> {
        let mut unused = self.carry.unused(Some(&self.kept));
        for (group, edit) in self.intent.edit.groups.iter().enumerate().filter(|(group, _)| self.kept[*group]) {
            let emptied = self.carry.groups[group].outputs.iter().filter(|(_, o)| **o == OutputDeletes::All);
            unused.extend(emptied.map(|(output, _)| self.root.join(&edit.added[*output].path)));
        }
        unused
    }

    /// Lets deletes that winners committed follow their rows into the outputs; drops the groups where that can't be.
    async fn carry_over(&mut self) -> Result<()> {
        if !self.carry.is_stale(&self.kept) {
            return Ok(());
        }
        let edits = &self.intent.edit.groups;
        let lost = if self.tip.takes_vectors() {
            self.carry.refresh(self.store, self.root, self.intent.base, edits, &self.kept).await?
        } else {
            (0..edits.len()).filter(|group| !self.carry.groups[*group].inputs.is_empty()).collect()
        };
        for group in lost {
            if std::mem::replace(&mut self.kept[group], false) {
                tracing::warn!(group, "rows deleted meanwhile can't be carried over; the group is left as it was");
            }
        }
        Ok(())
    }

    fn groups(&self, kept: bool) -> Vec<usize> {
        (0..self.kept.len()).filter(|i| self.kept[*i] == kept).collect()
    }

    /// Follows every commit from `from` on; returns the first version that nobody is known to hold.
    async fn catch_up(&mut self, from: u64) -> Result<u64> {
        let Some(newest) = self.puts.newest(from).await? else { return Ok(from) };
        for version in from..=newest {
            let winner = self.puts.winner(version).await?;
            self.follow(winner)?;
        }
        Ok(newest + 1)
    }

    fn follow(&mut self, mut winner: Winner) -> Result<()> {
        winner.spell_as(self.inputs.iter().flatten().map(|key| key.path.as_str()), self.root);
        let winner = &winner;
        let configuration = self.intent.configuration;
        let own = OwnChanges {
            metadata: configuration.is_some_and(|c| c.metadata.is_some()),
            protocol: configuration.is_some_and(|c| c.protocol.is_some()),
            domains: configuration.iter().flat_map(|c| c.domains.keys().cloned()).collect(),
            nothing: self.intent.edit.history_only.is_some(),
            files: configuration.map(|c| c.files).unwrap_or_default(),
        };
        self.tip.follow(winner, &self.intent.base.state, &own)?;
        tracing::info!(
            version = winner.summary.version,
            operation = winner.summary.operation.as_deref().unwrap_or("unknown"),
            added = winner.summary.added.len(),
            removed = winner.summary.removed.len(),
            "rebasing onto another writer's commit"
        );
        for touched in touched_inputs(self.inputs.iter().map(Vec::as_slice), &winner.summary) {
            if !self.kept[touched.group] || self.marked(&touched, winner)? {
                continue;
            }
            self.kept[touched.group] = false;
            let class = match touched.fate {
                InputFate::Removed => "DELTA_CONCURRENT_DELETE_DELETE",
                InputFate::Remarked { .. } => "DELTA_CONCURRENT_DELETE_READ",
            };
            tracing::warn!(
                group = touched.group,
                path = touched.path,
                version = winner.summary.version,
                operation = winner.summary.operation.as_deref().unwrap_or("unknown"),
                class,
                "another writer changed an input meanwhile; its group is left as it was"
            );
        }
        Ok(())
    }

    /// True if the winner only deleted rows of the input, which can follow them.
    fn marked(&mut self, touched: &TouchedInput, winner: &Winner) -> Result<bool> {
        let InputFate::Remarked { now: Some(now) } = &touched.fate else { return Ok(false) };
        let Some(add) = winner.marked.iter().find(|add| add.key() == *now) else { return Ok(false) };
        let id = self.intent.edit.groups[touched.group].removed[touched.input];
        let marked = self.carry.mark(self.root, self.intent.base, (touched.group, touched.input), id, add)?;
        if marked {
            self.inputs[touched.group][touched.input] = now.clone();
            tracing::info!(
                path = touched.path,
                version = winner.summary.version,
                "rows deleted meanwhile are carried over"
            );
        }
        Ok(marked)
    }
}

/// What follows a commit that stands: a checksum where the version before has one, and a checkpoint where `metadata`, that of
/// the new version, asks for one. Their failures are logged.
pub(crate) async fn follow_up(
    store: &Store,
    root: &Location,
    version: u64,
    before: Before<'_>,
    metadata: &Metadata,
    bytes: &[u8],
    now_ms: i64,
) {
    if let Err(error) = version_checksum::write(store, root, version, before, bytes).await {
        tracing::debug!(version, %error, "the commit stands without a checksum of its version");
    }
    if checkpoint::is_due(metadata, version) {
        checkpoint::after_commit(store, root, version, now_ms).await;
    }
}
