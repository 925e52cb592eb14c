//! Commits of rows that enter and leave: INSERT, DELETE and tables made from queries.
//!
//! ```text
//! catch up: every winner ──check──> unite its deletes with ours ──> vectors ──> lines ──> put-if-absent ──> created: done
//!    ^                                                                                    │ another's
//!    └────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! # Source
//! Delta Spark `ConflictChecker` (`checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn`,
//! `checkForDeletedFilesAgainstCurrentTxnReadFiles`), made finer: rows that a winner deleted of a file are no conflict with rows
//! that we delete of it, and a winner that only moved rows brought none.

use std::collections::BTreeSet;

use lakesmith_core::commit::{InputFate, touched_inputs};
use lakesmith_core::table::{DataEdit, DeleteInfo, DeletionVector, FileKey, MarkedFile, PartitionTuple, ReadSet};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};

use crate::actions::{DeletionVectorDescriptor, StringMap};
use crate::check_writable;
use crate::commit::{CommitContext, CommitResult, Committed, follow_up, key};
use crate::conflict::{OwnChanges, with_winner};
use crate::data_lines::{DataIntent, RemarkedFile};
use crate::live_stats::statistics_texts;
use crate::log_state::DeltaTable;
use crate::partition_value;
use crate::properties::NewConfiguration;
use crate::puts::{Holder, Puts};
use crate::read::partition_fields;
use crate::tip::{Tip, is_true, property};
use crate::vector::{info_of, read_vector, relative_path, write_vectors};
use crate::version_checksum::Before;
use crate::winners::Winner;

/// What the table becomes together with a change of its rows.
#[derive(Debug, Clone, Copy)]
pub struct Becoming<'a> {
    /// Metadata, protocol and domains.
    pub configuration: &'a NewConfiguration,
    /// The table with them, for which the new files were written.
    pub table: &'a DeltaTable,
    /// True if nothing is new but how far identity columns have come.
    pub numbers: bool,
}

/// Commits rows that enter and leave on top of `base`.
///
/// Rows that other writers deleted meanwhile of files in `edit.marked` stay deleted; rows that they added where the edit has
/// read are a conflict, and so is a file that they took away.
pub async fn commit_data(
    store: &Store,
    root: &Location,
    base: &DeltaTable,
    edit: &DataEdit,
    becoming: Option<Becoming<'_>>,
    context: &CommitContext<'_>,
) -> CommitResult {
    let transaction_id = context.world.new_uuid().to_string();
    let mark = |marked: &MarkedFile| Mark {
        key: key(base, marked.file),
        newest: base.state.files.get(marked.file).deletes.cloned(),
        was_marked: false,
        outcome: None,
    };
    let committer = DataCommitter {
        store,
        root,
        context,
        base,
        edit,
        becoming,
        transaction_id: &transaction_id,
        deletion_timestamp_ms: context.world.now_ms(),
        removed: edit.removed.iter().map(|id| key(base, *id)).collect(),
        marks: edit.marked.iter().map(mark).collect(),
        stale: !edit.marked.is_empty(),
        statistics: None,
        written: Vec::new(),
        tip: Tip::of(base),
        puts: Puts::new(store, root, context, &transaction_id, base.log.file.as_ref()),
    };
    committer.run().await
}

/// A file of which rows are deleted.
struct Mark {
    /// Its identity now.
    key: FileKey,
    /// Its vector now.
    newest: Option<DeleteInfo>,
    /// True if the vector is a winner's.
    was_marked: bool,
    outcome: Option<Outcome>,
}

/// What becomes of the file, and how many of its rows we delete.
enum Outcome {
    /// Winners have deleted all of our rows.
    Nothing,
    /// Some rows are left.
    Marked(DeletionVectorDescriptor, u64),
    /// None is.
    Emptied(u64),
}

struct DataCommitter<'a> {
    store: &'a Store,
    root: &'a Location,
    context: &'a CommitContext<'a>,
    base: &'a DeltaTable,
    edit: &'a DataEdit,
    becoming: Option<Becoming<'a>>,
    transaction_id: &'a str,
    deletion_timestamp_ms: i64,
    /// Files that leave whole.
    removed: Vec<FileKey>,
    marks: Vec<Mark>,
    /// Vectors have to be written before the next attempt.
    stale: bool,
    /// Statistics of the marked files.
    statistics: Option<Vec<Option<String>>>,
    /// Vector files.
    written: Vec<Location>,
    tip: Tip,
    puts: Puts<'a>,
}

impl DataCommitter<'_> {
    async fn run(mut self) -> CommitResult {
        match self.drive().await {
            Ok(result) => result,
            Err(error) => CommitResult::Failed {
                error: error.with("table", self.root),
                all_taken_by_others: self.puts.unresolved.is_none(),
                unused: self.written,
                tried_versions: self.puts.tried,
            },
        }
    }

    async fn drive(&mut self) -> Result<CommitResult> {
        check_writable(self.base)?;
        check_edit(self.base, self.edit)?;
        let mut version = self.base.state.version + 1;
        let mut races_lost = 0;
        loop {
            if let Some(newest) = self.puts.newest(version).await? {
                for taken in version..=newest {
                    let winner = self.puts.winner(taken).await?;
                    self.follow(winner)?;
                }
                version = newest + 1;
            }
            if self.stale {
                self.write_marks().await?;
            }
            let now_ms = self.context.world.now_ms();
            let intent = self.intent();
            if intent.is_empty() {
                return Ok(CommitResult::NothingLeft {
                    groups_dropped: Vec::new(),
                    versions_lost: self.puts.tried.clone(),
                    unused: self.written.clone(),
                });
            }
            let assembled = intent.assemble(&self.tip, version, now_ms)?;
            tracing::info!(version, attempt = races_lost + 1, "committing");
            match self.puts.put(version, &assembled.bytes).await? {
                Holder::Us => {
                    let metadata = self.becoming.and_then(|b| b.configuration.metadata.as_ref());
                    let state = &self.base.state;
                    let loaded = state.version + 1 == version;
                    let files = loaded.then(|| (state.files.len() as u64, state.files.total_bytes()));
                    let before = Before { tip: &self.tip, files };
                    let metadata = metadata.unwrap_or(&self.tip.metadata);
                    follow_up(self.store, self.root, version, before, metadata, &assembled.bytes, now_ms).await;
                    let mut unused = std::mem::take(&mut self.written);
                    unused.retain(|file| !self.is_named(file));
                    return Ok(CommitResult::Committed(Committed {
                        version,
                        groups_done: Vec::new(),
                        groups_dropped: Vec::new(),
                        versions_lost: self.puts.tried.iter().copied().filter(|tried| *tried != version).collect(),
                        unused,
                        metrics: assembled.metrics,
                    }));
                }
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

    fn intent(&self) -> DataIntent<'_> {
        let mut remarked = Vec::new();
        let mut emptied = Vec::new();
        for (place, (mark, marked)) in self.marks.iter().zip(&self.edit.marked).enumerate() {
            let text = || self.statistics.as_ref().and_then(|texts| texts[place].as_deref());
            match &mark.outcome {
                None | Some(Outcome::Nothing) => {}
                Some(Outcome::Marked(descriptor, rows)) => remarked.push(RemarkedFile {
                    file: marked.file,
                    newest: mark.newest.as_ref(),
                    vector: descriptor,
                    deleted: *rows,
                    physical_rows: marked.physical_rows,
                    statistics: text(),
                }),
                Some(Outcome::Emptied(rows)) => emptied.push((marked.file, mark.newest.as_ref(), *rows)),
            }
        }
        DataIntent {
            base: self.base,
            edit: self.edit,
            becoming: self.becoming,
            transaction_id: self.transaction_id,
            engine_info: &self.context.engine_info,
            deletion_timestamp_ms: self.deletion_timestamp_ms,
            remarked,
            emptied,
        }
    }

    /// True if the commit that stands names the vector file.
    fn is_named(&self, file: &Location) -> bool {
        self.marks.iter().any(|mark| match &mark.outcome {
            Some(Outcome::Marked(d, _)) => vector_file(self.root, d).as_ref() == Some(file),
            _ => false,
        })
    }

    /// The vectors of the marked files: their rows that were deleted before, by us or by winners, and ours.
    async fn write_marks(&mut self) -> Result<()> {
        let mut vectors = Vec::new();
        let mut places = Vec::new();
        for (place, (mark, marked)) in self.marks.iter_mut().zip(&self.edit.marked).enumerate() {
            let newest = match &mark.newest {
                Some(info) => read_vector(self.store, info).await?,
                None => DeletionVector::default(),
            };
            if mark.was_marked
                && let Some(read) = self.base.state.files.get(marked.file).deletes
                && !newest.is_superset(&read_vector(self.store, read).await?)
            {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "another writer brought deleted rows of a file back meanwhile, which this statement has not seen; run it \
                     again",
                )
                .class("DELTA_CONCURRENT_DELETE_READ")
                .with("file", &mark.key.path));
            }
            let united = DeletionVector::from_rows(newest.iter().chain(marked.rows.iter()));
            if united.max().is_some_and(|last| last >= marked.physical_rows) {
                return Err(
                    Error::corrupt("a deleted row lies beyond the end of its file").with("file", &mark.key.path)
                );
            }
            let fresh = united.cardinality() - newest.cardinality();
            if fresh == 0 {
                mark.outcome = Some(Outcome::Nothing);
            } else if united.cardinality() == marked.physical_rows {
                mark.outcome = Some(Outcome::Emptied(fresh));
            } else {
                places.push((place, fresh));
                vectors.push(united);
            }
        }
        if self.statistics.is_none() && !vectors.is_empty() {
            let files: Vec<_> = self.edit.marked.iter().map(|m| m.file).collect();
            self.statistics = Some(statistics_texts(self.store, self.root, self.base, &files).await?);
        }
        let descriptors = write_vectors(self.store, self.root, &vectors).await?;
        self.written.extend(descriptors.first().and_then(|d| vector_file(self.root, d)));
        for ((place, fresh), descriptor) in places.into_iter().zip(descriptors) {
            self.marks[place].outcome = Some(Outcome::Marked(descriptor, fresh));
        }
        self.stale = false;
        Ok(())
    }

    fn follow(&mut self, mut winner: Winner) -> Result<()> {
        let own = || self.removed.iter().chain(self.marks.iter().map(|mark| &mark.key)).map(|key| key.path.as_str());
        winner.spell_as(own(), self.root);
        let configuration = self.becoming.map(|b| b.configuration);
        let changes = OwnChanges {
            metadata: configuration.is_some_and(|c| c.metadata.is_some()),
            protocol: configuration.is_some_and(|c| c.protocol.is_some()),
            domains: configuration.iter().flat_map(|c| c.domains.keys().cloned()).collect(),
            nothing: false,
            files: configuration.map(|c| c.files).unwrap_or_default(),
        };
        self.tip.follow(&winner, &self.base.state, &changes)?;
        self.check_appends(&winner)?;
        let marked: Vec<FileKey> = self.marks.iter().map(|mark| mark.key.clone()).collect();
        for touched in touched_inputs([self.removed.as_slice(), marked.as_slice()], &winner.summary) {
            let is_marked = touched.group == 1;
            if is_marked && self.is_united(touched.input, &touched.fate, &winner)? {
                continue;
            }
            let class = if is_marked { "DELTA_CONCURRENT_DELETE_READ" } else { "DELTA_CONCURRENT_DELETE_DELETE" };
            let message = "another writer changed a file meanwhile whose rows this statement deletes; nothing was committed; \
                           run it again";
            let error = Error::new(ErrorKind::Conflict, message).class(class).with("file", touched.path);
            return Err(with_winner(error, &winner));
        }
        tracing::info!(version = winner.summary.version, "rebasing onto another writer's commit");
        Ok(())
    }

    /// True if the winner deleted rows of a file that we mark, too.
    fn is_united(&mut self, place: usize, fate: &InputFate, winner: &Winner) -> Result<bool> {
        let InputFate::Remarked { now: Some(now) } = fate else { return Ok(false) };
        let Some(add) = winner.marked.iter().find(|add| add.key() == *now) else { return Ok(false) };
        let size = self.base.state.files.get(self.edit.marked[place].file).size;
        let Some(vector) = add.deletion_vector.as_ref().filter(|_| u64::try_from(add.size).ok() == Some(size)) else {
            return Ok(false);
        };
        let mark = &mut self.marks[place];
        mark.newest = Some(info_of(self.root, vector)?);
        mark.key = now.clone();
        mark.was_marked = true;
        self.stale = true;
        Ok(true)
    }

    /// Rows that came meanwhile must not be among those that the edit has read.
    fn check_appends(&self, winner: &Winner) -> Result<()> {
        if matches!(self.edit.reads, ReadSet::Nothing) {
            return Ok(());
        }
        let lenient = property(&self.tip.metadata, "delta.isolationLevel")
            .is_some_and(|level| level.eq_ignore_ascii_case("WriteSerializable"));
        if lenient && self.becoming.is_none_or(|b| b.numbers) && winner.info.is_blind_append == Some(true) {
            return Ok(());
        }
        for values in winner.appended() {
            if self.edit.reads.may_hold(&self.partition(values)?)? {
                let message = "Files were added by a concurrent update to where this statement has read; nothing was committed; \
                               run it again";
                let error = Error::new(ErrorKind::Conflict, message).class("DELTA_CONCURRENT_APPEND");
                return Err(with_winner(error, winner));
            }
        }
        Ok(())
    }

    fn partition(&self, raw: &StringMap) -> Result<PartitionTuple> {
        let state = &self.base.state;
        let mut tuple = PartitionTuple::default();
        for field in partition_fields(&state.schema, &state.partition_columns)? {
            let text = raw.get(&field.physical).cloned().flatten();
            tuple.values.push(partition_value::parse(field, text.as_deref())?);
            tuple.raw.push(text);
        }
        Ok(tuple)
    }
}

fn vector_file(root: &Location, descriptor: &DeletionVectorDescriptor) -> Option<Location> {
    relative_path(&descriptor.path_or_inline_dv).map(|path| root.join(&path))
}

/// Checks that rows may leave the table.
///
/// # Errors
/// Usage (`DELTA_CANNOT_MODIFY_APPEND_ONLY`).
pub fn check_takes_deletes(table: &DeltaTable) -> Result<()> {
    if !is_true(&table.log.metadata, "delta.appendOnly") {
        return Ok(());
    }
    Err(Error::usage(
        "This table is configured to only allow appends. If you would like to permit updates or deletes, use 'ALTER TABLE … \
         SET TBLPROPERTIES (delta.appendOnly=false)'.",
    )
    .class("DELTA_CANNOT_MODIFY_APPEND_ONLY"))
}

/// A table may take appends only, or no vectors, and no file twice.
fn check_edit(base: &DeltaTable, edit: &DataEdit) -> Result<()> {
    if !(edit.removed.is_empty() && edit.marked.is_empty()) {
        check_takes_deletes(base)?;
    }
    if !edit.marked.is_empty() && !Tip::of(base).takes_vectors() {
        return Err(Error::internal("rows were to be marked in a table that takes no deletion vectors"));
    }
    let files = edit.removed.iter().chain(edit.marked.iter().map(|m| &m.file));
    if files.clone().collect::<BTreeSet<_>>().len() != files.count() {
        return Err(Error::internal("a change of rows names a file twice").class("DELTA_DUPLICATE_ACTIONS_FOUND"));
    }
    Ok(())
}
