//! A server that answers what it is told, and writes down what it is asked.

use std::sync::{Arc, Mutex};

use lakesmith_core::ErrorKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// What was asked, a line each: method, path, token.
type Asked = Arc<Mutex<Vec<String>>>;

/// Answers by the first path that a request begins with: status and body.
async fn serve(answers: Vec<(&'static str, u16, &'static str)>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let notes = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0u8; 4096];
            let length = |text: &str| {
                let header = text
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(str::to_owned));
                header.and_then(|value| value.trim().parse::<usize>().ok()).unwrap_or(0)
            };
            loop {
                let read = stream.read(&mut buffer).await.unwrap();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let whole = text.find("\r\n\r\n").is_some_and(|end| text.len() >= end + 4 + length(&text));
                if whole || read == 0 {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let first = text.lines().next().unwrap_or_default();
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let token =
                text.lines().find_map(|line| line.to_lowercase().strip_prefix("authorization: ").map(str::to_owned));
            let body = text.split("\r\n\r\n").nth(1).unwrap_or_default();
            notes.lock().unwrap().push(format!("{path} {} {body}", token.unwrap_or_default()).trim_end().to_owned());
            let found = answers.iter().find(|(start, ..)| path.starts_with(start));
            let (status, body) = found.map_or((404, "{}"), |(_, status, body)| (*status, *body));
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (uri, asked)
}

fn catalog(uri: &str, properties: &[(&str, &str)]) -> RestCatalog {
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    RestCatalog::new(RestOptions { uri: uri.to_owned(), warehouse: Some("my lake".into()), properties }).unwrap()
}

#[tokio::test]
async fn a_credential_becomes_a_token_and_the_server_s_prefix_leads_on() {
    let (uri, asked) = serve(vec![
        ("/v1/oauth/tokens", 200, r#"{"access_token": "t0"}"#),
        ("/v1/config?warehouse=my%20lake", 200, r#"{"defaults": {"prefix": "no"}, "overrides": {"prefix": "a/b"}}"#),
        ("/v1/a/b/namespaces?pageToken=p%2F2", 200, r#"{"namespaces": [["z", "deep"]], "next-page-token": null}"#),
        ("/v1/a/b/namespaces", 200, r#"{"namespaces": [["x"], ["y"]], "next-page-token": "p/2"}"#),
    ])
    .await;
    let catalog = catalog(&uri, &[("credential", "me:s&cret")]);
    assert_eq!(catalog.namespaces(None).await.unwrap(), ["x", "y", "z.deep"]);
    let asked = asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [
            "/v1/oauth/tokens  grant_type=client%5Fcredentials&client_id=me&client_secret=s%26cret&scope=catalog"
                .replace("%5F", "_"),
            "/v1/config?warehouse=my%20lake bearer t0".into(),
            "/v1/a/b/namespaces bearer t0".into(),
            "/v1/a/b/namespaces?pageToken=p%2F2 bearer t0".into(),
        ]
    );
}

#[tokio::test]
async fn a_table_comes_with_the_most_particular_credentials() {
    let (uri, _) = serve(vec![
        ("/v1/config", 200, "{}"),
        (
            "/v1/namespaces/a%1Fb/tables/t%20%C3%BC",
            200,
            r#"{"metadata-location": "s3://b/t/metadata/3.metadata.json", "metadata": {"location": "s3://b/t"},
                "config": {"s3.access-key-id": "wide", "client.region": "eu"},
                "storage-credentials": [
                    {"prefix": "s3://b/t", "config": {"s3.access-key-id": "narrow"}},
                    {"prefix": "s3://b", "config": {"s3.access-key-id": "bucket"}},
                    {"prefix": "s3://other", "config": {"s3.access-key-id": "other"}}]}"#,
        ),
    ])
    .await;
    let catalog = catalog(&uri, &[]);
    let table = catalog.table("a.b", "t ü").await.unwrap().unwrap();
    assert_eq!(table.metadata_location, "s3://b/t/metadata/3.metadata.json");
    assert_eq!(table.location.as_deref(), Some("s3://b/t"));
    assert_eq!((table.config["s3.access-key-id"].as_str(), table.config["client.region"].as_str()), ("narrow", "eu"));
    assert_eq!(catalog.table("a.b", "nobody").await.unwrap(), None);
    assert!(!catalog.has_namespace("nowhere").await.unwrap());
    assert_eq!(catalog.tables("nowhere").await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_the_server_refuses_is_said_in_its_words_and_without_secrets() {
    let (uri, _) =
        serve(vec![("/v1/config", 403, r#"{"error": {"message": "not you", "type": "x", "code": 403}}"#)]).await;
    let error = catalog(&uri, &[("token", "sesame")]).namespaces(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("not you") && !format!("{error:?}").contains("sesame"), "{error:?}");
    let (uri, _) = serve(vec![("/v1/oauth/tokens", 401, r#"{"error": "invalid_client"}"#)]).await;
    let error = catalog(&uri, &[("credential", "me:sesame")]).namespaces(None).await.unwrap_err();
    assert!(error.message().contains("invalid_client") && !format!("{error:?}").contains("sesame"), "{error:?}");
    let (uri, _) = serve(Vec::new()).await;
    let error = catalog(&uri, &[]).namespaces(None).await.unwrap_err();
    assert!(error.message().contains("no REST catalog"), "{error}");
    let (uri, _) = serve(vec![("/v1/config", 200, "<html>")]).await;
    assert_eq!(catalog(&uri, &[]).namespaces(None).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let error = catalog("http://127.0.0.1:1", &[]).namespaces(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let signed = catalog(&uri, &[("rest.sigv4-enabled", "true")]).namespaces(None).await.unwrap_err();
    assert_eq!(signed.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_list_that_is_none_is_no_empty_list() {
    let (uri, _) = serve(vec![("/v1/config", 200, "{}"), ("/v1/namespaces", 200, r#"{"spaces": []}"#)]).await;
    assert_eq!(catalog(&uri, &[]).namespaces(None).await.unwrap_err().kind(), ErrorKind::Unavailable);
}
