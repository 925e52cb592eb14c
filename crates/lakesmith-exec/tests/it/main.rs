//! Rewrites through the public API, judged by reopening what was written.
#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod bench_table;
mod delete_files;
mod deletes;
mod faults;
mod fixtures;
mod odd_values;
mod schema_changes;
mod timestamps;
mod values;
