//! The text that is being typed, and the cursor in it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text with a cursor, a byte position between two characters.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
}

impl Buffer {
    /// A buffer with the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(super) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(super) fn insert(&mut self, c: char) {
        self.text.insert(self.cursor, c);
        self.cursor += c.len_utf8();
    }

    /// Replaces what stands between a position and the cursor.
    pub(super) fn replace_from(&mut self, start: usize, with: &str) {
        self.text.replace_range(start..self.cursor, with);
        self.cursor = start + with.len();
    }

    fn previous(&self) -> usize {
        self.before().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.previous();
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.next();
    }

    /// To the beginning of the line.
    pub(super) fn home(&mut self) {
        self.cursor = self.before().rfind('\n').map_or(0, |at| at + 1);
    }

    /// To the end of the line.
    pub(super) fn end(&mut self) {
        self.cursor = self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at);
    }

    pub(super) fn go_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    pub(super) fn backspace(&mut self) {
        let start = self.previous();
        self.replace_from(start, "");
    }

    pub(super) fn delete(&mut self) {
        let end = self.next();
        self.text.replace_range(self.cursor..end, "");
    }

    /// Drops the line up to the cursor.
    pub(super) fn drop_before(&mut self) {
        let start = self.before().rfind('\n').map_or(0, |at| at + 1);
        self.replace_from(start, "");
    }

    /// Drops the line from the cursor on.
    pub(super) fn drop_after(&mut self) {
        let at = self.cursor;
        self.end();
        self.replace_from(at, "");
    }

    /// Drops the word before the cursor.
    pub(super) fn drop_word(&mut self) {
        let trimmed = self.before().trim_end();
        let start = trimmed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.replace_from(start, "");
    }

    /// Rows and columns that the text takes on a terminal, and where the cursor is, counted from the first row.
    pub(super) fn layout(&self, prompt_width: usize, columns: usize) -> Layout {
        let columns = columns.max(prompt_width + 2);
        let end = position(&self.text, prompt_width, columns);
        let cursor = position(self.before(), prompt_width, columns);
        Layout { rows: end.0 + 1, end_column: end.1, cursor_row: cursor.0, cursor_column: cursor.1 }
    }
}

/// Where things are on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: usize,
    pub(super) end_column: usize,
    pub(super) cursor_row: usize,
    pub(super) cursor_column: usize,
}

/// Row and column after the text; every line begins behind a prompt.
fn position(text: &str, prompt_width: usize, columns: usize) -> (usize, usize) {
    let (mut row, mut column) = (0, prompt_width);
    for c in text.chars() {
        if c == '\n' {
            (row, column) = (row + 1, prompt_width);
            continue;
        }
        let width = c.width().unwrap_or(0);
        if column + width > columns {
            (row, column) = (row + 1, 0);
        }
        column += width;
    }
    // A full row leaves the cursor on the next one.
    if column >= columns { (row + 1, 0) } else { (row, column) }
}

/// Columns of a prompt.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_any_length_are_edited_whole() {
        let mut buffer = Buffer::default();
        "aü😀".chars().for_each(|c| buffer.insert(c));
        buffer.left();
        buffer.backspace();
        assert_eq!((buffer.text(), buffer.before()), ("a😀", "a"));
        buffer.delete();
        buffer.delete();
        assert_eq!(buffer.text(), "a");
        buffer.home();
        buffer.left();
        buffer.right();
        buffer.right();
        assert_eq!(buffer.before(), "a");
    }

    #[test]
    fn lines_and_words_are_dropped() {
        let mut buffer = Buffer::of("one\ntwo three  ");
        buffer.drop_word();
        assert_eq!(buffer.text(), "one\ntwo ");
        buffer.home();
        assert_eq!(buffer.before(), "one\n");
        buffer.drop_after();
        assert_eq!(buffer.text(), "one\n");
        let mut buffer = Buffer::of("one\ntwo");
        buffer.drop_before();
        assert_eq!(buffer.text(), "one\n");
        buffer.replace_from(1, "x");
        assert_eq!((buffer.text(), buffer.before()), ("ox", "ox"));
    }

    #[test]
    fn long_lines_and_wide_characters_wrap() {
        let layout = |text: &str| Buffer::of(text).layout(3, 10);
        let at = |rows, column| Layout { rows, end_column: column, cursor_row: rows - 1, cursor_column: column };
        assert_eq!(layout(""), at(1, 3));
        assert_eq!(layout("abcdef"), at(1, 9));
        assert_eq!(layout("abcdefg"), at(2, 0));
        assert_eq!(layout("abcdefgh"), at(2, 1));
        assert_eq!(layout("abcdef表"), at(2, 2));
        assert_eq!(layout("a\nbc"), at(2, 5));
        let mut buffer = Buffer::of("abc\nd");
        buffer.home();
        buffer.left();
        assert_eq!(buffer.layout(3, 10), Layout { rows: 2, end_column: 4, cursor_row: 0, cursor_column: 6 });
    }
}
