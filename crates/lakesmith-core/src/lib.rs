#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]
//! Pure decisions of table maintenance: no I/O, no async, no clock, no randomness, no Arrow.
//!
//! ```text
//! TableState --plan--> RewritePlan --(exec)--> RewriteOutcome --fold--> VersionEdit --(format)--> commit
//! ```

pub mod commit;
pub mod error;
pub mod health;
pub mod layout;
pub mod op;
pub mod plan;
pub mod predicate;
pub mod table;
pub mod units;

pub use error::{Error, ErrorKind, Result};
