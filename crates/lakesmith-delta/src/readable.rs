//! Which versions can still be read whole: their log is there, and so is every file that they refer to.
//!
//! One pass over the commits notes from when to when each file was live; each file is looked for once.

use std::collections::{BTreeMap, HashMap};

use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::DeleteInfo;
use lakesmith_core::table::vector::VectorLocation;
use lakesmith_core::{Error, Result};
use lakesmith_storage::presence::{Presence, presence};
use lakesmith_storage::{Cancel, Location, Store};
use xxhash_rust::xxh3::xxh3_128;

use crate::actions::{Action, parse_commit};
use crate::load::{Needs, load};
use crate::log_files::LogFiles;
use crate::vector::{Descriptor, delete_info};

/// Which versions are readable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readable {
    /// The oldest version that the log still gives.
    pub earliest: u64,
    /// Missing files by version, from the oldest that was looked at; versions without one are whole.
    missing: BTreeMap<u64, u64>,
}

impl Readable {
    /// Files of the version that are missing; `None` if its log is.
    pub(crate) fn missing_files(&self, version: u64) -> Option<u64> {
        (version >= self.earliest).then(|| self.missing.get(&version).copied().unwrap_or(0))
    }
}

/// Looks at the versions from `from` to `latest`.
///
/// # Errors
/// `Corrupt` for a log that can't be replayed, `Cancelled`, `Unavailable` from the storage.
pub(crate) async fn readable(
    store: &Store,
    root: &Location,
    files: &LogFiles,
    from: u64,
    latest: u64,
    cancel: &Cancel,
) -> Result<Readable> {
    let earliest = files.earliest();
    let start = from.clamp(earliest, latest);
    let mut lives = Lives::new(root);
    let base = load(store, root, TimeTravel::Version(start), Needs { files: true, stats: false }).await?;
    for file in base.state.files.iter() {
        lives.begin(start, file.path, file.deletes)?;
    }
    for commit in files.commits.iter().filter(|c| c.version > start && c.version <= latest) {
        cancel.check()?;
        let bytes = store.get(&commit.info.location).await?;
        lives.follow(commit.version, parse_commit(&bytes, &commit.info.location)?)?;
    }
    let (objects, spans) = lives.finish(latest);
    let locate = |index: usize| Ok(objects[index].clone());
    let found = presence(store, root, objects.len(), &locate, cancel).await?;
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for span in spans.iter().filter(|s| s.objects().any(|o| found[o] == Presence::Missing)) {
        let gone = span.objects().filter(|o| found[*o] == Presence::Missing).count() as i64;
        *changes.entry(span.from).or_default() += gone;
        *changes.entry(span.until).or_default() -= gone;
    }
    let mut missing = BTreeMap::new();
    let mut now = 0i64;
    let mut points = changes.into_iter().peekable();
    while let Some((at, change)) = points.next() {
        now += change;
        let end = points.peek().map_or(latest + 1, |(next, _)| *next);
        if now > 0 {
            missing.extend((at..end).map(|version| (version, now.unsigned_abs())));
        }
    }
    Ok(Readable { earliest, missing })
}

/// A file that is live from a version until another.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    until: u64,
    data: u32,
    vector: Option<u32>,
}

impl Span {
    fn objects(&self) -> impl Iterator<Item = usize> {
        [Some(self.data), self.vector].into_iter().flatten().map(|o| o as usize)
    }
}

/// What is live now, and what was.
struct Lives<'a> {
    root: &'a Location,
    objects: Vec<Location>,
    index: HashMap<Location, u32>,
    live: HashMap<u128, Span>,
    past: Vec<Span>,
}

impl<'a> Lives<'a> {
    fn new(root: &'a Location) -> Self {
        Self { root, objects: Vec::new(), index: HashMap::new(), live: HashMap::new(), past: Vec::new() }
    }

    fn object(&mut self, location: Location) -> Result<u32> {
        if let Some(index) = self.index.get(&location) {
            return Ok(*index);
        }
        let index = u32::try_from(self.objects.len())
            .map_err(|_| Error::new(lakesmith_core::ErrorKind::Limit, "the log names too many files"))?;
        self.objects.push(location.clone());
        self.index.insert(location, index);
        Ok(index)
    }

    fn begin(&mut self, version: u64, path: &str, vector: Option<&DeleteInfo>) -> Result<()> {
        let location = self.root.resolve(path)?;
        let key = key(&location, vector.map(|v| v.unique_id.as_str()));
        let data = self.object(location)?;
        let vector_file = match vector.map(|v| &v.at) {
            Some(VectorLocation::File { location, .. }) => Some(self.object(Location::from_canonical(location)?)?),
            _ => None,
        };
        // An action that is repeated changes nothing.
        self.live.entry(key).or_insert(Span { from: version, until: u64::MAX, data, vector: vector_file });
        Ok(())
    }

    fn end(&mut self, version: u64, path: &str, vector_id: Option<&str>) -> Result<()> {
        if let Some(span) = self.live.remove(&key(&self.root.resolve(path)?, vector_id)) {
            self.past.push(Span { until: version, ..span });
        }
        Ok(())
    }

    fn follow(&mut self, version: u64, actions: Vec<Action>) -> Result<()> {
        // The order of lines in a commit means nothing.
        for action in &actions {
            if let Action::Remove(remove) = action {
                self.end(version, &remove.path, remove.key().vector_id.as_deref())?;
            }
        }
        for action in &actions {
            if let Action::Add(add) = action {
                let vector = match &add.deletion_vector {
                    Some(d) => Some(delete_info(
                        self.root,
                        Descriptor {
                            storage_type: &d.storage_type,
                            path_or_inline: &d.path_or_inline_dv,
                            offset: d.offset,
                            size_in_bytes: d.size_in_bytes,
                            cardinality: d.cardinality,
                        },
                    )?),
                    None => None,
                };
                self.begin(version, &add.path, vector.as_ref())?;
            }
        }
        Ok(())
    }

    fn finish(mut self, latest: u64) -> (Vec<Location>, Vec<Span>) {
        self.past.extend(self.live.into_values().map(|span| Span { until: latest + 1, ..span }));
        (self.objects, self.past)
    }
}

/// Identity of a live file, however its path is spelled.
fn key(data: &Location, vector_id: Option<&str>) -> u128 {
    xxh3_128(format!("{data}\0{}", vector_id.unwrap_or_default()).as_bytes())
}
