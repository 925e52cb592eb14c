//! INSERT and DELETE from tokens to a tree.
//!
//! # Source
//! Spark `SqlBaseParser.g4`, `insertInto`, `deleteFromTable`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, TableAlias, Visit as _, Visitor, With};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use lakesmith::TableRef;

/// A statement that changes the rows of a table.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// INSERT
    Insert(Box<Insert>),
    /// DELETE
    Delete(Box<Delete>),
}

/// INSERT
#[derive(Debug, Clone)]
pub(crate) struct Insert {
    /// The table.
    pub table: ObjectName,
    /// The columns that the rows have, in their order, in lower case.
    pub columns: Option<Vec<Ident>>,
    /// BY NAME: the rows' columns say themselves which they are.
    pub by_name: bool,
    /// PARTITION (p = 1, q): columns with a value, and columns that the rows have, last.
    pub partition: Vec<(Ident, Option<Condition>)>,
    /// What becomes of the rows that were there.
    pub rows_before: RowsBefore,
    /// Where the rows come from.
    pub source: Box<Query>,
}

/// What becomes of the rows that were there.
#[derive(Debug, Clone)]
pub(crate) enum RowsBefore {
    /// INTO
    Stay,
    /// OVERWRITE
    Go,
    /// INTO … REPLACE WHERE
    GoWhere(Box<Condition>),
}

/// How many files new rows go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// To so many, evenly.
    Exactly(usize),
    /// To so many at most.
    AtMost(usize),
}

/// DELETE
#[derive(Debug, Clone)]
pub(crate) struct Delete {
    /// The table.
    pub table: ObjectName,
    /// What the condition calls it.
    pub alias: Option<TableAlias>,
    /// WHERE
    pub condition: Option<Condition>,
}

/// A condition or a value, and how it is written: a tree's own text means other things where strings hold quotes.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// The tree.
    pub expr: Expr,
    /// Its text.
    pub text: String,
}

/// The table that a name or a path stands for.
pub(crate) fn table_ref(name: &ObjectName) -> TableRef {
    let parts: Vec<String> =
        name.0.iter().filter_map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
    TableRef::of_parts(parts)
}

/// True if there is a query inside of the expression.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    expr.visit(&mut Queries).is_break()
}

/// Parses INSERT and DELETE; `None` if the statement is another one. `text` is that of the tokens.
pub(super) fn parse_change(parser: &mut Parser<'_>, text: &str) -> Result<Option<Change>, ParserError> {
    if parser.parse_keyword(Keyword::INSERT) {
        return insert(parser, text).map(|insert| Some(Change::Insert(Box::new(insert))));
    }
    if parser.parse_keyword(Keyword::DELETE) {
        parser.expect_keyword(Keyword::FROM)?;
        let table = parser.parse_object_name(false)?;
        let alias = parser.maybe_parse_table_alias()?;
        let condition = if parser.parse_keyword(Keyword::WHERE) { Some(condition(parser, text)?) } else { None };
        return Ok(Some(Change::Delete(Box::new(Delete { table, alias, condition }))));
    }
    Ok(None)
}

fn insert(parser: &mut Parser<'_>, text: &str) -> Result<Insert, ParserError> {
    let mut rows_before = if parser.parse_keyword(Keyword::OVERWRITE) {
        let _ = parser.parse_keyword(Keyword::INTO);
        RowsBefore::Go
    } else {
        parser.expect_keyword(Keyword::INTO)?;
        RowsBefore::Stay
    };
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = parser.parse_object_name(false)?;
    let mut partition = Vec::new();
    if parser.parse_keyword(Keyword::PARTITION) {
        parser.expect_token(&Token::LParen)?;
        loop {
            let column = parser.parse_identifier()?;
            let value = if parser.consume_token(&Token::Eq) { Some(condition(parser, text)?) } else { None };
            partition.push((column, value));
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    let mut columns = None;
    let mut by_name = false;
    if parser.parse_keywords(&[Keyword::BY, Keyword::NAME]) {
        by_name = true;
    } else if names_columns(parser) {
        parser.expect_token(&Token::LParen)?;
        columns = Some(parser.parse_comma_separated(Parser::parse_identifier)?);
        parser.expect_token(&Token::RParen)?;
    }
    if matches!(rows_before, RowsBefore::Stay) && parser.parse_keywords(&[Keyword::REPLACE, Keyword::WHERE]) {
        rows_before = RowsBefore::GoWhere(Box::new(condition(parser, text)?));
    }
    let source = parser.parse_query()?;
    Ok(Insert { table, columns, by_name, partition, rows_before, source })
}

/// The query of an INSERT with queries that were named before it.
pub(super) fn with_queries(insert: &mut Insert, mut before: With) {
    before.cte_tables.extend(insert.source.with.take().into_iter().flat_map(|with| with.cte_tables));
    insert.source.with = Some(before);
}

/// True if columns follow in parentheses, and not a query.
fn names_columns(parser: &Parser<'_>) -> bool {
    if parser.peek_token_ref().token != Token::LParen {
        return false;
    }
    let query = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES, Keyword::FROM, Keyword::TABLE];
    match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => word.quote_style.is_some() || !query.contains(&word.keyword),
        _ => false,
    }
}

fn condition(parser: &mut Parser<'_>, text: &str) -> Result<Condition, ParserError> {
    let start = parser.peek_token_ref().span.start;
    let expr = parser.parse_expr()?;
    let end = parser.get_current_token().span.end;
    let slice = text.get(offset(text, start.line, start.column)..offset(text, end.line, end.column));
    Ok(Condition { text: slice.map_or_else(|| expr.to_string(), |t| t.trim().to_owned()), expr })
}

/// The byte at a line and a column, both from 1; columns count characters.
fn offset(text: &str, line: u64, column: u64) -> usize {
    let mut start = 0;
    for _ in 1..line {
        start = text[start..].find('\n').map_or(text.len(), |at| start + at + 1);
    }
    let before = column.saturating_sub(1) as usize;
    text[start..].char_indices().nth(before).map_or(text.len(), |(at, _)| start + at)
}

/// Files that a hint may ask for: each is written by a thread of its own. A hint beyond that is passed over.
const FILES_MAX: usize = 2000;

/// How many files a hint asks for.
pub(super) fn file_hint(comment: &str) -> Option<Files> {
    let hints = comment.trim_start().strip_prefix('+')?;
    hints
        .split(')')
        .filter_map(|hint| {
            let (name, arguments) = hint.split_once('(')?;
            let count = arguments
                .split(',')
                .next()?
                .trim()
                .parse::<usize>()
                .ok()
                .filter(|count| (1..=FILES_MAX).contains(count))?;
            match name.trim_start_matches([',', ' ', '\n', '\t']).trim().to_ascii_uppercase().as_str() {
                "REPARTITION" | "REBALANCE" => Some(Files::Exactly(count)),
                "COALESCE" => Some(Files::AtMost(count)),
                _ => None,
            }
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_say_how_many_files() {
        assert_eq!(file_hint("+ REPARTITION(40) "), Some(Files::Exactly(40)));
        assert_eq!(file_hint("+ BROADCAST(t), coalesce( 3 )"), Some(Files::AtMost(3)));
        assert_eq!(file_hint("+ REPARTITION(c)"), None);
        assert_eq!(file_hint("+ REPARTITION(0)"), None);
        assert_eq!(file_hint(" REPARTITION(4)"), None);
    }

    #[test]
    fn places_become_offsets() {
        let text = "aä\nbö x";
        assert_eq!(&text[offset(text, 2, 2)..offset(text, 2, 4)], "ö ");
        assert_eq!(offset(text, 2, 99), text.len());
    }
}
