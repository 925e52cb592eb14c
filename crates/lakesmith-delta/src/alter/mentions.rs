//! Which columns the text of a SQL expression may mention.
//!
//! The expression may be anything that Spark takes, so its names are picked out without understanding it: rather one column
//! too many than one that is changed under a constraint.

/// A name or anything else of an expression.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Other(char),
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    let mut after_space = true;
    while let Some(c) = chars.next() {
        let apart = std::mem::replace(&mut after_space, c.is_whitespace());
        match c {
            c if c.is_whitespace() => {}
            '\'' | '"' => {
                let is_r = |token: &mut Token| matches!(token, Token::Name(name) if name.eq_ignore_ascii_case("r"));
                let is_raw = !apart && tokens.pop_if(is_r).is_some();
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' if !is_raw => drop(chars.next()),
                        end if end == c => break,
                        _ => {}
                    }
                }
                tokens.push(Token::Other(c));
            }
            '`' => {
                let mut name = String::new();
                while let Some(inner) = chars.next() {
                    if inner != '`' {
                        name.push(inner);
                    } else if chars.next_if_eq(&'`').is_some() {
                        name.push('`');
                    } else {
                        break;
                    }
                }
                tokens.push(Token::Name(name));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut name = String::from(c);
                while let Some(more) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(more);
                }
                tokens.push(Token::Name(name));
            }
            other => tokens.push(Token::Other(other)),
        }
    }
    tokens
}

/// True if the expression may read the column, a part of it or one that it is a part of.
pub(super) fn mentions(expression: &str, path: &[String]) -> bool {
    let tokens = tokens(expression);
    let name_at = |i: usize| match tokens.get(i) {
        Some(Token::Name(name)) => Some(name.to_lowercase()),
        _ => None,
    };
    (0..tokens.len()).any(|start| {
        if start > 0 && tokens[start - 1] == Token::Other('.') {
            return false;
        }
        for (depth, part) in path.iter().enumerate() {
            let at = start + 2 * depth;
            // `s` alone, or `s[0]`, may be any part of it.
            let goes_on = depth == 0 || tokens.get(at - 1) == Some(&Token::Other('.'));
            match name_at(at) {
                Some(name) if goes_on && name == part.to_lowercase() => {}
                _ => return depth > 0 && !goes_on,
            }
        }
        // A function's name is no column.
        path.len() > 1 || tokens.get(start + 1) != Some(&Token::Other('('))
    })
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn names_are_found_whatever_stands_around_them() {
        for (expression, path, expected) in [
            ("id > 0", "id", true),
            ("ID>0", "id", true),
            ("`i d` > 0", "i d", true),
            ("x = 'id'", "id", false),
            ("x = \"it\\\" id\"", "id", false),
            (r"x = r'it\' || id || 'x'", "id", true),
            (r"x = r'it\' || id || 'x'", "r", false),
            (r"x RLIKE R'\d' and id > 1", "id", true),
            ("s . x IS NOT NULL and id <> 5", "s", true),
            ("s . x IS NOT NULL and id <> 5", "s.x", true),
            ("s . x IS NOT NULL and id <> 5", "s.y", false),
            ("s . x IS NOT NULL and id <> 5", "x", false),
            ("s IS NOT NULL", "s.x", true),
            ("s[0].x > 1", "s.x", true),
            ("size(id) > 1", "id", true),
            ("id(x) > 1", "id", false),
            ("idx > 1", "id", false),
            ("a.b.c > 1", "a.b", true),
            ("a.b > 1", "a.b.c", true),
        ] {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(mentions(expression, &path), expected, "{expression}: {path:?}");
        }
    }
}
