//! Escapes of Spark's string literals.
//!
//! # Source
//! Spark `SparkParserUtils.unescapeSQLString`, `SqlBaseLexer.g4` (STRING_LITERAL).

/// The value of a literal whose text between the quotes is `body`; the quote doubled stands for itself.
pub fn unescape(body: &str, quote: char) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = escape(rest, &mut out),
            c if c == quote => {
                out.push(c);
                rest = rest.strip_prefix(quote).unwrap_or(rest);
            }
            c => out.push(c),
        }
    }
    out
}

/// Appends what the escape after a backslash stands for and returns the text behind it.
fn escape<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let code = |digits: usize, radix: u32| {
        let text = rest.get(1..1 + digits)?;
        let plain = text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u32::from_str_radix(text, radix).ok().filter(|_| plain)?;
        Some((char::from_u32(value)?, &rest[1 + digits..]))
    };
    let numeric = match rest.chars().next() {
        None => {
            out.push('\\');
            return rest;
        }
        Some('u') => code(4, 16),
        Some('U') => code(8, 16),
        Some('0' | '1') => octal(rest),
        _ => None,
    };
    if let Some((c, rest)) = numeric {
        out.push(c);
        return rest;
    }
    let Some(c) = rest.chars().next() else { return rest };
    match c {
        '0' => out.push('\0'),
        'b' => out.push('\u{8}'),
        'n' => out.push('\n'),
        'r' => out.push('\r'),
        't' => out.push('\t'),
        'Z' => out.push('\u{1a}'),
        // LIKE patterns keep their backslash.
        '%' | '_' => out.extend(['\\', c]),
        c => out.push(c),
    }
    &rest[c.len_utf8()..]
}

/// Three octal digits from `000` to `177`.
fn octal(rest: &str) -> Option<(char, &str)> {
    let digits = rest.get(..3).filter(|d| d.bytes().all(|b| (b'0'..=b'7').contains(&b)))?;
    Some((char::from(u8::from_str_radix(digits, 8).ok()?), &rest[3..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_as_spark_has_them() {
        for (body, expected) in [
            ("it''s", "it's"),
            (r"it\'s", "it's"),
            (r"a\nb\tc\\d", "a\nb\tc\\d"),
            (r"50\% \_x", r"50\% \_x"),
            (r"\u00e9\U0001F600", "é😀"),
            (r"\101\0x", "A\0x"),
            (r"\q\u12", "qu12"),
            ("a\"b", "a\"b"),
            (r"\", "\\"),
            ("ü''é", "ü'é"),
        ] {
            assert_eq!(unescape(body, '\''), expected, "{body}");
        }
        assert_eq!(unescape("a\"\"b'c", '"'), "a\"b'c");
    }
}
