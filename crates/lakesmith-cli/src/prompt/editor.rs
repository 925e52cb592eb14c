//! Lines typed on a terminal: keys in, text out.

use std::io::{self, Read, Write};

use crossterm::terminal;
use lakesmith::{Error, Result};

use super::buffer::{Buffer, Layout, width};
use super::complete::{Completer, common_beginning};
use super::history::History;
use super::statement::is_whole;

const PROMPT: &str = "lakesmith> ";
/// Stands before the second and later lines, as wide as the prompt.
const MORE: &str = "        -> ";
/// Terminals that don't tell their width have this.
const COLUMNS: u16 = 80;

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Whole input.
    Text(String),
    /// Ctrl-C.
    Dropped,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Char(char),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    Tab,
    Control(char),
    Other,
}

/// Reads input from the terminal, which is raw only while something is typed.
pub(super) struct Editor {
    completer: Completer,
}

/// The terminal in raw mode, until it is dropped.
struct Raw;

impl Raw {
    fn enter() -> Result<Self> {
        terminal::enable_raw_mode().map_err(failed).map(|()| Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Err(error) = terminal::disable_raw_mode() {
            tracing::warn!(%error, "the terminal stays raw; `reset` cures it");
        }
    }
}

fn failed(error: io::Error) -> Error {
    Error::unavailable("the terminal can't be used; give statements as an argument, with --file or on standard input")
        .caused_by(error)
}

impl Editor {
    pub(super) fn new(completer: Completer) -> Self {
        Self { completer }
    }

    /// Reads until the input is whole.
    ///
    /// # Errors
    /// Unavailable if the terminal can't be used.
    pub(super) fn read(&mut self, history: &History) -> Result<Typed> {
        let _raw = Raw::enter()?;
        let mut screen = Typing { buffer: Buffer::default(), drawn: None };
        let mut recalled = history.entries().len();
        let mut draft = Buffer::default();
        screen.draw()?;
        loop {
            let Some(key) = next_key().map_err(failed)? else {
                screen.leave()?;
                return Ok(Typed::End);
            };
            match key {
                Key::Enter if is_whole(screen.buffer.text()) => {
                    screen.leave()?;
                    return Ok(Typed::Text(screen.buffer.text().to_owned()));
                }
                Key::Enter => screen.buffer.insert('\n'),
                Key::Control('c') => {
                    screen.leave()?;
                    return Ok(Typed::Dropped);
                }
                Key::Control('d') if screen.buffer.text().is_empty() => {
                    screen.leave()?;
                    return Ok(Typed::End);
                }
                Key::Up if recalled > 0 => {
                    if recalled == history.entries().len() {
                        draft = screen.buffer.clone();
                    }
                    recalled -= 1;
                    screen.buffer = Buffer::of(&history.entries()[recalled]);
                }
                Key::Down if recalled < history.entries().len() => {
                    recalled += 1;
                    screen.buffer =
                        history.entries().get(recalled).map_or_else(|| draft.clone(), |text| Buffer::of(text));
                }
                Key::Tab => self.complete(&mut screen)?,
                Key::Control('l') => screen.clear()?,
                other => edit(&mut screen.buffer, other),
            }
            screen.draw()?;
        }
    }

    fn complete(&self, screen: &mut Typing) -> Result<()> {
        let (start, candidates) = self.completer.complete(screen.buffer.before());
        let typed = screen.buffer.before().len() - start;
        match candidates.as_slice() {
            [] => {}
            [only] => screen.buffer.replace_from(start, &format!("{only} ")),
            several => {
                let shared = common_beginning(several);
                if shared.len() > typed {
                    screen.buffer.replace_from(start, &shared);
                } else {
                    screen.list(several)?;
                }
            }
        }
        Ok(())
    }
}

fn edit(buffer: &mut Buffer, key: Key) {
    match key {
        Key::Char(c) => buffer.insert(c),
        Key::Backspace | Key::Control('h') => buffer.backspace(),
        Key::Delete | Key::Control('d') => buffer.delete(),
        Key::Left | Key::Control('b') => buffer.left(),
        Key::Right | Key::Control('f') => buffer.right(),
        Key::Home | Key::Control('a') => buffer.home(),
        Key::End | Key::Control('e') => buffer.end(),
        Key::Control('u') => buffer.drop_before(),
        Key::Control('k') => buffer.drop_after(),
        Key::Control('w') => buffer.drop_word(),
        _ => {}
    }
}

/// What is typed, as it stands on the terminal.
struct Typing {
    buffer: Buffer,
    drawn: Option<Layout>,
}

impl Typing {
    fn put(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
    }

    /// Back to the first row of what was drawn, everything from there on cleared.
    fn back(&self) -> String {
        match self.drawn {
            Some(Layout { cursor_row: rows @ 1.., .. }) => format!("\x1b[{rows}A\r\x1b[J"),
            _ => "\r\x1b[J".to_owned(),
        }
    }

    fn draw(&mut self) -> Result<()> {
        let columns = usize::from(terminal::size().map_or(COLUMNS, |(columns, _)| columns));
        let layout = self.buffer.layout(width(PROMPT), columns);
        let mut text = self.back();
        text.push_str(PROMPT);
        text.push_str(&self.buffer.text().replace('\n', &format!("\r\n{MORE}")));
        if layout.end_column == 0 {
            // The terminal wraps only with the next character.
            text.push_str("\r\n");
        }
        let up = layout.rows - 1 - layout.cursor_row;
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push('\r');
        if layout.cursor_column > 0 {
            text.push_str(&format!("\x1b[{}C", layout.cursor_column));
        }
        self.drawn = Some(layout);
        self.put(&text)
    }

    /// Leaves the text on the terminal and goes below it.
    fn leave(&mut self) -> Result<()> {
        self.buffer.go_to_end();
        self.draw()?;
        self.put("\r\n")
    }

    fn clear(&mut self) -> Result<()> {
        self.drawn = None;
        self.put("\x1b[2J\x1b[H")
    }

    /// Shows candidates; the text is drawn again below them.
    fn list(&mut self, candidates: &[String]) -> Result<()> {
        let text = self.buffer.clone();
        self.leave()?;
        self.put(&format!("{}\r\n", candidates.join("  ")))?;
        *self = Typing { buffer: text, drawn: None };
        Ok(())
    }
}

/// The next byte; `None` at the end.
fn next_byte() -> io::Result<Option<u8>> {
    let mut byte = [0u8];
    loop {
        return match io::stdin().lock().read(&mut byte) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(byte[0])),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => Err(e),
        };
    }
}

fn next_key() -> io::Result<Option<Key>> {
    decode(&mut next_byte)
}

/// A key from the bytes that a terminal sends for it.
fn decode(next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Option<Key>> {
    let Some(byte) = next()? else { return Ok(None) };
    Ok(Some(match byte {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f => Key::Backspace,
        0x1b => escape(next)?,
        1..=26 => Key::Control(char::from(byte + b'a' - 1)),
        0..0x20 => Key::Other,
        0x20..0x80 => Key::Char(char::from(byte)),
        _ => character(byte, next)?,
    }))
}

fn escape(next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Key> {
    match next()? {
        Some(b'[') => {}
        Some(b'O') => return Ok(next()?.map_or(Key::Other, final_key)),
        _ => return Ok(Key::Other),
    }
    let mut parameter = 0u32;
    loop {
        match next()? {
            None => return Ok(Key::Other),
            Some(digit @ b'0'..=b'9') => {
                parameter = parameter.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            }
            Some(b';') => parameter = 0,
            Some(b'~') => {
                return Ok(match parameter {
                    1 | 7 => Key::Home,
                    4 | 8 => Key::End,
                    3 => Key::Delete,
                    _ => Key::Other,
                });
            }
            Some(last @ 0x40..=0x7e) => return Ok(final_key(last)),
            Some(_) => {}
        }
    }
}

fn final_key(byte: u8) -> Key {
    match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => Key::Other,
    }
}

/// The rest of a character of several bytes; bytes that are none become a mark.
fn character(first: u8, next: &mut dyn FnMut() -> io::Result<Option<u8>>) -> io::Result<Key> {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Ok(Key::Char(char::REPLACEMENT_CHARACTER)),
    };
    let mut bytes = vec![first];
    while bytes.len() < length {
        let Some(byte) = next()? else { break };
        bytes.push(byte);
    }
    let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
    Ok(Key::Char(text.unwrap_or(char::REPLACEMENT_CHARACTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut rest = bytes.iter().copied();
        let mut keys = Vec::new();
        while let Some(key) = decode(&mut || Ok(rest.next())).unwrap() {
            keys.push(key);
        }
        keys
    }

    #[test]
    fn keys_are_read_from_what_terminals_send() {
        assert_eq!(keys(b"a\r\t\x7f\x03"), [Key::Char('a'), Key::Enter, Key::Tab, Key::Backspace, Key::Control('c')]);
        assert_eq!(
            keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[H\x1b[4~"),
            [Key::Up, Key::Down, Key::Right, Key::Delete, Key::Home, Key::End]
        );
        assert_eq!(keys("ü😀".as_bytes()), [Key::Char('ü'), Key::Char('😀')]);
        assert_eq!(keys(b"\xff\xc3"), [Key::Char('\u{fffd}'), Key::Char('\u{fffd}')]);
        assert_eq!(keys(b"\x1b"), [Key::Other]);
    }
}
