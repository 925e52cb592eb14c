use arrow::array::{ArrayRef, AsArray, StringArray};
use lakesmith_storage::{Location, Store, StoreOptions};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::ParquetMetaDataBuilder;

use super::*;

/// As other writers leave it: no sizes of decoded values.
fn without_sizes(metadata: &ParquetMetaData) -> ParquetMetaData {
    let groups = metadata
        .row_groups()
        .iter()
        .map(|group| {
            let columns = group
                .columns()
                .iter()
                .map(|c| c.clone().into_builder().set_unencoded_byte_array_data_bytes(None).build().unwrap())
                .collect();
            group.clone().into_builder().set_column_metadata(columns).build().unwrap()
        })
        .collect();
    ParquetMetaDataBuilder::new(metadata.file_metadata().clone()).set_row_groups(groups).build()
}

#[test]
fn batches_shrink_where_a_dictionary_hides_wide_rows() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(100_000);
    let narrow = StringArray::from(vec!["short"; 30_000]);
    let wide = StringArray::from(vec![long.as_str(); 500]);
    let mut bytes = Vec::new();
    let batch = |texts: StringArray| RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch(narrow.clone()).schema(), None).unwrap();
    for _ in 0..4 {
        writer.write(&batch(wide.clone())).unwrap();
    }
    writer.write(&batch(narrow)).unwrap();
    writer.close().unwrap();
    std::fs::write(folder.path().join("in.parquet"), &bytes).unwrap();
    let root = Location::from_local_path(folder.path()).unwrap();
    let handle = Arc::new(FileHandle {
        store: Store::open(&root, &StoreOptions::default()).unwrap(),
        location: root.join("in.parquet"),
        size: bytes.len() as u64,
        runtime: runtime.handle().clone(),
    });
    let read = crate::footer::read(&handle.store, &handle.location, handle.size, 1 << 16);
    let mut footer = runtime.block_on(read).unwrap();
    footer.metadata = Arc::new(without_sizes(&footer.metadata));
    let file = OpenFile::new(handle, footer, Strings::Text).unwrap();
    let mut reader = FileReader::new(&file, vec![0], 8 << 20, 4 << 20);
    let mut sizes = Vec::new();
    let mut wide_rows = 0;
    while let Some(group) = reader.next_group().unwrap() {
        let mut batches = reader.decode(&group, vec![0]).unwrap();
        while let Some(batch) = batches.next_batch().unwrap() {
            wide_rows += batch.column(0).as_string::<i32>().iter().flatten().filter(|t| *t == long).count();
            sizes.push(batch.num_rows());
        }
    }
    assert_eq!((sizes.iter().sum::<usize>(), wide_rows), (32_000, 2_000));
    // 40 rows of 100 kB are a batch of 4 MB; once they are over, batches grow.
    assert!(sizes[..40].iter().all(|s| *s <= 42) && sizes.iter().max() > Some(&1_000), "{sizes:?}");
}
