//! What a health check looks at in an Iceberg table.

use std::collections::{BTreeSet, HashMap};

use lakesmith_core::health::{CountAndBytes, FileTally, HealthFacts, SnapshotFacts, TalliedFile};
use lakesmith_core::table::DeleteContent;
use lakesmith_iceberg::metadata::RefKind;
use lakesmith_iceberg::{IcebergTable, Snapshot, TableMetadata};

/// Defaults of the table's properties.
///
/// # Source
/// Iceberg `TableProperties`.
const MAX_SNAPSHOT_AGE_MS: i64 = 5 * 86_400_000;
const MIN_SNAPSHOTS_TO_KEEP: i64 = 1;
const MANIFEST_TARGET_BYTES: u64 = 8 << 20;

pub(super) fn facts(table: &IcebergTable, target_bytes: u64, now_ms: i64) -> HealthFacts {
    let files = &table.state.files;
    let mut tally = FileTally::new(target_bytes);
    for file in files.iter() {
        tally.push(TalliedFile {
            partition: file.partition_index,
            size: file.size,
            modified_ms: file.modified_ms,
            rows: file.rows.filter(|_| file.delete_files.is_empty()),
            deleted: file.deletes.map(|d| d.cardinality),
            target: None,
            in_cube: false,
        });
    }
    let places: Vec<u32> = (0..files.partitions().len() as u32).collect();
    HealthFacts {
        files: tally.finish(files.partitions().to_vec(), &places),
        snapshots: Some(snapshots(table, now_ms)),
        source: "manifests",
        ..HealthFacts::default()
    }
}

fn snapshots(table: &IcebergTable, now_ms: i64) -> SnapshotFacts {
    let metadata = &table.log.metadata;
    let files = &table.state.files;
    let mut facts = SnapshotFacts {
        snapshots: metadata.snapshots.len() as u64,
        expirable: expirable(metadata, now_ms),
        oldest_ms: metadata.snapshots.iter().map(|s| s.timestamp_ms).min(),
        references: metadata.refs.len() as u64,
        manifest_target_bytes: number(metadata, "commit.manifest.target-size-bytes")
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(MANIFEST_TARGET_BYTES),
        metadata_files: metadata.metadata_log.len() as u64 + 1,
        metadata_files_are_deleted: metadata
            .properties
            .get("write.metadata.delete-after-commit.enabled")
            .is_some_and(|value| value.eq_ignore_ascii_case("true")),
        ..SnapshotFacts::default()
    };
    table.log.manifests.iter().for_each(|manifest| facts.manifests.add(manifest.length));
    let mut used = vec![false; files.delete_files().len()];
    for file in files.iter().filter(|file| !file.delete_files.is_empty()) {
        facts.files_with_deletes += 1;
        facts.most_deletes_of_a_file = facts.most_deletes_of_a_file.max(file.delete_files.len() as u64);
        file.delete_files.iter().for_each(|id| used[id.0 as usize] = true);
    }
    for (file, used) in files.delete_files().iter().zip(used) {
        let kind: &mut CountAndBytes = match file.content {
            DeleteContent::Positions => &mut facts.position_delete_files,
            DeleteContent::Equality(_) => &mut facts.equality_delete_files,
        };
        kind.add(file.size);
        facts.delete_records = facts.delete_records.saturating_add(file.rows);
        facts.dangling_delete_files += u64::from(!used);
    }
    facts
}

fn number(metadata: &TableMetadata, key: &str) -> Option<i64> {
    metadata.properties.get(key)?.trim().parse().ok()
}

/// Snapshots that expiring them by the table's own rules would take: on each branch those older than its age, after as many
/// as must stay; of the rest those that no tag names and that are older than the table's age.
///
/// # Source
/// Iceberg spec, "Snapshot Retention Policy".
fn expirable(metadata: &TableMetadata, now_ms: i64) -> u64 {
    let max_age = number(metadata, "history.expire.max-snapshot-age-ms").unwrap_or(MAX_SNAPSHOT_AGE_MS);
    let min_kept = number(metadata, "history.expire.min-snapshots-to-keep").unwrap_or(MIN_SNAPSHOTS_TO_KEEP);
    let old = |snapshot: &Snapshot, age: i64| snapshot.timestamp_ms < now_ms.saturating_sub(age);
    let by_id: HashMap<i64, &Snapshot> = metadata.snapshots.iter().map(|s| (s.snapshot_id, s)).collect();
    let mut kept: BTreeSet<i64> = BTreeSet::new();
    let mut on_branches: BTreeSet<i64> = BTreeSet::new();
    for reference in metadata.refs.values() {
        kept.insert(reference.snapshot_id);
        if reference.kind == RefKind::Tag {
            continue;
        }
        let age = reference.max_snapshot_age_ms.unwrap_or(max_age);
        let min = reference.min_snapshots_to_keep.map_or(min_kept, i64::from);
        let (mut next, mut count, mut stays) = (by_id.get(&reference.snapshot_id), 0, true);
        while let Some(snapshot) = next {
            on_branches.insert(snapshot.snapshot_id);
            stays &= count < min || !old(snapshot, age);
            if stays {
                kept.insert(snapshot.snapshot_id);
            }
            count += 1;
            let parent = snapshot.parent_snapshot_id.filter(|_| count as usize <= metadata.snapshots.len());
            next = parent.and_then(|id| by_id.get(&id));
        }
    }
    let goes =
        |s: &&Snapshot| !kept.contains(&s.snapshot_id) && (on_branches.contains(&s.snapshot_id) || old(s, max_age));
    metadata.snapshots.iter().filter(goes).count() as u64
}
