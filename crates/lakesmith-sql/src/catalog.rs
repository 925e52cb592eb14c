//! Statements about names: databases, tables in them, and what is known of a table's columns.
//!
//! # Source
//! Spark `SqlBaseParser.g4`: `createNamespace`, `dropNamespace`, `use`, `showNamespaces`, `showTables`, `showColumns`,
//! `showCreateTable`, `describeRelation`, `describeNamespace`, `dropTable`, `commentTable`.

use lakesmith_core::Result;

use crate::diagnostic::error_at;
use crate::grammar::{string, table};
use crate::parser::Parser;
use crate::statement::{CatalogStatement, StatementKind, StatementOp, TableRef};

/// Spark has three words for one thing.
const DATABASE: [&str; 3] = ["DATABASE", "SCHEMA", "NAMESPACE"];
const DATABASES: [&str; 3] = ["DATABASES", "SCHEMAS", "NAMESPACES"];
/// First words of a query, which DESCRIBE takes as well as a table's name.
const QUERY_WORDS: [&str; 5] = ["SELECT", "WITH", "VALUES", "FROM", "QUERY"];

fn eat_any(p: &mut Parser<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| p.eat_word(word))
}

/// True if the next word is one of `words` and not a name of several parts or the last word.
fn keyword_at(p: &Parser<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| p.word_at(0, word)) && !p.symbol_at(1, ".")
}

fn of_catalog(statement: CatalogStatement) -> Result<Option<StatementKind>> {
    Ok(Some(StatementKind::Catalog(statement)))
}

/// `CREATE DATABASE …`, after CREATE; `None` if another word follows.
pub(crate) fn create_database(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if !eat_any(p, &DATABASE) {
        return Ok(None);
    }
    let if_not_exists = p.eat_words(&["IF", "NOT", "EXISTS"]);
    let name = p.dotted_name("the name of a database")?;
    let mut comment = None;
    while !p.at_end() {
        let place = p.peek().place;
        if comment.is_none() && p.eat_word("COMMENT") {
            match string(p) {
                Some(text) => comment = Some(text),
                None => return Err(p.unexpected("a comment in quotes")),
            }
        } else if p.word_at(0, "LOCATION") || p.word_at(0, "WITH") || p.word_at(0, "MANAGED") {
            return Err(error_at(
                place,
                "UNSUPPORTED_FEATURE",
                "a database is a folder of the warehouse: it has neither a LOCATION of its own nor DBPROPERTIES; give the \
                 tables a LOCATION instead",
            ));
        } else {
            return Err(p.unexpected("COMMENT or the end of the statement"));
        }
    }
    of_catalog(CatalogStatement::CreateDatabase { name, if_not_exists, comment })
}

/// What follows DROP; `None` if it is not for us.
pub(crate) fn drop(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if p.eat_word("TABLE") {
        let if_exists = p.eat_words(&["IF", "EXISTS"]);
        let table = table(p)?;
        // Spark's warehouses have no trash that PURGE would bypass.
        p.eat_word("PURGE");
        p.expect_end("PURGE or the end of the statement")?;
        return of_catalog(CatalogStatement::DropTable { table, if_exists });
    }
    if !eat_any(p, &DATABASE) {
        return Ok(None);
    }
    let if_exists = p.eat_words(&["IF", "EXISTS"]);
    let name = p.dotted_name("the name of a database")?;
    let cascade = p.eat_word("CASCADE");
    if !cascade {
        p.eat_word("RESTRICT");
    }
    p.expect_end("CASCADE, RESTRICT or the end of the statement")?;
    of_catalog(CatalogStatement::DropDatabase { name, if_exists, cascade })
}

/// What follows USE.
pub(crate) fn use_database(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if keyword_at(p, &DATABASE) && !matches!(p.peek_at(1).kind, crate::token::Kind::End) {
        p.advance();
    }
    let name = p.dotted_name("the name of a database")?;
    p.expect_end("the end of the statement")?;
    of_catalog(CatalogStatement::Use { name })
}

/// What follows SHOW; `None` if it is not for us.
pub(crate) fn show(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if eat_any(p, &DATABASES) {
        let within = if eat_any(p, &["FROM", "IN"]) { p.dotted_name("the name of a catalog")? } else { Vec::new() };
        let like = pattern(p)?;
        p.expect_end("LIKE 'pattern' or the end of the statement")?;
        return of_catalog(CatalogStatement::ShowDatabases { within, like });
    }
    if p.eat_word("TABLES") {
        let database = if eat_any(p, &["FROM", "IN"]) { p.dotted_name("the name of a database")? } else { Vec::new() };
        let like = pattern(p)?;
        p.expect_end("LIKE 'pattern' or the end of the statement")?;
        return of_catalog(CatalogStatement::ShowTables { database, like });
    }
    if p.eat_word("COLUMNS") {
        if !eat_any(p, &["FROM", "IN"]) {
            return Err(p.unexpected("FROM or IN and a table"));
        }
        let mut table = table(p)?;
        if eat_any(p, &["FROM", "IN"]) {
            let place = p.peek().place;
            let database = p.dotted_name("the name of a database")?;
            table = within(table, database).map_err(|said| {
                error_at(
                    place,
                    "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE",
                    format!("SHOW COLUMNS with conflicting namespaces: {said}."),
                )
            })?;
        }
        p.expect_end("the end of the statement")?;
        return Ok(Some(StatementKind::Table { table, op: StatementOp::ShowColumns }));
    }
    if p.eat_words(&["CREATE", "TABLE"]) {
        let table = table(p)?;
        p.expect_end("the end of the statement")?;
        return Ok(Some(StatementKind::Table { table, op: StatementOp::ShowCreate }));
    }
    Ok(None)
}

/// The table with its database said apart from it, or how the two contradict each other.
fn within(table: TableRef, database: Vec<String>) -> Result<TableRef, String> {
    let quoted = |parts: &[String]| parts.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(".");
    match table {
        TableRef::Name(mut parts) => {
            let last = parts.pop().into_iter();
            let same = parts.iter().map(|p| p.to_lowercase()).eq(database.iter().map(|p| p.to_lowercase()));
            if !parts.is_empty() && !same {
                return Err(format!("{} != {}", quoted(&database), quoted(&parts)));
            }
            Ok(TableRef::Name(database.into_iter().chain(last).collect()))
        }
        TableRef::Path(path) => Err(format!("{} != delta.`{path}`", quoted(&database))),
        TableRef::IcebergPath(path) => Err(format!("{} != iceberg.`{path}`", quoted(&database))),
    }
}

/// What follows DESCRIBE, apart from DETAIL and HISTORY; `None` if it is not for us.
pub(crate) fn describe(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if keyword_at(p, &QUERY_WORDS) || keyword_at(p, &["FUNCTION"]) || p.symbol_at(0, "(") {
        return Ok(None);
    }
    if keyword_at(p, &DATABASE) && !matches!(p.peek_at(1).kind, crate::token::Kind::End) {
        p.advance();
        let extended = keyword_at(p, &["EXTENDED"]) && !matches!(p.peek_at(1).kind, crate::token::Kind::End);
        if extended {
            p.advance();
        }
        let name = p.dotted_name("the name of a database")?;
        p.expect_end("the end of the statement")?;
        return of_catalog(CatalogStatement::DescribeDatabase { name, extended });
    }
    if keyword_at(p, &["TABLE"]) && !matches!(p.peek_at(1).kind, crate::token::Kind::End) {
        p.advance();
    }
    let words = ["EXTENDED", "FORMATTED"];
    let extended = keyword_at(p, &words) && !matches!(p.peek_at(1).kind, crate::token::Kind::End);
    if extended {
        p.advance();
    }
    let table = table(p)?;
    if p.at_end() {
        return Ok(Some(StatementKind::Table { table, op: StatementOp::Describe { extended } }));
    }
    if p.word_at(0, "PARTITION") || p.eat_words(&["AS", "JSON"]) {
        return Ok(None);
    }
    let place = p.peek().place;
    let mut column = p.dotted_name("a column or the end of the statement")?;
    p.expect_end("the end of the statement")?;
    match (column.len(), column.pop()) {
        (1, Some(column)) => Ok(Some(StatementKind::Table { table, op: StatementOp::DescribeColumn { column } })),
        _ => Err(error_at(
            place,
            "UNSUPPORTED_FEATURE",
            "DESC TABLE COLUMN does not support nested columns; describe the whole table",
        )),
    }
}

/// `COMMENT ON TABLE t IS 'text'`, after COMMENT; `None` if it is not for us.
pub(crate) fn comment(p: &mut Parser<'_>) -> Result<Option<StatementKind>> {
    if !p.eat_words(&["ON", "TABLE"]) {
        return Ok(None);
    }
    let table = table(p)?;
    p.expect_word("IS")?;
    let Some(text) = string(p) else {
        return if p.word_at(0, "NULL") { Ok(None) } else { Err(p.unexpected("a comment in quotes")) };
    };
    p.expect_end("the end of the statement")?;
    let op =
        StatementOp::AlterProperties { set: vec![("comment".to_owned(), text)], unset: Vec::new(), if_exists: false };
    Ok(Some(StatementKind::Table { table, op }))
}

/// `[LIKE] 'pattern'`.
fn pattern(p: &mut Parser<'_>) -> Result<Option<String>> {
    let is_said = p.eat_word("LIKE");
    match string(p) {
        Some(text) => Ok(Some(text)),
        None if is_said => Err(p.unexpected("a pattern in quotes")),
        None => Ok(None),
    }
}
