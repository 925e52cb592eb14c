//! ALTER TABLE of columns and constraints.
//!
//! # Source
//! Spark `SqlBaseParser.g4`: `addTableColumns`, `renameTableColumn`, `dropTableColumns`, `alterTableAlterColumn`,
//! `hiveChangeColumn`; Delta Spark `DeltaSqlBase.g4`: `addTableConstraint`, `dropTableConstraint`.

use lakesmith_core::op::{AddedColumn, ColumnChange, ColumnDefault, Position, TableChange};
use lakesmith_core::predicate::Expr;
use lakesmith_core::{Error, Result};

use crate::column_type::{column_at, data_type};
use crate::diagnostic::{LINE, POSITION, error_at};
use crate::expression;
use crate::grammar::string;
use crate::parser::Parser;
use crate::token::{Kind, Token};

/// What follows the table; `None` if it is not for us.
pub(crate) fn change(p: &mut Parser<'_>) -> Result<Option<TableChange>> {
    let change = if p.eat_words(&["ADD", "COLUMN"]) || p.eat_words(&["ADD", "COLUMNS"]) {
        add_columns(p)?
    } else if p.eat_words(&["ADD", "CONSTRAINT"]) {
        add_constraint(p)?
    } else if p.eat_words(&["DROP", "CONSTRAINT"]) {
        let if_exists = p.eat_words(&["IF", "EXISTS"]);
        let name = p.name("the name of a constraint")?;
        if !p.eat_word("RESTRICT") {
            p.eat_word("CASCADE");
        }
        TableChange::DropConstraint { name, if_exists }
    } else if p.eat_words(&["DROP", "COLUMN"]) || p.eat_words(&["DROP", "COLUMNS"]) {
        let if_exists = p.eat_words(&["IF", "EXISTS"]);
        TableChange::DropColumns { paths: list(p, |p| p.dotted_name("a column"))?, if_exists }
    } else if p.eat_words(&["RENAME", "COLUMN"]) {
        let path = p.dotted_name("a column")?;
        p.expect_word("TO")?;
        TableChange::RenameColumn { path, to: p.name("the new name of the column")? }
    } else if p.word_at(0, "ALTER") || p.word_at(0, "CHANGE") {
        let is_hive = p.advance();
        let is_hive = p.source(&is_hive).eq_ignore_ascii_case("CHANGE");
        p.eat_word("COLUMN");
        change_columns(p, is_hive)?
    } else {
        return Ok(None);
    };
    p.expect_end("',' or the end of the statement")?;
    Ok(Some(change))
}

/// One or more, in parentheses or not.
fn list<T>(p: &mut Parser<'_>, mut one: impl FnMut(&mut Parser<'_>) -> Result<T>) -> Result<Vec<T>> {
    let in_parentheses = p.eat_symbol("(");
    let mut all = vec![one(p)?];
    while p.eat_symbol(",") {
        all.push(one(p)?);
    }
    if in_parentheses && !p.eat_symbol(")") {
        return Err(p.unexpected("',' or ')'"));
    }
    Ok(all)
}

fn position(p: &mut Parser<'_>) -> Result<Option<Position>> {
    if p.eat_word("FIRST") {
        return Ok(Some(Position::First));
    }
    if p.eat_word("AFTER") {
        return Ok(Some(Position::After(p.name("a column")?)));
    }
    Ok(None)
}

fn add_columns(p: &mut Parser<'_>) -> Result<TableChange> {
    let added = list(p, |p| {
        let mut parent = p.dotted_name("a column")?;
        let name = parent.pop().unwrap_or_default();
        let mut has_default = false;
        let mut at = None;
        let mut field = column_at(p, name)?;
        loop {
            if let Some(said) = position(p)? {
                at = Some(said);
            } else if p.eat_word("DEFAULT") {
                has_default = true;
                default_text(p)?;
            } else if p.eat_word("COMMENT") {
                let Some(text) = string(p) else { return Err(p.unexpected("a comment in quotes")) };
                field.metadata.insert("comment".into(), serde_json::Value::from(text).to_string());
            } else {
                return Ok(AddedColumn { parent, field, has_default, position: at });
            }
        }
    })?;
    Ok(TableChange::AddColumns(added))
}

fn add_constraint(p: &mut Parser<'_>) -> Result<TableChange> {
    let name = p.name("the name of a constraint")?;
    if !p.eat_word("CHECK") {
        let place = p.peek().place;
        return if ["PRIMARY", "FOREIGN", "UNIQUE"].iter().any(|word| p.word_at(0, word)) {
            Err(Error::unsupported("Delta tables have CHECK constraints only")
                .class("UNSUPPORTED_FEATURE.TABLE_OPERATION")
                .with(LINE, place.line)
                .with(POSITION, place.column - 1))
        } else {
            Err(p.unexpected("CHECK (condition)"))
        };
    }
    p.expect_symbol("(")?;
    let (start, mut tokens, mut open) = (p.at(), Vec::new(), 0);
    loop {
        if p.at_end() {
            return Err(p.unexpected("')'"));
        }
        if open == 0 && p.symbol_at(0, ")") {
            break;
        }
        open += i32::from(p.symbol_at(0, "(")) - i32::from(p.symbol_at(0, ")"));
        let token = p.advance();
        // A number and its type's letters are one token to Spark.
        let has_suffix = token.kind == Kind::Number
            && matches!(p.peek(), Token { kind: Kind::Word { quoted: false, .. }, start, .. } if *start == token.end);
        let end = if has_suffix { p.advance().end } else { token.end };
        tokens.push(&p.text[token.start..end]);
    }
    if tokens.is_empty() {
        return Err(p.unexpected("a condition"));
    }
    let end = p.at();
    p.expect_symbol(")")?;
    let condition = whole(p, start, end, expression::condition);
    Ok(TableChange::AddConstraint { name, check: tokens.join(" "), condition })
}

/// The tokens from `start` to `end` as an expression; `None` if it is more than we read.
fn whole(p: &Parser<'_>, start: usize, end: usize, read: impl FnOnce(&mut Parser<'_>) -> Result<Expr>) -> Option<Expr> {
    let mut inner = p.between(start, end);
    let expr = read(&mut inner).ok()?;
    inner.at_end().then_some(expr)
}

/// An expression up to a comma, or a word that can only follow it.
pub(crate) fn default_text(p: &mut Parser<'_>) -> Result<ColumnDefault> {
    let (start, first) = (p.at(), p.peek().clone());
    let mut open = 0;
    while !p.at_end() {
        let ends = [")", ","].iter().any(|s| p.symbol_at(0, s))
            || ["COMMENT", "FIRST", "AFTER", "NOT", "DEFAULT"].iter().any(|word| p.at() > start && p.word_at(0, word));
        if open == 0 && ends {
            break;
        }
        open += i32::from(p.symbol_at(0, "(")) - i32::from(p.symbol_at(0, ")"));
        p.advance();
    }
    if p.at() == start {
        return Err(p.unexpected("a value"));
    }
    let text = p.text[first.start..p.previous().end].to_owned();
    Ok(ColumnDefault { text, value: whole(p, start, p.at(), expression::condition) })
}

fn change_columns(p: &mut Parser<'_>, is_hive: bool) -> Result<TableChange> {
    let mut changes: Vec<ColumnChange> = Vec::new();
    loop {
        let place = p.peek().place;
        let path = p.dotted_name("a column")?;
        if changes.iter().any(|other| same(&other.path, &path)) {
            return Err(error_at(
                place,
                "NOT_SUPPORTED_CHANGE_SAME_COLUMN",
                format!(
                    "ALTER TABLE ALTER/CHANGE COLUMN is not supported for changing the column {} twice",
                    path.join(".")
                ),
            ));
        }
        changes.push(column_change(p, path, is_hive)?);
        if !p.eat_symbol(",") {
            return Ok(TableChange::ChangeColumns(changes));
        }
    }
}

fn same(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

fn column_change(p: &mut Parser<'_>, path: Vec<String>, is_hive: bool) -> Result<ColumnChange> {
    let mut change = ColumnChange { path, ..ColumnChange::default() };
    if p.eat_word("TYPE") {
        change.data_type = Some(data_type(p)?);
    } else if p.eat_word("COMMENT") {
        change.comment = Some(quoted(p)?);
    } else if p.eat_words(&["SET", "NOT", "NULL"]) {
        change.nullable = Some(false);
    } else if p.eat_words(&["DROP", "NOT", "NULL"]) {
        change.nullable = Some(true);
    } else if p.eat_words(&["SET", "DEFAULT"]) {
        change.default = Some(Some(default_text(p)?));
    } else if p.eat_words(&["DROP", "DEFAULT"]) {
        change.default = Some(None);
    } else if let Some(at) = position(p)? {
        change.position = Some(at);
    } else if is_hive && matches!(p.peek().kind, Kind::Word { .. }) {
        hive_change(p, &mut change)?;
    } else {
        return Err(p.unexpected("TYPE, COMMENT, FIRST, AFTER, SET | DROP NOT NULL or SET | DROP DEFAULT"));
    }
    Ok(change)
}

/// `CHANGE c c INT COMMENT '…' FIRST`, the column named twice.
fn hive_change(p: &mut Parser<'_>, change: &mut ColumnChange) -> Result<()> {
    let place = p.peek().place;
    let again = p.name("the column's name again")?;
    if change.path.last().is_none_or(|name| !name.eq_ignore_ascii_case(&again)) {
        return Err(error_at(
            place,
            "PARSE_SYNTAX_ERROR",
            "Renaming column is not supported in Hive-style ALTER COLUMN, please run RENAME COLUMN instead",
        ));
    }
    change.data_type = Some(data_type(p)?);
    if p.eat_word("COMMENT") {
        change.comment = Some(quoted(p)?);
    }
    change.position = position(p)?;
    Ok(())
}

fn quoted(p: &mut Parser<'_>) -> Result<String> {
    match string(p) {
        Some(text) => Ok(text),
        None => Err(p.unexpected("a comment in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{StatementKind, StatementOp};

    fn read(text: &str) -> Result<TableChange> {
        match crate::parse(&format!("ALTER TABLE db.t {text}"))?.swap_remove(0).kind {
            StatementKind::Table { op: StatementOp::Alter(change), .. } => Ok(change),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn one_change(text: &str) -> ColumnChange {
        match read(text).unwrap() {
            TableChange::ChangeColumns(mut changes) if changes.len() == 1 => changes.swap_remove(0),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn columns_are_added_anywhere() {
        let TableChange::AddColumns(added) =
            read("ADD COLUMNS (a INT COMMENT 'x' FIRST, s.b STRING AFTER c, `d e` ARRAY<INT> NOT NULL)").unwrap()
        else {
            panic!("columns are added")
        };
        assert_eq!(added[0].position, Some(Position::First));
        assert_eq!(added[0].field.metadata["comment"], "\"x\"");
        assert_eq!((added[1].parent.join("."), added[1].field.name.as_str()), ("s".to_owned(), "b"));
        assert_eq!(added[1].position, Some(Position::After("c".into())));
        assert_eq!((added[2].field.name.as_str(), added[2].field.nullable), ("d e", false));
        let TableChange::AddColumns(added) = read("ADD COLUMN a INT DEFAULT 1 + f(2, 3) AFTER b, c INT").unwrap()
        else {
            panic!("columns are added")
        };
        assert!(added[0].has_default && !added[1].has_default);
        assert_eq!(added[0].position, Some(Position::After("b".into())));
    }

    #[test]
    fn columns_are_changed_one_thing_at_a_time() {
        assert_eq!(one_change("ALTER COLUMN s.c COMMENT 'it''s'").comment.as_deref(), Some("it's"));
        assert_eq!(one_change("ALTER c FIRST").position, Some(Position::First));
        assert_eq!(one_change("CHANGE COLUMN c AFTER d").position, Some(Position::After("d".into())));
        assert_eq!(one_change("ALTER COLUMN c TYPE BIGINT").data_type.unwrap().simple_string(), "bigint");
        assert_eq!(one_change("ALTER COLUMN c SET NOT NULL").nullable, Some(false));
        assert_eq!(one_change("ALTER COLUMN c DROP NOT NULL").nullable, Some(true));
        assert_eq!(one_change("ALTER COLUMN c DROP DEFAULT").default, Some(None));
        let default = one_change("ALTER COLUMN c SET DEFAULT 1  + 2").default.unwrap().unwrap();
        assert_eq!((default.text.as_str(), default.value.is_some()), ("1  + 2", true));
        let hive = one_change("CHANGE c C INT COMMENT 'x' AFTER b");
        assert_eq!((hive.comment.as_deref(), hive.position), (Some("x"), Some(Position::After("b".into()))));
        let TableChange::ChangeColumns(two) = read("ALTER COLUMN a COMMENT 'x', b SET DEFAULT 'a,b'").unwrap() else {
            panic!("columns are changed")
        };
        assert_eq!((two.len(), two[1].path.join(".")), (2, "b".to_owned()));
    }

    #[test]
    fn columns_are_dropped_and_renamed_by_path() {
        let path = |parts: &[&str]| parts.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            read("DROP COLUMNS (a, s.b)").unwrap(),
            TableChange::DropColumns { paths: vec![path(&["a"]), path(&["s", "b"])], if_exists: false }
        );
        assert_eq!(
            read("DROP COLUMN IF EXISTS a").unwrap(),
            TableChange::DropColumns { paths: vec![path(&["a"])], if_exists: true }
        );
        assert_eq!(
            read("RENAME COLUMN s.b TO `c d`").unwrap(),
            TableChange::RenameColumn { path: path(&["s", "b"]), to: "c d".into() }
        );
    }

    #[test]
    fn constraints_keep_their_tokens() {
        let TableChange::AddConstraint { name, check, condition } =
            read("ADD CONSTRAINT sx CHECK (s.x  IS NOT NULL   and\n id<>5)").unwrap()
        else {
            panic!("a constraint is added")
        };
        assert_eq!((name.as_str(), check.as_str()), ("sx", "s . x IS NOT NULL and id <> 5"));
        assert!(condition.is_some());
        let TableChange::AddConstraint { check, condition, .. } =
            read("ADD CONSTRAINT c CHECK (x IN (1, (2)) AND regexp(a, ')'))").unwrap()
        else {
            panic!("a constraint is added")
        };
        assert_eq!(check, "x IN ( 1 , ( 2 ) ) AND regexp ( a , ')' )");
        assert!(condition.is_some());
        assert_eq!(
            read("DROP CONSTRAINT IF EXISTS c").unwrap(),
            TableChange::DropConstraint { name: "c".into(), if_exists: true }
        );
    }

    #[test]
    fn what_is_not_understood_is_shown() {
        for text in [
            "ADD COLUMN",
            "ADD COLUMN a",
            "ADD COLUMNS (a INT",
            "DROP COLUMN",
            "RENAME COLUMN a",
            "ALTER COLUMN a",
            "ALTER COLUMN a TYPE INT COMMENT 'both'",
            "CHANGE a b INT",
            "ALTER a a INT",
            "ADD CONSTRAINT c CHECK ()",
            "ADD CONSTRAINT c CHECK (a > 1",
            "ADD CONSTRAINT c",
        ] {
            let error = read(text).map(|found| panic!("{text}: {found:?}")).unwrap_err();
            assert_eq!(error.class_name(), "PARSE_SYNTAX_ERROR", "{text}: {error}");
        }
        assert_eq!(read("ALTER COLUMN a FIRST, A FIRST").unwrap_err().class_name(), "NOT_SUPPORTED_CHANGE_SAME_COLUMN");
        let error = read("ADD CONSTRAINT pk PRIMARY KEY (a)").unwrap_err();
        assert_eq!(error.class_name(), "UNSUPPORTED_FEATURE.TABLE_OPERATION");
    }
}
