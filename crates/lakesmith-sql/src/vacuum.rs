//! `VACUUM table [FULL | LITE] [USING INVENTORY …] [RETAIN n HOURS] [DRY RUN]`, the clauses in any order.
//!
//! # Source
//! Delta Spark `DeltaSqlBase.g4` (`vacuumModifiers`), `VacuumTableCommand`.

use lakesmith_core::op::{Inventory, InventoryFormat, VacuumMode};
use lakesmith_core::{Error, Result};

use crate::diagnostic::{LINE, POSITION, Place};
use crate::grammar::table;
use crate::parser::Parser;
use crate::statement::{StatementOp, TableRef, VacuumClauses};
use crate::token::Kind;

const HOUR_MS: f64 = 3_600_000.0;

pub(crate) fn statement(p: &mut Parser<'_>) -> Result<(TableRef, StatementOp)> {
    let table = table(p)?;
    let mut clauses = VacuumClauses::default();
    while !p.at_end() {
        if clauses.mode.is_none() && p.eat_word("FULL") {
            clauses.mode = Some(VacuumMode::Full);
        } else if clauses.mode.is_none() && p.eat_word("LITE") {
            clauses.mode = Some(VacuumMode::Lite);
        } else if clauses.inventory.is_none() && p.eat_words(&["USING", "INVENTORY"]) {
            clauses.inventory = Some(inventory(p)?);
        } else if clauses.retain_ms.is_none() && p.eat_word("RETAIN") {
            clauses.retain_ms = Some(retention(p)?);
        } else if !clauses.dry_run && p.eat_words(&["DRY", "RUN"]) {
            clauses.dry_run = true;
        } else {
            return Err(p.unexpected("FULL, LITE, USING INVENTORY, RETAIN, DRY RUN or the end of the statement"));
        }
    }
    Ok((table, StatementOp::Vacuum(clauses)))
}

/// Whole hours, as Spark rounds them.
fn retention(p: &mut Parser<'_>) -> Result<i64> {
    let negative = p.eat_symbol("-");
    let token = p.peek().clone();
    let hours = if token.kind == Kind::Number { p.source(&token).parse::<f64>().ok() } else { None };
    let Some(hours) = hours else { return Err(p.unexpected("a number of hours")) };
    p.advance();
    p.expect_word("HOURS")?;
    let ms = hours.round() * HOUR_MS;
    Ok(if negative { -(ms as i64) } else { ms as i64 })
}

fn inventory(p: &mut Parser<'_>) -> Result<Inventory> {
    let place = p.peek().place;
    if p.symbol_at(0, "(") {
        return Err(needs_engine(
            place,
            "a query as an inventory needs the query engine, which this build does not have",
        ));
    }
    let parts = p.dotted_name("a file, as in parquet.`/path/to/inventory`")?;
    let format = match parts.as_slice() {
        [format, _] if format.eq_ignore_ascii_case("parquet") => InventoryFormat::Parquet,
        [format, _] if format.eq_ignore_ascii_case("csv") => InventoryFormat::Csv,
        _ => {
            return Err(needs_engine(
                place,
                "a table as an inventory needs the query engine, which this build does not have",
            ));
        }
    };
    Ok(Inventory { location: parts.into_iter().next_back().unwrap_or_default(), format: Some(format) })
}

fn needs_engine(place: Place, why: &str) -> Error {
    Error::unsupported(format!("{why}; name a file, as in parquet.`/path` or csv.`/path`"))
        .class("UNSUPPORTED_FEATURE")
        .with(LINE, place.line)
        .with(POSITION, place.column - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::StatementKind;

    fn clauses(text: &str) -> Result<VacuumClauses> {
        match crate::parse(&format!("VACUUM delta.`/t` {text}"))?.swap_remove(0).kind {
            StatementKind::Table { table: TableRef::Path(path), op: StatementOp::Vacuum(clauses) } if path == "/t" => {
                Ok(clauses)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clauses_come_in_any_order() {
        assert_eq!(clauses("").unwrap(), VacuumClauses::default());
        let all = VacuumClauses {
            mode: Some(VacuumMode::Lite),
            inventory: Some(Inventory { location: "/inv".into(), format: Some(InventoryFormat::Csv) }),
            retain_ms: Some(100 * 3_600_000),
            dry_run: true,
        };
        assert_eq!(clauses("LITE USING INVENTORY csv.`/inv` RETAIN 100 HOURS DRY RUN").unwrap(), all);
        assert_eq!(clauses("dry run retain 99.6 hours using inventory CSV.`/inv` lite").unwrap(), all);
        for (hours, whole) in [("0.5", 1), ("0.4", 0), ("1.5", 2)] {
            assert_eq!(
                clauses(&format!("RETAIN {hours} HOURS")).unwrap().retain_ms,
                Some(whole * 3_600_000),
                "{hours}"
            );
        }
        assert_eq!(clauses("RETAIN -1 HOURS").unwrap().retain_ms, Some(-3_600_000));
    }

    #[test]
    fn what_is_not_understood_is_shown() {
        for text in ["RETAIN", "RETAIN x HOURS", "RETAIN 1 DAYS", "DRY", "FULL LITE", "DRY RUN DRY RUN", "USING x"] {
            assert_eq!(clauses(text).unwrap_err().class_name(), "PARSE_SYNTAX_ERROR", "{text}");
        }
        for text in ["USING INVENTORY (SELECT 1)", "USING INVENTORY a.b.c", "USING INVENTORY inv DRY RUN"] {
            let error = clauses(text).unwrap_err();
            assert!(error.message().contains("query engine"), "{error}");
            assert_eq!(error.class_name(), "UNSUPPORTED_FEATURE");
        }
    }
}
