//! Literals with the types that Spark gives to them: `1` is INT, `3000000000` BIGINT, `1e3` DOUBLE.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, GroupByExpr, OrderByKind, Query, Select, SetExpr, UnaryOperator, Value,
    Values, VisitMut as _, VisitorMut, WindowFrameBound, WindowSpec, WindowType,
};

/// Digits that every BIGINT can have.
const LONG_DIGITS: u64 = 18;

/// What the letters behind a number tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suffix {
    /// `D`
    Double,
    /// `F`
    Float,
    /// `BD`
    Decimal,
    /// `S`
    Short,
    /// `Y`
    Byte,
}

/// Gives number literals their types. Numbers that stand for output columns stay numbers.
pub(crate) fn type_literals(query: &mut Query) {
    let _ = query.visit(&mut Typing);
}

struct Typing;

impl VisitorMut for Typing {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Value(value) => {
                let Value::Number(text, long) = &value.value else { return ControlFlow::Continue(()) };
                let (digits, data_type) = match suffix(text) {
                    Some((digits, suffix)) => (digits.to_owned(), suffixed_type(digits, suffix)),
                    None => (text.clone(), number_type(text, *long)),
                };
                // The digits of a float are its own, not a decimal's.
                value.value = match data_type {
                    Some(DataType::Double(_) | DataType::Float(_)) => Value::SingleQuotedString(digits),
                    _ => Value::Number(digits, *long),
                };
                if let Some(data_type) = data_type {
                    *expr = typed(expr.clone(), data_type);
                }
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
                // The least number of a type has no positive counterpart.
                if let Some(text) = number(inner)
                    && let Some(data_type) = told(inner).or_else(|| number_type(&format!("-{text}"), false))
                    && !matches!(data_type, DataType::Double(_))
                {
                    **inner = untyped(inner);
                    *expr = typed(expr.clone(), data_type);
                }
            }
            Expr::Interval(interval) => *interval.value = untyped(&interval.value),
            Expr::Function(function) => {
                if let Some(WindowType::WindowSpec(WindowSpec { window_frame: Some(frame), .. })) = &mut function.over {
                    std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound).for_each(untyped_bound);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            widen_columns(values);
        }
        if let Some(order_by) = &mut query.order_by
            && let OrderByKind::Expressions(expressions) = &mut order_by.kind
        {
            expressions.iter_mut().for_each(|e| e.expr = untyped(&e.expr));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            expressions.iter_mut().for_each(|e| *e = untyped(e));
        }
        ControlFlow::Continue(())
    }
}

/// A column of VALUES with a DOUBLE in it is one of DOUBLE, and so is one with a FLOAT among others.
///
/// # Source
/// Spark `AnsiTypeCoercion.findWiderTypeForTwo`.
fn widen_columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.len());
    for at in 0..width {
        let column = || values.rows.iter().filter_map(|row| row.get(at));
        let is_number = |expr: &Expr| number(expr).is_some() || float(expr).is_some() || is_decimal(expr);
        let floats = column().filter_map(float).count();
        let has_double = column().filter_map(float).any(|data_type| matches!(data_type, DataType::Double(_)));
        if has_double || (floats > 0 && column().any(|expr| float(expr).is_none() && is_number(expr))) {
            for expr in values.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
                // Digits that are written down are those of the float.
                let digits = match expr {
                    Expr::Value(value) => match &value.value {
                        Value::Number(text, _) => Some(text.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                if let (Some(digits), Expr::Value(value)) = (digits, &mut *expr) {
                    value.value = Value::SingleQuotedString(digits);
                }
                *expr = typed(expr.clone(), DataType::Double(ExactNumberInfo::None));
            }
        }
    }
}

/// The type of a float that is written down.
fn float(expr: &Expr) -> Option<&DataType> {
    match expr {
        Expr::Cast { data_type: float @ (DataType::Double(_) | DataType::Float(_)), .. } => Some(float),
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => float(inner),
        _ => None,
    }
}

fn is_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => is_decimal(inner),
        _ => false,
    }
}

fn typed(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// The literal below a type that was given to it.
fn untyped(expr: &Expr) -> Expr {
    match expr {
        Expr::Cast { expr: inner, .. } if number(expr).is_some() => (**inner).clone(),
        other => other.clone(),
    }
}

/// Offsets of frames are numbers of rows.
fn untyped_bound(bound: &mut WindowFrameBound) {
    if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) = bound {
        **offset = untyped(offset);
    }
}

/// The type of a literal that a suffix tells, as far as digits alone do not.
fn told(expr: &Expr) -> Option<DataType> {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return None };
    let is_long = matches!(inner.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(_, true)));
    match data_type {
        DataType::TinyInt(_) | DataType::SmallInt(_) => Some(data_type.clone()),
        DataType::BigInt(_) if is_long => Some(data_type.clone()),
        DataType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, 0)) if *digits <= LONG_DIGITS => {
            Some(data_type.clone())
        }
        _ => None,
    }
}

/// The digits of a number and the letters behind them that tell its type.
pub(super) fn suffix(text: &str) -> Option<(&str, Suffix)> {
    use Suffix as S;
    let at = text.trim_end_matches(|c: char| matches!(c.to_ascii_uppercase(), 'B' | 'D' | 'F' | 'S' | 'Y')).len();
    let (digits, letters) = text.split_at(at);
    let suffix = match letters.to_ascii_uppercase().as_str() {
        "D" => S::Double,
        "F" => S::Float,
        "BD" => S::Decimal,
        "S" => S::Short,
        "Y" => S::Byte,
        _ => return None,
    };
    let is_whole = digits.bytes().all(|b| b.is_ascii_digit());
    (!digits.is_empty() && (is_whole || !matches!(suffix, S::Short | S::Byte))).then_some((digits, suffix))
}

fn suffixed_type(digits: &str, suffix: Suffix) -> Option<DataType> {
    Some(match suffix {
        Suffix::Double => DataType::Double(ExactNumberInfo::None),
        Suffix::Float => DataType::Float(ExactNumberInfo::None),
        Suffix::Short => DataType::SmallInt(None),
        Suffix::Byte => DataType::TinyInt(None),
        Suffix::Decimal if digits.bytes().all(|b| b.is_ascii_digit()) => {
            let digits = digits.trim_start_matches('0').len().max(1) as u64;
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, 0))
        }
        Suffix::Decimal => return None,
    })
}

fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Cast { expr, .. } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => Some(text.to_string()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn number_type(text: &str, long: bool) -> Option<DataType> {
    if text.contains(['e', 'E']) {
        return Some(DataType::Double(ExactNumberInfo::None));
    }
    if text.contains('.') {
        // Decimals get their digits' precision from the planner.
        return None;
    }
    if long {
        return Some(DataType::BigInt(None));
    }
    match text.parse::<i128>() {
        Ok(value) if i32::try_from(value).is_ok() => Some(DataType::Int(None)),
        Ok(value) if i64::try_from(value).is_ok() => Some(DataType::BigInt(None)),
        Ok(value) => {
            let digits = value.unsigned_abs().to_string().len() as u64;
            Some(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, 0)))
        }
        Err(_) => None,
    }
}
