//! Defaults in the help, taken from where the library has them.

use clap::{Arg, Command};
use lakesmith::DemoOptions;
use lakesmith::op::{FsckOptions, HealthOptions, HistoryOptions};
use lakesmith::units::bytes_text;

use crate::settings;

/// The grammar, with what holds while a flag is not given behind the flag's help.
pub(super) fn shown(command: Command) -> Command {
    command.mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        verb.mut_args(move |arg| with_default(&name, arg))
    })
}

fn with_default(verb: &str, arg: Arg) -> Arg {
    let takes_value = arg.get_action().takes_values();
    match default_of(verb, arg.get_id().as_str()).filter(|_| takes_value) {
        Some(default) => {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.help(format!("{help} [default: {default}]"))
        }
        None => arg,
    }
}

fn default_of(verb: &str, id: &str) -> Option<String> {
    let (fsck, health) = (FsckOptions::default(), HealthOptions::default());
    match (verb, id) {
        ("fsck", "memory") => Some(bytes_text(fsck.memory_bytes)),
        ("fsck", "threads") => Some(fsck.threads.to_string()),
        ("health", "target_size") => Some(bytes_text(health.sizes.target_bytes)),
        ("health", "history") => Some(health.history_commits.to_string()),
        ("history", "limit") => Some(HistoryOptions::default().limit.map_or("all".to_owned(), |n| n.to_string())),
        ("demo", "rows") => Some(DemoOptions::default().rows.to_string()),
        _ => {
            let key = settings::key_of_flag(id)?;
            lakesmith::settings_reference().into_iter().find(|s| s.key == key).map(|s| s.default)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command;

    fn help(verb: &str) -> String {
        command().find_subcommand_mut(verb).unwrap().clone().term_width(200).render_help().to_string()
    }

    #[test]
    fn every_verb_tells_its_defaults() {
        for (verb, flag, default) in [
            ("optimize", "--target-size", "1GiB"),
            ("reorg", "--memory", "512MiB"),
            ("sql", "--threads", "0"),
            ("optimize", "--commit-timeout", "30min"),
            ("optimize", "--row-group-rows", "1048576"),
            ("optimize", "--compression", "that of the files read"),
            ("vacuum", "--user-metadata", "none"),
            ("fsck", "--memory", "512MiB"),
            ("health", "--history", "1000"),
            ("history", "--limit", "all"),
            ("demo", "--rows", "1000000"),
        ] {
            let help = help(verb);
            let line = help.lines().find(|line| line.trim_start().starts_with(flag)).unwrap_or_default();
            assert!(line.contains(&format!("[default: {default}]")), "{verb} {flag}: {line}");
        }
        let help = help("optimize");
        let line = help.lines().find(|line| line.trim_start().starts_with("--verify")).unwrap();
        assert!(!line.contains("default"), "a switch is off: {line}");
    }
}
