//! Tables that Spark wrote, as this crate loads them.

#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod broken;
mod fixtures;
mod load_fixtures;
mod metadata_files;
mod statistics;
mod tables;
mod versions;
