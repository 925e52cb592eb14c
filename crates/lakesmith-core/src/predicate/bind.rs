//! Checks a predicate against a table's partition columns.

use super::{BinaryOp, Expr, cast};
use crate::error::{Error, Result};
use crate::table::{DataType, Field, PartitionTuple, Scalar, Schema};

/// A predicate whose columns and literals were checked against a table's partition columns.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundPredicate {
    pub(super) root: Expr,
    pub(super) columns: Vec<Field>,
    pub(super) now_ms: i64,
}

/// Checks that every column is a partition column and that literals fit the columns that they are compared with.
/// `now_ms` is what `current_date()` and `current_timestamp()` stand for, milliseconds since the epoch.
///
/// # Errors
/// Usage: `DELTA_NON_PARTITION_COLUMN_REFERENCE`, `CAST_INVALID_INPUT`, `DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN`.
pub fn bind_partition_predicate(
    expr: &Expr,
    schema: &Schema,
    partition_columns: &[String],
    now_ms: i64,
) -> Result<BoundPredicate> {
    let columns = partition_columns
        .iter()
        .map(|c| {
            let missing = || Error::corrupt("a partition column is missing in the schema").with("column", c);
            schema.field(c).cloned().ok_or_else(missing)
        })
        .collect::<Result<Vec<_>>>()?;
    check_columns(expr, &columns)?;
    let root = coerce(expr, &columns)?;
    if !is_boolean(&root, &columns) {
        return Err(Error::usage(format!(
            "the filter \"{}\" is not a condition; compare columns with values",
            root.spark_text()
        ))
        .class("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"));
    }
    let bound = BoundPredicate { root, columns, now_ms };
    // Unknown functions and impossible arithmetic show up now and not halfway through a table.
    bound.matches(&PartitionTuple {
        raw: vec![None; bound.columns.len()],
        values: vec![Scalar::Null; bound.columns.len()],
    })?;
    Ok(bound)
}

fn check_columns(expr: &Expr, columns: &[Field]) -> Result<()> {
    if let Expr::Column(parts) = expr
        && position(columns, parts).is_none()
    {
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        return Err(Error::usage(format!(
            "Predicate references non-partition column '{}'. Only the partition columns may be referenced: [{}]",
            parts.join("."),
            names.join(", ")
        ))
        .class("DELTA_NON_PARTITION_COLUMN_REFERENCE"));
    }
    children(expr).into_iter().try_for_each(|child| check_columns(child, columns))
}

pub(super) fn position(columns: &[Field], parts: &[String]) -> Option<usize> {
    let [name] = parts else { return None };
    columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Column(_) | Expr::Literal(_) | Expr::Interval { .. } => vec![],
        Expr::Binary { left, right, .. } => vec![left, right],
        Expr::Not(e)
        | Expr::IsNull(e)
        | Expr::IsNotNull(e)
        | Expr::Negative(e)
        | Expr::Cast(e, _)
        | Expr::Like { value: e, .. } => vec![e],
        Expr::In(value, list) => std::iter::once(value.as_ref()).chain(list).collect(),
        Expr::Function(_, arguments) => arguments.iter().collect(),
    }
}

/// The type of an expression where it decides how a literal beside it is read.
fn type_of(expr: &Expr, columns: &[Field]) -> Option<DataType> {
    match expr {
        Expr::Column(parts) => position(columns, parts).map(|i| columns[i].data_type.clone()),
        Expr::Cast(_, to) => Some(to.clone()),
        Expr::Function(name, _) => match name.to_ascii_lowercase().as_str() {
            "current_date" | "date_add" | "date_sub" | "add_months" | "to_date" | "date" | "trunc" | "last_day" => {
                Some(DataType::Date)
            }
            "current_timestamp" | "now" | "to_timestamp" | "date_trunc" => Some(DataType::Timestamp),
            "year" | "month" | "day" | "dayofmonth" | "hour" | "length" => Some(DataType::Integer),
            _ => None,
        },
        Expr::Binary { op: BinaryOp::Plus | BinaryOp::Minus, left, .. } => type_of(left, columns),
        Expr::Literal(Scalar::Date(_)) => Some(DataType::Date),
        Expr::Literal(Scalar::Timestamp(_)) => Some(DataType::Timestamp),
        _ => None,
    }
}

/// Reads literals in the type of what they are compared with.
fn coerce(expr: &Expr, columns: &[Field]) -> Result<Expr> {
    let inner = |e: &Expr| coerce(e, columns).map(Box::new);
    Ok(match expr {
        Expr::Binary { op, left, right } if is_comparison(*op) => {
            let (left, right) = (inner(left)?, inner(right)?);
            let (left_type, right_type) = (type_of(&left, columns), type_of(&right, columns));
            let left = as_type(*left, right_type.as_ref())?;
            let right = as_type(*right, left_type.as_ref())?;
            Expr::Binary { op: *op, left: Box::new(left), right: Box::new(right) }
        }
        Expr::Binary { op, left, right } => Expr::Binary { op: *op, left: inner(left)?, right: inner(right)? },
        Expr::Not(e) => Expr::Not(inner(e)?),
        Expr::IsNull(e) => Expr::IsNull(inner(e)?),
        Expr::IsNotNull(e) => Expr::IsNotNull(inner(e)?),
        Expr::Negative(e) => Expr::Negative(inner(e)?),
        Expr::Cast(e, to) => Expr::Cast(inner(e)?, to.clone()),
        Expr::Like { value, pattern, escape } => {
            Expr::Like { value: inner(value)?, pattern: pattern.clone(), escape: *escape }
        }
        Expr::In(value, list) => {
            let value = coerce(value, columns)?;
            let to = type_of(&value, columns);
            let list = list
                .iter()
                .map(|e| coerce(e, columns).and_then(|e| as_type(e, to.as_ref())))
                .collect::<Result<Vec<_>>>()?;
            Expr::In(Box::new(value), list)
        }
        Expr::Function(name, arguments) if name.eq_ignore_ascii_case("between") && arguments.len() == 3 => {
            let side = |op, bound: &Expr| Expr::Binary {
                op,
                left: Box::new(arguments[0].clone()),
                right: Box::new(bound.clone()),
            };
            let both = Expr::Binary {
                op: BinaryOp::And,
                left: Box::new(side(BinaryOp::GtEq, &arguments[1])),
                right: Box::new(side(BinaryOp::LtEq, &arguments[2])),
            };
            coerce(&both, columns)?
        }
        Expr::Function(name, arguments) => Expr::Function(
            name.to_ascii_lowercase(),
            arguments.iter().map(|e| coerce(e, columns)).collect::<Result<_>>()?,
        ),
        Expr::Column(_) | Expr::Literal(_) | Expr::Interval { .. } => expr.clone(),
    })
}

/// Casts a literal. Numbers against numbers keep their own type: `id > 1.5` must not become `id > 1`. A column of text
/// against a number compares as numbers, as Spark does.
fn as_type(expr: Expr, to: Option<&DataType>) -> Result<Expr> {
    let (Expr::Literal(value), Some(to)) = (&expr, to) else { return Ok(expr) };
    let numeric = matches!(value, Scalar::Long(_) | Scalar::Double(_) | Scalar::Decimal(..));
    let to_number = matches!(
        to,
        DataType::Byte
            | DataType::Short
            | DataType::Integer
            | DataType::Long
            | DataType::Float
            | DataType::Double
            | DataType::Decimal { .. }
    );
    if numeric && (to_number || *to == DataType::String) {
        return Ok(expr);
    }
    Ok(Expr::Literal(cast::cast(value, to)?))
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Eq | NotEq | NullSafeEq | Lt | LtEq | Gt | GtEq)
}

fn is_boolean(expr: &Expr, columns: &[Field]) -> bool {
    match expr {
        Expr::Literal(v) => matches!(v, Scalar::Boolean(_) | Scalar::Null),
        Expr::Column(_) | Expr::Cast(..) => type_of(expr, columns) == Some(DataType::Boolean),
        Expr::Binary { op, left, right } => match op {
            BinaryOp::And | BinaryOp::Or => is_boolean(left, columns) && is_boolean(right, columns),
            other => is_comparison(*other),
        },
        Expr::Not(inner) => is_boolean(inner, columns),
        Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::In(..) | Expr::Like { .. } => true,
        Expr::Function(..) | Expr::Negative(_) | Expr::Interval { .. } => false,
    }
}
