//! The data room: reads, rewrites and verifies Parquet within a memory limit. It never sees a table format.
//!
//! ```text
//! RewriteTask -> LocalExecutor -> rewrite: source -> file_read -> adapt -> tracking -> output -> RewriteOutcome
//!                                          (ranges)  (batches)                          (upload, statistics)
//!                                                 `-> merge (pages as they are) -> row_group ´
//! rows that delete files delete:        deletes -> source, as those of a vector
//! rows from elsewhere:                  new_file -> output -> WrittenFile
//! with an order:                           order: sample -> runs (spilled) -> ranges -> output
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod adapt;
mod calendar;
mod cast;
mod column_adapter;
mod constants;
mod content_hash;
mod control;
mod deletes;
mod dropped;
mod encoding;
mod executor;
mod failure;
mod file_plan;
mod file_read;
mod footer;
mod initial;
mod inspect;
mod merge;
mod new_file;
mod opener;
mod order;
mod outcome;
mod output;
mod prepare;
mod relabel;
mod rewrite;
mod row_group;
mod skipping;
mod source;
mod stats;
mod target;
mod told_once;
mod tracking;
mod upload_sink;
mod vector;

pub use column_adapter::{ColumnAdapter, check_calendar, is_legacy_calendar};
pub use constants::value_at;
pub use control::RewriteControl;
pub use deletes::Deletes;
pub use dropped::{dropped_column_in_footer, files_with_dropped_columns};
pub use executor::{LocalExecutor, RunFailure};
pub use inspect::{Depth, Inspected, Inspection, inspect_files};
pub use new_file::{NewFile, NewFiles, count_rows};
pub use rewrite::{TaskContext, rewrite};
pub use target::{primitive_type, variant_fields};
