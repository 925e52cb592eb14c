//! Evaluates a bound predicate over one partition, with SQL's three values.

use std::cmp::Ordering;

use super::bind::{BoundPredicate, position};
use super::calendar::{self, DAY_MICROS};
use super::{BinaryOp, Expr, cast};
use crate::error::{Error, Result};
use crate::table::{DataType, PartitionTuple, Scalar};

impl BoundPredicate {
    /// True if the predicate is true for the partition; false and NULL are no match.
    ///
    /// # Errors
    /// Usage for a function that is not known or a value that cannot be cast.
    pub fn matches(&self, partition: &PartitionTuple) -> Result<bool> {
        Ok(matches!(self.eval(&self.root, partition)?, Scalar::Boolean(true)))
    }

    fn eval(&self, expr: &Expr, row: &PartitionTuple) -> Result<Scalar> {
        match expr {
            Expr::Column(parts) => {
                let value = position(&self.columns, parts).and_then(|i| row.values.get(i)).cloned();
                value.ok_or_else(|| Error::internal("an unbound column reached the evaluation"))
            }
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                Ok(logical(*op, &self.eval(left, row)?, &self.eval(right, row)?))
            }
            Expr::Binary { op, left, right } => self.binary(*op, left, right, row),
            Expr::Not(inner) => Ok(match self.eval(inner, row)? {
                Scalar::Boolean(b) => Scalar::Boolean(!b),
                _ => Scalar::Null,
            }),
            Expr::IsNull(inner) => Ok(Scalar::Boolean(self.eval(inner, row)?.is_null())),
            Expr::IsNotNull(inner) => Ok(Scalar::Boolean(!self.eval(inner, row)?.is_null())),
            Expr::Negative(inner) => negative(&self.eval(inner, row)?),
            Expr::In(value, list) => {
                let value = self.eval(value, row)?;
                let mut unknown = value.is_null();
                for item in list {
                    match compare(&value, &self.eval(item, row)?)? {
                        Some(Ordering::Equal) => return Ok(Scalar::Boolean(true)),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { Scalar::Null } else { Scalar::Boolean(false) })
            }
            Expr::Like { value, pattern, escape } => Ok(match self.eval(value, row)? {
                Scalar::Null => Scalar::Null,
                value => Scalar::Boolean(like(&cast::text(&value), pattern, *escape)),
            }),
            Expr::Cast(inner, to) => cast::cast(&self.eval(inner, row)?, to),
            Expr::Function(name, arguments) => {
                let values = arguments.iter().map(|a| self.eval(a, row)).collect::<Result<Vec<_>>>()?;
                self.function(name, &values)
            }
            Expr::Interval { .. } => Err(Error::usage("an INTERVAL can only be added to or taken from a date")),
        }
    }

    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr, row: &PartitionTuple) -> Result<Scalar> {
        if let Expr::Interval { months, days, micros, .. } = right {
            let sign = match op {
                BinaryOp::Plus => 1,
                BinaryOp::Minus => -1,
                _ => return Err(Error::usage("an INTERVAL can only be added to or taken from a date")),
            };
            return shift(&self.eval(left, row)?, sign * i64::from(*months), sign * i64::from(*days), sign * micros);
        }
        let (left, right) = (self.eval(left, row)?, self.eval(right, row)?);
        let order = |keep: fn(Ordering) -> bool| {
            compare(&left, &right).map(|o| o.map_or(Scalar::Null, |o| Scalar::Boolean(keep(o))))
        };
        match op {
            BinaryOp::Eq => order(Ordering::is_eq),
            BinaryOp::NotEq => order(Ordering::is_ne),
            BinaryOp::Lt => order(Ordering::is_lt),
            BinaryOp::LtEq => order(Ordering::is_le),
            BinaryOp::Gt => order(Ordering::is_gt),
            BinaryOp::GtEq => order(Ordering::is_ge),
            BinaryOp::NullSafeEq => Ok(Scalar::Boolean(match compare(&left, &right)? {
                Some(order) => order.is_eq(),
                None => left.is_null() && right.is_null(),
            })),
            _ => arithmetic(op, &left, &right),
        }
    }

    fn function(&self, name: &str, arguments: &[Scalar]) -> Result<Scalar> {
        let date = |i: usize| -> Result<Option<i64>> {
            match cast::cast(arguments.get(i).ok_or_else(|| wrong_arguments(name))?, &DataType::Date)? {
                Scalar::Date(d) => Ok(Some(i64::from(d))),
                _ => Ok(None),
            }
        };
        let number = |i: usize| match arguments.get(i) {
            Some(Scalar::Long(n)) => Ok(Some(*n)),
            Some(Scalar::Null) => Ok(None),
            _ => Err(wrong_arguments(name)),
        };
        let days = |d: Option<i64>| d.and_then(|d| i32::try_from(d).ok()).map_or(Scalar::Null, Scalar::Date);
        let part = |d: Option<i64>, pick: fn((i64, u32, u32)) -> i64| {
            d.map_or(Scalar::Null, |d| Scalar::Long(pick(calendar::civil_from_days(d))))
        };
        Ok(match name {
            "current_date" => days(Some(self.now_ms.div_euclid(86_400_000))),
            "current_timestamp" | "now" => Scalar::Timestamp(self.now_ms * 1000),
            "to_date" | "date" if arguments.len() == 1 => days(date(0)?),
            "to_timestamp" if arguments.len() == 1 => cast::cast(&arguments[0], &DataType::Timestamp)?,
            "date_add" => days(date(0)?.zip(number(1)?).map(|(d, n)| d + n)),
            "date_sub" => days(date(0)?.zip(number(1)?).map(|(d, n)| d - n)),
            "add_months" => days(date(0)?.zip(number(1)?).map(|(d, n)| calendar::add_months(d, n))),
            "year" => part(date(0)?, |(y, _, _)| y),
            "month" => part(date(0)?, |(_, m, _)| i64::from(m)),
            "day" | "dayofmonth" => part(date(0)?, |(_, _, d)| i64::from(d)),
            "lower" | "upper" => match arguments {
                [Scalar::Null] => Scalar::Null,
                [v] if name == "lower" => Scalar::String(cast::text(v).to_lowercase()),
                [v] => Scalar::String(cast::text(v).to_uppercase()),
                _ => return Err(wrong_arguments(name)),
            },
            "coalesce" => arguments.iter().find(|a| !a.is_null()).cloned().unwrap_or(Scalar::Null),
            _ => {
                return Err(Error::usage(format!(
                    "the function {name} with {} argument(s) is not available in partition predicates; compute its value \
                     first and write it as a literal",
                    arguments.len()
                ))
                .class("UNRESOLVED_ROUTINE"));
            }
        })
    }
}

fn wrong_arguments(name: &str) -> Error {
    Error::usage(format!("the function {name} got arguments that it does not take"))
        .class("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE")
}

fn logical(op: BinaryOp, left: &Scalar, right: &Scalar) -> Scalar {
    let decisive = op == BinaryOp::Or;
    match (left, right) {
        (Scalar::Boolean(b), _) | (_, Scalar::Boolean(b)) if *b == decisive => Scalar::Boolean(decisive),
        (Scalar::Boolean(_), Scalar::Boolean(_)) => Scalar::Boolean(!decisive),
        _ => match (left, right) {
            (_, Scalar::Boolean(b)) | (Scalar::Boolean(b), _) if *b == decisive => Scalar::Boolean(decisive),
            _ => Scalar::Null,
        },
    }
}

/// Order of two values of comparable types; `None` with a NULL on either side.
fn compare(left: &Scalar, right: &Scalar) -> Result<Option<Ordering>> {
    use Scalar::*;
    if left.is_null() || right.is_null() {
        return Ok(None);
    }
    let promoted =
        |l: &DataType| -> Result<Option<Ordering>> { Ok(Some(cast::cast(left, l)?.cmp(&cast::cast(right, l)?))) };
    match (left, right) {
        (Long(a), Decimal(..)) => Ok(Some(Decimal(i128::from(*a), 0).cmp(right))),
        (Decimal(..), Long(b)) => Ok(Some(left.cmp(&Decimal(i128::from(*b), 0)))),
        (Long(_) | Decimal(..), Double(_)) | (Double(_), Long(_) | Decimal(..)) => promoted(&DataType::Double),
        (String(_), Long(_)) | (Long(_), String(_)) => promoted(&DataType::Long),
        (String(_), Double(_) | Decimal(..)) | (Double(_) | Decimal(..), String(_)) => promoted(&DataType::Double),
        (Date(_), Timestamp(_)) | (Timestamp(_), Date(_)) => promoted(&DataType::Timestamp),
        (Date(_), TimestampNtz(_)) | (TimestampNtz(_), Date(_)) => promoted(&DataType::TimestampNtz),
        (Date(_), String(_)) | (String(_), Date(_)) => promoted(&DataType::Date),
        (Timestamp(_) | TimestampNtz(_), String(_)) | (String(_), Timestamp(_) | TimestampNtz(_)) => {
            promoted(&DataType::Timestamp)
        }
        (a, b) if std::mem::discriminant(a) == std::mem::discriminant(b) => Ok(Some(a.cmp(b))),
        _ => Err(Error::usage(format!("cannot compare '{}' with '{}'", cast::text(left), cast::text(right)))
            .class("DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES")),
    }
}

fn shift(value: &Scalar, months: i64, days: i64, micros: i64) -> Result<Scalar> {
    let moved = |d: i64| calendar::add_months(d, months) + days;
    Ok(match value {
        Scalar::Null => Scalar::Null,
        Scalar::Date(d) if micros == 0 => Scalar::Date(moved(i64::from(*d)) as i32),
        Scalar::Date(d) => Scalar::Timestamp(moved(i64::from(*d)) * DAY_MICROS + micros),
        Scalar::Timestamp(t) => {
            Scalar::Timestamp(moved(t.div_euclid(DAY_MICROS)) * DAY_MICROS + t.rem_euclid(DAY_MICROS) + micros)
        }
        Scalar::TimestampNtz(t) => {
            Scalar::TimestampNtz(moved(t.div_euclid(DAY_MICROS)) * DAY_MICROS + t.rem_euclid(DAY_MICROS) + micros)
        }
        other => return Err(Error::usage(format!("an INTERVAL cannot be added to '{}'", cast::text(other)))),
    })
}

fn negative(value: &Scalar) -> Result<Scalar> {
    Ok(match value {
        Scalar::Null => Scalar::Null,
        Scalar::Long(n) => {
            Scalar::Long(n.checked_neg().ok_or_else(|| {
                Error::usage("the arithmetic of the predicate overflows").class("ARITHMETIC_OVERFLOW")
            })?)
        }
        Scalar::Double(d) => Scalar::Double(-d),
        Scalar::Decimal(u, s) => Scalar::Decimal(-u, *s),
        other => {
            return Err(Error::usage(format!("'{}' has no negative", cast::text(other)))
                .class("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"));
        }
    })
}

fn arithmetic(op: BinaryOp, left: &Scalar, right: &Scalar) -> Result<Scalar> {
    let overflow = || Error::usage("the arithmetic of the predicate overflows").class("ARITHMETIC_OVERFLOW");
    Ok(match (left, right) {
        (Scalar::Null, _) | (_, Scalar::Null) => Scalar::Null,
        _ if op == BinaryOp::Concat => Scalar::String(cast::text(left) + &cast::text(right)),
        (Scalar::Date(d), Scalar::Long(n)) if matches!(op, BinaryOp::Plus | BinaryOp::Minus) => {
            let n = if op == BinaryOp::Plus { Some(*n) } else { n.checked_neg() };
            let moved = n.and_then(|n| i64::from(*d).checked_add(n)).and_then(|d| i32::try_from(d).ok());
            Scalar::Date(moved.ok_or_else(overflow)?)
        }
        (Scalar::Long(a), Scalar::Long(b)) => match op {
            BinaryOp::Plus => Scalar::Long(a.checked_add(*b).ok_or_else(overflow)?),
            BinaryOp::Minus => Scalar::Long(a.checked_sub(*b).ok_or_else(overflow)?),
            BinaryOp::Multiply => Scalar::Long(a.checked_mul(*b).ok_or_else(overflow)?),
            _ if *b == 0 => return Err(Error::usage("the predicate divides by zero").class("DIVIDE_BY_ZERO")),
            BinaryOp::Modulo => Scalar::Long(a.wrapping_rem(*b)),
            BinaryOp::IntegerDivide => Scalar::Long(a.checked_div(*b).ok_or_else(overflow)?),
            // Spark's `/` is never an integer division.
            _ => Scalar::Double(*a as f64 / *b as f64),
        },
        _ => {
            return Err(Error::usage(format!(
                "arithmetic on '{}' and '{}' is not available in partition predicates",
                cast::text(left),
                cast::text(right)
            ))
            .class("DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"));
        }
    })
}

fn like(text: &str, pattern: &str, escape: char) -> bool {
    #[derive(Clone, Copy)]
    enum Part {
        Any,
        One,
        Char(char),
    }
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(match c {
            c if c == escape => Part::Char(chars.next().unwrap_or(escape)),
            '%' => Part::Any,
            '_' => Part::One,
            c => Part::Char(c),
        });
    }
    // reachable[i]: the first i parts can match the text read so far.
    let mut reachable = vec![false; parts.len() + 1];
    reachable[0] = true;
    let spread = |r: &mut Vec<bool>| {
        for i in 0..parts.len() {
            r[i + 1] |= r[i] && matches!(parts[i], Part::Any);
        }
    };
    spread(&mut reachable);
    for c in text.chars() {
        let mut next = vec![false; parts.len() + 1];
        for (i, part) in parts.iter().enumerate() {
            match part {
                Part::Any => next[i + 1] |= reachable[i + 1],
                Part::One => next[i + 1] |= reachable[i],
                Part::Char(p) => next[i + 1] |= reachable[i] && *p == c,
            }
        }
        spread(&mut next);
        reachable = next;
    }
    reachable[parts.len()]
}

#[cfg(test)]
#[path = "eval_tests.rs"]
mod tests;
