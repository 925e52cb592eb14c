//! Predicates over partition columns: the expression tree that SQL parses into.

mod bind;
pub mod calendar;
mod cast;
mod eval;
mod spark_text;

use crate::table::Scalar;

pub use bind::{BoundPredicate, bind_partition_predicate};
pub use calendar::parse_date;

/// Parses a timestamp: microseconds since the epoch (UTC without a zone) and whether a zone was written.
pub fn parse_timestamp(text: &str) -> Option<(i64, bool)> {
    let micros = calendar::parse_timestamp(text)?;
    let time = text.trim().split_once(['T', ' ']).map_or("", |(_, time)| time);
    Some((micros, time.ends_with('Z') || time.contains(['+', '-']) || time.ends_with("UTC")))
}

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
    /// Unary minus.
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
    Cast(Box<Expr>, crate::table::DataType),
    /// A function by lower-case name.
    Function(String, Vec<Expr>),
    /// INTERVAL literal: months, days, microseconds.
    Interval {
        /// Whole months.
        months: i32,
        /// Whole days.
        days: i32,
        /// The rest in microseconds.
        micros: i64,
        /// First and last unit written.
        fields: (IntervalField, IntervalField),
    },
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
    Modulo,
    IntegerDivide,
    Concat,
}

/// Units of an interval, largest first.
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
    /// The unit as SQL writes it.
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

    /// True for years and months, which have no fixed length.
    pub fn is_year_month(self) -> bool {
        self <= IntervalField::Month
    }
}
