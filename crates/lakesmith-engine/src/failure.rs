//! Failures of DataFusion as the workspace's errors, with Spark's classes.

use std::sync::Arc;

use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};
use lakesmith::{Error, ErrorKind};
use parquet::errors::ParquetError;

use crate::statement::ELSEWHERE;

/// An error of ours on its way through DataFusion.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// True if the error is one of ours.
pub(crate) fn holds_own(error: &DataFusionError) -> bool {
    find(error).is_some()
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What a failure of DataFusion says to the user. `spelling` gives names back as they are spelled.
pub(crate) fn translate(error: DataFusionError, spelling: &dyn Fn(&str) -> String) -> Error {
    match error {
        DataFusionError::Context(_, inner) => translate(*inner, spelling),
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let error = translate(*inner, spelling);
            match diagnostic.span {
                Some(span) if (1..ELSEWHERE).contains(&span.start.line) && error.context_value("line").is_none() => {
                    error.with("line", span.start.line).with("position", span.start.column.saturating_sub(1))
                }
                _ => error,
            }
        }
        DataFusionError::External(cause) => own(cause),
        DataFusionError::Shared(inner) => shared(&inner),
        DataFusionError::ArrowError(inner, _) => arrow(*inner),
        DataFusionError::ParquetError(inner) => parquet(*inner),
        DataFusionError::SchemaError(inner, _) => schema(&inner, spelling),
        DataFusionError::ObjectStore(inner) => {
            Error::unavailable("the storage did not answer as needed").caused_by(*inner)
        }
        DataFusionError::IoError(inner) => io(inner),
        DataFusionError::SQL(inner, _) => Error::usage(inner.to_string()).class("PARSE_SYNTAX_ERROR"),
        DataFusionError::ResourcesExhausted(message) => Error::new(
            ErrorKind::Limit,
            format!(
                "the query needs more memory than it may use; give it more with --memory: {}",
                first_line(&message)
            ),
        )
        .class("UNABLE_TO_ACQUIRE_MEMORY"),
        DataFusionError::NotImplemented(message) => {
            Error::unsupported(format!("the query needs something that is not there: {}", first_line(&message)))
                .class("UNSUPPORTED_FEATURE")
        }
        DataFusionError::Plan(message) => plan(&message),
        DataFusionError::Execution(message) => execution(&message),
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => translate(first, spelling),
            None => Error::internal("a query failed without a reason"),
        },
        other => Error::internal(format!("the query failed: {}", first_line(&other.to_string()))),
    }
}

fn shared(error: &Arc<DataFusionError>) -> Error {
    if let Some(own) = find(error.as_ref()) {
        return own.clone();
    }
    match error.as_ref() {
        DataFusionError::Shared(inner) => shared(inner),
        DataFusionError::Plan(message) => plan(message),
        DataFusionError::Execution(message) => execution(message),
        other => execution(&other.to_string()),
    }
}

/// An error of ours somewhere below the wrappers of libraries.
fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(own) = error.downcast_ref::<Error>() {
            return Some(own);
        }
        if let Some(own) = error.downcast_ref::<Arc<Error>>() {
            return Some(own);
        }
        at = match error.downcast_ref::<ArrowError>() {
            Some(ArrowError::ExternalError(inner)) => Some(inner.as_ref()),
            _ => match error.downcast_ref::<ParquetError>() {
                Some(ParquetError::External(inner)) => Some(inner.as_ref()),
                _ => match error.downcast_ref::<DataFusionError>() {
                    Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
                    Some(DataFusionError::Context(_, inner)) => Some(inner.as_ref()),
                    Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
                    Some(DataFusionError::ArrowError(inner, _)) => Some(inner.as_ref()),
                    Some(DataFusionError::ParquetError(inner)) => Some(inner.as_ref()),
                    _ => error.source(),
                },
            },
        };
    }
    None
}

fn own(cause: Cause) -> Error {
    match cause.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => match find(other.as_ref()) {
            Some(error) => error.clone(),
            None => match other.downcast::<DataFusionError>() {
                Ok(inner) => translate(*inner, &|name| name.to_owned()),
                Err(other) => Error::internal("the query failed").caused_by(other),
            },
        },
    }
}

fn arrow(error: ArrowError) -> Error {
    if let Some(own) = find(&error) {
        return own.clone();
    }
    match error {
        ArrowError::DivideByZero => {
            Error::usage("division by zero; use try_divide to get NULL instead").class("DIVIDE_BY_ZERO")
        }
        ArrowError::ArithmeticOverflow(message) => overflow(&message),
        ArrowError::CastError(message) => cast(&message),
        ArrowError::ParseError(message) => cast(&message),
        ArrowError::ComputeError(message) => execution(&message),
        ArrowError::InvalidArgumentError(message) if message.contains("too large to store in a Decimal") => {
            Error::usage(format!("a number does not fit its decimal type: {message}"))
                .class("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")
        }
        other => execution(&other.to_string()),
    }
}

/// How Parquet's reader begins what it says of a filter that failed.
pub(crate) const FILTER_FAILED: &str = "Error evaluating filter predicate";

fn parquet(error: ParquetError) -> Error {
    match find(&error) {
        Some(own) => own.clone(),
        None if error.to_string().contains(FILTER_FAILED) => execution(&error.to_string()),
        None => Error::corrupt("a data file cannot be read as Parquet").caused_by(error),
    }
}

fn io(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Error::new(
            ErrorKind::Limit,
            "there is no room left for what the query spills; free some, or name another \
                 folder with --spill-dir",
        )
        .caused_by(error),
        _ => Error::unavailable("what the query spills cannot be written or read").caused_by(error),
    }
}

fn overflow(message: &str) -> Error {
    Error::usage(format!("arithmetic overflow: {}; cast to a wider type", first_line(message)))
        .class("ARITHMETIC_OVERFLOW")
}

fn cast(message: &str) -> Error {
    let class = if message.contains("Can't cast value") { "CAST_OVERFLOW" } else { "CAST_INVALID_INPUT" };
    Error::usage(format!("{}; use try_cast to get NULL instead", lower_first(first_line(message)))).class(class)
}

fn schema(error: &SchemaError, spelling: &dyn Fn(&str) -> String) -> Error {
    let shown = |name: &str| format!("`{}`", spelling(name));
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut near: Vec<&Column> = valid_fields.iter().filter(|f| !f.name().starts_with("__lakesmith")).collect();
            near.sort_by_key(|candidate| distance(field.name(), candidate.name()));
            let names: Vec<String> = near.iter().take(5).map(|c| shown(c.name())).collect();
            let message = format!(
                "a column, variable or function parameter with name {} cannot be resolved",
                shown(field.name())
            );
            match names.is_empty() {
                true => Error::usage(message).class("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
                false => Error::usage(format!("{message}; did you mean one of these? [{}]", names.join(", ")))
                    .class("UNRESOLVED_COLUMN.WITH_SUGGESTION")
                    .with("column", spelling(field.name())),
            }
        }
        SchemaError::AmbiguousReference { field } => Error::usage(format!(
            "the name {} is ambiguous: more than one relation has it; put the relation before it",
            shown(field.name())
        ))
        .class("AMBIGUOUS_REFERENCE"),
        other => Error::usage(lower_first(&other.to_string())).class("AMBIGUOUS_REFERENCE"),
    }
}

fn plan(message: &str) -> Error {
    let line = first_line(message);
    let field = line.strip_suffix(" not found in struct").and_then(|before| before.rsplit_once("Field "));
    if let Some((_, field)) = field {
        return Error::usage(format!("no such struct field `{field}`")).class("FIELD_NOT_FOUND").with("field", field);
    }
    let class = [
        ("Invalid function", "UNRESOLVED_ROUTINE"),
        ("not found", "TABLE_OR_VIEW_NOT_FOUND"),
        ("must appear in the GROUP BY", "MISSING_AGGREGATION"),
        ("must appear in GROUP BY", "MISSING_AGGREGATION"),
        ("Cannot coerce", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("Cannot infer common argument type", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("Error during planning: Failed to coerce", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
        ("non-boolean predicate", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("coerce", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
        ("arguments but received", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("argument but received", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("requires exactly", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
    ]
    .into_iter()
    .find(|(part, _)| message.contains(part))
    .map_or("ANALYSIS_ERROR", |(_, class)| class);
    let near = message.split("Did you mean '").nth(1).and_then(|rest| rest.split('\'').next());
    match near.filter(|near| class == "UNRESOLVED_ROUTINE" && !near.starts_with("__lakesmith")) {
        Some(near) => Error::usage(format!("{}; did you mean '{near}'?", lower_first(line))).class(class),
        None => Error::usage(lower_first(line)).class(class),
    }
}

fn execution(message: &str) -> Error {
    let lower = message.to_ascii_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return Error::usage("division by zero; use try_divide to get NULL instead").class("DIVIDE_BY_ZERO");
    }
    if lower.contains("overflow") {
        return overflow(message);
    }
    if lower.contains("cast") && (lower.contains("cannot cast") || lower.contains("can't cast")) {
        return cast(message);
    }
    let class = [
        ("map key must be unique", "DUPLICATED_MAP_KEY"),
        ("field position must not be zero", "INVALID_INDEX_OF_ZERO"),
        ("start index must not be zero", "INVALID_PARAMETER_VALUE.START"),
    ]
    .into_iter()
    .find(|(part, _)| lower.contains(part))
    .map_or("QUERY_FAILED", |(_, class)| class);
    Error::usage(lower_first(first_line(message))).class(class)
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message).trim_end_matches('.')
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Edits that make one name of another.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
