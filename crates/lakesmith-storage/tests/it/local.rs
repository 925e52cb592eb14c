//! What is particular about local files.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use lakesmith_core::ErrorKind;
use lakesmith_storage::conformance::conformance;
use lakesmith_storage::{Location, PutOutcome, Store, StoreOptions, SweepPlan, sweep};

fn open(folder: &Path) -> (Store, Location) {
    let root = Location::from_local_path(folder).unwrap();
    (Store::open(&root, &StoreOptions::default()).unwrap(), root)
}

#[tokio::test(flavor = "multi_thread")]
async fn local_files_conform() {
    let folder = tempfile::tempdir().unwrap();
    let (store, root) = open(&folder.path().join("a table%20 #1/ü"));
    conformance(&store, &root).await.unwrap();
}

#[tokio::test]
async fn a_stale_hadoop_checksum_goes_with_the_bytes_it_described() {
    let folder = tempfile::tempdir().unwrap();
    let (store, root) = open(folder.path());
    let (file, checksum) = (root.join("x.json"), folder.path().join(".x.json.crc"));

    fs::write(&checksum, b"stale").unwrap();
    assert_eq!(store.put_if_absent(&file, Bytes::from_static(b"1")).await.unwrap(), PutOutcome::Created);
    assert!(!checksum.exists(), "created over a stale checksum");

    fs::write(&checksum, b"of 1").unwrap();
    assert_eq!(store.put_if_absent(&file, Bytes::from_static(b"2")).await.unwrap(), PutOutcome::AlreadyExists);
    assert!(checksum.exists(), "another writer's file keeps its checksum");

    store.put(&file, Bytes::from_static(b"3")).await.unwrap();
    assert!(!checksum.exists(), "replaced");

    fs::write(&checksum, b"of 3").unwrap();
    sweep(&store, SweepPlan::abandoned(vec![file]).unwrap()).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "deleted");
}

#[tokio::test]
async fn a_dropped_upload_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (store, root) = open(folder.path());
    let mut upload = store.upload(&root.join("x")).await.unwrap();
    upload.write(Bytes::from(vec![7; 20 << 20])).await.unwrap();
    drop(upload);
    // Parts on their way still hold the hidden file for a moment.
    for _ in 0..200 {
        if fs::read_dir(folder.path()).unwrap().count() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("a hidden file is left");
}

#[tokio::test]
async fn links_to_folders_are_not_entered_and_links_to_files_are_files() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"12345").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).unwrap();
    let (store, root) = open(folder.path());
    let listed = store.list(&root).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].location.file_name(), listed[0].size), ("file", 5));
    // The root itself may be a link: the user named it.
    let (store, root) = open(&folder.path().join("folder"));
    assert_eq!(store.list(&root).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_where_a_folder_should_be_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    let (store, root) = open(folder.path());
    let error = store.put(&root.join("file/x"), Bytes::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.message(), "cannot write: a part of the path is a file, not a folder");
    let folder_read = store.get(&root).await.unwrap_err();
    assert_eq!(folder_read.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn another_storage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let elsewhere = Location::parse("s3://b/x").unwrap();
    assert_eq!(store.get(&elsewhere).await.unwrap_err().kind(), ErrorKind::Internal);
    assert!(!store.holds(&elsewhere));
}
