//! How names are spelled in logs, folder names, URLs and messages.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What may not stand as itself in the path of a URL; `%` belongs to it because the input is decoded.
const URL_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

pub(crate) fn encode_url_path(decoded: &str) -> String {
    utf8_percent_encode(decoded, URL_PATH).to_string()
}

pub(crate) fn encode_log_path(on_disk: &str) -> String {
    let mut out = String::with_capacity(on_disk.len() + 8);
    for c in on_disk.chars() {
        // Java keeps non-ASCII characters unless they are spaces or control characters.
        let kept = if c.is_ascii() {
            c.is_ascii_alphanumeric() || "_-!.~'()*:@&=+$,;/".contains(c)
        } else {
            !c.is_whitespace() && !c.is_control()
        };
        if kept {
            out.push(c);
        } else {
            push_percent(&mut out, c);
        }
    }
    out
}

pub(crate) fn hive_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c < '\u{20}' || c == '\u{7f}' || "\"#%'*/:=?\\{[]^".contains(c) {
            push_percent(&mut out, c);
        } else {
            out.push(c);
        }
    }
    out
}

fn push_percent(out: &mut String, c: char) {
    let mut buffer = [0; 4];
    for byte in c.encode_utf8(&mut buffer).bytes() {
        // Writing to a String cannot fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

const SECRET_KEYS: [&str; 10] = [
    "sig",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "signature",
    "awsaccesskeyid",
    "access_token",
    "token",
];

pub(crate) fn is_secret_query(query: &str) -> bool {
    query.split('&').any(|pair| is_secret_key(pair.split('=').next().unwrap_or_default()))
}

fn is_secret_key(key: &str) -> bool {
    SECRET_KEYS.iter().any(|secret| key.eq_ignore_ascii_case(secret))
}

/// Text for a message: passwords in URLs and values of signature parameters are replaced by `***`.
pub(crate) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, piece) in text.split_inclusive(['?', '&', ' ']).enumerate() {
        match piece.split_once('=') {
            Some((key, value)) if index > 0 && is_secret_key(key) => {
                let end = value.find(['&', ' ', ')', '"', '\'']).unwrap_or(value.len());
                let _ = write!(out, "{key}=***{}", &value[end..]);
            }
            _ => out.push_str(&redact_password(piece)),
        }
    }
    out
}

/// `scheme://user:password@host` becomes `scheme://***@host`.
fn redact_password(piece: &str) -> String {
    let Some(start) = piece.find("://").map(|i| i + 3) else { return piece.to_owned() };
    let end = piece[start..].find('/').map_or(piece.len(), |i| start + i);
    let authority = &piece[start..end];
    match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => format!("{}***@{host}{}", &piece[..start], &piece[end..]),
        _ => piece.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_paths_are_encoded_as_spark_does() {
        for (on_disk, log) in [
            ("s=a%2Fb/p.parquet", "s=a%252Fb/p.parquet"),
            ("s=100%25", "s=100%2525"),
            ("s=with space", "s=with%20space"),
            ("s=}", "s=%7D"),
            ("s=`", "s=%60"),
            ("s=|", "s=%7C"),
            ("s=~+&'ü😀", "s=~+&'ü😀"),
            ("s=\u{a0}", "s=%C2%A0"),
            ("a#b?c", "a%23b%3Fc"),
        ] {
            assert_eq!(encode_log_path(on_disk), log);
        }
    }

    #[test]
    fn folder_names_are_escaped_as_hive_does() {
        assert_eq!(hive_escape("a/b"), "a%2Fb");
        assert_eq!(hive_escape("=:%#?\"'[]{^\\\t*\u{7f}"), "%3D%3A%25%23%3F%22%27%5B%5D%7B%5E%5C%09%2A%7F");
        assert_eq!(hive_escape("with space}`|~+&ü"), "with space}`|~+&ü");
    }

    #[test]
    fn messages_hide_passwords_and_signatures() {
        assert_eq!(redact("s3://key:secret@bucket/x"), "s3://***@bucket/x");
        assert_eq!(
            redact("GET https://a.blob.core.windows.net/c/x?sv=1&sig=abc%3D&se=2 failed"),
            "GET https://a.blob.core.windows.net/c/x?sv=1&sig=***&se=2 failed"
        );
        assert_eq!(redact("abfss://c@a.dfs.core.windows.net/x"), "abfss://c@a.dfs.core.windows.net/x");
    }
}
