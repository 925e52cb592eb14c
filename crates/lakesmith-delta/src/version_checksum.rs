//! Version checksums (`.crc`): a summary of a version that readers check themselves by and start faster from.
//!
//! Ours is the previous version's, moved on by our own commit, or that of a new table. Readers trust it, so it is written
//! only where the previous one agrees with what we know, and holds only what can be kept exact.
//!
//! # Source
//! Delta PROTOCOL.md, "Version Checksum File"; Delta Spark `RecordChecksum.computeNewChecksum`.

use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::actions::{Action, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol, parse_commit};
use crate::log_files::LOG_FOLDER;
use crate::tip::{Tip, property};

/// Bins of deleted rows: none, then one a decimal digit, then what no 32-bit number holds.
const DELETED_BINS: usize = 10;
/// Two names of one field, in the protocol and in older writers.
const SIZES: [&str; 2] = ["fileSizeHistogram", "histogramOpt"];

/// The state before a commit, as far as it is known apart from its checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before<'a> {
    /// Protocol, metadata and clock.
    pub tip: &'a Tip,
    /// Number of live files and their bytes, if they were loaded at the version before the commit.
    pub files: Option<(u64, u64)>,
}

/// What a checksum says of all live files together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub files: Option<u64>,
    pub bytes: Option<u64>,
}

/// The totals of a checksum file; `None` if it is no JSON object.
pub(crate) fn totals(checksum: &[u8]) -> Option<Totals> {
    let checksum: Map<String, Value> = serde_json::from_slice(checksum).ok()?;
    let number = |key: &str| checksum.get(key).and_then(Value::as_u64);
    Some(Totals { files: number("numFiles"), bytes: number("tableSizeBytes") })
}

/// Writes the checksum of `version`, which `commit` made; false if the previous version's does not serve.
///
/// # Errors
/// `Corrupt` if the commit can't be read back, `Unavailable` from the storage.
pub(crate) async fn write(
    store: &Store,
    root: &Location,
    version: u64,
    before: Before<'_>,
    commit: &[u8],
) -> Result<bool> {
    let previous = match store.get(&location(root, version - 1)).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let Ok(previous) = serde_json::from_slice::<Map<String, Value>>(&previous) else { return Ok(false) };
    let actions = parse_commit(commit, root)?;
    let Some(state) = State::of(&previous, before) else { return Ok(false) };
    put(store, &location(root, version), state.after(&actions, &before.tip.metadata, &before.tip.protocol)).await
}

/// Writes the checksum of a table's first version, which `commit` made, with this metadata and protocol.
///
/// # Errors
/// As [`write`].
pub(crate) async fn write_first(
    store: &Store,
    root: &Location,
    metadata: &Metadata,
    protocol: &Protocol,
    commit: &[u8],
) -> Result<bool> {
    let takes_vectors = protocol.writer_features.iter().flatten().any(|feature| feature == "deletionVectors");
    let actions = parse_commit(commit, root)?;
    put(store, &location(root, 0), State::empty(takes_vectors).after(&actions, metadata, protocol)).await
}

fn location(root: &Location, version: u64) -> Location {
    root.join(&format!("{LOG_FOLDER}/{version:020}.crc"))
}

async fn put(store: &Store, location: &Location, checksum: Option<Map<String, Value>>) -> Result<bool> {
    let Some(checksum) = checksum else { return Ok(false) };
    let mut text = serde_json::to_vec(&checksum)
        .map_err(|e| Error::internal("a version checksum could not be written as JSON").caused_by(e))?;
    text.push(b'\n');
    store.put_if_absent(location, text.into()).await?;
    Ok(true)
}

/// What a checksum holds and a commit moves.
struct State {
    bytes: i64,
    files: i64,
    deleted_rows: Option<i64>,
    vectors: Option<i64>,
    transactions: Option<Value>,
    domains: Option<Vec<DomainMetadata>>,
    sizes: Option<(&'static str, SizeHistogram)>,
    deleted_counts: Option<Vec<i64>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SizeHistogram {
    sorted_bin_boundaries: Vec<i64>,
    file_counts: Vec<i64>,
    total_bytes: Vec<i64>,
}

impl State {
    fn empty(takes_vectors: bool) -> Self {
        Self {
            bytes: 0,
            files: 0,
            deleted_rows: takes_vectors.then_some(0),
            vectors: takes_vectors.then_some(0),
            transactions: Some(json!([])),
            domains: Some(Vec::new()),
            sizes: Some((SIZES[0], SizeHistogram::empty())),
            deleted_counts: takes_vectors.then(|| vec![0; DELETED_BINS]),
        }
    }

    /// The checksum after a commit on a table with this metadata and protocol; `None` if it can't be kept exact.
    fn after(mut self, actions: &[Action], metadata: &Metadata, protocol: &Protocol) -> Option<Map<String, Value>> {
        let (mut metadata, mut protocol) = (metadata, protocol);
        let (mut transaction_id, mut timestamp_ms) = (None, None);
        for action in actions {
            match action {
                Action::Add(add) => self.put(add.size, add.deletion_vector.as_ref())?,
                Action::Remove(remove) => self.take(remove.size?, remove.deletion_vector.as_ref())?,
                Action::Metadata(new) => metadata = new,
                Action::Protocol(new) => protocol = new,
                Action::DomainMetadata(domain) => self.set_domain(domain),
                Action::CommitInfo(info) => {
                    (transaction_id, timestamp_ms) = (info.txn_id.clone(), info.in_commit_timestamp)
                }
                _ => return None,
            }
        }
        self.forget_expiring_transactions(metadata);
        self.into_json(transaction_id, timestamp_ms, metadata, protocol)
    }

    /// `None` if the checksum contradicts itself or what is known of the table.
    fn of(previous: &Map<String, Value>, before: Before<'_>) -> Option<Self> {
        let number = |key: &str| previous.get(key).and_then(Value::as_i64);
        let agrees = number("numMetadata") == Some(1)
            && number("numProtocol") == Some(1)
            && typed::<Metadata>(previous, "metadata").as_ref() == Some(&before.tip.metadata)
            && typed::<Protocol>(previous, "protocol").is_some_and(|p| same_protocol(&p, &before.tip.protocol))
            && number("inCommitTimestampOpt") == before.tip.commit_timestamp_ms;
        let (bytes, files) = (number("tableSizeBytes")?, number("numFiles")?);
        let counted = before.files.is_none_or(|(count, sum)| {
            i64::try_from(count).ok() == Some(files) && i64::try_from(sum).ok() == Some(bytes)
        });
        if !agrees || !counted {
            return None;
        }
        let sizes = SIZES.into_iter().find_map(|key| Some((key, typed::<SizeHistogram>(previous, key)?)));
        let deleted_counts = previous.get("deletedRecordCountsHistogramOpt").and_then(|h| h.get("deletedRecordCounts"));
        let state = Self {
            bytes,
            files,
            deleted_rows: number("numDeletedRecordsOpt"),
            vectors: number("numDeletionVectorsOpt"),
            transactions: previous.get("setTransactions").filter(|t| t.is_array()).cloned(),
            domains: typed(previous, "domainMetadata"),
            sizes: sizes.filter(|(_, h)| h.is_whole(files, bytes)),
            deleted_counts: deleted_counts
                .and_then(|c| serde_json::from_value::<Vec<i64>>(c.clone()).ok())
                .filter(|c| c.len() == DELETED_BINS && c.iter().sum::<i64>() == files),
        };
        Some(state)
    }

    fn put(&mut self, size: i64, vector: Option<&DeletionVectorDescriptor>) -> Option<()> {
        self.count(1, size, vector)
    }

    fn take(&mut self, size: i64, vector: Option<&DeletionVectorDescriptor>) -> Option<()> {
        self.count(-1, size, vector)
    }

    /// `None` if a counter falls below nothing: then the checksum was wrong.
    fn count(&mut self, sign: i64, size: i64, vector: Option<&DeletionVectorDescriptor>) -> Option<()> {
        let deleted = vector.map_or(0, |v| v.cardinality);
        let add = |counter: &mut i64, value: i64| {
            *counter = counter.checked_add(sign.checked_mul(value)?)?;
            (*counter >= 0).then_some(())
        };
        add(&mut self.bytes, size)?;
        add(&mut self.files, 1)?;
        if let Some(rows) = &mut self.deleted_rows {
            add(rows, deleted)?;
        }
        if let Some(vectors) = &mut self.vectors {
            add(vectors, i64::from(vector.is_some()))?;
        }
        if let Some((_, histogram)) = &mut self.sizes {
            let bin = histogram.sorted_bin_boundaries.partition_point(|start| *start <= size).checked_sub(1)?;
            add(histogram.file_counts.get_mut(bin)?, 1)?;
            add(histogram.total_bytes.get_mut(bin)?, size)?;
        }
        if let Some(counts) = &mut self.deleted_counts {
            add(counts.get_mut(deleted_bin(deleted))?, 1)?;
        }
        Some(())
    }

    fn set_domain(&mut self, new: &DomainMetadata) {
        let Some(domains) = &mut self.domains else { return };
        domains.retain(|d| d.domain != new.domain);
        if !new.removed {
            domains.push(new.clone());
        }
    }

    /// Which transactions are still there would depend on when it is looked at.
    fn forget_expiring_transactions(&mut self, metadata: &Metadata) {
        if property(metadata, "delta.setTransactionRetentionDuration").is_some() {
            self.transactions = None;
        }
    }

    fn into_json(
        self,
        transaction_id: Option<String>,
        timestamp_ms: Option<i64>,
        metadata: &Metadata,
        protocol: &Protocol,
    ) -> Option<Map<String, Value>> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        put("txnId", transaction_id.map(Value::from));
        put("tableSizeBytes", Some(self.bytes.into()));
        put("numFiles", Some(self.files.into()));
        put("numDeletedRecordsOpt", self.deleted_rows.map(Value::from));
        put("numDeletionVectorsOpt", self.vectors.map(Value::from));
        put("numMetadata", Some(1.into()));
        put("numProtocol", Some(1.into()));
        put("inCommitTimestampOpt", timestamp_ms.map(Value::from));
        put("setTransactions", self.transactions);
        put("domainMetadata", self.domains.map(|d| serde_json::to_value(d).ok()).unwrap_or_default());
        put("metadata", Some(serde_json::to_value(metadata).ok()?));
        put("protocol", Some(serde_json::to_value(protocol).ok()?));
        if let Some((key, histogram)) = self.sizes {
            put(key, Some(serde_json::to_value(histogram).ok()?));
        }
        put("deletedRecordCountsHistogramOpt", self.deleted_counts.map(|c| json!({ "deletedRecordCounts": c })));
        Some(map)
    }
}

impl SizeHistogram {
    /// Nothing in the bins that Spark has.
    fn empty() -> Self {
        let mut starts = vec![0];
        starts.extend((13..=23).map(|power| 1_i64 << power));
        let mut start = 8;
        for (step, last) in [(4, 40), (8, 120), (4, 144), (16, 576), (64, 1_408), (128, 2_048), (256, 4_096)] {
            while start < last {
                start += step;
                starts.push(start << 20);
            }
        }
        starts.extend((33..=38).map(|power| 1_i64 << power));
        Self { file_counts: vec![0; starts.len()], total_bytes: vec![0; starts.len()], sorted_bin_boundaries: starts }
    }

    fn is_whole(&self, files: i64, bytes: i64) -> bool {
        let bins = self.sorted_bin_boundaries.len();
        let sum = |values: &[i64]| values.iter().try_fold(0i64, |sum, v| sum.checked_add(*v));
        self.sorted_bin_boundaries.first() == Some(&0)
            && self.sorted_bin_boundaries.is_sorted()
            && (self.file_counts.len(), self.total_bytes.len()) == (bins, bins)
            && sum(&self.file_counts) == Some(files)
            && sum(&self.total_bytes) == Some(bytes)
    }
}

fn deleted_bin(rows: i64) -> usize {
    match rows {
        ..=0 => 0,
        1..10_000_000 => rows.ilog10() as usize + 1,
        10_000_000..2_147_483_647 => 8,
        _ => 9,
    }
}

fn typed<T: DeserializeOwned>(map: &Map<String, Value>, key: &str) -> Option<T> {
    map.get(key).filter(|v| !v.is_null()).and_then(|v| serde_json::from_value(v.clone()).ok())
}

/// Feature lists are sets.
fn same_protocol(a: &Protocol, b: &Protocol) -> bool {
    let sorted = |protocol: &Protocol| {
        let mut protocol = protocol.clone();
        for features in [&mut protocol.reader_features, &mut protocol.writer_features].into_iter().flatten() {
            features.sort();
        }
        protocol
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_rows_fall_into_bins_of_decimal_digits() {
        for (rows, bin) in [
            (0, 0),
            (1, 1),
            (9, 1),
            (10, 2),
            (99, 2),
            (100, 3),
            (999_999, 6),
            (1_000_000, 7),
            (9_999_999, 7),
            (10_000_000, 8),
            (2_147_483_646, 8),
            (2_147_483_647, 9),
            (i64::MAX, 9),
        ] {
            assert_eq!(deleted_bin(rows), bin, "{rows}");
        }
    }

    #[test]
    fn histograms_that_contradict_the_totals_are_not_carried_on() {
        let histogram = |counts: Vec<i64>, bytes: Vec<i64>| SizeHistogram {
            sorted_bin_boundaries: vec![0, 100],
            file_counts: counts,
            total_bytes: bytes,
        };
        assert!(histogram(vec![1, 1], vec![5, 200]).is_whole(2, 205));
        assert!(!histogram(vec![1, 1], vec![5, 200]).is_whole(3, 205));
        assert!(!histogram(vec![1, 1], vec![5, 201]).is_whole(2, 205));
        assert!(!histogram(vec![2], vec![205]).is_whole(2, 205));
    }
}
