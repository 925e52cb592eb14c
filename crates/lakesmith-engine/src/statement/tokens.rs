//! What is settled about a statement's tokens before they are parsed.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use lakesmith::{Result, unescape};

use super::literals::suffix;
use super::parse::syntax_error;

/// Operators, set operations and joins that may stand in a row: each is a level of the tree.
const CHAIN_MAX: usize = 2000;

/// What an operator that computes counts for: planning it takes that much longer.
const ARITHMETIC: usize = 5;

/// Joins number literals with the letters right behind them that tell their type: `1.5D`, `5S`.
pub(super) fn join_suffixes(tokens: &mut Vec<TokenWithSpan>) {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens.drain(..) {
        if let (Token::Word(word), Some(last)) = (&token.token, joined.last_mut())
            && word.quote_style.is_none()
            && last.span.end == token.span.start
            && let Token::Number(digits, false) = &mut last.token
            && suffix(&format!("{digits}{}", word.value)).is_some_and(|(number, _)| number == digits.as_str())
        {
            digits.push_str(&word.value);
            last.span.end = token.span.end;
            continue;
        }
        joined.push(token);
    }
    *tokens = joined;
}

/// Reads strings as Spark does: escapes stand for characters, `r'…'` has none, strings in a row are one.
///
/// # Errors
/// Usage for a raw string with its own quote inside, which the tokenizer takes for another string.
pub(super) fn read_strings(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut read: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens.drain(..) {
        let start = token.span.start;
        let (body, quote) = match &mut token.token {
            Token::SingleQuotedString(body) => (body, '\''),
            Token::DoubleQuotedString(body) => (body, '"'),
            _ => {
                read.push(token);
                continue;
            }
        };
        let prefix = read.pop_if(|before| {
            before.span.end == start
                && matches!(&before.token, Token::Word(word)
                    if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("r"))
        });
        match prefix {
            None => *body = unescape(body, quote),
            Some(_) if body.contains(quote) => {
                let what = "a raw string can't hold the quote that it stands in; use the other one";
                return Err(syntax_error(what, start.line, start.column));
            }
            Some(prefix) => token.span.start = prefix.span.start,
        }
        let (Token::SingleQuotedString(more) | Token::DoubleQuotedString(more)) = &token.token else { continue };
        let before = read.iter_mut().rev().find(|before| !matches!(before.token, Token::Whitespace(_)));
        match before.map(|before| &mut before.token) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => text.push_str(more),
            _ => read.push(token),
        }
    }
    *tokens = read;
    Ok(())
}

/// Refuses statements whose tree would be too deep.
///
/// # Errors
/// Usage with the place of the first operator too many.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    // Operators since the last comma, for every parenthesis that is open; a comma starts another tree beside the last one.
    let mut operators = vec![0_usize];
    let mut relations = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => operators.push(0),
            Token::RParen | Token::RBracket if operators.len() > 1 => drop(operators.pop()),
            Token::Comma => operators.last_mut().into_iter().for_each(|last| *last = 0),
            Token::Word(word) if word.quote_style.is_none() => match word.value.to_ascii_lowercase().as_str() {
                "union" | "except" | "intersect" | "minus" | "join" => {
                    relations += 1;
                    operators.last_mut().into_iter().for_each(|last| *last = 0);
                }
                "and" | "or" | "not" | "div" | "is" | "in" | "like" | "rlike" | "between" => {
                    operators.last_mut().into_iter().for_each(|last| *last += 1);
                }
                _ => {}
            },
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => {
                operators.last_mut().into_iter().for_each(|last| *last += ARITHMETIC);
            }
            Token::Whitespace(_)
            | Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::Period
            | Token::SemiColon
            | Token::EOF => {}
            _ => operators.last_mut().into_iter().for_each(|last| *last += 1),
        }
        if operators.iter().sum::<usize>() + relations > CHAIN_MAX {
            let what = format!(
                "more than {CHAIN_MAX} operators in a row (one that computes counts for {ARITHMETIC}); write comparisons with one column as IN (…), rows as VALUES"
            );
            return Err(syntax_error(&what, token.span.start.line, token.span.start.column));
        }
    }
    Ok(())
}
