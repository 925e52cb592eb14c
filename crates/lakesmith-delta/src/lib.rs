//! Delta Lake: the kernel replays the log, and commits are our own.
//!
//! ```text
//! load ──> DeltaTable { state: what planners see, log: what commits need }
//!            ├─ read_spec, write_spec, output_directory, input_files ──> the data room
//!            └─ check_writable, validate_properties                  ──> a commit
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

pub mod actions;
mod alter;
mod assemble;
mod bound_values;
mod bounds;
mod carry;
mod checkpoint;
mod clustering;
pub mod commit;
mod commit_info;
mod conflict;
mod create;
mod data_commit;
mod data_lines;
pub mod engine;
pub mod features;
mod file_rows;
mod history;
mod identity_column;
mod last_checkpoint;
mod live_stats;
mod load;
mod log_check;
mod log_cleanup;
mod log_doubts;
mod log_files;
mod log_state;
mod log_view;
mod mapping_upgrade;
mod partition_value;
mod path_watch;
mod properties;
mod property_rules;
mod puts;
mod quick;
mod read;
mod readable;
mod references;
mod restore;
mod retention;
mod row_rules;
pub mod schema;
mod schema_text;
mod sidecars;
mod spelling;
mod statistics_check;
mod stats;
mod stats_text;
mod tip;
mod vacuum_log;
mod vector;
mod version_checksum;
mod version_file;
mod version_state;
mod winners;
mod write_spec;
mod z85;

pub use alter::{Altered, alter_table};
pub use bounds::{column_bounds, files_without_statistics, key_bounds};
pub use checkpoint::{CheckpointInfo, WrittenCheckpoint, write_checkpoint};
pub use clustering::{schema_spelling, set_clustering};
pub use commit::{CommitContext, CommitResult, Committed, commit};
pub use create::{FirstRows, becoming, check_room, check_same_table, create, new_table, replace_table};
pub use data_commit::{Becoming, check_takes_deletes, commit_data};
pub use features::{check_features, check_writable, with_features};
pub use history::history;
pub use identity_column::{Identity, after_numbers};
pub use last_checkpoint::configuration_digest;
pub use load::{Needs, load};
pub use log_check::{LogCheck, check_checksum, check_log};
pub use log_cleanup::{clean_log, plan_log_clean};
pub use log_doubts::{check_hint_replaceable, check_undoubted};
pub use log_files::{has_commits_after, is_table};
pub use log_state::{DeltaTable, LogState};
pub use partition_value::new_partition;
pub use properties::{FileUse, NewConfiguration, validate_properties};
pub use property_rules::interval_ms;
pub use quick::{PartitionRows, Survey, row_counts, survey, survey_by_kernel};
pub use read::{hidden_columns, input_files, read_spec};
pub use references::{references, sweep_rule};
pub use restore::Restoration;
pub use retention::deleted_file_retention_ms;
pub use row_rules::{RowCheck, RowRules, TextLength, row_rules};
pub use schema_text::column_type;
pub use statistics_check::{Held, contradictions};
pub use stats::{stats_json, string_prefix};
pub use vacuum_log::{RemovedFile, covered_version, note_vacuum, removed_files};
pub use vector::{read_vector, relative_path, unique_id, write_vectors};
pub use version_file::check_same_log;
pub use write_spec::{output_directory, required_tags, row_tracking, stats_leaves, write_spec};
