//! Earlier statements, in a file of the user's own.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use super::statement::is_secret;

/// Statements that are kept.
const KEPT: usize = 1_000;
/// Larger files are none that we wrote.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Statements, oldest first. Without a place for the file they are forgotten at the end.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// Reads `lakesmith/history` of the user's state folder (`XDG_STATE_HOME`, else `~/.local/state`).
    pub(super) fn open() -> Self {
        let file = state_folder().map(|folder| folder.join("lakesmith").join("history"));
        let entries = file.as_ref().and_then(|file| read(file).ok()).unwrap_or_default();
        Self { entries, file }
    }

    /// Earlier statements, oldest first.
    pub(super) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Remembers a statement, unless it is a secret, or the same as the one before.
    pub(super) fn add(&mut self, text: &str) {
        if is_secret(text) || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        let surplus = self.entries.len().saturating_sub(KEPT);
        self.entries.drain(..surplus);
        if let Some(file) = &self.file
            && let Err(error) = append(file, text)
        {
            tracing::debug!(path = %file.display(), %error, "the statement is not kept");
        }
    }
}

fn state_folder() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    given("XDG_STATE_HOME").or_else(|| Some(given("HOME")?.join(".local").join("state")))
}

fn read(path: &PathBuf) -> std::io::Result<Vec<String>> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let entries: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(unescaped).collect();
    let from = entries.len().saturating_sub(KEPT);
    Ok(entries[from..].to_vec())
}

fn append(path: &PathBuf, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(format!("{}\n", escaped(text)).as_bytes())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_come_back_as_they_were_and_secrets_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/history");
        let mut history = History { file: Some(file.clone()), ..History::default() };
        let odd = "SELECT 'a\\nb' --\n  x;";
        for text in ["one;", odd, odd, "SET aws.secret.access.key = abc;"] {
            history.add(text);
        }
        assert_eq!(read(&file).unwrap(), ["one;", odd]);
        assert_eq!(history.entries(), ["one;", odd]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
