//! Predicates over partition columns: the expression tree that SQL parses into.

mod bind;
pub mod calendar;
mod cast;
mod eval;
mod spark_text;

use crate::table::Scalar;

pub use bind::{BoundPredicate, bind_partition_predicate};

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
    /// IS NULL; IS NOT NULL is its negation.
    IsNull(Box<Expr>),
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
}
