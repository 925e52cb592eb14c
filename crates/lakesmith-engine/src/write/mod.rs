//! Statements that change the rows of a table.
//!
//! ```text
//! INSERT: source ─> columns of the table, cast ─> generated values ─> conditions ─> by partition ─> writers ─┐
//! CREATE TABLE … AS SELECT: the same, and the table is made with its rows
//! DELETE: condition ─> partitions tell all: files; else positions of rows ─────────────────────────────────┴─> commit
//! ```

mod columns;
mod create;
mod delete;
mod fill;
mod insert;
mod numbering;
mod schema;
mod sink;
mod spread;

pub(crate) use create::create;
pub(crate) use delete::delete;
pub(crate) use insert::insert;

use std::collections::HashMap;

use lakesmith::{Error, Session};
use tokio::runtime::Runtime;

use crate::statement::{Parsed, View};

/// What a statement is run with.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    pub session: &'a Session,
    pub runtime: &'a Runtime,
    /// Temporary views by name.
    pub views: &'a HashMap<String, View>,
    pub parsed: &'a Parsed,
}

/// A value that does not fit its column has a class of its own in Spark.
fn in_insert(error: Error) -> Error {
    let overflows = ["CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"].contains(&error.class_name());
    if overflows { error.class("CAST_OVERFLOW_IN_TABLE_INSERT") } else { error }
}
