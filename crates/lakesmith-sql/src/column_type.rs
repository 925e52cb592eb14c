//! Column definitions and their types.
//!
//! # Source
//! Spark `SqlBaseParser.g4`, `colDefinition` and `dataType`; `CharVarcharUtils`.

use std::collections::BTreeMap;

use lakesmith_core::op::ColumnDefault;
use lakesmith_core::table::{DataType, Field};
use lakesmith_core::{Error, Result};

use crate::alter::default_text;
use crate::diagnostic::{LINE, POSITION, error_at, syntax_error};
use crate::parser::Parser;
use crate::token::{Kind, Token};

/// Key of a column's metadata under which Spark keeps CHAR and VARCHAR.
const CHAR_VARCHAR: &str = "__CHAR_VARCHAR_TYPE_STRING";
const DECIMAL_PRECISION_MAX: u8 = 38;
/// Types in types: deep enough for people, shallow enough for every thread's stack.
const MAX_DEPTH: usize = 60;

/// `name type [NOT NULL] [DEFAULT value] [COMMENT '…']`.
pub(crate) fn column(p: &mut Parser<'_>, defaults: &mut Vec<(String, ColumnDefault)>) -> Result<Field> {
    if p.word_at(0, "CONSTRAINT") && matches!(p.peek_at(1).kind, Kind::Word { .. }) && !p.symbol_at(1, ",") {
        return Err(unsupported(p, "constraints in CREATE TABLE are not supported"));
    }
    let name = p.name("a column")?;
    let mut field = column_at(p, name)?;
    while p.eat_word("DEFAULT") {
        if defaults.iter().any(|(column, _)| *column == field.name) {
            return Err(p.unexpected("one default value a column"));
        }
        defaults.push((field.name.clone(), default_text(p)?));
        rest(p, &mut field)?;
    }
    Ok(field)
}

/// A type on its own.
pub(crate) fn data_type(p: &mut Parser<'_>) -> Result<DataType> {
    let place = p.peek().place;
    let mut types = Types { half_closed: false, depth: 0 };
    let (data_type, spark_type) = types.column(p)?;
    types.closed(p)?;
    match spark_type {
        None => Ok(data_type),
        Some(_) => Err(error_at(
            place,
            "UNSUPPORTED_FEATURE",
            "a column can't be made CHAR or VARCHAR later; use STRING, or a CHECK constraint on its length",
        )),
    }
}

/// What follows a column's name: `type [NOT NULL] [COMMENT '…']`.
pub(crate) fn column_at(p: &mut Parser<'_>, name: String) -> Result<Field> {
    let mut types = Types { half_closed: false, depth: 0 };
    let (data_type, spark_type) = types.column(p)?;
    types.closed(p)?;
    let mut field = plain(name, data_type);
    if let Some(spark_type) = spark_type {
        field.metadata.insert(CHAR_VARCHAR.into(), json(&spark_type));
    }
    rest(p, &mut field)?;
    Ok(field)
}

/// `[NOT NULL] [COMMENT '…']`, in any order.
fn rest(p: &mut Parser<'_>, field: &mut Field) -> Result<()> {
    loop {
        if p.eat_word("NOT") {
            p.expect_word("NULL")?;
            field.nullable = false;
        } else if p.eat_word("COMMENT") {
            comment(p, field)?;
        } else if p.word_at(0, "GENERATED") {
            return Err(unsupported(p, "generated and identity columns are not supported"));
        } else if p.word_at(0, "COLLATE") {
            return Err(unsupported(p, "collations are not supported"));
        } else {
            return Ok(());
        }
    }
}

fn comment(p: &mut Parser<'_>, field: &mut Field) -> Result<()> {
    let Kind::Text(text) = &p.peek().kind else { return Err(p.unexpected("a comment in quotes")) };
    field.metadata.insert("comment".into(), json(text));
    p.advance();
    Ok(())
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn plain(name: String, data_type: DataType) -> Field {
    Field { physical: name.clone(), name, id: None, data_type, nullable: true, metadata: BTreeMap::new() }
}

fn unsupported(p: &Parser<'_>, why: &str) -> Error {
    let place = p.peek().place;
    Error::unsupported(why).class("UNSUPPORTED_FEATURE").with(LINE, place.line).with(POSITION, place.column - 1)
}

/// Reads types. In `ARRAY<ARRAY<INT>>` the tokenizer makes one symbol of the two `>`.
struct Types {
    /// The first half of a `>>` was taken.
    half_closed: bool,
    depth: usize,
}

impl Types {
    /// Refuses one `>` too many.
    fn closed(&self, p: &Parser<'_>) -> Result<()> {
        if self.half_closed {
            return Err(syntax_error(p.previous().place, "Syntax error at or near '>>': expected '>'"));
        }
        Ok(())
    }

    /// A column's type, and its name where Spark keeps one that Delta does not know.
    fn column(&mut self, p: &mut Parser<'_>) -> Result<(DataType, Option<String>)> {
        let is_char = p.word_at(0, "CHAR") || p.word_at(0, "CHARACTER");
        if !is_char && !p.word_at(0, "VARCHAR") {
            return Ok((self.any(p)?, None));
        }
        p.advance();
        p.expect_symbol("(")?;
        let length: u32 = number(p, "a length")?;
        p.expect_symbol(")")?;
        Ok((DataType::String, Some(format!("{}({length})", if is_char { "char" } else { "varchar" }))))
    }

    fn any(&mut self, p: &mut Parser<'_>) -> Result<DataType> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error_at(
                p.peek().place,
                "PARSE_SYNTAX_ERROR",
                format!("the type is nested more than {MAX_DEPTH} levels deep; write it flatter"),
            ));
        }
        let word = p.peek().clone();
        let name = match &word.kind {
            Kind::Word { value, quoted: false } => value.to_uppercase(),
            _ => return Err(p.unexpected("a type")),
        };
        p.advance();
        let found = match name.as_str() {
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
            "VARIANT" => DataType::Variant,
            "DECIMAL" | "DEC" | "NUMERIC" => decimal(p)?,
            "ARRAY" => {
                self.open(p)?;
                let element = plain("element".into(), self.any(p)?);
                self.close(p)?;
                DataType::List(Box::new(element))
            }
            "MAP" => {
                self.open(p)?;
                let key = Field { nullable: false, ..plain("key".into(), self.any(p)?) };
                p.expect_symbol(",")?;
                let value = plain("value".into(), self.any(p)?);
                self.close(p)?;
                DataType::Map(Box::new(key), Box::new(value))
            }
            "STRUCT" => self.structure(p)?,
            "CHAR" | "CHARACTER" | "VARCHAR" => {
                return Err(at(&word, "CHAR and VARCHAR are not supported inside other types; use STRING"));
            }
            "VOID" | "INTERVAL" | "TIME" | "GEOMETRY" | "GEOGRAPHY" => {
                return Err(at(&word, &format!("columns of type {name} are not supported in Delta tables")));
            }
            _ => {
                return Err(error_at(
                    word.place,
                    "UNSUPPORTED_DATATYPE",
                    format!("Unsupported data type \"{name}\": expected a type such as BIGINT, STRING or ARRAY<INT>"),
                ));
            }
        };
        self.depth -= 1;
        Ok(found)
    }

    fn structure(&mut self, p: &mut Parser<'_>) -> Result<DataType> {
        // The tokenizer makes one symbol of nothing in brackets.
        if p.symbol_at(0, "<>") {
            return Err(p.unexpected("'<' and the fields of the struct"));
        }
        self.open(p)?;
        let mut fields = Vec::new();
        loop {
            let name = p.name("a field")?;
            p.eat_symbol(":");
            let mut field = plain(name, self.any(p)?);
            // A bracket that is half taken closes this struct too: nothing can stand between.
            if !self.half_closed {
                if p.eat_word("NOT") {
                    p.expect_word("NULL")?;
                    field.nullable = false;
                }
                if p.eat_word("COMMENT") {
                    comment(p, &mut field)?;
                }
            }
            fields.push(field);
            if self.half_closed || !p.eat_symbol(",") {
                self.close(p)?;
                return Ok(DataType::Struct(fields));
            }
        }
    }

    fn open(&self, p: &mut Parser<'_>) -> Result<()> {
        p.expect_symbol("<")
    }

    fn close(&mut self, p: &mut Parser<'_>) -> Result<()> {
        if self.half_closed {
            self.half_closed = false;
            return Ok(());
        }
        if p.eat_symbol(">>") {
            self.half_closed = true;
            return Ok(());
        }
        if p.eat_symbol(">") { Ok(()) } else { Err(p.unexpected("',' or '>'")) }
    }
}

fn at(token: &Token, why: &str) -> Error {
    Error::unsupported(why)
        .class("DELTA_UNSUPPORTED_DATA_TYPES")
        .with(LINE, token.place.line)
        .with(POSITION, token.place.column - 1)
}

fn decimal(p: &mut Parser<'_>) -> Result<DataType> {
    if !p.eat_symbol("(") {
        return Ok(DataType::Decimal { precision: 10, scale: 0 });
    }
    let place = p.peek().place;
    let precision: u8 = number(p, "a precision")?;
    let scale: u8 = if p.eat_symbol(",") { number(p, "a scale")? } else { 0 };
    p.expect_symbol(")")?;
    if precision == 0 || precision > DECIMAL_PRECISION_MAX {
        let message = format!("the precision of a decimal is from 1 to {DECIMAL_PRECISION_MAX}, not {precision}");
        return Err(error_at(place, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", message));
    }
    match i8::try_from(scale) {
        Ok(scale_digits) if scale <= precision => Ok(DataType::Decimal { precision, scale: scale_digits }),
        _ => Err(error_at(
            place,
            "INVALID_DECIMAL_SCALE",
            format!("the scale {scale} of a decimal is greater than its precision {precision}"),
        )),
    }
}

fn number<T: std::str::FromStr>(p: &mut Parser<'_>, expected: &str) -> Result<T> {
    let token = p.peek().clone();
    let parsed = if token.kind == Kind::Number { p.source(&token).parse().ok() } else { None };
    match parsed {
        Some(number) => {
            p.advance();
            Ok(number)
        }
        None => Err(p.unexpected(expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokenize;

    fn read(text: &str) -> Result<Field> {
        let tokens = tokenize(text)?;
        let mut parser = Parser::new(text, &tokens);
        let field = column(&mut parser, &mut Vec::new())?;
        parser.expect_end("the end")?;
        Ok(field)
    }

    #[test]
    fn types_in_types_close_in_any_spelling() {
        for (text, expected) in [
            ("a ARRAY<ARRAY<INT>>", "array<array<int>>"),
            ("a array<array<array<int> > >", "array<array<array<int>>>"),
            ("a MAP<STRING, ARRAY<DOUBLE>> NOT NULL", "map<string,array<double>>"),
            (
                "a STRUCT<x: INT NOT NULL, `y z` ARRAY<STRUCT<q:DATE COMMENT 'c'>>>",
                "struct<x:int,y z:array<struct<q:date>>>",
            ),
            ("a STRUCT<x:STRUCT<y:BIGINT>>", "struct<x:struct<y:bigint>>"),
            ("a DECIMAL", "decimal(10,0)"),
            ("a NUMERIC(12)", "decimal(12,0)"),
            ("a dec(38, 38)", "decimal(38,38)"),
            ("a timestamp_ntz", "timestamp_ntz"),
            ("a BYTE", "tinyint"),
        ] {
            assert_eq!(read(text).unwrap().data_type.simple_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_follows_the_type_is_kept() {
        let field = read("`a b` VARCHAR(5) COMMENT 'it''s' NOT NULL").unwrap();
        assert_eq!((field.name.as_str(), field.nullable), ("a b", false));
        assert_eq!(field.metadata["comment"], r#""it's""#);
        assert_eq!(field.metadata[CHAR_VARCHAR], r#""varchar(5)""#);
        assert_eq!(read("a character(3)").unwrap().metadata[CHAR_VARCHAR], r#""char(3)""#);
    }

    #[test]
    fn what_cannot_be_a_column_is_refused_at_its_place() {
        for (text, class) in [
            ("a", "PARSE_SYNTAX_ERROR"),
            ("a ARRAY<INT", "PARSE_SYNTAX_ERROR"),
            ("a ARRAY<INT>>", "PARSE_SYNTAX_ERROR"),
            ("a STRUCT<>", "PARSE_SYNTAX_ERROR"),
            ("a MAP<INT>", "PARSE_SYNTAX_ERROR"),
            ("a QUUX", "UNSUPPORTED_DATATYPE"),
            ("a DECIMAL(39)", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
            ("a DECIMAL(3, 4)", "INVALID_DECIMAL_SCALE"),
            ("a INTERVAL", "DELTA_UNSUPPORTED_DATA_TYPES"),
            ("a ARRAY<CHAR(3)>", "DELTA_UNSUPPORTED_DATA_TYPES"),
            ("a INT DEFAULT", "PARSE_SYNTAX_ERROR"),
            ("a INT DEFAULT 5 DEFAULT 6", "PARSE_SYNTAX_ERROR"),
            ("a INT GENERATED ALWAYS AS (b)", "UNSUPPORTED_FEATURE"),
            ("CONSTRAINT c CHECK (a > 1)", "UNSUPPORTED_FEATURE"),
        ] {
            let error = read(text).map(|f| panic!("{text}: {f:?}")).unwrap_err();
            assert_eq!(error.class_name(), class, "{text}: {error}");
            assert!(error.context_value("position").is_some(), "{text}");
        }
        let deep = format!("a {}INT{}", "ARRAY<".repeat(200), ">".repeat(200));
        assert_eq!(read(&deep).unwrap_err().class_name(), "PARSE_SYNTAX_ERROR");
    }
}
