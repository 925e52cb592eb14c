//! What the data room is told about reading and writing a table.

use lakesmith_core::table::FileId;
use lakesmith_delta::{hidden_columns, input_files, output_directory, read_spec, required_tags, write_spec};

use crate::tables::{PROTOCOL, TestTable, add, metadata};

fn one(properties: &str, partitioned: bool) -> TestTable {
    let line = add("a.parquet", partitioned.then_some("a/b"), 1);
    TestTable::with_commits(&[&format!("{PROTOCOL}\n{}\n{line}", metadata("string", partitioned, properties))])
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_columns_are_not_in_the_files() {
    let table = one("{}", true);
    let loaded = table.load().await;
    let read = read_spec(&loaded).unwrap();
    assert_eq!(read.schema.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["id"]);
    let write = write_spec(&loaded, Some(7), None, 1_000).unwrap();
    assert_eq!(write.stats_leaves, [["id"]]);
    assert_eq!((write.partition_fields.len(), write.row_tracking, write.max_rows_per_file), (0, None, Some(7)));
    assert_eq!(hidden_columns(&loaded), ["p"]);
    let partition = &loaded.state.files.partitions()[0];
    assert_eq!(output_directory(&loaded, partition, "xy"), "p=a%2Fb/");
    let inputs = input_files(&loaded, &table.root(), &[FileId(0)]).unwrap();
    assert_eq!(inputs[0].location, table.root().join("a.parquet").to_string());
    assert_eq!((inputs[0].rows, inputs[0].size), (Some(1), 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_have_a_folder_and_prefixes_may_be_random() {
    let null =
        TestTable::with_commits(&[&format!("{PROTOCOL}\n{}\n{}", metadata("string", true, "{}"), add("a", None, 1))]);
    let loaded = null.load().await;
    let partition = &loaded.state.files.partitions()[0];
    assert_eq!(output_directory(&loaded, partition, "xy"), "p=__HIVE_DEFAULT_PARTITION__/");
    let random = one(r#"{"delta.randomizeFilePrefixes":"true"}"#, false).load().await;
    assert_eq!(output_directory(&random, &random.state.files.partitions()[0], "xy"), "xy/");
    let mapped = TestTable::golden("colmap_name").load().await;
    assert_eq!(output_directory(&mapped, &mapped.state.files.partitions()[0], "xy"), "xy/");
    let plain = one("{}", false).load().await;
    assert_eq!(output_directory(&plain, &plain.state.files.partitions()[0], "xy"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_follow_the_table_s_properties() {
    for (properties, expected) in [
        ("{}", &["id", "p"][..]),
        (r#"{"delta.dataSkippingNumIndexedCols":"1"}"#, &["id"]),
        (r#"{"delta.dataSkippingNumIndexedCols":"0"}"#, &[]),
        (r#"{"delta.dataSkippingNumIndexedCols":"-1"}"#, &["id", "p"]),
        (r#"{"delta.dataSkippingStatsColumns":"P","delta.dataSkippingNumIndexedCols":"0"}"#, &["p"]),
    ] {
        let loaded = one(properties, false).load().await;
        let leaves = write_spec(&loaded, None, None, 1).unwrap().stats_leaves;
        assert_eq!(leaves.concat(), expected, "{properties}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_leaves_are_counted_one_by_one() {
    let loaded = TestTable::golden("nested").load().await;
    let leaves = write_spec(&loaded, None, None, 1).unwrap().stats_leaves;
    let shown: Vec<String> = leaves.iter().map(|l| l.join(".")).collect();
    assert_eq!(shown, ["id", "st.a", "st.in.x", "st.in.y", "arr", "m", "deep", "optst.o"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mapped_columns_are_read_by_name_or_id() {
    for (name, by_id) in [("colmap_name", false), ("colmap_id", true)] {
        let loaded = TestTable::golden(name).load().await;
        let read = read_spec(&loaded).unwrap();
        assert_eq!(read.match_by_id, by_id);
        assert!(read.schema.fields.iter().all(|f| f.id.is_some()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_tracking_names_its_columns() {
    let loaded = TestTable::golden("row_tracking").load().await;
    let tracking = write_spec(&loaded, None, None, 1).unwrap().row_tracking.unwrap();
    assert_eq!(tracking.row_id, "_row-id-col-beadb3c4-b7a0-4378-980e-ac45683b31de");
    assert_eq!(tracking.commit_version, "_row-commit-version-col-3d84877d-d132-4e9d-ba0d-e6cbb6678532");
    assert_eq!(hidden_columns(&loaded).len(), 2);
    let broken = one(r#"{"delta.enableRowTracking":"true"}"#, false).load().await;
    assert!(write_spec(&broken, None, None, 1).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn iceberg_compatibility_materialises_partitions_and_tags_files() {
    let loaded = one(r#"{"delta.enableIcebergCompatV1":"true"}"#, true).load().await;
    let write = write_spec(&loaded, None, None, 1).unwrap();
    assert_eq!((write.partition_fields[0].name.as_str(), write.partition_indexes), ("p", vec![0]));
    assert!(required_tags(&loaded).is_empty());
}
