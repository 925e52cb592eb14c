//! The rules of the house that no compiler knows. Each check is a pure function from text to findings.

mod arrows;
mod fixtures;
mod sources;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// Runs every check and shows all findings.
///
/// # Errors
/// When there are findings, or the tree cannot be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut findings = arrows::check(&process::output(process::cargo(root).args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--offline",
    ]))?)?;
    let files = files(root)?;
    for file in files.iter().filter(|file| sources::is_source(file)) {
        // A file may be listed by git and yet be gone from the disk.
        let path = root.join(file);
        if path.is_file() {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
            findings.extend(sources::check(file, &text));
        }
    }
    let catalogue = std::fs::read_to_string(root.join(fixtures::CATALOGUE))
        .with_context(|| format!("cannot read {}", fixtures::CATALOGUE))?;
    findings.extend(fixtures::check(&files, &catalogue));
    if process::status(process::cargo(root).args(["fmt", "--all", "--", "--check"]))? != 0 {
        findings.push("formatting: run cargo fmt --all".to_owned());
    }
    for finding in &findings {
        process::say(finding);
    }
    match findings.len() {
        0 => Ok(()),
        n => bail!("tidy: {n} finding(s)"),
    }
}

/// The project's files, committed or not, without what git ignores; relative, with `/`.
fn files(root: &Path) -> Result<Vec<String>> {
    let list = process::output(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))
    .context("tidy needs a git checkout")?;
    let mut files: Vec<String> = list.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}
