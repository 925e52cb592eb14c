//! Conformance of in-process and remote storages. The remote ones run when their endpoint is given.

use lakesmith_core::ErrorKind;
use lakesmith_storage::conformance::conformance;
use lakesmith_storage::{Location, Store, StoreOptions};

fn fresh(prefix: &str) -> Location {
    Location::parse(&format!("{prefix}/conformance {}", uuid::Uuid::new_v4())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_conforms() {
    let root = fresh("memory://conformance");
    let store = Store::open(&root, &StoreOptions::default()).unwrap();
    conformance(&store, &root).await.unwrap();
    let requests = store.requests();
    assert!(requests.put > 0 && requests.get > 0 && requests.list > 0 && requests.head > 0 && requests.delete > 0);
    assert!(requests.bytes_read > 0 && requests.bytes_written > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_conforms() {
    let Ok(endpoint) = std::env::var("LAKESMITH_TEST_S3") else { return };
    let options = StoreOptions::default()
        .with("AWS_ENDPOINT_URL", &endpoint)
        .with("AWS_ACCESS_KEY_ID", "lakeadmin")
        .with("AWS_SECRET_ACCESS_KEY", "lakesecret1")
        .with("AWS_REGION", "us-east-1");
    let root = fresh("s3a://lake");
    let store = Store::open(&root, &options).unwrap();
    conformance(&store, &root).await.unwrap();

    let wrong = options.with("spark.hadoop.fs.s3a.secret.key", "not-the-key");
    let error = Store::open(&root, &wrong).unwrap().get(&root.join("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(
        text.contains("AWS_SECRET_ACCESS_KEY") && text.contains("s3://lake/") && !text.contains("not-the-key"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn abfss_conforms() {
    let Ok(endpoint) = std::env::var("LAKESMITH_TEST_ABFSS") else { return };
    // Azurite serves every account below its name, and has one documented account.
    let options = StoreOptions::default().with("AZURE_STORAGE_ENDPOINT", &format!("{endpoint}/devstoreaccount1")).with(
        "AZURE_STORAGE_ACCOUNT_KEY",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    );
    let root = fresh("abfss://lake@devstoreaccount1.dfs.core.windows.net");
    let store = Store::open(&root, &options).unwrap();
    conformance(&store, &root).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let mut options = StoreOptions::default()
        .with("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .with("AWS_ACCESS_KEY_ID", "key")
        .with("AWS_SECRET_ACCESS_KEY", "topsecret");
    options.retries_max = 0;
    let root = Location::parse("s3://b/t").unwrap();
    let error = Store::open(&root, &options).unwrap().get(&root.join("x")).await.unwrap_err();
    assert_eq!((error.kind(), error.context_value("path")), (ErrorKind::Unavailable, Some("s3://b/t/x")));
    assert!(!format!("{error} {options:?}").contains("topsecret"));
}
