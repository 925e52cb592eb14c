//! Results as JSON.

use std::collections::HashSet;
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
    let keys = keys(&result.columns);
    for row in &result.rows {
        let object: Map<String, Value> = keys.iter().cloned().zip(row.iter().cloned()).collect();
        serde_json::to_writer(&mut *out, &object).map_err(failed)?;
        out.write_all(b"\n").map_err(super::failed)?;
    }
    Ok(())
}

/// A key for every column: its name, or for a name that an earlier column has the name with the first number that is free.
fn keys(columns: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = columns.iter().cloned().collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut keys = Vec::with_capacity(columns.len());
    for name in columns {
        if seen.insert(name) {
            keys.push(name.clone());
            continue;
        }
        let mut number: u64 = 1;
        while !taken.insert(format!("{name}_{number}")) {
            number += 1;
        }
        keys.push(format!("{name}_{number}"));
    }
    keys
}

fn failed(e: serde_json::Error) -> Error {
    Error::unavailable("cannot write the results to standard output").caused_by(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_name_have_keys_of_their_own() {
        for (columns, expected) in [
            (vec!["a", "b"], vec!["a", "b"]),
            (vec!["a", "a"], vec!["a", "a_1"]),
            (vec!["a", "a", "a_1", "a"], vec!["a", "a_2", "a_1", "a_3"]),
            (vec!["a", "A"], vec!["a", "A"]),
        ] {
            let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
            assert_eq!(keys(&columns), expected);
        }
    }
}
