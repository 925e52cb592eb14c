//! Runs the command and copies golden tables for it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

/// The command without the variables of whoever runs the tests.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakesmith"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LAKESMITH_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: &[&str]) -> Ran {
    finished(command(args).output().unwrap())
}

pub(crate) fn run_with_stdin(args: &[&str], stdin: &str) -> Ran {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    finished(child.wait_with_output().unwrap())
}

pub(crate) fn finished(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A golden table's copy that may be changed; the folder lives as long as the guard.
pub(crate) fn fixture(name: &str) -> (tempfile::TempDir, String) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta").join(name);
    let guard = tempfile::tempdir().unwrap();
    let target = guard.path().join(name);
    copy(&source, &target);
    let path = target.to_str().unwrap().to_owned();
    (guard, path)
}

fn copy(source: &Path, target: &PathBuf) {
    std::fs::create_dir_all(target).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let to = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
