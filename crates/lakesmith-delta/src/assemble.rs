//! The lines of a commit that rearranges files or changes the table's configuration.
//!
//! # Source
//! Delta PROTOCOL.md, "Actions"; Delta Spark `OptimizeTableCommand.commitAndRetry`, `RowId.assignFreshRowIds`.

use std::collections::{BTreeMap, BTreeSet};

use lakesmith_core::table::{DataFile, DeleteInfo, FileId, FileKey, GroupEdit, NewFile, OperationInfo, VersionEdit};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::Location;
use serde_json::{Map, Value, json};

use crate::actions::{Action, Add, CommitInfo, DeletionVectorDescriptor, DomainMetadata, Metadata, Remove, StringMap};
use crate::carry::{GroupCarry, OutputDeletes};
use crate::log_state::DeltaTable;
use crate::properties::{FileUse, NewConfiguration};
use crate::stats::stats_json;
use crate::tip::{IN_COMMIT_TIMESTAMPS, ROW_TRACKING_DOMAIN, Tip, is_true};

pub(crate) const PRESERVED_TAG: &str = "delta.rowTracking.preserved";

/// What stays the same over all attempts of one commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intent<'a> {
    pub base: &'a DeltaTable,
    pub edit: &'a VersionEdit,
    pub configuration: Option<&'a NewConfiguration>,
    pub transaction_id: &'a str,
    pub engine_info: &'a str,
    /// One time for all removes of the operation.
    pub deletion_timestamp_ms: i64,
}

/// A commit ready to be written.
#[derive(Debug, Clone)]
pub(crate) struct Assembled {
    pub bytes: Vec<u8>,
    pub metrics: BTreeMap<String, String>,
}

impl Intent<'_> {
    /// The commit of `version` on top of `tip` with the groups that `kept` marks.
    ///
    /// # Errors
    /// `Internal` if the edit names a file twice or a partition of another shape; nothing must be written then.
    pub(crate) fn assemble(
        &self,
        tip: &Tip,
        kept: &[bool],
        carry: &[GroupCarry],
        version: u64,
        now_ms: i64,
    ) -> Result<Assembled> {
        let groups: Vec<(&GroupEdit, &GroupCarry)> =
            self.edit.groups.iter().zip(carry).zip(kept).filter(|(_, kept)| **kept).map(|(group, _)| group).collect();
        let mut mark = tip.row_id_mark;
        let mut files = Vec::new();
        for (group, carry) in &groups {
            for (output, new) in group.added.iter().enumerate() {
                let vector = match carry.outputs.get(&output) {
                    Some(OutputDeletes::All) => continue,
                    Some(OutputDeletes::Some(vector)) => Some(vector.clone()),
                    None => None,
                };
                files.push(Action::Add(Box::new(new_add(self.base, tip, new, vector, version, &mut mark)?)));
            }
            for (input, id) in group.removed.iter().enumerate() {
                files.push(Action::Remove(Box::new(live_remove(
                    self.base,
                    tip,
                    *id,
                    carry.inputs.get(&input),
                    self.deletion_timestamp_ms,
                )?)));
            }
        }
        if self.configuration.is_some_and(|new| new.files == FileUse::Removed) {
            for file in self.base.state.files.iter() {
                let remove = live_remove(self.base, tip, file.id, None, self.deletion_timestamp_ms)?;
                files.push(Action::Remove(Box::new(Remove { data_change: true, ..remove })));
            }
        }
        check_files(&files)?;
        let metrics = match (&self.edit.history_only, self.configuration) {
            (Some(metrics), _) => metrics.clone(),
            (None, Some(_)) => BTreeMap::new(),
            (None, None) => self.metrics(&groups),
        };
        let mut actions = vec![Action::CommitInfo(self.commit_info(tip, &metrics, now_ms)?)];
        if let Some(NewConfiguration { metadata, protocol, domains, files: _ }) = self.configuration {
            if let Some(metadata) = metadata {
                actions.push(Action::Metadata(with_new_clock(self.base, tip, metadata, version, now_ms)?));
            }
            actions.extend(protocol.clone().map(Action::Protocol));
            actions.extend(domains.iter().map(|(name, text)| domain(name, text.clone())));
        }
        if mark != tip.row_id_mark {
            actions.push(domain(ROW_TRACKING_DOMAIN, json!({ "rowIdHighWaterMark": mark }).to_string()));
        }
        actions.append(&mut files);
        Ok(Assembled { bytes: lines(&actions)?, metrics })
    }

    fn commit_info(&self, tip: &Tip, metrics: &BTreeMap<String, String>, now_ms: i64) -> Result<CommitInfo> {
        let operation = &self.edit.operation;
        let next = self.configuration.map(|new| Tip {
            metadata: new.metadata.clone().unwrap_or_else(|| tip.metadata.clone()),
            protocol: new.protocol.clone().unwrap_or_else(|| tip.protocol.clone()),
            ..tip.clone()
        });
        let moves_rows = self.edit.history_only.is_none();
        let tags = (moves_rows && tip.tracks_rows()).then(|| {
            // A winner that enabled row tracking found our outputs written without their rows' ids.
            let preserved = Tip::of(self.base).tracks_rows();
            Map::from_iter([(PRESERVED_TAG.to_string(), Value::from(preserved.to_string()))])
        });
        let configures = self.configuration.is_some();
        let untouched = self.configuration.is_some_and(|new| new.files == FileUse::Untouched);
        Ok(CommitInfo {
            in_commit_timestamp: next.as_ref().unwrap_or(tip).has_own_clock().then(|| {
                if tip.has_own_clock() { tip.next_timestamp(now_ms) } else { first_timestamp(self.base, now_ms) }
            }),
            timestamp: Some(now_ms),
            operation: Some(operation.name.clone()),
            operation_parameters: Some(parameters(operation)?),
            read_version: i64::try_from(self.base.state.version).ok(),
            isolation_level: Some(if configures { "Serializable" } else { "SnapshotIsolation" }.into()),
            is_blind_append: Some(untouched || self.edit.history_only.is_some()),
            operation_metrics: Some(metrics.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect()),
            user_metadata: operation.user_metadata.clone(),
            tags: tags.filter(|_| !configures),
            engine_info: Some(self.engine_info.into()),
            txn_id: Some(self.transaction_id.into()),
            unknown: Map::new(),
        })
    }

    /// The history's counters, over the groups that are committed.
    fn metrics(&self, groups: &[(&GroupEdit, &GroupCarry)]) -> BTreeMap<String, String> {
        let files = &self.base.state.files;
        let is_in = |carry: &GroupCarry, output: usize| carry.outputs.get(&output) != Some(&OutputDeletes::All);
        let in_commit = |(edit, carry): &(&GroupEdit, &GroupCarry)| -> Vec<u64> {
            edit.added.iter().enumerate().filter(|(output, _)| is_in(carry, *output)).map(|(_, f)| f.size).collect()
        };
        let mut added: Vec<u64> = groups.iter().flat_map(in_commit).collect();
        added.sort_unstable();
        let removed: Vec<_> = groups.iter().flat_map(|(g, _)| &g.removed).map(|id| files.get(*id)).collect();
        let marked_meanwhile = |(edit, carry): &(&GroupEdit, &GroupCarry)| {
            carry.inputs.keys().filter(|input| files.get(edit.removed[**input]).deletes.is_none()).count()
        };
        let at = |quarters: usize| added.get((added.len() * quarters / 4).min(added.len().saturating_sub(1)));
        let size = |quarters: usize| at(quarters).copied().unwrap_or(0);
        let vectors =
            removed.iter().filter(|f| f.deletes.is_some()).count() + groups.iter().map(marked_meanwhile).sum::<usize>();
        [
            ("numAddedFiles", added.len() as u64),
            ("numRemovedFiles", removed.len() as u64),
            ("numAddedBytes", added.iter().sum()),
            ("numRemovedBytes", removed.iter().map(|f| f.size).sum()),
            ("minFileSize", size(0)),
            ("p25FileSize", size(1)),
            ("p50FileSize", size(2)),
            ("p75FileSize", size(3)),
            ("maxFileSize", size(4)),
            ("numDeletionVectorsRemoved", vectors as u64),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
    }
}

/// The metadata, with the version and the time from which commits go by their own clock if this commit begins it.
///
/// # Source
/// Delta PROTOCOL.md, "Writer Requirements for In-Commit Timestamps".
pub(crate) fn with_new_clock(
    base: &DeltaTable,
    tip: &Tip,
    metadata: &Metadata,
    version: u64,
    now_ms: i64,
) -> Result<Metadata> {
    let mut metadata = metadata.clone();
    if tip.has_own_clock() || !is_true(&metadata, IN_COMMIT_TIMESTAMPS) {
        return Ok(metadata);
    }
    if version != base.state.version + 1 {
        return Err(Error::new(
            ErrorKind::Conflict,
            "another writer committed meanwhile, so the time of the last commit is not known; run again",
        )
        .class("DELTA_METADATA_CHANGED")
        .with("version", version));
    }
    let enabled = [
        ("delta.inCommitTimestampEnablementVersion", version.to_string()),
        ("delta.inCommitTimestampEnablementTimestamp", first_timestamp(base, now_ms).to_string()),
    ];
    metadata.configuration.extend(enabled.map(|(key, value)| (key.to_owned(), value)));
    Ok(metadata)
}

/// The first timestamp by the table's own clock: later than that of the commit before, which is its file's.
pub(crate) fn first_timestamp(base: &DeltaTable, now_ms: i64) -> i64 {
    now_ms.max(base.log.commit_timestamp_ms.saturating_add(1))
}

/// The add of a new file of a rewrite, with the row ids that follow `mark`, which moves on.
///
/// # Errors
/// As [`partition_values`]; `Internal` if row ids run out.
pub(crate) fn new_add(
    table: &DeltaTable,
    tip: &Tip,
    new: &NewFile,
    vector: Option<DeletionVectorDescriptor>,
    version: u64,
    mark: &mut i64,
) -> Result<Add> {
    let assigns = tip.assigns_row_ids();
    let base_row_id = assigns.then_some(mark.saturating_add(1));
    if assigns {
        let rows = i64::try_from(new.stats.rows).ok();
        *mark = rows
            .and_then(|rows| mark.checked_add(rows))
            .ok_or_else(|| Error::internal("the table has run out of row ids").with("path", &new.path))?;
    }
    Ok(Add {
        path: Location::encode_log_path(&new.path),
        partition_values: partition_values(table, &new.partition.raw)?,
        size: signed(new.size, &new.path)?,
        modification_time: new.modified_ms,
        data_change: false,
        stats: Some(stats_json(table, &new.stats, vector.is_some())),
        tags: tags(&new.marks.tags),
        deletion_vector: vector,
        base_row_id,
        default_row_commit_version: if assigns { Some(signed(version, &new.path)?) } else { None },
        clustering_provider: new.marks.clustering_provider.clone(),
        unknown: Map::new(),
    })
}

/// The add of a file that `table` holds, as it is there but without its statistics, with new rows as far as readers of changes
/// are concerned.
///
/// # Errors
/// As [`partition_values`].
pub(crate) fn live_add(table: &DeltaTable, file: &DataFile<'_>) -> Result<Add> {
    Ok(Add {
        path: file.path.to_owned(),
        partition_values: partition_values(table, &file.partition.raw)?,
        size: signed(file.size, file.path)?,
        modification_time: file.modified_ms,
        data_change: true,
        stats: None,
        tags: tags(&file.marks.tags),
        deletion_vector: file.deletes.map(descriptor),
        base_row_id: file.base_row_id,
        default_row_commit_version: file.row_commit_version,
        clustering_provider: file.marks.clustering_provider.clone(),
        unknown: Map::new(),
    })
}

/// The remove of a live file on top of `tip`; `newest`: the vector that a winner gave it.
///
/// # Errors
/// As [`partition_values`].
pub(crate) fn live_remove(
    table: &DeltaTable,
    tip: &Tip,
    id: FileId,
    newest: Option<&DeleteInfo>,
    deletion_timestamp_ms: i64,
) -> Result<Remove> {
    let file = table.state.files.get(id);
    let mut remove = remove(table, &file, newest.or(file.deletes), deletion_timestamp_ms)?;
    let vector_id = newest.or(file.deletes).map(|d| d.unique_id.clone());
    if let Some(assigned) = tip.assigned_row_ids.get(&FileKey { path: remove.path.clone(), vector_id }) {
        remove.base_row_id = Some(assigned.0);
        remove.default_row_commit_version = assigned.1.or(remove.default_row_commit_version);
    }
    Ok(remove)
}

/// The remove of a live file, with `deletes` as its vector.
///
/// # Errors
/// As [`partition_values`].
pub(crate) fn remove(
    table: &DeltaTable,
    file: &DataFile<'_>,
    deletes: Option<&DeleteInfo>,
    deletion_timestamp_ms: i64,
) -> Result<Remove> {
    let values = partition_values(table, &file.partition.raw)?;
    Ok(Remove {
        path: file.path.to_owned(),
        deletion_timestamp: Some(deletion_timestamp_ms),
        data_change: false,
        extended_file_metadata: Some(true),
        // As Spark's own removes: a NULL has no key here.
        partition_values: Some(values.into_iter().filter(|(_, v)| v.is_some()).collect()),
        size: i64::try_from(file.size).ok(),
        tags: tags(&file.marks.tags),
        deletion_vector: deletes.map(descriptor),
        base_row_id: file.base_row_id,
        default_row_commit_version: file.row_commit_version,
        stats: file.rows.map(|rows| json!({ "numRecords": rows }).to_string()),
        unknown: Map::new(),
    })
}

/// Raw values by physical column name.
///
/// # Errors
/// `Internal` for another number of values than the table has partition columns, `Corrupt` if the schema lacks one.
pub(crate) fn partition_values(table: &DeltaTable, raw: &[Option<String>]) -> Result<StringMap> {
    let state = &table.state;
    if raw.len() != state.partition_columns.len() {
        return Err(Error::internal("a file has another number of partition values than the table has columns")
            .with("table", &state.location));
    }
    let value = |(name, raw): (&String, &Option<String>)| {
        let field = state
            .schema
            .field(name)
            .ok_or_else(|| Error::corrupt("a partition column is not in the table's schema").with("column", name))?;
        // The empty string is NULL in a partition.
        Ok((field.physical.clone(), raw.clone().filter(|text| !text.is_empty())))
    };
    state.partition_columns.iter().zip(raw).map(value).collect()
}

/// A commit's text.
pub(crate) fn lines(actions: &[Action]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for action in actions {
        bytes.extend_from_slice(action.to_line()?.as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// A domain's new configuration.
pub(crate) fn domain(name: &str, configuration: String) -> Action {
    Action::DomainMetadata(DomainMetadata { domain: name.into(), configuration, removed: false, unknown: Map::new() })
}

/// Parameters of an operation as the history holds them.
pub(crate) fn parameters(operation: &OperationInfo) -> Result<Map<String, Value>> {
    let parse = |(key, text): &(String, String)| {
        let value = serde_json::from_str(text).map_err(|e| {
            Error::internal("a parameter of the operation is not JSON").with("parameter", key).caused_by(e)
        })?;
        Ok((key.clone(), value))
    };
    operation.parameters.iter().map(parse).collect()
}

/// No path may be added or removed twice, or both: the files after the commit would depend on the reader.
pub(crate) fn check_files<'a>(files: impl IntoIterator<Item = &'a Action>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for action in files {
        let path = match action {
            Action::Add(add) => &add.path,
            Action::Remove(remove) => &remove.path,
            _ => continue,
        };
        if !seen.insert(path) {
            return Err(Error::internal("a commit names a file twice; nothing was committed")
                .class("DELTA_DUPLICATE_ACTIONS_FOUND")
                .with("path", path));
        }
    }
    Ok(())
}

pub(crate) fn descriptor(info: &DeleteInfo) -> DeletionVectorDescriptor {
    DeletionVectorDescriptor {
        storage_type: info.storage_type.clone(),
        path_or_inline_dv: info.path_or_inline.clone(),
        offset: info.offset,
        size_in_bytes: info.size_in_bytes,
        cardinality: i64::try_from(info.cardinality).unwrap_or(i64::MAX),
        unknown: Map::new(),
    }
}

pub(crate) fn tags(tags: &StringMap) -> Option<StringMap> {
    (!tags.is_empty()).then(|| tags.clone())
}

pub(crate) fn signed(number: u64, path: &str) -> Result<i64> {
    i64::try_from(number).map_err(|_| Error::internal("a number is too large for the log").with("path", path))
}
