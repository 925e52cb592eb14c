//! Failures: text or one JSON object on stderr, nothing on stdout, documented exit codes.

use serde_json::Value;

use crate::run::{command, fixture, run, run_with_stdin};

#[test]
fn usage_errors_exit_with_2() {
    for args in [
        &["optimise"][..],
        &["detail"],
        &["files", "t", "--version", "1", "--timestamp", "2026-01-01"],
        &["files", "t", "--timestamp", "yesterday"],
        &["optimize", "t", "--target-size", "0"],
        &["optimize", "t", "--target-size", "big"],
        &["optimize", "t", "--memory", "11MiB"],
        &["fsck", "t", "--memory", "1"],
        &["optimize", "t", "--zorder-by", "a,,b"],
        &["optimize", "t", "--set", "nonsense"],
        &["history", "t", "--limit", "-1"],
        &["completions", "tcsh"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.starts_with("error[USAGE]: "), "{args:?}: {}", ran.err);
    }
}

#[test]
fn nothing_at_all_shows_the_help_and_exits_with_2() {
    let ran = run(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("Usage: lakesmith"));
}

#[test]
fn usage_errors_are_json_when_asked_for() {
    let ran = run(&["optimize", "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(error["error"]["class"], "USAGE");
    assert!(error["error"]["message"].as_str().unwrap().contains("<TABLE>"));
}

#[test]
fn a_variable_that_cannot_be_read_is_named_unless_the_flag_was_given() {
    for (args, flag, variable) in [
        (&["optimize", "t"][..], "--memory", "LAKESMITH_MEMORY"),
        (&["fsck", "t"], "--threads", "LAKESMITH_THREADS"),
        (&["detail", "t"], "--log-format", "LAKESMITH_LOG_FORMAT"),
        (&["optimize", "t"], "--compression", "LAKESMITH_COMPRESSION"),
    ] {
        let shown = |given: &[&str]| {
            let output = command(&[args, given].concat()).env(variable, "much").output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{variable}");
            String::from_utf8(output.stderr).unwrap()
        };
        let text = shown(&[]);
        assert!(text.contains(variable) && text.contains(flag) && text.contains("much"), "{text}");
        for given in [&[flag, "many"][..], &[&format!("{flag}=many")]] {
            let text = shown(given);
            assert!(!text.contains(variable) && text.contains(flag) && text.contains("many"), "{text}");
        }
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let (_guard, table) = fixture("plain_24_appends");
    for name in ["LAKESMITH_MEMORY", "LAKESMITH_COMPRESSION", "LAKESMITH_LOG_FORMAT", "LAKESMITH_COMMIT_TIMEOUT"] {
        for empty in ["", " "] {
            let output = command(&["optimize", &table, "--dry-run"]).env(name, empty).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn reorg_says_what_it_needs() {
    let ran = run(&["reorg", "t"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error[USAGE]: reorg needs --purge"), "{}", ran.err);
}

#[test]
fn a_missing_table_has_sparks_class() {
    let guard = tempfile::tempdir().unwrap();
    let table = guard.path().to_str().unwrap();
    for verb in [&["detail", table][..], &["files", table], &["optimize", table], &["checkpoint", table]] {
        let ran = run(verb);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{verb:?}");
        assert!(ran.err.starts_with("error[DELTA_MISSING_DELTA_TABLE]: "), "{verb:?}: {}", ran.err);
    }
    let left: Vec<_> = std::fs::read_dir(guard.path()).unwrap().collect();
    assert_eq!(left.len(), 0);
}

#[test]
fn errors_of_analysis_exit_with_2() {
    let (_guard, table) = fixture("plain_24_appends");
    for (statement, class) in [
        ("OPTIMIZE sales.events".to_owned(), "TABLE_OR_VIEW_NOT_FOUND"),
        (format!("ALTER TABLE delta.`{table}` UNSET TBLPROPERTIES ('nope')"), "DELTA_UNSET_NON_EXISTENT_PROPERTY"),
        (format!("OPTIMIZE delta.`{table}` WHERE nope = 1"), "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        (format!("ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.parquet.compression.codec' = 'foo')"), "USAGE"),
    ] {
        let ran = run(&["sql", &statement]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{statement}: {}", ran.err);
        assert!(ran.err.starts_with(&format!("error[{class}]: ")), "{statement}: {}", ran.err);
    }
}

#[test]
fn a_codec_that_the_table_was_given_elsewhere_is_named_and_passed_over() {
    let (_guard, table) = fixture("plain_24_appends");
    let log = std::path::Path::new(&table).join("_delta_log");
    let mut given = false;
    for entry in std::fs::read_dir(&log).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".checkpoint.parquet") || name.ends_with(".crc") || name == "_last_checkpoint" {
            std::fs::remove_file(&path).unwrap();
        } else if name.ends_with(".json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let codec = r#""configuration":{"delta.parquet.compression.codec":"foo""#;
            given |= text.contains(r#""configuration":{}"#);
            std::fs::write(&path, text.replace(r#""configuration":{"#, codec)).unwrap();
        }
    }
    assert!(given);
    let ran = run(&["optimize", &table, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for word in ["delta.parquet.compression.codec", "foo", "--compression"] {
        assert!(ran.err.contains(word), "{}", ran.err);
    }
}

#[test]
fn errors_are_one_json_object_when_asked_for() {
    let guard = tempfile::tempdir().unwrap();
    let ran = run(&["--json", "detail", guard.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    let document: Value = serde_json::from_str(&ran.err).unwrap();
    let keys: Vec<_> = document["error"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["class", "kind", "message", "context"]);
    assert_eq!(document["error"]["class"], "DELTA_MISSING_DELTA_TABLE");
    assert_eq!(document["error"]["kind"], "not_found");
}

#[test]
fn a_syntax_error_points_at_its_place_and_runs_nothing() {
    let (_guard, table) = fixture("plain_24_appends");
    let text = format!("OPTIMIZE delta.`{table}`;\nOPTIMIZE delta.`{table}` WERE a = 1");
    let ran = run(&["sql", &text]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.starts_with("error[PARSE_SYNTAX_ERROR]: "), "{}", ran.err);
    let lines: Vec<&str> = ran.err.lines().collect();
    let caret = lines.iter().position(|l| l.contains('^')).unwrap();
    assert_eq!(lines[caret].find('^'), lines[caret - 1].find("WERE"), "{}", ran.err);
    let history = run(&["history", &table, "--limit", "1", "--json"]).json();
    assert_ne!(history[0]["operation"], "OPTIMIZE");
}

#[test]
fn a_predicate_that_cannot_be_read_points_at_its_place() {
    let ran = run(&["optimize", "t", "--where", "a = = 1"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.contains("a = = 1") && ran.err.contains('^'), "{}", ran.err);
}

#[test]
fn statements_that_are_not_there_are_a_usage_error() {
    let ran = run(&["sql", "--file", "/nowhere/nightly.sql"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("/nowhere/nightly.sql"), "{}", ran.err);
    assert_eq!(run_with_stdin(&["sql", "x", "--file", "y"], "").code, 2);
}

#[test]
fn a_comment_alone_is_no_statement_and_no_error() {
    for text in ["-- c", "/* c */ ; -- d", "--x\n"] {
        let ran = run(&["sql", text]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{text}");
    }
    for option in ["--jsno", "-x", "--dry-run"] {
        assert_eq!(run(&["sql", option]).code, 2, "{option}");
    }
}
