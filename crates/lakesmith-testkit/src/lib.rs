//! What tests build on: stores that fail on cue and small Delta tables written by plain means, so that the code under
//! test is never what wrote its own input.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

pub mod fault_store;
mod iceberg_fixtures;
mod rows;
mod table_log;
pub mod tables;
mod vector_file;

pub use fault_store::{Fault, FaultKind, FaultStore};
pub use iceberg_fixtures::iceberg_fixture;
pub use tables::{BuiltFile, BuiltTable, TableBuilder};
pub use vector_file::read_vector;
