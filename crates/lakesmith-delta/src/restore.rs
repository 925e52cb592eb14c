//! RESTORE: files, metadata and clustering keys of an earlier version, as a new version.
//!
//! No winner is followed: what another writer did meanwhile would be undone without anybody having looked at it.
//!
//! # Source
//! Delta Spark `RestoreTableCommand`, `OptimisticTransaction.commitLarge`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lakesmith_core::op::{RestoreMetrics, RestoreOptions, TimeTravel};
use lakesmith_core::plan::restore::{self as plan, RestorePlan};
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::table::{FileId, OperationInfo};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::presence::{Presence, presence};
use lakesmith_storage::{Cancel, Location, Store};
use serde_json::{Value, json};

use crate::actions::{Action, Add, CommitInfo, Metadata, SetTransaction};
use crate::assemble::{domain, lines, live_add, parameters, remove, with_new_clock};
use crate::clustering::CLUSTERING_DOMAIN;
use crate::commit::{CommitContext, follow_up};
use crate::commit_info::CommitClock;
use crate::features::{expand, with_features};
use crate::identity_column::with_later_marks;
use crate::load::{Needs, load, no_references};
use crate::log_cleanup::PROTECTED_BEFORE;
use crate::log_files::LogFiles;
use crate::log_state::DeltaTable;
use crate::properties::{MAX_COLUMN_ID, NewConfiguration};
use crate::puts::{Holder, Puts};
use crate::spelling::{identity, is_plain};
use crate::tip::{IN_COMMIT_TIMESTAMPS, ROW_TRACKING_DOMAIN, Tip, is_true};
use crate::version_checksum::Before;
use crate::write_spec::{COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::{check_writable, checkpoint};

/// Missing files that an error names.
const NAMED_MAX: usize = 100;
/// A streaming writer that has written nothing.
const NO_BATCH: i64 = -1;

/// A table and the version to which it is to return.
#[derive(Debug, Clone)]
pub struct Restoration {
    current: DeltaTable,
    target: DeltaTable,
    plan: RestorePlan,
    transactions: Vec<SetTransaction>,
}

impl Restoration {
    /// Loads both versions and checks that the earlier one can come back whole.
    ///
    /// # Errors
    /// Usage (`DELTA_CANNOT_RESTORE_TABLE_VERSION` and its like) if there is no such version or if it is the newest,
    /// `DELTA_CANNOT_MODIFY_APPEND_ONLY` for a table from which no rows may go, `NotFound` if files of that version are
    /// gone, `Unsupported` for features that we can't write; those of [`load`].
    pub async fn prepare(store: &Store, root: &Location, options: &RestoreOptions, cancel: &Cancel) -> Result<Self> {
        let current = load(store, root, TimeTravel::Latest, Needs { files: true, stats: false }).await?;
        check_writable(&current)?;
        if is_true(&current.log.metadata, "delta.appendOnly") {
            return Err(Error::usage(
                "This table is configured to only allow appends. RESTORE would take rows away; to permit it, use ALTER \
                 TABLE … SET TBLPROPERTIES (delta.appendOnly=false)",
            )
            .class("DELTA_CANNOT_MODIFY_APPEND_ONLY")
            .with("path", root));
        }
        let version = version(store, root, &current, &options.to).await?;
        let target = load(store, root, TimeTravel::Version(version), Needs { files: true, stats: true }).await?;
        check_writable(&target)?;
        let spelled = |path| if is_plain(path, root) { Cow::Borrowed(path) } else { Cow::Owned(identity(path, root)) };
        let plan = plan::restore(&current.state.files, &target.state.files, &spelled);
        check_presence(store, root, &target, &plan.restored, cancel).await?;
        let transactions =
            if options.reset_transactions { reset(store, root, &current, &target).await? } else { Vec::new() };
        Ok(Self { current, target, plan, transactions })
    }

    /// Newest version when it was loaded.
    pub fn current_version(&self) -> u64 {
        self.current.state.version
    }

    /// The version to return to.
    pub fn target_version(&self) -> u64 {
        self.target.state.version
    }

    /// Counters.
    pub fn metrics(&self) -> &RestoreMetrics {
        &self.plan.metrics
    }

    /// Makes the earlier version the newest; returns the version that it made.
    ///
    /// # Errors
    /// `Conflict` (`DELTA_CONCURRENT_WRITE`) if another writer committed since the table was loaded; `Unavailable` from the
    /// storage, `Cancelled`. Nothing is committed then, unless the storage left that unknown.
    pub async fn commit(
        &self,
        store: &Store,
        root: &Location,
        operation: &OperationInfo,
        context: &CommitContext<'_>,
    ) -> Result<u64> {
        let version = self.current.state.version + 1;
        let transaction_id = context.world.new_uuid().to_string();
        let now_ms = context.world.now_ms();
        let configuration = self.configuration(version, now_ms)?;
        let tip = Tip::of(&self.current);
        let bytes = lines(&self.actions(&tip, configuration, operation, context, &transaction_id, now_ms)?)?;
        let mut puts = Puts::new(store, root, context, &transaction_id, self.current.log.file.as_ref());
        tracing::info!(version, restored_version = self.target.state.version, "committing");
        if let Holder::Another = puts.put(version, &bytes).await.map_err(|e| e.with("table", root))? {
            return Err(Error::new(
                ErrorKind::Conflict,
                "another writer committed meanwhile, and restoring would undo what it did; nothing was changed. Look at \
                 the newest version and run again",
            )
            .class("DELTA_CONCURRENT_WRITE")
            .with("path", root)
            .with("version", version));
        }
        let files = &self.current.state.files;
        let before = Before { tip: &tip, files: Some((files.len() as u64, files.total_bytes())) };
        follow_up(store, root, version, before, &self.target.log.metadata, &bytes, now_ms).await;
        Ok(version)
    }

    /// Metadata, protocol and keys after the restore.
    fn configuration(&self, version: u64, now_ms: i64) -> Result<NewConfiguration> {
        let (current, target) = (&self.current.log, &self.target.log);
        // Features stay: commits after that version may need them to be read.
        let features = expand(&target.protocol);
        let features: Vec<&str> = features.iter().map(String::as_str).collect();
        let mut protocol = with_features(&current.protocol, &features);
        protocol.min_reader_version = protocol.min_reader_version.max(target.protocol.min_reader_version);
        protocol.min_writer_version = protocol.min_writer_version.max(target.protocol.min_writer_version);
        let mut metadata = target.metadata.clone();
        metadata.schema_string = with_later_marks(&metadata.schema_string, &current.metadata.schema_string)?;
        later_column_id(&mut metadata, &current.metadata);
        // Columns that rows' own ids are written to keep their names, for later files are still read by them.
        for key in [ROW_ID_COLUMN, COMMIT_VERSION_COLUMN] {
            if let (false, Some(name)) =
                (metadata.configuration.contains_key(key), current.metadata.configuration.get(key))
            {
                metadata.configuration.insert(key.to_owned(), name.clone());
            }
        }
        if is_true(&metadata, IN_COMMIT_TIMESTAMPS) && is_true(&current.metadata, IN_COMMIT_TIMESTAMPS) {
            // Since when commits have had their own time is the log's matter, not that of one version.
            ENABLEMENT.iter().for_each(|key| as_now(&mut metadata, &current.metadata, key));
        }
        // And so is which part of the log is protected.
        as_now(&mut metadata, &current.metadata, PROTECTED_BEFORE);
        let metadata = with_new_clock(&self.current, &Tip::of(&self.current), &metadata, version, now_ms)?;
        let mut domains = BTreeMap::new();
        if let Some(now) = current.domains.get(CLUSTERING_DOMAIN) {
            let none = || json!({"clusteringColumns": [], "domainName": CLUSTERING_DOMAIN}).to_string();
            let then = target.domains.get(CLUSTERING_DOMAIN).cloned().unwrap_or_else(none);
            domains.extend((then != *now).then(|| (CLUSTERING_DOMAIN.to_owned(), then)));
        }
        Ok(NewConfiguration { metadata: Some(metadata), protocol: Some(protocol), domains, ..Default::default() })
    }

    fn actions(
        &self,
        tip: &Tip,
        configuration: NewConfiguration,
        operation: &OperationInfo,
        context: &CommitContext<'_>,
        transaction_id: &str,
        now_ms: i64,
    ) -> Result<Vec<Action>> {
        let NewConfiguration { metadata, protocol, domains, files: _ } = configuration;
        let (Some(metadata), Some(protocol)) = (metadata, protocol) else {
            return Err(Error::internal("a restored table has neither metadata nor protocol"));
        };
        let after = Tip { metadata: metadata.clone(), protocol: protocol.clone(), ..tip.clone() };
        let metrics = [
            ("tableSizeAfterRestore", self.plan.metrics.table_size_after_restore),
            ("numOfFilesAfterRestore", self.plan.metrics.num_of_files_after_restore),
            ("numRemovedFiles", self.plan.metrics.num_removed_files),
            ("numRestoredFiles", self.plan.metrics.num_restored_files),
            ("removedFilesSize", self.plan.metrics.removed_files_size),
            ("restoredFilesSize", self.plan.metrics.restored_files_size),
        ];
        let info = CommitInfo {
            in_commit_timestamp: after.has_own_clock().then(|| {
                let last = self.current.log.commit_timestamp_ms;
                now_ms.max(last.saturating_add(1))
            }),
            timestamp: Some(now_ms),
            operation: Some(operation.name.clone()),
            operation_parameters: Some(parameters(operation)?),
            read_version: i64::try_from(self.current.state.version).ok(),
            isolation_level: Some("Serializable".into()),
            is_blind_append: Some(false),
            operation_metrics: Some(metrics.into_iter().map(|(k, v)| (k.into(), Value::from(v.to_string()))).collect()),
            user_metadata: operation.user_metadata.clone(),
            engine_info: Some(context.engine_info.clone()),
            txn_id: Some(transaction_id.into()),
            ..CommitInfo::default()
        };
        let mut actions = vec![Action::CommitInfo(info), Action::Metadata(metadata)];
        let mut mark = tip.row_id_mark;
        for id in &self.plan.restored {
            actions.push(Action::Add(Box::new(self.add(*id, &after, &mut mark)?)));
        }
        for id in &self.plan.removed {
            let file = self.current.state.files.get(*id);
            let mut remove = remove(&self.current, &file, file.deletes, now_ms)?;
            remove.data_change = true;
            actions.push(Action::Remove(Box::new(remove)));
        }
        actions.extend(domains.into_iter().map(|(name, text)| domain(&name, text)));
        if mark != tip.row_id_mark {
            actions.push(domain(ROW_TRACKING_DOMAIN, json!({ "rowIdHighWaterMark": mark }).to_string()));
        }
        actions.extend(self.transactions.iter().cloned().map(Action::Transaction));
        actions.push(Action::Protocol(protocol));
        Ok(actions)
    }

    /// The file as that version had it; rows that were never numbered get ids where the table now gives every row one.
    fn add(&self, id: FileId, after: &Tip, mark: &mut i64) -> Result<Add> {
        let file = self.target.state.files.get(id);
        let at_file = |e: Error| e.with("file", file.path);
        let (mut base_row_id, mut commit_version) = (file.base_row_id, file.row_commit_version);
        if base_row_id.is_none() && after.assigns_row_ids() {
            let rows = file.rows.and_then(|rows| i64::try_from(rows).ok()).ok_or_else(|| {
                at_file(Error::unsupported(
                    "the table gives every row an id, but the log does not say how many rows a file of that version has; \
                     compact the file's rows into the table again instead",
                ))
            })?;
            base_row_id = Some(mark.saturating_add(1));
            commit_version = i64::try_from(self.current.state.version + 1).ok();
            *mark =
                mark.checked_add(rows).ok_or_else(|| at_file(Error::internal("the table has run out of row ids")))?;
        }
        let add = live_add(&self.target, &file).map_err(at_file)?;
        Ok(Add {
            stats: file.stats_json.map(str::to_owned),
            base_row_id,
            default_row_commit_version: commit_version,
            ..add
        })
    }
}

const ENABLEMENT: [&str; 2] =
    ["delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"];

/// The property as the newest version has it.
fn as_now(metadata: &mut Metadata, current: &Metadata, key: &str) {
    metadata.configuration.remove(key);
    let known = current.configuration.get(key);
    metadata.configuration.extend(known.map(|value| (key.to_owned(), value.clone())));
}

/// Ids of columns are never given twice, whatever version the table returns to.
fn later_column_id(metadata: &mut Metadata, current: &Metadata) {
    let id = |metadata: &Metadata| metadata.configuration.get(MAX_COLUMN_ID).and_then(|v| v.trim().parse::<i64>().ok());
    if let (Some(then), Some(now)) = (id(metadata), id(current)) {
        metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), then.max(now).to_string());
    }
}

/// The version that is meant.
async fn version(store: &Store, root: &Location, current: &DeltaTable, to: &TimeTravel) -> Result<u64> {
    let latest = current.state.version;
    let files = LogFiles::list(store, root).await?;
    let version = match to {
        TimeTravel::Reference(name) => return Err(no_references(root, name)),
        TimeTravel::Latest => latest,
        TimeTravel::Version(version) if (files.earliest()..=latest).contains(version) => *version,
        TimeTravel::Version(version) => {
            return Err(Error::usage(format!(
                "Cannot restore table to version {version}. Available versions: [{}, {latest}].",
                files.earliest()
            ))
            .class("DELTA_CANNOT_RESTORE_TABLE_VERSION")
            .with("path", root)
            .with("version", version));
        }
        // A time after the last commit means that commit, so there is nothing to restore.
        TimeTravel::Timestamp(time_ms) if *time_ms >= current.log.commit_timestamp_ms => latest,
        TimeTravel::Timestamp(time_ms) => {
            CommitClock::of(current).version_at(store, root, &files, *time_ms).await.map_err(|error| {
                if error.class_name() == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION" {
                    Error::usage(error.message()).class("DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER").with("path", root)
                } else {
                    error
                }
            })?
        }
    };
    if version < latest {
        return Ok(version);
    }
    Err(Error::usage(format!(
        "Version to restore ({version}) should be less than last available version ({latest}): the table is there already"
    ))
    .with("path", root)
    .with("version", version))
}

/// Checks that every file that is to come back exists, and its vector.
async fn check_presence(
    store: &Store,
    root: &Location,
    target: &DeltaTable,
    restored: &[FileId],
    cancel: &Cancel,
) -> Result<()> {
    let files = &target.state.files;
    let mut vectors: Vec<&str> = Vec::new();
    for id in restored {
        if let Some(VectorLocation::File { location, .. }) = files.get(*id).deletes.map(|d| &d.at) {
            vectors.push(location);
        }
    }
    vectors.sort_unstable();
    vectors.dedup();
    let locate = |index: usize| match restored.get(index) {
        Some(id) => root.resolve(files.get(*id).path),
        None => Location::from_canonical(vectors[index - restored.len()]),
    };
    let found = presence(store, root, restored.len() + vectors.len(), &locate, cancel).await?;
    let size = |index: usize| restored.get(index).map(|id| files.get(*id).size);
    // A file of another size is not the one that the version had.
    let is_lost = |index: &usize| match found[*index] {
        Presence::Missing => true,
        Presence::Found(bytes) => size(*index).is_some_and(|size| size != bytes),
        Presence::Elsewhere => false,
    };
    let missing: Vec<usize> = (0..found.len()).filter(is_lost).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let name = |index: &usize| {
        let at = locate(*index)?;
        Ok(match (found[*index], size(*index)) {
            (Presence::Found(bytes), Some(size)) => format!("{at} ({bytes} bytes, not {size})"),
            _ => at.to_string(),
        })
    };
    let named: Vec<String> = missing.iter().take(NAMED_MAX).map(name).collect::<Result<_>>()?;
    Err(Error::not_found(format!(
        "Not all files from version {} are available in file system. Missed files (top {NAMED_MAX} files): {}. Please use \
         more recent version or timestamp for restoring: `lakesmith history --readable` shows which versions are whole. \
         Nothing was changed",
        target.state.version,
        named.join(", ")
    ))
    .with("path", root)
    .with("version", target.state.version)
    .with("missing_files", missing.len()))
}

/// The progress of streaming writers as it was, for those that have gone on.
async fn reset(
    store: &Store,
    root: &Location,
    current: &DeltaTable,
    target: &DeltaTable,
) -> Result<Vec<SetTransaction>> {
    let then = checkpoint::transactions(store, root, target).await?;
    let now = checkpoint::transactions(store, root, current).await?;
    let moved = now.into_iter().filter_map(|(app_id, transaction)| {
        let version = then.get(&app_id).map_or(NO_BATCH, |t| t.version);
        (version != transaction.version).then(|| SetTransaction { version, ..transaction })
    });
    Ok(moved.collect())
}
