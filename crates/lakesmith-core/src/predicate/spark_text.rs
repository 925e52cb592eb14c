//! Predicates as Spark prints them unresolved: the text of `operationParameters.predicate`.

use super::{BinaryOp, Expr};
use crate::predicate::calendar;
use crate::table::Scalar;

impl Expr {
    /// Spark's text of the unresolved expression: columns carry a leading quote, literals are bare, as in
    /// `('event_date >= 2026-11-29)`.
    pub fn spark_text(&self) -> String {
        match self {
            Expr::Column(parts) => format!("'{}", parts.join(".")),
            Expr::Literal(value) => literal(value),
            Expr::Binary { op, left, right } => {
                format!("({} {} {})", left.spark_text(), symbol(*op), right.spark_text())
            }
            Expr::Not(inner) => format!("NOT {}", inner.spark_text()),
            Expr::IsNotNull(value) => format!("isnotnull({})", value.spark_text()),
            Expr::Negative(value) => format!("(- {})", value.spark_text()),
            Expr::IsNull(value) => format!("isnull({})", value.spark_text()),
            Expr::In(value, list) => format!("{} IN ({})", value.spark_text(), join(list, ",")),
            Expr::Like { value, pattern, .. } => format!("{} LIKE {pattern}", value.spark_text()),
            Expr::Cast(value, to) => format!("cast({} as {})", value.spark_text(), to.simple_string()),
            Expr::Function(name, arguments) if name == "between" => format!("between({})", join(arguments, ", ")),
            Expr::Function(name, arguments) => format!("'{name}({})", join(arguments, ", ")),
            Expr::Interval { months, days, micros, .. } => {
                format!("INTERVAL '{months} months {days} days {micros} microseconds'")
            }
        }
    }
}

fn join(list: &[Expr], separator: &str) -> String {
    list.iter().map(Expr::spark_text).collect::<Vec<_>>().join(separator)
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Eq => "=",
        // Spark parses `a != b` into NOT (a = b); the parser does the same, so this is only for completeness.
        BinaryOp::NotEq => "!=",
        BinaryOp::NullSafeEq => "<=>",
        BinaryOp::Lt => "<",
        BinaryOp::LtEq => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::GtEq => ">=",
        BinaryOp::And => "AND",
        BinaryOp::Or => "OR",
        BinaryOp::Plus => "+",
        BinaryOp::Minus => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
        BinaryOp::IntegerDivide => "div",
        BinaryOp::Concat => "||",
    }
}

fn literal(value: &Scalar) -> String {
    match value {
        Scalar::Null => "null".into(),
        Scalar::Boolean(b) => b.to_string(),
        Scalar::Long(n) => n.to_string(),
        Scalar::Double(d) => d.to_string(),
        Scalar::Decimal(unscaled, scale) => super::cast::decimal_text(*unscaled, *scale),
        Scalar::Date(days) => format!("DATE '{}'", calendar::date_text(*days)),
        Scalar::Timestamp(micros) => format!("TIMESTAMP '{}'", calendar::timestamp_text(*micros)),
        Scalar::TimestampNtz(micros) => format!("TIMESTAMP_NTZ '{}'", calendar::timestamp_text(*micros)),
        Scalar::String(text) => text.clone(),
        Scalar::Binary(bytes) => bytes.iter().map(|b| format!("{b:02X}")).collect(),
    }
}
