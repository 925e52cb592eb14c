//! Results as JSON.

use std::io::Write;

use lakesmith::{Error, Result, SqlResult};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Stdout;

/// Prints one document and a line feed, indented on a terminal.
///
/// # Errors
/// Unavailable when it cannot be written.
pub(crate) fn document(out: &mut Stdout, value: &impl Serialize) -> Result<()> {
    let written = if out.is_terminal() {
        serde_json::to_writer_pretty(&mut *out, value)
    } else {
        serde_json::to_writer(&mut *out, value)
    };
    written.map_err(failed)?;
    out.line("")
}

/// Prints a statement's rows, one object a line, columns in order.
///
/// # Errors
/// Unavailable when they cannot be written.
pub(crate) fn rows(out: &mut Stdout, result: &SqlResult) -> Result<()> {
    for row in &result.rows {
        let object: Map<String, Value> = result.columns.iter().cloned().zip(row.iter().cloned()).collect();
        serde_json::to_writer(&mut *out, &object).map_err(failed)?;
        out.write_all(b"\n").map_err(super::failed)?;
    }
    Ok(())
}

fn failed(e: serde_json::Error) -> Error {
    Error::unavailable("cannot write the results to standard output").caused_by(e)
}
