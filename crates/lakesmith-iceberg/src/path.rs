//! Paths in the metadata as locations. They are names as they are, never percent-encoded, in any client's spelling.

use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store};

/// Turns the paths of one table's metadata into locations.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    root: Location,
    /// The table's own location as the metadata has it.
    stated: String,
}

impl Paths {
    pub(crate) fn new(root: &Location, stated: &str) -> Self {
        Self { root: root.clone(), stated: stated.trim_end_matches('/').to_owned() }
    }

    /// The object that a path names: `file:/x`, `file:///x`, `/x`, `s3a://b/x`.
    ///
    /// # Errors
    /// `Corrupt` for a text that names no place, `Unsupported` for a storage that is not known.
    pub(crate) fn resolve(&self, path: &str) -> Result<Location> {
        if Location::is_absolute(path) {
            return absolute(&self.root, path);
        }
        // A warehouse that was given by a relative path spells everything in it that way.
        let below = path.strip_prefix(self.stated.as_str()).and_then(|rest| rest.strip_prefix('/'));
        match below {
            Some(below) if !self.stated.is_empty() && !Location::is_absolute(&self.stated) => {
                absolute(&self.root, &format!("/{}/{below}", self.root.key()))
            }
            _ => Err(Error::unsupported("a path in the table's metadata is relative; where it starts is not known")
                .with("path", path)
                .with("table", &self.root)),
        }
    }

    /// As [`Paths::resolve`], for an object that is about to be read through `store`.
    ///
    /// # Errors
    /// Also `Unsupported` if the object lies on another storage.
    pub(crate) fn readable(&self, store: &Store, path: &str) -> Result<Location> {
        let location = self.resolve(path)?;
        if store.holds(&location) {
            return Ok(location);
        }
        Err(Error::unsupported("a file of the table lies on another storage than the table itself")
            .with("path", location)
            .with("table", &self.root))
    }

    /// What to say of a file that should be there and is not.
    pub(crate) fn missing(&self, error: Error) -> Error {
        match self.resolve(&self.stated) {
            Ok(stated) if stated != self.root => error.with(
                "hint",
                format!(
                    "the metadata says that the table lies at {stated}: it was moved or copied, and its paths were not"
                ),
            ),
            _ => error,
        }
    }
}

/// The location of an absolute path of the metadata.
///
/// # Errors
/// As [`Paths::resolve`].
pub(crate) fn absolute(root: &Location, path: &str) -> Result<Location> {
    // What follows decodes percent signs, and these are to be taken as they are.
    root.resolve(&path.replace('%', "%25"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_place_is_one_location_and_percent_signs_stay() {
        let paths = Paths::new(&Location::parse("/lake/t").unwrap(), "file:/lake/t");
        for path in
            ["file:/lake/t/data/a%2Fb=1.parquet", "file:///lake/t/data/a%2Fb=1.parquet", "/lake/t/data/a%2Fb=1.parquet"]
        {
            let location = paths.resolve(path).unwrap();
            assert_eq!(location.to_string(), "file:///lake/t/data/a%2Fb=1.parquet");
        }
        let bucket = paths.resolve("s3a://b/k?x y").unwrap();
        assert_eq!(bucket.to_string(), "s3://b/k?x y");
        assert!(paths.resolve("hdfs://name/x").is_err());
        assert!(paths.resolve("data/x").is_err());
    }

    #[test]
    fn a_table_with_relative_paths_is_where_it_was_found() {
        let paths = Paths::new(&Location::parse("/home/me/warehouse/db/t").unwrap(), "warehouse/db/t");
        let location = paths.resolve("warehouse/db/t/data/x.parquet").unwrap();
        assert_eq!(location.to_string(), "file:///home/me/warehouse/db/t/data/x.parquet");
        assert!(paths.resolve("warehouse/db/t2/data/x.parquet").is_err());
    }
}
