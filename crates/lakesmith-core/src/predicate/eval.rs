//! Bound expressions and their values: three-valued logic, errors instead of wrong results.

use std::cmp::Ordering;

use super::arithmetic::{Shift, numbers};
use super::coerce::Type;
use super::like::LikePattern;
use super::{BinaryOp, cast};
use crate::error::{Error, Result};
use crate::table::{DataType, Scalar};

/// Implementation of a function.
pub(super) type Call = fn(&[Scalar]) -> Result<Scalar>;

/// An expression whose columns, functions and types are resolved. Operands have the types that their operators take.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Index of a partition column.
    Column(usize),
    Literal(Scalar),
    /// AND of all.
    All(Vec<Node>),
    /// OR of all.
    Any(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    Compare(BinaryOp, Box<Node>, Box<Node>),
    In(Box<Node>, Vec<Node>),
    /// Value and its limits, each with the type in which it is compared.
    Between(Box<Node>, Box<[(Type, Node); 2]>),
    Like(Box<Node>, LikePattern),
    /// CAST as written.
    Cast(Box<Node>, DataType),
    /// Implicit cast.
    Convert(Box<Node>, Type),
    Arithmetic(BinaryOp, Type, Box<Node>, Box<Node>),
    Shift(Box<Node>, Shift),
    /// A function that is NULL as soon as an argument is.
    Call(Call, Vec<Node>),
    /// The first that is not NULL.
    Coalesce(Vec<Node>),
    /// Condition, value if true, value if not.
    If(Box<[Node; 3]>),
    /// NULL if both are equal, else the first.
    NullIf(Box<[Node; 2]>),
    /// The greatest (or least) that is not NULL.
    Extreme(Ordering, Vec<Node>),
}

impl Node {
    pub(super) fn eval(&self, row: &[Scalar]) -> Result<Scalar> {
        Ok(match self {
            Node::Column(index) => {
                row.get(*index).cloned().ok_or_else(|| Error::internal("a partition has too few values"))?
            }
            Node::Literal(value) => value.clone(),
            Node::All(terms) => connect(terms, row, false)?,
            Node::Any(terms) => connect(terms, row, true)?,
            Node::Not(inner) => match truth(&inner.eval(row)?)? {
                Some(b) => Scalar::Boolean(!b),
                None => Scalar::Null,
            },
            Node::IsNull(inner) => Scalar::Boolean(inner.eval(row)?.is_null()),
            Node::Compare(op, left, right) => compare(*op, &left.eval(row)?, &right.eval(row)?),
            Node::In(value, list) => contains(&value.eval(row)?, list, row)?,
            Node::Between(value, limits) => between(&value.eval(row)?, limits, row)?,
            Node::Like(value, pattern) => match value.eval(row)? {
                Scalar::String(text) => Scalar::Boolean(pattern.matches(&text)),
                _ => Scalar::Null,
            },
            Node::Cast(value, to) => cast::to_data_type(&value.eval(row)?, to)?,
            Node::Convert(value, to) => cast::to_type(&value.eval(row)?, *to)?,
            Node::Arithmetic(op, operands, left, right) => match (left.eval(row)?, right.eval(row)?) {
                (Scalar::Null, _) | (_, Scalar::Null) => Scalar::Null,
                (left, right) => numbers(*op, *operands, &left, &right)?,
            },
            Node::Shift(value, shift) => shift.apply(&value.eval(row)?)?,
            Node::Call(function, arguments) => {
                let arguments = arguments.iter().map(|a| a.eval(row)).collect::<Result<Vec<_>>>()?;
                if arguments.iter().any(Scalar::is_null) { Scalar::Null } else { function(&arguments)? }
            }
            Node::Coalesce(values) => {
                for value in values {
                    let value = value.eval(row)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Scalar::Null
            }
            Node::If(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let holds = truth(&condition.eval(row)?)? == Some(true);
                if holds { then.eval(row)? } else { otherwise.eval(row)? }
            }
            Node::NullIf(pair) => {
                let [value, other] = pair.as_ref();
                let (value, other) = (value.eval(row)?, other.eval(row)?);
                if !value.is_null() && value == other { Scalar::Null } else { value }
            }
            Node::Extreme(order, values) => {
                let mut best = Scalar::Null;
                for value in values {
                    let value = value.eval(row)?;
                    if !value.is_null() && (best.is_null() || value.cmp(&best) == *order) {
                        best = value;
                    }
                }
                best
            }
        })
    }

    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Node::Literal(_))
    }
}

/// AND (`decisive` false) or OR (`decisive` true): the decisive value ends it, else NULL wins over the other.
fn connect(terms: &[Node], row: &[Scalar], decisive: bool) -> Result<Scalar> {
    let mut unknown = false;
    for term in terms {
        match truth(&term.eval(row)?)? {
            Some(value) if value == decisive => return Ok(Scalar::Boolean(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Scalar::Null } else { Scalar::Boolean(!decisive) })
}

/// The value of a condition; `None` is unknown.
pub(super) fn truth(value: &Scalar) -> Result<Option<bool>> {
    match value {
        Scalar::Boolean(b) => Ok(Some(*b)),
        Scalar::Null => Ok(None),
        _ => Err(Error::internal("a condition is neither true nor false")),
    }
}

fn compare(op: BinaryOp, left: &Scalar, right: &Scalar) -> Scalar {
    if op == BinaryOp::NullSafeEq {
        return Scalar::Boolean(left == right);
    }
    if left.is_null() || right.is_null() {
        return Scalar::Null;
    }
    let order = left.cmp(right);
    Scalar::Boolean(match op {
        BinaryOp::NotEq => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::LtEq => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        BinaryOp::GtEq => order.is_ge(),
        _ => order.is_eq(),
    })
}

fn between(value: &Scalar, limits: &[(Type, Node); 2], row: &[Scalar]) -> Result<Scalar> {
    let mut unknown = false;
    for ((ty, limit), op) in limits.iter().zip([BinaryOp::GtEq, BinaryOp::LtEq]) {
        match compare(op, &cast::to_type(value, *ty)?, &limit.eval(row)?) {
            Scalar::Boolean(true) => {}
            Scalar::Null => unknown = true,
            outside => return Ok(outside),
        }
    }
    Ok(if unknown { Scalar::Null } else { Scalar::Boolean(true) })
}

fn contains(value: &Scalar, list: &[Node], row: &[Scalar]) -> Result<Scalar> {
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let mut unknown = false;
    for item in list {
        let item = item.eval(row)?;
        if item == *value {
            return Ok(Scalar::Boolean(true));
        }
        unknown |= item.is_null();
    }
    Ok(if unknown { Scalar::Null } else { Scalar::Boolean(false) })
}
