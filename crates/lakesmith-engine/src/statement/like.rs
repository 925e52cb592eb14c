//! LIKE with another escape character than `\`, and with several patterns.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};
use lakesmith::{Error, Result};

/// The LIKE in the form that can be planned, if it is of another one.
pub(super) fn settle_like(expr: &Expr) -> Option<Result<Expr>> {
    let (negated, any, text, pattern, escape, folds) = match expr {
        Expr::Like { negated, any, expr, pattern, escape_char } => (*negated, *any, expr, pattern, escape_char, false),
        Expr::ILike { negated, any, expr, pattern, escape_char } => (*negated, *any, expr, pattern, escape_char, true),
        _ => return None,
    };
    let like = |pattern: Expr| {
        let (expr, pattern) = (text.clone(), Box::new(pattern));
        match folds {
            false => Expr::Like { negated, any: false, expr, pattern, escape_char: None },
            true => Expr::ILike { negated, any: false, expr, pattern, escape_char: None },
        }
    };
    let all = match pattern.as_ref() {
        // Every pattern in parentheses may match, or may not match.
        Expr::Tuple(patterns) if any => patterns.iter().cloned().map(like).collect(),
        Expr::Nested(pattern) if any => vec![like(pattern.as_ref().clone())],
        pattern => {
            let escape = Expr::Value(escape.clone()?);
            return Some(escaped(pattern, &escape).map(|pattern| like(text_of(pattern))));
        }
    };
    all.into_iter().reduce(either).map(|all| Ok(Expr::Nested(Box::new(all))))
}

fn either(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Or, right: Box::new(right) }
}

fn text_of(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

/// The pattern with `\` for its escape character.
fn escaped(pattern: &Expr, escape: &Expr) -> Result<String> {
    let one = literal(escape).and_then(|escape| {
        let mut chars = escape.chars();
        chars.next().filter(|_| chars.next().is_none())
    });
    let escape =
        one.ok_or_else(|| Error::usage("ESCAPE takes one character in quotes").class("INVALID_ESCAPE_CHAR"))?;
    let pattern = literal(pattern).ok_or_else(|| {
        Error::unsupported("LIKE with ESCAPE takes a pattern in quotes here; put \\ before what is to stand for itself")
            .class("UNSUPPORTED_FEATURE")
    })?;
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == escape {
            let next = chars.next().filter(|next| matches!(next, '%' | '_') || *next == escape);
            let next = next.ok_or_else(|| {
                let message = format!("the escape character '{escape}' stands before %, _ or itself in '{pattern}'");
                Error::usage(message).class("INVALID_FORMAT.ESC_IN_THE_MIDDLE")
            })?;
            out.extend(['\\', next]);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_backslashes() {
        let given = |pattern: &str| escaped(&text_of(pattern.to_owned()), &text_of("/".to_owned()));
        assert_eq!(given("a/%b%/_//").unwrap(), r"a\%b%\_\/");
        assert_eq!(given(r"a\b").unwrap(), r"a\\b");
        assert!(given("a/b").is_err());
        assert!(escaped(&text_of("a".to_owned()), &text_of("//".to_owned())).is_err());
    }
}
