//! The `LAKESMITH_*` variables that stand for flags.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};

use super::Cli;

/// The variables: name -> (flag, meaning).
pub(crate) fn variables() -> BTreeMap<String, (String, String)> {
    let command = Cli::command();
    let mut found = BTreeMap::new();
    for arg in arguments(&command) {
        let (Some(name), Some(flag)) = (arg.get_env(), arg.get_long()) else { continue };
        let meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
        found.insert(name.to_string_lossy().into_owned(), (format!("--{flag}"), meaning));
    }
    found
}

fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    std::iter::once(command).chain(command.get_subcommands()).flat_map(Command::get_arguments)
}

/// The grammar without the variables that are set to nothing: they say as little as absent ones.
pub(super) fn without_empty(command: Command) -> Command {
    let heed = |arg: Arg| {
        let is_empty = |name| std::env::var_os(name).is_some_and(|text| text.to_string_lossy().trim().is_empty());
        if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg }
    };
    command.mut_args(heed).mut_subcommands(|verb| verb.mut_args(heed))
}

/// Ids of the verb's flags whose values are those of their variables.
pub(super) fn used(matches: &ArgMatches) -> BTreeSet<String> {
    let Some((_, verb)) = matches.subcommand() else { return BTreeSet::new() };
    let ids = verb.ids().map(clap::Id::as_str);
    ids.filter(|id| verb.value_source(id) == Some(ValueSource::EnvVariable)).map(str::to_owned).collect()
}

/// The error with the name of the variable that holds the bad value, where it speaks of a flag that was not given.
pub(super) fn named<'a>(
    mut error: clap::Error,
    command: &Command,
    mut given: impl Iterator<Item = &'a OsString> + Clone,
) -> clap::Error {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return error };
    let flag = shown.split([' ', '=']).next().unwrap_or_default().to_owned();
    let with_value = format!("{flag}=");
    if given.any(|arg| arg == flag.as_str() || arg.to_string_lossy().starts_with(&with_value)) {
        return error;
    }
    let stands_for = |arg: &&Arg| arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
    let variable =
        arguments(command).filter(stands_for).find_map(Arg::get_env).filter(|name| std::env::var_os(name).is_some());
    if let Some(variable) = variable {
        error.insert(ContextKind::InvalidArg, ContextValue::String(format!("{} ({flag})", variable.to_string_lossy())));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_their_flags() {
        let variables = variables();
        assert_eq!(variables["LAKESMITH_TARGET_SIZE"].0, "--target-size");
        assert_eq!(variables["LAKESMITH_LOG_FORMAT"].0, "--log-format");
    }
}
