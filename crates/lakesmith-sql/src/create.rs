//! CREATE TABLE and REPLACE TABLE from column definitions, and the CLUSTER BY clause.
//!
//! # Source
//! Spark `SqlBaseParser.g4`, `createTable`; Delta Spark `DeltaSqlBase.g4`, `clusterBySpec`.

use lakesmith_core::Result;
use lakesmith_core::op::Replacing;
use lakesmith_core::table::{Field, Schema};

use crate::column_type::column;
use crate::diagnostic::error_at;
use crate::grammar::{property_list, string, table};
use crate::parser::Parser;
use crate::statement::{CreateClauses, StatementOp, TableRef};
use crate::token::{self, Kind};

/// CREATE TABLE … AS SELECT: what stands before the query.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFrom {
    /// The table.
    pub table: TableRef,
    /// Everything but the columns, which are the query's.
    pub clauses: CreateClauses,
    /// Offset of the query's first byte.
    pub query: usize,
}

/// What stands before the query of a statement that makes a table from rows; `None` if the statement is another one.
///
/// # Errors
/// Usage with the place, as [`crate::parse`].
pub fn create_from(text: &str) -> Result<Option<CreateFrom>> {
    // What cannot be read here is no CREATE, whose words are read the same way everywhere.
    let Ok(tokens) = token::tokenize(text) else { return Ok(None) };
    let mut p = Parser::new(text, &tokens);
    let replaces = p.eat_word("REPLACE");
    if !replaces && !p.eat_word("CREATE") {
        return Ok(None);
    }
    match head(&mut p, replaces)? {
        Some((table, clauses, Some(query))) if clauses.schema.fields.is_empty() => {
            Ok(Some(CreateFrom { table, clauses, query }))
        }
        Some((_, _, Some(_))) => Err(error_at(
            p.peek().place,
            "PARSE_SYNTAX_ERROR",
            "Operation not allowed: Schema may not be specified in a Create Table As Select (CTAS) statement",
        )),
        _ => Ok(None),
    }
}

/// What follows CREATE or REPLACE; `None` if the statement is one for a query engine.
pub(crate) fn statement(p: &mut Parser<'_>, replaces: bool) -> Result<Option<(TableRef, StatementOp)>> {
    let Some((table, clauses, None)) = head(p, replaces)? else { return Ok(None) };
    if clauses.schema.fields.is_empty() && clauses.location.is_none() {
        return Err(p.unexpected("the columns in parentheses, or LOCATION and the path of a table"));
    }
    Ok(Some((table, StatementOp::CreateTable(Box::new(clauses)))))
}

/// Table and clauses, and where a query begins that follows them; `None` if no table is made.
fn head(p: &mut Parser<'_>, replaces: bool) -> Result<Option<(TableRef, CreateClauses, Option<usize>)>> {
    let replacing = match (replaces, !replaces && p.eat_words(&["OR", "REPLACE"])) {
        (true, _) => Replacing::Only,
        (_, true) => Replacing::IfThere,
        (false, false) => Replacing::Never,
    };
    if !p.eat_word("TABLE") {
        return Ok(None);
    }
    let if_not_exists = replacing == Replacing::Never && p.eat_words(&["IF", "NOT", "EXISTS"]);
    if matches!(p.peek().kind, Kind::End) {
        return Err(p.unexpected("a table, as in delta.`/path/to/table`"));
    }
    let table = table(p)?;
    if p.word_at(0, "LIKE") {
        return Ok(None);
    }
    let mut clauses = CreateClauses { if_not_exists, replacing, ..CreateClauses::default() };
    if p.eat_symbol("(") {
        let mut fields = vec![column(p, &mut clauses.defaults)?];
        while p.eat_symbol(",") {
            fields.push(column(p, &mut clauses.defaults)?);
        }
        if !p.eat_symbol(")") {
            return Err(p.unexpected("NOT NULL, COMMENT, ',' or ')'"));
        }
        clauses.schema = Schema { fields };
    }
    let mut seen: Vec<&'static str> = Vec::new();
    while !p.at_end() {
        if p.eat_word("AS") || p.word_at(0, "SELECT") || p.word_at(0, "WITH") || p.word_at(0, "FROM") {
            let query = p.peek().start;
            return Ok(Some((table, clauses, Some(query))));
        }
        let place = p.peek().place;
        let clause = clause(p, &mut clauses)?;
        if seen.contains(&clause) {
            return Err(error_at(place, "DUPLICATE_CLAUSES", format!("Found duplicate clauses: {clause}")));
        }
        seen.push(clause);
        if seen.contains(&"CLUSTER BY") && seen.contains(&"PARTITIONED BY") {
            return Err(error_at(
                place,
                "PARSE_SYNTAX_ERROR",
                "Operation not allowed: Clustering and partitioning cannot both be specified. Please remove PARTITIONED \
                 BY if you want to create a Delta table with clustering.",
            ));
        }
    }
    Ok(Some((table, clauses, None)))
}

/// Reads one clause and returns its name.
fn clause(p: &mut Parser<'_>, clauses: &mut CreateClauses) -> Result<&'static str> {
    if p.eat_word("USING") {
        let place = p.peek().place;
        let provider = p.name("DELTA")?;
        if !provider.eq_ignore_ascii_case("delta") {
            let message = format!("'{provider}' is no format that tables can be made in; write USING DELTA");
            return Err(error_at(place, "PARSE_SYNTAX_ERROR", message));
        }
        return Ok("USING");
    }
    if p.eat_words(&["PARTITIONED", "BY"]) {
        partitions(p, clauses)?;
        return Ok("PARTITIONED BY");
    }
    if p.eat_words(&["CLUSTER", "BY"]) {
        clauses.cluster_by = cluster_columns(p)?;
        return Ok("CLUSTER BY");
    }
    if p.eat_word("COMMENT") {
        clauses.comment = Some(quoted(p, "a comment in quotes")?);
        return Ok("COMMENT");
    }
    if p.eat_word("LOCATION") {
        clauses.location = Some(quoted(p, "a path in quotes")?);
        return Ok("LOCATION");
    }
    if p.eat_word("TBLPROPERTIES") {
        let place = p.peek().place;
        for (key, value) in property_list(p)? {
            let Some(value) = value else {
                return Err(error_at(
                    place,
                    "PARSE_SYNTAX_ERROR",
                    format!("Operation not allowed: Values must be specified for key(s): [{key}]"),
                ));
            };
            if clauses.properties.insert(key.clone(), value).is_some() {
                return Err(error_at(place, "DUPLICATE_KEY", format!("Found duplicate keys `{key}`")));
            }
        }
        return Ok("TBLPROPERTIES");
    }
    Err(p.unexpected(
        "USING DELTA, PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES, LOCATION or the end of the statement",
    ))
}

fn quoted(p: &mut Parser<'_>, expected: &str) -> Result<String> {
    match string(p) {
        Some(text) => Ok(text),
        None => Err(p.unexpected(expected)),
    }
}

/// `(a, b)`, or `(a INT, b STRING)`, which adds the columns to the table.
fn partitions(p: &mut Parser<'_>, clauses: &mut CreateClauses) -> Result<()> {
    p.expect_symbol("(")?;
    let mut added: Vec<Field> = Vec::new();
    loop {
        if p.symbol_at(1, ",") || p.symbol_at(1, ")") {
            clauses.partition_by.push(p.name("a column")?);
        } else {
            let field = column(p, &mut clauses.defaults)?;
            clauses.partition_by.push(field.name.clone());
            added.push(field);
        }
        if p.eat_symbol(")") {
            break;
        }
        if !p.eat_symbol(",") {
            return Err(p.unexpected("',' or ')'"));
        }
    }
    if !added.is_empty() && added.len() != clauses.partition_by.len() {
        return Err(error_at(
            p.previous().place,
            "PARSE_SYNTAX_ERROR",
            "Operation not allowed: PARTITIONED BY names columns of the table or defines new ones, not both",
        ));
    }
    clauses.schema.fields.extend(added);
    Ok(())
}

/// `(a, s.b)`.
pub(crate) fn cluster_columns(p: &mut Parser<'_>) -> Result<Vec<Vec<String>>> {
    p.expect_symbol("(")?;
    let mut columns = vec![p.dotted_name("a column")?];
    while p.eat_symbol(",") {
        columns.push(p.dotted_name("a column")?);
    }
    if p.eat_symbol(")") { Ok(columns) } else { Err(p.unexpected("',' or ')'")) }
}
