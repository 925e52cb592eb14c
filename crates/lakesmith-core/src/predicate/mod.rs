//! Predicates over partition columns: the expression tree that SQL parses into, its text in the history, and its value.
//!
//! ```text
//! SQL text --(SQL room)--> Expr --bind_partition_predicate--> BoundPredicate --matches--> true | false
//! ```
//!
//! Semantics are Spark's with ANSI mode on and the session time zone UTC.

mod arithmetic;
mod bind;
pub mod calendar;
mod cast;
mod coerce;
mod constant;
mod date_pattern;
mod display;
mod eval;
mod functions;
mod like;
mod temporal_text;
mod text_functions;
mod time_functions;

use crate::table::{DataType, Scalar};

pub use bind::{BoundPredicate, bind_partition_predicate};
pub use constant::check_default;
pub use date_pattern::parse as parse_with_pattern;
pub use temporal_text::{parse_date, parse_timestamp};
pub use time_functions::{truncate_date, truncate_timestamp};

/// An expression. Built by the SQL parser; evaluated over a partition's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A column, as the parts of its path (`a.b` is two, `` `a.b` `` one).
    Column(Vec<String>),
    /// A literal.
    Literal(Scalar),
    /// A comparison, arithmetic or logical operator with two operands.
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// NOT.
    Not(Box<Expr>),
    /// IS NULL.
    IsNull(Box<Expr>),
    /// IS NOT NULL.
    IsNotNull(Box<Expr>),
    /// Unary minus on anything but a numeric literal.
    Negative(Box<Expr>),
    /// IN (…).
    In(Box<Expr>, Vec<Expr>),
    /// LIKE with `%`, `_` and the escape character.
    Like {
        /// Text.
        value: Box<Expr>,
        /// Pattern.
        pattern: String,
        /// Escape character.
        escape: char,
    },
    /// CAST(x AS type), the type by its Spark name.
    Cast(Box<Expr>, DataType),
    /// A function by its name as written; names have no case.
    Function(String, Vec<Expr>),
    /// INTERVAL literal: months, days, microseconds.
    Interval {
        /// Whole months.
        months: i32,
        /// Whole days.
        days: i32,
        /// The rest in microseconds.
        micros: i64,
        /// Largest and smallest field that the literal names: `INTERVAL 24 HOURS` is not a whole day to Spark.
        fields: (IntervalField, IntervalField),
    },
}

/// Fields of an INTERVAL, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum IntervalField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl IntervalField {
    /// True for the fields that count months.
    pub fn is_year_month(self) -> bool {
        matches!(self, IntervalField::Year | IntervalField::Month)
    }

    /// Spark's keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            IntervalField::Year => "YEAR",
            IntervalField::Month => "MONTH",
            IntervalField::Day => "DAY",
            IntervalField::Hour => "HOUR",
            IntervalField::Minute => "MINUTE",
            IntervalField::Second => "SECOND",
        }
    }
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Eq,
    NotEq,
    NullSafeEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    And,
    Or,
    Plus,
    Minus,
    Multiply,
    Divide,
    /// DIV
    IntegerDivide,
    Modulo,
    /// `||`
    Concat,
}

#[cfg(test)]
#[path = "predicate_tests.rs"]
mod predicate_tests;
