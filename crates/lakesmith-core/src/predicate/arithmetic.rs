//! Arithmetic on numbers, dates and intervals, with Spark's ANSI overflow errors.

use super::BinaryOp;
use super::calendar::{DAY, add_months, day_of, time_of};
use super::coerce::Type;
use crate::error::{Error, Result};
use crate::table::Scalar;

/// An interval in the two units that don't convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) months: i32,
    pub(super) micros: i64,
    /// No field below the day: added to a date it gives a date.
    pub(super) whole_days: bool,
}

impl Shift {
    /// The opposite; `None` on overflow.
    pub(super) fn negated(self) -> Option<Self> {
        Some(Self { months: self.months.checked_neg()?, micros: self.micros.checked_neg()?, ..self })
    }

    /// Adds the interval to a date or timestamp.
    pub(super) fn apply(self, value: &Scalar) -> Result<Scalar> {
        match value {
            Scalar::Null => Ok(Scalar::Null),
            Scalar::Date(day) => {
                let moved = add_months(*day, self.months).ok_or_else(out_of_range)?;
                let days = i32::try_from(self.micros / DAY).map_err(|_| out_of_range())?;
                moved.checked_add(days).map(Scalar::Date).ok_or_else(out_of_range)
            }
            Scalar::Timestamp(t) => self.moved(*t).map(Scalar::Timestamp),
            Scalar::TimestampNtz(t) => self.moved(*t).map(Scalar::TimestampNtz),
            _ => Err(Error::internal("an interval added to something without a date")),
        }
    }

    fn moved(self, micros: i64) -> Result<i64> {
        let day = add_months(day_of(micros), self.months).ok_or_else(out_of_range)?;
        let start = i64::from(day).checked_mul(DAY).and_then(|m| m.checked_add(time_of(micros)));
        start.and_then(|m| m.checked_add(self.micros)).ok_or_else(out_of_range)
    }
}

/// The day `days` later.
pub(super) fn add_days(day: i32, days: i64) -> Result<Scalar> {
    let moved = i64::from(day).checked_add(days).and_then(|d| i32::try_from(d).ok());
    moved.map(Scalar::Date).ok_or_else(out_of_range)
}

/// `left op right` for two values of the type `operands`, neither null.
pub(super) fn numbers(op: BinaryOp, operands: Type, left: &Scalar, right: &Scalar) -> Result<Scalar> {
    match (left, right) {
        (Scalar::Long(a), Scalar::Long(b)) => integers(op, operands, *a, *b),
        (Scalar::Double(a), Scalar::Double(b)) => doubles(op, *a, *b),
        (Scalar::Decimal(a, s), Scalar::Decimal(b, t)) => decimals(op, (*a, *s), (*b, *t)),
        _ => Err(Error::internal("arithmetic on something that is no number")),
    }
}

fn integers(op: BinaryOp, operands: Type, a: i64, b: i64) -> Result<Scalar> {
    let result = match op {
        BinaryOp::Plus => a.checked_add(b),
        BinaryOp::Minus => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
        _ if b == 0 => return Err(by_zero(op)),
        BinaryOp::Modulo => Some(a.wrapping_rem(b)),
        BinaryOp::IntegerDivide => return a.checked_div(b).map(Scalar::Long).ok_or_else(|| overflow("long")),
        _ => return doubles(op, a as f64, b as f64),
    };
    match (operands, result) {
        (Type::Int, Some(n)) if i32::try_from(n).is_err() => Err(overflow("integer")),
        (Type::Int, None) => Err(overflow("integer")),
        (_, None) => Err(overflow("long")),
        (_, Some(n)) => Ok(Scalar::Long(n)),
    }
}

fn doubles(op: BinaryOp, a: f64, b: f64) -> Result<Scalar> {
    Ok(Scalar::Double(match op {
        BinaryOp::Plus => a + b,
        BinaryOp::Minus => a - b,
        BinaryOp::Multiply => a * b,
        _ if b == 0.0 => return Err(by_zero(op)),
        BinaryOp::Modulo => a % b,
        _ => a / b,
    }))
}

fn decimals(op: BinaryOp, (a, s): (i128, i8), (b, t): (i128, i8)) -> Result<Scalar> {
    if op == BinaryOp::Modulo && b == 0 {
        return Err(by_zero(op));
    }
    let scale = if op == BinaryOp::Multiply { s.checked_add(t) } else { Some(s.max(t)) };
    let aligned = |value: i128, from: i8| {
        10i128.checked_pow(u32::from((s.max(t) - from).unsigned_abs())).and_then(|factor| value.checked_mul(factor))
    };
    let both = aligned(a, s).zip(aligned(b, t));
    let result = match op {
        BinaryOp::Multiply => a.checked_mul(b),
        BinaryOp::Plus => both.and_then(|(a, b)| a.checked_add(b)),
        BinaryOp::Minus => both.and_then(|(a, b)| a.checked_sub(b)),
        _ => both.map(|(a, b)| a % b),
    };
    result
        .zip(scale)
        .filter(|(unscaled, scale)| unscaled.unsigned_abs() < 10u128.pow(38) && *scale <= 38)
        .map(|(unscaled, scale)| Scalar::Decimal(unscaled, scale))
        .ok_or_else(|| overflow("decimal"))
}

/// The error of a sum that leaves its type.
pub(super) fn overflow(what: &str) -> Error {
    Error::usage(format!("{what} overflow in the predicate; use smaller numbers")).class("ARITHMETIC_OVERFLOW")
}

/// The error of a date or timestamp beyond the calendar.
pub(super) fn out_of_range() -> Error {
    Error::usage("the date arithmetic of the predicate leaves the calendar; use a smaller distance")
        .class("DATETIME_OVERFLOW")
}

fn by_zero(op: BinaryOp) -> Error {
    if op == BinaryOp::Modulo {
        Error::usage("Remainder by zero in the predicate").class("REMAINDER_BY_ZERO")
    } else {
        Error::usage("Division by zero in the predicate").class("DIVIDE_BY_ZERO")
    }
}
