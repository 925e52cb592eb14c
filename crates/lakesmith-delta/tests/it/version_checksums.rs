//! Version checksums that follow our commits: they say what a reader finds.

use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::{FileId, FileMarks, FileStats, GroupEdit, NewFile, VersionEdit};
use lakesmith_delta::{CommitResult, DeltaTable};
use lakesmith_storage::{Cancel, FixedWorld};
use serde_json::{Value, json};

use crate::commit_bench::{self, optimize};
use crate::tables::{TestTable, golden_folder};

/// The first file replaced by one of another size.
fn swap_first(table: &DeltaTable) -> VersionEdit {
    let file = table.state.files.get(FileId(0));
    let added = NewFile {
        path: "swapped.parquet".into(),
        size: 9_000,
        modified_ms: 1,
        partition: file.partition.clone(),
        stats: FileStats { rows: file.rows.unwrap_or(1) - file.deleted_rows(), leaves: vec![] },
        marks: FileMarks::default(),
    };
    let group = GroupEdit { removed: vec![file.id], added: vec![added], row_map: vec![] };
    VersionEdit { groups: vec![group], operation: optimize(), ..VersionEdit::default() }
}

async fn commit(table: &TestTable, base: &DeltaTable, edit: &VersionEdit) -> CommitResult {
    let (world, cancel) = (FixedWorld::new(commit_bench::NOW_MS), Cancel::default());
    commit_bench::commit(&table.store(), &table.root(), base, edit, None, &world, &cancel).await
}

fn checksum(table: &TestTable, version: u64) -> Option<Value> {
    let bytes = std::fs::read(table.path().join(format!("_delta_log/{version:020}.crc"))).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// What a checksum must say of the version, by looking at every file of it.
fn check(name: &str, table: &DeltaTable, checksum: &Value) {
    let files = &table.state.files;
    let count = |value: &Value| value.as_u64().unwrap();
    assert_eq!(count(&checksum["numFiles"]), files.len() as u64, "{name}");
    assert_eq!(count(&checksum["tableSizeBytes"]), files.total_bytes(), "{name}");
    assert_eq!((&checksum["numMetadata"], &checksum["numProtocol"]), (&json!(1), &json!(1)), "{name}");
    assert_eq!(checksum["metadata"], serde_json::to_value(&table.log.metadata).unwrap(), "{name}");
    assert_eq!(checksum["protocol"], serde_json::to_value(&table.log.protocol).unwrap(), "{name}");
    let clock = table.log.in_commit_timestamps.then_some(table.log.commit_timestamp_ms);
    assert_eq!(checksum["inCommitTimestampOpt"].as_i64(), clock, "{name}");
    if let Some(domains) = checksum["domainMetadata"].as_array() {
        let said = domains.iter().map(|d| (d["domain"].as_str().unwrap(), d["configuration"].as_str().unwrap()));
        let mut said: Vec<_> = said.collect();
        said.sort_unstable();
        let known: Vec<_> = table.log.domains.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(said, known, "{name}");
    }
    if let Some(vectors) = checksum["numDeletionVectorsOpt"].as_u64() {
        assert_eq!(vectors, files.iter().filter(|f| f.deletes.is_some()).count() as u64, "{name}");
        assert_eq!(
            count(&checksum["numDeletedRecordsOpt"]),
            files.iter().map(|f| f.deleted_rows()).sum::<u64>(),
            "{name}"
        );
    }
    if let Some(histogram) = checksum.get("fileSizeHistogram") {
        let list = |key: &str| histogram[key].as_array().unwrap().iter().map(count).collect::<Vec<_>>();
        let (starts, counts, bytes) = (list("sortedBinBoundaries"), list("fileCounts"), list("totalBytes"));
        for (bin, start) in starts.iter().enumerate() {
            let end = starts.get(bin + 1).copied().unwrap_or(u64::MAX);
            let inside: Vec<u64> = files.iter().map(|f| f.size).filter(|s| (*start..end).contains(s)).collect();
            assert_eq!((counts[bin], bytes[bin]), (inside.len() as u64, inside.iter().sum()), "{name} from {start}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_table_with_a_checksum_gets_the_next_one() {
    let mut written = 0;
    for entry in std::fs::read_dir(golden_folder()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.file_type().unwrap().is_dir() || name.starts_with("unknown_") {
            continue;
        }
        let table = TestTable::golden(&name);
        let base = table.load().await;
        let version = base.state.version;
        let Some(previous) = checksum(&table, version).filter(|_| !base.state.files.is_empty()) else { continue };
        let CommitResult::Committed(_) = commit(&table, &base, &swap_first(&base)).await else { panic!("{name}") };
        let after = table.load().await;
        let next = checksum(&table, version + 1).unwrap_or_else(|| panic!("{name} has no next checksum"));
        check(&name, &after, &next);
        assert_eq!(next["setTransactions"], previous["setTransactions"], "{name}");
        assert_eq!(
            next.get("numDeletionVectorsOpt").is_some(),
            previous.get("numDeletionVectorsOpt").is_some(),
            "{name}"
        );
        written += 1;
    }
    assert!(written >= 20, "only {written} checksums were written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_that_is_missing_or_wrong_is_not_carried_on() {
    let spoil: [fn(&mut Value); 5] = [
        |c| c["numFiles"] = json!(c["numFiles"].as_u64().unwrap() + 1),
        |c| c["tableSizeBytes"] = json!(1),
        |c| c["metadata"]["id"] = json!("another"),
        |c| c["protocol"]["minWriterVersion"] = json!(1),
        |c| *c = json!("not an object"),
    ];
    for (number, spoil) in spoil.iter().map(Some).chain([None]).enumerate() {
        let table = TestTable::golden("plain_24_appends");
        let base = table.load().await;
        let path = table.path().join(format!("_delta_log/{:020}.crc", base.state.version));
        match spoil {
            Some(spoil) => {
                let mut wrong = checksum(&table, base.state.version).unwrap();
                spoil(&mut wrong);
                std::fs::write(&path, wrong.to_string()).unwrap();
            }
            None => std::fs::remove_file(&path).unwrap(),
        }
        let CommitResult::Committed(_) = commit(&table, &base, &swap_first(&base)).await else { panic!("{number}") };
        assert_eq!(checksum(&table, base.state.version + 1), None, "{number}");
        assert!(table.try_load(TimeTravel::Latest).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_histogram_that_contradicts_the_totals_is_left_out() {
    let table = TestTable::golden("plain_24_appends");
    let base = table.load().await;
    let path = table.path().join(format!("_delta_log/{:020}.crc", base.state.version));
    let mut wrong = checksum(&table, base.state.version).unwrap();
    wrong["fileSizeHistogram"]["fileCounts"][0] = json!(1);
    std::fs::write(&path, wrong.to_string()).unwrap();
    let CommitResult::Committed(_) = commit(&table, &base, &swap_first(&base)).await else { panic!() };
    let next = checksum(&table, base.state.version + 1).unwrap();
    assert_eq!(next.get("fileSizeHistogram"), None);
    check("plain", &table.load().await, &next);
}
