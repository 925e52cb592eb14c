//! What another writer's commit did, and what that means for ours: free of any format.

pub mod conflict;
pub mod summary;

pub use conflict::{InputFate, LostGroup, lost_groups};
pub use summary::CommitSummary;
