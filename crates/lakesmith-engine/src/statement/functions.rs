//! Spark's functions that DataFusion has under another name, or as an expression.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, UnaryOperator, Value, VisitMut as _, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use lakesmith::{Error, Result};

use super::dialect::SparkDialect;

/// Names for names.
const RENAMED: [(&str, &str); 12] = [
    ("approx_count_distinct", "approx_distinct"),
    ("cardinality", "size"),
    ("array_size", "size"),
    ("every", "bool_and"),
    ("first", "first_value"),
    ("any_value", "first_value"),
    ("last", "last_value"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("sign", "signum"),
    ("some", "bool_or"),
    ("rlike", "regexp_like"),
];

/// Names for expressions over the arguments.
const EXPRESSIONS: [(&str, &str); 45] = [
    ("array_position", "(CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(array_position($1, $2), 0) END)"),
    ("array_sort", "array_sort($1, 'ASC', 'NULLS LAST')"),
    ("log", "ln($1)"),
    ("median", "median(CAST($1 AS DOUBLE))"),
    ("regexp_replace", "regexp_replace($1, $2, $3, 'g')"),
    ("sort_array", "array_sort($1, 'ASC', 'NULLS FIRST')"),
    ("date_format", "date_format(CAST($1 AS TIMESTAMP), $2)"),
    ("percentile", "percentile_cont(CAST($1 AS DOUBLE), $2)"),
    ("to_date", "CAST($1 AS DATE)"),
    ("to_timestamp", "CAST($1 AS TIMESTAMP)"),
    ("unix_seconds", "CAST($1 AS BIGINT)"),
    ("bigint", "CAST($1 AS BIGINT)"),
    ("binary", "CAST($1 AS BINARY)"),
    ("boolean", "CAST($1 AS BOOLEAN)"),
    ("date", "CAST($1 AS DATE)"),
    ("double", "CAST($1 AS DOUBLE)"),
    ("float", "CAST($1 AS FLOAT)"),
    ("int", "CAST($1 AS INT)"),
    ("smallint", "CAST($1 AS SMALLINT)"),
    ("string", "CAST($1 AS STRING)"),
    ("timestamp", "CAST($1 AS TIMESTAMP)"),
    ("tinyint", "CAST($1 AS TINYINT)"),
    ("count_if", "count(CASE WHEN $1 THEN 1 END)"),
    ("day", "CAST(date_part('day', $1) AS INT)"),
    ("dayofmonth", "CAST(date_part('day', $1) AS INT)"),
    ("dayofweek", "CAST(date_part('dayofweek', $1) AS INT)"),
    ("dayofyear", "CAST(date_part('doy', $1) AS INT)"),
    ("hour", "CAST(date_part('hour', $1) AS INT)"),
    ("isnotnull", "($1 IS NOT NULL)"),
    ("isnull", "($1 IS NULL)"),
    ("max_by", "first_value($1 ORDER BY $2 DESC NULLS LAST)"),
    ("min_by", "first_value($1 ORDER BY $2 ASC NULLS LAST)"),
    ("minute", "CAST(date_part('minute', $1) AS INT)"),
    ("month", "CAST(date_part('month', $1) AS INT)"),
    ("quarter", "CAST(date_part('quarter', $1) AS INT)"),
    ("second", "CAST(date_part('second', $1) AS INT)"),
    ("timestamp_micros", "CAST(to_timestamp_micros($1) AS TIMESTAMP)"),
    ("timestamp_millis", "CAST(to_timestamp_millis($1) AS TIMESTAMP)"),
    ("timestamp_seconds", "CAST(to_timestamp_seconds($1) AS TIMESTAMP)"),
    ("try_divide", "(CASE WHEN $2 <> 0 THEN $1 / $2 END)"),
    ("try_mod", "(CASE WHEN $2 <> 0 THEN $1 % $2 END)"),
    ("unix_timestamp", "CAST(CAST($1 AS TIMESTAMP) AS BIGINT)"),
    ("weekofyear", "CAST(date_part('week', $1) AS INT)"),
    ("year", "CAST(date_part('year', $1) AS INT)"),
    ("get", "array_element($1, $2 + 1)"),
];

/// Functions that take a pattern of Java's, which DataFusion would read as another one; and how many arguments they have
/// without it.
const PATTERNS: [(&str, usize); 7] = [
    ("from_unixtime", 0),
    ("to_char", 1),
    ("to_date", 1),
    ("to_number", 1),
    ("to_timestamp", 1),
    ("to_unix_timestamp", 1),
    ("unix_timestamp", 1),
];

/// Puts what DataFusion knows in the place of what it does not.
///
/// # Errors
/// Unsupported for functions that DataFusion would take for others.
pub(crate) fn translate_functions(query: &mut Query) -> Result<()> {
    match query.visit(&mut Translating) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Translating;

impl VisitorMut for Translating {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::RLike { negated, expr: text, pattern, .. } = expr {
            let call = Expr::Nested(Box::new(call("regexp_like", [text, pattern].map(|e| e.as_ref().clone()))));
            *expr = match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(call) },
                false => call,
            };
        } else if let Expr::Function(function) = expr {
            let name = function.name.to_string();
            let count = match &function.args {
                FunctionArguments::List(list) => list.args.len(),
                _ => 0,
            };
            if PATTERNS.iter().any(|(pattern, without)| *pattern == name && count > *without) {
                let error = Error::unsupported(format!(
                    "{name} with a pattern is not supported yet; date_part, CAST and substring are"
                ));
                return ControlFlow::Break(error.class("UNSUPPORTED_FEATURE"));
            }
            if name == "count" {
                count_rows(function);
            } else if name == "struct" {
                name_fields(function);
            } else if let Some((_, to)) = RENAMED.iter().find(|(from, _)| *from == name) {
                function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(*to))]);
            } else if let Some((_, text)) = EXPRESSIONS.iter().find(|(from, _)| *from == name)
                && let Some(made) = made(text, function)
            {
                *expr = made;
            }
        }
        ControlFlow::Continue(())
    }
}

/// A call of a function.
pub(super) fn call<const N: usize>(name: &str, arguments: [Expr; N]) -> Expr {
    let arguments = arguments.map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `count(1)` counts rows, as `count(*)` does; DataFusion calls both the same and would not let them stand side by side.
fn count_rows(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if list.duplicate_treatment.is_some() {
        return;
    }
    if let [FunctionArg::Unnamed(argument)] = list.args.as_mut_slice()
        && let FunctionArgExpr::Expr(Expr::Value(value)) = argument
        && !matches!(value.value, Value::Null | Value::Placeholder(_))
    {
        *argument = FunctionArgExpr::Wildcard;
    }
}

/// Gives the fields of `struct(a, b + 1)` the names that Spark does: of columns their own, of others `col` and their number.
fn name_fields(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut named = Vec::with_capacity(list.args.len() * 2);
    for (index, argument) in list.args.iter().enumerate() {
        let name = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(ident))) => ident.value.clone(),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts))) => {
                parts.last().map(|part| part.value.clone()).unwrap_or_default()
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => format!("col{}", index + 1),
            _ => return,
        };
        let name = Expr::Value(Value::SingleQuotedString(name).into());
        named.extend([FunctionArg::Unnamed(FunctionArgExpr::Expr(name)), argument.clone()]);
    }
    list.args = named;
    function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("named_struct"))]);
}

/// The expression for a call; `None` if the call has other arguments, or more than arguments.
fn made(text: &str, function: &Function) -> Option<Expr> {
    if function.over.is_some() || function.filter.is_some() {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(Expr::Nested(Box::new(expr.clone()))),
        _ => None,
    };
    let arguments = list.args.iter().map(argument).collect::<Option<Vec<_>>>()?;
    let wanted = (1..=9).take_while(|n| text.contains(&format!("${n}"))).count();
    if arguments.len() != wanted {
        return None;
    }
    let mut made = Parser::new(&SparkDialect).try_with_sql(text).ok()?.parse_expr().ok()?;
    let _ = made.visit(&mut Filling(&arguments));
    Some(made)
}

/// Puts arguments in their places.
struct Filling<'a>(&'a [Expr]);

impl VisitorMut for Filling<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(place) = &value.value
            && let Some(argument) =
                place.trim_start_matches('$').parse::<usize>().ok().and_then(|n| self.0.get(n.checked_sub(1)?))
        {
            *expr = argument.clone();
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_can_be_parsed() {
        for (name, text) in EXPRESSIONS {
            let parsed = Parser::new(&SparkDialect).try_with_sql(text).and_then(|mut p| p.parse_expr());
            assert!(parsed.is_ok(), "{name}: {parsed:?}");
        }
    }
}
