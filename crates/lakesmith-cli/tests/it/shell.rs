//! Help, completions, the reference and closed pipes.

use std::io::Read;

use crate::run::{command, fixture, run};

const VERBS: [&str; 10] =
    ["optimize", "reorg", "detail", "history", "files", "checkpoint", "sql", "demo", "completions", "config"];

#[test]
fn help_goes_to_stdout_and_shows_an_example_for_every_verb() {
    let help = run(&["--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for verb in VERBS {
        assert!(help.out.contains(&format!("\n  {verb} ")), "{verb}");
        let own = run(&[verb, "--help"]);
        assert_eq!((own.code, own.err.as_str()), (0, ""), "{verb}");
        assert!(own.out.contains("Example") && own.out.contains(&format!("lakesmith {verb}")), "{verb}");
    }
}

#[test]
fn version_is_the_packages() {
    assert_eq!(run(&["--version"]).out, format!("lakesmith {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_exist_for_each_shell() {
    for (shell, mark) in
        [("bash", "complete -F _lakesmith"), ("zsh", "#compdef lakesmith"), ("fish", "complete -c lakesmith")]
    {
        let ran = run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains(mark) && ran.out.contains("optimize"), "{shell}");
    }
}

#[test]
fn config_names_every_setting_and_variable() {
    let document = run(&["config", "--json"]).json();
    let variables = document["variables"].as_array().unwrap();
    let memory = variables.iter().find(|v| v["name"] == "LAKESMITH_MEMORY").unwrap();
    assert_eq!(memory["flag"], "--memory");
    assert!(variables.iter().all(|v| !v["meaning"].as_str().unwrap().is_empty()));
    let settings = document["settings"].as_array().unwrap();
    assert!(settings.iter().any(|s| s["key"] == "lakesmith.compat"));
    assert!(settings.iter().any(|s| s["key"] == "spark.databricks.delta.optimize.maxFileSize"));
    let text = run(&["config"]).out;
    assert!(text.contains("lakesmith.compat") && text.contains("LAKESMITH_MEMORY"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (_guard, table) = fixture("plain_24_appends");
    let mut child = command(&["files", &table]).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn statements_go_on_when_the_reader_goes_away() {
    let (_guard, table) = fixture("plain_24_appends");
    let text = format!("DESCRIBE HISTORY delta.`{table}`; OPTIMIZE delta.`{table}`");
    let mut child = command(&["sql", &text]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let history = run(&["history", &table, "--limit", "1", "--json"]).json();
    assert_eq!(history[0]["operation"], "OPTIMIZE");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["config"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error[UNAVAILABLE]: "));
}
