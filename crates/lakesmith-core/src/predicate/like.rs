//! LIKE patterns.
//!
//! # Source
//! Spark `StringUtils.escapeLikeRegex`.

use crate::error::{Error, Result};

/// A pattern, checked and taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LikePattern(Vec<Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `%`
    AnyText,
    /// `_`
    AnyChar,
    Char(char),
}

impl LikePattern {
    /// # Errors
    /// `INVALID_FORMAT`: the escape character may only precede `%`, `_` and itself.
    pub(super) fn new(pattern: &str, escape: char) -> Result<Self> {
        let invalid = |class: &'static str, reason: String| {
            Error::usage(format!("The format is invalid: '{pattern}'. {reason}")).class(class)
        };
        let mut parts = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            parts.push(match c {
                c if c == escape => match chars.next() {
                    Some(next) if next == escape || matches!(next, '%' | '_') => Part::Char(next),
                    Some(next) => {
                        let reason = format!("The escape character is not allowed to precede '{next}'.");
                        return Err(invalid("INVALID_FORMAT.ESC_IN_THE_MIDDLE", reason));
                    }
                    None => {
                        let reason = "The escape character is not allowed to end with.".to_owned();
                        return Err(invalid("INVALID_FORMAT.ESC_AT_THE_END", reason));
                    }
                },
                '%' => Part::AnyText,
                '_' => Part::AnyChar,
                c => Part::Char(c),
            });
        }
        Ok(Self(parts))
    }

    /// Whether the whole of `text` has the pattern. Time is bounded by the product of the lengths.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let parts = &self.0;
        let (mut at, mut part) = (0, 0);
        // Where to go on after the last `%` if what follows it does not fit.
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match parts.get(part) {
                Some(Part::AnyText) => {
                    part += 1;
                    retry = Some((part, at));
                    continue;
                }
                Some(Part::AnyChar) => {}
                Some(Part::Char(c)) if *c == text[at] => {}
                _ => {
                    let Some((after, from)) = retry else { return false };
                    (part, at) = (after, from + 1);
                    retry = Some((after, from + 1));
                    continue;
                }
            }
            (part, at) = (part + 1, at + 1);
        }
        parts[part..].iter().all(|p| *p == Part::AnyText)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(text: &[char], parts: &[Part]) -> bool {
        match parts.split_first() {
            None => text.is_empty(),
            Some((Part::AnyText, rest)) => (0..=text.len()).any(|i| slow(&text[i..], rest)),
            Some((Part::AnyChar, rest)) => !text.is_empty() && slow(&text[1..], rest),
            Some((Part::Char(c), rest)) => text.first() == Some(c) && slow(&text[1..], rest),
        }
    }

    #[test]
    fn known_patterns() {
        for (text, pattern, escape, expected) in [
            ("abc", "a%", '\\', true),
            ("abc", "_b_", '\\', true),
            ("abc", "%d%", '\\', false),
            ("a%c", "a\\%c", '\\', true),
            ("abc", "a\\%c", '\\', false),
            ("a_c", "a/_c", '/', true),
            ("", "%", '\\', true),
            ("", "_", '\\', false),
            ("abc", "a", '\\', false),
            ("é😀", "__", '\\', true),
            ("a\nb", "a%b", '\\', true),
        ] {
            assert_eq!(LikePattern::new(pattern, escape).unwrap().matches(text), expected, "{text} like {pattern}");
        }
        assert_eq!(LikePattern::new("a\\b", '\\').unwrap_err().class_name(), "INVALID_FORMAT.ESC_IN_THE_MIDDLE");
        assert_eq!(LikePattern::new("a\\", '\\').unwrap_err().class_name(), "INVALID_FORMAT.ESC_AT_THE_END");
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(text in "[ab]{0,8}", pattern in "[ab%_]{0,6}") {
            let like = LikePattern::new(&pattern, '\\').unwrap();
            let chars: Vec<char> = text.chars().collect();
            prop_assert_eq!(like.matches(&text), slow(&chars, &like.0));
        }
    }
}
