//! What ails a table: pure judgement of numbers that the log gives.
//!
//! ```text
//! FileTally <- one push a live file      (a few words a file, so that a table of millions fits)
//! diagnose(TableState, HealthFacts, HealthOptions, now) -> HealthReport { score, findings }
//!    └─ checks: one function a topic; each finding has numbers and the command that cures it
//! ```

mod checks;
mod command;
mod diagnose;
mod facts;
mod packing;
mod tally;

pub use diagnose::diagnose;
pub use facts::{
    CheckpointHint, Checksum, CountAndBytes, HealthFacts, KeyOverlap, LogFacts, SnapshotFacts, StatisticsFacts,
    StorageFacts, TombstoneFacts,
};
pub use tally::{FileTally, TalliedFile, TalliedFiles};
