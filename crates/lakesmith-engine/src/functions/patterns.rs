//! Parts of texts by regular expressions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{DataFusionError, Result};
use lakesmith::Error;
use regex::Regex;

use super::builtin::{Builtin, cast_to};
use crate::failure::external;

const TEXT_PATTERN_NUMBER: [DataType; 3] = [DataType::Utf8, DataType::Utf8, DataType::Int32];

/// # Source
/// Spark `RegExpExtract`, `RegExpExtractAll`, `RegExpReplace`; Java `Matcher.appendReplacement`.
pub(super) const FUNCTIONS: [Builtin; 3] = [
    Builtin {
        name: "regexp_extract",
        arguments: 2..=3,
        takes: |types| cast_to(types, &TEXT_PATTERN_NUMBER),
        gives: |_| DataType::Utf8,
        apply: |arrays, _| {
            let mut patterns = Patterns::new(arrays, "regexp_extract");
            let row = |row: usize| match patterns.of(row)? {
                None => Ok(None),
                Some((text, regex, group)) => {
                    let found = regex.captures(text).and_then(|found| found.get(group));
                    Ok(Some(found.map_or("", |part| part.as_str())))
                }
            };
            Ok(Arc::new((0..arrays[0].len()).map(row).collect::<Result<StringArray>>()?))
        },
    },
    Builtin {
        name: "regexp_extract_all",
        arguments: 2..=3,
        takes: |types| cast_to(types, &TEXT_PATTERN_NUMBER),
        gives: |_| DataType::new_list(DataType::Utf8, true),
        apply: |arrays, _| {
            let mut patterns = Patterns::new(arrays, "regexp_extract_all");
            let mut all = ListBuilder::new(StringBuilder::new());
            for row in 0..arrays[0].len() {
                let Some((text, regex, group)) = patterns.of(row)? else {
                    all.append_null();
                    continue;
                };
                for found in regex.captures_iter(text) {
                    all.values().append_value(found.get(group).map_or("", |part| part.as_str()));
                }
                all.append(true);
            }
            Ok(Arc::new(all.finish()))
        },
    },
    Builtin {
        name: "regexp_replace",
        arguments: 3..=4,
        takes: |types| cast_to(types, &[DataType::Utf8, DataType::Utf8, DataType::Utf8, DataType::Int32]),
        gives: |_| DataType::Utf8,
        apply: |arrays, _| {
            let with = arrays[2].as_string::<i32>();
            let starts = arrays.get(3).map(|starts| starts.as_primitive::<Int32Type>());
            let mut patterns = Patterns::new(&arrays[..2], "regexp_replace");
            let row = |row: usize| {
                let is_null = with.is_null(row) || starts.is_some_and(|starts| starts.is_null(row));
                match patterns.of(row)?.filter(|_| !is_null) {
                    None => Ok(None),
                    Some((text, regex, _)) => {
                        replaced(text, regex, with.value(row), starts.map_or(1, |starts| starts.value(row))).map(Some)
                    }
                }
            };
            Ok(Arc::new((0..arrays[0].len()).map(row).collect::<Result<StringArray>>()?))
        },
    },
];

/// Texts with their patterns and groups; the last pattern is kept, for it is mostly the next one, too.
struct Patterns<'a> {
    texts: &'a StringArray,
    patterns: &'a StringArray,
    groups: Option<&'a Int32Array>,
    function: &'static str,
    last: Option<(String, Regex)>,
}

impl<'a> Patterns<'a> {
    fn new(arrays: &'a [ArrayRef], function: &'static str) -> Self {
        let groups = arrays.get(2).map(|groups| groups.as_primitive::<Int32Type>());
        Self { texts: arrays[0].as_string(), patterns: arrays[1].as_string(), groups, function, last: None }
    }

    /// The text, the pattern and the group of a row; `None` where one of them is NULL.
    fn of(&mut self, row: usize) -> Result<Option<(&'a str, &Regex, usize)>> {
        let no_group = self.groups.is_some_and(|groups| groups.is_null(row));
        if self.texts.is_null(row) || self.patterns.is_null(row) || no_group {
            return Ok(None);
        }
        let pattern = self.patterns.value(row);
        if self.last.as_ref().is_none_or(|(known, _)| known != pattern) {
            let regex = Regex::new(pattern).map_err(|cause| {
                self.refused("PATTERN", &format!("the pattern '{pattern}' is no regular expression: {cause}"))
            })?;
            self.last = Some((pattern.to_owned(), regex));
        }
        let Some((_, regex)) = &self.last else { return Ok(None) };
        let group = self.groups.map_or(1, |groups| groups.value(row));
        let count = regex.captures_len();
        let group = match (usize::try_from(group), self.groups) {
            (Ok(group), _) if group < count => group,
            // A replacement asks for no group.
            _ if self.function == "regexp_replace" => 0,
            _ => {
                let message = format!("there is no group {group}: the pattern has {} of them", count - 1);
                return Err(self.refused("REGEX_GROUP_INDEX", &message));
            }
        };
        Ok(Some((self.texts.value(row), regex, group)))
    }

    fn refused(&self, part: &str, message: &str) -> DataFusionError {
        let class = if part == "PATTERN" {
            "INVALID_PARAMETER_VALUE.PATTERN"
        } else {
            "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX"
        };
        external(Error::usage(format!("{}: {message}", self.function)).class(class))
    }
}

/// The text with `with` for each match from the character `start` on, counted from 1.
fn replaced(text: &str, regex: &Regex, with: &str, start: i32) -> Result<String> {
    let skipped = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)).ok_or_else(|| {
        external(Error::usage("regexp_replace begins at a character, counted from 1").class("QUERY_FAILED"))
    })?;
    let Some((from, _)) = text.char_indices().nth(skipped) else { return Ok(text.to_owned()) };
    let mut out = text[..from].to_owned();
    let mut at = from;
    for found in regex.captures_iter(&text[from..]) {
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[at..from + whole.start()]);
        filled(with, &found, &mut out)?;
        at = from + whole.end();
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Appends a replacement: `$1` and `${name}` stand for groups, `\` for the character behind it.
fn filled(with: &str, found: &regex::Captures<'_>, out: &mut String) -> Result<()> {
    let no_group = |name: &str| {
        external(Error::usage(format!("regexp_replace: the pattern has no group {name}")).class("QUERY_FAILED"))
    };
    let mut rest = with.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.extend(rest.next()),
            '$' if rest.next_if_eq(&'{').is_some() => {
                let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
                out.push_str(found.name(&name).map_or("", |part| part.as_str()));
            }
            '$' => {
                let digit = rest.next().and_then(|c| c.to_digit(10)).ok_or_else(|| no_group("of that name"))?;
                let mut group = digit as usize;
                if group >= found.len() {
                    return Err(no_group(&group.to_string()));
                }
                // More digits belong to the number as long as there is such a group.
                while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                    let more = group * 10 + digit as usize;
                    if more >= found.len() {
                        break;
                    }
                    group = more;
                    rest.next();
                }
                out.push_str(found.get(group).map_or("", |part| part.as_str()));
            }
            c => out.push(c),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_those_of_java() {
        for (text, pattern, with, start, expected) in [
            ("100-200", r"(\d+)", "num", 1, "num-num"),
            ("abc", "(a)(b)", "$2$1", 1, "bac"),
            ("aaa", "a", "b", 2, "abb"),
            ("abc", "(?<x>b)", "[${x}]", 1, "a[b]c"),
            ("abc", "(b)", r"\$1", 1, "a$1c"),
            ("abc", "(b)", "$10", 1, "ab0c"),
            ("abc", "b", "x", 9, "abc"),
        ] {
            assert_eq!(replaced(text, &Regex::new(pattern).unwrap(), with, start).unwrap(), expected, "{text}");
        }
        assert!(replaced("abc", &Regex::new("b").unwrap(), "$1", 1).is_err());
    }
}
