//! A cursor over the tokens of one statement, and the syntax errors that it raises.

use lakesmith_core::{Error, Result};

use crate::diagnostic::{Place, syntax_error};
use crate::token::{Kind, Token};

/// Nesting that an expression may have: deep enough for people, shallow enough for every thread's stack.
const MAX_DEPTH: usize = 100;

/// Operators that a statement may have; in a chain each costs a level of the tree.
const MAX_OPERATORS: usize = 2000;

/// Reads one statement's tokens from left to right.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    tokens: &'a [Token],
    end: Token,
    at: usize,
    depth: usize,
    operators: usize,
}

impl<'a> Parser<'a> {
    /// A cursor before the first of `tokens`.
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        let (offset, place) =
            tokens.last().map_or((0, Place { line: 1, column: 1 }), |last| (last.end, last.end_place));
        let end = Token { kind: Kind::End, start: offset, end: offset, place, end_place: place };
        Self { text, tokens, end, at: 0, depth: 0, operators: 0 }
    }

    /// How many tokens were taken.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// A cursor over the tokens from `start` to `end` alone.
    pub(crate) fn between(&self, start: usize, end: usize) -> Parser<'a> {
        Parser::new(self.text, self.tokens.get(start..end).unwrap_or_default())
    }

    /// The token `ahead` of the next.
    pub(crate) fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.at + ahead).unwrap_or(&self.end)
    }

    pub(crate) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    /// The token before the next.
    pub(crate) fn previous(&self) -> &Token {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).unwrap_or(&self.end)
    }

    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    pub(crate) fn source(&self, token: &Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub(crate) fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    /// True if the token `ahead` is the keyword, in any case and without quotes.
    pub(crate) fn word_at(&self, ahead: usize, keyword: &str) -> bool {
        matches!(&self.peek_at(ahead).kind, Kind::Word { value, quoted: false } if value.eq_ignore_ascii_case(keyword))
    }

    pub(crate) fn symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        let token = self.peek_at(ahead);
        token.kind == Kind::Symbol && self.source(token) == symbol
    }

    /// Takes the keyword if it is next.
    pub(crate) fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.word_at(0, keyword);
        self.at += usize::from(found);
        found
    }

    /// Takes the keywords if all of them are next.
    pub(crate) fn eat_words(&mut self, keywords: &[&str]) -> bool {
        let found = keywords.iter().enumerate().all(|(i, k)| self.word_at(i, k));
        self.at += if found { keywords.len() } else { 0 };
        found
    }

    pub(crate) fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = self.symbol_at(0, symbol);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect_word(&mut self, keyword: &str) -> Result<()> {
        if self.eat_word(keyword) { Ok(()) } else { Err(self.unexpected(keyword)) }
    }

    pub(crate) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}'"))) }
    }

    pub(crate) fn expect_end(&self, otherwise: &str) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected(otherwise)) }
    }

    /// A name: a word, quoted or not. Spark's maintenance keywords are not reserved.
    pub(crate) fn name(&mut self, expected: &str) -> Result<String> {
        match &self.peek().kind {
            Kind::Word { value, .. } => {
                let value = value.clone();
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Names joined by points.
    pub(crate) fn dotted_name(&mut self, expected: &str) -> Result<Vec<String>> {
        let mut parts = vec![self.name(expected)?];
        while self.eat_symbol(".") {
            parts.push(self.name("a name after '.'")?);
        }
        Ok(parts)
    }

    /// Runs `inner` one level deeper.
    pub(crate) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(syntax_error(
                self.peek().place,
                format!("the expression is nested more than {MAX_DEPTH} levels deep; write it flatter"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Counts an operator that is next.
    pub(crate) fn count_operator(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators <= MAX_OPERATORS {
            return Ok(());
        }
        let message = format!("the condition has more than {MAX_OPERATORS} operators; write terms in a row as IN (…)");
        Err(syntax_error(self.peek().place, message))
    }

    /// The error that the next token is not what was expected.
    pub(crate) fn unexpected(&self, expected: &str) -> Error {
        let token = self.peek();
        let near = match token.kind {
            Kind::End => "end of input".to_owned(),
            _ => format!("'{}'", self.source(token)),
        };
        syntax_error(token.place, format!("Syntax error at or near {near}: expected {expected}"))
    }
}
