//! Syntax errors with their position, and how they are shown.

use lakesmith_core::Error;

/// Characters of a line that a snippet shows at most.
const WINDOW: usize = 120;

/// Context key: line, from 1.
pub(crate) const LINE: &str = "line";
/// Context key: character in the line, from 0, as Spark counts.
pub(crate) const POSITION: &str = "position";

/// A place in the text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A usage error of `class` at `place`.
pub(crate) fn error_at(place: Place, class: &'static str, message: impl Into<String>) -> Error {
    Error::usage(message).class(class).with(LINE, place.line).with(POSITION, place.column - 1)
}

/// A syntax error at `place`.
pub(crate) fn syntax_error(place: Place, message: impl Into<String>) -> Error {
    error_at(place, "PARSE_SYNTAX_ERROR", message)
}

/// The line of `text` in which `error` lies, and below it a caret under the spot; `None` for errors without a position in
/// this text. Two lines without a final line break; a long line is cut around the spot.
pub fn render_snippet(text: &str, error: &Error) -> Option<String> {
    let number: usize = error.context_value(LINE)?.parse().ok()?;
    let position: usize = error.context_value(POSITION)?.parse().ok()?;
    let line = text.split('\n').nth(number.checked_sub(1)?)?.trim_end_matches('\r');
    let start = position.saturating_sub(WINDOW / 2);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let window: String = line.chars().skip(start).take(WINDOW).map(shown).collect();
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if line.chars().count() > start + WINDOW { "…" } else { "" });
    let indent = " ".repeat(before.chars().count() + position - start);
    Some(format!("{before}{window}{after}\n{indent}^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_spot() {
        let error = syntax_error(Place { line: 2, column: 4 }, "x");
        assert_eq!(render_snippet("OPTIMIZE\n\tü WHER\r\nx", &error).unwrap(), " ü WHER\n   ^");
        assert_eq!(render_snippet("one line", &error), None);
        assert_eq!(render_snippet("x", &Error::usage("no position")), None);
    }

    #[test]
    fn long_lines_are_cut_around_the_spot() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let snippet = render_snippet(&text, &syntax_error(Place { line: 1, column: 501 }, "x")).unwrap();
        let (line, caret) = snippet.split_once('\n').unwrap();
        assert!(line.chars().count() < 130);
        assert!(line.chars().skip(caret.chars().count() - 1).collect::<String>().starts_with("HERE"));
    }
}
