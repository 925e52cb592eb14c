//! Verbs on copies of golden tables.

use crate::run::{fixture, run, run_with_stdin};

#[test]
fn files_lists_every_live_file() {
    let (_guard, table) = fixture("plain_24_appends");
    let files = run(&["files", &table, "--json"]).json();
    let files = files.as_array().unwrap();
    assert_eq!(files.len() as u64, run(&["detail", &table, "--json"]).json()["numFiles"].as_u64().unwrap());
    let text = run(&["files", &table]);
    assert_eq!(text.out.lines().count(), files.len() + 1, "a header and a line each");
    for file in files {
        assert!(text.out.contains(file["path"].as_str().unwrap()));
    }
}

#[test]
fn files_and_detail_look_back_in_time() {
    let (_guard, table) = fixture("plain_24_appends");
    let count =
        |version: &str| run(&["files", &table, "--json", "--version", version]).json().as_array().unwrap().len();
    assert!(count("1") < count("2"));
    let detail = run(&["detail", &table, "--version", "2", "--json"]).json();
    assert_eq!(detail["version"], 2);
    let ran = run(&["detail", &table, "--version", "999"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
}

#[test]
fn history_is_newest_first_and_limited() {
    let (_guard, table) = fixture("plain_24_appends");
    let history = run(&["history", &table, "--limit", "3", "--json"]).json();
    let versions: Vec<u64> = history.as_array().unwrap().iter().map(|e| e["version"].as_u64().unwrap()).collect();
    assert_eq!(versions.len(), 3);
    assert!(versions.is_sorted_by(|a, b| a > b));
}

#[test]
fn a_dry_run_plans_and_writes_nothing() {
    let (_guard, table) = fixture("plain_24_appends");
    let before = run(&["detail", &table, "--json"]).json();
    let plan = run(&["optimize", &table, "--dry-run", "--json"]).json();
    assert_eq!(plan["committed"], false);
    assert!(!plan["planned"].as_array().unwrap().is_empty());
    assert!(run(&["optimize", &table, "--dry-run"]).out.contains("the table was not changed"));
    assert_eq!(run(&["detail", &table, "--json"]).json()["version"], before["version"]);
}

#[test]
fn optimize_commits_once_and_a_second_run_finds_nothing_to_do() {
    let (_guard, table) = fixture("plain_24_appends");
    let before = run(&["detail", &table, "--json"]).json();
    let first = run(&["optimize", &table, "--verify", "--user-metadata", "nightly", "--json"]).json();
    assert_eq!(first["committed"], true);
    assert_eq!(first["version_before"], before["version"]);
    assert_eq!(first["version_after"].as_u64().unwrap(), before["version"].as_u64().unwrap() + 1);
    assert_eq!(first["groups_dropped"], 0);
    assert!(first["metrics"]["numFilesRemoved"].as_u64() > first["metrics"]["numFilesAdded"].as_u64());
    let newest = run(&["history", &table, "--limit", "1", "--json"]).json();
    assert_eq!((&newest[0]["operation"], &newest[0]["userMetadata"]), (&"OPTIMIZE".into(), &"nightly".into()));

    let second = run(&["optimize", &table, "--json"]).json();
    assert_eq!(second["committed"], false);
    assert_eq!(second["version_after"], serde_json::Value::Null);
    assert_eq!(second["version_before"], first["version_after"]);
}

#[test]
fn the_summary_is_for_people_and_progress_stays_off_stdout() {
    let (_guard, table) = fixture("plain_24_appends");
    let ran = run(&["optimize", &table]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.lines().any(|l| l.trim_start().starts_with("files ") && l.contains("->")), "{}", ran.out);
    assert!(ran.err.contains("about to rewrite"), "{}", ran.err);
    let again = run(&["optimize", &table, "--quiet"]);
    assert!(again.out.contains("nothing to do"), "{}", again.out);
    assert_eq!(again.err, "");
}

#[test]
fn reorg_purges_deleted_rows() {
    let (_guard, table) = fixture("dv_file");
    let deleted = |table: &str| -> u64 {
        let files = run(&["files", table, "--json"]).json();
        files.as_array().unwrap().iter().map(|f| f["deletedRows"].as_u64().unwrap()).sum()
    };
    assert!(deleted(&table) > 0);
    let report = run(&["reorg", &table, "--purge", "--json"]).json();
    assert_eq!(report["committed"], true);
    assert_eq!(deleted(&table), 0);
    assert_eq!(run(&["reorg", &table, "--purge", "--json"]).json()["committed"], false);
}

#[test]
fn checkpoint_writes_one_at_the_newest_version() {
    let (_guard, table) = fixture("plain_24_appends");
    let version = run(&["detail", &table, "--json"]).json()["version"].as_u64().unwrap();
    let document = run(&["checkpoint", &table, "--json"]).json();
    assert_eq!(document["version"], version);
    let name = format!("{table}/_delta_log/{version:020}.checkpoint.parquet");
    assert!(std::fs::metadata(name).unwrap().len() > 0);
}

#[test]
fn sql_prints_one_object_a_row_with_columns_in_order() {
    let (_guard, table) = fixture("plain_24_appends");
    let text = format!(
        "SET lakesmith.compat = spark;\nDESCRIBE HISTORY delta.`{table}` LIMIT 2;\nDESCRIBE DETAIL delta.`{table}`"
    );
    for ran in [
        run(&["sql", &text, "--json"]),
        run_with_stdin(&["sql", "--json"], &text),
        run_with_stdin(&["sql", "-", "--json"], &text),
    ] {
        assert_eq!(ran.code, 0, "{}", ran.err);
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines.len(), 4, "{}", ran.out);
        assert_eq!(lines[0], r#"{"key":"lakesmith.compat","value":"spark"}"#);
        assert!(lines[1].starts_with(r#"{"version":"#), "{}", lines[1]);
        assert!(lines[3].starts_with(r#"{"format":"delta","id":""#), "{}", lines[3]);
    }
}

#[test]
fn sql_reads_a_file_of_statements() {
    let (guard, table) = fixture("plain_24_appends");
    let file = guard.path().join("nightly.sql");
    std::fs::write(&file, format!("OPTIMIZE delta.`{table}`;\n")).unwrap();
    let ran = run(&["sql", "--file", file.to_str().unwrap(), "--threads", "1", "--memory", "256MiB"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(run(&["history", &table, "--limit", "1", "--json"]).json()[0]["operation"], "OPTIMIZE");
}

#[test]
fn settings_reach_the_operation_and_flags_win() {
    let (_guard, table) = fixture("plain_24_appends");
    let groups = |more: &[&str]| {
        let args = [&["optimize", &table, "--dry-run", "--json"], more].concat();
        run(&args).json()["planned"].as_array().map_or(0, Vec::len)
    };
    let whole = groups(&[]);
    let small = "spark.databricks.delta.optimize.maxFileSize=4096";
    assert_ne!(groups(&["--set", small]), whole);
    assert_eq!(groups(&["--set", small, "--target-size", "1GiB"]), whole);
}
