//! What another writer's commit did, and what that means for ours: free of any format.

pub mod carry;
pub mod conflict;
pub mod summary;

pub use carry::{OutputRow, carried_rows};
pub use conflict::{InputFate, TouchedInput, touched_inputs};
pub use summary::CommitSummary;
