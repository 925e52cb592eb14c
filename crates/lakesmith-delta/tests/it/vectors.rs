//! Deletion vectors as files: Spark's are read, ours pass the same checks.

use lakesmith_core::table::DeletionVector;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_delta::{read_vector, write_vectors};

use crate::tables::TestTable;

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_vector_is_read() {
    for name in ["dv_file", "dv_inline", "dv_random_prefix"] {
        let table = TestTable::golden(name);
        let loaded = table.load().await;
        let mut read = 0;
        for file in loaded.state.files.iter() {
            if let Some(info) = file.deletes {
                let vector = read_vector(&table.store(), info).await.unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(vector.cardinality(), info.cardinality);
                assert!(vector.max() < file.rows, "{name}");
                read += 1;
            }
        }
        assert!(read > 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_vector_is_refused() {
    let table = TestTable::golden("dv_file");
    let loaded = table.load().await;
    let info = loaded.state.files.iter().find_map(|f| f.deletes).unwrap();
    let VectorLocation::File { location, offset } = &info.at else { panic!("the golden table has vectors in files") };
    let path = std::path::PathBuf::from(location.strip_prefix("file://").unwrap());
    let good = std::fs::read(&path).unwrap();
    let mut bytes = good.clone();
    bytes[*offset as usize + 6] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = read_vector(&table.store(), info).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH");
    std::fs::write(&path, &good[..*offset as usize + 5]).unwrap();
    assert_eq!(read_vector(&table.store(), info).await.unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
    std::fs::write(&path, &good).unwrap();
    let mut wrong = info.clone();
    wrong.cardinality += 1;
    let error = read_vector(&table.store(), &wrong).await.unwrap_err();
    assert_eq!(error.class_name(), "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH");
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_we_write_come_back_through_the_log() {
    let table = TestTable::golden("dv_file");
    let (store, root) = (table.store(), table.root());
    let vectors = [DeletionVector::from_rows([0, 3]), DeletionVector::from_rows(5..100)];
    let descriptors = write_vectors(&store, &root, &vectors).await.unwrap();
    let add = |path: &str, d: &lakesmith_delta::actions::DeletionVectorDescriptor| {
        serde_json::json!({"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1,
            "dataChange": true, "stats": "{\"numRecords\":500}", "deletionVector": d}})
        .to_string()
    };
    let commit = [add("x", &descriptors[0]), add("y", &descriptors[1])].join("\n");
    std::fs::write(table.commit_path(7), commit).unwrap();
    let loaded = table.load().await;
    for (path, expected) in [("x", &vectors[0]), ("y", &vectors[1])] {
        let file = loaded.state.files.iter().find(|f| f.path == path).unwrap();
        assert_eq!(&read_vector(&store, file.deletes.unwrap()).await.unwrap(), expected);
    }
    assert_eq!(write_vectors(&store, &root, &[]).await.unwrap(), vec![]);
}
