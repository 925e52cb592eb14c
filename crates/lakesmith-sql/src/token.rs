//! Tokens of Spark SQL with their places, on sqlparser's tokenizer.

use lakesmith_core::Result;
use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Location, Token as Raw, Tokenizer};

use crate::diagnostic::{Place, error_at, syntax_error};
use crate::string_literal::unescape;

/// Kinds of token. Symbols are compared by their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier; `quoted` in backquotes, whose content this is.
    Word { value: String, quoted: bool },
    /// Digits with an optional point and exponent.
    Number,
    /// The value of a string literal.
    Text(String),
    /// Digits of `X'…'`.
    Hex(String),
    /// Anything else.
    Symbol,
    /// The end of the statement.
    End,
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Byte offsets.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) place: Place,
    pub(crate) end_place: Place,
}

/// What the tokenizer must know of Spark: backquoted names, strings in either quote with backslashes, nested comments.
#[derive(Debug)]
struct SparkDialect;

impl Dialect for SparkDialect {
    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '`'
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }
}

/// Splits `text` into statements, each the tokens before its `;`; comments, white space and empty statements are gone.
///
/// # Errors
/// `PARSE_SYNTAX_ERROR` for a string, a name or a comment that is not closed.
pub(crate) fn statements(text: &str) -> Result<Vec<Vec<Token>>> {
    let mut statements = vec![Vec::new()];
    for token in tokenize(text)? {
        if token.kind == Kind::Symbol && &text[token.start..token.end] == ";" {
            statements.push(Vec::new());
        } else if let Some(last) = statements.last_mut() {
            last.push(token);
        }
    }
    statements.retain(|s| !s.is_empty());
    Ok(statements)
}

/// Every token of `text` but white space and comments.
pub(crate) fn tokenize(text: &str) -> Result<Vec<Token>> {
    let raw = Tokenizer::new(&SparkDialect, text)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|e| unclosed(text, place(e.location), &e.message))?;
    let mut offsets = Offsets { text, offset: 0, place: Place { line: 1, column: 1 } };
    let mut tokens: Vec<Token> = Vec::with_capacity(raw.len());
    for item in raw {
        let (mut start, end) = (offsets.of(place(item.span.start)), offsets.of(place(item.span.end)));
        let mut start_place = place(item.span.start);
        let kind = match item.token {
            Raw::Whitespace(_) | Raw::EOF => continue,
            Raw::Word(word) => Kind::Word {
                quoted: word.quote_style.is_some(),
                value: if word.quote_style.is_some() { word.value.replace("``", "`") } else { word.value },
            },
            Raw::Number(..) => Kind::Number,
            Raw::SingleQuotedString(body) | Raw::DoubleQuotedString(body) => {
                let quote = if text[start..].starts_with('"') { '"' } else { '\'' };
                match take_raw_prefix(text, &mut tokens, start) {
                    None => Kind::Text(unescape(&body, quote)),
                    Some(_) if body.contains(quote) => {
                        let message = "a raw string can't hold the quote that it stands in; use the other one";
                        return Err(syntax_error(start_place, message));
                    }
                    Some(prefix) => {
                        (start, start_place) = (prefix.start, prefix.place);
                        Kind::Text(body)
                    }
                }
            }
            Raw::HexStringLiteral(digits) if text[start..].starts_with(['x', 'X']) => Kind::Hex(digits),
            _ => Kind::Symbol,
        };
        tokens.push(Token { kind, start, end, place: start_place, end_place: place(item.span.end) });
    }
    Ok(tokens)
}

/// The `r` of `r'…'`, in which backslashes stand for themselves; the tokenizer takes it for a name before the string.
fn take_raw_prefix(text: &str, before: &mut Vec<Token>, start: usize) -> Option<Token> {
    before.pop_if(|t| t.end == start && text[t.start..t.end].eq_ignore_ascii_case("r"))
}

fn place(location: Location) -> Place {
    Place { line: location.line, column: location.column }
}

/// The tokenizer's failure in words; it can only fail on something that is not closed.
fn unclosed(text: &str, at: Place, message: &str) -> lakesmith_core::Error {
    let offset = Offsets { text, offset: 0, place: Place { line: 1, column: 1 } }.of(at);
    match text[offset..].chars().next() {
        Some('`') => syntax_error(at, "the name in backquotes that starts here is not closed; expected a closing `"),
        Some(quote @ ('\'' | '"')) => {
            syntax_error(at, format!("the string that starts here is not closed; expected a closing {quote}"))
        }
        _ if message.contains("comment") => {
            error_at(at, "UNCLOSED_BRACKETED_COMMENT", "a comment is not closed; expected */ at the end of it")
        }
        _ => syntax_error(at, format!("the text cannot be read as SQL: {}", message.trim_end_matches('.'))),
    }
}

/// Turns places that only grow into byte offsets.
struct Offsets<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

impl Offsets<'_> {
    fn of(&mut self, target: Place) -> usize {
        for c in self.text[self.offset..].chars() {
            if (self.place.line, self.place.column) >= (target.line, target.column) {
                break;
            }
            self.offset += c.len_utf8();
            if c == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokenize(text).unwrap().iter().map(|t| text[t.start..t.end].to_owned()).collect()
    }

    #[test]
    fn tokens_keep_their_place() {
        let text = "OPTIMIZE /* a /* b */ c */ delta.`/ü``x` -- end\n WHERE ü>=-1.5e3";
        assert_eq!(words(text), ["OPTIMIZE", "delta", ".", "`/ü``x`", "WHERE", "ü", ">=", "-", "1.5e3"]);
        let tokens = tokenize(text).unwrap();
        assert_eq!(tokens[3].kind, Kind::Word { value: "/ü`x".into(), quoted: true });
        assert_eq!(tokens[4].place, Place { line: 2, column: 2 });
    }

    #[test]
    fn strings_hide_semicolons_and_quotes() {
        let all = statements("a ';' \"`\" `;` ; ; b -- ;\n").unwrap();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [4, 1]);
        let tokens = tokenize(r"'it''s \'x\'' r'a\nb' X'0aF'").unwrap();
        let kinds: Vec<Kind> = tokens.into_iter().map(|t| t.kind).collect();
        assert_eq!(kinds, [Kind::Text("it's 'x'".into()), Kind::Text(r"a\nb".into()), Kind::Hex("0aF".into())]);
        // What is cut out of the text means the same.
        assert_eq!(words(r#"x RLIKE r'\d' OR R"\w" = r"#), ["x", "RLIKE", r"r'\d'", "OR", r#"R"\w""#, "=", "r"]);
        for text in [r"r'a\'b'", "r'a''b'"] {
            assert_eq!(tokenize(text).unwrap_err().class_name(), "PARSE_SYNTAX_ERROR", "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_named_where_it_starts() {
        for (text, position, word) in [("a 'bc", "2", "string"), ("a `bc", "2", "backquotes"), ("a \"b", "2", "string")]
        {
            let error = tokenize(text).unwrap_err();
            assert_eq!(error.context_value("position"), Some(position), "{text}");
            assert!(error.message().contains(word), "{error}");
        }
        assert_eq!(tokenize("a /* b").unwrap_err().class_name(), "UNCLOSED_BRACKETED_COMMENT");
    }
}
