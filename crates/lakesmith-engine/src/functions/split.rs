//! `split`

use std::sync::Arc;

use arrow::array::{Array as _, AsArray, ListBuilder, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use lakesmith::Error;
use regex::Regex;

use super::{arrays, given, text};

/// The parts of a text between what matches a pattern.
///
/// # Source
/// Spark `StringSplit`, `UTF8String.split`; Java `Pattern.split`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Split {
    signature: Signature,
}

impl Default for Split {
    fn default() -> Self {
        let with_limit = TypeSignature::Exact(vec![DataType::Utf8, DataType::Utf8, DataType::Int64]);
        let without = TypeSignature::Exact(vec![DataType::Utf8, DataType::Utf8]);
        Self { signature: Signature::one_of(vec![without, with_limit], Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Split {
    fn name(&self) -> &str {
        "split"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (arrays, scalar) = arrays(&args)?;
        let (texts, patterns) = (text(&arrays[0])?, text(&arrays[1])?);
        let limits = arrays.get(2).map(|limits| cast(limits, &DataType::Int64)).transpose()?;
        let limits = limits.as_ref().map(|limits| limits.as_primitive::<Int64Type>());
        let mut found = ListBuilder::new(StringBuilder::new());
        let mut compiled: Option<(String, Regex)> = None;
        for row in 0..texts.len() {
            if texts.is_null(row) || patterns.is_null(row) || limits.is_some_and(|limits| limits.is_null(row)) {
                found.append_null();
                continue;
            }
            let pattern = patterns.value(row);
            let regex = match compiled.take() {
                Some((known, regex)) if known == pattern => regex,
                _ => Regex::new(pattern).map_err(|e| invalid(pattern, &e))?,
            };
            let limit = limits.map_or(-1, |limits| limits.value(row));
            for part in parts(texts.value(row), &regex, usize::try_from(limit).unwrap_or(0)) {
                found.values().append_value(part);
            }
            found.append(true);
            compiled = Some((pattern.to_owned(), regex));
        }
        given(Arc::new(found.finish()), scalar)
    }
}

fn invalid(pattern: &str, cause: &regex::Error) -> DataFusionError {
    let error = Error::usage(format!("the pattern '{pattern}' of split is no regular expression"))
        .class("INVALID_PARAMETER_VALUE.PATTERN")
        .caused_by(cause.to_string());
    DataFusionError::External(Box::new(error))
}

/// At most `limit` parts, the last one with what is left; any number for 0.
fn parts<'a>(text: &'a str, regex: &Regex, limit: usize) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for found in regex.find_iter(text) {
        if limit > 0 && parts.len() + 1 == limit {
            break;
        }
        // A match of nothing parts neither the start nor, for the empty pattern, the end.
        let is_nothing =
            found.is_empty() && (found.start() == 0 || (regex.as_str().is_empty() && found.end() == text.len()));
        if is_nothing {
            continue;
        }
        parts.push(&text[from..found.start()]);
        from = found.end();
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_java() {
        for (text, pattern, limit, expected) in [
            ("a,b,,", ",", 0, "a|b||"),
            (",a", ",", 0, "|a"),
            ("oneAtwoBthreeC", "[ABC]", 0, "one|two|three|"),
            ("oneAtwoBthreeC", "[ABC]", 2, "one|twoBthreeC"),
            ("hello", "", 0, "h|e|l|l|o"),
            ("hello", "", 3, "h|e|llo"),
            ("äö", "", 0, "ä|ö"),
            ("", ",", 0, ""),
            ("a1b22c", r"\d*", 1, "a1b22c"),
        ] {
            assert_eq!(parts(text, &Regex::new(pattern).unwrap(), limit).join("|"), expected, "{text} {pattern}");
        }
    }
}
