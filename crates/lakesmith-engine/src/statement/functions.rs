//! Spark's functions that DataFusion has under another name, or as an expression.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    NullTreatment, ObjectName, ObjectNamePart, Query, UnaryOperator, Value, VisitMut as _, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use lakesmith::{Error, Result};

use super::dialect::SparkDialect;
use super::like::settle_like;

/// Names for names.
const RENAMED: [(&str, &str); 21] = [
    ("approx_count_distinct", "approx_distinct"),
    ("array_agg", "collect_list"),
    ("every", "bool_and"),
    ("explode", "unnest"),
    ("first", "first_value"),
    ("any_value", "first_value"),
    ("endswith", "ends_with"),
    ("last", "last_value"),
    ("lcase", "lower"),
    ("len", "length"),
    ("listagg", "string_agg"),
    ("printf", "format_string"),
    ("regexp", "regexp_like"),
    ("rlike", "regexp_like"),
    ("sign", "signum"),
    ("some", "bool_or"),
    ("startswith", "starts_with"),
    ("std", "stddev"),
    ("try_avg", "avg"),
    ("ucase", "upper"),
    ("variance", "var_samp"),
];

/// Names for expressions over the arguments, by how many of those there are.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("add_months", "add_months(CAST($1 AS DATE), $2)"),
    ("approx_percentile", PERCENTILE),
    ("approx_percentile", PERCENTILE_ACCURATE),
    ("array_size", "(CASE WHEN $1 IS NOT NULL THEN size($1) END)"),
    ("array_sort", "array_sort($1, 'ASC', 'NULLS LAST')"),
    ("cardinality", "(CASE WHEN $1 IS NOT NULL THEN size($1) END)"),
    ("date_add", "date_add(CAST($1 AS DATE), $2)"),
    ("date_diff", "datediff(CAST($1 AS DATE), CAST($2 AS DATE))"),
    ("date_format", "date_format(CAST($1 AS TIMESTAMP), $2)"),
    ("date_sub", "date_sub(CAST($1 AS DATE), $2)"),
    ("dateadd", "date_add(CAST($1 AS DATE), $2)"),
    ("datediff", "datediff(CAST($1 AS DATE), CAST($2 AS DATE))"),
    ("decimal", "CAST($1 AS DECIMAL)"),
    ("e", "CAST('2.718281828459045' AS DOUBLE)"),
    ("equal_null", "($1 IS NOT DISTINCT FROM $2)"),
    ("explode_outer", "unnest(__lakesmith_or_null($1))"),
    ("flatten", "(CASE WHEN forall($1, x -> x IS NOT NULL) THEN flatten($1) END)"),
    ("from_unixtime", "date_format(CAST(CAST($1 AS BIGINT) AS TIMESTAMP), 'yyyy-MM-dd HH:mm:ss')"),
    ("from_unixtime", "date_format(CAST(CAST($1 AS BIGINT) AS TIMESTAMP), $2)"),
    ("isnan", "coalesce(isnan($1), false)"),
    ("last_day", "last_day(CAST($1 AS DATE))"),
    ("left", "substring($1, 1, $2)"),
    (
        "levenshtein",
        "(CASE WHEN levenshtein($1, $2) <= $3 THEN levenshtein($1, $2) WHEN levenshtein($1, $2) > $3 THEN -1 END)",
    ),
    ("log", "ln($1)"),
    ("log", "(CASE WHEN $1 > 0 AND $2 > 0 THEN log($1, $2) END)"),
    ("map_concat", "$1"),
    ("map_concat", "map_from_entries(array_concat(map_entries($1), map_entries($2)))"),
    ("map_concat", "map_from_entries(array_concat(map_entries($1), map_entries($2), map_entries($3)))"),
    ("map_contains_key", "array_contains(map_keys($1), $2)"),
    ("median", "median(CAST($1 AS DOUBLE))"),
    ("mod", "($1 % $2)"),
    ("next_day", "next_day(CAST($1 AS DATE), $2)"),
    ("nullifzero", "nullif($1, 0)"),
    ("percentile", "percentile_cont(CAST($1 AS DOUBLE), $2)"),
    ("percentile_approx", PERCENTILE),
    ("percentile_approx", PERCENTILE_ACCURATE),
    ("pmod", "(CASE WHEN $1 % $2 < 0 THEN ($1 % $2 + $2) % $2 ELSE $1 % $2 END)"),
    ("position", "locate($1, $2)"),
    ("position", "locate($1, $2, $3)"),
    ("regexp_count", "size(regexp_extract_all($1, $2, 0))"),
    ("regexp_substr", "nullif(regexp_extract($1, $2, 0), '')"),
    ("replace", "replace($1, $2, '')"),
    ("replace", "(CASE WHEN $2 = '' AND $3 IS NOT NULL THEN $1 ELSE replace($1, $2, $3) END)"),
    ("right", "(CASE WHEN $2 <= 0 AND $1 IS NOT NULL THEN '' ELSE substring($1, -$2) END)"),
    ("size", "(CASE WHEN $1 IS NOT NULL THEN size($1) END)"),
    ("sort_array", "array_sort($1, 'ASC', 'NULLS FIRST')"),
    (
        "sort_array",
        "(CASE WHEN $2 THEN array_sort($1, 'ASC', 'NULLS FIRST') ELSE array_sort($1, 'DESC', 'NULLS LAST') END)",
    ),
    ("to_date", "CAST($1 AS DATE)"),
    ("to_date", "CAST(__lakesmith_parse_time($1, $2) AS DATE)"),
    ("to_timestamp", "CAST($1 AS TIMESTAMP)"),
    ("to_timestamp", "__lakesmith_parse_time($1, $2)"),
    ("to_unix_timestamp", "unix_timestamp($1)"),
    ("to_unix_timestamp", "unix_timestamp(__lakesmith_parse_time($1, $2))"),
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
    (
        "timestamp_seconds",
        "CAST(to_timestamp_micros(CAST(CAST($1 AS DECIMAL(30, 6)) * 1000000 AS BIGINT)) AS TIMESTAMP)",
    ),
    ("try_add", "__lakesmith_try($1, $2, (a, b) -> a + b)"),
    ("try_divide", "__lakesmith_try($1, $2, (a, b) -> a / b)"),
    ("try_mod", "__lakesmith_try($1, $2, (a, b) -> a % b)"),
    ("try_multiply", "__lakesmith_try($1, $2, (a, b) -> a * b)"),
    ("try_subtract", "__lakesmith_try($1, $2, (a, b) -> a - b)"),
    ("try_to_date", "TRY_CAST($1 AS DATE)"),
    ("try_to_date", "CAST(__lakesmith_try($1, $2, (a, b) -> __lakesmith_parse_time(a, b)) AS DATE)"),
    ("try_to_timestamp", "TRY_CAST($1 AS TIMESTAMP)"),
    ("try_to_timestamp", "__lakesmith_try($1, $2, (a, b) -> __lakesmith_parse_time(a, b))"),
    ("unix_timestamp", "unix_timestamp(__lakesmith_parse_time($1, $2))"),
    ("weekofyear", "CAST(date_part('week', $1) AS INT)"),
    ("year", "CAST(date_part('year', $1) AS INT)"),
    ("zeroifnull", "nvl($1, 0)"),
    ("get", "array_element($1, $2 + 1)"),
];

/// The value of which so many are not greater.
const PERCENTILE: &str = "array_element(array_sort(collect_list($1), 'ASC', 'NULLS LAST'), \
                          CAST(greatest(ceil(count($1) * CAST($2 AS DOUBLE)), 1) AS BIGINT))";

/// The same, whatever accuracy would do: it is exact.
const PERCENTILE_ACCURATE: &str = "(CASE WHEN $3 > 0 THEN array_element(array_sort(collect_list($1), 'ASC', 'NULLS LAST'), \
                                   CAST(greatest(ceil(count($1) * CAST($2 AS DOUBLE)), 1) AS BIGINT)) END)";

/// Functions that take a pattern of Java's for numbers, which DataFusion would read as another one; and how many arguments
/// they have without it.
const PATTERNS: [(&str, usize); 2] = [("to_char", 1), ("to_number", 1)];

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
            } else if name == "decode" && count > 2 {
                if let Some(made) = decoded(function) {
                    *expr = made;
                }
            } else if let Some((_, to)) = RENAMED.iter().find(|(from, _)| *from == name) {
                function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(*to))]);
                pass_over_nulls(function);
            } else {
                pass_over_nulls(function);
                let mut known = EXPRESSIONS.iter().filter(|(from, _)| *from == name);
                if let Some(made) = known.find_map(|(_, text)| made(text, function)) {
                    *expr = made;
                }
            }
        } else if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            for access in access_chain {
                // A field behind a dot is its name.
                if let AccessExpr::Dot(field) = access
                    && let Expr::Identifier(name) = field
                {
                    *field = Expr::Value(Value::SingleQuotedString(name.value.clone()).into());
                }
            }
        } else if let Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: number } = expr {
            *expr = call("bitwise_not", [number.as_ref().clone()]);
        } else if let Some(done) = settle_like(expr) {
            match done {
                Ok(settled) => *expr = settled,
                Err(error) => return ControlFlow::Break(error),
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

/// `first(c, true)` is `first(c) IGNORE NULLS`.
fn pass_over_nulls(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let name = function.name.to_string();
    if !matches!(name.as_str(), "first_value" | "last_value") || list.args.len() != 2 {
        return;
    }
    let flag = match &list.args[1] {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match value.value {
            Value::Boolean(flag) => flag,
            _ => return,
        },
        _ => return,
    };
    list.args.truncate(1);
    function.null_treatment = flag.then_some(NullTreatment::IgnoreNulls);
}

/// `decode(e, a, x, b, y, z)` as a CASE, in which NULL equals NULL.
fn decoded(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let pairs = (list.args.len() - 1) / 2;
    let whens: String = (0..pairs).map(|at| format!(" WHEN $1 <=> ${} THEN ${}", at * 2 + 2, at * 2 + 3)).collect();
    let otherwise = if list.args.len() % 2 == 0 { format!(" ELSE ${}", list.args.len()) } else { String::new() };
    made(&format!("(CASE{whens}{otherwise} END)"), function)
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
    let wanted = (1..=99).take_while(|n| text.contains(&format!("${n}"))).count();
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
