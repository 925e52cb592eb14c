//! The log's facts at the newest version looked at: where a commit starts, moved on by each winner.

use std::collections::BTreeMap;
use std::sync::Arc;

use lakesmith_core::table::{FileKey, FileTable, TableState};
use lakesmith_core::{Error, Result};

use crate::actions::{Metadata, Protocol};
use crate::conflict::{OwnChanges, check};
use crate::log_state::{DeltaTable, LogState};
use crate::log_view::LogView;
use crate::winners::Winner;
use crate::{check_writable, features};

pub(crate) const IN_COMMIT_TIMESTAMPS: &str = "delta.enableInCommitTimestamps";
pub(crate) const ROW_TRACKING_DOMAIN: &str = "delta.rowTracking";

/// What the next commit builds on.
#[derive(Debug, Clone)]
pub(crate) struct Tip {
    pub protocol: Protocol,
    pub metadata: Metadata,
    /// Highest row id given out, −1 before the first.
    pub row_id_mark: i64,
    /// When the version was committed by the table's own clock, if it has one.
    pub commit_timestamp_ms: Option<i64>,
    /// Row ids that winners gave to files that were there before: first row id and default commit version.
    pub assigned_row_ids: BTreeMap<FileKey, (i64, Option<i64>)>,
}

impl Tip {
    /// The table as it was loaded.
    pub(crate) fn of(base: &DeltaTable) -> Self {
        Self {
            protocol: base.log.protocol.clone(),
            metadata: base.log.metadata.clone(),
            row_id_mark: base.log.row_id_high_water_mark.unwrap_or(-1),
            commit_timestamp_ms: base.log.in_commit_timestamps.then_some(base.log.commit_timestamp_ms),
            assigned_row_ids: BTreeMap::new(),
        }
    }

    /// Follows a winner.
    ///
    /// # Errors
    /// `Conflict` as [`check`], `Unsupported` if the winner enabled a feature that we can't write, `Corrupt` if its
    /// domain or its timestamp is malformed.
    pub(crate) fn follow(&mut self, winner: &Winner, base: &TableState, own: &OwnChanges) -> Result<()> {
        check(&self.protocol, &self.metadata, winner, own)?;
        if let Some(metadata) = &winner.metadata {
            self.metadata = metadata.clone();
        }
        if let Some(protocol) = &winner.protocol {
            self.protocol = protocol.clone();
            self.check_writable(base)?;
        }
        for domain in winner.domains.iter().filter(|d| d.domain == ROW_TRACKING_DOMAIN) {
            self.row_id_mark = if domain.removed { -1 } else { row_id_mark(&domain.configuration, winner)? };
        }
        for (key, base_row_id, version) in &winner.row_ids {
            self.assigned_row_ids.insert(key.clone(), (*base_row_id, *version));
        }
        if self.has_own_clock() {
            let timestamp_ms = winner.info.in_commit_timestamp.ok_or_else(|| {
                Error::corrupt("a commit lacks the timestamp that the table's in-commit timestamps demand")
                    .class("DELTA_MISSING_COMMIT_TIMESTAMP")
                    .with("version", winner.summary.version)
            })?;
            self.commit_timestamp_ms = Some(timestamp_ms);
        } else {
            self.commit_timestamp_ms = None;
        }
        Ok(())
    }

    fn check_writable(&self, base: &TableState) -> Result<()> {
        let state = TableState {
            location: base.location.clone(),
            version: base.version,
            timestamp_ms: base.timestamp_ms,
            id: base.id.clone(),
            name: None,
            description: None,
            created_ms: None,
            schema: Default::default(),
            partition_columns: Vec::new(),
            clustering_columns: None,
            properties: self.metadata.configuration.clone(),
            features: features::expand(&self.protocol),
            min_reader_version: self.protocol.min_reader_version,
            min_writer_version: self.protocol.min_writer_version,
            files: FileTable::default(),
        };
        let log = LogState {
            protocol: self.protocol.clone(),
            metadata: self.metadata.clone(),
            domains: BTreeMap::new(),
            row_id_high_water_mark: None,
            commit_timestamp_ms: 0,
            in_commit_timestamps: false,
            checkpoint_version: None,
            empty_commit: None,
            file: None,
            view: LogView::default(),
            two_spellings: None,
        };
        check_writable(&DeltaTable { state: Arc::new(state), log })
    }

    /// True if commits carry their own timestamp.
    pub(crate) fn has_own_clock(&self) -> bool {
        self.has_feature("inCommitTimestamp") && is_true(&self.metadata, IN_COMMIT_TIMESTAMPS)
    }

    /// True if new files must be given row ids.
    pub(crate) fn assigns_row_ids(&self) -> bool {
        self.has_feature("rowTracking") && !is_true(&self.metadata, "delta.rowTrackingSuspended")
    }

    /// True if new deletion vectors may be committed.
    pub(crate) fn takes_vectors(&self) -> bool {
        self.has_feature("deletionVectors") && is_true(&self.metadata, "delta.enableDeletionVectors")
    }

    /// True if rows keep their ids when they move.
    pub(crate) fn tracks_rows(&self) -> bool {
        self.assigns_row_ids() && is_true(&self.metadata, "delta.enableRowTracking")
    }

    fn has_feature(&self, name: &str) -> bool {
        features::expand(&self.protocol).iter().any(|f| f == name)
    }

    /// The timestamp of the next commit by the table's own clock.
    ///
    /// # Source
    /// Delta PROTOCOL.md, "In-Commit Timestamps": greater than the previous one.
    pub(crate) fn next_timestamp(&self, now_ms: i64) -> i64 {
        self.commit_timestamp_ms.map_or(now_ms, |previous| now_ms.max(previous.saturating_add(1)))
    }
}

/// A property that is set to `true` in any case.
pub(crate) fn is_true(metadata: &Metadata, key: &str) -> bool {
    property(metadata, key).is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

/// A property's value, the key compared without regard to case.
pub(crate) fn property<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    let exact = metadata.configuration.get(key);
    let any_case = || metadata.configuration.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v);
    exact.or_else(any_case).map(String::as_str)
}

fn row_id_mark(configuration: &str, winner: &Winner) -> Result<i64> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RowTracking {
        row_id_high_water_mark: i64,
    }
    serde_json::from_str::<RowTracking>(configuration).map(|r| r.row_id_high_water_mark).map_err(|e| {
        Error::corrupt("the row id high-water mark in the log is malformed")
            .with("version", winner.summary.version)
            .caused_by(e)
    })
}
