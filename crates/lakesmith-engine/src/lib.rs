//! The query engine: SELECT in SQL, on DataFusion. The only crate that knows of it.
//!
//! ```text
//! text ─statement─> tree ─> relations opened (lakesmith::Table) ─> plan ─spark─> Spark's meaning
//!                               read (files skipped by metadata, Parquet) <─ run ─> rows
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod context;
mod deep;
mod engine;
mod explain;
mod failure;
mod files;
mod functions;
mod planner;
mod query;
mod read;
mod rows;
mod spark;
mod statement;
mod text_operands;
mod wall_clock;
mod write;

pub use engine::Engine;
