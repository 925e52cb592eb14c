#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]
//! The SQL room through its public API.

mod errors;
mod operations;
mod predicates;
mod robustness;
mod statements;
