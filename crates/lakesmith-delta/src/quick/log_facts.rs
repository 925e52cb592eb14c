//! The state of the log's own files.

use lakesmith_core::health::{CheckpointHint, Checksum, CountAndBytes, LogFacts};
use lakesmith_core::plan::{LogCleanupInput, LogCutRules, log_cut, log_cutoff_ms, plan_log_cleanup};
use lakesmith_core::table::{LogFile, LogRole};
use lakesmith_storage::{Location, ObjectInfo, Store};

use super::segment::LogListing;
use crate::log_files::{LOG_FOLDER, log_file};
use crate::log_state::DeltaTable;
use crate::{checkpoint, last_checkpoint, log_cleanup, version_checksum};

/// What the facts are drawn from.
pub(crate) struct LogReading<'a> {
    pub store: &'a Store,
    pub root: &'a Location,
    pub listing: &'a LogListing,
    pub table: &'a DeltaTable,
    pub retention_ms: i64,
    pub now_ms: i64,
}

impl LogReading<'_> {
    pub(crate) async fn facts(&self) -> LogFacts {
        let (listing, version) = (self.listing, self.table.state.version);
        let newest = listing.checkpoints().rfind(|(v, _)| *v <= version);
        let since = || {
            let after = newest.map(|(v, _)| v);
            listing.files.commits.iter().filter(move |c| c.version <= version && after.is_none_or(|a| c.version > a))
        };
        let mut files = CountAndBytes::default();
        listing.all.iter().for_each(|info| files.add(info.size));
        let (last_checkpoint_hint, pointed_to) = self.hint().await;
        LogFacts {
            files,
            commits: listing.files.commits.iter().filter(|c| c.version <= version).count() as u64,
            oldest_commit: listing.files.commits.first().map(|c| c.version),
            checkpoint_version: newest.map(|(v, _)| v),
            checkpoint_bytes: newest.map_or(0, |(_, files)| files.files().iter().map(|f| f.size).sum()),
            commits_since_checkpoint: since().count() as u64,
            bytes_since_checkpoint: since().map(|c| c.info.size).sum(),
            checkpoint_interval: checkpoint::interval(&self.table.log.metadata),
            last_checkpoint_hint,
            expired: self.expired(pointed_to),
            retention_ms: self.retention_ms,
            checksum: self.checksum().await,
            broken_checkpoint: self.broken_checkpoint(),
            empty_commit: self.table.log.empty_commit,
            checksum_beyond: listing.files.checksum_beyond(),
            latest: listing.files.latest(),
        }
    }

    /// The newest checkpoint that should have been read for the version and was not. One of which parts are missing is
    /// none: its writer may be at work or have stopped.
    fn broken_checkpoint(&self) -> Option<u64> {
        let folder = self.root.join(LOG_FOLDER);
        let is_empty = |info: &&ObjectInfo| info.size == 0;
        let empty = self.listing.all.iter().filter(is_empty).filter_map(|info| log_file(&folder, info));
        let empty = empty.filter(|file| file.role == LogRole::Checkpoint).map(|file| file.version);
        let complete = self.listing.checkpoints().map(|(version, _)| version);
        let newest = complete.chain(empty).filter(|version| *version <= self.table.state.version).max();
        newest.filter(|newest| self.table.log.checkpoint_version.is_none_or(|read| read < *newest))
    }

    /// What the hint says, and the version that it names.
    async fn hint(&self) -> (CheckpointHint, Option<u64>) {
        let Some(info) = self.listing.named("_last_checkpoint") else { return (CheckpointHint::Missing, None) };
        let bytes = self.store.get(&info.location).await;
        let Some(hinted) = bytes.ok().and_then(|b| last_checkpoint::version_in(&b)) else {
            return (CheckpointHint::Damaged, None);
        };
        let newest = self.listing.checkpoints().next_back().map(|(version, _)| version);
        let found = match newest {
            Some(newest) if newest == hinted => CheckpointHint::Current,
            _ if self.listing.checkpoints().any(|(version, _)| version == hinted) => CheckpointHint::Older,
            _ if hinted > self.listing.files.latest() => CheckpointHint::BeyondLog,
            _ => CheckpointHint::NamesMissing,
        };
        (found, Some(hinted))
    }

    /// What a clean-up of the log would delete now, after a checkpoint of the newest version. Times are those of the
    /// files, even where commits have their own.
    fn expired(&self, pointed_to: Option<u64>) -> CountAndBytes {
        let mut expired = CountAndBytes::default();
        if !log_cleanup::is_enabled(self.table) {
            return expired;
        }
        let folder = self.root.join(LOG_FOLDER);
        let files: Vec<LogFile> = self.listing.all.iter().filter_map(|info| log_file(&folder, info)).collect();
        let cutoff_ms = log_cutoff_ms(self.now_ms, self.retention_ms);
        let rules = LogCutRules {
            cutoff_version: self.listing.files.commits.iter().rfind(|c| c.time_ms <= cutoff_ms).map(|c| c.version),
            pointed_to,
            protected_before: log_cleanup::protected_before(self.table),
            planned_checkpoint: Some(self.listing.files.latest()),
        };
        let cut = log_cut(&files, rules);
        let input = LogCleanupInput { files: &files, cutoff_ms, now_ms: self.now_ms, referenced_sidecars: None };
        plan_log_cleanup(&input, cut).expired().for_each(|file| expired.add(file.size));
        expired
    }

    /// A checksum that cannot be read counts for none: engines skip it as well.
    async fn checksum(&self) -> Option<Checksum> {
        let info = self.listing.named(&format!("{:020}.crc", self.table.state.version))?;
        let totals = version_checksum::totals(&self.store.get(&info.location).await.ok()?)?;
        Some(Checksum { files: totals.files?, bytes: totals.bytes? })
    }
}
