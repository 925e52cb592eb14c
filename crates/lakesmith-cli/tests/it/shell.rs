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
fn config_shows_what_is_in_force_and_where_it_comes_from() {
    let output = command(&["config", "--json", "--memory", "2097152KiB", "--set", "lakesmith.memory=30MiB"])
        .args(["--set", "lakesmith.commitTimeout=120s"])
        .env("LAKESMITH_THREADS", "3")
        .env("LAKESMITH_MEMORY", "40MiB")
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = |key: &str| {
        let settings = document["settings"].as_array().unwrap();
        let setting = settings.iter().find(|s| s["key"] == key).unwrap();
        ["value", "from", "default"].map(|part| setting[part].as_str().unwrap().to_owned())
    };
    assert_eq!(shown("lakesmith.memory"), ["2GiB", "--memory", "512MiB"]);
    assert_eq!(shown("lakesmith.threads"), ["3", "LAKESMITH_THREADS", "0"]);
    assert_eq!(shown("lakesmith.commitTimeout"), ["2min", "--set", "30min"]);
    assert_eq!(shown("spark.databricks.delta.optimize.maxFileSize"), ["1GiB", "default", "1GiB"]);
    assert_eq!(run(&["config", "--set", "lakesmith.threads=many"]).code, 2);
}

#[test]
fn completions_offer_the_words_of_a_flag() {
    let script = run(&["completions", "bash"]).out;
    for words in ["info warning critical", "zstd"] {
        assert!(script.contains(words), "{words}");
    }
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

#[test]
fn a_commit_whose_reader_went_away_is_told_on_stderr() {
    let (_guard, table) = fixture("plain_24_appends");
    let next = run(&["detail", &table, "--json"]).json()["version"].as_u64().unwrap() + 1;
    let mut child = command(&["optimize", &table]).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(err.contains("nobody reads its report") && err.contains(&format!("version={next}")), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_commit_whose_report_cannot_be_written_is_told_on_stderr() {
    for sql in [false, true] {
        for json in [false, true] {
            let (_guard, table) = fixture("plain_24_appends");
            let next = run(&["detail", &table, "--json"]).json()["version"].as_u64().unwrap() + 1;
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let statement = format!("OPTIMIZE delta.`{table}`");
            let mut args = if sql { vec!["sql", &statement] } else { vec!["optimize", &table] };
            args.extend(json.then_some("--json"));
            let output = command(&args).stdout(full).output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{err}");
            assert!(err.contains(&format!("stands at version {next}")), "{err}");
            let history = run(&["history", &table, "--limit", "1", "--json"]).json();
            assert_eq!(
                (history[0]["operation"].as_str(), history[0]["version"].as_u64()),
                (Some("OPTIMIZE"), Some(next))
            );
        }
    }
}

#[test]
fn a_flag_or_its_variable_wins_over_set() {
    let statements = "SET lakesmith.memory = 1GiB; SET lakesmith.threads = 7; SET lakesmith.memory; SET lakesmith.threads; \
                      RESET; SET lakesmith.memory";
    let output = command(&["sql", "--json", "--memory", "20MiB", "--set", "lakesmith.memory=30MiB", statements])
        .env("LAKESMITH_THREADS", "3")
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let values: Vec<String> = out
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["value"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(values[2..], ["20971520", "3", "20971520"], "{out}");
    assert!(err.contains("SET has no effect"), "{err}");
}

#[test]
fn secrets_are_not_printed() {
    let statements = "SET fs.s3a.secret.key = hidden1; SET; SET fs.s3a.secret.key; SET fs.s3a.endpoint = shown1";
    for json in [&["--json"][..], &[]] {
        let set = ["--set", "azure_storage_account_key=hidden2", "--set", "AWS_SESSION_TOKEN=hidden3"];
        let ran = run(&[&["sql", statements][..], &set, json].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!ran.out.contains("hidden") && !ran.err.contains("hidden"), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("*********(redacted)") && ran.out.contains("shown1"), "{}", ran.out);
    }
}

#[test]
fn v_tells_what_is_done_and_logs_can_be_json() {
    let (_guard, table) = fixture("plain_24_appends");
    let ran = run(&["optimize", &table, "-v"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let at = |word: &str| ran.err.find(word).unwrap_or_else(|| panic!("{word}: {}", ran.err));
    let places = ["loaded", "planned", "rewriting", "rewritten and checked", "committing", "committed", "done"].map(at);
    assert!(places.is_sorted(), "{}", ran.err);
    for fact in ["version=", "files=", "bytes=", "groups=", "requests=", "seconds="] {
        at(fact);
    }
    let (_guard, table) = fixture("plain_24_appends");
    let ran = run(&["optimize", &table, "-vv", "--log-format", "json"]);
    let messages: Vec<String> = ran
        .err
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        messages.iter().any(|m| m == "committed") && messages.iter().any(|m| m == "group rewritten"),
        "{messages:?}"
    );
    assert_eq!(run(&["detail", &table]).err, "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["config"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error[UNAVAILABLE]: "));
}
