//! Finds and reads the newest metadata file of a table that no catalog names.
//!
//! ```text
//! metadata/version-hint.text ──N──> vN.metadata.json ──> vN+1? ──> … ──> the last one there is
//! no hint, or one that misleads  ──> list metadata/ ──> the greatest number
//! ```
//!
//! # Source
//! Iceberg spec, "File System Tables"; Apache Iceberg, `HadoopTableOperations`.

use std::io::Read as _;

use bytes::Bytes;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};

use crate::metadata::TableMetadata;

/// The folder that holds a table's metadata.
pub const METADATA_FOLDER: &str = "metadata";
const HINT: &str = "version-hint.text";
/// How a metadata file may be called after its version.
const SUFFIXES: [&str; 3] = [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"];
/// Bytes of an unpacked metadata file at most.
const METADATA_BYTES_MAX: u64 = 4 << 30;

/// A metadata file.
#[derive(Debug, Clone)]
pub(crate) struct MetadataFile {
    /// Where it is.
    pub(crate) location: Location,
    /// What it says.
    pub(crate) metadata: TableMetadata,
}

/// True if there is a table at `root`: a folder `metadata` with a metadata file in it.
///
/// # Errors
/// `Unavailable`.
pub async fn is_table(store: &Store, root: &Location) -> Result<bool> {
    let children = store.children(&root.join(METADATA_FOLDER)).await?;
    Ok(children.objects.iter().any(|name| is_metadata_file(name)))
}

/// True for the name of a metadata file, packed or not.
pub fn is_metadata_file(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.strip_suffix(suffix).is_some_and(|stem| !stem.is_empty()))
}

/// The newest metadata file of the table at `root`.
///
/// # Errors
/// `NotFound` if there is no table, `Corrupt` for a file that can't be read, `Unsupported` for a newer format.
pub(crate) async fn newest(store: &Store, root: &Location) -> Result<MetadataFile> {
    let folder = root.join(METADATA_FOLDER);
    if let Some(hinted) = hinted(store, &folder).await? {
        return read(store, hinted).await;
    }
    let children = store.children(&folder).await?;
    let newest = children.objects.iter().filter_map(|name| Some((rank(name)?, name))).max();
    match newest {
        Some((_, name)) => read(store, folder.join(name)).await,
        None => Err(Error::not_found("there is no Iceberg table here: no metadata file was found")
            .class("TABLE_OR_VIEW_NOT_FOUND")
            .with("path", root)),
    }
}

/// What metadata files are ordered by. Names with a plain `v` come from writers that number without gaps; among those with
/// random parts the number alone tells.
fn rank(name: &str) -> Option<(u64, bool)> {
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix))?;
    match stem.strip_prefix('v').and_then(|number| number.parse().ok()) {
        Some(version) => Some((version, true)),
        None => {
            let digits = stem.split_once('-').map_or(stem, |(digits, _)| digits);
            Some((digits.parse().ok()?, false))
        }
    }
}

/// The last metadata file from the hint on; `None` if there is no hint, or none of the files that it leads to.
async fn hinted(store: &Store, folder: &Location) -> Result<Option<Location>> {
    let text = match store.get(&folder.join(HINT)).await {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(hint) = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse::<u64>().ok()) else {
        return Ok(None);
    };
    let Some(mut found) = version(store, folder, hint).await? else { return Ok(None) };
    for next in hint.saturating_add(1).. {
        match version(store, folder, next).await? {
            Some(newer) => found = newer,
            None => break,
        }
    }
    Ok(Some(found))
}

async fn version(store: &Store, folder: &Location, version: u64) -> Result<Option<Location>> {
    for suffix in SUFFIXES {
        let location = folder.join(&format!("v{version}{suffix}"));
        if store.exists(&location).await? {
            return Ok(Some(location));
        }
    }
    Ok(None)
}

/// Reads a metadata file.
///
/// # Errors
/// `NotFound`, `Corrupt`, `Unsupported`, each with the path.
pub(crate) async fn read(store: &Store, location: Location) -> Result<MetadataFile> {
    let bytes = match store.get(&location).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::not_found("the table's metadata file does not exist").with("path", &location));
        }
        other => other?,
    };
    let parsed = unpacked(bytes).and_then(|text| TableMetadata::parse(&text));
    let metadata = parsed.map_err(|e| e.with("path", &location))?;
    Ok(MetadataFile { location, metadata })
}

/// The text of a metadata file; its first bytes tell if it is packed.
fn unpacked(bytes: Bytes) -> Result<Bytes> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    let reader = flate2::read::MultiGzDecoder::new(bytes.as_ref());
    reader
        .take(METADATA_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|e| Error::corrupt("the table metadata cannot be unpacked").caused_by(e))?;
    if text.len() as u64 > METADATA_BYTES_MAX {
        return Err(Error::new(ErrorKind::Limit, "the table metadata unpacks to more than 4 GiB"));
    }
    Ok(text.into())
}
