//! The foreign readers: where they are, and how they are run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// An installed set of foreign readers.
pub(crate) struct Oracle {
    home: PathBuf,
    scripts: PathBuf,
}

impl Oracle {
    /// Installs what is missing, and waits for another run that is doing so.
    ///
    /// # Errors
    /// When a tool is missing (Python, Java, Maven) or a package registry cannot be reached.
    pub(crate) fn install(root: &Path, services: bool) -> Result<Self> {
        let oracle = Self { home: home()?, scripts: root.join("oracle") };
        let mut command = Command::new("bash");
        command.arg(oracle.scripts.join("setup.sh")).env("LAKESMITH_ORACLE_HOME", &oracle.home);
        if services {
            command.arg("services");
        }
        process::run(&mut command).context("the foreign readers could not be installed")?;
        Ok(oracle)
    }

    /// A Python program of the oracle's environment, run in the oracle's folder.
    pub(crate) fn python<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.home.join("venv/bin/python"));
        command.args(args).current_dir(&self.scripts).env("LAKESMITH_ORACLE_HOME", &self.home);
        command
    }

    /// The same command, run while the storage services are up.
    pub(crate) fn with_services(&self, command: &Command) -> Command {
        let program = self.scripts.join("services.py").into_os_string();
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_os_string);
        let mut wrapped = self.python(std::iter::once(program).chain(words));
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        wrapped
    }
}

fn home() -> Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = of("LAKESMITH_ORACLE_HOME") {
        return Ok(home);
    }
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    Ok(cache.context("set HOME or LAKESMITH_ORACLE_HOME: nowhere to install the foreign readers")?.join("lakesmith"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_must_not_see_stays_hidden_while_services_are_up() {
        let oracle = Oracle { home: "/h".into(), scripts: "/s".into() };
        let mut command = Command::new("cargo");
        command.arg("test").current_dir("/r").env("A", "1").env_remove("CARGO_PKG_NAME");
        let wrapped = oracle.with_services(&command);
        let words: Vec<_> = wrapped.get_args().collect();
        assert_eq!(words, ["/s/services.py", "cargo", "test"]);
        assert_eq!(wrapped.get_current_dir(), Some(Path::new("/r")));
        let variable = |name: &str| wrapped.get_envs().find(|(n, _)| *n == name).map(|(_, value)| value);
        assert_eq!(variable("A"), Some(Some(OsStr::new("1"))));
        assert_eq!(variable("CARGO_PKG_NAME"), Some(None));
    }
}
