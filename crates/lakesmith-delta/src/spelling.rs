//! Spellings of one file's path in the log.
//!
//! Readers decide by text whether a `remove` means an `add`: Spark after tidying both (`./`, `..`, doubled slashes), others
//! by the text as it stands. Where a log spells each file in one way only, all of them agree.
//!
//! # Source
//! Delta Spark `actions.FileAction.pathAsUri`, `Snapshot.canonicalizePath`; Hadoop `Path(URI)`; `java.net.URI.normalize`.

use std::borrow::Cow;

use lakesmith_storage::Location;
use percent_encoding::percent_decode_str;

/// True for the spelling that Spark gives to a file: two different plain texts never name one object.
pub(crate) fn is_plain(path: &str, root: &Location) -> bool {
    if Location::split_scheme(path).is_some() {
        // A clone names the files of its source this way; its own files have a second, relative spelling.
        return root.resolve(path).is_ok_and(|at| at.relative_to(root).is_none() && hadoop_uri(&at) == path);
    }
    let tidy = path.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    tidy && (path.bytes().all(stands_as_itself) || is_encoded_as_usual(path))
}

fn stands_as_itself(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-!.~'()*:@&=+$,;/".contains(&byte)
}

fn is_encoded_as_usual(path: &str) -> bool {
    percent_decode_str(path).decode_utf8().is_ok_and(|decoded| Location::encode_log_path(&decoded) == path)
}

/// The object that a path names, whatever its spelling.
pub(crate) fn identity(path: &str, root: &Location) -> String {
    root.resolve(path).map_or_else(|_| settled(path, root), |at| at.to_string())
}

/// The path as Spark compares it.
pub(crate) fn settled(path: &str, root: &Location) -> String {
    let (prefix, rest) = match Location::split_scheme(path) {
        Some((scheme, rest)) => match rest.strip_prefix("//") {
            Some(after) => {
                let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
                let slashes = if authority.is_empty() { "" } else { "//" };
                (Cow::from(format!("{scheme}:{slashes}{authority}")), path)
            }
            None => (Cow::from(format!("{scheme}:")), rest),
        },
        None if path.starts_with('/') => {
            let own = hadoop_uri(root);
            let end = own.find("://").map_or(own.find(':').map_or(0, |i| i + 1), |i| {
                own[i + 3..].find('/').map_or(own.len(), |slash| i + 3 + slash)
            });
            (Cow::from(own[..end].to_owned()), path)
        }
        None => (Cow::from(""), path),
    };
    let absolute = rest.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    let slash = if absolute { "/" } else { "" };
    format!("{prefix}{slash}{}", with_capital_escapes(&segments.join("/")))
}

/// Java compares the digits of escapes without regard to case.
fn with_capital_escapes(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut digits = 0;
    let capital = |c: char| {
        digits = if c == '%' { 3 } else { digits - i32::from(digits > 0) };
        if digits > 0 { c.to_ascii_uppercase() } else { c }
    };
    Cow::Owned(path.chars().map(capital).collect())
}

/// A location as Hadoop spells it.
fn hadoop_uri(location: &Location) -> String {
    let key = Location::encode_log_path(location.key());
    match location.scheme() {
        "file" => format!("file:/{key}"),
        "s3" => format!("s3a://{}/{key}", location.authority()),
        scheme => format!("{scheme}://{}/{key}", location.authority()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Location {
        Location::parse("/data/t").unwrap()
    }

    #[test]
    fn what_writers_write_is_plain() {
        for path in [
            "part-00000-1.c000.snappy.parquet",
            "d=2026-01-01/part-0.parquet",
            "s=a%252Fb/part%20x.parquet",
            "ü=é/x.parquet",
            "a=%7B%7D/x",
            "file:/elsewhere/t/x.parquet",
            "s3a://bucket/t/x%20y.parquet",
        ] {
            assert!(is_plain(path, &root()), "{path}");
        }
    }

    #[test]
    fn second_spellings_are_not_plain_and_mean_the_same_object() {
        for path in [
            "./x",
            "a/../x",
            ".//x",
            "a//../x",
            "%78",
            "/data/t/x",
            "file:/data/t/x",
            "file:///data/t/x",
            "file:/data/t/./x",
            "../t/x",
        ] {
            assert!(!is_plain(path, &root()), "{path}");
            assert_eq!(identity(path, &root()), identity("x", &root()), "{path}");
        }
        for path in ["a%2fb", "a b", "a%2Bb", "x/", "file:///elsewhere/x", "s3://bucket/x", ""] {
            assert!(!is_plain(path, &root()), "{path}");
        }
    }

    #[test]
    fn paths_are_settled_as_in_spark() {
        for (path, expected) in [
            ("./x", "x"),
            ("a/../x", "x"),
            ("a//b", "a/b"),
            ("../x", "../x"),
            ("a/../../x", "../x"),
            ("a%2fb", "a%2Fb"),
            ("%e4b%", "%E4b%"),
            ("a%62", "a%62"),
            ("/y//x", "file:/y/x"),
            ("file:///y/./x", "file:/y/x"),
            ("s3a://bucket//y/x", "s3a://bucket/y/x"),
        ] {
            assert_eq!(settled(path, &root()), expected, "{path}");
        }
        let bucket = Location::parse("s3://bucket/t").unwrap();
        assert_eq!(settled("/y/x", &bucket), "s3a://bucket/y/x");
    }
}
