//! Everything that the log of a table names, as sets of 16-byte hashes.

use xxhash_rust::xxh3::xxh3_128;

/// Identity of a path below a table's root. Two paths with one hash are taken for the same, which keeps a file too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathHash(u128);

impl PathHash {
    /// The hash of an on-disk path.
    pub fn of(path: &str) -> Self {
        Self(xxh3_128(path.as_bytes()))
    }
}

/// A set of paths in 16 bytes each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSet {
    sorted: Vec<PathHash>,
}

impl PathSet {
    /// True if the path was put in.
    pub fn contains(&self, path: &str) -> bool {
        !self.sorted.is_empty() && self.sorted.binary_search(&PathHash::of(path)).is_ok()
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// True without paths.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl FromIterator<PathHash> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathHash>>(hashes: I) -> Self {
        let mut sorted: Vec<PathHash> = hashes.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.shrink_to_fit();
        Self { sorted }
    }
}

/// Where a path of the log leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedPath<'a> {
    /// To an object below the root.
    Below {
        /// The on-disk path.
        path: &'a str,
        /// The path as stored, if another reading of it could mean another object.
        as_stored: Option<&'a str>,
        /// True if the log holds an absolute URI.
        absolute: bool,
    },
    /// To an object elsewhere, or to a storage that is not known. It may still be one of ours under another name of the
    /// storage, so its file name counts.
    Elsewhere {
        /// The last segment, decoded.
        file_name: &'a str,
    },
}

/// What the log of a table names, complete for one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    live: PathSet,
    retained: PathSet,
    removed: PathSet,
    elsewhere: PathSet,
    absolute: PathSet,
}

impl References {
    /// True if a live file, its deletion vector, or a folder above one of them.
    pub fn is_live(&self, path: &str) -> bool {
        self.live.contains(path)
    }

    /// True if a version within the retention needs it.
    pub fn is_retained(&self, path: &str) -> bool {
        self.retained.contains(path)
    }

    /// True if the log says that it left the table before the retention.
    pub fn is_removed(&self, path: &str) -> bool {
        self.removed.contains(path)
    }

    /// True if a reference that leads elsewhere ends in the same file name, or the log names it by an absolute URI only.
    pub fn is_in_doubt(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.elsewhere.contains(name) || self.absolute.contains(path)
    }
}

/// Collects [`References`].
#[derive(Debug, Default)]
pub struct ReferencesBuilder {
    live: Vec<PathHash>,
    retained: Vec<PathHash>,
    removed: Vec<PathHash>,
    elsewhere: Vec<PathHash>,
    absolute: Vec<PathHash>,
    last_folder: String,
}

impl ReferencesBuilder {
    /// A file of the newest version, or its deletion vector.
    pub fn live(&mut self, path: LoggedPath<'_>) {
        match path {
            LoggedPath::Below { path, as_stored, .. } => {
                for spelling in std::iter::once(path).chain(as_stored) {
                    self.live.push(PathHash::of(spelling));
                    self.folders(spelling);
                }
            }
            LoggedPath::Elsewhere { file_name } => self.elsewhere.push(PathHash::of(file_name)),
        }
    }

    /// A file, or its deletion vector, that left the table within the retention.
    pub fn retained(&mut self, path: LoggedPath<'_>) {
        match path {
            LoggedPath::Below { path, as_stored, .. } => {
                for spelling in std::iter::once(path).chain(as_stored) {
                    self.retained.push(PathHash::of(spelling));
                    self.folders(spelling);
                }
            }
            LoggedPath::Elsewhere { file_name } => self.elsewhere.push(PathHash::of(file_name)),
        }
    }

    /// A file, or its deletion vector, that left the table before the retention.
    pub fn removed(&mut self, path: LoggedPath<'_>) {
        match path {
            LoggedPath::Below { path, absolute: true, .. } => self.absolute.push(PathHash::of(path)),
            LoggedPath::Below { path, .. } => self.removed.push(PathHash::of(path)),
            // Whoever owns that place decides.
            LoggedPath::Elsewhere { .. } => {}
        }
    }

    /// Everything that the log names was put in.
    pub fn complete(self) -> References {
        References {
            live: self.live.into_iter().collect(),
            retained: self.retained.into_iter().collect(),
            removed: self.removed.into_iter().collect(),
            elsewhere: self.elsewhere.into_iter().collect(),
            absolute: self.absolute.into_iter().collect(),
        }
    }

    fn folders(&mut self, path: &str) {
        let Some((folder, _)) = path.rsplit_once('/') else { return };
        // Files of a partition come in a row; the folders of the last one are known already.
        if folder == self.last_folder {
            return;
        }
        self.last_folder.clear();
        self.last_folder.push_str(folder);
        let mut above = Some(folder);
        while let Some(folder) = above {
            self.live.push(PathHash::of(folder));
            above = folder.rsplit_once('/').map(|(parent, _)| parent);
        }
    }
}
