//! A storage that speaks S3 and refuses bulk deletion.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use lakesmith_storage::{Location, Store, StoreOptions, SweepPlan, sweep};

/// Answers every POST with 400 and every DELETE with 204, but for names with `locked`; tells what was asked.
fn serve() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = Arc::clone(&told);
            std::thread::spawn(move || answer(stream.unwrap(), &told));
        }
    });
    (endpoint, asked)
}

fn answer(mut stream: TcpStream, told: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if header.trim().is_empty() {
                break;
            }
        }
        std::io::copy(&mut std::io::Read::take(&mut reader, length), &mut std::io::sink()).unwrap();
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default();
        told.lock().unwrap().push(format!("{method} {path}"));
        let signed = target.contains("X-Amz-Signature=");
        let status = match method {
            "DELETE" if path.contains("locked") => "403 Forbidden",
            "DELETE" if signed => "204 No Content",
            _ => "400 Bad Request",
        };
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_go_one_by_one_where_bulk_requests_are_not_understood() {
    let (endpoint, asked) = serve();
    let root = Location::parse("s3://bucket/t").unwrap();
    let options = StoreOptions::default()
        .with("aws_endpoint_url", &endpoint)
        .with("aws_access_key_id", "key")
        .with("aws_secret_access_key", "secret")
        .with("aws_region", "us-east-1");
    let store = Store::open(&root, &options).unwrap();
    let objects = ["a b/x", "locked", "y%25"].map(|name| root.join(name));
    let report = sweep(&store, SweepPlan::abandoned(objects.to_vec()).unwrap()).await.unwrap();
    assert_eq!(report.deleted, [objects[0].clone(), objects[2].clone()]);
    assert_eq!((report.failed.len(), &report.failed[0].0), (1, &objects[1]));
    assert!(report.failed[0].1.contains("403") && !report.failed[0].1.contains("Signature"), "{:?}", report.failed);
    // Once that is known nothing is asked for in bulk any more.
    sweep(&store, SweepPlan::abandoned(vec![root.join("z")]).unwrap()).await.unwrap();
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|request| request.starts_with("POST")).count(), 1, "{asked:?}");
    for path in ["/bucket/t/a%20b/x", "/bucket/t/y%2525", "/bucket/t/z"] {
        assert!(asked.contains(&format!("DELETE {path}")), "{asked:?}");
    }
}
