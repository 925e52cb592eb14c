//! Commits of other writers that took a version that we wanted.

use std::collections::{BTreeSet, HashMap};

use lakesmith_core::Result;
use lakesmith_core::commit::CommitSummary;
use lakesmith_core::table::FileKey;
use lakesmith_storage::Location;

use crate::actions::{Action, Add, CommitInfo, DomainMetadata, Metadata, Protocol, StringMap, parse_commit};
use crate::spelling::{identity, is_plain};

/// A winning commit: what it did in format-free words, and what only Delta knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Winner {
    pub summary: CommitSummary,
    pub info: CommitInfo,
    pub protocol: Option<Protocol>,
    pub metadata: Option<Metadata>,
    pub domains: Vec<DomainMetadata>,
    /// Files put in with deleted rows.
    pub marked: Vec<Add>,
    /// Files put in with row ids: identity, first row id, default commit version.
    pub row_ids: Vec<(FileKey, i64, Option<i64>)>,
    /// Files with rows that were not there before, or not like this: path and partition.
    pub changed: Vec<(String, StringMap)>,
}

impl Winner {
    /// Reads the commit of `version` from its bytes.
    ///
    /// # Errors
    /// `Corrupt` with path and line.
    pub(crate) fn parse(bytes: &[u8], version: u64, path: &Location) -> Result<Self> {
        let mut winner = Self::default();
        winner.summary.version = version;
        for action in parse_commit(bytes, path)? {
            winner.take(action);
        }
        winner.summary.operation.clone_from(&winner.info.operation);
        winner.summary.transaction_id.clone_from(&winner.info.txn_id);
        winner.summary.metadata_changed = winner.metadata.is_some();
        winner.summary.protocol_changed = winner.protocol.is_some();
        winner.summary.domains_changed = winner.domains.iter().map(|d| d.domain.clone()).collect();
        Ok(winner)
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Add(add) => {
                let key = add.key();
                if let Some(base_row_id) = add.base_row_id {
                    self.row_ids.push((key.clone(), base_row_id, add.default_row_commit_version));
                }
                if add.data_change {
                    self.changed.push((key.path.clone(), add.partition_values.clone()));
                }
                self.summary.added.push(key);
                if add.deletion_vector.is_some() {
                    self.marked.push(*add);
                }
            }
            Action::Remove(remove) => self.summary.removed.push(remove.key()),
            Action::CommitInfo(info) => self.info = info,
            Action::Protocol(protocol) => self.protocol = Some(protocol),
            Action::Metadata(metadata) => self.metadata = Some(metadata),
            Action::DomainMetadata(domain) => self.domains.push(domain),
            // Progress of applications, files of changed rows and kinds of a later protocol leave a rewrite alone;
            // what a later protocol means by its own kinds is caught by its features.
            Action::Transaction(_)
            | Action::Cdc(_)
            | Action::CheckpointMetadata(_)
            | Action::Sidecar(_)
            | Action::Unknown(..) => {}
        }
    }

    /// Takes the spelling of paths in which we know the inputs `own`: a winner that touches one of them under another spelling
    /// took it away from us, whatever other readers make of it.
    pub(crate) fn spell_as<'a>(&mut self, own: impl Iterator<Item = &'a str> + Clone, root: &Location) {
        let mut theirs = self.summary.removed.iter().chain(&self.summary.added);
        if theirs.all(|key| is_plain(&key.path, root)) && own.clone().all(|path| is_plain(path, root)) {
            return;
        }
        let inputs: HashMap<String, &str> = own.map(|path| (identity(path, root), path)).collect();
        let other_spelling = |key: &FileKey| {
            let path = *inputs.get(&identity(&key.path, root))?;
            (path != key.path).then(|| FileKey { path: path.to_owned(), vector_id: key.vector_id.clone() })
        };
        let touched: Vec<FileKey> =
            self.summary.removed.iter().chain(&self.summary.added).filter_map(other_spelling).collect();
        self.summary.removed.extend(touched);
    }

    /// Partitions of files with rows that were not in the table before: files whose rows were deleted only, and files that
    /// hold moved rows, are none.
    pub(crate) fn appended(&self) -> impl Iterator<Item = &StringMap> {
        let removed: BTreeSet<&str> = self.summary.removed.iter().map(|key| key.path.as_str()).collect();
        self.changed.iter().filter(move |(path, _)| !removed.contains(path.as_str())).map(|(_, values)| values)
    }

    /// True if the commit is the attempt with this identity.
    pub(crate) fn is_ours(&self, transaction_id: &str) -> bool {
        self.info.txn_id.as_deref() == Some(transaction_id)
    }

    /// A tag of the commit.
    pub(crate) fn tag_is_true(&self, key: &str) -> bool {
        let value = self.info.tags.as_ref().and_then(|tags| tags.get(key));
        value.is_some_and(|v| v.as_bool() == Some(true) || v.as_str().is_some_and(|s| s.eq_ignore_ascii_case("true")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_winner_is_summed_up_by_file_identity() {
        let text = r#"{"commitInfo":{"operation":"DELETE","txnId":"t","tags":{"a":"TRUE"},"inCommitTimestamp":5}}
{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"baseRowId":9,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab","offset":1,"sizeInBytes":1,"cardinality":1}}}
{"remove":{"path":"x"}}
{"domainMetadata":{"domain":"d","configuration":"","removed":false}}
{"txn":{"appId":"a","version":1}}"#;
        let path = Location::parse("/t/_delta_log/3.json").unwrap();
        let winner = Winner::parse(text.as_bytes(), 3, &path).unwrap();
        let added = FileKey { path: "x".into(), vector_id: Some("uab@1".into()) };
        assert_eq!(winner.summary.added, vec![added.clone()]);
        assert_eq!(winner.row_ids, vec![(added, 9, None)]);
        assert_eq!(winner.summary.removed, vec![FileKey { path: "x".into(), vector_id: None }]);
        assert!(winner.summary.domains_changed.contains("d") && !winner.summary.metadata_changed);
        assert!(winner.is_ours("t") && winner.tag_is_true("a") && !winner.tag_is_true("b"));
        assert_eq!(winner.info.in_commit_timestamp, Some(5));
    }
}
