//! Canonical identity of a table or file, whatever spelling it was reached by.
//!
//! Three spellings meet here: what a user types (a local path taken literally, or a URL), what a log holds
//! (URI-encoded relative paths and absolute URIs of any client), and what the storage calls the object. A [`Location`]
//! holds the last one, decoded, so that two spellings of one object are equal.

use std::fmt;
use std::path::{Component, Path as LocalPath, PathBuf};

use lakesmith_core::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;

use crate::encoding;

/// One object or folder: scheme, authority and decoded key.
///
/// `Display` is the canonical text (`s3://bucket/a b/c`, decoded, no trailing slash, never a credential);
/// [`Location::from_canonical`] reads it back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    scheme: Scheme,
    authority: String,
    key: String,
}

/// The kinds of storage that are known, by canonical scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scheme {
    File,
    Memory,
    S3,
    Gcs,
    /// `abfss://container@account.dfs.core.windows.net/…`
    Abfss,
    /// `az://container/…`, the account coming from the settings.
    Azure,
}

/// What `%20` in a URI means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// A space.
    Decoded,
    /// Itself.
    Literal,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::Memory => "memory",
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Abfss => "abfss",
            Scheme::Azure => "az",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "file" => Scheme::File,
            "memory" => Scheme::Memory,
            "s3" | "s3a" | "s3n" => Scheme::S3,
            "gs" | "gcs" => Scheme::Gcs,
            "abfss" | "abfs" | "wasbs" | "wasb" => Scheme::Abfss,
            "az" | "azure" => Scheme::Azure,
            _ => return None,
        })
    }
}

impl Location {
    /// Reads what a user typed: a local path (relative or absolute, taken literally) or a URL (percent-decoded once).
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an empty text, an unknown scheme or a URL without a bucket.
    pub fn parse(user_text: &str) -> Result<Location> {
        if user_text.is_empty() {
            return Err(Error::usage("the location is empty; give a path or a URL"));
        }
        match Self::split_scheme(user_text) {
            Some((scheme, rest)) if rest.starts_with("//") || scheme.eq_ignore_ascii_case("file") => {
                Self::from_uri(scheme, rest, ErrorKind::Usage, Escapes::Decoded)
            }
            _ => Self::from_local_path(LocalPath::new(user_text)),
        }
    }

    /// The location of a local path; a relative one is taken from the current folder.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if the path is not UTF-8 or the current folder is gone.
    pub fn from_local_path(path: &LocalPath) -> Result<Location> {
        let absolute = std::path::absolute(path)
            .map_err(|e| Error::usage("cannot make the path absolute").with("path", path.display()).caused_by(e))?;
        let mut segments: Vec<&str> = Vec::new();
        for component in absolute.components() {
            match component {
                Component::Normal(name) => segments.push(name.to_str().ok_or_else(|| {
                    Error::usage("the path is not valid UTF-8; rename it").with("path", path.display())
                })?),
                Component::ParentDir => {
                    segments.pop();
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(Location { scheme: Scheme::File, authority: String::new(), key: segments.join("/") })
    }

    /// The object that a path names which is never percent-encoded: a URI (`file:/x`, `file:///x`, `s3a://bucket/x`) or
    /// a path from the root of the local storage. Spellings of one object are equal.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for text that names no object, [`ErrorKind::Unsupported`] for an unknown scheme.
    /// # Source
    /// Hadoop's `Path` and Iceberg's `S3URI` take the text of Iceberg's metadata as it is.
    pub fn from_unencoded(path: &str) -> Result<Location> {
        match Self::split_scheme(path) {
            Some((scheme, rest)) => Self::from_uri(scheme, rest, ErrorKind::Corrupt, Escapes::Literal),
            None if path.starts_with('/') => Self::from_uri("file", path, ErrorKind::Corrupt, Escapes::Literal),
            None => Err(Error::corrupt("a path of the table's metadata is not absolute").with("path", path)),
        }
    }

    /// Reads the text that `Display` wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if the text is not in canonical form.
    pub fn from_canonical(text: &str) -> Result<Location> {
        let wrong = || Error::usage("not a canonical location").with("location", encoding::redact(text));
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let scheme = Scheme::parse(scheme).filter(|s| s.as_str() == scheme).ok_or_else(wrong)?;
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        if scheme == Scheme::File && !authority.is_empty() {
            return Err(wrong());
        }
        Ok(Location { scheme, authority: authority.to_owned(), key: normalize(key).ok_or_else(wrong)? })
    }

    /// The object at a path below this one; `on_disk_relative` is the name on the storage, not encoded.
    pub fn join(&self, on_disk_relative: &str) -> Location {
        let relative = on_disk_relative.trim_matches('/');
        let key = match (self.key.is_empty(), relative.is_empty()) {
            (_, true) => self.key.clone(),
            (true, false) => relative.to_owned(),
            (false, false) => format!("{}/{relative}", self.key),
        };
        Location { scheme: self.scheme, authority: self.authority.clone(), key }
    }

    /// The object that a path in the log of the table at `self` names: a URI-encoded relative path, or an absolute
    /// URI (`file:/x`, `file:///x`, `s3a://…`).
    ///
    /// A path that climbs out of the table with `..` is resolved; [`Location::relative_to`] then tells that it left.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for text that decodes to no name, [`ErrorKind::Unsupported`] for an unknown scheme.
    /// # Source
    /// Delta protocol, "Add File and Remove File": `path` is a URI as specified by RFC 2396.
    pub fn resolve(&self, log_path: &str) -> Result<Location> {
        if let Some((scheme, rest)) = Self::split_scheme(log_path) {
            return Self::from_uri(scheme, rest, ErrorKind::Corrupt, Escapes::Decoded);
        }
        let decoded = decode(log_path, ErrorKind::Corrupt)?;
        if decoded.trim_matches('/').is_empty() {
            return Err(Error::corrupt("a path in the log is empty").with("table", self));
        }
        // A path from the root of the storage stays on the table's own storage.
        let joined = if decoded.starts_with('/') { decoded } else { format!("{}/{decoded}", self.key) };
        let key = normalize(&joined).ok_or_else(|| {
            Error::corrupt("a path in the log climbs above the root of its storage").with("path", log_path)
        })?;
        Ok(Location { scheme: self.scheme, authority: self.authority.clone(), key })
    }

    /// Splits `scheme:rest` as RFC 2396 does: a letter, then letters, digits, `+`, `.` or `-`; `None` without a scheme.
    pub fn split_scheme(text: &str) -> Option<(&str, &str)> {
        let (scheme, rest) = text.split_once(':')?;
        let mut bytes = scheme.bytes();
        let first = bytes.next()?;
        (first.is_ascii_alphabetic() && bytes.all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b)))
            .then_some((scheme, rest))
    }

    /// True if a path in a log names its storage or starts at the root of it.
    pub fn is_absolute(log_path: &str) -> bool {
        log_path.starts_with('/') || Self::split_scheme(log_path).is_some()
    }

    /// The on-disk path of `self` below `root`; empty for the root itself, `None` when it lies elsewhere.
    pub fn relative_to(&self, root: &Location) -> Option<&str> {
        if self.scheme != root.scheme || self.authority != root.authority {
            return None;
        }
        if root.key.is_empty() {
            return Some(&self.key);
        }
        let rest = self.key.strip_prefix(&root.key)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    /// The text that a log holds for an on-disk relative path, encoded as Java's `URI` encodes it.
    ///
    /// # Source
    /// `java.net.URI.quote` as used by Hadoop's `Path.toUri`.
    pub fn encode_log_path(on_disk_relative: &str) -> String {
        encoding::encode_log_path(on_disk_relative)
    }

    /// A partition column's name or value as it stands in a folder name.
    ///
    /// # Source
    /// Spark `ExternalCatalogUtils.escapePathName`.
    pub fn hive_escape(text: &str) -> String {
        encoding::hive_escape(text)
    }

    /// The percent-encoded URL, as other libraries expect it. Decoding its path once gives [`Location::key`].
    pub fn to_url(&self) -> url::Url {
        let path = encoding::encode_url_path(&self.key);
        let text = format!("{}://{}/{path}", self.scheme.as_str(), self.authority);
        // Every authority was parsed as a URL when the location was made, and the path is encoded.
        url::Url::parse(&text).unwrap_or_else(|e| unreachable!("a location is always a valid URL, but {text:?}: {e}"))
    }

    /// Canonical scheme: `file`, `memory`, `s3`, `gs`, `abfss` or `az`.
    pub fn scheme(&self) -> &str {
        self.scheme.as_str()
    }

    pub(crate) fn kind(&self) -> Scheme {
        self.scheme
    }

    /// Bucket, container or `container@account.host`; empty for local files.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Name of the object inside its storage: decoded, `/`-separated, without slashes at its ends.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The last segment of the key.
    pub fn file_name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that holds this object; `None` at the root of the storage.
    pub fn parent(&self) -> Option<Location> {
        if self.key.is_empty() {
            return None;
        }
        let key = self.key.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Location { scheme: self.scheme, authority: self.authority.clone(), key: key.to_owned() })
    }

    /// The path in the local file system, for local files only.
    pub fn local_path(&self) -> Option<PathBuf> {
        (self.scheme == Scheme::File).then(|| PathBuf::from(format!("/{}", self.key)))
    }

    /// Another object of the same storage.
    pub(crate) fn with_key(&self, key: &str) -> Location {
        Location { scheme: self.scheme, authority: self.authority.clone(), key: key.to_owned() }
    }

    /// `rest` is everything after `scheme:`.
    fn from_uri(scheme: &str, rest: &str, kind: ErrorKind, escapes: Escapes) -> Result<Location> {
        let shown = || encoding::redact(&format!("{scheme}:{rest}"));
        let Some(canonical) = Scheme::parse(scheme) else {
            let kind = if kind == ErrorKind::Corrupt { ErrorKind::Unsupported } else { kind };
            return Err(Error::new(
                kind,
                format!("the storage scheme {scheme:?} is not known; use a local path, file, s3, gs, abfss or az"),
            )
            .with("location", shown()));
        };
        let wrong = |why: &str| Error::new(kind, why.to_owned()).with("location", shown());
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let literal = escapes == Escapes::Literal;
        let path = if canonical == Scheme::File || literal { path } else { without_secrets(path) };
        let authority = match canonical {
            Scheme::File if authority.is_empty() || authority.eq_ignore_ascii_case("localhost") => String::new(),
            Scheme::File => return Err(wrong("a file URL names another host; use file:///path")),
            Scheme::Abfss => abfss_authority(authority)
                .ok_or_else(|| wrong("the Azure URL must be abfss://container@account.dfs.core.windows.net/path"))?,
            Scheme::Memory => authority.to_owned(),
            Scheme::S3 | Scheme::Gcs | Scheme::Azure => {
                let bucket = authority.rsplit('@').next().unwrap_or_default();
                if bucket.is_empty() {
                    return Err(wrong("the URL names no bucket or container"));
                }
                bucket.to_owned()
            }
        };
        if canonical == Scheme::File && !path.starts_with('/') {
            return Err(wrong("a file URL must hold an absolute path"));
        }
        if !authority.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._@:".contains(&b)) {
            return Err(wrong("the bucket or host holds a character that is not allowed there"));
        }
        let decoded = if literal { path.to_owned() } else { decode(path, kind)? };
        let key = normalize(&decoded).ok_or_else(|| wrong("the path climbs above its root"))?;
        let location = Location { scheme: canonical, authority, key };
        url::Url::parse(&format!("{}://{}/", canonical.as_str(), location.authority))
            .map_err(|e| wrong("the bucket or host is not valid").caused_by(e))?;
        Ok(location)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/{}", self.scheme.as_str(), self.authority, self.key)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `container@account.host`, one spelling for `abfs`, `wasb` and their secure forms, without a password.
fn abfss_authority(authority: &str) -> Option<String> {
    let (user, host) = authority.rsplit_once('@')?;
    let container = user.split(':').next()?;
    if container.is_empty() || host.is_empty() {
        return None;
    }
    Some(format!("{container}@{}", host.to_ascii_lowercase().replace(".blob.core.", ".dfs.core.")))
}

/// Drops a signature query (`?sig=…`, `?X-Amz-Signature=…`) that was pasted with the URL.
fn without_secrets(path: &str) -> &str {
    match path.split_once('?') {
        Some((before, query)) if encoding::is_secret_query(query) => before,
        _ => path,
    }
}

fn decode(text: &str, kind: ErrorKind) -> Result<String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Error::new(kind, "the path does not decode to UTF-8").with("path", encoding::redact(text)))
}

/// Removes empty and `.` segments and resolves `..`; `None` if it climbs above the root.
fn normalize(path: &str) -> Option<String> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            name => segments.push(name),
        }
    }
    Some(segments.join("/"))
}

#[cfg(test)]
#[path = "location_tests.rs"]
mod tests;
