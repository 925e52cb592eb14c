//! Tombstones in the log, and what a deep survey finds on the storage.

use lakesmith_core::health::CountAndBytes;
use lakesmith_core::op::HealthOptions;
use lakesmith_delta::survey;
use lakesmith_storage::{Store, StoreOptions};
use lakesmith_testkit::{BuiltTable, TableBuilder};

use crate::survey::NOW_MS;

/// The time of a built table's last commits, and a moment later.
const SOON_MS: i64 = 1_704_067_200_000 + 3_600_000;

fn store(table: &BuiltTable) -> Store {
    Store::open(&table.root, &StoreOptions::default()).unwrap()
}

/// Six files in two partitions: one removed, two with vectors.
fn built(folder: &std::path::Path) -> BuiltTable {
    TableBuilder::new(folder)
        .partitioned_by(&["day"])
        .append_partition(&[Some("a b")], 90, 3)
        .append_partition(&[None], 90, 3)
        .delete_rows(0, &[1, 2, 3])
        .delete_rows(4, &[0])
        .delete_rows(0, &[7])
        .remove_file(1)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_that_really_left_are_tombstones() {
    let folder = tempfile::tempdir().unwrap();
    let table = built(&folder.path().join("t"));
    let removed = table.files[1].size;
    for (now_ms, expired) in [(SOON_MS, CountAndBytes::default()), (NOW_MS, CountAndBytes { files: 1, bytes: removed })]
    {
        let found = survey(&store(&table), &table.root, &HealthOptions::default(), now_ms).await.unwrap();
        let tombstones = found.facts.tombstones.unwrap();
        assert_eq!(tombstones.all, CountAndBytes { files: 1, bytes: removed });
        assert_eq!(tombstones.expired, expired);
        assert_eq!(found.facts.files.deletes(), (2, 5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_storage_is_compared_with_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let table = built(&folder.path().join("t"));
    let deep = HealthOptions { deep: true, ..HealthOptions::default() };
    let look = async || survey(&store(&table), &table.root, &deep, NOW_MS).await.unwrap().facts.storage.unwrap();
    let found = look().await;
    // Removed, and a vector that was replaced.
    assert_eq!((found.missing_files, found.wrong_size_files, found.orphans.files), (0, 0, 0));
    assert_eq!(found.reclaimable.files, 2);
    assert_eq!(found.stored.files, 6 + 3);

    for (name, orphan) in [
        ("orphan.parquet", true),
        ("day=x/orphan.parquet", true),
        ("_hidden/x.parquet", false),
        (".x.crc", false),
        ("other/_delta_log/00000000000000000000.json", false),
        ("other/part-0.parquet", false),
        ("other/sub/part-0.parquet", false),
    ] {
        let path = table.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"12345").unwrap();
        let now = look().await;
        assert_eq!(now.orphans.files, found.orphans.files + u64::from(orphan), "{name}");
        if orphan {
            std::fs::remove_file(&path).unwrap();
        }
    }
    std::fs::remove_file(table.folder.join(&table.files[2].path)).unwrap();
    std::fs::write(table.folder.join(&table.files[5].path), b"cut").unwrap();
    let found = look().await;
    assert_eq!((found.missing_files, found.wrong_size_files), (1, 1));
    assert_eq!(found.examples, [table.files[2].path.clone(), table.files[5].path.clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_orphan_is_not_reclaimable() {
    let folder = tempfile::tempdir().unwrap();
    let table = built(&folder.path().join("t"));
    std::fs::write(table.folder.join("orphan.parquet"), b"12345").unwrap();
    let deep = HealthOptions { deep: true, ..HealthOptions::default() };
    let modified = std::fs::metadata(table.folder.join("orphan.parquet")).unwrap().modified().unwrap();
    let now_ms = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64 + 1_000;
    let found = survey(&store(&table), &table.root, &deep, now_ms).await.unwrap().facts.storage.unwrap();
    assert_eq!(found.orphans.files, 1);
    // The removed files of a table whose commits are years old, but not the orphan of a second ago.
    assert_eq!(found.reclaimable.files, 2);
}
