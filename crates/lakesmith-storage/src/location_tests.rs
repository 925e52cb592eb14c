use proptest::prelude::*;

use super::*;

fn location(text: &str) -> Location {
    Location::parse(text).unwrap()
}

#[test]
fn every_spelling_of_one_place_is_one_location() {
    for (typed, canonical) in [
        ("/data/t/", "file:///data/t"),
        ("/data//./x/../t", "file:///data/t"),
        ("/a b/100%/%41/ü#1", "file:///a b/100%/%41/ü#1"),
        ("file:/data/t", "file:///data/t"),
        ("file:///data/t/", "file:///data/t"),
        ("file://localhost/data/t", "file:///data/t"),
        ("FILE:///a%20b", "file:///a b"),
        ("/", "file:///"),
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("s3n://bucket", "s3://bucket/"),
        ("s3://key:secret@bucket/t", "s3://bucket/t"),
        ("s3://bucket/t?X-Amz-Signature=abc", "s3://bucket/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("abfs://c@acc.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("wasbs://c@acc.blob.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("abfss://c:pw@acc.dfs.core.windows.net/t?sv=1&sig=x", "abfss://c@acc.dfs.core.windows.net/t"),
        ("az://c/t", "az://c/t"),
        ("memory:///t", "memory:///t"),
        ("memory://m/t", "memory://m/t"),
    ] {
        let parsed = location(typed);
        assert_eq!(parsed.to_string(), canonical, "{typed}");
        assert_eq!(Location::from_canonical(canonical).unwrap(), parsed, "{canonical}");
        let url = parsed.to_url();
        let decoded = percent_decode_str(url.path()).decode_utf8().unwrap().into_owned();
        assert_eq!(decoded.trim_start_matches('/'), parsed.key(), "{url}");
    }
}

#[test]
fn a_relative_path_starts_in_the_current_folder() {
    let here = std::env::current_dir().unwrap();
    assert_eq!(location("x y").local_path().unwrap(), here.join("x y"));
    assert_eq!(location("a:b").local_path().unwrap(), here.join("a:b"));
}

#[test]
fn wrong_texts_are_refused_without_showing_secrets() {
    for wrong in ["", "hdfs://h/x", "s3:///x", "file://host/x", "abfss://c/x", "s3://b/../..", "s3://b ucket/x"] {
        assert_eq!(Location::parse(wrong).unwrap_err().kind(), ErrorKind::Usage, "{wrong}");
    }
    let error = Location::parse("ftp://user:topsecret@h/x").unwrap_err().to_string();
    assert!(!error.contains("topsecret"), "{error}");
    for wrong in ["/a", "s3a://b/x", "nope://b/x", "file://h/x"] {
        assert!(Location::from_canonical(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn log_paths_resolve_to_what_is_on_the_storage() {
    let root = location("/data/my table");
    for (log, on_disk) in [
        ("p.parquet", "p.parquet"),
        ("./p.parquet", "p.parquet"),
        ("s=a%252Fb/p.parquet", "s=a%2Fb/p.parquet"),
        ("s=with%20space/p.parquet", "s=with space/p.parquet"),
        ("s=ü/p.parquet", "s=ü/p.parquet"),
        ("s=%C3%BC/p.parquet", "s=ü/p.parquet"),
        ("s=a+b&c/p.parquet", "s=a+b&c/p.parquet"),
        ("ts=1:2/p.parquet", "ts=1:2/p.parquet"),
        ("file:/data/my%20table/p.parquet", "p.parquet"),
        ("file:///data/my%20table/p%2525.parquet", "p%25.parquet"),
        ("/data/my%20table/p.parquet", "p.parquet"),
    ] {
        let resolved = root.resolve(log).unwrap();
        assert_eq!(resolved.relative_to(&root), Some(on_disk), "{log}");
        assert_eq!(resolved, root.join(on_disk), "{log}");
    }
    let bucket = location("s3://b/t");
    assert_eq!(bucket.resolve("s3a://b/t/x%20y").unwrap(), bucket.join("x y"));
    assert_eq!(bucket.resolve("s3a://other/t/x").unwrap().relative_to(&bucket), None);
}

#[test]
fn paths_that_are_never_encoded_are_taken_as_they_are() {
    let cases = [
        ("file:/t/a=b%2Fc/x y", "file:///t/a=b%2Fc/x y"),
        ("file:///t/a%20b", "file:///t/a%20b"),
        ("/t//a?versionId=1", "file:///t/a?versionId=1"),
        ("s3a://bucket/t/%25", "s3://bucket/t/%25"),
        ("s3n://bucket/t/x?X-Amz-Signature=1", "s3://bucket/t/x?X-Amz-Signature=1"),
    ];
    for (path, expected) in cases {
        assert_eq!(Location::from_unencoded(path).unwrap(), Location::from_canonical(expected).unwrap(), "{path}");
    }
    let refused = [("t/a", ErrorKind::Corrupt), ("", ErrorKind::Corrupt), ("hdfs://n/t", ErrorKind::Unsupported)];
    for (path, kind) in refused {
        assert_eq!(Location::from_unencoded(path).unwrap_err().kind(), kind, "{path}");
    }
}

#[test]
fn a_log_path_that_leaves_the_table_is_not_below_it() {
    let root = location("/data/t");
    assert_eq!(root.resolve("../t_2/x").unwrap().relative_to(&root), None);
    assert_eq!(location("/data/t_2/x").relative_to(&root), None);
    assert_eq!(root.relative_to(&root), Some(""));
    assert_eq!(root.resolve("../../../x").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(root.resolve("%FF").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(root.resolve("").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(root.resolve("hdfs://n/x").unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn what_is_encoded_for_the_log_resolves_back() {
    let root = location("memory://m/t");
    for value in ["a/b", "100%", "with space", "}`|^", "~+&'", "ü😀", "\u{a0}", "x#1", "?\"[]{}\\", "%2F", "a:b"] {
        let on_disk = format!("s={}/part 1.parquet", Location::hive_escape(value));
        let resolved = root.resolve(&Location::encode_log_path(&on_disk)).unwrap();
        assert_eq!(resolved.relative_to(&root), Some(on_disk.as_str()));
    }
}

#[test]
fn parents_and_names() {
    let file = location("s3://b/t/x.parquet");
    assert_eq!(file.file_name(), "x.parquet");
    assert_eq!(file.parent().unwrap(), location("s3://b/t"));
    assert_eq!(location("s3://b").parent(), None);
    assert_eq!(location("s3://b").join("/x/"), location("s3://b/x"));
}

proptest! {
    #[test]
    fn any_text_is_a_location_or_a_clear_error(
        text in "(s3|s3a|gs|abfss|file|memory|hdfs|)(:|)(/|//|///|)[a-z@.:/%~# é\\PC]{0,24}|\\PC{0,30}",
        below in "\\PC{0,20}",
    ) {
        match Location::parse(&text) {
            Ok(parsed) => {
                prop_assert_eq!(&Location::from_canonical(&parsed.to_string()).unwrap(), &parsed);
                let inside = parsed.join(&below);
                prop_assert!(inside.relative_to(&parsed).is_some(), "{} below {}", inside, parsed);
            }
            Err(error) => prop_assert!(error.kind() != ErrorKind::Internal, "{}", error),
        }
    }

    #[test]
    fn any_path_of_the_log_is_resolved_or_refused(path in "(\\.\\./|/|//|file:|%2e|%2F|%)*\\PC{0,30}") {
        let root = location("/data/t");
        match root.resolve(&path) {
            Ok(resolved) => prop_assert!(!resolved.to_string().contains("/../"), "{}", resolved),
            Err(error) => prop_assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{}", error),
        }
    }

    #[test]
    fn any_partition_value_comes_back_from_the_log(value in "[^\0]{1,20}") {
        let root = location("s3://b/my table");
        let on_disk = format!("s={}/part 1.parquet", Location::hive_escape(&value));
        let resolved = root.resolve(&Location::encode_log_path(&on_disk)).unwrap();
        prop_assert_eq!(resolved.relative_to(&root), Some(on_disk.as_str()));
    }
}
