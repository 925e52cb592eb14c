//! The grammar of conditions.
//!
//! # Source
//! Spark `SqlBaseParser.g4` (booleanExpression, predicate, valueExpression, primaryExpression), `AstBuilder`.

use lakesmith_core::predicate::{BinaryOp, Expr, parse_date, parse_timestamp};
use lakesmith_core::table::{DataType, Scalar};
use lakesmith_core::{Error, Result};

use crate::diagnostic::error_at;
use crate::parser::Parser;
use crate::token::{Kind, Token};
use crate::{interval, literal};

/// Reads a condition as it stands after WHERE, up to the first token that cannot belong to it.
pub(crate) fn condition(p: &mut Parser<'_>) -> Result<Expr> {
    chain(p, &[("OR", BinaryOp::Or)], |p| chain(p, &[("AND", BinaryOp::And)], negation))
}

/// `next (word next)*`, to the left.
fn chain(
    p: &mut Parser<'_>,
    words: &[(&str, BinaryOp)],
    next: impl Fn(&mut Parser<'_>) -> Result<Expr>,
) -> Result<Expr> {
    let mut left = next(p)?;
    while let Some((_, op)) = words.iter().find(|(word, _)| p.word_at(0, word) || p.symbol_at(0, word)) {
        p.count_operator()?;
        p.advance();
        left = binary(*op, left, next(p)?);
    }
    Ok(left)
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    match op {
        // Spark has no such operator in its tree.
        BinaryOp::NotEq => Expr::Not(Box::new(Expr::Binary { op: BinaryOp::Eq, left, right })),
        op => Expr::Binary { op, left, right },
    }
}

fn negation(p: &mut Parser<'_>) -> Result<Expr> {
    if p.eat_word("NOT") || p.eat_symbol("!") {
        return p.nested(|p| Ok(Expr::Not(Box::new(negation(p)?))));
    }
    if p.word_at(0, "EXISTS") && p.symbol_at(1, "(") && starts_query(p, 2) {
        return Err(subquery(p));
    }
    predicate(p)
}

/// A value and the one predicate that may follow it.
fn predicate(p: &mut Parser<'_>) -> Result<Expr> {
    let value = comparison(p)?;
    if p.eat_word("IS") {
        return is(p, value);
    }
    let negated =
        ["BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP"].iter().any(|w| p.word_at(1, w)) && p.eat_word("NOT");
    let found = if p.eat_word("BETWEEN") {
        let low = comparison(p)?;
        p.expect_word("AND")?;
        Expr::Function("between".into(), vec![value, low, comparison(p)?])
    } else if p.eat_word("IN") {
        in_list(p, value)?
    } else if p.eat_word("LIKE") {
        like(p, value)?
    } else if p.word_at(0, "ILIKE") || p.word_at(0, "RLIKE") || p.word_at(0, "REGEXP") {
        return Err(not_available(p, p.peek(), "use LIKE, =, or IN"));
    } else {
        return Ok(value);
    };
    Ok(if negated { Expr::Not(Box::new(found)) } else { found })
}

fn is(p: &mut Parser<'_>, value: Expr) -> Result<Expr> {
    let negated = p.eat_word("NOT");
    let not_if = |e: Expr| if negated { Expr::Not(Box::new(e)) } else { e };
    if p.eat_word("NULL") || p.eat_word("UNKNOWN") {
        let value = Box::new(value);
        return Ok(if negated { Expr::IsNotNull(value) } else { Expr::IsNull(value) });
    }
    for truth in [true, false] {
        if p.eat_word(if truth { "TRUE" } else { "FALSE" }) {
            return Ok(not_if(binary(BinaryOp::NullSafeEq, value, Expr::Literal(Scalar::Boolean(truth)))));
        }
    }
    if p.eat_words(&["DISTINCT", "FROM"]) {
        let equal = binary(BinaryOp::NullSafeEq, value, comparison(p)?);
        return Ok(if negated { equal } else { Expr::Not(Box::new(equal)) });
    }
    Err(p.unexpected(if negated {
        "NULL, TRUE, FALSE or DISTINCT FROM"
    } else {
        "NULL, NOT NULL, TRUE, FALSE or DISTINCT FROM"
    }))
}

fn in_list(p: &mut Parser<'_>, value: Expr) -> Result<Expr> {
    p.expect_symbol("(")?;
    if starts_query(p, 0) {
        return Err(subquery(p));
    }
    let mut list = vec![p.nested(condition)?];
    while p.eat_symbol(",") {
        list.push(p.nested(condition)?);
    }
    if !p.eat_symbol(")") {
        return Err(p.unexpected("',' or ')'"));
    }
    Ok(Expr::In(Box::new(value), list))
}

fn like(p: &mut Parser<'_>, value: Expr) -> Result<Expr> {
    if ["ANY", "SOME", "ALL"].iter().any(|w| p.word_at(0, w)) && p.symbol_at(1, "(") {
        return Err(not_available(p, p.peek(), "write several LIKE with OR or AND"));
    }
    let pattern = text(p).ok_or_else(|| p.unexpected("a pattern in quotes"))?;
    let mut escape = '\\';
    if p.eat_word("ESCAPE") {
        let token = p.peek().clone();
        let written = text(p).ok_or_else(|| p.unexpected("an escape character in quotes"))?;
        let mut chars = written.chars();
        escape = match (chars.next(), chars.next()) {
            (Some(c), None) => c,
            _ => {
                return Err(error_at(
                    token.place,
                    "INVALID_ESCAPE_CHAR",
                    "`EscapeChar` should be a string literal of length one",
                ));
            }
        };
    }
    Ok(Expr::Like { value: Box::new(value), pattern, escape })
}

fn comparison(p: &mut Parser<'_>) -> Result<Expr> {
    const OPERATORS: [(&str, BinaryOp); 9] = [
        ("=", BinaryOp::Eq),
        ("==", BinaryOp::Eq),
        ("<>", BinaryOp::NotEq),
        ("!=", BinaryOp::NotEq),
        ("<=>", BinaryOp::NullSafeEq),
        ("<", BinaryOp::Lt),
        ("<=", BinaryOp::LtEq),
        (">", BinaryOp::Gt),
        (">=", BinaryOp::GtEq),
    ];
    chain(p, &OPERATORS, sum)
}

fn sum(p: &mut Parser<'_>) -> Result<Expr> {
    let sum = chain(p, &[("+", BinaryOp::Plus), ("-", BinaryOp::Minus), ("||", BinaryOp::Concat)], product)?;
    match ["&", "|", "^", "<<", ">>", ">>>"].iter().find(|s| p.symbol_at(0, s)) {
        Some(_) => Err(not_available(p, p.peek(), "use comparisons and arithmetic")),
        None => Ok(sum),
    }
}

fn product(p: &mut Parser<'_>) -> Result<Expr> {
    const OPERATORS: [(&str, BinaryOp); 4] =
        [("*", BinaryOp::Multiply), ("/", BinaryOp::Divide), ("%", BinaryOp::Modulo), ("DIV", BinaryOp::IntegerDivide)];
    chain(p, &OPERATORS, unary)
}

fn unary(p: &mut Parser<'_>) -> Result<Expr> {
    let negative = p.symbol_at(0, "-");
    if negative || p.symbol_at(0, "+") {
        p.advance();
        if p.peek().kind == Kind::Number && negative {
            let value = literal::number(p, true)?;
            return cast_suffix(p, value);
        }
        return p.nested(|p| {
            let value = unary(p)?;
            Ok(if negative { Expr::Negative(Box::new(value)) } else { value })
        });
    }
    let value = primary(p)?;
    cast_suffix(p, value)
}

/// `::type`.
fn cast_suffix(p: &mut Parser<'_>, mut value: Expr) -> Result<Expr> {
    let mut casts = 0;
    while p.eat_symbol("::") {
        casts += 1;
        if casts > 10 {
            return Err(error_at(p.peek().place, "PARSE_SYNTAX_ERROR", "more than 10 casts in a row"));
        }
        value = Expr::Cast(Box::new(value), data_type(p)?);
    }
    Ok(value)
}

fn primary(p: &mut Parser<'_>) -> Result<Expr> {
    let token = p.peek().clone();
    match &token.kind {
        Kind::Number => literal::number(p, false),
        Kind::Text(_) => Ok(Expr::Literal(Scalar::String(text(p).unwrap_or_default()))),
        Kind::Hex(digits) => {
            p.advance();
            literal::binary(digits, &token)
        }
        Kind::Symbol if p.eat_symbol("(") => {
            if starts_query(p, 0) {
                return Err(subquery(p));
            }
            let inner = p.nested(condition)?;
            if p.symbol_at(0, ",") {
                return Err(not_available(p, p.peek(), "compare the columns one by one"));
            }
            if !p.eat_symbol(")") {
                return Err(p.unexpected("an operator or ')'"));
            }
            Ok(inner)
        }
        Kind::Word { quoted: false, value } => word(p, &token, &value.to_uppercase()),
        Kind::Word { quoted: true, .. } => column_or_call(p),
        Kind::Symbol | Kind::End => Err(p.unexpected("a value: a column, a literal or a function")),
    }
}

/// What an unquoted word starts.
fn word(p: &mut Parser<'_>, token: &Token, word: &str) -> Result<Expr> {
    let calls = p.symbol_at(1, "(");
    let typed = matches!(p.peek_at(1).kind, Kind::Text(_));
    match word {
        "NULL" | "TRUE" | "FALSE" => {
            p.advance();
            Ok(Expr::Literal(match word {
                "NULL" => Scalar::Null,
                _ => Scalar::Boolean(word == "TRUE"),
            }))
        }
        "DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ" if typed => {
            p.advance();
            let written = text(p).unwrap_or_default();
            let value = match word {
                "DATE" => parse_date(&written).map(Scalar::Date),
                "TIMESTAMP_NTZ" => parse_timestamp(&written).filter(|t| !t.1).map(|t| Scalar::TimestampNtz(t.0)),
                _ => parse_timestamp(&written).map(|t| Scalar::Timestamp(t.0)),
            };
            value.map(Expr::Literal).ok_or_else(|| literal::invalid_typed(word, &written, token))
        }
        "INTERVAL" if interval::starts(p) => interval::interval(p),
        "CAST" | "TRY_CAST" if calls => {
            p.advance();
            p.advance();
            if word == "TRY_CAST" {
                return Err(not_available(p, token, "use CAST"));
            }
            let value = p.nested(condition)?;
            p.expect_word("AS")?;
            let to = data_type(p)?;
            p.expect_symbol(")")?;
            Ok(Expr::Cast(Box::new(value), to))
        }
        "EXTRACT" if calls => {
            p.advance();
            p.advance();
            let field = p.name("a field such as YEAR or DAY")?;
            p.expect_word("FROM")?;
            let value = p.nested(condition)?;
            p.expect_symbol(")")?;
            Ok(Expr::Function(p.source(token).to_owned(), vec![Expr::Literal(Scalar::String(field)), value]))
        }
        "CASE" if !p.symbol_at(1, ".") => Err(not_available(p, token, "use if(condition, then, else) or coalesce")),
        // Words that can only be a slip here: a name that reads so needs backquotes.
        "AND" | "OR" | "IN" | "LIKE" | "IS" | "BETWEEN" | "WHERE" | "ZORDER" | "APPLY" | "SELECT" | "FROM" => {
            Err(p.unexpected("a value: a column, a literal or a function"))
        }
        _ => column_or_call(p),
    }
}

fn column_or_call(p: &mut Parser<'_>) -> Result<Expr> {
    let parts = p.dotted_name("a column")?;
    if !p.eat_symbol("(") {
        if p.symbol_at(0, "[") {
            return Err(not_available(p, p.peek(), "partition columns have no elements"));
        }
        return Ok(Expr::Column(parts));
    }
    let mut arguments = Vec::new();
    if !p.eat_symbol(")") {
        let distinct = p.peek().clone();
        if p.word_at(0, "DISTINCT") && !p.symbol_at(1, ",") && !p.symbol_at(1, ")") {
            return Err(not_available(p, &distinct, "partition predicates have no aggregates"));
        }
        loop {
            arguments.push(p.nested(condition)?);
            let keyword_comma = is_substring(&parts) && (p.eat_word("FROM") || p.eat_word("FOR"));
            if !keyword_comma && !p.eat_symbol(",") {
                break;
            }
        }
        if !p.eat_symbol(")") {
            return Err(p.unexpected("',' or ')'"));
        }
    }
    Ok(Expr::Function(parts.join("."), arguments))
}

fn is_substring(parts: &[String]) -> bool {
    matches!(parts, [name] if name.eq_ignore_ascii_case("substring") || name.eq_ignore_ascii_case("substr"))
}

/// String literals; neighbours are one, as in Spark.
fn text(p: &mut Parser<'_>) -> Option<String> {
    let mut joined: Option<String> = None;
    while let Kind::Text(value) = &p.peek().kind {
        joined.get_or_insert_default().push_str(value);
        p.advance();
    }
    joined
}

fn data_type(p: &mut Parser<'_>) -> Result<DataType> {
    let token = p.peek().clone();
    let name = p.name("a type such as DATE, INT or STRING")?.to_uppercase();
    Ok(match name.as_str() {
        "BOOLEAN" => DataType::Boolean,
        "TINYINT" | "BYTE" => DataType::Byte,
        "SMALLINT" | "SHORT" => DataType::Short,
        "INT" | "INTEGER" => DataType::Integer,
        "BIGINT" | "LONG" => DataType::Long,
        "FLOAT" | "REAL" => DataType::Float,
        "DOUBLE" => DataType::Double,
        "STRING" => DataType::String,
        "BINARY" => DataType::Binary,
        "DATE" => DataType::Date,
        "TIMESTAMP" | "TIMESTAMP_LTZ" => DataType::Timestamp,
        "TIMESTAMP_NTZ" => DataType::TimestampNtz,
        "DECIMAL" | "DEC" | "NUMERIC" => decimal_type(p)?,
        _ => {
            let message = format!("Unsupported data type \"{name}\" in a partition predicate");
            return Err(error_at(token.place, "UNSUPPORTED_DATATYPE", message));
        }
    })
}

fn decimal_type(p: &mut Parser<'_>) -> Result<DataType> {
    let (mut precision, mut scale) = (10, 0);
    if p.eat_symbol("(") {
        precision = digits(p)?;
        scale = if p.eat_symbol(",") { digits(p)? } else { 0 };
        if precision == 0 || precision > 38 || scale > precision {
            let message =
                format!("decimal({precision},{scale}) is not a type: at most 38 digits, and no more after the point");
            return Err(error_at(p.peek().place, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", message));
        }
        p.expect_symbol(")")?;
    }
    Ok(DataType::Decimal { precision, scale: scale as i8 })
}

fn digits(p: &mut Parser<'_>) -> Result<u8> {
    let parsed = if p.peek().kind == Kind::Number { p.source(p.peek()).parse().ok() } else { None };
    let Some(value) = parsed else { return Err(p.unexpected("a number of digits")) };
    p.advance();
    Ok(value)
}

fn starts_query(p: &Parser<'_>, ahead: usize) -> bool {
    ["SELECT", "WITH", "FROM", "VALUES"].iter().any(|w| p.word_at(ahead, w))
        && !p.symbol_at(ahead + 1, ".")
        && !p.symbol_at(ahead + 1, ")")
}

fn subquery(p: &Parser<'_>) -> Error {
    error_at(
        p.peek().place,
        "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
        "Subquery is not supported in partition predicates.",
    )
}

fn not_available(p: &Parser<'_>, token: &Token, instead: &str) -> Error {
    let message = format!("'{}' is not available in partition predicates; {instead}", p.source(token));
    error_at(token.place, "UNSUPPORTED_FEATURE", message)
}
