//! Which objects below a table's root may be deleted: a pure rule through which a listing streams.
//!
//! ```text
//! options, table's retention, clock ──Retention::of──> Retention      the guard
//! log ──ReferencesBuilder──> References                               live, kept for time travel, removed long ago
//!                     SweepRule::unreferenced(retention, references, names)
//! listing ──Guards::note──> folders of other tables                   any order, any batch size
//!         ──SweepRule::judge──> Verdict                               delete, keep and say why, none of its business
//! ```
//!
//! Paths are on-disk names below the root: decoded, `/` between segments, none at the ends. What lies elsewhere has no such
//! path and can't be a candidate.

mod guards;
mod names;
mod references;
mod retention;
mod rule;

pub use guards::{Guards, TABLE_MARKS};
pub use names::{ICEBERG_FOLDER, NameRule};
pub use references::{LoggedPath, PathHash, PathSet, References, ReferencesBuilder};
pub use retention::{Retention, RetentionRequest, UNKNOWN_FILES_MIN_AGE_MS};
pub use rule::{Found, FoundKind, KeepReason, SweepReason, SweepRule, Verdict};

#[cfg(test)]
#[path = "../sweep_tests.rs"]
mod tests;
