//! The library through its public API; every assertion reopens the table.

#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod altering;
mod catalog;
mod clustering;
mod conflicts;
mod fault_sweep;
mod fsck;
mod left_out;
mod ordering;
mod plan_files;
mod restore;
mod rewriting;
mod row_changes;
mod sweeping;
mod tables;
mod vacuum;
mod vacuum_lists;
mod vectors;
