//! Failures of the Parquet and Arrow libraries as the workspace's errors, naming the file.

use std::fmt::Display;

use arrow::error::ArrowError;
use lakesmith_core::error::Cause;
use lakesmith_core::{Error, ErrorKind, Result};
use parquet::errors::ParquetError;

/// The error for a Parquet failure while reading `path`. A storage error inside is handed through as it is.
pub(crate) fn read_error(source: ParquetError, path: &dyn Display) -> Error {
    match source {
        ParquetError::External(inner) => unwrap_cause(inner).unwrap_or_else(|other| corrupt(path).caused_by(other)),
        ParquetError::NYI(why) => {
            Error::unsupported(format!("the Parquet file uses something that cannot be read: {why}")).with("path", path)
        }
        other => corrupt(path).caused_by(other),
    }
}

/// The error for an Arrow failure while decoding `path`.
pub(crate) fn decode_error(source: ArrowError, path: &dyn Display) -> Error {
    match source {
        ArrowError::ExternalError(inner) => unwrap_cause(inner).unwrap_or_else(|other| corrupt(path).caused_by(other)),
        other => corrupt(path).caused_by(other),
    }
}

/// The workspace's error below the wrappers that the libraries put around it.
fn unwrap_cause(cause: Cause) -> Result<Error, Cause> {
    let cause = match cause.downcast::<Error>() {
        Ok(error) => return Ok(*error),
        Err(other) => other,
    };
    let cause = match cause.downcast::<ParquetError>().map(|e| *e) {
        Ok(ParquetError::External(inner)) => return unwrap_cause(inner),
        Ok(other) => return Err(Box::new(other)),
        Err(other) => other,
    };
    match cause.downcast::<std::io::Error>().map(|e| *e) {
        Ok(io) if io.get_ref().is_some() => match io.into_inner() {
            Some(inner) => unwrap_cause(inner),
            None => Err("an I/O error without a cause".into()),
        },
        Ok(io) => Err(Box::new(io)),
        Err(other) => Err(other),
    }
}

/// The error for a failure while writing `path`.
pub(crate) fn write_error(source: ParquetError, path: &dyn Display) -> Error {
    let failed = || Error::internal("the Parquet writer failed").with("path", path);
    match source {
        ParquetError::External(inner) => unwrap_cause(inner).unwrap_or_else(|other| failed().caused_by(other)),
        other => failed().caused_by(other),
    }
}

/// A missing data file gets the class that Spark gives to it.
pub(crate) fn missing_file(error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound { error.class("FAILED_READ_FILE.FILE_NOT_EXIST") } else { error }
}

/// Names the file in an error of an operation on arrays in memory.
pub(crate) fn in_file<T>(result: Result<T, ArrowError>, path: &dyn Display) -> Result<T> {
    result.map_err(|e| decode_error(e, path))
}

/// The error for a value of `path` that the table's type cannot hold.
pub(crate) fn does_not_fit(source: ArrowError, path: &dyn Display) -> Error {
    let error = decode_error(source, path);
    if error.kind() != ErrorKind::Corrupt || is_not_text(&error) {
        return error;
    }
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    Error::unsupported(format!(
        "the file holds a value that the column's type in the table cannot hold: {why}; rewrite the file with its own \
         writer, or give the column a wider type"
    ))
    .with("path", path)
}

/// True if reading stopped at a string that is not UTF-8.
pub(crate) fn is_not_text(error: &Error) -> bool {
    error.kind() == ErrorKind::Corrupt && error.to_string().to_ascii_lowercase().contains("non utf-8")
}

fn corrupt(path: &dyn Display) -> Error {
    Error::corrupt("the data file cannot be read as Parquet of the table's schema; see whether another reader can before you give it up")
        .with("path", path)
}
