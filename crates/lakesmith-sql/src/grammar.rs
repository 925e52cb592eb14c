//! The grammar of statements.
//!
//! # Source
//! Delta Spark `DeltaSqlBase.g4`, Spark `SqlBaseParser.g4`.

use lakesmith_core::predicate::Expr;
use lakesmith_core::{Error, Result};

use crate::diagnostic::{error_at, syntax_error};
use crate::expression;
use crate::parser::Parser;
use crate::statement::{Predicate, Span, Statement, StatementKind, StatementOp, TableRef};
use crate::suggest::nearest;
use crate::token::{self, Kind, Token};
use crate::{alter, catalog, create, restore, vacuum};

/// First words of the statements that this room understands.
const OURS: [&str; 15] = [
    "OPTIMIZE", "REORG", "RESTORE", "VACUUM", "DESCRIBE", "DESC", "SHOW", "ALTER", "CREATE", "REPLACE", "DROP", "USE",
    "COMMENT", "SET", "RESET",
];

/// First words of statements that need a query engine.
const QUERIES: [&str; 44] = [
    "SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "INSERT", "DELETE", "UPDATE", "MERGE", "TRUNCATE",
    "CALL", "ANALYZE", "EXPLAIN", "REFRESH", "CACHE", "UNCACHE", "CLEAR", "MSCK", "REPAIR", "CONVERT", "FSCK",
    "GENERATE", "CLONE", "ADD", "LIST", "LOAD", "GRANT", "REVOKE", "DECLARE", "EXECUTE", "BEGIN", "COPY", "UNLOAD",
    "EXPORT", "IMPORT", "LOCK", "UNLOCK", "START", "COMMIT", "ROLLBACK", "UNDROP", "DFS",
];

/// Reads statements separated by `;`. Text without a statement gives none.
///
/// # Errors
/// Usage, mostly `PARSE_SYNTAX_ERROR`, with `line` (from 1) and `position` (from 0); [`crate::render_snippet`] shows the
/// spot.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    token::statements(text)?.iter().map(|tokens| statement(text, tokens)).collect()
}

/// Reads one condition, as it stands after WHERE.
///
/// # Errors
/// As [`parse`].
pub fn parse_predicate(text: &str) -> Result<Expr> {
    let tokens = token::tokenize(text)?;
    let mut parser = Parser::new(text, &tokens);
    let expr = expression::condition(&mut parser)?;
    parser.expect_end("an operator or the end of the condition")?;
    Ok(expr)
}

/// Reads the name of a table as a command line has it: `name`, `database.name` or `catalog.database.name`; `None` if it is
/// something else, such as a path.
pub fn parse_table_name(text: &str) -> Option<Vec<String>> {
    let tokens = token::tokenize(text).ok()?;
    let mut parser = Parser::new(text, &tokens);
    let parts = parser.dotted_name("a name").ok()?;
    parser.at_end().then_some(parts)
}

fn statement(text: &str, tokens: &[Token]) -> Result<Statement> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return Err(Error::internal("a statement without tokens"));
    };
    let source = &text[first.start..last.end];
    let mut parser = Parser::new(text, tokens);
    let kind = match kind(&mut parser)? {
        Some(kind) => kind,
        None => StatementKind::Query { text: source.to_owned() },
    };
    let span = Span {
        line: first.place.line,
        column: first.place.column,
        end_line: last.end_place.line,
        end_column: last.end_place.column,
        start: first.start,
        end: last.end,
    };
    Ok(Statement { kind, span, text: source.to_owned() })
}

/// The statement, or `None` if it is one for a query engine.
fn kind(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    let first = p.advance();
    let word = p.source(&first).to_uppercase();
    let is_describe = matches!(word.as_str(), "DESCRIBE" | "DESC");
    let (table, op) = match word.as_str() {
        "OPTIMIZE" => optimize(p)?,
        "REORG" => reorg(p)?,
        "RESTORE" => restore::statement(p)?,
        "VACUUM" => vacuum::statement(p)?,
        _ if is_describe && p.word_at(0, "DETAIL") && !p.symbol_at(1, ".") => detail(p)?,
        _ if is_describe && p.word_at(0, "HISTORY") && !p.symbol_at(1, ".") => history(p)?,
        "SHOW" if p.eat_word("TBLPROPERTIES") => show_properties(p)?,
        "ALTER" if p.eat_word("TABLE") => match alter(p)? {
            Some(altered) => altered,
            None => return Ok(None),
        },
        "CREATE" | "REPLACE" => {
            if word == "CREATE"
                && let Some(created) = catalog::create_database(p)?
            {
                return Ok(Some(created));
            }
            match create::statement(p, word == "REPLACE")? {
                Some(created) => created,
                None => return Ok(None),
            }
        }
        _ if is_describe => return catalog::describe(p),
        "SHOW" => return catalog::show(p),
        "DROP" => return catalog::drop(p),
        "USE" => return catalog::use_database(p),
        "COMMENT" => return catalog::comment(p),
        "SET" => return set(p).map(Some),
        "RESET" => return reset(p).map(Some),
        "ALTER" | "(" => return Ok(None),
        _ if QUERIES.contains(&word.as_str()) => return Ok(None),
        _ => {
            let expected = match nearest(&word, OURS.into_iter().chain(QUERIES)) {
                Some(meant) => format!("a statement; did you mean {meant}?"),
                None => "a statement such as OPTIMIZE, REORG TABLE, VACUUM, DESCRIBE DETAIL, SET or RESET".to_owned(),
            };
            let near = p.source(&first);
            return Err(syntax_error(first.place, format!("Syntax error at or near '{near}': expected {expected}")));
        }
    };
    Ok(Some(StatementKind::Table { table, op }))
}

fn optimize(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    let table = table(p)?;
    let full = p.eat_word("FULL");
    let predicate = where_clause(p)?;
    let zorder_by = if p.eat_word("ZORDER") { zorder_columns(p)? } else { Vec::new() };
    p.expect_end(match (&predicate, zorder_by.is_empty(), full) {
        (_, false, _) => "',' or the end of the statement",
        (Some(_), ..) => "an operator, ZORDER BY or the end of the statement",
        (None, _, true) => "WHERE, ZORDER BY or the end of the statement",
        (None, _, false) => "FULL, WHERE, ZORDER BY or the end of the statement",
    })?;
    Ok((table, StatementOp::Optimize { full, predicate, zorder_by }))
}

fn zorder_columns(p: &mut Parser<'_>) -> Result<Vec<Vec<String>>> {
    p.expect_word("BY")?;
    let in_parentheses = p.eat_symbol("(");
    let mut columns = vec![p.dotted_name("a column")?];
    while p.eat_symbol(",") {
        columns.push(p.dotted_name("a column")?);
    }
    if in_parentheses && !p.eat_symbol(")") {
        return Err(p.unexpected("',' or ')'"));
    }
    Ok(columns)
}

fn reorg(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    p.expect_word("TABLE")?;
    let table = table(p)?;
    let predicate = where_clause(p)?;
    if !p.eat_word("APPLY") {
        return Err(p.unexpected(if predicate.is_some() {
            "an operator or APPLY (PURGE)"
        } else {
            "WHERE or APPLY (PURGE)"
        }));
    }
    p.expect_symbol("(")?;
    if p.word_at(0, "UPGRADE") {
        let upgrade = p.advance();
        return Err(unsupported_upgrade(p, &upgrade)?);
    }
    if !p.eat_word("PURGE") {
        return Err(p.unexpected("PURGE"));
    }
    p.expect_symbol(")")?;
    p.expect_end("the end of the statement")?;
    Ok((table, StatementOp::ReorgPurge { predicate }))
}

/// Reads `UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))` and returns the refusal.
fn unsupported_upgrade(p: &mut Parser<'_>, upgrade: &Token) -> Result<Error> {
    p.expect_word("UNIFORM")?;
    p.expect_symbol("(")?;
    p.expect_word("ICEBERG_COMPAT_VERSION")?;
    p.expect_symbol("=")?;
    if p.peek().kind != Kind::Number {
        return Err(p.unexpected("a version number"));
    }
    p.advance();
    p.expect_symbol(")")?;
    p.expect_symbol(")")?;
    p.expect_end("the end of the statement")?;
    Ok(Error::unsupported("REORG … APPLY (UPGRADE UNIFORM …) is not supported; APPLY (PURGE) is")
        .class("UNSUPPORTED_FEATURE")
        .with(crate::diagnostic::LINE, upgrade.place.line)
        .with(crate::diagnostic::POSITION, upgrade.place.column - 1))
}

fn detail(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    p.expect_word("DETAIL")?;
    let table = table(p)?;
    p.expect_end("the end of the statement")?;
    Ok((table, StatementOp::Detail))
}

fn history(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    p.expect_word("HISTORY")?;
    let table = table(p)?;
    let limit = if p.eat_word("LIMIT") {
        let number = p.peek().clone();
        let parsed = if number.kind == Kind::Number { p.source(&number).parse().ok() } else { None };
        let Some(limit) = parsed else { return Err(p.unexpected("a whole number")) };
        p.advance();
        Some(limit)
    } else {
        None
    };
    p.expect_end(if limit.is_some() { "the end of the statement" } else { "LIMIT or the end of the statement" })?;
    Ok((table, StatementOp::History { limit }))
}

fn show_properties(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    let table = table(p)?;
    let key = if p.eat_symbol("(") {
        let key = property_key(p)?;
        p.expect_symbol(")")?;
        Some(key)
    } else {
        None
    };
    p.expect_end(if key.is_some() { "the end of the statement" } else { "('key') or the end of the statement" })?;
    Ok((table, StatementOp::ShowProperties { key }))
}

/// What follows ALTER TABLE; `None` for statements that are not for us.
fn alter(p: &mut Parser<'_>) -> Result<Option<(TableRef, StatementOp)>> {
    let table = table(p)?;
    if p.eat_words(&["CLUSTER", "BY"]) {
        let columns = if p.eat_word("NONE") { Vec::new() } else { create::cluster_columns(p)? };
        p.expect_end("the end of the statement")?;
        return Ok(Some((table, StatementOp::ClusterBy { columns })));
    }
    if let Some(change) = alter::change(p)? {
        return Ok(Some((table, StatementOp::Alter(change))));
    }
    let is_set = p.eat_words(&["SET", "TBLPROPERTIES"]);
    if !is_set && !p.eat_words(&["UNSET", "TBLPROPERTIES"]) {
        return if p.at_end() {
            Err(p.unexpected("ADD, ALTER, RENAME or DROP COLUMN, SET or UNSET TBLPROPERTIES, or CLUSTER BY"))
        } else {
            Ok(None)
        };
    }
    let if_exists = !is_set && p.eat_words(&["IF", "EXISTS"]);
    let place = p.peek().place;
    let properties = property_list(p)?;
    p.expect_end("the end of the statement")?;
    for (i, (key, value)) in properties.iter().enumerate() {
        let not_allowed = |message: String| error_at(place, "PARSE_SYNTAX_ERROR", message);
        if is_set && value.is_none() {
            return Err(not_allowed(format!("Operation not allowed: Values must be specified for key(s): [{key}]")));
        }
        if !is_set && value.is_some() {
            return Err(not_allowed(format!(
                "Operation not allowed: Values should not be specified for key(s): [{key}]"
            )));
        }
        if properties[..i].iter().any(|(other, _)| other == key) {
            return Err(error_at(place, "DUPLICATE_KEY", format!("Found duplicate keys `{key}`")));
        }
    }
    let (mut set, mut unset) = (Vec::new(), Vec::new());
    for (key, value) in properties {
        match value {
            Some(value) => set.push((key, value)),
            None => unset.push(key),
        }
    }
    Ok(Some((table, StatementOp::AlterProperties { set, unset, if_exists })))
}

pub(crate) fn property_list(p: &mut Parser<'_>) -> Result<Vec<(String, Option<String>)>> {
    p.expect_symbol("(")?;
    let mut properties = Vec::new();
    loop {
        let key = property_key(p)?;
        let has_sign = p.eat_symbol("=") || p.eat_symbol("==");
        let value = property_value(p);
        if has_sign && value.is_none() {
            return Err(p.unexpected("a string, a number, true or false"));
        }
        properties.push((key, value));
        if p.eat_symbol(")") {
            return Ok(properties);
        }
        if !p.eat_symbol(",") {
            return Err(p.unexpected("'=', ',' or ')'"));
        }
    }
}

fn property_key(p: &mut Parser<'_>) -> Result<String> {
    match string(p) {
        Some(key) => Ok(key),
        None => Ok(p.dotted_name("a property key")?.join(".")),
    }
}

fn property_value(p: &mut Parser<'_>) -> Option<String> {
    if let Some(text) = string(p) {
        return Some(text);
    }
    let token = p.peek().clone();
    let source = p.source(&token);
    let is_value = match token.kind {
        Kind::Number => true,
        Kind::Word { quoted: false, .. } => source.eq_ignore_ascii_case("true") || source.eq_ignore_ascii_case("false"),
        _ => false,
    };
    is_value.then(|| {
        p.advance();
        source.to_lowercase()
    })
}

pub(crate) fn string(p: &mut Parser<'_>) -> Option<String> {
    let Kind::Text(value) = &p.peek().kind else { return None };
    let value = value.clone();
    p.advance();
    Some(value)
}

pub(crate) fn table(p: &mut Parser<'_>) -> Result<TableRef> {
    if let Some(path) = string(p) {
        return Ok(TableRef::Path(path));
    }
    let format = p.word_at(0, "DELTA") || p.word_at(0, "ICEBERG");
    if format && p.symbol_at(1, ".") && !matches!(p.peek_at(2).kind, Kind::Word { .. }) {
        p.advance();
        p.advance();
        return Err(p.unexpected("a path in backquotes, as in delta.`/path/to/table`"));
    }
    Ok(TableRef::of_parts(p.dotted_name("a table, as in delta.`/path/to/table`")?))
}

fn where_clause(p: &mut Parser<'_>) -> Result<Option<Predicate>> {
    if !p.eat_word("WHERE") {
        return Ok(None);
    }
    let start = p.peek().start;
    let expr = expression::condition(p)?;
    Ok(Some((expr, p.text[start..p.previous().end].to_owned())))
}

fn set(p: &mut Parser<'_>) -> Result<StatementKind> {
    if p.at_end() {
        return Ok(StatementKind::Set { key: None, value: None });
    }
    if p.eat_words(&["TIME", "ZONE"]) {
        let Some(zone) = string(p) else { return Err(p.unexpected("a time zone in quotes")) };
        p.expect_end("the end of the statement")?;
        return Ok(StatementKind::Set { key: Some("spark.sql.session.timeZone".into()), value: Some(zone) });
    }
    let key = setting_key(p)?;
    if p.at_end() {
        return Ok(StatementKind::Set { key: Some(key), value: None });
    }
    if !p.eat_symbol("=") {
        return Err(bad_set(p));
    }
    // The value is free text up to the end; only backquotes are taken away.
    let first = p.peek().clone();
    let mut end = first.start;
    while !p.at_end() {
        end = p.advance().end;
    }
    let value = match &first.kind {
        Kind::Word { value, quoted: true } if first.end == end => value.clone(),
        _ => p.text[first.start..end].to_owned(),
    };
    Ok(StatementKind::Set { key: Some(key), value: Some(value) })
}

fn reset(p: &mut Parser<'_>) -> Result<StatementKind> {
    let key = if p.at_end() { None } else { Some(setting_key(p)?) };
    p.expect_end("the end of the statement")?;
    Ok(StatementKind::Reset { key })
}

/// Everything up to white space, `=` or the end.
fn setting_key(p: &mut Parser<'_>) -> Result<String> {
    let first = p.peek().clone();
    match &first.kind {
        Kind::Word { value, quoted: true } => {
            p.advance();
            return Ok(value.clone());
        }
        Kind::Word { .. } => {}
        _ => return Err(bad_set(p)),
    }
    let mut end = first.start;
    while !p.at_end() && p.peek().start == end && !p.symbol_at(0, "=") {
        end = p.advance().end;
    }
    Ok(p.text[first.start..end].to_owned())
}

fn bad_set(p: &Parser<'_>) -> Error {
    error_at(
        p.peek().place,
        "INVALID_SET_SYNTAX",
        "Expected format is 'SET', 'SET key', or 'SET key=value'; put special characters in backquotes, as in SET \
         `key`=`value`",
    )
}
