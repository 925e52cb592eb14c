//! The lines of a commit of rows that enter and leave.
//!
//! # Source
//! Delta PROTOCOL.md, "Actions"; Delta Spark `WriteIntoDelta`, `DeleteCommand`.

use std::collections::BTreeMap;

use lakesmith_core::Result;
use lakesmith_core::table::{DataEdit, DeleteInfo, FileId, FileKey, NewFile, ReadSet};
use lakesmith_storage::Location;
use serde_json::{Map, Value, json};

use crate::actions::{Action, Add, AddCdcFile, CommitInfo, DeletionVectorDescriptor};
use crate::assemble::{
    Assembled, PRESERVED_TAG, check_files, domain, first_timestamp, lines, live_add, live_remove, new_add, parameters,
    partition_values, signed, with_new_clock,
};
use crate::conflict::IDENTITY_TAG;
use crate::data_commit::Becoming;
use crate::live_stats::with_wide_bounds;
use crate::log_state::DeltaTable;
use crate::tip::{ROW_TRACKING_DOMAIN, Tip, property};

/// A file of which some rows are deleted.
pub(crate) struct RemarkedFile<'a> {
    pub file: FileId,
    /// Its vector in the table.
    pub newest: Option<&'a DeleteInfo>,
    /// Its vector from now on.
    pub vector: &'a DeletionVectorDescriptor,
    /// Rows that it marks and the one in the table does not.
    pub deleted: u64,
    pub physical_rows: u64,
    /// The text of its statistics.
    pub statistics: Option<&'a str>,
}

/// One attempt at a commit.
pub(crate) struct DataIntent<'a> {
    pub base: &'a DeltaTable,
    pub edit: &'a DataEdit,
    pub becoming: Option<Becoming<'a>>,
    pub transaction_id: &'a str,
    pub engine_info: &'a str,
    /// One time for all removes of the operation.
    pub deletion_timestamp_ms: i64,
    pub remarked: Vec<RemarkedFile<'a>>,
    /// Files whose last rows are deleted: the file, its vector in the table, and how many rows.
    pub emptied: Vec<(FileId, Option<&'a DeleteInfo>, u64)>,
}

impl DataIntent<'_> {
    /// True if it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.edit.added.is_empty()
            && self.edit.removed.is_empty()
            && self.remarked.is_empty()
            && self.emptied.is_empty()
            && self.becoming.is_none()
    }

    /// The commit of `version` on top of `tip`.
    ///
    /// # Errors
    /// `Internal` if it names a file twice or a partition of another shape; nothing must be written then.
    pub(crate) fn assemble(&self, tip: &Tip, version: u64, now_ms: i64) -> Result<Assembled> {
        let target = self.becoming.map_or(self.base, |b| b.table);
        let after = self.tip_after(tip);
        let mut mark = tip.row_id_mark;
        let mut files = Vec::new();
        for new in &self.edit.added {
            let add = new_add(target, &after, new, None, version, &mut mark)?;
            files.push(Action::Add(Box::new(Add { data_change: true, ..add })));
        }
        for remarked in &self.remarked {
            files.push(Action::Add(Box::new(self.remark(tip, remarked)?)));
        }
        let whole = self.edit.removed.iter().map(|id| (*id, None));
        let emptied = self.emptied.iter().map(|(id, newest, _)| (*id, *newest));
        let remarked = self.remarked.iter().map(|r| (r.file, r.newest));
        let mut removes = Vec::new();
        for (id, newest) in whole.chain(emptied).chain(remarked) {
            let mut remove = live_remove(self.base, tip, id, newest, self.deletion_timestamp_ms)?;
            remove.data_change = true;
            removes.push(Action::Remove(Box::new(remove)));
        }
        // A file that is marked is both added and removed; anything else of that kind is a mistake.
        check_files(files.iter().chain(removes.iter().take(self.edit.removed.len() + self.emptied.len())))?;
        files.append(&mut removes);
        for change in &self.edit.changes {
            files.push(Action::Cdc(self.change(target, change)?));
        }
        let metrics = self.metrics();
        let mut actions = vec![Action::CommitInfo(self.commit_info(tip, &after, &metrics, now_ms)?)];
        if let Some(Becoming { configuration, .. }) = self.becoming {
            if let Some(metadata) = &configuration.metadata {
                actions.push(Action::Metadata(with_new_clock(self.base, tip, metadata, version, now_ms)?));
            }
            actions.extend(configuration.protocol.clone().map(Action::Protocol));
            actions.extend(configuration.domains.iter().map(|(name, text)| domain(name, text.clone())));
        }
        if mark != tip.row_id_mark {
            actions.push(domain(ROW_TRACKING_DOMAIN, json!({ "rowIdHighWaterMark": mark }).to_string()));
        }
        actions.append(&mut files);
        Ok(Assembled { bytes: lines(&actions)?, metrics })
    }

    fn tip_after(&self, tip: &Tip) -> Tip {
        let Some(Becoming { configuration, .. }) = self.becoming else { return tip.clone() };
        Tip {
            metadata: configuration.metadata.clone().unwrap_or_else(|| tip.metadata.clone()),
            protocol: configuration.protocol.clone().unwrap_or_else(|| tip.protocol.clone()),
            ..tip.clone()
        }
    }

    /// The file as it is, with another vector.
    fn remark(&self, tip: &Tip, remarked: &RemarkedFile<'_>) -> Result<Add> {
        let file = self.base.state.files.get(remarked.file);
        let mut add = live_add(self.base, &file)?;
        let vector_id = remarked.newest.map(|d| d.unique_id.clone());
        if let Some(assigned) = tip.assigned_row_ids.get(&FileKey { path: add.path.clone(), vector_id }) {
            add.base_row_id = Some(assigned.0);
            add.default_row_commit_version = assigned.1.or(add.default_row_commit_version);
        }
        add.stats = Some(with_wide_bounds(remarked.statistics, remarked.physical_rows));
        add.deletion_vector = Some(remarked.vector.clone());
        Ok(add)
    }

    fn change(&self, target: &DeltaTable, change: &NewFile) -> Result<AddCdcFile> {
        Ok(AddCdcFile {
            path: Location::encode_log_path(&change.path),
            partition_values: partition_values(target, &change.partition.raw)?,
            size: signed(change.size, &change.path)?,
            data_change: false,
            tags: None,
            unknown: Map::new(),
        })
    }

    fn metrics(&self) -> BTreeMap<String, String> {
        let mut metrics = self.edit.metrics.clone();
        if self.edit.marked.is_empty() {
            return metrics;
        }
        let known = |key: &str| metrics.get(key).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
        let had_one = |newest: Option<&DeleteInfo>| u64::from(newest.is_some());
        let updated: u64 = self.remarked.iter().map(|r| had_one(r.newest)).sum();
        let emptied: u64 = self.emptied.iter().map(|(_, newest, _)| had_one(*newest)).sum();
        let deleted: u64 = self.remarked.iter().map(|r| r.deleted).chain(self.emptied.iter().map(|e| e.2)).sum();
        let bytes: u64 = self.emptied.iter().map(|(id, ..)| self.base.state.files.get(*id).size).sum();
        let counted = [
            ("numDeletionVectorsAdded", self.remarked.len() as u64),
            ("numDeletionVectorsUpdated", updated),
            ("numDeletionVectorsRemoved", known("numDeletionVectorsRemoved") + updated + emptied),
            ("numDeletedRows", known("numDeletedRows") + deleted),
            ("numRemovedFiles", known("numRemovedFiles") + self.emptied.len() as u64),
            ("numRemovedBytes", known("numRemovedBytes") + bytes),
        ];
        metrics.extend(counted.map(|(key, value)| (key.to_owned(), value.to_string())));
        metrics
    }

    fn commit_info(
        &self,
        tip: &Tip,
        after: &Tip,
        metrics: &BTreeMap<String, String>,
        now_ms: i64,
    ) -> Result<CommitInfo> {
        let operation = &self.edit.operation;
        let numbers = self.becoming.is_some_and(|b| b.numbers);
        let remakes = self.becoming.is_some() && !numbers;
        let appends = self.edit.removed.is_empty() && self.edit.marked.is_empty() && !remakes;
        let mut tags = Map::new();
        if after.tracks_rows() {
            // Rows that a winner began to track while we moved them have new ids.
            let preserved = remakes || appends || Tip::of(self.base).tracks_rows();
            tags.insert(PRESERVED_TAG.to_string(), Value::from(preserved.to_string()));
        }
        if numbers {
            tags.insert(IDENTITY_TAG.to_string(), Value::from("true"));
        }
        let isolation = property(&tip.metadata, "delta.isolationLevel").unwrap_or("Serializable");
        Ok(CommitInfo {
            in_commit_timestamp: after.has_own_clock().then(|| {
                if tip.has_own_clock() { tip.next_timestamp(now_ms) } else { first_timestamp(self.base, now_ms) }
            }),
            timestamp: Some(now_ms),
            operation: Some(operation.name.clone()),
            operation_parameters: Some(parameters(operation)?),
            read_version: i64::try_from(self.base.state.version).ok(),
            isolation_level: Some(isolation.to_owned()),
            is_blind_append: Some(appends && matches!(self.edit.reads, ReadSet::Nothing)),
            operation_metrics: Some(metrics.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect()),
            user_metadata: operation.user_metadata.clone(),
            tags: (!tags.is_empty()).then_some(tags),
            engine_info: Some(self.engine_info.into()),
            txn_id: Some(self.transaction_id.into()),
            unknown: Map::new(),
        })
    }
}
