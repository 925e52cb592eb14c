//! Running other programs, and telling what is run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Prints a line to standard error: standard output belongs to the programs that are run.
#[expect(clippy::print_stderr, reason = "this is the one place where xtask prints")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// The cargo that runs us, without what it told us of our own package: build scripts watch those variables, and half
/// of the dependencies would be built again whenever cargo is started in another way.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root);
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR" {
            command.env_remove(&key);
        }
    }
    command
}

/// Runs a program with our own outputs and gives its exit code.
///
/// # Errors
/// When it cannot be started or a signal ended it.
pub(crate) fn status(command: &mut Command) -> Result<i32> {
    let shown = shown(command);
    say(&format!("\n$ {shown}"));
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {shown}"))?;
    status.code().with_context(|| format!("a signal ended {shown}"))
}

/// Runs a program that must succeed.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    match status(command)? {
        0 => Ok(()),
        code => bail!("exit code {code} from {}", shown(command)),
    }
}

/// Runs a program that must succeed, in silence, and gives its standard output.
///
/// # Errors
/// When it cannot be started, fails, or prints no UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    if !done.status.success() {
        bail!("{} from {shown}", done.status);
    }
    String::from_utf8(done.stdout).with_context(|| format!("the output of {shown} is not UTF-8"))
}

/// Builds the command line tool and gives its path, wherever cargo puts it.
///
/// # Errors
/// When it does not build.
pub(crate) fn build_binary(root: &Path, release: bool) -> Result<PathBuf> {
    let mut command = cargo(root);
    if release {
        // What is measured needs no query engine, which would take three times as long to build.
        command.args(["build", "-p", "lakesmith-cli", "--bin", "lakesmith", "--release", "--no-default-features"]);
    } else {
        // Together with the tests: alone it would need its dependencies with other features, all built once more.
        command.args(["test", "--workspace", "--no-run"]);
    }
    command.arg("--message-format=json-render-diagnostics");
    say(&format!("\n$ {}", shown(&command)));
    executable(&output(&mut command)?).context("cargo built no binary named lakesmith")
}

fn executable(messages: &str) -> Option<PathBuf> {
    let of = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = message.get("executable")?.as_str()?;
        let is_binary = message.pointer("/target/kind/0")? == "bin" && message.pointer("/profile/test")? == false;
        (is_binary && message.pointer("/target/name")? == "lakesmith").then(|| PathBuf::from(path))
    };
    messages.lines().rev().find_map(of)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_among_cargos_messages() {
        let artifact = |kind: &str, test: bool, path: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"lakesmith","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"{path}"}}"#
            )
        };
        let messages = [
            artifact("lib", true, "/t/deps/lakesmith-1"),
            artifact("bin", false, "/t/lakesmith"),
            artifact("bin", true, "/t/deps/lakesmith-2"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        assert_eq!(executable(&messages), Some(PathBuf::from("/t/lakesmith")));
        assert_eq!(executable("{\"reason\":\"build-finished\",\"success\":true}\n"), None);
    }
}
