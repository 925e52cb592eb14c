//! The metadata tables.

use futures::TryStreamExt as _;
use lakesmith_core::Result;
use lakesmith_core::table::Scalar;
use lakesmith_iceberg::metadata_tables::{
    FileKinds, FileRow, Reach, all_manifests, entries, files, history, manifests, metadata_log, partition_columns,
    partitions, readable_metrics, refs, snapshots,
};
use lakesmith_iceberg::{At, IcebergTable};
use serde_json::json;

use crate::fixtures::{ALL, Fixture};

async fn rows(fixture: &Fixture, table: &IcebergTable, kinds: FileKinds, reach: Reach) -> Result<Vec<FileRow>> {
    let batches: Vec<Vec<FileRow>> = files(&fixture.store, table, kinds, reach).await?.try_collect().await?;
    Ok(batches.concat())
}

pub(crate) async fn read_every_table(fixture: &Fixture, table: &IcebergTable) -> Result<()> {
    for reach in [Reach::Snapshot, Reach::All] {
        for row in rows(fixture, table, FileKinds::Both, reach).await? {
            readable_metrics(table.schema(), &row);
        }
        entries(&fixture.store, table, reach).await?.try_collect::<Vec<_>>().await?;
    }
    manifests(&fixture.store, table).await?;
    all_manifests(&fixture.store, table).await?;
    partitions(&fixture.store, table).await?;
    let (_, _, _, _) = (snapshots(table), history(table), refs(table), metadata_log(table));
    Ok(())
}

#[tokio::test]
async fn tables_agree_with_each_other_and_with_what_spark_counted() {
    for name in ALL {
        let fixture = Fixture::open(name).await;
        let table = fixture.load(At::Latest).await.unwrap();
        let data = rows(&fixture, &table, FileKinds::Data, Reach::Snapshot).await.unwrap();
        let deletes = rows(&fixture, &table, FileKinds::Deletes, Reach::Snapshot).await.unwrap();
        assert_eq!(json!(data.len()), fixture.expected["data_files"], "{name}");
        let of_content = |content: i32| {
            let wanted = deletes.iter().filter(move |row| row.content == content);
            [wanted.clone().count() as u64, wanted.map(|row| row.record_count).sum()]
        };
        assert_eq!(json!(of_content(1)), fixture.expected["pos_delete_files"], "{name}");
        assert_eq!(json!(of_content(2)), fixture.expected["eq_delete_files"], "{name}");
        let both = rows(&fixture, &table, FileKinds::Both, Reach::Snapshot).await.unwrap();
        assert_eq!(both.len(), data.len() + deletes.len(), "{name}");

        let of_manifests = manifests(&fixture.store, &table).await.unwrap();
        let live: i32 = of_manifests.iter().map(|row| row.added_data_files_count + row.existing_data_files_count).sum();
        assert_eq!(live as usize, data.len(), "{name}");
        let entries: Vec<_> =
            entries(&fixture.store, &table, Reach::Snapshot).await.unwrap().try_concat().await.unwrap();
        let deleted: i32 =
            of_manifests.iter().map(|row| row.deleted_data_files_count + row.deleted_delete_files_count).sum();
        assert_eq!(entries.iter().filter(|row| row.status == 2).count(), deleted as usize, "{name}");
        assert_eq!(entries.iter().filter(|row| row.status != 2).count(), both.len(), "{name}");

        let sums = partitions(&fixture.store, &table).await.unwrap();
        assert_eq!(sums.iter().map(|row| row.file_count as usize).sum::<usize>(), data.len(), "{name}");
        let total: u64 = data.iter().map(|row| row.record_count).sum();
        assert_eq!(sums.iter().map(|row| row.record_count).sum::<u64>(), total, "{name}");
        let columns = partition_columns(&table.log.metadata).len();
        assert!(both.iter().all(|row| row.partition.len() == columns), "{name}");
        let snapshots = snapshots(&table);
        let summary = &snapshots.last().unwrap().summary;
        assert!(summary.contains_key("total-records") && !summary.contains_key("operation"), "{name}");
        let all = rows(&fixture, &table, FileKinds::Both, Reach::All).await.unwrap();
        assert!(all.len() >= both.len(), "{name}");
        assert!(all_manifests(&fixture.store, &table).await.unwrap().len() >= of_manifests.len(), "{name}");
    }
}

#[tokio::test]
async fn names_and_times_of_snapshots_are_shown() {
    let fixture = Fixture::open("branch_tag").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let refs = refs(&table);
    let shown: Vec<_> = refs.iter().map(|r| (r.name.as_str(), r.kind, r.min_snapshots_to_keep)).collect();
    assert_eq!(shown, [("dev", "BRANCH", Some(2)), ("main", "BRANCH", None), ("t1", "TAG", None)]);
    assert_eq!(refs[2].max_reference_age_in_ms, Some(31_536_000_000));
    let history = history(&table);
    assert!(history.iter().all(|row| row.is_current_ancestor));
    assert_eq!(history.last().unwrap().snapshot_id, table.log.snapshot_id.unwrap());
    assert_eq!(history[0].parent_id, None);
    let log = metadata_log(&table);
    let last = log.last().unwrap();
    assert_eq!(last.file, "file:/tmp/lakesmith-fixtures/iceberg/branch_tag/metadata/v7.metadata.json");
    assert_eq!((last.latest_snapshot_id, last.latest_schema_id), (table.log.snapshot_id, Some(0)));
    let created = Fixture::open("v1_table").await.load(At::Latest).await.unwrap();
    let snapshots: Vec<_> = metadata_log(&created).iter().map(|row| row.latest_snapshot_id).collect();
    assert_eq!(snapshots, [None, created.log.snapshot_id]);
}

#[tokio::test]
async fn partitions_are_shown_by_value_and_in_words() {
    let fixture = Fixture::open("part_more").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let columns = partition_columns(&table.log.metadata);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["d_month", "k"]);
    let rows = partitions(&fixture.store, &table).await.unwrap();
    assert_eq!(rows.len(), 20);
    assert_eq!(rows[0].partition, [Scalar::Null, Scalar::Null]);
    assert_eq!((rows[0].record_count, rows[0].file_count), (1, 1));
    let manifests = manifests(&fixture.store, &table).await.unwrap();
    let texts: Vec<_> = manifests
        .iter()
        .map(|row| {
            let month = &row.partition_summaries[0];
            (month.contains_null, month.lower_bound.as_deref(), month.upper_bound.as_deref())
        })
        .collect();
    assert!(texts.contains(&(false, Some("2026-01"), Some("2026-02"))), "{texts:?}");
    assert!(texts.contains(&(true, None, None)), "{texts:?}");
}
