//! Literals with the types that Spark gives to them: `1` is INT, `3000000000` BIGINT, `1e3` DOUBLE.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, GroupByExpr, OrderByKind, Query, Select, UnaryOperator, Value,
    VisitMut as _, VisitorMut, WindowFrameBound, WindowSpec, WindowType,
};

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
                if let Value::Number(text, long) = &value.value
                    && let Some(data_type) = number_type(&text.to_string(), *long)
                {
                    let text = text.clone();
                    // The digits of a DOUBLE are its own, not a decimal's.
                    if matches!(data_type, DataType::Double(_)) {
                        value.value = Value::SingleQuotedString(text.to_string());
                    }
                    *expr = typed(expr.clone(), data_type);
                }
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
                // The least number of a type has no positive counterpart.
                if let Some(text) = number(inner)
                    && let Some(data_type) = number_type(&format!("-{text}"), false)
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
