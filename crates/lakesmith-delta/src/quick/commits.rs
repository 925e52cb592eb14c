//! JSON lines of commits and of V2 checkpoint heads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::replay::{AddedFile, RemovedFile, Replay, Vector, marks};
use super::statistics::Sample;
use super::{Odd, odd};
use crate::actions::{DomainMetadata, Metadata, Protocol, Sidecar};
use crate::file_rows::num_records;

type Strings<'a> = BTreeMap<Cow<'a, str>, Option<Cow<'a, str>>>;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    add: Option<AddLine<'a>>,
    #[serde(borrow)]
    remove: Option<RemoveLine<'a>>,
    #[serde(rename = "metaData")]
    metadata: Option<Metadata>,
    protocol: Option<Protocol>,
    #[serde(rename = "domainMetadata")]
    domain: Option<DomainMetadata>,
    sidecar: Option<Sidecar>,
    /// Any JSON is allowed here.
    #[serde(borrow, rename = "commitInfo")]
    commit_info: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AddLine<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    partition_values: Option<Strings<'a>>,
    size: i64,
    modification_time: Option<i64>,
    #[serde(borrow)]
    stats: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tags: Option<Strings<'a>>,
    #[serde(borrow)]
    deletion_vector: Option<VectorLine<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoveLine<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    deletion_timestamp: Option<i64>,
    size: Option<i64>,
    #[serde(borrow)]
    deletion_vector: Option<VectorLine<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VectorLine<'a> {
    #[serde(borrow)]
    storage_type: Cow<'a, str>,
    #[serde(borrow)]
    path_or_inline_dv: Cow<'a, str>,
    offset: Option<i32>,
    cardinality: i64,
}

impl AddLine<'_> {
    fn file(&self, replay: &mut Replay) -> AddedFile<'_> {
        let (target, in_cube) = marks(borrowed(&self.tags));
        AddedFile {
            path: &self.path,
            size: self.size,
            modified_ms: self.modification_time.unwrap_or(0),
            rows: self.stats.as_deref().and_then(num_records),
            vector: self.deletion_vector.as_ref().map(VectorLine::vector),
            partition: replay.partitions.number(borrowed(&self.partition_values)),
            target,
            in_cube,
        }
    }
}

impl RemoveLine<'_> {
    fn file(&self) -> RemovedFile<'_> {
        RemovedFile {
            path: &self.path,
            size: self.size,
            deleted_ms: self.deletion_timestamp.unwrap_or(0),
            vector: self.deletion_vector.as_ref().map(VectorLine::vector),
        }
    }
}

impl VectorLine<'_> {
    fn vector(&self) -> Vector<'_> {
        Vector {
            storage_type: &self.storage_type,
            path_or_inline: &self.path_or_inline_dv,
            offset: self.offset,
            cardinality: self.cardinality,
        }
    }
}

fn borrowed<'a>(strings: &'a Option<Strings<'_>>) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone {
    strings.iter().flatten().map(|(key, value)| (key.as_ref(), value.as_deref()))
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<Line<'_>, Odd>> {
    bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).map(|line| {
        serde_json::from_slice::<Line<'_>>(line).map_err(|e| odd(format!("a line of the log is not as expected: {e}")))
    })
}

/// Takes in a commit; `commit` numbers the commits. Returns its `commitInfo` if that is an object.
///
/// # Errors
/// A commit that this reader does not understand.
pub(crate) fn take_commit(
    replay: &mut Replay,
    sample: &mut Sample,
    bytes: &[u8],
    commit: u32,
) -> Result<Option<Map<String, Value>>, Odd> {
    let mut info = None;
    let (mut metadata, mut protocol) = (None, None);
    let mut found = false;
    for line in lines(bytes) {
        let line = line?;
        found = true;
        if let Some(add) = line.add {
            let file = add.file(replay);
            if replay.add_of_commit(&file, commit)?.is_some() {
                sample.offer(add.stats.as_deref());
            }
        }
        if let Some(remove) = line.remove {
            replay.remove_of_commit(&remove.file(), commit)?;
        }
        // The last one of a commit counts, if it has several.
        metadata = line.metadata.or(metadata);
        protocol = line.protocol.or(protocol);
        if let Some(domain) = line.domain {
            replay.domain(domain);
        }
        if let Some(raw) = line.commit_info {
            info = serde_json::from_str(raw.get()).ok().or(info);
        }
    }
    if !found {
        return Err(odd("a commit is empty"));
    }
    replay.metadata = replay.metadata.take().or(metadata);
    replay.protocol = replay.protocol.take().or(protocol);
    Ok(info)
}

/// Takes in the JSON head of a V2 checkpoint and returns its sidecars.
///
/// # Errors
/// As [`take_commit`].
pub(crate) fn take_head(replay: &mut Replay, sample: &mut Sample, bytes: &[u8]) -> Result<Vec<Sidecar>, Odd> {
    let mut sidecars = Vec::new();
    for line in lines(bytes) {
        let line = line?;
        if let Some(add) = line.add {
            let file = add.file(replay);
            if replay.add_of_checkpoint(&file)?.is_some() {
                sample.offer(add.stats.as_deref());
            }
        }
        if let Some(remove) = line.remove {
            replay.remove_of_checkpoint(&remove.file())?;
        }
        replay.metadata = replay.metadata.take().or(line.metadata);
        replay.protocol = replay.protocol.take().or(line.protocol);
        if let Some(domain) = line.domain {
            replay.domain(domain);
        }
        sidecars.extend(line.sidecar);
    }
    Ok(sidecars)
}
