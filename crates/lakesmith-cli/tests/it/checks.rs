//! Checks of a table: results on stdout, the verdict in the exit code.

use crate::run::{fixture, run};

#[test]
fn fsck_exits_with_0_when_all_is_well_and_with_1_when_not() {
    let (_guard, table) = fixture("plain_24_appends");
    for how in [&["--stats"][..], &["--stats=data"], &[]] {
        let ran = run(&[&["fsck", &table, "--json"], how].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let report = ran.json();
        assert_eq!((report["clean"].as_bool(), report["files"].as_u64()), (Some(true), Some(24)));
    }
    let files = run(&["files", &table, "--json"]).json();
    std::fs::remove_file(format!("{table}/{}", files[0]["path"].as_str().unwrap())).unwrap();
    let ran = run(&["fsck", &table, "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["findings"][0]["kind"], "missing-file");
    assert_eq!(report["findings"][0]["path"], files[0]["path"]);
    let text = run(&["fsck", &table]);
    assert_eq!((text.code, text.err.as_str()), (1, ""));
    assert!(text.out.contains("missing-file") && text.out.contains("1 finding:"), "{}", text.out);
    let history = run(&["history", &table, "--readable", "--limit", "1"]);
    assert!(history.out.contains("no: 1 file missing"), "{}", history.out);
    assert_eq!(run(&["fsck", "/nonexistent/table"]).code, 1);
    assert_eq!(run(&["fsck", &table, "--stats=rows"]).code, 2);
}

#[test]
fn cleaning_the_log_says_what_would_go_before_it_does() {
    let (_guard, table) = fixture("plain_24_appends");
    let ran = run(&["checkpoint", &table, "--clean-log", "--dry-run", "--json"]);
    let report = ran.json();
    assert_eq!(report["written"].as_bool(), Some(false));
    assert_eq!(report["log"]["dry_run"].as_bool(), Some(true));
    let text = run(&["checkpoint", &table, "--clean-log", "--dry-run"]);
    assert!(text.out.contains("no log file would go: no commit is as old as the cut-off"), "{}", text.out);
    assert_eq!(run(&["checkpoint", &table, "--dry-run"]).code, 2);
    let text = run(&["checkpoint", &table]);
    assert_eq!((text.code, text.out.as_str()), (0, "checkpoint written at version 23\n"));
}
