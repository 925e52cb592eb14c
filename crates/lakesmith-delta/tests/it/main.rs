//! Tables through the public API: loaded from the golden tables and from logs made by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod broken_checkpoints;
mod checkpoints;
mod clustering;
mod commit_bench;
mod commit_carry;
mod commit_faults;
mod commit_races;
mod commit_rebase;
mod commit_tracking;
mod damage;
mod data_commits;
mod golden;
mod history;
mod load_errors;
mod log_cleanup;
mod log_cleanup_faults;
mod properties;
mod replay;
mod specs;
mod spellings;
mod survey;
mod survey_logs;
mod survey_storage;
mod tables;
mod vectors;
mod version_checksums;
