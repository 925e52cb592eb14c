//! Text to tree, with the place of every mistake.

use datafusion::sql::sqlparser::ast::{CreateView, Expr, Query, SelectItem, SetExpr, Statement, TableFactor, With};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location as Place, Token, TokenWithSpan, Tokenizer, Whitespace};
use lakesmith::{Error, Result};

use super::change::{Change, Files, file_hint, parse_change, with_queries};
use super::dialect::SparkDialect;
use super::forms::{settle_forms, take_queries_before};
use super::spelling::Places;
use super::tokens::{check_depth, join_suffixes, read_strings};

/// Nesting that a statement may have.
const DEPTH_MAX: usize = 200;

/// Formats whose tables are named by path.
const PATH_FORMATS: [&str; 7] = ["delta", "iceberg", "parquet", "csv", "json", "orc", "text"];

/// How a plan is to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explain {
    /// Files and the plan.
    Plan,
    /// The same after a run, with what it took.
    Analyze,
}

/// What a statement does.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A query.
    Query(Box<Query>),
    /// CREATE [OR REPLACE] TEMPORARY VIEW
    CreateView(Box<CreateView>),
    /// DROP VIEW; the name, and whether it may be missing.
    DropView(String, bool),
    /// A change of a table's rows.
    Change(Change),
}

/// A statement.
#[derive(Debug, Clone)]
pub(crate) struct Parsed {
    /// What it does.
    pub kind: Kind,
    /// Whether it is only to be explained.
    pub explain: Option<Explain>,
    /// How many files new rows go to: `/*+ REPARTITION(n) */` or `/*+ COALESCE(n) */`.
    pub files: Option<Files>,
    /// Spellings of names by place.
    pub spelled: Places,
}

/// Parses one statement. Names are in lower case in the tree, paths as they are.
///
/// # Errors
/// Usage (`PARSE_SYNTAX_ERROR`) with `line` and `position` in `text`, Unsupported for a statement that is no query.
pub(crate) fn parse(text: &str) -> Result<Parsed> {
    parse_at(text, 0)
}

/// The same with `lines` before the text.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_at(text: &str, lines: u64) -> Result<Parsed> {
    let mut tokens = Tokenizer::new(&SparkDialect, text)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|e| syntax_error(&e.message, e.location.line, e.location.column))?;
    let files = hinted_files(&tokens);
    check_depth(&tokens)?;
    read_strings(&mut tokens)?;
    for token in &mut tokens {
        token.span.start.line += lines;
        token.span.end.line += lines;
    }
    join_suffixes(&mut tokens);
    let spelled = fold_names(&mut tokens);
    let explain = take_explain(&mut tokens);
    settle_forms(&mut tokens);
    let before = take_queries_before(&mut tokens).map(|before| queries_before(before, text)).transpose()?;
    let mut parser = Parser::new(&SparkDialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
    if let Some(mut change) = parse_change(&mut parser, text).map_err(|e| parser_error(e, text))? {
        at_end(&parser)?;
        if explain.is_some() {
            return Err(not_explained());
        }
        if let (Change::Insert(insert), Some(before)) = (&mut change, before) {
            with_queries(insert, before);
        }
        return Ok(Parsed { kind: Kind::Change(change), explain, spelled, files });
    }
    let statement = parser.parse_statement().map_err(|e| parser_error(e, text))?;
    at_end(&parser)?;
    let kind = match statement {
        Statement::Query(query) => Kind::Query(query),
        Statement::CreateView(mut view) if view.temporary => {
            if !view.columns.is_empty() {
                name_view_columns(&mut view)?;
            }
            Kind::CreateView(Box::new(view))
        }
        Statement::Drop { object_type, if_exists, names, .. } if object_type.to_string() == "VIEW" => {
            let [name] = names.as_slice() else {
                return Err(Error::usage(
                    "Syntax error: DROP VIEW takes one name; drop each view by a statement of its own",
                )
                .class("PARSE_SYNTAX_ERROR"));
            };
            Kind::DropView(name.to_string().replace('`', ""), if_exists)
        }
        other => {
            let word: String = other.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            return Err(Error::unsupported(format!(
                "the query engine does not run {word} …; it runs SELECT, WITH, VALUES, \
                 INSERT, DELETE, EXPLAIN and CREATE TEMPORARY VIEW"
            ))
            .class("UNSUPPORTED_FEATURE"));
        }
    };
    if explain.is_some() && !matches!(kind, Kind::Query(_)) {
        return Err(not_explained());
    }
    Ok(Parsed { kind, explain, spelled, files })
}

fn not_explained() -> Error {
    Error::unsupported("EXPLAIN explains queries alone; nothing was done").class("UNSUPPORTED_FEATURE")
}

/// Gives the columns of a view's query the names that stand behind the view's.
fn name_view_columns(view: &mut CreateView) -> Result<()> {
    let names: Vec<String> = view.columns.iter().map(|column| column.name.to_string()).collect();
    let text =
        format!("SELECT * FROM (SELECT 1) AS `{}` ({})", view.name.to_string().replace('`', ""), names.join(", "));
    let mut whole = parse(&text)?;
    let (Kind::Query(query), columns) = (&mut whole.kind, view.columns.drain(..)) else {
        return Err(Error::internal("a view's query became another statement"));
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("a view's query is no SELECT"));
    };
    if let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) =
        select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(subquery, &mut view.query);
        for (named, column) in alias.columns.iter_mut().zip(columns) {
            named.name = column.name;
        }
    }
    std::mem::swap(query, &mut view.query);
    Ok(())
}

/// Parses WITH … by itself.
fn queries_before(mut tokens: Vec<TokenWithSpan>, text: &str) -> Result<With> {
    let words = Tokenizer::new(&SparkDialect, " SELECT 1").tokenize_with_location();
    tokens.extend(words.map_err(|e| Error::internal(e.message))?);
    let mut parser = Parser::new(&SparkDialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
    let query = parser.parse_query().map_err(|e| parser_error(e, text))?;
    at_end(&parser)?;
    query.with.ok_or_else(|| Error::internal("a query that begins by WITH has none"))
}

/// Parses one expression, as a table's own texts hold them.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_expression(text: &str) -> Result<Expr> {
    let parsed = parse(&format!("SELECT {text}"))?;
    let Kind::Query(query) = parsed.kind else { return Err(Error::internal("an expression is no query")) };
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) if select.projection.is_empty() => Ok(expr),
            _ => Err(Error::usage(format!("'{text}' is not one expression")).class("PARSE_SYNTAX_ERROR")),
        },
        _ => Err(Error::usage(format!("'{text}' is not one expression")).class("PARSE_SYNTAX_ERROR")),
    }
}

/// What hints say of files.
fn hinted_files(tokens: &[TokenWithSpan]) -> Option<Files> {
    tokens.iter().find_map(|token| match &token.token {
        Token::Whitespace(Whitespace::MultiLineComment(comment)) => file_hint(comment),
        _ => None,
    })
}

fn at_end(parser: &Parser<'_>) -> Result<()> {
    let rest = parser.peek_token();
    if rest.token == Token::EOF {
        return Ok(());
    }
    let (line, column) = (rest.span.start.line, rest.span.start.column);
    Err(syntax_error(&format!("expected the end of the statement, found '{}'", rest.token), line, column))
}

/// Puts names in lower case and keeps how they were spelled.
fn fold_names(tokens: &mut [TokenWithSpan]) -> Places {
    let mut spelled = Places::new();
    let mut before: [Option<String>; 2] = [None, None];
    for token in tokens.iter_mut() {
        let is_path =
            before[1].as_deref() == Some(".") && before[0].as_deref().is_some_and(|word| PATH_FORMATS.contains(&word));
        match &mut token.token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => {
                let Place { line, column } = token.span.start;
                let value = if word.quote_style.is_some() { word.value.replace("``", "`") } else { word.value.clone() };
                if !(is_path && word.quote_style.is_some()) {
                    word.value = value.to_lowercase();
                } else {
                    word.value.clone_from(&value);
                }
                spelled.insert((line, column), value);
                before = [before[1].take(), Some(word.value.clone())];
            }
            Token::Period => before = [before[1].take(), Some(".".to_owned())],
            _ => before = [None, None],
        }
    }
    spelled
}

/// Takes EXPLAIN and its words off the front.
fn take_explain(tokens: &mut Vec<TokenWithSpan>) -> Option<Explain> {
    let mut explain = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let word = match &token.token {
            Token::Whitespace(_) => {
                at += 1;
                continue;
            }
            Token::Word(word) if word.quote_style.is_none() => word.value.as_str(),
            _ => break,
        };
        match (word, explain) {
            ("explain", None) => explain = Some(Explain::Plan),
            ("analyze", Some(_)) => explain = Some(Explain::Analyze),
            ("extended" | "formatted" | "cost" | "codegen" | "verbose", Some(_)) => {}
            _ => break,
        }
        at += 1;
        tokens.drain(..at);
        at = 0;
    }
    explain
}

/// The parser ends its messages with the place.
fn parser_error(error: ParserError, text: &str) -> Error {
    let message = match &error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message.clone(),
        ParserError::RecursionLimitExceeded => {
            return Error::usage(format!(
                "the statement is nested more than {DEPTH_MAX} levels deep; write it flatter"
            ))
            .class("PARSE_SYNTAX_ERROR");
        }
    };
    let end = || {
        let last = text.lines().last().unwrap_or_default();
        (text.lines().count().max(1) as u64, last.chars().count() as u64 + 1)
    };
    let (what, place) = match message.rsplit_once(" at Line: ") {
        Some((what, place)) => {
            let mut numbers = place.split(", Column: ").map(|n| n.trim().parse::<u64>().ok());
            (what.to_owned(), numbers.next().flatten().zip(numbers.next().flatten()))
        }
        None => (message, None),
    };
    let (line, column) = place.unwrap_or_else(end);
    syntax_error(&what, line, column)
}

pub(super) fn syntax_error(what: &str, line: u64, column: u64) -> Error {
    let what = what.trim_end_matches('.').replace("Expected: ", "expected ");
    Error::usage(format!("Syntax error: {what}"))
        .class("PARSE_SYNTAX_ERROR")
        .with("line", line)
        .with("position", column.saturating_sub(1))
}
