//! The functions that partition predicates may call: their names, arguments and results.
//!
//! # Source
//! Spark's built-in functions; behaviour measured on Spark 4.1 with ANSI mode on.

use std::cmp::Ordering;

use super::bind::{Binder, Typed, different_types, fold, unexpected_type};
use super::calendar::day_of;
use super::coerce::Type;
use super::eval::{Call, Node};
use super::{Expr, text_functions, time_functions};
use crate::error::{Error, Result};
use crate::table::{DataType, Scalar};

/// What an argument is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Param {
    /// Anything, as text.
    Text,
    /// INT, or text that reads as one.
    Int,
    /// A number, whose type is the result's.
    Number,
    /// A date, a timestamp or text that reads as one, as a date.
    Date,
    /// A date, a timestamp or text that reads as one, as a timestamp.
    Instant,
}

/// A function that is NULL as soon as an argument is.
pub(super) struct Signature {
    /// All its names, in lower case.
    pub(super) names: &'static [&'static str],
    /// Arguments; the last may repeat if `repeats`.
    pub(super) params: &'static [Param],
    /// How many arguments must be given.
    pub(super) required: usize,
    pub(super) repeats: bool,
    /// Type of the result; `None`: that of the numbers.
    pub(super) returns: Option<Type>,
    pub(super) call: Call,
}

/// Functions that name a type and cast to it.
const CASTS: [(&str, DataType); 10] = [
    ("date", DataType::Date),
    ("timestamp", DataType::Timestamp),
    ("string", DataType::String),
    ("boolean", DataType::Boolean),
    ("tinyint", DataType::Byte),
    ("smallint", DataType::Short),
    ("int", DataType::Integer),
    ("bigint", DataType::Long),
    ("float", DataType::Float),
    ("double", DataType::Double),
];

/// Functions whose arguments are bound in their own ways.
const SPECIAL: [&str; 14] = [
    "between",
    "coalesce",
    "ifnull",
    "nvl",
    "nullif",
    "if",
    "greatest",
    "least",
    "extract",
    "dateadd",
    "current_date",
    "curdate",
    "now",
    "localtimestamp",
];

/// `current_date` and its like, also without parentheses.
pub(super) fn constant(parts: &[String], now_micros: i64) -> Option<Scalar> {
    let [name] = parts else { return None };
    match name.to_ascii_lowercase().as_str() {
        "current_date" => Some(Scalar::Date(day_of(now_micros))),
        "current_timestamp" => Some(Scalar::Timestamp(now_micros)),
        "localtimestamp" => Some(Scalar::TimestampNtz(now_micros)),
        _ => None,
    }
}

/// Binds a call.
pub(super) fn bind(binder: &Binder<'_>, expr: &Expr, name: &str, arguments: &[Expr], depth: usize) -> Result<Typed> {
    let lower = name.to_ascii_lowercase();
    if let (Some((_, to)), [inner]) = (CASTS.iter().find(|(n, _)| *n == lower), arguments) {
        return binder.cast(inner, to, depth);
    }
    let signature = signatures().find(|s| s.names.contains(&lower.as_str()));
    match (lower.as_str(), arguments) {
        ("current_date" | "current_timestamp" | "localtimestamp" | "curdate" | "now", []) => {
            let canonical = match lower.as_str() {
                "curdate" => "current_date",
                "now" => "current_timestamp",
                other => other,
            };
            let value = constant(&[canonical.to_owned()], binder.now_micros);
            value.map(Typed::literal).ok_or_else(|| Error::internal("a function without its value"))
        }
        ("between", [value, low, high]) => between(binder, expr, [value, low, high], depth),
        ("coalesce", [_, ..]) | ("ifnull" | "nvl", [_, _]) => {
            let (values, ty) = same_type(binder, expr, arguments, depth)?;
            Ok(Typed { node: fold(Node::Coalesce(values))?, ty })
        }
        ("greatest" | "least", [_, _, ..]) => {
            let (values, ty) = same_type(binder, expr, arguments, depth)?;
            let order = if lower == "greatest" { Ordering::Greater } else { Ordering::Less };
            Ok(Typed { node: fold(Node::Extreme(order, values))?, ty })
        }
        ("nullif", [_, _]) => {
            let (values, ty) = same_type(binder, expr, arguments, depth)?;
            let pair: Box<[Node; 2]> = values.into_boxed_slice().try_into().map_err(|_| lost(expr))?;
            Ok(Typed { node: fold(Node::NullIf(pair))?, ty })
        }
        ("if", [condition, then, otherwise]) => {
            let condition = binder.condition(condition, depth)?;
            let (values, ty) = same_type(binder, expr, &[then.clone(), otherwise.clone()], depth)?;
            let [then, otherwise]: [Node; 2] = values.try_into().map_err(|_| lost(expr))?;
            Ok(Typed { node: fold(Node::If(Box::new([condition, then, otherwise])))?, ty })
        }
        ("extract", [Expr::Literal(Scalar::String(field)), value]) => {
            let unit = time_functions::extractor(field).ok_or_else(|| {
                Error::usage(format!(
                    "the field {field} cannot be extracted in a partition predicate; use YEAR, MONTH, …"
                ))
                .class("INVALID_EXTRACT_FIELD")
            })?;
            bind(binder, expr, unit, std::slice::from_ref(value), depth)
        }
        ("dateadd", [_, _]) => bind(binder, expr, "date_add", arguments, depth),
        ("to_date" | "to_timestamp", [value]) => {
            let to = if lower == "to_date" { DataType::Date } else { DataType::Timestamp };
            binder.cast(value, &to, depth)
        }
        _ => match signature {
            Some(signature) => call(binder, expr, signature, arguments, depth),
            None if SPECIAL.contains(&lower.as_str()) || CASTS.iter().any(|(n, _)| *n == lower) => {
                Err(wrong_number(name, arguments.len()))
            }
            None => Err(unknown(name)),
        },
    }
}

fn between(binder: &Binder<'_>, expr: &Expr, [value, low, high]: [&Expr; 3], depth: usize) -> Result<Typed> {
    let value = binder.bind(value, depth)?;
    let bound = |limit: &Expr| -> Result<(Type, Node)> {
        let limit = binder.bind(limit, depth)?;
        let ty = value.ty.common(limit.ty).ok_or_else(|| different_types(expr, value.ty, limit.ty))?;
        Ok((ty, limit.converted(ty)?))
    };
    let limits = Box::new([bound(low)?, bound(high)?]);
    Ok(Typed { node: fold(Node::Between(Box::new(value.node), limits))?, ty: Type::Boolean })
}

fn signatures() -> impl Iterator<Item = &'static Signature> {
    time_functions::SIGNATURES.iter().chain(text_functions::SIGNATURES)
}

fn call(binder: &Binder<'_>, expr: &Expr, signature: &Signature, arguments: &[Expr], depth: usize) -> Result<Typed> {
    let too_many = !signature.repeats && arguments.len() > signature.params.len();
    if arguments.len() < signature.required || too_many {
        return Err(wrong_number(signature.names[0], arguments.len()));
    }
    let mut bound = arguments.iter().map(|a| binder.bind(a, depth)).collect::<Result<Vec<_>>>()?;
    let param = |i: usize| signature.params[i.min(signature.params.len() - 1)];
    let mut numbers = bound.iter().enumerate().filter(|(i, _)| param(*i) == Param::Number);
    let number = numbers.try_fold(Type::Null, |ty, (_, b)| ty.common(b.ty));
    let number = number.filter(|ty| ty.is_number() || *ty == Type::Null);
    let mut nodes = Vec::with_capacity(bound.len());
    for (i, value) in bound.drain(..).enumerate() {
        let to = match (param(i), value.ty) {
            (_, Type::Null) => Some(Type::Null),
            (Param::Text, _) => Some(Type::String),
            (Param::Int, Type::Int | Type::String) => Some(Type::Int),
            (Param::Number, _) => number,
            (Param::Date, Type::Date | Type::Timestamp | Type::TimestampNtz | Type::String) => Some(Type::Date),
            (Param::Instant, Type::Date | Type::Timestamp | Type::TimestampNtz | Type::String) => Some(Type::Timestamp),
            _ => None,
        };
        let wanted = match param(i) {
            Param::Text => "text",
            Param::Int => "an INT",
            Param::Number => "numbers",
            Param::Date | Param::Instant => "a date or a timestamp",
        };
        let to = to.ok_or_else(|| unexpected_type(expr, wanted, &arguments[i], value.ty))?;
        nodes.push(value.converted(to)?);
    }
    let ty = signature.returns.or(number).unwrap_or(Type::Null);
    Ok(Typed { node: fold(Node::Call(signature.call, nodes))?, ty })
}

/// Arguments in their common type.
fn same_type(binder: &Binder<'_>, expr: &Expr, arguments: &[Expr], depth: usize) -> Result<(Vec<Node>, Type)> {
    let bound = arguments.iter().map(|a| binder.bind(a, depth)).collect::<Result<Vec<_>>>()?;
    let mut ty = Type::Null;
    for (argument, value) in arguments.iter().zip(&bound) {
        ty = ty.common(value.ty).ok_or_else(|| {
            unexpected_type(expr, &format!("values of the type \"{}\"", ty.name()), argument, value.ty)
        })?;
    }
    let values = bound.into_iter().map(|value| value.converted(ty)).collect::<Result<_>>()?;
    Ok((values, ty))
}

fn lost(expr: &Expr) -> Error {
    Error::internal(format!("arguments of {} were lost", expr.spark_text()))
}

fn wrong_number(name: &str, given: usize) -> Error {
    Error::usage(format!("the function '{name}' doesn't take {given} argument(s)"))
        .class("WRONG_NUM_ARGS.WITHOUT_SUGGESTION")
        .with("function", name)
}

fn unknown(name: &str) -> Error {
    let mut names: Vec<&str> = signatures().flat_map(|s| s.names.iter().copied()).chain(SPECIAL).collect();
    names.extend(CASTS.iter().map(|(name, _)| *name).chain(["current_timestamp"]));
    names.sort_unstable();
    names.dedup();
    Error::usage(format!(
        "the function '{name}' is not available in partition predicates; available are {}",
        names.join(", ")
    ))
    .class("UNRESOLVED_ROUTINE")
    .with("function", name)
}
