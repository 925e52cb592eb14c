use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

fn actions(table: &BuiltTable, version: u64) -> Vec<Value> {
    let text = fs::read_to_string(table.folder.join(format!("_delta_log/{version:020}.json"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn files_hold_the_rows_that_the_log_says() {
    let folder = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(folder.path().join("a table")).append(10, 3).append(5, 1).build().unwrap();
    assert_eq!((table.version, table.live_rows()), (2, 15));
    assert_eq!(table.files.iter().map(|f| f.rows).collect::<Vec<_>>(), [4, 3, 3, 5]);
    let add = &actions(&table, 2)[1]["add"];
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
    assert_eq!(stats["minValues"], json!({"id": 10, "name": "row-10"}));
    assert_eq!(stats["maxValues"]["id"], 14);
    let on_disk = table.root.resolve(add["path"].as_str().unwrap()).unwrap().local_path().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(on_disk).unwrap()).unwrap().build().unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 5);
}

#[test]
fn partitions_are_escaped_on_disk_and_again_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(folder.path())
        .partitioned_by(&["s"])
        .append_partition(&[Some("a/b c")], 2, 1)
        .append_partition(&[None], 2, 1)
        .build()
        .unwrap();
    assert!(table.files[0].path.starts_with("s=a%2Fb c/"), "{}", table.files[0].path);
    let add = &actions(&table, 1)[1]["add"];
    assert!(add["path"].as_str().unwrap().starts_with("s=a%252Fb%20c/"), "{add}");
    assert_eq!(add["partitionValues"], json!({"s": "a/b c"}));
    assert!(table.files[1].path.starts_with("s=__HIVE_DEFAULT_PARTITION__/"));
    assert_eq!(actions(&table, 2)[1]["add"]["partitionValues"], json!({"s": null}));
    for file in &table.files {
        assert_eq!(fs::metadata(table.folder.join(&file.path)).unwrap().len(), file.size);
    }
}

#[test]
fn a_vector_grows_with_each_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let table = TableBuilder::new(folder.path())
        .append(10, 1)
        .delete_rows(0, &[1, 2])
        .delete_rows(0, &[7])
        .append(3, 1)
        .remove_file(1)
        .build()
        .unwrap();
    assert_eq!((table.version, table.live_rows()), (5, 7));
    let second = actions(&table, 3);
    assert_eq!(second[1]["add"]["deletionVector"]["cardinality"], 3);
    assert_eq!(second[2]["remove"]["deletionVector"]["cardinality"], 2);
    assert_eq!(second[1]["add"]["path"], second[2]["remove"]["path"]);
    assert_eq!(actions(&table, 0)[1]["protocol"]["readerFeatures"], json!(["deletionVectors"]));
    let vector = fs::read_dir(folder.path()).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap_or_default();
        (path.extension()? == "bin" && bytes.len() > 9).then_some(bytes)
    });
    let vector = vector.unwrap();
    let size = u32::from_be_bytes(vector[1..5].try_into().unwrap()) as usize;
    assert!(DeletionVector::decode(&vector[5..5 + size]).unwrap().contains(2));
    assert_eq!(vector.len(), 5 + size + 4);
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let beyond = TableBuilder::new(folder.path()).append(1, 1).delete_rows(0, &[1]).build().unwrap_err();
    assert_eq!(beyond.message(), "a row to delete lies behind the end of its file");
    assert!(TableBuilder::new(folder.path()).remove_file(0).build().is_err());
    assert!(TableBuilder::new(folder.path()).append_partition(&[Some("x")], 1, 1).build().is_err());
}
