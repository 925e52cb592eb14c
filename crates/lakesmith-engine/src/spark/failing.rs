//! Which expressions may fail on some row.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::arithmetic::operator;
use super::decimal;

/// Functions that have a value for whatever they are given. Any other may fail.
const TOTAL: [&str; 84] = [
    "__lakesmith_float",
    "__lakesmith_float_to_text",
    "__lakesmith_hidden",
    "__lakesmith_shown",
    "__lakesmith_time_to_seconds",
    "__lakesmith_time_to_text",
    "__lakesmith_whole",
    "array",
    "array_contains",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_size",
    "array_to_string",
    "bit_length",
    "btrim",
    "cardinality",
    "ceil",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "current_date",
    "current_timestamp",
    "date_add",
    "date_part",
    "date_sub",
    "date_trunc",
    "datediff",
    "day",
    "dayofmonth",
    "dayofweek",
    "ends_with",
    "endswith",
    "exp",
    "floor",
    "get_field",
    "greatest",
    "hash",
    "hour",
    "if",
    "ifnull",
    "isnan",
    "isnotnull",
    "isnull",
    "least",
    "left",
    "length",
    "like",
    "ln",
    "log",
    "log10",
    "lower",
    "ltrim",
    "make_array",
    "map",
    "md5",
    "minute",
    "month",
    "named_struct",
    "now",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "quarter",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "second",
    "size",
    "sqrt",
    "starts_with",
    "startswith",
    "substr",
    "substring",
    "trim",
    "trunc",
    "upper",
    "xxhash64",
    "year",
];

/// True if the value of `expr` over rows of `schema` may be a failure.
pub(crate) fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut found = false;
    let visited = expr.apply(|expr| {
        if is_known(expr) {
            return Ok(TreeNodeRecursion::Jump);
        }
        if fails_itself(expr, schema) {
            found = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found || visited.is_err()
}

/// True for an expression without columns whose value is known to be none but a value.
fn is_known(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => return true,
        Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::BinaryExpr(_) | Expr::Negative(_) => {}
        _ => return false,
    }
    let bare = expr.exists(|e| {
        Ok(!matches!(
            e,
            Expr::Literal(..) | Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::BinaryExpr(_) | Expr::Negative(_)
        ))
    });
    if bare.unwrap_or(true) || expr.is_volatile() {
        return false;
    }
    let simple = ExprSimplifier::new(SimplifyContext::default()).simplify(expr.clone());
    matches!(simple, Ok(Expr::Literal(..)))
}

fn fails_itself(expr: &Expr, schema: &DFSchema) -> bool {
    let type_of = |expr: &Expr| expr.get_type(schema);
    match expr {
        Expr::Cast(cast) => type_of(&cast.expr).map_or(true, |from| !is_total(&from, cast.field.data_type())),
        Expr::Negative(inner) => type_of(inner).map_or(true, |t| !t.is_floating()),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if computes(*op) => match (type_of(left), type_of(right)) {
            (Ok(left), Ok(right)) => {
                let is_time = |t: &DataType| t.is_temporal() || matches!(t, DataType::Interval(_));
                let floats = left.is_floating() && right.is_floating() && !matches!(op, Operator::Modulo);
                !(floats || is_time(&left) || is_time(&right))
            }
            _ => true,
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (operator(func.name()), args.as_slice()) {
            (Some(op), [left, right]) => {
                let digits = |expr: &Expr| decimal::digits(&expr.get_type(schema).ok()?);
                let is_decimal = matches!(expr.get_type(schema), Ok(DataType::Decimal128(..)));
                !(is_decimal && digits(left).zip(digits(right)).is_some_and(|(l, r)| decimal::is_total(op, l, r)))
            }
            _ => TOTAL.binary_search(&func.name()).is_err(),
        },
        _ => false,
    }
}

fn computes(op: Operator) -> bool {
    use Operator as O;
    matches!(op, O::Plus | O::Minus | O::Multiply | O::Divide | O::Modulo | O::IntegerDivide)
}

/// True if a cast has a value for each.
fn is_total(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    if from == to || matches!(from, D::Null) {
        return true;
    }
    let whole = |t: &D| match t {
        D::Int8 => Some(1),
        D::Int16 => Some(2),
        D::Int32 => Some(4),
        D::Int64 => Some(8),
        _ => None,
    };
    let is_time = |t: &D| matches!(t, D::Date32 | D::Timestamp(..));
    match (from, to) {
        (from, D::Utf8 | D::LargeUtf8 | D::Utf8View) => !from.is_nested() && !from.is_binary(),
        (D::Boolean, to) => to.is_numeric(),
        (D::Float32, D::Float64) => true,
        (from, D::Float32 | D::Float64) => whole(from).is_some() || matches!(from, D::Decimal128(..)),
        (from, D::Decimal128(precision, scale)) => decimal::digits(from).is_some_and(|(p, s)| {
            s <= *scale && i16::from(p) - i16::from(s) <= i16::from(*precision) - i16::from(*scale)
        }),
        (from, to) if is_time(from) && is_time(to) => true,
        (from, to) => matches!((whole(from), whole(to)), (Some(from), Some(to)) if from <= to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_in_order_to_be_found() {
        assert!(TOTAL.is_sorted());
    }

    #[test]
    fn casts_that_lose_nothing_never_fail() {
        use DataType as D;
        for (from, to) in [
            (D::Int32, D::Int64),
            (D::Int32, D::Utf8),
            (D::Int32, D::Decimal128(12, 2)),
            (D::Decimal128(5, 2), D::Decimal128(7, 3)),
            (D::Int64, D::Float64),
        ] {
            assert!(is_total(&from, &to), "{from} {to}");
        }
        for (from, to) in [
            (D::Int64, D::Int32),
            (D::Utf8, D::Int32),
            (D::Int64, D::Decimal128(18, 0)),
            (D::Decimal128(5, 2), D::Decimal128(5, 3)),
            (D::Decimal128(5, 2), D::Decimal128(5, 1)),
            (D::Float64, D::Int32),
            (D::Binary, D::Utf8),
        ] {
            assert!(!is_total(&from, &to), "{from} {to}");
        }
    }
}
