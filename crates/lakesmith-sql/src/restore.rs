//! `RESTORE [TABLE] t [TO] VERSION AS OF n | TIMESTAMP AS OF 'time'`.
//!
//! # Source
//! Delta Spark `DeltaSqlBase.g4` (`temporalClause`).

use lakesmith_core::Result;
use lakesmith_core::op::TimeTravel;
use lakesmith_core::predicate::parse_timestamp;

use crate::grammar::{string, table};
use crate::literal::invalid_typed;
use crate::parser::Parser;
use crate::statement::{StatementOp, TableRef};
use crate::token::Kind;

/// The statement behind its first word.
pub(crate) fn statement(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    // A table may be called `table`.
    if p.word_at(0, "TABLE") && !p.symbol_at(1, ".") && !p.word_at(1, "TO") {
        p.advance();
    }
    let table = table(p)?;
    p.eat_word("TO");
    p.eat_word("FOR");
    let is_version = p.eat_word("VERSION") || p.eat_word("SYSTEM_VERSION");
    if !is_version && !p.eat_word("TIMESTAMP") && !p.eat_word("SYSTEM_TIME") {
        return Err(p.unexpected("TO VERSION AS OF n or TO TIMESTAMP AS OF 'time'"));
    }
    p.expect_word("AS")?;
    p.expect_word("OF")?;
    let to = if is_version { version(p)? } else { timestamp(p)? };
    p.expect_end("the end of the statement")?;
    Ok((table, StatementOp::Restore { to }))
}

/// A number, also in quotes.
fn version(p: &mut Parser<'_>) -> Result<TimeTravel> {
    let token = p.peek().clone();
    let number = match &token.kind {
        Kind::Number => p.source(&token).parse().ok(),
        Kind::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let Some(number) = number else { return Err(p.unexpected("a version number")) };
    p.advance();
    Ok(TimeTravel::Version(number))
}

fn timestamp(p: &mut Parser<'_>) -> Result<TimeTravel> {
    let token = p.peek().clone();
    let Some(text) = string(p) else { return Err(p.unexpected("a time in quotes")) };
    let (micros, _) = parse_timestamp(&text).ok_or_else(|| invalid_typed("TIMESTAMP", &text, &token))?;
    Ok(TimeTravel::Timestamp(micros.div_euclid(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StatementKind, parse};

    fn restored(text: &str) -> Option<(TableRef, TimeTravel)> {
        match parse(text).ok()?.pop()?.kind {
            StatementKind::Table { table, op: StatementOp::Restore { to } } => Some((table, to)),
            _ => None,
        }
    }

    #[test]
    fn every_spelling_of_spark_is_read() {
        let at = |path: &str, to| Some((TableRef::Path(path.into()), to));
        let version = TimeTravel::Version(3);
        for text in [
            "RESTORE TABLE delta.`/t` TO VERSION AS OF 3",
            "restore delta.`/t` version as of '3'",
            "RESTORE delta.`/t` TO FOR SYSTEM_VERSION AS OF 3",
        ] {
            assert_eq!(restored(text), at("/t", version.clone()), "{text}");
        }
        assert_eq!(
            restored("RESTORE TABLE delta.`/t` TO TIMESTAMP AS OF '1970-01-02'"),
            at("/t", TimeTravel::Timestamp(86_400_000))
        );
        assert_eq!(restored("RESTORE table TO VERSION AS OF 3"), Some((TableRef::Name(vec!["table".into()]), version)));
    }

    #[test]
    fn what_is_no_version_is_a_syntax_error() {
        for (text, class) in [
            ("RESTORE TABLE t", "PARSE_SYNTAX_ERROR"),
            ("RESTORE TABLE t TO VERSION AS OF x", "PARSE_SYNTAX_ERROR"),
            ("RESTORE TABLE t TO VERSION AS OF 1 2", "PARSE_SYNTAX_ERROR"),
            ("RESTORE TABLE t TO TIMESTAMP AS OF 'soon'", "INVALID_TYPED_LITERAL"),
            ("RESTORE TABLE t TO TIMESTAMP AS OF 3", "PARSE_SYNTAX_ERROR"),
        ] {
            assert_eq!(parse(text).unwrap_err().class_name(), class, "{text}");
        }
    }
}
