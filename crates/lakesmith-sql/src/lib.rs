#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]
//! Spark's maintenance SQL: text to statements and operations, with a position in every error.
//!
//! ```text
//! text --tokens--> Statement { kind, span, text } --to_operation(Settings)--> lakesmith_core::op::Operation
//! ```
//!
//! Statements that need a query engine (SELECT, INSERT, CREATE TABLE … AS SELECT …) are recognised and carried as text.

mod alter;
mod catalog;
mod column_type;
mod create;
mod diagnostic;
mod expression;
mod grammar;
mod interval;
mod literal;
mod operation;
mod parser;
mod restore;
mod settings;
mod settings_table;
mod statement;
mod string_literal;
mod suggest;
mod token;
mod vacuum;

pub use create::{CreateFrom, create_from};
pub use diagnostic::render_snippet;
pub use grammar::{parse, parse_predicate, parse_table_name};
pub use operation::{create_table, to_operation};
pub use settings::{Settings, is_secret_setting, shown};
pub use settings_table::{Setting, readable as readable_setting, settings_reference};
pub use statement::{
    CatalogStatement, CreateClauses, Predicate, Span, Statement, StatementKind, StatementOp, TableRef, VacuumClauses,
};
pub use string_literal::unescape;
pub use suggest::nearest;
