//! Predicates as Spark prints them unresolved: the text of `operationParameters.predicate`.
//!
//! # Source
//! Measured on Spark 4.1's parser: `toString` of the parsed expression.

use super::calendar::{HOUR, MINUTE, SECOND};
use super::temporal_text::{format_date, format_timestamp};
use super::{BinaryOp, Expr, IntervalField, cast};
use crate::table::Scalar;

impl Expr {
    /// Spark's text of the unresolved expression: columns and functions carry a leading quote, literals are bare, as in
    /// `('event_date >= 2026-11-29)`.
    pub fn spark_text(&self) -> String {
        match self {
            Expr::Column(parts) => {
                let quoted = |part: &String| if part.contains('.') { format!("`{part}`") } else { part.clone() };
                format!("'{}", parts.iter().map(quoted).collect::<Vec<_>>().join("."))
            }
            Expr::Literal(value) => literal(value),
            Expr::Binary { .. } => self.binary_text(),
            Expr::Not(inner) => format!("NOT {}", inner.spark_text()),
            Expr::IsNull(inner) => format!("isnull({})", inner.spark_text()),
            Expr::IsNotNull(inner) => format!("isnotnull({})", inner.spark_text()),
            Expr::Negative(inner) => format!("-{}", inner.spark_text()),
            Expr::In(value, list) => format!("{} IN ({})", value.spark_text(), join(list, ",")),
            Expr::Like { value, pattern, escape: '\\' } => format!("{} LIKE {pattern}", value.spark_text()),
            Expr::Like { value, pattern, escape } => {
                format!("{} LIKE {pattern} ESCAPE '{escape}'", value.spark_text())
            }
            Expr::Cast(value, to) => format!("cast({} as {})", value.spark_text(), to.simple_string()),
            Expr::Function(name, arguments) => format!("'{name}({})", join(arguments, ", ")),
            Expr::Interval { months, days, micros, fields } => interval(*months, *days, *micros, *fields),
        }
    }

    /// Operators to the left are walked in a loop: a chain of ANDs may be long.
    fn binary_text(&self) -> String {
        let mut chain = Vec::new();
        let mut expr = self;
        while let Expr::Binary { op, left, right } = expr {
            chain.push((*op, right));
            expr = left;
        }
        let mut text: String =
            chain.iter().map(|(op, _)| if *op == BinaryOp::Concat { "concat(" } else { "(" }).collect();
        text.push_str(&expr.spark_text());
        for (op, right) in chain.into_iter().rev() {
            match op {
                BinaryOp::Concat => text.push_str(", "),
                _ => text.push_str(&format!(" {} ", symbol(op))),
            }
            text.push_str(&right.spark_text());
            text.push(')');
        }
        text
    }
}

fn join(list: &[Expr], separator: &str) -> String {
    list.iter().map(Expr::spark_text).collect::<Vec<_>>().join(separator)
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Eq => "=",
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
        BinaryOp::IntegerDivide => "div",
        BinaryOp::Modulo => "%",
        BinaryOp::Concat => "||",
    }
}

fn literal(value: &Scalar) -> String {
    match value {
        Scalar::Null => "null".into(),
        Scalar::Date(day) => format_date(*day),
        Scalar::Timestamp(micros) | Scalar::TimestampNtz(micros) => format_timestamp(*micros),
        Scalar::Binary(bytes) => {
            let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
            format!("0x{digits}")
        }
        other => cast::text(other),
    }
}

/// `INTERVAL '1 02:03' DAY TO MINUTE`: the first field bare when it is a day, else two digits.
fn interval(months: i32, days: i32, micros: i64, (first, last): (IntervalField, IntervalField)) -> String {
    use IntervalField::*;
    let total = i128::from(days) * 24 * i128::from(HOUR) + i128::from(micros);
    let negative = if first.is_year_month() { months < 0 } else { total < 0 };
    let (months, total) = (months.unsigned_abs(), total.unsigned_abs());
    let unit = |size: i64| total / size as u128;
    let seconds = || {
        let fraction = total % SECOND as u128;
        let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
        fraction.trim_end_matches('0').to_owned()
    };
    let part = |field: IntervalField| match field {
        Year => (months / 12).to_string(),
        Month if first == Month => months.to_string(),
        Month => (months % 12).to_string(),
        Day => unit(24 * HOUR).to_string(),
        Hour => format!("{:02}", if first == Hour { unit(HOUR) } else { unit(HOUR) % 24 }),
        Minute => format!("{:02}", if first == Minute { unit(MINUTE) } else { unit(MINUTE) % 60 }),
        Second => format!("{:02}{}", if first == Second { unit(SECOND) } else { unit(SECOND) % 60 }, seconds()),
    };
    let mut text = if negative { "-".to_owned() } else { String::new() };
    for field in [Year, Month, Day, Hour, Minute, Second].into_iter().filter(|f| *f >= first && *f <= last) {
        if field != first {
            text.push(match field {
                Month => '-',
                Hour => ' ',
                _ => ':',
            });
        }
        text.push_str(&part(field));
    }
    let to = if first == last { String::new() } else { format!(" TO {}", last.keyword()) };
    format!("INTERVAL '{text}' {}{to}", first.keyword())
}
