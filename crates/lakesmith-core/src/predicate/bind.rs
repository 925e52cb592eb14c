//! Checks a predicate against a table's partition columns: names, functions, types, constants.

use super::arithmetic::{Shift, add_days, out_of_range};
use super::calendar::DAY;
use super::coerce::Type;
use super::eval::{Node, truth};
use super::like::LikePattern;
use super::{BinaryOp, Expr, cast, functions};
use crate::error::{Error, Result};
use crate::table::{DataType, PartitionTuple, Scalar, Schema};

/// Nesting that a predicate may have, so that evaluating it fits the stack of any thread.
const MAX_DEPTH: usize = 100;

/// A predicate that was checked against a table's partition columns.
#[derive(Debug, Clone)]
pub struct BoundPredicate {
    root: Node,
    columns: usize,
}

impl BoundPredicate {
    /// Whether the partition satisfies the predicate; a predicate that is NULL for it doesn't hold.
    ///
    /// # Errors
    /// Usage if a cast or an arithmetic operation of the predicate fails on the partition's values.
    pub fn matches(&self, partition: &PartitionTuple) -> Result<bool> {
        if partition.values.len() != self.columns {
            return Err(Error::internal("a partition has not as many values as the table has partition columns"));
        }
        Ok(truth(&self.root.eval(&partition.values)?)? == Some(true))
    }
}

/// Checks that every column is a partition column and that all types fit, and reads literals as Spark would.
/// `now_ms` is what `current_date()` and `current_timestamp()` stand for, milliseconds since the epoch.
///
/// # Errors
/// Usage with Spark's classes: `DELTA_NON_PARTITION_COLUMN_REFERENCE`, `CAST_INVALID_INPUT`, `DATATYPE_MISMATCH.…`,
/// `UNRESOLVED_ROUTINE`, `WRONG_NUM_ARGS.…` and those of arithmetic on constants.
pub fn bind_partition_predicate(
    expr: &Expr,
    schema: &Schema,
    partition_columns: &[String],
    now_ms: i64,
) -> Result<BoundPredicate> {
    let columns = partition_columns.iter().map(|name| column(schema, name)).collect::<Result<Vec<_>>>()?;
    let binder = Binder { columns, names: partition_columns, now_micros: now_ms.saturating_mul(1000) };
    binder.check_columns(expr)?;
    let root = binder.bind(expr, 0)?;
    if root.ty != Type::Boolean {
        return Err(Error::usage(format!(
            "Cannot resolve \"{0}\" due to data type mismatch: Filter expression \"{0}\" of type \"{1}\" is not a boolean.",
            shown(expr),
            root.ty.name()
        ))
        .class("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"));
    }
    Ok(BoundPredicate { root: root.node, columns: partition_columns.len() })
}

fn column(schema: &Schema, name: &str) -> Result<Type> {
    let field = schema
        .field(name)
        .ok_or_else(|| Error::corrupt("a partition column is missing in the schema").with("column", name))?;
    Type::of(&field.data_type).ok_or_else(|| {
        Error::corrupt(format!("a partition column has the type {}", field.data_type.simple_string()))
            .with("column", name)
    })
}

/// An expression in messages: as in the history, without the quotes of unresolved names.
pub(super) fn shown(expr: &Expr) -> String {
    let text = expr.spark_text();
    if matches!(expr, Expr::Literal(_)) { text } else { text.replace('\'', "") }
}

/// A bound expression and its type.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) node: Node,
    pub(super) ty: Type,
}

impl Typed {
    pub(super) fn literal(value: Scalar) -> Self {
        Self { ty: cast::type_of(&value), node: Node::Literal(value) }
    }

    /// The expression in another type.
    pub(super) fn converted(self, to: Type) -> Result<Node> {
        if self.ty == to || self.ty == Type::Null {
            return Ok(self.node);
        }
        fold(Node::Convert(Box::new(self.node), to))
    }
}

/// Evaluates an operation whose operands are constants, so that it fails now and not halfway through a table.
pub(super) fn fold(node: Node) -> Result<Node> {
    let constant = match &node {
        Node::Not(a)
        | Node::IsNull(a)
        | Node::Like(a, _)
        | Node::Cast(a, _)
        | Node::Convert(a, _)
        | Node::Shift(a, _) => a.is_constant(),
        Node::Compare(_, a, b) | Node::Arithmetic(_, _, a, b) => a.is_constant() && b.is_constant(),
        Node::In(a, list) => a.is_constant() && list.iter().all(Node::is_constant),
        Node::Call(_, list) | Node::Coalesce(list) | Node::Extreme(_, list) | Node::All(list) | Node::Any(list) => {
            list.iter().all(Node::is_constant)
        }
        Node::Between(value, limits) => value.is_constant() && limits.iter().all(|(_, limit)| limit.is_constant()),
        Node::If(parts) => parts.iter().all(Node::is_constant),
        Node::NullIf(parts) => parts.iter().all(Node::is_constant),
        Node::Column(_) | Node::Literal(_) => false,
    };
    if constant { node.eval(&[]).map(Node::Literal) } else { Ok(node) }
}

pub(super) struct Binder<'a> {
    columns: Vec<Type>,
    names: &'a [String],
    pub(super) now_micros: i64,
}

impl Binder<'static> {
    /// For expressions without columns.
    pub(super) fn without_columns(now_micros: i64) -> Self {
        Self { columns: Vec::new(), names: &[], now_micros }
    }
}

impl Binder<'_> {
    fn position(&self, parts: &[String]) -> Option<usize> {
        let [name] = parts else { return None };
        let exact = self.names.iter().position(|n| n == name);
        exact.or_else(|| self.names.iter().position(|n| n.eq_ignore_ascii_case(name)))
    }

    /// Names come first, as in Spark: a wrong type beside a wrong column is the lesser error.
    pub(super) fn check_columns(&self, expr: &Expr) -> Result<()> {
        let mut pending = vec![expr];
        while let Some(expr) = pending.pop() {
            match expr {
                Expr::Column(parts) if self.position(parts).is_none() && functions::constant(parts, 0).is_none() => {
                    return Err(Error::usage(format!(
                        "Predicate references non-partition column '{}'. Only the partition columns may be referenced: [{}]",
                        parts.join("."),
                        self.names.join(", ")
                    ))
                    .class("DELTA_NON_PARTITION_COLUMN_REFERENCE")
                    .with("column", parts.join(".")));
                }
                Expr::Column(_) | Expr::Literal(_) | Expr::Interval { .. } => {}
                Expr::Binary { left, right, .. } => pending.extend([right.as_ref(), left.as_ref()]),
                Expr::Not(e) | Expr::IsNull(e) | Expr::IsNotNull(e) | Expr::Negative(e) => pending.push(e),
                Expr::Cast(e, _) | Expr::Like { value: e, .. } => pending.push(e),
                Expr::In(value, list) => {
                    pending.extend(list.iter().rev());
                    pending.push(value);
                }
                Expr::Function(_, arguments) => pending.extend(arguments.iter().rev()),
            }
        }
        Ok(())
    }

    pub(super) fn bind(&self, expr: &Expr, depth: usize) -> Result<Typed> {
        if depth > MAX_DEPTH {
            return Err(Error::usage(format!(
                "the predicate is nested more than {MAX_DEPTH} levels deep; write it flatter"
            )));
        }
        let depth = depth + 1;
        let boolean = |node| Ok(Typed { node: fold(node)?, ty: Type::Boolean });
        match expr {
            Expr::Column(parts) => match self.position(parts) {
                Some(index) => Ok(Typed { node: Node::Column(index), ty: self.columns[index] }),
                None => functions::constant(parts, self.now_micros)
                    .map(Typed::literal)
                    .ok_or_else(|| Error::internal("a column was not checked")),
            },
            Expr::Literal(value) => Ok(Typed::literal(value.clone())),
            Expr::Binary { op, left, right } => self.binary(expr, *op, left, right, depth),
            Expr::Not(inner) => boolean(Node::Not(Box::new(self.condition(inner, depth)?))),
            Expr::IsNull(inner) => boolean(Node::IsNull(Box::new(self.bind(inner, depth)?.node))),
            Expr::IsNotNull(inner) => {
                boolean(Node::Not(Box::new(fold(Node::IsNull(Box::new(self.bind(inner, depth)?.node)))?)))
            }
            Expr::Negative(inner) => {
                let value = self.bind(inner, depth)?;
                if !value.ty.is_number() {
                    return Err(unexpected_type(expr, "a number", inner, value.ty));
                }
                let zero = Typed::literal(Scalar::Long(0)).converted(value.ty)?;
                let node = Node::Arithmetic(BinaryOp::Minus, value.ty, Box::new(zero), Box::new(value.node));
                Ok(Typed { node: fold(node)?, ty: value.ty })
            }
            Expr::In(value, list) => self.in_list(expr, value, list, depth),
            Expr::Like { value, pattern, escape } => {
                let value = self.bind(value, depth)?.converted(Type::String)?;
                boolean(Node::Like(Box::new(value), LikePattern::new(pattern, *escape)?))
            }
            Expr::Cast(inner, to) => self.cast(inner, to, depth),
            Expr::Function(name, arguments) => functions::bind(self, expr, name, arguments, depth),
            Expr::Interval { .. } => Err(Error::usage(format!(
                "{} stands alone; add it to a date or a timestamp, or subtract it",
                expr.spark_text()
            ))
            .class("DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE")),
        }
    }

    /// CAST and the functions named like types.
    pub(super) fn cast(&self, inner: &Expr, to: &DataType, depth: usize) -> Result<Typed> {
        let value = self.bind(inner, depth)?;
        let ty = Type::of(to).filter(|ty| value.ty.can_cast(*ty)).ok_or_else(|| {
            let to = to.simple_string().to_uppercase();
            Error::usage(format!("cannot cast \"{}\" of the type \"{}\" to \"{to}\"", shown(inner), value.ty.name()))
                .class("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION")
        })?;
        Ok(Typed { node: fold(Node::Cast(Box::new(value.node), to.clone()))?, ty })
    }

    /// An expression that must be true, false or NULL.
    pub(super) fn condition(&self, expr: &Expr, depth: usize) -> Result<Node> {
        let bound = self.bind(expr, depth)?;
        match bound.ty {
            Type::Boolean | Type::Null => Ok(bound.node),
            ty => Err(unexpected_type(expr, "a condition", expr, ty)),
        }
    }

    fn in_list(&self, expr: &Expr, value: &Expr, list: &[Expr], depth: usize) -> Result<Typed> {
        let value = self.bind(value, depth)?;
        let list = list.iter().map(|e| self.bind(e, depth)).collect::<Result<Vec<_>>>()?;
        let common = list.iter().try_fold(value.ty, |ty, item| ty.common(item.ty));
        let Some(common) = common else {
            let types: Vec<&str> = std::iter::once(&value).chain(&list).map(|t| t.ty.name()).collect();
            return Err(Error::usage(format!(
                "Cannot resolve \"{}\" due to data type mismatch: the values should all be of one type, but they are [{}]",
                shown(expr),
                types.join(", ")
            ))
            .class("DATATYPE_MISMATCH.DATA_DIFF_TYPES"));
        };
        let list = list.into_iter().map(|item| item.converted(common)).collect::<Result<Vec<_>>>()?;
        let node = fold(Node::In(Box::new(value.converted(common)?), list))?;
        Ok(Typed { node, ty: Type::Boolean })
    }

    fn binary(&self, expr: &Expr, op: BinaryOp, left: &Expr, right: &Expr, depth: usize) -> Result<Typed> {
        let boolean = |node| Ok(Typed { node: fold(node)?, ty: Type::Boolean });
        match op {
            BinaryOp::And | BinaryOp::Or => self.connected(expr, op, depth),
            BinaryOp::Concat => functions::bind(self, expr, "concat", &[left.clone(), right.clone()], depth),
            BinaryOp::Plus | BinaryOp::Minus => {
                if let Some(shifted) = self.shifted(expr, op, left, right, depth)? {
                    return Ok(shifted);
                }
                let (left, right) = (self.bind(left, depth)?, self.bind(right, depth)?);
                match (left.ty, right.ty) {
                    (Type::Date, Type::Int) => moved_by_days(op, left, right),
                    (Type::Int, Type::Date) if op == BinaryOp::Plus => moved_by_days(op, right, left),
                    _ => arithmetic(expr, op, left, right),
                }
            }
            BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::IntegerDivide | BinaryOp::Modulo => {
                arithmetic(expr, op, self.bind(left, depth)?, self.bind(right, depth)?)
            }
            _ => {
                let (left, right) = (self.bind(left, depth)?, self.bind(right, depth)?);
                let common = left.ty.common(right.ty).ok_or_else(|| different_types(expr, left.ty, right.ty))?;
                boolean(Node::Compare(op, Box::new(left.converted(common)?), Box::new(right.converted(common)?)))
            }
        }
    }

    /// The terms of a chain of ANDs or ORs, in a loop: chains may be long.
    fn connected(&self, expr: &Expr, op: BinaryOp, depth: usize) -> Result<Typed> {
        let mut terms = Vec::new();
        let mut rest = expr;
        while let Expr::Binary { op: next, left, right } = rest
            && *next == op
        {
            terms.push(right.as_ref());
            rest = left;
        }
        terms.push(rest);
        let mut nodes = Vec::with_capacity(terms.len());
        for term in terms.into_iter().rev() {
            let bound = self.bind(term, depth)?;
            if !matches!(bound.ty, Type::Boolean | Type::Null) {
                return Err(different_types(expr, Type::Boolean, bound.ty));
            }
            nodes.push(bound.node);
        }
        let node = if op == BinaryOp::And { Node::All(nodes) } else { Node::Any(nodes) };
        Ok(Typed { node: fold(node)?, ty: Type::Boolean })
    }

    /// Dates and timestamps plus or minus intervals and days; `None` if this is not one.
    fn shifted(&self, expr: &Expr, op: BinaryOp, left: &Expr, right: &Expr, depth: usize) -> Result<Option<Typed>> {
        let (moved, shift, by) = match (interval(left)?, interval(right)?) {
            (None, Some(shift)) => (left, shift, right),
            (Some(shift), None) if op == BinaryOp::Plus => (right, shift, left),
            _ => return Ok(None),
        };
        let shift = if op == BinaryOp::Minus { shift.negated().ok_or_else(out_of_range)? } else { shift };
        let value = self.bind(moved, depth)?;
        let ty = match value.ty {
            Type::Date if shift.whole_days => Type::Date,
            // Text beside an interval is a timestamp, as a date with hours is.
            Type::Date | Type::String => Type::Timestamp,
            Type::Timestamp | Type::TimestampNtz | Type::Null => value.ty,
            ty => {
                return Err(unexpected_type(
                    expr,
                    &format!("a date or a timestamp beside {}", by.spark_text()),
                    moved,
                    ty,
                ));
            }
        };
        let node = fold(Node::Shift(Box::new(value.converted(ty)?), shift))?;
        Ok(Some(Typed { node, ty }))
    }
}

/// The date so many days later (Plus) or earlier (Minus).
fn moved_by_days(op: BinaryOp, date: Typed, days: Typed) -> Result<Typed> {
    let later: super::eval::Call = |args| match args {
        [Scalar::Date(day), Scalar::Long(days)] => add_days(*day, *days),
        _ => Err(Error::internal("days added to something that is no date")),
    };
    let earlier: super::eval::Call = |args| match args {
        [Scalar::Date(day), Scalar::Long(days)] => add_days(*day, -*days),
        _ => Err(Error::internal("days taken from something that is no date")),
    };
    let node = fold(Node::Call(if op == BinaryOp::Plus { later } else { earlier }, vec![date.node, days.node]))?;
    Ok(Typed { node, ty: Type::Date })
}

/// Arithmetic on numbers.
fn arithmetic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed> {
    let (left_ty, right_ty) = (left.ty, right.ty);
    let is_date = |t: Type| matches!(t, Type::Date | Type::Timestamp | Type::TimestampNtz);
    if is_date(left_ty) && is_date(right_ty) && op == BinaryOp::Minus {
        return Err(Error::usage(format!(
            "\"{}\": the difference of dates is an interval, which partition predicates cannot compare; use datediff(a, b)",
            shown(expr)
        ))
        .class("UNSUPPORTED_FEATURE"));
    }
    let common = left_ty.common(right_ty).filter(|ty| ty.is_number() || *ty == Type::Null);
    let operands = match common {
        Some(Type::Null) => Type::Double,
        Some(Type::Decimal) if op == BinaryOp::Divide || op == BinaryOp::IntegerDivide => {
            return Err(Error::usage(format!(
                "\"{}\": the division of decimals is not available in partition predicates; cast one side to DOUBLE",
                shown(expr)
            ))
            .class("UNSUPPORTED_FEATURE"));
        }
        Some(Type::Double) if op == BinaryOp::IntegerDivide => return Err(different_types(expr, left_ty, right_ty)),
        Some(Type::Int | Type::Long) if op == BinaryOp::Divide => Type::Double,
        Some(ty) => ty,
        None => return Err(different_types(expr, left_ty, right_ty)),
    };
    let ty = if op == BinaryOp::IntegerDivide { Type::Long } else { operands };
    let (left, right) = (left.converted(operands)?, right.converted(operands)?);
    Ok(Typed { node: fold(Node::Arithmetic(op, operands, Box::new(left), Box::new(right)))?, ty })
}

/// The interval that an expression spells, if it does.
fn interval(expr: &Expr) -> Result<Option<Shift>> {
    let checked = |shift: Option<Shift>| shift.map(Some).ok_or_else(out_of_range);
    match expr {
        Expr::Interval { months, days, micros, fields } => {
            let total = i64::from(*days).checked_mul(DAY).and_then(|d| d.checked_add(*micros));
            let whole_days = fields.1 <= super::IntervalField::Day;
            checked(total.map(|micros| Shift { months: *months, micros, whole_days }))
        }
        Expr::Negative(inner) => match interval(inner)? {
            Some(shift) => checked(shift.negated()),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The error of two operands that have no common type.
pub(super) fn different_types(expr: &Expr, left: Type, right: Type) -> Error {
    Error::usage(format!(
        "Cannot resolve \"{}\" due to data type mismatch: the left and right operands of the binary operator have \
         incompatible types (\"{}\" and \"{}\").",
        shown(expr),
        left.name(),
        right.name()
    ))
    .class("DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES")
}

/// The error of a part that has the wrong type.
pub(super) fn unexpected_type(expr: &Expr, wanted: &str, part: &Expr, ty: Type) -> Error {
    Error::usage(format!(
        "Cannot resolve \"{}\" due to data type mismatch: it takes {wanted}, however \"{}\" has the type \"{}\".",
        shown(expr),
        shown(part),
        ty.name()
    ))
    .class("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE")
}
